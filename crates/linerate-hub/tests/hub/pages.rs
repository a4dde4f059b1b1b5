//! Pages: complete without a script, and what a host is called stays text.

use linerate_hub::store::RunFilter;

use crate::sample::{self, HOSTILE};
use crate::served::Served;

const HOSTILE_QUERY: &str = "%3Cscript%3Ealert(1)%3C%2Fscript%3E%22%27%26";

#[test]
fn the_grid_says_what_is_broken_since_when_why_and_what_to_do() {
    let page = Served::sample().body("/");
    for text in [
        "3 alerts firing",
        "fra1 sends slowly: 8 pairs",
        "2026-11-24 18:40 UTC",
        "(9 h ago)",
        "The send buffer of fra1 limited the test 97 % of the time",
        "On fra1, set <code>net.ipv4.tcp_wmem</code> to <code>4096 16384 618138200</code>.",
        "tok1 → syd1 fails",
        "linerate watch why tok1 syd1",
        "A host is not connected",
        ">jnb1</a> since <time",
        "(18 pairs)",
    ] {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn five_thousand_pairs_are_one_page() {
    let hub = Served::of(std::sync::Arc::new(sample::mesh()));
    let page = hub.body("/?task=mesh");
    assert_eq!(page.matches("<td class=\"good\">").count(), 5112);
    let metrics = hub.body("/metrics");
    assert!(
        metrics
            .matches("linerate_goodput_bytes_per_second{")
            .count()
            >= 5112
    );
    let year = hub.body("/pair?task=year&from=lon1&to=nyc1&days=365");
    assert!(year.contains("1,460 tests in 365 days") || year.contains("1460 tests in 365 days"));
}

#[test]
fn a_cell_has_a_sign_a_value_an_age_and_a_link() {
    let page = Served::sample().body("/?task=backbone");
    let cell = |from: &str, to: &str| {
        let link = format!("href=\"/pair?task=backbone&amp;from={from}&amp;to={to}\"");
        let at = page.find(&link).unwrap_or_else(|| panic!("{link}"));
        let begin = page[..at].rfind("<td").unwrap();
        page[begin..begin + page[begin..].find("</td>").unwrap()].to_owned()
    };
    let good = cell("ams1", "fra1");
    assert!(
        good.contains("class=\"good\"") && good.contains('✓') && good.contains("3.94G"),
        "{good}"
    );
    assert!(good.contains("<small>2 h</small>"), "{good}");
    let slow = cell("fra1", "ams1");
    assert!(
        slow.contains("class=\"slow\"") && slow.contains('▼') && slow.contains(" slow"),
        "{slow}"
    );
    let failed = cell("tok1", "syd1");
    assert!(
        failed.contains('✕') && failed.contains(">failed<"),
        "{failed}"
    );
    assert!(!failed.contains('G') && !failed.contains(">0"), "{failed}");
    let away = cell("jnb1", "ams1");
    assert!(
        away.contains('○') && away.contains(">not run<") && !away.contains('G'),
        "{away}"
    );
}

#[test]
fn every_page_is_a_whole_document_with_one_heading_a_skip_link_and_labelled_tables() {
    let hub = Served::sample();
    for path in [
        "/",
        "/pair?task=backbone&from=fra1&to=ams1",
        "/alerts",
        "/hosts",
        "/host?name=fra1",
        "/plan",
        "/account",
    ] {
        let page = hub.body(path);
        assert!(
            page.starts_with("<!DOCTYPE html>") && page.contains("<html lang=\"en\">"),
            "{path}"
        );
        assert_eq!(page.matches("<h1").count(), 1, "{path}");
        assert!(
            page.contains("href=\"#content\">Skip to the content")
                && page.contains("<main id=\"content\""),
            "{path}"
        );
        assert_eq!(
            page.matches("<th").count() - page.matches("<thead").count(),
            page.matches("scope=\"").count(),
            "{path}"
        );
        // The policy forbids what is inline.
        assert!(
            !page.contains("<style") && !page.contains(" style=") && !page.contains(" onclick"),
            "{path}"
        );
        let scripts = page.matches("<script").count();
        let allowed = page
            .matches("<script type=\"module\" src=\"/static/")
            .count()
            + page.matches("<script type=\"application/json\"").count();
        assert_eq!(scripts, allowed, "{path}");
    }
}

#[test]
fn a_pairs_page_draws_gaps_as_gaps_and_marks_what_did_not_measure() {
    let hub = Served::sample();
    let page = hub.body("/pair?task=backbone&from=lon1&to=nyc1&days=30");
    assert!(
        page.contains("<figure class=\"plot\"><div class=\"wide still\"")
            && page.contains("<svg viewBox=\"0 0 960 330\""),
        "the drawing needs no script"
    );
    // Three days of missed tests break the line.
    let line = page
        .split("class=\"goodput\" d=\"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    assert!(line.matches('M').count() >= 2, "{line}");
    assert!(page.contains("not run: lon1 sent other tests until the deadline"));
    let data = page
        .split("id=\"series\">")
        .nth(1)
        .unwrap()
        .split("</script>")
        .next()
        .unwrap();
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    let (values, marks) = (
        data["v"].as_array().unwrap(),
        data["marks"].as_array().unwrap(),
    );
    assert!(
        values.iter().any(serde_json::Value::is_null) && marks.len() >= 10,
        "{data}"
    );
    assert!(values.iter().all(|value| value.as_f64() != Some(0.0)));
    let failing = hub.body("/pair?task=backbone&from=tok1&to=syd1&days=1");
    assert!(failing.contains("connecting: syd1 port 5201 did not answer within 10 s"));
    assert!(!failing.contains("0 bit/s"), "a failure is no rate");
}

#[test]
fn a_pairs_page_has_levels_and_what_changed_on_the_hosts() {
    let page = Served::sample().body("/pair?task=backbone&from=fra1&to=lon1&days=90");
    assert!(
        page.matches("class=\"regime\"").count() >= 3,
        "two levels and the key"
    );
    assert!(page.contains("On fra1, eth0 mtu changed from 1500 to 9000."));
    assert!(page.contains("class=\"change\""));
}

#[test]
fn the_table_of_runs_goes_on_where_it_ended() {
    let hub = Served::sample();
    let path = "/pair?task=backbone&from=ams1&to=lon1&days=30";
    let first = hub.body(path);
    let next = first
        .split("&amp;before=")
        .nth(1)
        .unwrap()
        .split('#')
        .next()
        .unwrap();
    let second = hub.body(&format!("{path}&before={next}"));
    let runs = |page: &str| -> Vec<String> {
        page.split("href=\"/run/")
            .skip(1)
            .map(|rest| rest[..36].to_owned())
            .collect()
    };
    let (first, second) = (runs(&first), runs(&second));
    assert_eq!(
        (first.len(), first.last().map(String::as_str)),
        (60, Some(next))
    );
    assert!(!second.is_empty() && second.iter().all(|run| !first.contains(run)));
}

#[test]
fn a_run_has_its_report_with_files_for_script_and_style() {
    let hub = Served::sample();
    let filter = RunFilter {
        from: Some("fra1".into()),
        to: Some("ams1".into()),
        limit: 1,
        ..RunFilter::default()
    };
    let run = hub.shared.store().runs(&filter).unwrap().remove(0);
    let page = hub.body(&format!("/run/{}", run.id));
    assert!(
        page.contains("Ledger")
            && page.contains("href=\"/static/report.css\"")
            && page.contains("src=\"/static/report.js\"")
    );
    assert!(!page.contains("<style") && !page.contains(" style="));
    assert!(page.contains("/pair?task=backbone&amp;from=fra1&amp;to=ams1"));
    let failed = RunFilter {
        from: Some("tok1".into()),
        to: Some("syd1".into()),
        limit: 1,
        ..RunFilter::default()
    };
    let failed = hub.shared.store().runs(&failed).unwrap().remove(0);
    let page = hub.body(&format!("/run/{}", failed.id));
    assert!(
        page.contains("connecting: syd1 port 5201 did not answer"),
        "{page}"
    );
}

#[test]
fn a_test_that_did_not_run_says_who_held_what() {
    let hub = Served::sample();
    let filter = RunFilter {
        from: Some("lon1".into()),
        to: Some("nyc1".into()),
        outcome: Some(linerate_hub::store::OutcomeKind::NotRun),
        limit: 1,
        ..RunFilter::default()
    };
    let run = hub.shared.store().runs(&filter).unwrap().remove(0);
    let page = hub.body(&format!("/run/{}", run.id));
    for text in [
        "lon1 sends",
        "backbone lon1 &gt; ams1",
        "3 h",
        "segment transatlantic",
        "missed",
    ] {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn names_of_hosts_findings_and_reasons_stay_text() {
    let hub = Served::sample();
    let pair = format!("/pair?task={HOSTILE_QUERY}&from={HOSTILE_QUERY}&to=b");
    let host = format!("/host?name={HOSTILE_QUERY}");
    let task = format!("/?task={HOSTILE_QUERY}");
    for path in ["/", &task, &pair, "/alerts", "/hosts", &host, "/plan"] {
        let page = hub.body(path);
        assert!(
            !page.contains("<script>") && !page.contains("alert(1)</script"),
            "{path}"
        );
        if path != "/plan" {
            assert!(
                page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"),
                "{path}"
            );
        }
        assert!(!page.contains(HOSTILE), "{path}");
    }
    let absent = hub.get(&format!("/pair?task={HOSTILE_QUERY}&from=nobody&to=b"));
    assert!(
        absent.status == 404 && !absent.body.contains("<script>"),
        "{absent:?}"
    );
    let nothing = hub.get("/<script>alert(1)</script>");
    assert!(!nothing.body.contains("<script>"), "{nothing:?}");
}

#[test]
fn pages_say_where_to_go_when_there_is_nothing() {
    let hub = Served::empty();
    assert!(hub.body("/").contains("No test has been due yet."));
    assert!(hub.body("/alerts").contains("Nothing is broken."));
    for (path, status) in [
        ("/nothing", 404),
        ("/run/1", 400),
        ("/run/01935c1a-0000-7000-8000-000000000000", 404),
        ("/pair?task=a&from=b", 400),
        ("/pair?task=a&from=b&to=c", 404),
        ("/host?name=x", 404),
        ("/static/x", 404),
    ] {
        let answer = hub.get(path);
        assert_eq!(answer.status, status, "{path}");
        assert!(!answer.body.is_empty(), "{path}");
    }
}

#[test]
fn the_plan_says_what_runs_what_is_due_and_what_did_not_run() {
    let page = Served::sample().body("/plan");
    for text in [
        "ams1 → sin1",
        "confirming test",
        "ams1 sends to sin1",
        "a host was not connected",
        "<code>agent-away</code>",
        "contexts",
    ] {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn a_host_has_its_facts_what_changed_and_what_is_wrong_by_them() {
    let hub = Served::sample();
    let page = hub.body("/host?name=fra1");
    for text in [
        "For 10.0 Gbit/s (the link eth0) over 247 ms (the longest of its latest tests).",
        "tcp_wmem[2] is 4.00 MiB",
        "Set <code>net.ipv4.tcp_wmem</code> to <code>4096 16384 618138200</code> (now <code>4096 16384 4194304</code>)",
        "kernel changed from 5.14.0-503 to 6.1.0-28.",
        "<dt>Congestion control</dt><dd>cubic</dd>",
        "<th scope=\"row\">eth0</th>",
        "10.0 Gbit/s",
    ] {
        assert!(page.contains(text), "{text}: {page}");
    }
    let hosts = hub.body("/hosts");
    let rows: Vec<&str> = hosts.split("<tr>").collect();
    let row = |name: &str| {
        let begin = format!("<th scope=\"row\"><a href=\"/host?name={name}\">");
        let place = rows.iter().position(|row| row.starts_with(&begin));
        place.unwrap_or_else(|| panic!("{name}: {hosts}"))
    };
    assert!(row("jnb1") < row("ams1"), "who is missing comes first");
    assert!(rows[row("jnb1")].contains("not connected"));
    assert!(rows[row("fra1")].contains("<a href=\"/host?name=fra1#audit\">1 to look at</a>"));
    assert!(rows[row("ams1")].contains("nothing found"));
    assert!(rows[row("tape-1")].contains("iperf3 -s, tested against"));
    assert!(hosts.contains("<strong>1 not connected</strong>, 1 with settings to look at."));
    // A host of which nothing was read has no audit, which is not a good one.
    let store = &hub.json("/api/v1/hosts?name=store-1")["hosts"][0];
    assert!(store["audit"].is_null() && store["facts_at"].is_null());
    let fra1 = &hub.json("/api/v1/hosts?name=fra1")["hosts"][0]["audit"]["wrong"][0];
    assert_eq!(
        (&fra1["check"], &fra1["severity"]),
        (&"T02".into(), &1.into())
    );
}
