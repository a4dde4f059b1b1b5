//! What the words of an ask amount to: they are parsed as the command line that they are, and each option is looked at by its
//! type. What is not known here is refused.

use std::ffi::OsString;
use std::path::Path;

use linerate_agent::law::{AS_ALLOWED, Deed, Load, Refusal, Rule};
use linerate_model::plan::{Direction, End, Plan};
use linerate_model::units::Nanos;
use linerate_watch::plan::test_options::rate;
use linerate_wire::agent::{Ask, Word};

use crate::action::Action;
use crate::arguments::{Command, Runs, ServeArguments, TestArguments, parse};
use crate::session_token;

/// Stands for a file that the command writes and that goes back to the hub. No text of an ask may have its first letter.
const OUT: &str = "\u{1}out-";
/// A counter-test makes so many tests after the first at most.
const COUNTER_TESTS: u32 = 7;
/// A server that is not for one test alone is for one with counter-tests.
const SERVED_TESTS: u32 = COUNTER_TESTS;

/// What an ask amounts to.
///
/// # Errors
/// What a hub may never ask for, whatever the law says.
pub(super) fn read(ask: &Ask) -> Result<Deed, Refusal> {
    let words = words(ask)?;
    let command = match parse(words) {
        Action::Run(command) => command,
        Action::Refuse(why) => return Err(never(format!("it cannot be read: {why}"))),
        Action::Print(_) => return Err(never("it asks for a help text")),
    };
    let deed = match command {
        Command::Host(host) if host.is_this_host() => Deed::Facts,
        // Without targets it says the host's own addresses.
        Command::Reach(reach) if reach.addresses.is_empty() => Deed::Facts,
        Command::Reach(reach) => Deed::Reach(
            reach
                .addresses
                .iter()
                .map(std::net::SocketAddr::ip)
                .collect(),
        ),
        Command::Test(test) => Deed::Test(tested(*test)?),
        Command::Serve(serve) => Deed::Serve(served(&serve)?),
        Command::Tune(_) => Deed::Tune,
        _ => return Err(never("it is none of test, serve, reach, host and tune")),
    };
    match deed {
        // Changes of settings come with files, such as profiles.
        Deed::Tune => check_environment(ask, false)?,
        Deed::Serve(_) => {
            no_files(ask)?;
            check_environment(ask, true)?;
            // No variable comes twice, and none but the token comes at all.
            let has_token = matches!(&*ask.environment, [(_, token)] if !token.is_empty());
            if !has_token {
                return Err(never(
                    "a server without a session token would serve anybody",
                ));
            }
        }
        Deed::Facts | Deed::Reach(_) => {
            no_files(ask)?;
            check_environment(ask, false)?;
        }
        Deed::Test(_) => {
            no_files(ask)?;
            check_environment(ask, true)?;
        }
    }
    Ok(deed)
}

fn never(why: impl Into<String>) -> Refusal {
    Rule::Verbs.refuses(why)
}

/// The command line, with a stand-in for each file that it writes.
fn words(ask: &Ask) -> Result<Vec<OsString>, Refusal> {
    let mut words = vec![OsString::from("linerate")];
    for word in &ask.words {
        words.push(match word {
            Word::Text(text) if text.contains(['\u{1}', '\0']) => {
                return Err(never("a word has control characters"));
            }
            Word::Text(text) => text.into(),
            Word::In(at) => format!("in-{at}").into(),
            Word::Out(at) => format!("{OUT}{at}").into(),
        });
    }
    Ok(words)
}

fn no_files(ask: &Ask) -> Result<(), Refusal> {
    let comes_in = |word: &Word| matches!(word, Word::In(_));
    if ask.files.is_empty() && !ask.words.iter().any(comes_in) {
        return Ok(());
    }
    Err(never("files came with it"))
}

/// Nothing but the session token may be set: other variables change what a program does. No variable may come twice: the
/// last one counts, and an empty one removes those before.
fn check_environment(ask: &Ask, may_have_token: bool) -> Result<(), Refusal> {
    if ask.environment.len() > 1 {
        return Err(never("it sets more variables than the session token"));
    }
    for (name, _) in &ask.environment {
        if !may_have_token || name != session_token::VARIABLE {
            let name = linerate_model::plain_text::PlainText::from(name.as_str());
            return Err(never(format!("it sets the variable {name}")));
        }
    }
    Ok(())
}

/// Whether a path is a file that goes back to the hub.
fn goes_back(path: &Path) -> bool {
    path.to_str().is_some_and(|path| path.starts_with(OUT))
}

fn tested(test: TestArguments) -> Result<Load, Refusal> {
    if test
        .between
        .hosts(test.host.as_deref())
        .map_or(true, |hosts| hosts.is_some())
    {
        return Err(never("it starts an end on another host"));
    }
    if test.username.is_some() || test.public_key.is_some() || !test.files.is_empty() {
        return Err(never("it names a file or a user of this host"));
    }
    if test.transfer.source.is_some() || test.transfer.target.is_some() {
        return Err(never("it sends files of this host"));
    }
    if test.output.as_deref().is_some_and(|path| !goes_back(path)) {
        return Err(never("it writes a file of this host"));
    }
    let more = match test.runs() {
        Runs::One => 0,
        Runs::CounterTests => COUNTER_TESTS,
        Runs::Diagnose(_) | Runs::Rfc6349 => {
            return Err(never("--diagnose and --rfc6349 have no bound of bytes"));
        }
    };
    let request = test.request().map_err(never)?;
    Ok(load(&request.plan, more))
}

fn load(plan: &Plan, more: u32) -> Load {
    let rate = rate(plan);
    let bytes_take = |bytes: u64| {
        let bits = u128::from(bytes) * 8_000_000_000;
        let nanos = rate.map(|rate| bits / u128::from(rate.0.max(1)));
        let nanos = nanos.and_then(|nanos| u64::try_from(nanos).ok());
        Nanos(nanos.unwrap_or(u64::MAX))
    };
    let seconds = match plan.end {
        End::TimeNs(time) => time,
        End::Bytes(bytes) => bytes_take(bytes.0),
        End::Blocks(blocks) => bytes_take(blocks.saturating_mul(plan.block_bytes.0)),
    };
    Load {
        peer: plan.host.parse().ok(),
        seconds: seconds.plus(plan.omit_ns),
        rate,
        is_both: plan.direction == Direction::Both,
        more,
    }
}

fn served(serve: &ServeArguments) -> Result<Load, Refusal> {
    if serve.output.is_some() || serve.private_key.is_some() || serve.users.is_some() {
        return Err(never("it names a file of this host"));
    }
    if !serve.allow_target.is_empty() {
        return Err(never("it takes files into a folder of this host"));
    }
    if !serve.allow.is_empty() {
        return Err(never("the host's law says whom its server allows"));
    }
    Ok(Load {
        peer: None,
        seconds: serve.max_duration.unwrap_or(AS_ALLOWED),
        rate: serve.max_rate.filter(|rate| rate.0 > 0),
        // The server's bound is that of both directions together.
        is_both: false,
        more: if serve.one_off { 0 } else { SERVED_TESTS },
    })
}

#[cfg(test)]
mod tests {
    use linerate_model::units::BitRate;

    use super::*;

    fn ask(line: &str) -> Ask {
        let word = |word: &str| match word {
            "OUT0" => Word::Out(0),
            "IN0" => Word::In(0),
            word => word.into(),
        };
        Ask {
            words: line.split_whitespace().map(word).collect(),
            ..Ask::default()
        }
    }

    fn with_token(line: &str) -> Ask {
        Ask {
            environment: vec![(session_token::VARIABLE.to_owned(), "t".to_owned())],
            ..ask(line)
        }
    }

    #[test]
    fn what_the_hub_sends_is_understood() {
        assert_eq!(read(&ask("host --json")), Ok(Deed::Facts));
        let to = ["10.0.0.1".parse().unwrap()].into();
        assert_eq!(
            read(&ask("reach --within 2s 10.0.0.1:5")),
            Ok(Deed::Reach(to))
        );
        let line = "test 10.0.0.7 -p 5201 --report-elsewhere --time=10 --omit=2 --bitrate=1G --parallel=4 -R -o OUT0";
        let load = Load {
            peer: "10.0.0.7".parse().ok(),
            seconds: Nanos::from_millis(12_000),
            rate: Some(BitRate(4_000_000_000)),
            ..Load::default()
        };
        assert_eq!(read(&with_token(line)), Ok(Deed::Test(load)));
        let line = "serve -p 0 --json-stream --report-elsewhere --wait 60s --one-off --max-duration 12s --max-rate 20000000";
        let load = Load {
            seconds: Nanos::from_millis(12_000),
            rate: Some(BitRate(20_000_000)),
            ..Load::default()
        };
        assert_eq!(read(&with_token(line)), Ok(Deed::Serve(load)));
        let Ok(Deed::Serve(load)) = read(&with_token("serve -p 0 --one-off")) else {
            panic!("no server");
        };
        assert_eq!((load.seconds, load.rate), (AS_ALLOWED, None));
    }

    #[test]
    fn the_time_of_a_test_by_bytes_is_that_of_its_rate() {
        let Ok(Deed::Test(load)) = read(&ask("test 10.0.0.7 -n 1000000 -b 8M --bidir")) else {
            panic!("no test");
        };
        assert_eq!(load.seconds, Nanos::from_millis(1_000));
        assert!(load.is_both);
        let Ok(Deed::Test(load)) = read(&ask("test 10.0.0.7 -n 1000000")) else {
            panic!("no test");
        };
        assert_eq!(load.seconds, Nanos(u64::MAX));
        // Without a rate: 0 means as fast as it goes.
        let Ok(Deed::Test(load)) = read(&ask("test 10.0.0.7 -b 0")) else {
            panic!("no test");
        };
        assert_eq!(load.rate, None);
    }

    #[test]
    fn kernel_pacing_bounds_tcp_alone() {
        for (line, rate) in [
            ("test 10.0.0.7 -b 200M --fq-rate 1M", Some(1_000_000)),
            ("test 10.0.0.7 --fq-rate 1M -P 2", Some(2_000_000)),
            ("test 10.0.0.7 -u -b 200M --fq-rate 1M", Some(200_000_000)),
            ("test 10.0.0.7 -u -b 0 --fq-rate 1M", None),
        ] {
            let Ok(Deed::Test(load)) = read(&ask(line)) else {
                panic!("{line}");
            };
            assert_eq!(load.rate, rate.map(BitRate), "{line}");
        }
    }

    #[test]
    fn a_token_that_is_removed_again_is_none() {
        let with = |values: &[&str]| {
            let variable = |value: &&str| (session_token::VARIABLE.to_owned(), (*value).to_owned());
            Ask {
                environment: values.iter().map(variable).collect(),
                ..ask("serve --one-off")
            }
        };
        assert!(read(&with(&["t"])).is_ok());
        for values in [&["t", ""][..], &["", "t"], &["t", "t"], &[""], &[]] {
            let refusal = read(&with(values)).unwrap_err();
            assert_eq!(refusal.rule, Rule::Verbs, "{values:?}");
        }
        let mut test = ask("test 10.0.0.7");
        test.environment = with(&["t", ""]).environment;
        read(&test).unwrap_err();
    }

    #[test]
    fn what_could_touch_the_host_is_refused_however_it_is_written() {
        for line in [
            "test 10.0.0.7 -o /etc/passwd",
            "test 10.0.0.7 -o/etc/passwd",
            "test 10.0.0.7 --output=/etc/passwd",
            "test 10.0.0.7 -o out-0",
            "test 10.0.0.7 --html /tmp/x",
            "test 10.0.0.7 --source /etc/shadow --target /tmp",
            "test 10.0.0.7 --rsa-public-key-path /etc/shadow --username x",
            "test ssh://10.0.0.7",
            "test --from a --to b",
            "test 10.0.0.7 --diagnose",
            "test 10.0.0.7 --rfc6349",
            "test --help",
            "test",
            "testing",
            "host --root /etc",
            "host --on n1",
            "host audit",
            "hub",
            "agent --stdio",
            "prove x",
            "observe",
            "iperf3 -c 10.0.0.7",
            "",
        ] {
            let refusal = read(&ask(line)).unwrap_err();
            assert_eq!(refusal.rule, Rule::Verbs, "{line}");
        }
        for line in [
            "serve -o /tmp/x",
            "serve --allow 0.0.0.0/0",
            "serve --allow-target /root/.ssh",
            "serve --allow-target=/root/.ssh",
            "serve --rsa-private-key-path /k --authorized-users-path /u",
        ] {
            read(&with_token(line)).unwrap_err();
        }
        // An open server.
        read(&ask("serve --one-off")).unwrap_err();
    }

    #[test]
    fn files_and_variables_come_with_no_test() {
        let mut preload = ask("test 10.0.0.7");
        preload.environment = vec![("LD_PRELOAD".to_owned(), "in-0".to_owned())];
        let refusal = read(&preload).unwrap_err();
        assert!(refusal.why.contains("LD_PRELOAD"), "{refusal}");
        let mut file = ask("test 10.0.0.7");
        file.files = vec![linerate_wire::agent::FileIn {
            name: "x".to_owned(),
            length: 1,
        }];
        read(&file).unwrap_err();
        read(&ask("test IN0")).unwrap_err();
        read(&ask("host --json \u{1}out-0")).unwrap_err();
    }
}
