//! From the specification of a throughput test to options of `linerate test`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::variables::has_variable;

/// A test's options, and the keys of its specification that have none.
#[derive(Debug, Default)]
pub(super) struct Options {
    pub(super) words: Vec<String>,
    /// A key and why it is not read.
    pub(super) ignored: BTreeMap<String, &'static str>,
}

/// What a key becomes.
enum Meaning {
    /// It is read elsewhere, or says only how the program that runs the test is to be reached or to report.
    Elsewhere,
    Switch(&'static str),
    Value(&'static str),
    Seconds(&'static str),
    Family,
    Affinity,
    None(&'static str),
}

fn meaning(key: &str) -> Meaning {
    match key {
        "source" | "dest" | "source-node" | "dest-node" | "reverse" | "single-ended"
        | "single-ended-port" | "schema" | "interval" => Meaning::Elsewhere,
        "duration" => Meaning::Seconds("-t"),
        "omit" => Meaning::Seconds("-O"),
        "parallel" => Meaning::Value("-P"),
        "bandwidth" => Meaning::Value("-b"),
        "fq-rate" => Meaning::Value("--fq-rate"),
        "window-size" => Meaning::Value("-w"),
        "mss" => Meaning::Value("-M"),
        "buffer-length" => Meaning::Value("-l"),
        "ip-tos" => Meaning::Value("-S"),
        "congestion" => Meaning::Value("-C"),
        "flow-label" => Meaning::Value("-L"),
        "udp" => Meaning::Switch("-u"),
        "no-delay" => Meaning::Switch("-N"),
        "zero-copy" => Meaning::Switch("-Z"),
        "ip-version" => Meaning::Family,
        "client-cpu-affinity" | "server-cpu-affinity" => Meaning::Affinity,
        "local-address" => {
            Meaning::None("each host sends from the address that it has in the test")
        }
        "link-rtt" => Meaning::None("the RTT is measured"),
        "bandwidth-strict" | "burst-size" => Meaning::None("linerate paces by its own rule"),
        "loopback" => Meaning::None("a host is not tested against itself"),
        "reverse-connections" => Meaning::None("linerate connects from whichever end can"),
        _ => Meaning::None("it is not known"),
    }
}

/// The options of a specification.
///
/// # Errors
/// A key whose value cannot be read.
pub(super) fn options(spec: &Map<String, Value>) -> Result<Options, String> {
    let mut options = Options::default();
    for (key, value) in spec {
        let meaning = meaning(key);
        if let Meaning::Elsewhere = meaning {
            continue;
        }
        if let Meaning::None(why) = meaning {
            options.ignored.insert(key.clone(), why);
            continue;
        }
        if has_variable(value) {
            let why = "its value differs from pair to pair";
            options.ignored.insert(key.clone(), why);
            continue;
        }
        let wrong = || format!("'{key}' is {value}");
        match meaning {
            Meaning::Switch(option) => {
                if value.as_bool().ok_or_else(wrong)? {
                    options.words.push(option.to_owned());
                }
            }
            Meaning::Value(option) => {
                let text = text_of(value).ok_or_else(wrong)?;
                options.words.extend([option.to_owned(), text]);
            }
            Meaning::Seconds(option) => {
                let millis = value.as_str().and_then(millis).ok_or_else(wrong)?;
                let seconds = if option == "-O" {
                    millis.div_ceil(1000).to_string()
                } else {
                    (millis as f64 / 1000.0).to_string()
                };
                options.words.extend([option.to_owned(), seconds]);
            }
            Meaning::Family => match text_of(value).as_deref() {
                Some("4") => options.words.push("-4".to_owned()),
                Some("6") => options.words.push("-6".to_owned()),
                _ => return Err(wrong()),
            },
            Meaning::Affinity | Meaning::Elsewhere | Meaning::None(_) => {}
        }
    }
    affinity(spec, &mut options);
    Ok(options)
}

fn affinity(spec: &Map<String, Value>, options: &mut Options) {
    let cpu = |key: &str| spec.get(key).and_then(text_of);
    match (cpu("client-cpu-affinity"), cpu("server-cpu-affinity")) {
        (Some(client), Some(server)) => {
            let cpus = format!("{client},{server}");
            options.words.extend(["-A".to_owned(), cpus]);
        }
        (Some(client), None) => options.words.extend(["-A".to_owned(), client]),
        (None, Some(_)) => {
            let why = "it needs client-cpu-affinity beside it";
            options
                .ignored
                .insert("server-cpu-affinity".to_owned(), why);
        }
        (None, None) => {}
    }
}

/// A number or a text as a word; nothing that would read as an option.
fn text_of(value: &Value) -> Option<String> {
    let text = match value {
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        _ => return None,
    };
    (!text.is_empty() && !text.starts_with('-')).then_some(text)
}

/// An ISO 8601 duration as pSConfig takes it, without years and months, ms: `PT6H`, `P1DT30.5S`.
pub(super) fn millis(text: &str) -> Option<u64> {
    let mut rest = text.strip_prefix('P')?;
    let mut in_day = false;
    let mut seconds = 0.0;
    let mut any = false;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix('T')
            && !in_day
        {
            (in_day, rest) = (true, after);
            continue;
        }
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        let unit = rest[end..].chars().next()?;
        let each = match (in_day, unit) {
            (false, 'W') => 604_800.0,
            (false, 'D') => 86_400.0,
            (true, 'H') => 3600.0,
            (true, 'M') => 60.0,
            (true, 'S') => 1.0,
            _ => return None,
        };
        seconds += number * each;
        any = true;
        rest = &rest[end + unit.len_utf8()..];
    }
    // A thousand years.
    (any && seconds <= 3.2e10).then(|| linerate_model::units::whole(seconds * 1000.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_iso_8601() {
        assert_eq!(millis("PT6H"), Some(21_600_000));
        assert_eq!(millis("P1W2DT3H4M5.5S"), Some(788_645_500));
        assert_eq!(millis("PT0S"), Some(0));
        for wrong in [
            "", "P", "PT", "6H", "P6H", "PT6D", "PT6", "PT-6S", "PT.S", "PT6HT1M", "P1Y",
        ] {
            assert_eq!(millis(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_specification_becomes_options_and_what_has_none_is_named() {
        let spec = serde_json::json!({
            "source": "{% address[0] %}", "dest": "{% address[1] %}", "duration": "PT10.5S", "omit": "PT5S",
            "parallel": 4, "bandwidth": 8_000_000_000_u64, "ip-version": 6, "udp": true, "no-delay": false,
            "window-size": 1024, "mss": "{% flip %}", "server-cpu-affinity": 3, "burst-size": 9, "moon": 1
        });
        let options = options(spec.as_object().unwrap()).unwrap();
        let words = "-t 10.5 -O 5 -P 4 -b 8000000000 -6 -u -w 1024";
        assert_eq!(options.words.join(" "), words);
        let ignored: Vec<&str> = options.ignored.keys().map(String::as_str).collect();
        assert_eq!(
            ignored,
            ["burst-size", "moon", "mss", "server-cpu-affinity"]
        );
    }

    #[test]
    fn a_value_that_is_none_is_refused_with_its_key() {
        let refused = |spec: Value| options(spec.as_object().unwrap()).unwrap_err();
        assert_eq!(
            refused(serde_json::json!({"udp": "yes"})),
            "'udp' is \"yes\""
        );
        assert_eq!(
            refused(serde_json::json!({"parallel": [1]})),
            "'parallel' is [1]"
        );
        assert_eq!(
            refused(serde_json::json!({"congestion": "-Z"})),
            "'congestion' is \"-Z\""
        );
    }
}
