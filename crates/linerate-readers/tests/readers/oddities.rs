//! Transcripts that contradict themselves, are cut, reversed, decorated, very long, or hold no test at all.

use std::fmt::Write as _;

use linerate_explain::transcript::explain;
use linerate_model::transcript::{Ending, Given, Layout, Part, TestOutput, Tool};
use linerate_readers::read;
use linerate_report::transcript::report;

fn test_of(text: &str) -> TestOutput {
    let read = read("x", text.as_bytes()).unwrap();
    assert!(read.not_understood.is_empty(), "{:?}", read.not_understood);
    match read.parts.as_slice() {
        [Part::Test(test)] => (**test).clone(),
        parts => panic!("{parts:?}"),
    }
}

fn said(text: &str) -> String {
    let read = read("x", text.as_bytes()).unwrap();
    let text = report(&explain(vec![read], Given::default()));
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A client's test of four seconds whose total is `total`.
fn of_four_seconds(total: &str) -> String {
    let mut text = "Connecting to host 192.0.2.9, port 5201\n\
        [  5] local 192.0.2.1 port 40000 connected to 192.0.2.9 port 5201\n\
        [ ID] Interval           Transfer     Bitrate         Retr  Cwnd\n"
        .to_owned();
    for second in 0..4 {
        let _ = writeln!(
            text,
            "[  5]   {second}.00-{}.00   sec   112 MBytes   942 Mbits/sec    0   3.05 MBytes",
            second + 1
        );
    }
    let _ = writeln!(
        text,
        "- - - - - - - - -\n[  5]   0.00-4.00   sec {total}    0   sender"
    );
    text
}

#[test]
fn a_total_that_is_not_its_intervals_is_said() {
    let wrong = said(&of_four_seconds("  900 MBytes   1.89 Gbits/sec"));
    assert!(
        wrong.contains("Line 9: the total is 900 MiB, but its 4 intervals add up to 448 MiB"),
        "{wrong}"
    );
    // Rounding, and an interval of less than a tenth that is not printed.
    for total in [
        "  449 MBytes   942 Mbits/sec",
        "  458 MBytes   961 Mbits/sec",
    ] {
        let right = said(&of_four_seconds(total));
        assert!(!right.contains("figures-disagree"), "{right}");
    }
    // With a hole in the intervals nothing is known.
    let text = of_four_seconds("  900 MBytes   1.89 Gbits/sec");
    let holed: Vec<&str> = text
        .lines()
        .filter(|line| !line.contains("1.00-2.00"))
        .collect();
    let holed = said(&holed.join("\n"));
    assert!(!holed.contains("intervals are"), "{holed}");
}

fn document(intervals: usize) -> String {
    let one = |second: usize| {
        format!(
            "\t\t{{\n\t\t\t\"streams\": [{{\"socket\": 5, \"start\": {second}, \"end\": {}, \"bytes\": 117700000, \
             \"bits_per_second\": 941600000, \"sender\": true}}],\n\t\t\t\"sum\": {{}}\n\t\t}}",
            second + 1
        )
    };
    let all: Vec<String> = (0..intervals).map(one).collect();
    format!(
        "{{\n\t\"start\": {{\"version\": \"iperf 3.16\", \"cookie\": \"a}}]{{\\\"\", \"connected\": [{{\"socket\": 5, \
         \"local_host\": \"192.0.2.1\", \"local_port\": 1, \"remote_host\": \"192.0.2.2\", \"remote_port\": 5201}}], \
         \"test_start\": {{\"protocol\": \"TCP\"}}}},\n\t\"intervals\": [\n{}\n\t],\n\t\"end\": {{\"streams\": []}}\n}}\n",
        all.join(",\n")
    )
}

#[test]
fn a_document_of_a_killed_program_is_read_as_far_as_its_intervals_go() {
    let whole = document(4);
    let mut seen = Vec::new();
    for cut in 0..whole.trim_end().len() {
        let Ok(read) = read("x", &whole.as_bytes()[..cut]) else {
            seen.push(0);
            continue;
        };
        let Some(Part::Test(test)) = read.parts.first() else {
            panic!("{cut}: {:?}", read.parts);
        };
        assert_eq!((test.layout, test.ending), (Layout::Json, Ending::Cut));
        seen.push(test.rows.len());
    }
    assert!(seen.is_sorted());
    for rows in 0..=4 {
        assert!(seen.contains(&rows), "{rows}");
    }
    let cut = whole.find("\"start\": 3").unwrap();
    let text = said(&format!("{}\nKilled\n", &whole[..cut]));
    assert!(
        text.contains("cut short: the total is missing") && text.contains("3 intervals"),
        "{text}"
    );
}

#[test]
fn a_reversed_test_goes_the_other_way() {
    let forward = of_four_seconds("  449 MBytes   942 Mbits/sec");
    let reversed = forward
        .replace(
            "[  5] local",
            "Reverse mode, remote host 192.0.2.9 is sending\n[  5] local",
        )
        .replace("    0   3.05 MBytes", "")
        .replace("Retr  Cwnd", "")
        + "[  5]   0.00-4.00   sec   448 MBytes   942 Mbits/sec   receiver\n";
    let text = said(&reversed);
    assert!(
        text.contains("192.0.2.9 to 192.0.2.1")
            && text.contains("the intervals are the receiver's view"),
        "{text}"
    );
    assert!(!text.contains("the sender's view only"), "{text}");
    let text = said(&forward);
    assert!(
        text.contains("192.0.2.1 to 192.0.2.9") && text.contains("the sender's view only"),
        "{text}"
    );
    // The total of the far end may be anything within reason; that of this end is its intervals'.
    let wrong = said(&reversed.replace("448 MBytes", "300 MBytes"));
    assert!(
        wrong.contains("the total is 300 MiB, but its 4 intervals"),
        "{wrong}"
    );
}

#[test]
fn a_next_command_of_a_reversed_test_is_reversed() {
    let lossy = "$ iperf3 -c 192.0.2.9 -u -R -b 100M\nConnecting to host 192.0.2.9, port 5201\n\
        Reverse mode, remote host 192.0.2.9 is sending\n\
        [  5] local 192.0.2.1 port 40000 connected to 192.0.2.9 port 5201\n\
        [ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams\n\
        [  5]   0.00-10.00  sec   119 MBytes   100 Mbits/sec  0.000 ms  0/86327 (0%)  sender\n\
        [  5]   0.00-10.00  sec   107 MBytes  90.0 Mbits/sec  0.010 ms  8633/86327 (10%)  receiver\n";
    let text = said(lossy);
    assert!(text.contains("linerate test 192.0.2.9 -R -u"), "{text}");
}

#[test]
fn times_colours_and_decimal_commas_change_nothing() {
    let plain = of_four_seconds("  449 MBytes   942 Mbits/sec");
    let expected = test_of(&plain);
    let each = |change: &dyn Fn(&str) -> String| -> String {
        plain.lines().map(|line| change(line) + "\n").collect()
    };
    let variants = [
        each(&|line| format!("Sun Nov 22 02:14:19 2026 {line}")),
        each(&|line| format!("2026-11-22T02:14:19+0100 {line}")),
        each(&|line| format!("02:14:19.123 {line}")),
        each(&|line| format!("\u{1b}[1;32m{line}\u{1b}[0m")),
        plain.replace('.', ",").replace("192,0,2,", "192.0.2."),
    ];
    for text in variants {
        let test = test_of(&text);
        assert_eq!(test.rows, expected.rows, "{text}");
        assert_eq!(test.connections, expected.connections, "{text}");
    }
    // What is not iperf's keeps its times.
    let error = read("x", b"Nov 22 02:14:19 host kernel: hello\n").unwrap_err();
    assert!(error.to_string().contains("Nov 22"), "{error}");
}

#[test]
fn thousands_of_streams_are_read_in_order_of_their_number() {
    let (streams, seconds) = (3000, 10);
    let mut log = String::new();
    for stream in 1..=streams {
        let _ = writeln!(
            log,
            "[{stream:3}] local 192.0.2.1 port {} connected to 192.0.2.9 port 5201",
            stream + 1024
        );
    }
    for second in 0..=seconds {
        let (from, to, amount) = if second == seconds {
            (0, seconds, "10.0 MBytes")
        } else {
            (second, second + 1, "1.00 MBytes")
        };
        for stream in 1..=streams {
            let _ = writeln!(
                log,
                "[{stream:3}] {from}.00-{to}.00 sec {amount} 8.39 Mbits/sec"
            );
        }
        let sum = streams * (to - from);
        let _ = writeln!(
            log,
            "[SUM] {from}.00-{to}.00 sec {sum} MBytes {:.1} Gbits/sec",
            f64::from(streams) * 8.388_608e-3
        );
    }
    let text = said(&log);
    assert!(
        text.contains("3000 streams, 10 intervals; 10.0 s"),
        "{text}"
    );
    assert!(!text.contains("cut short"), "{text}");
}

#[test]
fn a_transcript_of_errors_alone_is_called_so() {
    let text = "iperf3: error - unable to connect to server: Connection refused\n";
    let test = test_of(text);
    assert_eq!(
        (test.tool, test.rows.len(), test.errors.len()),
        (Tool::Iperf3, 0, 1)
    );
    let text = said(text);
    assert!(
        text.contains(
            "iperf3 text, line 1: no test ran, only errors were printed; line 1 says 'iperf3: error"
        ),
        "{text}"
    );
    for absent in ["iperf 1 or 2", "0 streams", "view only"] {
        assert!(!text.contains(absent), "{absent}: {text}");
    }
    let json = r#"{"start":{"connected":[],"version":"iperf 3.16"},"intervals":[],"end":{},"error":"unable to connect to server"}"#;
    let text = said(json);
    assert!(
        text.contains("no test ran, only errors were printed"),
        "{text}"
    );
}
