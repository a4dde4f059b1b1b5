//! From the text of a scenario to its types.

use std::collections::BTreeMap;

use linerate_document::{Document, DocumentError, Table, Value};
use linerate_model::plan::command_line::{options, words};
use linerate_model::plan::options::named;

use super::keys;
use super::types::{
    EngineWish, Expect, Family, HostSpec, ModeWish, RateRange, Scenario, ShareRange, TestSpec,
};
use super::{amount, consistency, read_path};

type Result<T> = std::result::Result<T, DocumentError>;

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
        let document = Document::parse(file, text, &keys::SECTIONS)?;
        let top = document.top(&keys::TOP)?;
        let modes = [
            ("auto", ModeWish::Auto),
            ("packet", ModeWish::Packet),
            ("bulk", ModeWish::Bulk),
        ];
        let families = [("ipv4", Family::Ipv4), ("ipv6", Family::Ipv6)];
        let scenario = Self {
            name: name(top.needed("name")?)?,
            about: top.or("about", "", Value::text)?.to_owned(),
            seed: top.or("seed", 1, |value| value.whole(0..=u64::MAX >> 1))?,
            mode: top.or("mode", ModeWish::Auto, |value| value.word(&modes))?,
            engine: top.or("engine", EngineWish::Auto, |value| {
                value.word(&EngineWish::WORDS)
            })?,
            family: top.or("family", Family::Ipv4, |value| value.word(&families))?,
            path: read_path::read(&document, &top.table("path", &keys::PATH)?)?,
            sender: host(&top.table("sender", &keys::HOST)?)?,
            receiver: host(&top.table("receiver", &keys::HOST)?)?,
            test: test(&top.table("test", &keys::TEST)?)?,
            expect: expect(&top.table("expect", &keys::EXPECT)?)?,
        };
        consistency::check(&scenario).map_err(|reason| document.contradiction(reason))?;
        Ok(scenario)
    }
}

pub(crate) fn name(value: &Value<'_>) -> Result<String> {
    let name = value.text()?;
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let long = name.is_empty() || name.len() > 40;
    let odd = name.starts_with('-') || !name.chars().all(fits);
    value.refuse(long || odd, "not a name for a lab")?;
    Ok(name.to_owned())
}

fn host(table: &Table<'_>) -> Result<HostSpec> {
    let default = HostSpec::default();
    Ok(HostSpec {
        congestion: table.or("congestion", default.congestion, congestion)?,
        tcp_wmem: table.read("tcp_wmem", three_sizes)?,
        tcp_rmem: table.read("tcp_rmem", three_sizes)?,
        mtu: table.or("mtu", default.mtu, |value| value.whole(576..=65_535))?,
        txqueuelen: table.read("txqueuelen", |value| value.whole(0..=1_000_000))?,
        cpu: table.read("cpu", cpu)?,
        read_rate: table.read("read_rate", amount::rate)?,
        sysctl: table.or("sysctl", default.sysctl, sysctl)?,
    })
}

pub(crate) fn congestion(value: &Value<'_>) -> Result<String> {
    let name = value.text()?;
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let long = name.is_empty() || name.len() > LONGEST_CONGESTION;
    let reason = "not the name of a congestion control such as cubic, reno or bbr";
    value.refuse(long || !name.chars().all(fits), reason)?;
    Ok(name.to_owned())
}

pub(crate) fn three_sizes(value: &Value<'_>) -> Result<[u64; 3]> {
    let sizes: Vec<u64> = value
        .text()?
        .split_whitespace()
        .map_while(|size| size.parse().ok())
        .collect();
    let [least, initial, most] = sizes[..] else {
        return Err(value.wrong("not three whole numbers of bytes such as \"4096 16384 4194304\""));
    };
    // The kernel takes them as C ints and refuses less than 1.
    let descends = least > initial || initial > most;
    let reason = format!("they must not fall, and lie between 1 and {}", i32::MAX);
    value.refuse(descends || least == 0 || most > i32::MAX as u64, reason)?;
    Ok([least, initial, most])
}

fn cpu(value: &Value<'_>) -> Result<f64> {
    let share = value.number()?;
    value.refuse(
        !CPU_SHARES.contains(&share),
        "the weights of two programs on a CPU make shares from 0.02 to 0.98; leave it out for a whole core",
    )?;
    Ok(share)
}

pub(crate) fn sysctl(value: &Value<'_>) -> Result<BTreeMap<String, String>> {
    let pairs = value.pairs()?;
    pairs
        .into_iter()
        .map(|(key, value)| {
            let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/');
            let odd = key.contains("..") || !key.chars().all(fits);
            let reason =
                "only settings of a network namespace can be set, and they begin with net.";
            value.refuse(odd || !key.starts_with("net."), reason)?;
            let text = value.text()?;
            value.refuse(text.contains(['\n', '\0']), "a setting is one line")?;
            Ok((key.to_owned(), text.to_owned()))
        })
        .collect()
}

fn test(table: &Table<'_>) -> Result<TestSpec> {
    let args = table.or("args", Vec::new(), |value| {
        let args = if let Ok(text) = value.text() {
            words(text).map_err(|reason| value.wrong(reason))?
        } else {
            let neither = |_| value.wrong("neither a text nor a list of texts");
            let texts = value.list().map_err(neither)?.into_iter();
            let texts = texts.map(|arg| arg.text().map(str::to_owned));
            texts.collect::<Result<_>>()?
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
    let test = TestSpec { args };
    match (test.plan(), table.value("args")) {
        (Err(error), Some(value)) => Err(value.wrong(error.to_string())),
        _ => Ok(test),
    }
}

fn expect(table: &Table<'_>) -> Result<Expect> {
    let ids = |name| {
        let ids = |value: &Value<'_>| value.elements().iter().map(finding).collect();
        table.or(name, Vec::new(), ids)
    };
    let also = ids("also")?;
    let any_beside = also == ["any"];
    let expect = Expect {
        top: ids("top")?,
        with: ids("with")?,
        also: if any_beside { Vec::new() } else { also },
        any_beside,
        never: ids("never")?,
        goodput: table.read("goodput", range)?,
        utilisation: table.read("utilisation", shares)?,
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
    value.text().map(str::to_owned)
}

fn range(value: &Value<'_>) -> Result<RateRange> {
    value.amount(|text| {
        let (least, most) = two(text, "65M..125M", amount::bits)?;
        Ok(RateRange { least, most })
    })
}

fn shares(value: &Value<'_>) -> Result<ShareRange> {
    let share = |text: &str| {
        let share = text.trim().parse::<f64>().ok();
        share
            .filter(|share| share.is_finite() && *share >= 0.0)
            .ok_or_else(|| "a share is a number such as 0.85".to_owned())
    };
    value.amount(|text| {
        let (least, most) = two(text, "0.85..1", share)?;
        Ok(ShareRange { least, most })
    })
}

/// The ends of a range.
fn two<T: PartialOrd>(
    text: &str,
    example: &str,
    read: impl Fn(&str) -> std::result::Result<T, String>,
) -> std::result::Result<(T, T), String> {
    let (least, most) = text
        .split_once("..")
        .ok_or_else(|| format!("not a range such as \"{example}\""))?;
    let (least, most) = (read(least)?, read(most)?);
    if least > most {
        return Err("begins above its end".to_owned());
    }
    Ok((least, most))
}
