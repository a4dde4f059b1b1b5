//! A test that ran both ways at once, taken apart into its two directions.

use std::collections::{HashMap, HashSet};

use linerate_model::transcript::{Layout, Part, Side, Stream, TestOutput, Tool, Way};

/// iperf 2's own port.
const OWN_PORT: u16 = 5001;

/// iperf 2 marks the rows of what the server sends with a star, at both ends; in `-d` the connection tells.
pub(crate) fn of_iperf2(test: &mut TestOutput) {
    if test.tool != Tool::Iperf2 {
        return;
    }
    let starred = test.rows.iter().any(|row| row.way.is_some());
    let [star, plain] = match test.side {
        Some(Side::Server) => [Way::Out, Way::In],
        _ => [Way::In, Way::Out],
    };
    if starred && test.asked.both_ways {
        for row in &mut test.rows {
            row.way = Some(if row.way.is_some() { star } else { plain });
        }
    } else if starred {
        test.rows.iter_mut().for_each(|row| row.way = None);
        test.asked.reverse = true;
    } else {
        // The end that uses iperf's own port listens, and what connects to it sends.
        let came: HashMap<u32, bool> = test
            .connections
            .iter()
            .map(|one| {
                (
                    one.id,
                    one.local_port == OWN_PORT && one.remote_port != OWN_PORT,
                )
            })
            .collect();
        let both = came.values().any(|came| *came) && came.values().any(|came| !came);
        if both {
            test.side = None;
        }
        for row in test.rows.iter_mut().filter(|_| both) {
            if let Stream::One(id) = row.stream {
                row.way = came
                    .get(&id)
                    .map(|came| if *came { Way::In } else { Way::Out });
            }
        }
    }
}

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
