//! Names, ranges, operators, and what is refused.

use linerate_fleet::nodes::{MOST_NAMES, NodesError};
use proptest::prelude::*;

use crate::{folded, names, read};

#[test]
fn ranges_steps_and_leading_zeros() {
    assert_eq!(names("node[1-3]"), ["node1", "node2", "node3"]);
    assert_eq!(names("n[1-8/3,02]"), ["n1", "n4", "n7", "n02"]);
    assert_eq!(names("r[1-2]sw[8-9]"), ["r1sw8", "r1sw9", "r2sw8", "r2sw9"]);
    assert_eq!(
        folded("node02,node01,node1,node010,node009"),
        "node[1,01-02,009-010]"
    );
    assert_eq!(folded("a[8-12]0"), "a[80,90,100,110,120]");
    // Digits before a bracket belong to each number: no host between a19 and a110.
    assert_eq!(names("a1[8-11]"), ["a18", "a19", "a110", "a111"]);
    assert_eq!(folded("n[099-101],n[99-100]"), "n[99,099-101]");
}

#[test]
fn operators_from_left_to_right() {
    assert_eq!(folded("n[1-5]!n3"), "n[1-2,4-5]");
    assert_eq!(folded("n[1-5]&n[4-9]"), "n[4-5]");
    assert_eq!(folded("n[1-5] ^ n[4-9]"), "n[1-3,6-9]");
    assert_eq!(folded("n[1-5]!n[1-4],n3"), "n[3,5]");
    assert_eq!(folded("a b\tn1 , c"), "a,b,c,n1");
    assert_eq!(folded("n1,n1,n[1-1]"), "n1");
    assert!(read("n1!n1").unwrap().is_empty());
    assert!(read("  ").unwrap().is_empty());
}

#[test]
fn two_holes_are_folded_where_they_differ_in_one() {
    assert_eq!(folded("r1s1,r1s2,r2s1,r2s2"), "r[1-2]s[1-2]");
    assert_eq!(folded("r1s1,r1s2,r2s1"), "r1s[1-2],r2s1");
}

#[test]
fn what_is_no_set_is_refused_with_its_text() {
    for (text, why) in [
        ("n[1-3", "a bracket is missing"),
        ("n1]", "a bracket is missing"),
        ("n[1][2]", "a bracket is missing"),
        ("n[[1]]", "a bracket is missing"),
        ("n[]", "a number is missing"),
        ("n[a]", "a number is missing"),
        ("n[3-1]", "the first number is larger"),
        ("n[1-010]", "different numbers of digits"),
        ("n[1-8/0]", "the step is zero"),
        ("n[4/2]", "a step needs"),
        ("n1,", "an operator"),
        (",n1", "an operator"),
        ("n1,,n2", "an operator"),
        ("n1!", "an operator"),
        ("^", "an operator"),
        ("-oProxyCommand=x", "it begins with '-'"),
        ("root@-x", "the host after '@' is missing"),
        ("n1;reboot", "a character is not allowed"),
        ("n%s", "a character is not allowed"),
        ("nö1", "a character is not allowed"),
        ("n\u{0}1", "a character is not allowed"),
        ("n*", "wildcards"),
        ("@compute", "no file of groups"),
        ("^hosts", "cannot read the hosts in hosts"),
        ("n[1-99999999999999999999]", "more than 18 digits"),
    ] {
        let error = read(text).expect_err(text).to_string();
        assert!(error.contains(why), "{text}: {error}");
    }
}

#[test]
fn no_set_is_made_that_is_larger_than_the_bound() {
    for text in [
        "n[0-1000000]",
        "n[0-999999999999999999]",
        "n[1-1001]m[1-1000]",
        "n[1-1000]m[1-1000]k[1-1000]q[1-1000]z[1-1000]y[1-1000]x[1-1000]",
        "n[1-600000],m[1-600000]",
    ] {
        assert_eq!(read(text), Err(NodesError::TooMany), "{text}");
    }
    assert_eq!(read("n[1-1000000]").unwrap().len(), MOST_NAMES);
}

fn a_range() -> impl Strategy<Value = String> {
    prop_oneof![
        (0_u32..130).prop_map(|one| one.to_string()),
        (0_u32..130).prop_map(|one| format!("{one:03}")),
        (0_u32..99, 0_u32..9).prop_map(|(one, more)| format!("{one}-{}", one + more)),
        (0_u32..99, 0_u32..30, 1_u32..5)
            .prop_map(|(one, more, step)| format!("{one:04}-{:04}/{step}", one + more)),
    ]
}

fn a_set() -> impl Strategy<Value = String> {
    let ranges = || prop::collection::vec(a_range(), 1..4).prop_map(|all| all.join(","));
    let name = prop_oneof![
        ranges().prop_map(|ranges| format!("n[{ranges}]")),
        ranges().prop_map(|ranges| format!("n[{ranges}]-ib")),
        (ranges(), ranges()).prop_map(|(one, two)| format!("r[{one}]s[{two}]")),
        Just("login".to_owned()),
    ];
    let sign = prop_oneof![Just(","), Just("!"), Just("&"), Just("^"), Just(" ")];
    (name.clone(), prop::collection::vec((sign, name), 0..5)).prop_map(|(first, rest)| {
        rest.into_iter()
            .fold(first, |text, (sign, name)| format!("{text}{sign}{name}"))
    })
}

proptest! {
    #[test]
    fn a_printed_set_reads_back_to_itself(text in a_set()) {
        let set = read(&text).unwrap();
        prop_assert_eq!(read(&set.to_string()).unwrap(), set.clone());
        let names: Vec<String> = set.names().collect();
        prop_assert_eq!(names.len(), set.len());
        prop_assert_eq!(read(&names.join(",")).unwrap(), set);
    }

    #[test]
    fn no_text_panics(text in "[-n0-9\\[\\],!&^@:/ a%*]{0,40}") {
        if let Ok(set) = read(&text) {
            prop_assert!(set.len() <= MOST_NAMES);
        }
    }
}
