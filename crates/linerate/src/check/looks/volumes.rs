//! md, DRBD and LVM: what their own words say, by the readers and rules of `linerate explain`.

use linerate_check::judge;
use linerate_explain::transcript::explain;
use linerate_model::check::Item;
use linerate_model::storage::{Array, ConnectionState, Drbd, LogicalVolume};
use linerate_model::transcript::{Given, Part, Transcript};

use super::{cannot_tell, nothing, run};

/// Attributes of a logical volume (lvs(8)): the ninth letter is its health, `p` for one of whose devices some are missing.
const HEALTH: usize = 8;
/// Columns that the reader knows.
const COLUMNS: &str = "lv_name,vg_name,lv_attr,lv_size,data_percent,metadata_percent,copy_percent,segtype,raid_mismatch_count,devices";

/// What explain says of a text. `fails` tells the parts after which the node cannot go on.
fn explained(name: &str, text: &[u8], fails: impl Fn(&Part) -> bool) -> Vec<Item> {
    let transcript: Transcript = match linerate_readers::read(name, text) {
        Ok(transcript) => transcript,
        Err(error) => return vec![cannot_tell("", format!("cannot read {name}: {error}"))],
    };
    let failed = transcript.parts.iter().any(fails);
    let reading = explain(vec![transcript], Given::default());
    let parts = reading.explained.into_iter().flat_map(|part| part.findings);
    let items = judge::findings(parts.collect(), |_| failed);
    if items.is_empty() { nothing() } else { items }
}

pub(super) fn md() -> Vec<Item> {
    let Ok(text) = std::fs::read("/proc/mdstat") else {
        return nothing();
    };
    // "Personalities" and "unused devices" stand there without any array.
    let has_arrays = String::from_utf8_lossy(&text)
        .lines()
        .any(|line| line.contains(" : "));
    if !has_arrays {
        return nothing();
    }
    explained("/proc/mdstat", &text, |part| match part {
        Part::Arrays(arrays) => arrays.arrays.iter().any(is_down),
        _ => false,
    })
}

/// An array that does not run, or one without copies of which a device is missing. A container of external metadata (IMSM, DDF) never
/// runs: all its members are spares, as those of an array that was not assembled are as well, so that neither is called a failure.
fn is_down(array: &Array) -> bool {
    let all_spare = array.members.iter().all(|one| one.marks.contains('S'));

    let missing = array.disks.is_some_and(|[wanted, there]| there < wanted);
    let level = array.level.as_deref();
    array.state.starts_with("inactive") && !all_spare
        || missing && level.is_some_and(|level| ["raid0", "linear"].contains(&level))
}

pub(super) fn drbd() -> Vec<Item> {
    let Ok(mut text) = std::fs::read("/proc/drbd") else {
        return nothing();
    };
    let has_devices = |text: &[u8]| String::from_utf8_lossy(text).contains("cs:");
    if !has_devices(&text) {
        // Version 9 only says its version there.
        match output(&["drbdsetup", "status", "--verbose", "--statistics"]) {
            Ok(out) if out.iter().any(|byte| !byte.is_ascii_whitespace()) => text = out,
            Ok(_) => return nothing(),
            Err(item) => return vec![item],
        }
    }
    explained("drbd", &text, |part| match part {
        Part::Drbd(status) => {
            let mut devices = status.devices.iter();
            devices.any(|device| {
                device.connection != ConnectionState::Unconfigured && has_no_data(device)
            })
        }
        _ => false,
    })
}

/// A device that cannot be read and written here: held back, without quorum, or with no good disk at either end.
fn has_no_data(device: &Drbd) -> bool {
    let good = device.disks.iter().any(|disk| disk.name() == "UpToDate");
    device.suspended || device.quorum_lost || !good
}

pub(super) fn lvm() -> Vec<Item> {
    let asked = [
        "lvs",
        "--all",
        "--reportformat",
        "json",
        "--units",
        "b",
        "--nosuffix",
        "-o",
        COLUMNS,
    ];
    match output(&asked) {
        Ok(out) => explained("lvs", &out, |part| match part {
            Part::Volumes(volumes) => volumes.volumes.iter().any(is_partial),
            _ => false,
        }),
        Err(item) => vec![item],
    }
}

fn is_partial(volume: &LogicalVolume) -> bool {
    volume.attributes.as_bytes().get(HEALTH) == Some(&b'p')
}

/// What a program prints; the item that says why there is nothing.
fn output(words: &[&str]) -> Result<Vec<u8>, Item> {
    let cannot = |why: String| cannot_tell("", format!("{} {}: {why}", words[0], words[1]));
    let done = run(words).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => cannot_tell("", format!("{} is not installed", words[0])),
        _ => cannot(error.to_string()),
    })?;
    if done.status.success() {
        return Ok(done.stdout);
    }
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    Err(cannot(format!(
        "it ended with {}: {}",
        done.status,
        said.trim()
    )))
}

#[cfg(test)]
mod tests {
    use linerate_model::check::State;

    use super::*;

    fn worst(text: &str) -> State {
        let items = explained("/proc/mdstat", text.as_bytes(), |part| match part {
            Part::Arrays(arrays) => arrays.arrays.iter().any(is_down),
            _ => false,
        });
        judge::state(&items)
    }

    #[test]
    fn a_degraded_mirror_is_a_warning_and_a_broken_stripe_a_failure() {
        let mirror = |marks: &str, disks: &str| {
            format!(
                "Personalities : [raid1]\nmd0 : active raid1 sdb1[1]{marks} sda1[0]\n      1046528 blocks super 1.2 {disks}\n\nunused devices: <none>\n"
            )
        };
        assert_eq!(worst(&mirror("", "[2/2] [UU]")), State::Ok);
        assert_eq!(worst(&mirror("(F)", "[2/1] [U_]")), State::Warn);
        let inactive = |marks: &str| {
            format!(
                "Personalities : [raid1]\nmd0 : inactive sda1[0]{marks}\n      1046528 blocks super 1.2\n\nunused devices: <none>\n"
            )
        };
        assert_eq!(worst(&inactive("")), State::Fail);
        assert_eq!(
            worst(&inactive("(S)")),
            State::Warn,
            "as a container of IMSM is always"
        );
    }
}
