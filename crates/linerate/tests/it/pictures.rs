//! `--html` and `--svg`: the files come about whole or not at all, and a browser draws the page.

use std::process::Command;

use linerate_testing::{Need, skipped};

use crate::harness::{
    Folder, LINERATE, LONG, Server, beside, has, lacks_namespaces, lacks_programs, linerate, run,
};

/// A browser that draws without a screen, under one of its names.
fn browser(what: &str) -> Option<&'static str> {
    let found = ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|name| has(name));
    if found.is_none() {
        skipped(
            Need::Browser,
            what,
            "chromium is not installed (scripts/test-deps.sh)",
        );
    }
    found
}

/// What the page became once its script had run.
fn drawn(browser: &str, folder: &Folder, page: &std::path::Path) -> Option<String> {
    let mut command = Command::new(browser);
    command.args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]);
    command.arg(format!(
        "--user-data-dir={}",
        folder.file("browser").display()
    ));
    command.arg(format!("file://{}", page.display()));
    let done = run(&mut command, LONG);
    if done.code() != Some(0) || done.out.is_empty() {
        skipped(
            Need::Browser,
            "a page in a browser",
            &format!("{browser} does not start here: {:.200}", done.error),
        );
        return None;
    }
    Some(done.out)
}

/// The number in `name="7"`.
fn attribute(dom: &str, name: &str) -> Option<usize> {
    let after = dom.split_once(&format!("{name}=\""))?.1;
    after.split_once('"')?.0.parse().ok()
}

#[test]
fn a_browser_draws_every_chart_of_the_page() {
    let _beside = beside();
    let what = "a page in a browser";
    let Some(browser) = browser(what) else {
        return;
    };
    let server = Server::linerate(&[]);
    let folder = Folder::new();
    for (name, words) in [
        ("tcp", "-t 1 -P 3 --bidir"),
        ("udp", "-u -b 20M -t 1"),
        ("short", "-n 1K"),
    ] {
        let page = folder.file(&format!("{name}.html"));
        run(server.client(&format!("{words} --html")).arg(&page), LONG).expect(0);
        let text = std::fs::read_to_string(&page).unwrap();
        let charts = text.matches("<figure class=\"chart\"").count();
        let Some(dom) = drawn(browser, &folder, &page) else {
            return;
        };
        // The script says how many it drew once it has come to its end.
        assert_eq!(attribute(&dom, "data-drawn"), Some(charts), "{name}");
        assert!(charts >= 2, "{name}: {charts} charts");
        let begun = dom.matches("id=\"clip-").count();
        assert_eq!(begun, charts, "{name}");
    }
}

/// What a hand would do: show the evidence of the first finding, zoom, move along, hide a line.
const HAND: &str = r#"<script>
    const plots = document.querySelectorAll(".plot");
    const key = function (of, key) { of.dispatchEvent(new KeyboardEvent("keydown", { key: key, bubbles: true })); };
    document.querySelector("button.show").click();
    key(plots[0], "+");
    key(plots[1], "ArrowRight");
    document.querySelector("[data-line]").click();
    document.documentElement.dataset.handled = String(document.querySelectorAll("rect.evidence").length);
</script></body>"#;

#[test]
fn a_hand_on_the_page_zooms_marks_and_shows_evidence() {
    let _beside = beside();
    let what = "a hand on a page in a browser";
    let Some(browser) = browser(what) else {
        return;
    };
    let server = Server::linerate(&[]);
    let folder = Folder::new();
    let page = folder.file("run.html");
    run(server.client("-t 1 --html").arg(&page), LONG).expect(0);
    let text = std::fs::read_to_string(&page).unwrap();
    let charts = text.matches("<figure class=\"chart\"").count();
    let handled = folder.with("handled.html", text.replace("</body>", HAND));
    let Some(dom) = drawn(browser, &folder, &handled) else {
        return;
    };
    // Of one direction and the hosts, which are all.
    assert_eq!(attribute(&dom, "data-handled"), Some(charts));
    assert!(dom.contains("class=\"at\">at 0."), "the instant is told");
    assert!(
        dom.contains("aria-pressed=\"false\" data-line")
            || dom
                .contains("data-line=\"0\" tabindex=\"0\" role=\"button\" aria-pressed=\"false\""),
        "a line is hidden"
    );
}

#[test]
fn show_draws_what_the_test_drew() {
    let _beside = beside();
    let server = Server::linerate(&[]);
    let folder = Folder::new();
    let (record, page, figure) = (
        folder.file("run.json"),
        folder.file("run.html"),
        folder.file("run.svg"),
    );
    let mut test = server.client("-t 1 -R");
    test.arg("-o")
        .arg(&record)
        .arg("--html")
        .arg(&page)
        .arg("--svg")
        .arg(&figure);
    let tested = run(&mut test, LONG).expect(0);
    let read = |path| std::fs::read_to_string(path).unwrap();
    let (first_page, first_figure) = (read(&page), read(&figure));
    let mut show = linerate("show");
    show.arg(&record)
        .arg("--html")
        .arg(&page)
        .arg("--svg")
        .arg(&figure);
    let shown = run(&mut show, LONG).expect(0);
    assert!(tested.out.ends_with(&shown.out), "{}", shown.out);
    assert_eq!(read(&page), first_page);
    assert_eq!(read(&figure), first_figure);
    assert!(first_page.contains(record.to_str().unwrap()));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
}

#[test]
fn a_picture_never_replaces_the_record_it_is_made_of() {
    let _beside = beside();
    let server = Server::linerate(&[]);
    let folder = Folder::new();
    let record = folder.file("run.json");
    run(server.client("-n 1M -o").arg(&record), LONG).expect(0);
    let kept = std::fs::read(&record).unwrap();
    let link = folder.file("link");
    std::os::unix::fs::symlink(&record, &link).unwrap();
    for file in [&record, &link] {
        let done = run(linerate("show").arg(&record).arg("--html").arg(file), LONG).expect(2);
        assert!(done.error.contains("--html"), "{}", done.error);
        assert_eq!(std::fs::read(&record).unwrap(), kept);
    }
    let both = folder.file("both");
    let mut test = server.client("-n 1M");
    test.arg("--svg").arg(&both).arg("--html").arg(&both);
    let done = run(&mut test, LONG).expect(2);
    assert!(done.error.contains("--svg"), "{}", done.error);
    assert!(!both.exists());
}

#[test]
fn a_page_that_cannot_be_written_says_so_and_loses_nothing() {
    let _beside = beside();
    let server = Server::linerate(&[]);
    let folder = Folder::new();
    let record = folder.file("run.json");
    // A wrong path is refused before the test.
    let nowhere = folder.file("nowhere/run.html");
    let done = run(server.client("-t 1 --html").arg(&nowhere), LONG).expect(5);
    assert!(done.error.contains("nowhere/run.html"), "{}", done.error);
    assert!(!done.out.contains("Goodput"), "{}", done.out);
    // A full device is found when it is written to.
    let mut test = server.client("-n 1M --html /dev/full");
    test.arg("-o").arg(&record);
    let done = run(&mut test, LONG).expect(5);
    assert!(
        done.error
            .contains("report (--html) to /dev/full: No space left"),
        "{}",
        done.error
    );
    assert!(done.out.contains("Goodput"), "{}", done.out);
    run(linerate("show").arg(&record), LONG).expect(0);
    full_disk(&folder, &record);
}

/// An older page stays as it was where a new one does not fit.
fn full_disk(folder: &Folder, record: &std::path::Path) {
    let what = "a page on a full disk";
    if lacks_programs(what, &["unshare"]) {
        return;
    }
    let disk = folder.file("disk");
    std::fs::create_dir(&disk).unwrap();
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "--", "sh", "-c"]);
    let script = "mount -t tmpfs -o size=8k none \"$0\" || exit 77; echo older > \"$0\"/page.html; \
                  \"$1\" show \"$2\" --html \"$0\"/page.html; echo \"code $?\"; cat \"$0\"/*; ls \"$0\" | wc -l";
    command.arg(script).arg(&disk).arg(LINERATE).arg(record);
    let done = run(&mut command, LONG);
    if lacks_namespaces(what, &done) {
        return;
    }
    assert!(done.error.contains("No space left"), "{}", done.error);
    assert!(done.out.contains("Goodput"), "{}", done.out);
    assert!(done.out.ends_with("code 5\nolder\n1\n"), "{}", done.out);
}
