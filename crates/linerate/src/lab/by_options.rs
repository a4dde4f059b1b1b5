//! A path by the options of `lab up`: they become a scenario's text, and what is wrong with them is said of the
//! option.

use linerate_document::DocumentError;
use linerate_lab::scenario::Scenario;

use super::arguments::UpArguments;
use crate::action::Failure;

/// The text, and what it means.
pub(super) fn scenario(arguments: &UpArguments) -> Result<(String, Scenario), Failure> {
    let text = text_of(arguments);
    let parsed =
        Scenario::parse("options", &text).map_err(|error| Failure::Usage(of_the_option(error)))?;
    Ok((text, parsed))
}

/// Nobody wrote a file, so no line of one is named.
fn of_the_option(error: DocumentError) -> String {
    match error {
        DocumentError::Value {
            key,
            found,
            reason,
            expected,
            ..
        } => format!(
            "--{key} {}: {reason} (expected: {expected})",
            found.trim_matches('"')
        ),
        DocumentError::Contradiction { reason, .. } => {
            format!("the options cannot go together: {reason}")
        }
        error => error.to_string(),
    }
}

/// The options that make the path, in the words in which they were typed.
fn given(arguments: &UpArguments) -> Vec<(&'static str, String)> {
    let all = [
        ("rate", arguments.rate.clone()),
        ("rtt", arguments.rtt.clone()),
        ("jitter", arguments.jitter.clone()),
        ("queue", arguments.queue.clone()),
        ("loss", arguments.loss.map(|share| format!("{share:?}"))),
    ];
    all.into_iter()
        .filter_map(|(key, value)| Some((key, value?)))
        .collect()
}

fn text_of(arguments: &UpArguments) -> String {
    // Nothing that a TOML string cannot hold is part of any value.
    let quoted = |text: &str| {
        let plain = text.chars().map(|each| {
            if each.is_control() || matches!(each, '\\' | '"') {
                '?'
            } else {
                each
            }
        });
        format!("\"{}\"", plain.collect::<String>())
    };
    let path = given(arguments);
    let about: Vec<String> = path
        .iter()
        .map(|(key, value)| format!("{key} {value}"))
        .collect();
    let about = if about.is_empty() {
        "no delay, unlimited".to_owned()
    } else {
        about.join(", ")
    };
    // The path's name has other rules than a scenario's.
    let mut lines = vec![
        "name = \"by-options\"".to_owned(),
        format!("about = {}", quoted(&about)),
    ];
    lines.extend(arguments.seed.map(|seed| format!("seed = {seed}")));
    let mode = arguments.mode.as_deref();
    lines.extend(mode.map(|mode| format!("mode = {}", quoted(mode))));
    let engine = arguments.engine.as_deref();
    lines.extend(engine.map(|engine| format!("engine = {}", quoted(engine))));
    lines.push("[path]".to_owned());
    lines.extend(path.iter().map(|(key, value)| match *key {
        "loss" => format!("{key} = {value}"),
        _ => format!("{key} = {}", quoted(value)),
    }));
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_lab::scenario::EngineWish;
    use linerate_model::units::Nanos;

    fn arguments() -> UpArguments {
        UpArguments {
            name: "My.Lab_1".to_owned(),
            scenario: None,
            rate: Some("1G".to_owned()),
            rtt: Some("60ms".to_owned()),
            jitter: None,
            queue: Some("2x".to_owned()),
            loss: Some(1e-4),
            mode: Some("packet".to_owned()),
            engine: Some("nfqueue".to_owned()),
            seed: Some(9),
        }
    }

    #[test]
    fn options_are_a_scenario_whatever_its_path_is_called() {
        let (_, scenario) = scenario(&arguments()).unwrap();
        assert_eq!(scenario.seed, 9);
        assert_eq!(scenario.engine, EngineWish::Nfqueue);
        assert_eq!(scenario.path.rtt(), Nanos::from_millis(60));
        assert_eq!(scenario.about, "rate 1G, rtt 60ms, queue 2x, loss 0.0001");
    }

    #[test]
    fn what_is_wrong_is_said_of_the_option() {
        let error = |arguments| scenario(&arguments).unwrap_err().to_string();
        let wrong = error(UpArguments {
            rate: Some("fa\"\u{1}st".to_owned()),
            ..arguments()
        });
        assert!(wrong.starts_with("--rate fa??st: "), "{wrong}");
        let wrong = error(UpArguments {
            rate: None,
            ..arguments()
        });
        let unknown = error(UpArguments {
            engine: Some("tun".to_owned()),
            ..arguments()
        });
        assert!(unknown.starts_with("--engine tun: "), "{unknown}");
        assert!(
            wrong.contains("'queue'") && !wrong.contains("options:"),
            "{wrong}"
        );
        let wrong = error(UpArguments {
            seed: Some(u64::MAX),
            ..arguments()
        });
        assert!(
            wrong.starts_with("--seed 18446744073709551615: "),
            "{wrong}"
        );
    }
}
