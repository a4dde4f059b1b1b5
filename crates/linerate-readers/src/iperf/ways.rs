//! A test that ran both ways at once, taken apart into its two directions.

use std::collections::HashSet;

use linerate_model::transcript::{Layout, Part, Stream, TestOutput, Way};

/// Leaves what went out in `test` and returns what came in; `None` where all rows go one way or do not say.
pub(crate) fn apart(test: &mut TestOutput) -> Option<TestOutput> {
    // iperf3's JSON says of every row whether the printing end sent it; only a test both ways has two.
    if test.layout != Layout::Text && !test.asked.both_ways {
        return None;
    }
    let goes = |way: Way| test.rows.iter().any(|row| row.way == Some(way));
    if !(goes(Way::Out) && goes(Way::In)) {
        return None;
    }
    let mut other = test.clone();
    keep(test, Way::Out);
    keep(&mut other, Way::In);
    // What the program said once is said once.
    other.errors.clear();
    Some(other)
}

/// Appends a test, and its other way where it has one.
pub(crate) fn push(mut test: TestOutput, parts: &mut Vec<Part>) {
    let other = apart(&mut test);
    parts.push(Part::Test(Box::new(test)));
    parts.extend(other.map(|other| Part::Test(Box::new(other))));
}

fn keep(test: &mut TestOutput, way: Way) {
    test.way = Some(way);
    test.rows.retain(|row| row.way == Some(way));
    let streams: HashSet<Stream> = test.rows.iter().map(|row| row.stream).collect();
    test.connections
        .retain(|one| streams.contains(&Stream::One(one.id)));
    let first = test.rows.iter().map(|row| row.line).min();
    test.lines[0] = test.lines[0].min(first.unwrap_or(test.lines[0]));
}
