//! What an iperf3 prints, without what no two runs share: figures, socket numbers, ports, times, cookies, versions.
//!
//! Text becomes lines in which a figure is `#` with its unit; the spaces before it stay, less what pads it. A document
//! becomes a line for each key, in its order, with the type of its value, or the value where it is a setting.

use serde_json::Value;

/// What `--timestamps` writes before each line where its format is this.
pub(super) const STAMP: &str = "STAMP:";

/// How a run is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    /// Its datagrams are counted without padding, retransmits in three columns.
    pub(super) udp: bool,
    /// `-f` fixes the units of rates.
    pub(super) fixed_units: bool,
    /// Without the keys that iperf3 3.12 has not, and without the blank that it has more in a sender's row.
    pub(super) older: bool,
}

/// Keys of documents that came after iperf3 3.12.
pub(super) const NEWER: [&str; 8] = [
    "timemillisecs",
    "fq_rate",
    "bidir",
    "fqrate",
    "interval",
    "gso",
    "gro",
    "reorder",
];

/// The lines of a text.
pub(super) fn text(text: &str, reading: Reading) -> Vec<String> {
    let (mut ids, title) = (Vec::new(), "title:  ");
    let lines = text.lines().map(|line| {
        if line == "Server output:" {
            ids.clear();
        }
        let (stamp, line) = line
            .strip_prefix(STAMP)
            .map(|line| (STAMP, line))
            .or_else(|| line.strip_prefix(title).map(|line| (title, line)))
            .unwrap_or(("", line));
        stamp.to_owned() + &plain(line, reading, &mut ids)
    });
    once(lines.collect())
}

/// The lines of a document, or of a stream of them. With `-V` iperf3 writes lines of text between them, which no
/// reader of JSON can want.
pub(super) fn documents(out: &str, reading: Reading) -> Vec<String> {
    let json = |line: &&str| line.starts_with(['{', '\t', '}']);
    let json: Vec<&str> = out.lines().filter(json).collect();
    let mut lines = Vec::new();
    for document in serde_json::Deserializer::from_str(&json.join("\n")).into_iter::<Value>() {
        match document {
            Ok(value) => flatten("", &value, reading, &mut lines),
            Err(error) => lines.push(format!("not JSON: {error}")),
        }
    }
    once(lines)
}

/// Each run of lines that repeats the lines before it is left out: how many intervals there are is a matter of time.
fn once(lines: Vec<String>) -> Vec<String> {
    const LONGEST: usize = 120;
    let mut kept: Vec<String> = Vec::new();
    for line in lines {
        kept.push(line);
        let longest = LONGEST.min(kept.len() / 2);
        if let Some(length) = (1..=longest).find(|length| {
            let (before, last) = kept[kept.len() - 2 * length..].split_at(*length);
            before == last
        }) {
            kept.truncate(kept.len() - length);
        }
    }
    kept
}

fn plain(line: &str, reading: Reading, ids: &mut Vec<String>) -> String {
    let (head, rest) = numbered(line, ids);
    if line.contains("/sec") || line.contains("datagrams received") {
        return head + &figures(rest, reading);
    }
    if head.is_empty() {
        for (start, written) in [
            ("iperf 3", "iperf <version>"),
            ("Time: ", "Time: <time>"),
            ("      Cookie: ", "      Cookie: <cookie>"),
            ("Control connection MSS ", "Control connection MSS #"),
            ("Server listening on ", "Server listening on #"),
            ("      TCP MSS: ", "      TCP MSS: #"),
        ] {
            if let Some(rest) = line.strip_prefix(start) {
                let note = rest.find(" (").map_or("", |at| &rest[at..]);
                let drawn = written.ends_with('>');
                return written.to_owned() + if drawn { "" } else { note };
            }
        }
        if line.starts_with("CPU Utilization") {
            return figures(line, reading);
        }
    }
    head + &without_ports(rest)
}

/// `[  5]` as `[  a]`, by the order in which sockets appear.
fn numbered<'a>(line: &'a str, ids: &mut Vec<String>) -> (String, &'a str) {
    let cut = line.strip_prefix('[').and_then(|line| line.split_once(']'));
    match cut {
        Some((id, rest)) if id.trim().parse::<u32>().is_ok() && id.len() == 3 => {
            let at = ids.iter().position(|known| known == id).unwrap_or_else(|| {
                ids.push(id.to_owned());
                ids.len() - 1
            });
            (format!("[stream {}]", at + 1), rest)
        }
        _ => (String::new(), line),
    }
}

fn without_ports(line: &str) -> String {
    let mut words = line.split(' ').peekable();
    let mut out = Vec::new();
    while let Some(word) = words.next() {
        out.push(word.to_owned());
        let digits = words.peek().map(|next| next.trim_end_matches([',', ':']));
        if word == "port" && digits.is_some_and(|next| next.parse::<u16>().is_ok()) {
            let next = words.next().unwrap_or_default();
            out.push(next.replace(|c: char| c.is_ascii_digit(), "") + "#");
        }
    }
    out.join(" ")
}

/// Every number of a row as `#`.
fn figures(row: &str, reading: Reading) -> String {
    let mut out = String::new();
    let mut rest = row;
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        out.push_str(&rest[..at]);
        let number = number_at(&rest[at..]);
        rest = &rest[at + number.len()..];
        let word = rest
            .strip_prefix(' ')
            .and_then(|rest| rest.split([' ', '\n']).next())
            .unwrap_or_default();
        let unit = ["Bytes", "bits/sec", "Bytes/sec"]
            .iter()
            .find(|unit| word == **unit || word.get(1..) == Some(unit));
        let width = match unit {
            Some(_) => 4,
            None if rest.starts_with('-') => 6,
            None if out.ends_with('-') => 0,
            None if reading.udp || number.contains('.') => 0,
            None => 3,
        };
        for _ in number.len()..width {
            if out.ends_with(' ') {
                out.pop();
            }
        }
        out.push('#');
        if out.ends_with("-#") {
            // The end of an interval is padded behind.
            let spaces = rest.len() - rest.trim_start_matches(' ').len();
            let pad = 6_usize.saturating_sub(number.len()).min(spaces);
            rest = &rest[pad..];
        }
        if let Some(unit) = unit {
            let shown = if reading.fixed_units && unit.ends_with("sec") {
                word
            } else {
                *unit
            };
            out.push(' ');
            out.push_str(shown);
            rest = &rest[1 + word.len()..];
        }
    }
    let row = out + rest;
    if reading.older {
        row.replace("#             sender", "#            sender")
    } else {
        row
    }
}

/// `12.5`, `1e+02`.
fn number_at(text: &str) -> &str {
    let plain = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let exponent = ["e+", "e-"]
        .iter()
        .find_map(|mark| text[plain..].strip_prefix(mark))
        .map_or(0, |rest| {
            let digits = rest.find(|c: char| !c.is_ascii_digit());
            2 + digits.unwrap_or(rest.len())
        });
    &text[..plain + exponent]
}

fn flatten(path: &str, value: &Value, reading: Reading, lines: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            lines.push(format!("{path} {{"));
            let newer = |key: &str| reading.older && NEWER.contains(&key);
            for (key, value) in object.iter().filter(|(key, _)| !newer(key)) {
                flatten(&format!("{path}.{key}"), value, reading, lines);
            }
        }
        Value::Array(values) => {
            lines.push(format!("{path} ["));
            for value in values {
                flatten(&format!("{path}[]"), value, reading, lines);
            }
        }
        Value::Number(number) => {
            let setting = path.contains(".test_start.")
                || ["sock_bufsize", "tcp_mss", "target_bitrate", "fq_rate"]
                    .iter()
                    .any(|key| path.ends_with(key));
            let shown = if setting {
                number.to_string()
            } else if number.as_f64().is_some_and(|number| number < 0.0) {
                "below 0".to_owned()
            } else {
                "number".to_owned()
            };
            lines.push(format!("{path}: {shown}"));
        }
        Value::String(said) => {
            let drawn = ["version", "time", "cookie"]
                .iter()
                .any(|key| path.ends_with(&format!(".{key}")));
            if path.ends_with("server_output_text") {
                lines.push(format!("{path}:"));
                lines.extend(text(said, reading));
            } else if drawn {
                lines.push(format!("{path}: text"));
            } else {
                lines.push(format!("{path}: {said:?}"));
            }
        }
        Value::Bool(_) | Value::Null => lines.push(format!("{path}: {value}")),
    }
}

/// What stands on one side only, with its sign; `None` where nothing does.
pub(super) fn difference(theirs: &[String], ours: &[String]) -> Option<String> {
    if theirs == ours {
        return None;
    }
    // The longest common lines, by dynamic programming over what is left between equal ends.
    let (n, m) = (theirs.len(), ours.len());
    let mut common = vec![vec![0_usize; m + 1]; n + 1];
    for i in (0..n).rev() {
        for j in (0..m).rev() {
            common[i][j] = if theirs[i] == ours[j] {
                common[i + 1][j + 1] + 1
            } else {
                common[i + 1][j].max(common[i][j + 1])
            };
        }
    }
    let (mut i, mut j, mut out) = (0, 0, Vec::new());
    while i < n || j < m {
        if i < n && j < m && theirs[i] == ours[j] {
            (i, j) = (i + 1, j + 1);
        } else if j == m || (i < n && common[i + 1][j] >= common[i][j + 1]) {
            out.push(format!("    - {}", theirs[i]));
            i += 1;
        } else {
            out.push(format!("    + {}", ours[j]));
            j += 1;
        }
    }
    Some(out.join("\n"))
}

#[test]
fn figures_are_left_out_and_columns_stay() {
    let tcp = Reading {
        udp: false,
        fixed_units: false,
        older: false,
    };
    let rows = "[  5]   0.00-1.84   sec  4.12 MBytes  18.8 Mbits/sec    1   1.12 MBytes       (omitted)\n\
        [  5]   9.00-10.00  sec   895 KBytes   140 Mbits/sec  112    895 KBytes       (omitted)";
    assert_eq!(text(rows, tcp).len(), 1);
    let moved = rows.replace("  112 ", "   112 ");
    assert_eq!(text(&moved, tcp).len(), 2);
    let id = "[  4] local 127.0.0.1 port 48120 connected to ::1 port 5201\n[  6] local";
    assert_eq!(
        text(id, tcp),
        [
            "[stream 1] local 127.0.0.1 port # connected to ::1 port #",
            "[stream 2] local"
        ]
    );
}

#[test]
fn keys_and_settings_of_a_document_count() {
    let tcp = Reading {
        udp: false,
        fixed_units: false,
        older: false,
    };
    let read = |text: &str| documents(text, tcp);
    assert_eq!(read(r#"{"a": 1, "b": 2}"#), read(r#"{"a": 7.5, "b": 0}"#));
    assert_ne!(read(r#"{"a": 1, "b": 2}"#), read(r#"{"b": 1, "a": 2}"#));
    assert_ne!(read(r#"{"a": 1}"#), read(r#"{"a": "1"}"#));
    assert_ne!(read(r#"{"fq_rate": 1}"#), read(r#"{"fq_rate": 2}"#));
    assert_eq!(read(r#"[{"a": 1}, {"a": 2}]"#), read(r#"[{"a": 1}]"#));
}
