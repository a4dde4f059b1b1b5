//! `linerate prove`: whether a change helped.

pub(crate) mod arguments;
mod boots;

use std::fmt::Write as _;
use std::path::Path;

use linerate_experiment::in_lab::{with_wishes, without_meaning};
use linerate_experiment::measured::{BY_NETEM, Measured};
use linerate_experiment::prove::{Pairs, Proof, Proving, Question, Side, Verdict};
use linerate_kernel::clock;
use linerate_lab::scenario::Scenario;
use linerate_model::units::{BitRate, whole};
use linerate_model::words;
use linerate_tune::profile::Wish;
use linerate_tune::state_folder::Lock;

use crate::action::Failure;
use crate::lab;
use crate::place::{self, Gave, HostPlace, Pace, Place, Wanted};
use crate::printer::Printer;
use crate::tune::{claim, wishes_in};
use arguments::ProveArguments;

/// One of the two that are compared.
struct Kind {
    wishes: Vec<Wish>,
    scenario: Option<Scenario>,
}

/// Runs the pairs and says what they say.
pub(crate) fn run(arguments: &ProveArguments, printer: &Printer) -> Result<(), Failure> {
    if arguments.boots.is_asked() {
        return boots::run(arguments, printer);
    }
    let read = |file: Option<&Path>| file.map_or_else(|| Ok(Vec::new()), wishes_in);
    let (before, after) = (
        read(arguments.before.as_deref())?,
        read(arguments.after.as_deref())?,
    );
    if same(&before, &after) {
        return Err(Failure::Usage(
            "both profiles set the same values: there is nothing to compare".to_owned(),
        ));
    }
    let words = arguments.words();
    let base = base(arguments, &words)?;
    let kinds = [before, after].map(|wishes| -> Result<Kind, Failure> {
        let scenario = base.as_ref().map(|base| with_wishes(base, &wishes));
        let scenario = scenario
            .transpose()
            .map_err(|error| Failure::Usage(error.to_string()))?;
        Ok(Kind { wishes, scenario })
    });
    let [before, after] = kinds;
    let kinds = [before?, after?];
    if let Some(peer) = &arguments.peer {
        // Before anything is saved or changed.
        HostPlace::request(peer, &words)?;
    }
    let lock = || claim(arguments.state.as_deref());
    let mut place = place::of(arguments.peer.as_deref(), wishes_of(&kinds), lock)?;
    let question = arguments.question();
    let proof = go(question, &kinds, &words, place.as_mut(), printer)?;
    // Restored before anything else can fail.
    drop(place);
    let told = Told::of(proof, &kinds);
    if arguments.json {
        printer.json(&told.document.to_string())?;
    } else {
        printer.print(&told.text)?;
    }
    ended(&told.proof)
}

/// Compares this host as it is with what a change makes of it, by tests to a peer. All is as it was when this returns.
/// The caller holds the lock of settings.
pub(crate) fn of_change(
    wishes: Vec<Wish>,
    peer: &str,
    question: Question,
    words: &[String],
    lock: &Lock,
    printer: &Printer,
) -> Result<Told, Failure> {
    let kinds = [Vec::new(), wishes].map(|wishes| Kind {
        wishes,
        scenario: None,
    });
    let held = || {
        let failed = |error| Failure::File(format!("cannot hand on the lock of settings: {error}"));
        lock.share().map_err(failed)
    };
    HostPlace::request(peer, words)?;
    let mut place = place::of(Some(peer), wishes_of(&kinds), held)?;
    let proof = go(question, &kinds, words, place.as_mut(), printer)?;
    drop(place);
    Ok(Told::of(proof, &kinds))
}

/// What a comparison says, for programs and for people.
pub(crate) struct Told {
    pub(crate) proof: Proof,
    pub(crate) document: serde_json::Value,
    pub(crate) text: String,
}

impl Told {
    fn of(proof: Proof, kinds: &[Kind; 2]) -> Self {
        let mut remarks = remarks(kinds);
        if proof.runs.iter().any(|run| run.measured.is_by_netem()) {
            remarks.push(BY_NETEM.to_owned());
        }
        let mut text = proof.text();
        text.push_str(&settings_text(kinds));
        for remark in &remarks {
            let _ = writeln!(text, "Note      {remark}");
        }
        let document = serde_json::json!({
            "software": linerate_model::record::Software::this_program(),
            "proof": proof,
            "settings": settings(kinds),
            "remarks": remarks,
        });
        Self {
            proof,
            document,
            text,
        }
    }
}

fn same(before: &[Wish], after: &[Wish]) -> bool {
    let sorted = |wishes: &[Wish]| {
        let all = wishes.iter();
        let all = all.map(|wish| format!("{}={}", wish.object, wish.value));
        let mut all: Vec<String> = all.collect();
        all.sort_unstable();
        all
    };
    sorted(before) == sorted(after)
}

/// The lab without profiles; `None` on hosts.
fn base(arguments: &ProveArguments, words: &[String]) -> Result<Option<Scenario>, Failure> {
    let scenario = match (&arguments.lab, arguments.path) {
        (Some(asked), _) => lab::scenario(asked)?,
        (None, true) => lab::scenario_by_options(&arguments.options)?,
        (None, false) if arguments.options.is_given() => {
            return Err(Failure::Usage(
                "--rate, --rtt, --queue, --loss and --mode make a lab's path: add --path; the path to a peer is what it is"
                    .to_owned(),
            ));
        }
        (None, false) => return Ok(None),
    };
    let mut scenario = scenario;
    scenario.engine = arguments.engine.unwrap_or(scenario.engine);
    // The scenario's reader says what a lab's test cannot have.
    let quoted: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
    let text = format!("name = \"test\"\ntest.args = [{}]\n", quoted.join(", "));
    Scenario::parse("the test's options", &text)?;
    scenario.test.args.extend(words.iter().cloned());
    HostPlace::request("192.0.2.1", &scenario.test.args)?;
    Ok(Some(scenario))
}

fn wishes_of(kinds: &[Kind; 2]) -> impl Iterator<Item = &Wish> {
    kinds.iter().flat_map(|kind| &kind.wishes)
}

fn go(
    question: Question,
    kinds: &[Kind; 2],
    words: &[String],
    place: &mut dyn Place,
    printer: &Printer,
) -> Result<Proof, Failure> {
    let mut proving = Proving::new(question);
    let mut pace = Pace::default();
    // Ends: each turn makes a run, of which there are at most three times twice the pairs.
    while let Some(turn) = proving.upcoming() {
        let kind = &kinds[usize::from(turn.side == Side::After)];
        let begun = clock::monotonic();
        let gave = place.measure(Wanted {
            wishes: &kind.wishes,
            words,
            scenario: kind.scenario.as_ref(),
            seed: question.seed.wrapping_add(u64::from(turn.pair)) & (u64::MAX >> 1),
        })?;
        pace.took(clock::monotonic().since(begun));
        let measured = match gave {
            Gave::Measured(measured) => *measured,
            Gave::Impossible(why) => {
                return Err(Failure::Setting(format!(
                    "the settings {} are not possible, so nothing is compared: {why}. All settings are as before",
                    turn.side.word()
                )));
            }
            Gave::Stopped => {
                proving.stop("it was stopped");
                break;
            }
        };
        let again = words::when(turn.attempt > 1, ", once more");
        let line = format!(
            "  pair {}, {}{again}: {}",
            turn.pair,
            turn.side.word(),
            said(&measured)
        );
        proving.took(measured);
        let left = usize::try_from(proving.left()).unwrap_or(usize::MAX);
        let at_most = match question.pairs {
            Pairs::UntilDecided(_) => pace.left(left).replace("about", "at most about"),
            Pairs::Exactly(_) => pace.left(left),
        };
        printer.tell(&format!("{line}{at_most}"));
    }
    Ok(proving.proof())
}

pub(crate) fn said(measured: &Measured) -> String {
    let rate = measured.goodput_bps.map(|bps| BitRate(whole(bps)));
    let mut text = match (&measured.failed, rate) {
        (Some(why), _) => format!("failed: {why}"),
        (None, Some(rate)) => rate.to_string(),
        (None, None) => "goodput unknown".to_owned(),
    };
    if let Some(why) = measured.disturbed.first() {
        let _ = write!(text, " (disturbed: {why})");
    }
    text
}

fn remarks(kinds: &[Kind; 2]) -> Vec<String> {
    let in_lab = kinds.iter().filter(|kind| kind.scenario.is_some());
    let mut all: Vec<String> = in_lab
        .filter_map(|kind| without_meaning(&kind.wishes))
        .collect();
    all.dedup();
    all
}

/// What each side sets: object, before, after.
fn settings(kinds: &[Kind; 2]) -> Vec<[String; 3]> {
    let objects = wishes_of(kinds).map(|wish| wish.object.to_string());
    let mut objects: Vec<String> = objects.collect();
    objects.sort_unstable();
    objects.dedup();
    let value = |kind: &Kind, object: &str| {
        let mut wishes = kind.wishes.iter();
        let wish = wishes.rfind(|wish| wish.object.to_string() == *object);
        wish.map_or_else(|| "as it is".to_owned(), |wish| wish.value.clone())
    };
    let row = |object: String| {
        let [before, after] = kinds.each_ref().map(|kind| value(kind, &object));
        [object, before, after]
    };
    objects.into_iter().map(row).collect()
}

fn settings_text(kinds: &[Kind; 2]) -> String {
    let rows = settings(kinds);
    let width = |at: usize, least: usize| {
        let widths = rows.iter().map(|row| row[at].chars().count());
        widths.fold(least, usize::max)
    };
    let (object, before) = (width(0, 7), width(1, 6));
    let mut text = format!("\n{:<object$}  {:<before$}  after\n", "setting", "before");
    for [name, old, new] in &rows {
        let _ = writeln!(text, "{name:<object$}  {old:<before$}  {new}");
    }
    text
}

/// The failure that a comparison without an answer is.
pub(crate) fn ended(proof: &Proof) -> Result<(), Failure> {
    match (&proof.stopped, proof.verdict) {
        (Some(why), Verdict::Undecided { .. }) => Err(Failure::Incomplete(format!(
            "the comparison ended early: {why}; the measurements so far are above, and every setting is restored"
        ))),
        (_, Verdict::Undecided { .. }) => Err(Failure::Undecided(
            "the pairs do not decide whether the change helps; the report shows how many more would"
                .to_owned(),
        )),
        _ => Ok(()),
    }
}
