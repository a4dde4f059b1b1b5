//! From the text of a scenario to its types.

use std::collections::BTreeMap;

use linerate_model::nearest::nearest;
use linerate_model::plan::options::named;
use linerate_model::units::BitRate;

use super::command_line::options;
use super::error::ScenarioError;
use super::keys;
use super::reader::{Document, Table, Value};
use super::types::{EngineWish, Expect, Family, HostSpec, ModeWish, RateRange, Scenario, TestSpec};
use super::{consistency, read_path};

type Result<T> = std::result::Result<T, ScenarioError>;

/// The longest name of a congestion control (`TCP_CA_NAME_MAX` − 1).
const LONGEST_CONGESTION: usize = 15;
/// Shares of a CPU that can be made.
const CPU_SHARES: std::ops::RangeInclusive<f64> = 0.02..=0.98;
/// Options of `linerate test` that the lab sets itself.
const LABS_OWN: [&str; 10] = [
    "-4",
    "-6",
    "-p",
    "-B",
    "--bind-dev",
    "-o",
    "--output",
    "--json",
    "--json-document",
    "--json-stream",
];

impl Scenario {
    /// Reads the text of a scenario; `file` is its name in messages.
    ///
    /// # Errors
    /// What is wrong with the text, with its line and what to write instead.
    pub fn parse(file: &str, text: &str) -> Result<Self> {
        let document = Document { file, text };
        let tables = document.parse()?;
        let top = Table::new(&document, &keys::TOP, tables.get_ref(), &(0..0))?;
        let path = top.read("path", |value| value.table(&keys::PATH))?;
        let modes = [
            ("auto", ModeWish::Auto),
            ("packet", ModeWish::Packet),
            ("bulk", ModeWish::Bulk),
        ];
        let families = [("ipv4", Family::Ipv4), ("ipv6", Family::Ipv6)];
        let host = |name| -> Result<HostSpec> { Ok(top.read(name, host)?.unwrap_or_default()) };
        let scenario = Self {
            name: name(&top.needed("name")?)?,
            about: top
                .read("about", Value::text)?
                .unwrap_or_default()
                .to_owned(),
            seed: top
                .read("seed", |value| value.whole(0..=u64::MAX >> 1))?
                .unwrap_or(1),
            mode: top
                .read("mode", |value| value.word(&modes))?
                .unwrap_or_default(),
            engine: top
                .read("engine", |value| value.word(&EngineWish::WORDS))?
                .unwrap_or_default(),
            family: top
                .read("family", |value| value.word(&families))?
                .unwrap_or_default(),
            path: read_path::read(&document, path.as_ref())?,
            sender: host("sender")?,
            receiver: host("receiver")?,
            test: top.read("test", test)?.unwrap_or_default(),
            expect: top.read("expect", expect)?.unwrap_or_default(),
        };
        consistency::check(&scenario).map_err(|reason| document.contradiction(reason))?;
        Ok(scenario)
    }
}

fn name(value: &Value<'_>) -> Result<String> {
    let name = value.text()?;
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || name.len() > 40 || name.starts_with('-') || !name.chars().all(fits) {
        return Err(value.wrong("it is no name for a lab"));
    }
    Ok(name.to_owned())
}

fn host(value: &Value<'_>) -> Result<HostSpec> {
    let table = value.table(&keys::HOST)?;
    let default = HostSpec::default();
    Ok(HostSpec {
        congestion: table
            .read("congestion", congestion)?
            .unwrap_or(default.congestion),
        tcp_wmem: table.read("tcp_wmem", three_sizes)?,
        tcp_rmem: table.read("tcp_rmem", three_sizes)?,
        mtu: table
            .read("mtu", |value| value.whole(576..=65_535))?
            .and_then(|mtu| u32::try_from(mtu).ok())
            .unwrap_or(default.mtu),
        txqueuelen: table
            .read("txqueuelen", |value| value.whole(0..=1_000_000))?
            .and_then(|packets| u32::try_from(packets).ok()),
        cpu: table.read("cpu", cpu)?,
        read_rate: table.read("read_rate", Value::rate)?,
        sysctl: table.read("sysctl", sysctl)?.unwrap_or_default(),
    })
}

fn congestion(value: &Value<'_>) -> Result<String> {
    let name = value.text()?;
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > LONGEST_CONGESTION || !name.chars().all(fits) {
        return Err(value.wrong("it is no name of a congestion control such as cubic, reno or bbr"));
    }
    Ok(name.to_owned())
}

fn three_sizes(value: &Value<'_>) -> Result<[u64; 3]> {
    let sizes: Vec<u64> = value
        .text()?
        .split_whitespace()
        .map_while(|size| size.parse().ok())
        .collect();
    let [least, initial, most] = sizes[..] else {
        return Err(
            value.wrong("it is not three whole numbers of bytes such as \"4096 16384 4194304\"")
        );
    };
    // The kernel takes them as C ints and refuses less than 1.
    if least == 0 || least > initial || initial > most || most > i32::MAX as u64 {
        return Err(value.wrong(format!(
            "they must not fall, and lie between 1 and {}",
            i32::MAX
        )));
    }
    Ok([least, initial, most])
}

fn cpu(value: &Value<'_>) -> Result<f64> {
    let share = value.number()?;
    if CPU_SHARES.contains(&share) {
        Ok(share)
    } else {
        Err(value.wrong(
            "the weights of two programs on a CPU make shares from 0.02 to 0.98; leave it out for a whole core",
        ))
    }
}

fn sysctl(value: &Value<'_>) -> Result<BTreeMap<String, String>> {
    let pairs = value.pairs()?;
    pairs
        .into_iter()
        .map(|(key, value)| {
            let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
            if !key.starts_with("net.") || key.contains("..") || !key.chars().all(fits) {
                return Err(value.wrong(
                    "only settings of a network namespace can be set, and they begin with net.",
                ));
            }
            let text = value.text()?;
            if text.contains(['\n', '\0']) {
                return Err(value.wrong("a setting is one line"));
            }
            Ok((key, text.to_owned()))
        })
        .collect()
}

fn test(value: &Value<'_>) -> Result<TestSpec> {
    let table = value.table(&keys::TEST)?;
    let args = table.read("args", |value| {
        let args = if value.is_list() {
            let texts = value.elements();
            texts
                .iter()
                .map(|arg| arg.text().map(str::to_owned))
                .collect::<Result<Vec<_>>>()?
        } else {
            words(value.text()?).map_err(|reason| value.wrong(reason))?
        };
        let is_own = |name: &str| {
            let own = |own: &&str| *own == name || named(own).is_some_and(|it| it.is(name));
            LABS_OWN.iter().any(own)
        };
        let own = options(&args).find(|(name, _)| is_own(name));
        match own {
            Some((name, _)) => Err(value.wrong(format!(
                "the lab sets {name} itself (addresses come from 'family')"
            ))),
            None => Ok(args),
        }
    })?;
    let test = TestSpec {
        args: args.unwrap_or_default(),
    };
    match (test.plan(), table.value("args")) {
        (Err(error), Some(value)) => Err(value.wrong(error.to_string())),
        _ => Ok(test),
    }
}

/// Splits at blanks; quotation marks keep together what stands between them.
fn words(text: &str) -> std::result::Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in text.chars() {
        match (quote, c) {
            (Some(end), c) if c == end => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return Err("a quotation mark is not closed");
    }
    words.extend(word);
    Ok(words)
}

fn expect(value: &Value<'_>) -> Result<Expect> {
    let table = value.table(&keys::EXPECT)?;
    let ids = |name| -> Result<Vec<String>> {
        let ids = table.read(name, |value| value.elements().iter().map(finding).collect())?;
        Ok(ids.unwrap_or_default())
    };
    let expect = Expect {
        top: ids("top")?,
        with: ids("with")?,
        also: ids("also")?,
        never: ids("never")?,
        goodput: table.read("goodput", range)?,
    };
    let forbidden = |id: &&String| {
        expect.top.contains(id) || expect.with.contains(id) || expect.also.contains(id)
    };
    match (table.value("never"), expect.never.iter().find(forbidden)) {
        (Some(never), Some(id)) => {
            Err(never.wrong(format!("'{id}' is expected elsewhere in [expect]")))
        }
        _ => Ok(expect),
    }
}

fn finding(value: &Value<'_>) -> Result<String> {
    let id = value.text()?;
    if keys::FINDINGS.contains(&id) {
        return Ok(id.to_owned());
    }
    let hint = nearest(id, keys::FINDINGS)
        .map_or(String::new(), |meant| format!("; did you mean '{meant}'?"));
    Err(value.wrong(format!("there is no finding '{id}'{hint}")))
}

fn range(value: &Value<'_>) -> Result<RateRange> {
    let text = value.text()?;
    let (least, most) = text
        .split_once("..")
        .ok_or_else(|| value.wrong("it is no range such as \"65M..125M\""))?;
    let rate = |text| super::amount::rate(text).map_err(|reason| value.wrong(reason));
    let (least, most): (BitRate, BitRate) = (rate(least)?, rate(most)?);
    if least > most {
        return Err(value.wrong("it begins above its end"));
    }
    Ok(RateRange { least, most })
}
