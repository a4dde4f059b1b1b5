use std::os::unix::fs::PermissionsExt as _;

use super::*;

const NOON: UnixMillis = UnixMillis(20_000 * DAY_MILLIS + DAY_MILLIS / 2);

fn law(text: &str) -> Law {
    Law::parse("agent.toml", text).unwrap()
}

fn load(rate: Option<u64>, millis: u64) -> Load {
    Load {
        peer: "10.0.0.7".parse().ok(),
        seconds: Nanos::from_millis(millis),
        rate: rate.map(BitRate),
        ..Load::default()
    }
}

/// The rule that forbids a deed.
fn rule(law: &Law, deed: &Deed, books: &Books) -> Option<Rule> {
    law.permit(deed, NOON, books)
        .err()
        .map(|refusal| refusal.rule)
}

#[test]
fn each_rule_forbids_what_is_beyond_it_and_nothing_else() {
    let law = law(
        "max_rate = \"1G\"\nmax_seconds = 30\nbytes_a_day = \"3G\"\npeers = [\"10.0.0.0/8\"]\n\
         hours = [\"11:30-12:30\"]\nverbs = [\"test\"]",
    );
    let books = Books::default();
    let test = |rate, millis| Deed::Test(load(rate, millis));
    assert_eq!(rule(&law, &test(Some(1_000_000_000), 10_000), &books), None);
    assert_eq!(
        rule(&law, &test(Some(1_000_000_001), 10_000), &books),
        Some(Rule::MaxRate)
    );
    assert_eq!(rule(&law, &test(None, 10_000), &books), Some(Rule::MaxRate));
    assert_eq!(
        rule(&law, &test(Some(1), 30_001), &books),
        Some(Rule::MaxSeconds)
    );
    assert_eq!(
        rule(&law, &test(Some(1_000_000_000), 30_000), &books),
        Some(Rule::BytesADay)
    );
    assert_eq!(rule(&law, &Deed::Facts, &books), Some(Rule::Verbs));
    assert_eq!(rule(&law, &Deed::Tune, &books), Some(Rule::Verbs));
    let foreign = |peer: Option<IpAddr>| {
        Deed::Test(Load {
            peer,
            ..load(Some(1), 1)
        })
    };
    let outside = "192.0.2.1".parse().ok();
    assert_eq!(rule(&law, &foreign(outside), &books), Some(Rule::Peers));
    assert_eq!(rule(&law, &foreign(None), &books), Some(Rule::Peers));
    assert_eq!(
        rule(&law, &Deed::Reach(outside.into_iter().collect()), &books),
        Some(Rule::Peers)
    );
    let late = UnixMillis(NOON.0 + 31 * MINUTE_MILLIS);
    let refusal = law.permit(&test(Some(1), 1), late, &books).unwrap_err();
    assert_eq!(refusal.rule, Rule::Hours);
    assert!(refusal.to_string().contains("(hours)"), "{refusal}");
}

#[test]
fn rates_and_bytes_bound_the_sum_of_all_tests() {
    let law = law("max_rate = \"1G\"\nbytes_a_day = \"3G\"");
    let mut books = Books::default();
    let half = Deed::Test(load(Some(500_000_000), 10_000));
    books.running.insert(1, Some(BitRate(500_000_000)));
    assert_eq!(rule(&law, &half, &books), None);
    books.running.insert(2, Some(BitRate(1)));
    assert_eq!(rule(&law, &half, &books), Some(Rule::MaxRate));
    books.running.clear();
    books.spent = Bytes((3 << 30) - 625_000_000);
    let grant = law.permit(&half, NOON, &books).unwrap();
    assert_eq!(grant.booked, Bytes(625_000_000));
    books.spent.0 += 1;
    assert_eq!(rule(&law, &half, &books), Some(Rule::BytesADay));
}

#[test]
fn a_server_gets_the_laws_bounds_as_its_own() {
    let law =
        law("max_rate = \"1G\"\nmax_seconds = 20\npeers = [\"10.0.0.0/8\", \"2001:db8::/32\"]");
    let deed = Deed::Serve(Load {
        peer: None,
        seconds: AS_ALLOWED,
        ..load(Some(500_000_000), 0)
    });
    let grant = law.permit(&deed, NOON, &Books::default()).unwrap();
    assert_eq!(
        grant.options,
        [
            "--max-clients=1",
            "--wait=60000ms",
            "--max-duration=20000ms",
            "--max-rate=551000000",
            "--allow=10.0.0.0/8",
            "--allow=2001:db8::/32"
        ]
    );
    assert_eq!(grant.rate, Some(BitRate(500_000_000)));
}

#[test]
fn a_server_is_refused_by_the_rule_that_forbids_its_test() {
    let law = law("max_rate = \"20M\"\nmax_seconds = 20");
    let books = Books::default();
    let serve = |load: Load| rule(&law, &Deed::Serve(load), &books);
    assert_eq!(serve(load(Some(20_000_000), 20_000)), None);
    assert_eq!(serve(load(Some(50_000_000), 20_000)), Some(Rule::MaxRate));
    assert_eq!(serve(load(None, 20_000)), Some(Rule::MaxRate));
    assert_eq!(
        serve(load(Some(20_000_000), 20_001)),
        Some(Rule::MaxSeconds)
    );
    let several = Load {
        more: 1,
        ..load(Some(1), 1)
    };
    assert_eq!(serve(several), Some(Rule::MaxRate));
}

#[test]
fn a_server_books_the_bytes_of_its_test() {
    let law = law("max_rate = \"20M\"\nbytes_a_day = \"1G\"");
    let deed = Deed::Serve(load(Some(20_000_000), 2_000));
    let grant = law.permit(&deed, NOON, &Books::default()).unwrap();
    // 2 s at 20 Mbit/s.
    assert_eq!(grant.booked, Bytes(5_000_000));
    assert_eq!(
        law.permit(
            &Deed::Test(load(Some(20_000_000), 2_000)),
            NOON,
            &Books::default()
        )
        .unwrap()
        .booked,
        grant.booked
    );
}

#[test]
fn connections_are_tried_within_hours_and_with_peers_alone() {
    let law = law("hours = [\"11:30-12:30\"]\npeers = [\"10.0.0.0/8\"]");
    let books = Books::default();
    let to = |address: &str| Deed::Reach(vec![address.parse().unwrap()]);
    assert_eq!(rule(&law, &to("10.0.0.7"), &books), None);
    assert_eq!(rule(&law, &to("192.0.2.1"), &books), Some(Rule::Peers));
    let late = UnixMillis(NOON.0 + 31 * MINUTE_MILLIS);
    let refusal = law.permit(&to("10.0.0.7"), late, &books).unwrap_err();
    assert_eq!(refusal.rule, Rule::Hours);
}

#[test]
fn a_law_beyond_64_kib_is_refused_and_not_cut() {
    if linerate_kernel::process::user() != 0 {
        // Only root can make a file of root's.
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.toml");
    let write = |length: usize| {
        // The rule is the last thing in it.
        let rule = "max_seconds = 7";
        let comment = format!("#{}\n", " ".repeat(length - rule.len() - 2));
        std::fs::write(&path, format!("{comment}{rule}")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        Law::read(&path).map(|law| law.max_seconds)
    };
    assert_eq!(write(64 << 10).unwrap(), Nanos::from_millis(7_000));
    let error = write((64 << 10) + 1).unwrap_err().to_string();
    assert!(error.contains("longer than 65536 bytes"), "{error}");
}

#[test]
fn hours_may_pass_midnight() {
    let law = law("hours = [\"22:00-06:00\"]");
    let at = |hour: u64| law.is_open(UnixMillis(hour * 3_600_000)).is_ok();
    let open: Vec<u64> = (0..24).filter(|hour| at(*hour)).collect();
    assert_eq!(open, [0, 1, 2, 3, 4, 5, 22, 23]);
}

#[test]
fn what_is_no_law_is_refused_with_its_line() {
    for (text, why) in [
        ("max_rat = 1", "max_rate"),
        ("verbs = [\"tests\"]", "verbs"),
        ("hours = [\"25:00-26:00\"]", "hours"),
        ("hours = [\"06:00-06:00\"]", "hours"),
        ("peers = [\"ten\"]", "peers"),
        ("peers = []", "empty"),
        ("bytes_a_day = \"1G\"", "max_rate"),
        ("max_rate = \"0\"", "max_rate"),
        ("max_seconds = 0", "max_seconds"),
    ] {
        let error = Law::parse("agent.toml", text).unwrap_err().to_string();
        assert!(
            error.contains(why) && error.contains(":1:"),
            "{text}: {error}"
        );
    }
    assert_eq!(law(""), Law::default());
}

#[test]
fn a_law_that_others_can_change_is_refused() {
    if linerate_kernel::process::user() != 0 {
        // Only root can make a file of root's.
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("agent.toml");
    std::fs::write(&path, "max_seconds = 7").unwrap();
    let mode = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    mode(&path, 0o644);
    assert_eq!(
        Law::read(&path).unwrap().max_seconds,
        Nanos::from_millis(7_000)
    );
    mode(&path, 0o664);
    assert!(Law::read(&path).unwrap_err().to_string().contains("664"));
    mode(&path, 0o644);
    mode(folder.path(), 0o777);
    assert!(Law::read(&path).unwrap_err().to_string().contains("777"));
    mode(folder.path(), 0o700);
    std::os::unix::fs::chown(&path, Some(12_345), None).unwrap();
    assert!(Law::read(&path).unwrap_err().to_string().contains("12345"));
}
