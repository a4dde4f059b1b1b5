//! What to do about a state of DRBD, in the syntax of 8.4 and 9, and of 8.3 where that differs. linerate runs none of it.
//!
//! Source: drbdadm(8) of drbd-utils 8.3, 8.4 and 9; the split brain: "Manual split brain recovery" of LINBIT's guide.

use linerate_model::storage::{ConnectionState as State, DiskState as Disk, Drbd, Role};

/// Whether the state needs somebody, and what to do.
pub(super) struct Advice {
    /// Redundancy or the device's use is lost until somebody acts.
    pub(super) is_fault: bool,
    pub(super) text: String,
}

impl Advice {
    fn fault(text: impl Into<String>) -> Self {
        Self {
            is_fault: true,
            text: text.into(),
        }
    }

    fn note(text: impl Into<String>) -> Self {
        Self {
            is_fault: false,
            text: text.into(),
        }
    }
}

/// What to do, for the most urgent of what the state shows.
pub(super) fn advice(device: &Drbd) -> Option<Advice> {
    let resource = device
        .resource
        .as_ref()
        .map_or("RESOURCE", |name| name.as_str());
    of_connection(device, resource)
        .or_else(|| of_disks(device, resource))
        .or_else(|| of_sync(device, resource))
}

fn of_connection(device: &Drbd, resource: &str) -> Option<Advice> {
    Some(match &device.connection {
        State::Unconfigured => Advice::note(format!("Nothing is set up: `drbdadm up {resource}`")),
        State::StandAlone => Advice::fault(split_brain(resource)),
        State::WfConnection
        | State::Connecting
        | State::Unconnected
        | State::Timeout
        | State::BrokenPipe
        | State::NetworkFailure
        | State::ProtocolError
        | State::TearDown => Advice::fault(format!(
            "Check that the peer is up, that a firewall lets the resource's port pass (`drbdsetup show`), and that the \
             peer is not StandAlone (there: `drbdadm cstate {resource}`, then `drbdadm connect {resource}`)"
        )),
        State::Disconnecting => Advice::note("The connection is being closed by hand".to_owned()),
        _ if device.suspended => Advice::fault(format!(
            "Requests of the application are held back: settle the peer's fencing or the quorum, then `drbdadm resume-io {resource}`"
        )),
        _ => return None,
    })
}

/// A connection that was dropped.
pub(super) fn split_brain(resource: &str) -> String {
    format!(
        "If the kernel's log says \"Split-Brain detected\", choose the node whose writes since then are to be lost, and run \
         there `drbdadm secondary {resource}` and `drbdadm connect --discard-my-data {resource}` (8.3: `drbdadm -- \
         --discard-my-data connect {resource}`); on the other, and where it is no split brain, `drbdadm connect {resource}`"
    )
}

/// No end has data that are up to date.
pub(super) fn first_sync(resource: &str) -> String {
    format!(
        "Choose the node that has the data, and run only there `drbdadm primary --force {resource}` (8.3: `drbdadm -- \
         --overwrite-data-of-peer primary {resource}`); it overwrites the peer. Where both are empty, either will do, or \
         skip the synchronisation: `drbdadm new-current-uuid --clear-bitmap {resource}/0` (8.3: `drbdadm -- --clear-bitmap \
         new-current-uuid {resource}`)"
    )
}

fn of_disks(device: &Drbd, resource: &str) -> Option<Advice> {
    Some(match &device.disks {
        [Disk::Diskless | Disk::Failed | Disk::Detaching, _] => Advice::fault(format!(
            "This end has no disk: look at `dmesg` for its I/O errors, replace it or attach it again by `drbdadm attach \
             {resource}` (a diskless client of version 9 is meant to be so)"
        )),
        [_, Disk::Diskless | Disk::Failed | Disk::Detaching] => Advice::fault(format!(
            "The peer has no disk: there look at `dmesg`, then `drbdadm attach {resource}` (a diskless client of version 9 is \
             meant to be so)"
        )),
        [Disk::Inconsistent, Disk::Inconsistent] if no_primary(device) => {
            Advice::fault(first_sync(resource))
        }
        [Disk::Outdated, _] => Advice::fault(
            "This end's data are old: wait for the connection and the synchronisation, never force it to be primary first"
                .to_owned(),
        ),
        [Disk::Attaching | Disk::Negotiating, _] => {
            Advice::note("Wait: the disk is being attached".to_owned())
        }
        [Disk::Consistent, _] => Advice::note(
            "Its data are consistent, but whether they are the newest is known only when the peer connects".to_owned(),
        ),
        _ => return None,
    })
}

/// Neither end is primary.
fn no_primary(device: &Drbd) -> bool {
    device.roles.iter().all(|role| *role == Role::Secondary)
}

fn of_sync(device: &Drbd, resource: &str) -> Option<Advice> {
    let paused = device.paused;
    Some(match &device.connection {
        _ if paused.user => Advice::fault(format!(
            "It was paused by hand at this end: `drbdadm resume-sync {resource}`"
        )),
        _ if paused.peer => Advice::fault(format!(
            "The peer paused it: there `drbdadm resume-sync {resource}`"
        )),
        State::PausedSyncS | State::PausedSyncT => Advice::note(
            "It waits for another device (`resync-after`), or the peer paused it".to_owned(),
        ),
        State::Ahead | State::Behind => Advice::note(
            "The link was congested, and the peer missed writes (`on-congestion pull-ahead`); it is synchronised when \
             there is room"
                .to_owned(),
        ),
        State::Connected | State::Established => return connected(device, resource),
        _ => return None,
    })
}

fn connected(device: &Drbd, resource: &str) -> Option<Advice> {
    let good = device.disks.iter().all(|disk| *disk == Disk::UpToDate);
    if good && device.out_of_sync_kib.is_some_and(|kib| kib > 0) {
        return Some(Advice::fault(format!(
            "A verification found differences, and nothing copies them yet: `drbdadm disconnect {resource}`, then `drbdadm \
             connect {resource}`"
        )));
    }
    (good && no_primary(device)).then(|| Advice {
        is_fault: false,
        text: format!(
            "No end is primary, so nobody can mount it: `drbdadm primary {resource}` on the node that uses it"
        ),
    })
}
