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

/// What grew from one text of a file to a later one: only lines that changed are taken apart, which are few.
pub(crate) fn growth(before: &str, after: &str, grown: &mut BTreeMap<String, u64>) {
    if let Some(found) = growth_by_line(before, after) {
        grown.extend(found);
        return;
    }
    // Another protocol came or went.
    let (mut was, mut is) = (BTreeMap::new(), BTreeMap::new());
    parse(before, &mut was);
    parse(after, &mut is);
    grown.extend(is.into_iter().filter_map(|(name, value)| {
        let growth = difference(was.get(&name).copied().unwrap_or(0), value)?;
        Some((name, growth))
    }));
}

/// `None` where the texts have other lines.
fn growth_by_line(before: &str, after: &str) -> Option<Vec<(String, u64)>> {
    let mut found = Vec::new();
    let (mut earlier, mut later) = (before.lines(), after.lines());
    let mut heading = "";
    loop {
        let (was, is) = match (earlier.next(), later.next()) {
            (None, None) => return Some(found),
            (was, is) => (was?, is?),
        };
        if was == is {
            heading = is;
        } else if let Some((group, values)) = is.split_once(':') {
            let names = heading.strip_prefix(group)?.strip_prefix(':')?;
            let were = was.strip_prefix(group)?.strip_prefix(':')?;
            let words = str::split_ascii_whitespace;
            for ((name, was), is) in words(names).zip(words(were)).zip(words(values)) {
                if let (Ok(was), Ok(is)) = (was.parse(), is.parse())
                    && let Some(growth) = difference(was, is)
                {
                    found.push(([group, ".", name].concat(), growth));
                }
            }
        } else {
            let (was, is) = (snmp6_line(was)?, snmp6_line(is)?);
            if was.0 != is.0 {
                return None;
            }
            found.extend(difference(was.1, is.1).map(|growth| (is.0, growth)));
        }
    }
}

/// Gauges can fall; a fall of a counter would be a wrap, which 64 bits do not do.
fn difference(was: u64, is: u64) -> Option<u64> {
    Some(is.wrapping_sub(was)).filter(|growth| *growth > 0 && *growth < u64::MAX / 2)
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

    fn grown(before: &str, after: &str) -> Vec<(String, u64)> {
        let mut grown = BTreeMap::new();
        growth(before, after, &mut grown);
        grown.into_iter().collect()
    }

    #[test]
    fn what_grew_is_told_and_what_fell_or_stayed_is_not() {
        let before = "Tcp: A MaxConn B C\nTcp: 1 -1 5 7\nUdp: D\nUdp: 1\nUdp6In 3\nUdp6Out 4\n";
        let after = "Tcp: A MaxConn B C\nTcp: 1 -1 9 6\nUdp: D\nUdp: 1\nUdp6In 3\nUdp6Out 6\n";
        let expected = [("Tcp.B".to_owned(), 4), ("Udp6.Out".to_owned(), 2)];
        assert_eq!(grown(before, after), expected);
        assert_eq!(grown(after, after), []);
    }

    #[test]
    fn growth_is_found_where_lines_came_or_went_too() {
        let before = "Tcp: A\nTcp: 1\nUdp6In 3\n";
        let after = "Icmp: Z\nIcmp: 8\nTcp: A B\nTcp: 3 4\nUdp6In 3\nUdp6Out 6\n";
        let expected = [("Icmp.Z", 8), ("Tcp.A", 2), ("Tcp.B", 4), ("Udp6.Out", 6)];
        assert_eq!(
            grown(before, after),
            expected.map(|(name, growth)| (name.to_owned(), growth))
        );
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
