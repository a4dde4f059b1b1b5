//! Meshes in each format. `cargo test -p linerate-report -- --ignored` writes the expected files anew, and pages to look
//! at below the target folder.

use linerate_model::mesh::{Mesh, MeshOutcome, MeshSpan, TrunkEnd, TrunkRamp, TrunkStep};
use linerate_model::units::{Bytes, Nanos};
use linerate_report::mesh::{self, Cell, MeshError, MeshView, Page, Source, VerdictKind};
use linerate_report::text::{Charset, Style};
use serde_json::Value;

use crate::meshes::{self, Made};
use crate::tree;

const EXPECTED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/expected");

fn source(made: &Made) -> Source<'_> {
    Source {
        mesh: &made.mesh,
        causes: &made.causes,
        fold: &meshes::fold,
    }
}

fn text(made: &Made, style: Style) -> String {
    mesh::text(&MeshView::of(&source(made)), style)
}

fn page(made: &Made) -> String {
    mesh::html(&Page {
        view: &MeshView::of(&source(made)),
        report: &|record| Some(record.replace(".json", ".html")),
        kept: Some("mesh-1"),
    })
}

fn view(made: &Made) -> MeshView {
    MeshView::of(&source(made))
}

fn json(made: &Made) -> String {
    mesh::json(&source(made), &view(made))
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test reads what is expected")]
fn mesh_reports_are_as_expected() {
    for made in meshes::all() {
        let file = format!("{EXPECTED}/{}.txt", made.name);
        let expected = std::fs::read_to_string(&file).unwrap_or_default();
        let text = text(&made, Style::plain());
        assert!(expected == text, "{file} differs; now:\n{text}");
    }
}

#[test]
fn a_mesh_fits_100_columns_and_names_its_cause_first() {
    for made in meshes::all() {
        let text = text(&made, Style::plain());
        for line in text.lines().filter(|line| !line.contains("  linerate ")) {
            assert!(line.chars().count() <= 100, "{}: {line}", made.name);
        }
        let labels = ["Cause", "Healthy", "Verdict"];
        let cause = text
            .lines()
            .position(|line| labels.iter().any(|label| line.starts_with(label)));
        assert!(
            cause < text.lines().position(|line| line.starts_with("Matrix")),
            "{text}"
        );
    }
}

#[test]
fn alike_hosts_share_a_row() {
    let made = meshes::slow_receiver("", 64);
    let view = view(&made);
    let folded = view.folded.as_ref().unwrap();
    let names: Vec<&str> = folded
        .classes
        .iter()
        .map(|class| class.names.as_str())
        .collect();
    assert_eq!(names, ["node[01-02,04-06,08-64]", "node03", "node07"]);
    let share = |from, to| {
        folded
            .cell(from, to)
            .figures()
            .map(|one| (one.share * 10.0).round())
    };
    assert_eq!(share(0, 0), Some(10.0));
    assert_eq!(share(0, 2), Some(3.0));
    assert_eq!(share(2, 0), Some(10.0));
    assert!(matches!(folded.cell(1, 2), Cell::Failed(_)));
    assert_eq!(folded.cell(2, 2), &Cell::Own);
    assert!(self::text(&made, Style::plain()).lines().count() < 40);

    // Whoever differs is not folded away.
    assert_eq!(
        view_of_shares(8, |from, _| if from == 3 { 0.7 } else { 1.0 }),
        2
    );
    assert_eq!(view_of_shares(8, |_, _| 1.0), 1);
}

fn view_of_shares(count: usize, share: impl Fn(usize, usize) -> f64) -> usize {
    let made = Made {
        name: "",
        mesh: meshes::full(count, share),
        causes: Vec::new(),
    };
    view(&made)
        .folded
        .map_or(count, |folded| folded.classes.len())
}

#[test]
fn forty_hosts_have_a_character_each_and_failures_one_of_their_own() {
    let made = meshes::uneven("", 40);
    let text = text(&made, Style::plain());
    let row = text
        .lines()
        .find(|line| line.starts_with(" 1 node01  "))
        .unwrap();
    assert!(row.starts_with(" 1 node01  \\ "), "{row}");
    assert!(row.contains(" × "), "{row}");
    assert!(text.contains("× failed") && text.contains("! some of its tests failed"));
    assert!(!text.contains("did not begin;"));
}

#[test]
fn what_was_not_measured_has_no_rate_in_any_format() {
    for made in [
        meshes::dead("", 16),
        meshes::slow_receiver("", 16),
        meshes::all().pop().unwrap(),
    ] {
        let lost = |from: usize, to: usize| {
            let mut tests = made.mesh.tests.iter();
            tests.any(|test| {
                (test.from, test.to) == (from, to)
                    && !matches!(test.outcome, MeshOutcome::Measured(_))
            })
        };
        let document: Value = serde_json::from_str(&json(&made)).unwrap();
        for pair in document["pairs"].as_array().unwrap() {
            let measured = pair["outcome"] == "measured";
            assert_eq!(pair.get("goodput_bps").is_some(), measured, "{pair}");
            assert_eq!(pair.get("why").is_some(), !measured, "{pair}");
        }
        for (row, test) in mesh::csv(&made.mesh).lines().skip(1).zip(&made.mesh.tests) {
            let fields: Vec<&str> = row.split(',').collect();
            assert_eq!(fields.len(), 14, "{row}");
            assert_eq!(fields[4].is_empty(), lost(test.from, test.to), "{row}");
        }
        let page = tree::parse(&page(&made));
        let table = page.of_class("heat")[0];
        let rows: Vec<_> = table
            .with("tbody")
            .iter()
            .flat_map(|body| body.with("tr"))
            .collect();
        for (from, row) in rows.iter().enumerate() {
            for (to, cell) in row
                .with("td")
                .iter()
                .take(made.mesh.hosts.len())
                .enumerate()
            {
                let digits = cell.text().chars().any(|c| c.is_ascii_digit());
                assert_eq!(
                    digits,
                    from != to && !lost(from, to),
                    "{from} {to}: {}",
                    cell.text()
                );
            }
        }
        let view = view(&made);
        for host in view.hosts.iter().filter(|host| host.out.measured == 0) {
            assert_eq!((host.out.goodput_bps, host.out.share), (None, None));
        }
    }
}

#[test]
fn a_mesh_is_read_back_from_its_document() {
    for made in meshes::all() {
        let text = json(&made);
        let read = mesh::from_json(text.as_bytes()).unwrap();
        assert_eq!(read, made.mesh, "{}", made.name);
        let document: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(document["rounds"], made.mesh.rounds);
        assert_eq!(document["bound"], made.mesh.bound);
        assert_eq!(
            document["causes"].as_array().unwrap().len(),
            made.causes.len()
        );
        if let Some(first) = document["pairs"].get(0) {
            assert_eq!(first["from"], "node01");
        }
    }
    let text = json(&meshes::slow_receiver("", 16));
    let document: Value = serde_json::from_str(&text).unwrap();
    let cause = &document["causes"][0];
    assert_eq!(cause["kind"], "host-in");
    assert_eq!(cause["name"], "node07");
    assert_eq!(cause["share"], 1.0);
    assert_eq!(cause["from"][0], "node07");
    assert_eq!(cause["next"][0], "linerate host audit --on node07");
}

#[test]
fn what_is_no_mesh_says_why() {
    let with = |hosts: &str, pairs: &str| {
        format!(
            r#"{{"kind":"mesh","schema_version":1,"rounds":1,"bound":1,"hosts":[{hosts}],"pairs":[{pairs}]}}"#
        )
    };
    let two = r#"{"name":"a"},{"name":"b"}"#;
    let cases = [
        (String::new(), "EOF"),
        ("[]".to_owned(), "invalid"),
        ("{}".to_owned(), "no kind"),
        (
            r#"{"kind":"test","schema_version":1}"#.to_owned(),
            "of kind 'test'",
        ),
        (r#"{"kind":"mesh"}"#.to_owned(), "no schema_version"),
        (
            r#"{"kind":"mesh","schema_version":1}"#.to_owned(),
            "missing field",
        ),
        (
            with(r#"{"name":"a"},{"name":"a"}"#, ""),
            "host 'a' is in it twice",
        ),
        (
            with(
                two,
                r#"{"from":"a","to":"c","round":0,"outcome":"not_run","why":"x"}"#,
            ),
            "'c' is not among its hosts",
        ),
        (
            with(
                two,
                r#"{"from":"a","to":"a","round":0,"outcome":"not_run","why":"x"}"#,
            ),
            "one host at both ends",
        ),
        (
            with(
                two,
                r#"{"from":"a","to":"b","round":0,"outcome":"measured","goodput_bps":-1}"#,
            ),
            "a rate below 0",
        ),
        (
            with(two, r#"{"from":"a","to":"b","round":0,"outcome":"slow"}"#),
            "unknown variant",
        ),
    ];
    for (text, part) in cases {
        let error = mesh::from_json(text.as_bytes()).unwrap_err();
        assert!(matches!(error, MeshError::NotAMesh { .. }), "{text}");
        assert!(error.to_string().contains(part), "{text}: {error}");
    }
    let newer = mesh::from_json(br#"{"kind":"mesh","schema_version":99,"hosts":7}"#);
    assert_eq!(newer, Err(MeshError::Newer { found: 99 }));
    let large = mesh::from_json(&vec![b' '; (64 << 20) + 1]);
    assert!(matches!(
        large,
        Err(MeshError::TooLarge { what: "bytes", .. })
    ));
    let hosts = (0..10_001).map(|host| format!(r#"{{"name":"{host}"}}"#));
    let hosts = hosts.collect::<Vec<_>>().join(",");
    let many = mesh::from_json(with(&hosts, "").as_bytes());
    assert!(matches!(
        many,
        Err(MeshError::TooLarge { what: "hosts", .. })
    ));
}

/// Names and reasons that want to be something else.
fn hostile() -> Made {
    let mut made = meshes::trunk("", 8);
    let evil = "x</td><script>alert(1)</script>\u{1b}[2J\r\n\u{202e}\"'&,=1";
    made.mesh.hosts[0].name = evil.into();
    made.mesh.hosts[1].name = "--via=sh".into();
    made.mesh.hosts[2].unreachable = Some(evil.into());
    made.mesh.options = evil.into();
    made.mesh.groups[0].name = evil.into();
    made.mesh.tests[0].outcome = MeshOutcome::Failed {
        stage: evil.into(),
        why: evil.into(),
    };
    made.mesh.tests[1].record = Some("javascript:alert(1)//../x".into());
    if let MeshOutcome::Measured(figures) = &mut made.mesh.tests[2].outcome {
        figures.finding = Some(evil.to_owned());
    }
    made.causes[0].name = evil.into();
    made.causes[0].findings = vec![(evil.to_owned(), 3)];
    made.causes[0].in_common = vec![evil.into()];
    made
}

#[test]
fn a_stranger_s_name_is_only_text() {
    let made = hostile();
    let text = text(&made, Style::plain());
    assert!(
        text.chars().all(|c| c == '\n' || !c.is_control()),
        "{text:?}"
    );
    assert!(!text.contains('\u{202e}'), "{text:?}");
    for page in [page(&made), mesh::svg(&view(&made))] {
        let page_tree = tree::parse(&page);
        assert!(page_tree.with("script").is_empty());
        assert!(page.chars().all(|c| c == '\n' || !c.is_control()));
        assert!(page_tree.text().contains("<script>alert(1)</script>"));
        for link in page_tree.with("a") {
            let href = link.attribute("href").unwrap();
            assert!(href.starts_with("./records/"), "{href}");
        }
    }
    assert_eq!(mesh::from_json(json(&made).as_bytes()).unwrap(), made.mesh);
    let csv = mesh::csv(&made.mesh);
    let rows = made.mesh.tests.len() + 1;
    assert_eq!(csv.matches("\r\n").count(), rows, "no name ends a row");
    assert!(csv.contains("\r\n'--via=sh,"), "no name is a formula");
    // A name that would be an option, or leave its quotation marks, stands in no command.
    let commands = view(&made).causes.into_iter().flat_map(|cause| cause.next);
    for step in commands {
        assert!(!step.command.contains(" --via=sh"), "{}", step.command);
        assert_eq!(
            step.command.matches('\'').count() % 2,
            0,
            "{}",
            step.command
        );
    }
}

#[test]
fn a_page_has_both_orders_links_and_no_script() {
    let made = meshes::trunk("", 16);
    let page = page(&made);
    assert!(page.contains("default-src 'none'; style-src 'unsafe-inline'; img-src data:"));
    let page = tree::parse(&page);
    let tables = page.of_class("heat");
    assert_eq!(tables.len(), 2);
    let hosts = |table: &tree::Element| -> Vec<String> {
        let heads = table.with("thead")[0].with("th");
        heads[1..17].iter().map(|head| head.text()).collect()
    };
    assert_eq!(hosts(tables[0])[..2], ["node01", "node02"]);
    assert_eq!(hosts(tables[1])[..2], ["node01", "node03"]);
    assert_eq!(tables[0].with("tbody").len(), 1);
    assert_eq!(tables[1].with("tbody").len(), 2, "the racks stand apart");
    for table in tables {
        assert_eq!(table.with("caption").len(), 1);
        let heads = table.with("th");
        assert!(heads.iter().all(|head| head.attribute("scope").is_some()));
        assert_eq!(table.with("a").len(), 240);
    }
    let first = page.of_class("by-name")[0].with("a")[0];
    assert_eq!(
        first.attribute("href"),
        Some("./records/node01-node02.html")
    );
    let switches = page.with("input");
    assert_eq!(switches.len(), 2);
    for switch in switches {
        let labels = page.with("label");
        let id = switch.attribute("id");
        assert!(labels.iter().any(|label| label.attribute("for") == id));
    }

    // One order is enough where both are the same, and no link leads nowhere.
    let healthy = meshes::healthy("", 16);
    let page = mesh::html(&Page {
        view: &view(&healthy),
        report: &|_| None,
        kept: None,
    });
    let page = tree::parse(&page);
    assert_eq!(page.of_class("heat").len(), 1);
    assert!(page.with("input").is_empty() && page.with("a").is_empty());
}

#[test]
fn hosts_behind_the_same_hidden_switch_stand_together() {
    // No group says so: the rates do.
    let side = |host: usize| host.is_multiple_of(3);
    let made = Made {
        name: "",
        mesh: meshes::full(
            12,
            |from, to| if side(from) == side(to) { 1.0 } else { 0.4 },
        ),
        causes: Vec::new(),
    };
    let order = view(&made).by_similarity.unwrap().hosts;
    let changes = order.windows(2).filter(|two| side(two[0]) != side(two[1]));
    assert_eq!(changes.count(), 1, "{order:?}");
}

#[test]
fn a_mesh_without_a_cause_is_healthy_only_where_it_is_even() {
    let kind = |made: &Made| view(made).verdict.kind;
    assert_eq!(kind(&meshes::healthy("", 8)), VerdictKind::Healthy);
    assert_eq!(kind(&meshes::uneven("", 8)), VerdictKind::Unexplained);
    assert_eq!(kind(&meshes::trunk("", 8)), VerdictKind::Cause);
    let mut few = meshes::healthy("", 8);
    few.mesh.tests[5].outcome = MeshOutcome::NotRun { why: "busy".into() };
    assert_eq!(kind(&few), VerdictKind::Unexplained);
    few.mesh.tests.clear();
    assert_eq!(kind(&few), VerdictKind::Unexplained);
    few.mesh.hosts.clear();
    assert!(text(&few, Style::plain()).contains("No test was planned"));
    assert!(page(&few).contains("No test was measured"));
    assert!(mesh::svg(&view(&few)).starts_with("<svg"));
}

#[test]
fn forty_hosts_with_long_names_fit_as_well() {
    let mut made = meshes::uneven("", 40);
    for (number, host) in made.mesh.hosts.iter_mut().enumerate() {
        host.name = format!("r{number}-node{number:02}.cluster.research.example.org").into();
    }
    let text = text(&made, Style::plain());
    let row = text.lines().find(|line| line.starts_with(" 8 ")).unwrap();
    assert!(row.starts_with(" 8 r7-node07.c…xample.org  "), "{row}");
    assert!(row.chars().count() <= 100, "{row}");
}

#[test]
fn slow_pairs_without_a_cause_are_not_hidden_by_a_cause() {
    let mut made = meshes::uneven("", 16);
    made.causes = meshes::slow_receiver("", 16).causes;
    let said = view(&made).notes.swap_remove(0);
    assert!(
        said.ends_with("pairs reach less than 70 % of the expected rate and are part of no cause."),
        "{said}"
    );
    let text = text(&made, Style::plain());
    assert!(
        text.contains(&format!("Note        {}", &said[..40])),
        "{text}"
    );
    for made in [
        meshes::trunk("", 16),
        meshes::slow_receiver("", 16),
        meshes::dead("", 16),
    ] {
        let notes = view(&made).notes;
        assert!(
            !notes.iter().any(|note| note.contains("no cause")),
            "{notes:?}"
        );
    }
}

#[test]
fn hosts_that_are_all_equally_slow_are_not_simply_healthy() {
    let mut made = meshes::healthy("", 8);
    for test in &mut made.mesh.tests {
        if let MeshOutcome::Measured(figures) = &mut test.outcome {
            figures.finding = Some("receive-window".to_owned());
        }
    }
    let alike = view(&made);
    assert_eq!(alike.verdict.kind, VerdictKind::Healthy);
    assert_eq!(
        alike.notes,
        ["In 56 of 56 pairs the first finding is receive-window."]
    );
    made.mesh.expected_bps = Some(12e9);
    let slow = view(&made);
    assert_eq!(slow.verdict.kind, VerdictKind::Unexplained);
    assert_eq!(slow.below_expected(), 56);
    assert!(
        slow.verdict
            .sentence
            .contains("56 of 56 pairs reach less than 90 % of the expected rate"),
        "{}",
        slow.verdict.sentence
    );
    let again = mesh::from_json(json(&made).as_bytes()).unwrap();
    assert_eq!(again.expected_bps, Some(12e9));
}

#[test]
fn suggested_commands_reach_the_hosts_as_before() {
    let mut made = meshes::slow_receiver("", 16);
    made.mesh.via = Some("rsh {host}".into());
    let next = &view(&made).causes[0].next;
    assert!(!next.is_empty());
    for step in next {
        assert!(
            step.command.contains(" --via 'rsh {host}'"),
            "{}",
            step.command
        );
    }
}

#[test]
fn a_terminal_without_utf_8_gets_the_same_matrix() {
    let ascii = Style::plain().with_charset(Charset::Ascii);
    for made in meshes::all() {
        let text = text(&made, ascii);
        assert!(text.is_ascii(), "{text}");
    }
    let text = text(&meshes::dead("", 16), ascii);
    assert!(
        text.contains("  B node03") && text.contains("o did not begin"),
        "{text}"
    );
    let narrow = self::text(&meshes::uneven("", 40), Style::plain().of_columns(72));
    assert!(
        narrow.lines().all(|line| line.chars().count() <= 72),
        "{narrow}"
    );
}

#[test]
fn colours_are_only_added_to_a_matrix() {
    for made in meshes::all() {
        let coloured = text(&made, Style::plain().with_colour(true));
        let mut bare = String::new();
        let mut rest = coloured.as_str();
        while let Some((before, after)) = rest.split_once("\u{1b}[") {
            bare.push_str(before);
            rest = after.split_once('m').unwrap().1;
        }
        bare.push_str(rest);
        let trimmed: Vec<&str> = bare.lines().map(str::trim_end).collect();
        let plain = text(&made, Style::plain());
        assert_eq!(trimmed, plain.lines().collect::<Vec<_>>());
    }
}

#[test]
fn places_outside_the_mesh_are_no_panic() {
    let mut made = meshes::trunk("", 4);
    made.mesh.tests[0].from = 99;
    made.mesh.groups[0].members.push(77);
    made.causes[0].from.push(55);
    made.causes[0].to.push(usize::MAX);
    assert!(text(&made, Style::plain()).contains("Cause"));
    assert!(page(&made).contains("rack1"));
    assert!(mesh::svg(&view(&made)).contains("node01"));
    assert!(mesh::csv(&made.mesh).contains("node02"));
    assert!(json(&made).contains("node01"));
}

#[test]
fn a_mesh_of_200_children_is_a_page_of_text() {
    let healthy = meshes::healthy("", 200);
    let text = text(&healthy, Style::plain());
    assert!(text.lines().count() < 30, "{text}");
    assert!(text.contains("node[01-200] (200)"), "{text}");
    let page = page(&healthy);
    assert!(page.len() < 200_000, "{}", page.len());
}

#[test]
fn lines_of_a_running_mesh() {
    let plan = mesh::Plan {
        hosts: 16,
        tests: 240,
        rounds: 15,
        bound: 15,
        time: Nanos::from_millis(52_500),
        bytes: Some(Bytes(282_000_000_000)),
    };
    assert_eq!(
        mesh::plan_line(&plan),
        "240 tests between 16 hosts in 15 rounds (lower bound 15): about 53 s, at most 263 GiB"
    );
    let mut round = mesh::Round {
        number: 3,
        rounds: 15,
        tests: 8,
        left: Some(Nanos::from_millis(40_200)),
    };
    assert_eq!(
        mesh::round_line(&round),
        "round 3 of 15: 8 tests, 41 s left"
    );
    (round.tests, round.left) = (1, None);
    assert_eq!(mesh::round_line(&round), "round 3 of 15: 1 test");
    let made = meshes::slow_receiver("", 16);
    let line = |wanted: &str| {
        let mut tests = made.mesh.tests.iter();
        let test = tests.find(|test| match &test.outcome {
            MeshOutcome::Failed { .. } => wanted == "failed",
            MeshOutcome::Measured(figures) => figures.finding.as_deref() == Some(wanted),
            MeshOutcome::NotRun { .. } => false,
        });
        mesh::ended_line("a", "b\u{1b}[2J", test.unwrap())
    };
    assert_eq!(
        line("failed"),
        r"a → b\u{1b}[2J: failed, connecting: timed out after 10 s"
    );
    assert!(line("receiver-cpu").ends_with(" Gbit/s, receiver-cpu"));
}

#[test]
fn a_trunk_says_what_it_carries_and_who_loses() {
    let mesh = meshes::full(8, |from, to| if from == 2 && to == 6 { 0.05 } else { 0.25 });
    let step = |pairs: usize| TrunkStep {
        tests: (0..pairs)
            .map(|from| test_of(&mesh, from, from + 4))
            .collect(),
        sum_bps: Some(2.4e9 * (pairs.min(2) as f64)),
        interval_bps: None,
    };
    let mut ramp = TrunkRamp {
        schema_version: 1,
        started_unix_s: 0,
        hosts: mesh.hosts.clone(),
        options: "-t 2".into(),
        steps: vec![step(1), step(2), step(4)],
        ended: TrunkEnd::Saturated,
        capacity_bps: Some(4.8e9),
        fairness: Some(0.83),
        losers: vec![2],
    };
    let text = mesh::trunk_text(&ramp, Style::plain());
    assert!(
        text.contains("Link        it carries 4.80 Gbit/s: more pairs bring no more\n"),
        "{text}"
    );
    assert!(text.contains("Jain's index is 0.83 over 4 pairs"), "{text}");
    assert!(text.contains("Losers      node03 → node07: "), "{text}");
    assert!(
        text.contains(&format!("     4   4.80 Gbit/s  {}\n", "█".repeat(40))),
        "{text}"
    );
    assert!(mesh::trunk_json(&ramp).contains("\"kind\": \"mesh_trunk\""));
    (ramp.capacity_bps, ramp.ended) = (None, TrunkEnd::NoMorePairs);
    assert!(mesh::trunk_text(&ramp, Style::plain()).contains("at least 4.80 Gbit/s"));
    ramp.steps.clear();
    ramp.fairness = None;
    assert!(mesh::trunk_text(&ramp, Style::plain()).contains("Link        not known"));
}

#[expect(clippy::unwrap_used, reason = "a test may panic")]
fn test_of(mesh: &Mesh, from: usize, to: usize) -> linerate_model::mesh::MeshTest {
    let mut tests = mesh.tests.iter();
    let mut test = tests
        .find(|test| (test.from, test.to) == (from, to))
        .cloned()
        .unwrap();
    test.span = Some(MeshSpan {
        begin: Nanos(0),
        end: Nanos(1),
    });
    test
}

#[test]
#[ignore = "writes the expected files, and pages to look at"]
#[expect(
    clippy::disallowed_methods,
    reason = "writes what is expected from now on"
)]
fn write_mesh_expected() {
    for made in meshes::all() {
        std::fs::write(
            format!("{EXPECTED}/{}.txt", made.name),
            text(&made, Style::plain()),
        )
        .unwrap();
    }
    let folder = env!("CARGO_TARGET_TMPDIR");
    let large = [
        meshes::healthy("mesh_healthy_64", 64),
        meshes::slow_receiver("mesh_slow_receiver_64", 64),
        meshes::trunk("mesh_trunk_64", 64),
        meshes::dead("mesh_dead_64", 64),
        meshes::uneven("mesh_uneven_64", 64),
        meshes::uneven("mesh_uneven_200", 200),
    ];
    for made in meshes::all().into_iter().chain(large) {
        let name = made.name;
        let view = MeshView::of(&source(&made));
        std::fs::write(format!("{folder}/{name}.html"), page(&made)).unwrap();
        std::fs::write(format!("{folder}/{name}.svg"), mesh::svg(&view)).unwrap();
        std::fs::write(format!("{folder}/{name}.csv"), mesh::csv(&made.mesh)).unwrap();
        std::fs::write(
            format!("{folder}/{name}.json"),
            mesh::json(&source(&made), &view),
        )
        .unwrap();
        std::fs::write(
            format!("{folder}/{name}.txt"),
            text(&made, Style::plain().with_colour(true)),
        )
        .unwrap();
    }
}
