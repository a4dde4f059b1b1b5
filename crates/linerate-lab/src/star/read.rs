//! From the text of a star to its types.

use linerate_document::{Document, DocumentError, Table, Value};
use linerate_model::mesh::MeshCauseKind;
use linerate_model::nearest;
use linerate_model::units::Nanos;

use super::keys;
use super::names;
use super::types::{Down, Expected, MOST_HOSTS, MOST_LINKS, Member, Star, StarHost, Switch, Trunk};
use crate::scenario::{HostSpec, amount, read};

type Result<T> = std::result::Result<T, DocumentError>;

/// What a full queue holds where the file does not say.
const QUEUE: Nanos = Nanos::from_millis(10);
const LONGEST: Nanos = Nanos::from_millis(1000);

/// Whether a text is the file of a star: it has a table `star`. What is no TOML is none.
pub fn is_star(text: &str) -> bool {
    Document::parse("", text, &[]).is_ok_and(|document| document.has("star"))
}

impl Star {
    /// Reads the text of a star; `file` is its name in messages.
    ///
    /// # Errors
    /// What is wrong with the text, with its line and what to write instead.
    pub fn parse(file: &str, text: &str) -> Result<Self> {
        let document = Document::parse(file, text, &keys::SECTIONS)?;
        let top = document.top(&keys::TOP)?;
        let table = top.needed("star")?.table(&keys::STAR)?;
        let mut defaults = StarHost {
            name: String::new(),
            switch: 0,
            rate_out: amount::rate(table.needed("rate")?)?,
            rate_in: amount::rate(table.needed("rate")?)?,
            queue: QUEUE,
            down: None,
            spec: HostSpec::default(),
        };
        apply(&table, &mut defaults)?;
        let mut star = Self {
            name: read::name(top.needed("name")?)?,
            about: top.or("about", "", Value::text)?.to_owned(),
            seed: top.or("seed", 1, |value| value.whole(0..=u64::MAX >> 1))?,
            switches: Vec::new(),
            trunks: Vec::new(),
            hosts: Vec::new(),
            expect: top.read("expect", expect)?,
        };
        table.needed("switch")?;
        table.read_all("switch", |value| switch(value, &defaults, &mut star))?;
        table.read_all("host", |value| different(value, &mut star))?;
        let largest = star.hosts.iter().map(|host| host.spec.mtu).max();
        table.read_all("trunk", |value| {
            trunk(value, largest.unwrap_or(defaults.spec.mtu), &mut star)
        })?;
        star.check().map_err(|why| document.contradiction(why))?;
        Ok(star)
    }

    /// What no single value shows.
    fn check(&self) -> std::result::Result<(), String> {
        if !(2..=MOST_HOSTS).contains(&self.hosts.len()) {
            return Err(format!(
                "a star has 2 to {MOST_HOSTS} hosts, and this one has {}",
                self.hosts.len()
            ));
        }
        let links: usize = self.trunks.iter().map(|trunk| trunk.members.len()).sum();
        if links > MOST_LINKS {
            return Err(format!(
                "the trunks have {links} members together, and {MOST_LINKS} is the most"
            ));
        }
        match self.unconnected() {
            Some(name) => Err(format!(
                "no trunk leads to the switch {name}: connect it by [[star.trunk]]"
            )),
            None => Ok(()),
        }
    }

    fn is_taken(&self, name: &str) -> bool {
        let hosts = self.hosts.iter().map(|host| &host.name);
        let mut all = hosts.chain(self.switches.iter().map(|switch| &switch.name));
        all.any(|taken| taken == name)
    }
}

/// What a table says of a host, over what was said before.
fn apply(table: &Table<'_>, host: &mut StarHost) -> Result<()> {
    if let Some(rate) = table.read("rate", amount::rate)? {
        (host.rate_out, host.rate_in) = (rate, rate);
    }
    host.rate_out = table.or("rate_out", host.rate_out, amount::rate)?;
    host.rate_in = table.or("rate_in", host.rate_in, amount::rate)?;
    host.queue = table.or("queue", host.queue, queue)?;
    let spec = &mut host.spec;
    spec.mtu = table.or("mtu", spec.mtu, mtu)?;
    if let Some(congestion) = table.read("congestion", read::congestion)? {
        spec.congestion = congestion;
    }
    spec.tcp_wmem = table.read("tcp_wmem", read::three_sizes)?.or(spec.tcp_wmem);
    spec.tcp_rmem = table.read("tcp_rmem", read::three_sizes)?.or(spec.tcp_rmem);
    if let Some(more) = table.read("sysctl", read::sysctl)? {
        spec.sysctl.extend(more);
    }
    Ok(())
}

fn switch(value: &Value<'_>, defaults: &StarHost, star: &mut Star) -> Result<()> {
    let table = value.table(&keys::SWITCH)?;
    let named = table.needed("name")?;
    let name = named.text()?;
    named.refuse(!names::is_name(name), "not a name for a switch")?;
    named.refuse(star.is_taken(name), format!("there is a {name} already"))?;
    star.switches.push(Switch {
        name: name.to_owned(),
        delay: table.or("delay", Nanos::ZERO, |value| amount::span(value, LONGEST))?,
    });
    let place = star.switches.len() - 1;
    if let Some(value) = table.value("hosts") {
        for name in hosts(value)? {
            value.refuse(star.is_taken(&name), format!("there is a {name} already"))?;
            star.hosts.push(StarHost {
                name,
                switch: place,
                ..defaults.clone()
            });
        }
    }
    Ok(())
}

fn different(value: &Value<'_>, star: &mut Star) -> Result<()> {
    let table = value.table(&keys::HOST)?;
    let named = table.needed("hosts")?;
    let words = [
        ("link", Some(Down::Link)),
        ("host", Some(Down::Host)),
        ("no", None),
    ];
    let down = table.read("down", |value| value.word(&words))?;
    for name in hosts(named)? {
        let Some(host) = star.hosts.iter_mut().find(|host| host.name == name) else {
            let known: Vec<&str> = star.hosts.iter().map(|host| host.name.as_str()).collect();
            let hint = nearest::hint(&name, &known);
            return Err(named.wrong(format!("no switch has the host {name}: {hint}")));
        };
        apply(&table, host)?;
        host.down = down.unwrap_or(host.down);
    }
    Ok(())
}

fn trunk(value: &Value<'_>, mtu_default: u32, star: &mut Star) -> Result<()> {
    let table = value.table(&keys::TRUNK)?;
    let named = table.needed("between")?;
    let ends = named.list()?;
    let [one, other] = &ends[..] else {
        return Err(named.wrong("not two switches"));
    };
    let between = [place(one, star)?, place(other, star)?];
    let [first, last] = between;
    named.refuse(first == last, "a trunk is between two switches")?;
    let again = |trunk: &Trunk| trunk.between == between || trunk.between == [last, first];
    named.refuse(
        star.trunks.iter().any(again),
        "there is a trunk between these already: `members` gives it more links",
    )?;
    let usual = Member {
        rate: amount::rate(table.needed("rate")?)?,
        queue: table.or("queue", QUEUE, queue)?,
    };
    let count = table.or("members", 1, |value| value.whole(1..=16_usize))?;
    let mut members = vec![usual; count];
    let mut seen = Vec::new();
    table.read_all("member", |value| {
        let table = value.table(&keys::MEMBER)?;
        let named = table.needed("number")?;
        let number = named.whole(1..=count)?;
        named.refuse(seen.contains(&number), "this member was described above")?;
        seen.push(number);
        members[number - 1] = Member {
            rate: table.or("rate", usual.rate, amount::rate)?,
            queue: table.or("queue", usual.queue, queue)?,
        };
        Ok(())
    })?;
    star.trunks.push(Trunk {
        between,
        members,
        mtu: table.or("mtu", mtu_default, mtu)?,
    });
    Ok(())
}

/// The place of a switch by its name.
fn place(value: &Value<'_>, star: &Star) -> Result<usize> {
    let name = value.text()?;
    let found = star.switches.iter().position(|switch| switch.name == name);
    found.ok_or_else(|| {
        let names = star.switches.iter().map(|switch| switch.name.as_str());
        let known: Vec<&str> = names.collect();
        value.wrong(format!("no such switch: {}", nearest::hint(name, &known)))
    })
}

fn hosts(value: &Value<'_>) -> Result<Vec<String>> {
    let mut all: Vec<String> = Vec::new();
    for element in value.elements() {
        for name in names::expand(element.text()?).map_err(|why| element.wrong(why))? {
            element.refuse(all.contains(&name), format!("{name} is named twice"))?;
            all.push(name);
        }
    }
    Ok(all)
}

fn mtu(value: &Value<'_>) -> Result<u32> {
    value.whole(576..=65_535)
}

fn queue(value: &Value<'_>) -> Result<Nanos> {
    let queue = amount::span(value, LONGEST)?;
    value.refuse(queue < Nanos::from_millis(1), "shorter than 1 ms")?;
    Ok(queue)
}

fn expect(value: &Value<'_>) -> Result<Expected> {
    let table = value.table(&keys::EXPECT)?;
    let kinds = [
        ("none", None),
        ("host-out", Some(MeshCauseKind::HostOut)),
        ("host-in", Some(MeshCauseKind::HostIn)),
        ("host", Some(MeshCauseKind::Host)),
        ("group", Some(MeshCauseKind::Group)),
        ("trunk", Some(MeshCauseKind::Trunk)),
        ("pair", Some(MeshCauseKind::Pair)),
        ("port", Some(MeshCauseKind::Port)),
    ];
    let kind = table.needed("kind")?.word(&kinds)?;
    let named = match kind {
        Some(_) => Some(table.needed("name")?),
        None => table.value("name"),
    };
    let mut names = Vec::new();
    if let Some(named) = named {
        named.refuse(kind.is_none(), "where nothing is wrong, nothing is named")?;
        for element in named.elements() {
            names.push(element.text()?.to_owned());
        }
    }
    Ok(Expected { kind, names })
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::units::BitRate;

    const TWO_RACKS: &str = "name = \"x\"
[star]
rate = \"50M\"
tcp_rmem = \"4096 131072 65536000\"
[[star.switch]]
name = \"rack1\"
hosts = \"node[01-02]\"
[[star.switch]]
name = \"rack2\"
hosts = [\"node03\", \"node[04-05]\"]
delay = \"5ms\"
[[star.trunk]]
between = [\"rack1\", \"rack2\"]
rate = \"100M\"
members = 4
[[star.trunk.member]]
number = 3
rate = \"5M\"
[[star.host]]
hosts = \"node[02-03]\"
rate = \"20M\"
rate_in = \"10M\"
[[star.host]]
hosts = \"node03\"
down = \"link\"
rate_out = \"1M\"
[expect]
kind = \"port\"
name = [\"rack1 > rack2\", \"rack2 > rack1\"]
";

    #[test]
    fn what_is_different_is_different_and_the_later_one_counts() {
        let star = Star::parse("x", TWO_RACKS).unwrap();
        let names: Vec<&str> = star.hosts.iter().map(|host| host.name.as_str()).collect();
        assert_eq!(names, ["node01", "node02", "node03", "node04", "node05"]);
        let rates = |at: usize| (star.hosts[at].rate_out, star.hosts[at].rate_in);
        let mega = |one: u64, other: u64| (BitRate(one * 1_000_000), BitRate(other * 1_000_000));
        assert_eq!(rates(0), mega(50, 50));
        assert_eq!(rates(1), mega(20, 10));
        assert_eq!(rates(2), mega(1, 10));
        assert_eq!((star.hosts[1].switch, star.hosts[2].switch), (0, 1));
        assert_eq!(star.hosts[2].down, Some(Down::Link));
        assert_eq!(star.hosts[4].down, None);
        assert_eq!(star.switches[1].delay, Nanos::from_millis(5));
        let [trunk] = &star.trunks[..] else {
            panic!("{:?}", star.trunks)
        };
        let rates: Vec<u64> = trunk.members.iter().map(|one| one.rate.0).collect();
        assert_eq!(rates, [100_000_000, 100_000_000, 5_000_000, 100_000_000]);
        assert_eq!((trunk.between, trunk.mtu), ([0, 1], 1500));
        let expected = star.expect.unwrap();
        assert_eq!(expected.kind, Some(MeshCauseKind::Port));
        assert_eq!(expected.names.len(), 2);
        assert!(is_star(TWO_RACKS) && !is_star("name = \"x\"\n[path]\n") && !is_star("["));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (from, to, message) in [
            ("rate = \"50M\"\n", "", "x:2: [star] needs the key 'rate'"),
            (
                "rate = \"50M\"",
                "rat = \"50M\"",
                "x:3: unknown key 'rat' in [star]: did you mean 'rate'?",
            ),
            ("50M", "50MB", "x:3: rate = \"50MB\": 'MB' reads as bytes"),
            (
                "[01-02]",
                "[01-03]",
                "x:10: hosts = [\"node03\", \"node[04-05]\"]: there is a node03 already",
            ),
            (
                "[01-02]",
                "[02-01]",
                "x:7: hosts = \"node[02-01]\": '02-01' begins above its end",
            ),
            (
                "name = \"rack2\"",
                "name = \"node01\"",
                "x:9: name = \"node01\": there is a node01 already",
            ),
            (
                "[\"rack1\", \"rack2\"]\nrate",
                "[\"rack1\", \"rack3\"]\nrate",
                "x:13: between = \"rack3\": no such switch: did you mean",
            ),
            (
                "[\"rack1\", \"rack2\"]\nrate",
                "[\"rack1\", \"rack1\"]\nrate",
                "a trunk is between two switches",
            ),
            (
                "number = 3",
                "number = 5",
                "x:17: number = 5: not a whole number from 1 to 4",
            ),
            (
                "hosts = \"node03\"",
                "hosts = \"node30\"",
                "x:24: hosts = \"node30\": no switch has the host node30: did you mean 'node0",
            ),
            (
                "down = \"link\"",
                "down = true",
                "x:25: down = true: not a text",
            ),
            (
                "kind = \"port\"",
                "kind = \"none\"",
                "where nothing is wrong, nothing is named",
            ),
            (
                "kind = \"port\"",
                "kind = \"ports\"",
                "x:28: kind = \"ports\": unknown word; did you mean 'port'?",
            ),
            (
                "delay = \"5ms\"",
                "delay = \"5\"",
                "x:11: delay = \"5\": no unit",
            ),
            (
                "rate = \"5M\"",
                "queue = \"10us\"",
                "x:18: queue = \"10us\": shorter than 1 ms",
            ),
        ] {
            assert!(TWO_RACKS.contains(from), "{from}");
            let text = TWO_RACKS.replacen(from, to, 1);
            let said = Star::parse("x", &text).unwrap_err().to_string();
            assert!(said.contains(message), "{said} lacks {message}");
        }
    }

    #[test]
    fn a_star_has_some_hosts_and_not_too_many() {
        let with = |hosts: &str| {
            let text = format!(
                "name = \"x\"\n[star]\nrate = \"1M\"\n[[star.switch]]\nname = \"s\"\nhosts = \"{hosts}\"\n[[star.switch]]\nname = \"t\"\nhosts = \"x[1-40]\"\n[[star.trunk]]\nbetween = [\"s\", \"t\"]\nrate = \"1M\"\n"
            );
            Star::parse("x", &text).map(|star| star.hosts.len())
        };
        assert_eq!(with("n[1-20]"), Ok(60));
        let error = with("n[1-21]").unwrap_err().to_string();
        assert_eq!(error, "x: a star has 2 to 60 hosts, and this one has 61");
        let alone =
            "name = \"x\"\n[star]\nrate = \"1M\"\n[[star.switch]]\nname = \"s\"\nhosts = \"a\"\n";
        assert!(Star::parse("x", alone).is_err());
    }
}
