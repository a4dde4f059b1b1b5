//! Pages in a browser: what they draw, whether they fit, whether everybody can use them.

use std::path::PathBuf;
use std::sync::Arc;

use linerate_hub::store::RunFilter;
use linerate_testing::{Need, skipped};
use serde_json::{Value, json};

use crate::access::{Guarded, PASSWORD};
use crate::sample::{self, HOSTILE};
use crate::served::Served;
use crate::webdriver::Browser;

/// A telephone and a desk.
const WINDOWS: [(u32, u32); 2] = [(375, 800), (1600, 1000)];
const SCHEMES: [&str; 2] = ["light", "dark"];
/// The version of axe-core that `scripts/test-deps.sh` installs.
const AXE: &str = "axe-core-4.14.1.js";

/// A page of each kind, with its name and what stands in it.
fn pages(hub: &Served) -> Vec<(&'static str, String, &'static str)> {
    let latest = |from: &str, to: &str| {
        let filter = RunFilter {
            from: Some(from.into()),
            to: Some(to.into()),
            limit: 1,
            ..RunFilter::default()
        };
        let run = hub.shared.store().runs(&filter).unwrap().remove(0);
        format!("/run/{}", run.id)
    };
    let page = |name, path: &str, text| (name, path.to_owned(), text);
    vec![
        page("grid", "/", "fra1 sends slowly"),
        page(
            "pair",
            "/pair?task=backbone&from=fra1&to=ams1",
            "Goodput over time",
        ),
        page(
            "failing",
            "/pair?task=backbone&from=tok1&to=syd1",
            "did not answer within 10 s",
        ),
        ("run", latest("fra1", "ams1"), "Ledger"),
        ("not-run", latest("jnb1", "ams1"), "agent-away"),
        page("alerts", "/alerts", "Resolved in the last 7 days"),
        page("hosts", "/hosts", "not connected"),
        page(
            "host",
            "/host?name=fra1",
            "What changed in the last 30 days",
        ),
        page("plan", "/plan", "Did not run in the last 24 hours"),
        page("absent", "/host?name=nobody", "Back to the grid"),
    ]
}

/// One page of each kind: those of two pairs are alike.
fn kinds(hub: &Served) -> Vec<(&'static str, String, &'static str)> {
    let mut pages = pages(hub);
    pages.retain(|(name, ..)| *name != "failing");
    pages
}

fn open(browser: &Browser, hub: &Served, path: &str) {
    browser.open(&format!("http://{}{path}", hub.address()));
}

/// axe-core's script, which is not linerate's and is installed beside it.
fn axe() -> Option<String> {
    let file = std::env::var_os("LINERATE_AXE").map_or_else(
        || {
            let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
            let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
            cache
                .unwrap_or_else(|| home.join(".cache"))
                .join("linerate-test")
                .join(AXE)
        },
        PathBuf::from,
    );
    match std::fs::read_to_string(&file) {
        Ok(script) => Some(script),
        Err(error) => {
            let why = format!(
                "{}: {error} (scripts/test-deps.sh installs it)",
                file.display()
            );
            skipped(Need::Axe, "accessibility of pages by axe", &why);
            None
        }
    }
}

/// What axe does not accept, a line each.
fn violations(browser: &Browser, axe: &str) -> Vec<String> {
    browser.value(axe);
    let asked = "axe.run(document, { preload: false, resultTypes: ['violations'] }).then((found) => found.violations.flatMap(
        (rule) => rule.nodes.map((node) => rule.id + ': ' + node.html.slice(0, 200) + ': ' + node.failureSummary)))";
    let found = browser.value(asked);
    let found = found.as_array().unwrap().iter();
    found
        .map(|line| line.as_str().unwrap().to_owned())
        .collect()
}

/// What the console says where nothing is wrong.
fn is_expected(line: &str, name: &str) -> bool {
    name == "absent" && line.contains("404 (Not Found)")
}

#[test]
fn every_page_fits_breaks_no_policy_and_is_accessible_at_any_width_and_in_any_colours() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let hub = Served::sample();
    let axe = axe();
    let mut wrong = Vec::new();
    for page in kinds(&hub) {
        wrong.extend(complaints(&browser, &hub, axe.as_deref(), &page));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is wrong with a page, at each width and in both colours.
fn complaints(
    browser: &Browser,
    hub: &Served,
    axe: Option<&str>,
    (name, path, text): &(&str, String, &str),
) -> Vec<String> {
    let mut wrong = Vec::new();
    for (width, height) in WINDOWS {
        browser.size(width, height);
        for scheme in SCHEMES {
            browser.scheme(scheme);
            let mut complain = |what: String| {
                wrong.push(format!("{name} at {width} in {scheme}: {what}"));
            };
            open(browser, hub, path);
            let body = browser.value("document.body.innerText");
            if !body.as_str().unwrap().contains(text) {
                complain(format!("no '{text}' in {body}"));
            }
            let wide = browser.value("document.documentElement.scrollWidth");
            if wide != json!(width) {
                complain(format!("the page is {wide} wide"));
            }
            let paper = browser.value("getComputedStyle(document.body).backgroundColor");
            let is_dark = paper != json!("rgb(255, 255, 255)");
            if is_dark != (scheme == "dark") {
                complain(format!("its background is {paper}"));
            }
            for line in axe.iter().flat_map(|axe| violations(browser, axe)) {
                complain(line);
            }
            for line in browser.console() {
                if !is_expected(&line, name) {
                    complain(line);
                }
            }
        }
    }
    wrong
}

#[test]
fn the_pages_of_a_login_are_like_the_others() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let hub = Guarded::new();
    let axe = axe();
    let look = |page: (&str, &str, &str)| {
        let page = (page.0, page.1.to_owned(), page.2);
        complaints(&browser, &hub.served, axe.as_deref(), &page)
    };
    let mut wrong = look(("login", "/login?next=%2Faccount", "Log in"));
    let log_in = |password: &str| {
        browser.value(&format!(
            "document.getElementById('name').value = 'operator', document.getElementById('password').value = '{password}',
             document.querySelector('form.plain').submit()"
        ));
    };
    log_in("wrong");
    browser.until("document.querySelector('.warning') !== null");
    wrong.extend(
        axe.iter()
            .flat_map(|axe| violations(&browser, axe))
            .map(|line| format!("refused login: {line}")),
    );
    // The browser itself reports the status of a refused login.
    drop(browser.console());
    log_in(PASSWORD);
    browser.until("document.querySelector('h1').textContent === 'Account'");
    wrong.extend(look(("account", "/account", "whose role is operator")));
    wrong.extend(look(("alerts of an operator", "/alerts", "New silence")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The test above can fail: axe, the console and the width see what is put in their way.
#[test]
fn what_is_wrong_with_a_page_is_seen() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let hub = Served::sample();
    browser.size(375, 800);
    open(&browser, &hub, "/alerts");
    assert_eq!(browser.console(), [""; 0]);
    browser.value(
        "document.getElementById('content').insertAdjacentHTML('beforeend', '<svg width=900 height=9></svg><img src=\"/static/none.png\"><b style=\"color: red\">x</b>')",
    );
    assert!(
        browser
            .value("document.documentElement.scrollWidth")
            .as_u64()
            > Some(375)
    );
    let said = browser.console().join("\n");
    assert!(said.contains("Content Security Policy"), "{said}");
    let Some(axe) = axe() else {
        return;
    };
    let found = violations(&browser, &axe).join("\n");
    assert!(found.contains("image-alt"), "{found}");
}

#[test]
fn open_pages_show_what_happens_without_being_loaded_again() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let store = Arc::new(sample::filled());
    let hub = Served::of(store.clone());
    let listening = "document.getElementById('live').textContent === 'Updated as tests end.'";
    let mark = "window.mark = 'the same page'";
    let is_marked = "window.mark === 'the same page'";
    // A pair fails, and the grid and its own page show it.
    let cell = "document.querySelector(\"td a[href='/pair?task=backbone&from=ams1&to=gru1']\").closest('td').className";
    for (path, before, after, age) in [
        ("/", format!("{cell} === 'good'"), format!("{cell} === 'failing'"), 3000),
        (
            "/pair?task=backbone&from=ams1&to=gru1",
            "document.querySelector('table.rows tbody td.why').textContent === 'connecting: nobody answers after 3000'"
                .to_owned(),
            "document.querySelector('table.rows tbody td.why').textContent === 'connecting: nobody answers after 2000'"
                .to_owned(),
            2000,
        ),
    ] {
        open(&browser, &hub, path);
        browser.until(listening);
        assert_eq!(browser.value(&before), json!(true), "{path}: {before}");
        browser.value(mark);
        let outcome = sample::failed("connecting", &format!("nobody answers after {age}"));
        let run = sample::run("backbone", "ams1", "gru1", sample::before(age), outcome);
        store.append(run, None);
        hub.shared.live().wake();
        browser.until(&after);
        assert_eq!(browser.value(is_marked), json!(true), "{path}");
        assert_eq!(browser.console(), [""; 0], "{path}");
    }
    // An alert comes: list, title and badge. What runs changes: the plan.
    open(&browser, &hub, "/alerts");
    browser.until(listening);
    browser.value(mark);
    sample::hostile(&store);
    hub.shared.live().wake();
    browser
        .until("document.querySelectorAll('section[aria-labelledby=firing] article').length === 3");
    browser.until("document.title.startsWith('3 alerts firing')");
    let shown = browser.value("document.querySelector('main').innerText");
    assert!(shown.as_str().unwrap().contains(HOSTILE), "{shown}");
    assert_eq!(browser.value(is_marked), json!(true));
    open(&browser, &hub, "/plan");
    browser.until(listening);
    browser.value(mark);
    hub.shared.live().update(|live| live.running.clear());
    browser.until("document.getElementById('running').textContent === 'Runs now (0)'");
    assert_eq!(browser.value(is_marked), json!(true));
}

/// Lines of text of a page, without its drawings and what only moves them.
fn lines(browser: &Browser, hub: &Served, path: &str) -> Vec<String> {
    // The driver does not wait for pages without scripts, and must not see the page before.
    browser.open("about:blank");
    open(browser, hub, path);
    browser.until("location.protocol === 'http:' && document.readyState === 'complete'");
    let moving = "document.querySelectorAll('svg, .said, .uplot, .bar, button, #live, noscript').forEach((one) => one.remove())";
    browser.value(moving);
    let text = browser.value("document.body.innerText");
    let lines = text.as_str().unwrap().lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

#[test]
fn without_scripts_pages_say_the_same() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let hub = Served::sample();
    browser.size(1600, 1000);
    for (name, path, text) in pages(&hub) {
        browser.scripts(true);
        let with = lines(&browser, &hub, &path);
        browser.scripts(false);
        let without = lines(&browser, &hub, &path);
        assert_eq!(with, without, "{name}");
        assert!(
            without.iter().any(|line| line.contains(text)),
            "{name}: {without:?}"
        );
    }
    open(&browser, &hub, "/pair?task=backbone&from=fra1&to=ams1");
    browser.until("document.querySelector('.still svg')?.getBoundingClientRect().height > 200");
    assert_eq!(
        browser.value("document.querySelector('.uplot')"),
        Value::Null
    );
}

/// What Tab may reach, in the order of the document.
const REACHABLE: &str = "Array.from(document.querySelectorAll('a[href], button, select, input, summary, [tabindex=\"0\"]'))
    .filter((one) => one.checkVisibility() && !one.disabled)";

/// Of what has the focus: its place, whether its outline is seen, whether something covers it.
const FOCUS: &str = "(() => {
    const one = document.activeElement;
    const style = getComputedStyle(one);
    const box = one.getClientRects()[0];
    const [x, y] = [Math.min(Math.max(box.left + Math.min(box.width, 40) / 2, 1), innerWidth - 2), Math.min(Math.max(box.top + Math.min(box.height, 20) / 2, 1), innerHeight - 2)];
    const above = document.elementFromPoint(x, y);
    return { place: window.reachable.indexOf(one), what: one.outerHTML.slice(0, 150),
        outlined: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2,
        seen: above !== null && (one === above || one.contains(above) || above.contains(one)) };
})()";

#[test]
fn tab_reaches_everything_in_order_and_the_focus_is_seen() {
    let Some(browser) = Browser::start() else {
        return;
    };
    let hub = Served::of(Arc::new(sample::filled()));
    for (width, height) in WINDOWS {
        browser.size(width, height);
        for (name, path, _) in kinds(&hub) {
            open(&browser, &hub, &path);
            let count = browser.value(&format!("(window.reachable = {REACHABLE}).length"));
            let count = count.as_u64().unwrap();
            assert!(count > 5, "{name}");
            let forth = (0..count).map(|place| (place, false));
            let back = (0..count - 1).rev().map(|place| (place, true));
            for (place, shift) in forth.chain(back) {
                browser.press("Tab", 9, shift);
                let focus = browser.value(FOCUS);
                let (place, yes) = (json!(place), json!(true));
                assert!(
                    focus["place"] == place && focus["outlined"] == yes && focus["seen"] == yes,
                    "{name} at {width}, place {place}: {focus}"
                );
            }
        }
    }
    // The skip link leads past the navigation.
    open(&browser, &hub, "/hosts");
    browser.press("Tab", 9, false);
    browser.press("Enter", 13, false);
    browser.until("document.activeElement.id === 'content'");
}

/// Pictures of all pages for people, and the one of the README:
/// `cargo test -p linerate-hub --test hub -- --ignored pictures`, then
/// `pngquant --force --output docs/images/grid.png 128 docs/images/grid.png`, which makes a third of it.
#[test]
#[ignore = "makes pictures: docs/images/grid.png, and all pages in target/pages"]
fn pictures() {
    let browser = Browser::start().unwrap();
    let hub = Served::of(Arc::new(sample::filled()));
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    for (width, height) in WINDOWS {
        browser.size(width, height);
        for scheme in SCHEMES {
            browser.scheme(scheme);
            for (name, path, _) in pages(&hub) {
                open(&browser, &hub, &path);
                let file = format!("target/pages/{name}-{width}-{scheme}.png");
                browser.picture(true, &root.join(file));
            }
        }
    }
    browser.scheme("light");
    browser.size(1300, 1210);
    open(&browser, &hub, "/?task=backbone");
    browser.until("document.getElementById('live').textContent === 'Updated as tests end.'");
    browser.picture(false, &root.join("docs/images/grid.png"));
}
