//! Protocol counters: `/proc/net/snmp`, `netstat` and `snmp6`.

use std::collections::BTreeMap;

/// Adds a file's counters. Two shapes: pairs of lines `Tcp: names` and `Tcp: values`, and lines of
/// `Udp6RcvbufErrors 3`. What is no number from 0 up (`Tcp.MaxConn` is −1) is left out.
pub(crate) fn parse(text: &str, counters: &mut BTreeMap<String, u64>) {
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some((group, names)) = line.split_once(':') {
            let Some(values) = lines.next().and_then(|line| line.split_once(':')) else {
                return;
            };
            if values.0 == group {
                pairs(group, names, values.1, counters);
            }
        } else if let Some((name, value)) = snmp6_line(line) {
            counters.insert(name, value);
        }
    }
}

fn pairs(group: &str, names: &str, values: &str, counters: &mut BTreeMap<String, u64>) {
    for (name, value) in names
        .split_ascii_whitespace()
        .zip(values.split_ascii_whitespace())
    {
        if let Ok(value) = value.parse() {
            counters.insert([group, ".", name].concat(), value);
        }
    }
}

/// `Udp6RcvbufErrors` becomes `Udp6.RcvbufErrors`.
fn snmp6_line(line: &str) -> Option<(String, u64)> {
    let (name, value) = line.split_once(|c: char| c.is_ascii_whitespace())?;
    let (group, rest) = name.split_at(name.find('6')? + 1);
    Some(([group, ".", rest].concat(), value.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> BTreeMap<String, u64> {
        let mut counters = BTreeMap::new();
        parse(text, &mut counters);
        counters
    }

    #[test]
    fn names_and_values_are_paired() {
        let counters =
            parsed("Tcp: MaxConn RetransSegs\nTcp: -1 7\nUdp: InErrors RcvbufErrors\nUdp: 1 2\n");
        assert_eq!(counters.len(), 3);
        assert_eq!(counters["Tcp.RetransSegs"], 7);
        assert_eq!(counters["Udp.RcvbufErrors"], 2);
    }

    #[test]
    fn snmp6_is_split_at_its_six() {
        let counters =
            parsed("Udp6RcvbufErrors                \t12\nIcmp6OutType143  \t3\nnonsense\n");
        assert_eq!(counters["Udp6.RcvbufErrors"], 12);
        assert_eq!(counters["Icmp6.OutType143"], 3);
        assert_eq!(counters.len(), 2);
    }

    #[test]
    fn an_older_kernel_has_fewer_and_a_cut_file_keeps_what_is_whole() {
        assert_eq!(parsed("Tcp: A B C\nTcp: 1 2\n").len(), 2);
        assert_eq!(parsed("Tcp: A\nTcp: 1\nUdp: A").len(), 1);
        assert_eq!(parsed("Tcp: A\nUdp: 1\n").len(), 0);
    }
}
