//! The policer detector on the labelled traces of Flach et al. (github.com/USC-NSL/policing-detection,
//! data/validation): a table of what was found where. The traces are not kept here.
//!
//!     POLICING_TRACES=/path cargo test --release -p linerate-readers --test readers -- --ignored --nocapture policing
//!
//! Files may be packed with xz; the name of each says whether a policer was there.

#![expect(
    clippy::print_stdout,
    reason = "the table is what it is run for, and a skip is said"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use linerate_explain::transcript::explain;
use linerate_model::transcript::Given;
use linerate_readers::capture::Reader;

/// What a name says of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Label {
    PolicerOnly,
    PolicerTwoFlows,
    PolicerCrossTraffic,
    Shaper,
    ShaperLoss,
    ShaperCrossTraffic,
}

impl Label {
    /// `PCIR` is a policer's rate, `SCIR` a shaper's, `XT` cross traffic, `CD1` a second flow.
    fn of(name: &str) -> Option<Self> {
        let policed = name.contains("-PCIR=");
        let shaped = name.contains("-SCIR=");
        match (policed, shaped, name.contains("-XT=1")) {
            (true, _, true) => Some(Self::PolicerCrossTraffic),
            (true, _, false) if name.contains("-CD1=") => Some(Self::PolicerTwoFlows),
            (true, _, false) => Some(Self::PolicerOnly),
            (_, true, true) => Some(Self::ShaperCrossTraffic),
            (_, true, false) if !name.contains("-LOSS=0%") => Some(Self::ShaperLoss),
            (_, true, false) => Some(Self::Shaper),
            _ => None,
        }
    }

    fn policed(self) -> bool {
        matches!(
            self,
            Self::PolicerOnly | Self::PolicerTwoFlows | Self::PolicerCrossTraffic
        )
    }
}

/// Whether the detector found a policer in a trace, and what else was said.
fn findings(path: &Path) -> Vec<String> {
    let name = path.display().to_string();
    let mut reader = Reader::new(&name);
    let mut pass = |input: &mut dyn std::io::Read| {
        let mut piece = vec![0; 1 << 20];
        loop {
            match input.read(&mut piece).unwrap() {
                0 => break,
                bytes => reader.push(&piece[..bytes]),
            }
        }
    };
    if path.extension().is_some_and(|end| end == "xz") {
        let mut child = Command::new("xz")
            .args(["-dc", "--"])
            .arg(path)
            .stdout(Stdio::piped())
            .spawn()
            .expect("xz unpacks the traces; apt install xz-utils");
        pass(child.stdout.as_mut().unwrap());
        assert!(child.wait().unwrap().success(), "xz -dc {name}");
    } else {
        pass(&mut fs::File::open(path).unwrap());
    }
    let reading = explain(vec![reader.finish().unwrap()], Given::default());
    if std::env::var_os("POLICING_SAYS").is_some() {
        print!("{}", linerate_report::transcript::report(&reading));
    }
    reading
        .explained
        .iter()
        .flat_map(|one| &one.findings)
        .map(|finding| finding.id.clone())
        .collect()
}

#[test]
#[ignore = "needs the published traces: POLICING_TRACES=/path"]
fn policing_is_found_in_the_published_traces_where_it_was_and_nowhere_else() {
    let folder = std::env::var_os("POLICING_TRACES").expect("POLICING_TRACES names no folder");
    let mut paths: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let end = path.extension().unwrap_or_default();
            end == "pcap" || end == "xz"
        })
        .collect();
    paths.sort();
    let mut table: BTreeMap<Label, [usize; 2]> = BTreeMap::new();
    for path in &paths {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let Some(label) = Label::of(&name) else {
            println!("not labelled: {name}");
            continue;
        };
        let said = findings(path);
        let found = said.iter().any(|id| id == "policer");
        let counts = table.entry(label).or_default();
        counts[0] += 1;
        counts[1] += usize::from(found);
        if found != label.policed() {
            println!(
                "{label:?} {}: {name}: {said:?}",
                if found { "FALSE" } else { "missed" }
            );
        }
    }
    println!("{:<22} {:>6} {:>6}", "label", "traces", "found");
    for (label, [traces, found]) in &table {
        println!("{:<22} {traces:>6} {found:>6}", format!("{label:?}"));
    }
    let sum = |policed: bool, only: bool| {
        table
            .iter()
            .filter(|(label, _)| label.policed() == policed)
            .filter(|(label, _)| !only || **label == Label::PolicerOnly)
            .fold([0, 0], |sum, (_, one)| [sum[0] + one[0], sum[1] + one[1]])
    };
    let ([without, falsely], [only, found]) = (sum(false, false), sum(true, true));
    assert!(
        without > 0 && only > 0,
        "{} traces, not of both kinds",
        paths.len()
    );
    assert_eq!(falsely, 0, "of {without} traces without a policer");
    assert!(
        found * 10 >= only * 9,
        "{found} of {only} policer-only traces"
    );
}
