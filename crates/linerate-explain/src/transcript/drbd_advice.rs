//! What to do about a state of DRBD, in the syntax of 8.4 and 9, and of 8.3 where that differs. linerate runs none of it.
//!
//! Source: drbdadm(8) of drbd-utils 8.3, 8.4 and 9; the split brain: "Manual split brain recovery" of LINBIT's guide.

use std::collections::HashMap;

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

/// What all rows of one volume of a resource say together.
#[derive(Clone, Copy)]
struct Volume {
    rows: usize,
    /// Neither this end nor a peer is primary, as far as each is known.
    no_primary: bool,
    /// All peers are reached, and no end has data that are usable alone.
    none_has_data: bool,
    /// A peer that is reached has the data.
    peer_has_data: bool,
}

/// The volumes of a status, by resource and number.
pub(super) struct Volumes<'a>(HashMap<&'a str, Volume>);

impl<'a> Volumes<'a> {
    pub(super) fn of(rows: &'a [Drbd]) -> Self {
        let mut all = HashMap::new();
        for row in rows {
            let one = volume_of(row);
            let add = |sum: &mut Volume| {
                sum.rows += 1;
                sum.no_primary &= one.no_primary;
                sum.none_has_data &= one.none_has_data;
                sum.peer_has_data |= one.peer_has_data;
            };
            all.entry(place(row)).and_modify(add).or_insert(one);
        }
        Self(all)
    }
}

/// One row by itself.
fn volume_of(row: &Drbd) -> Volume {
    let reached = matches!(row.connection, State::Connected | State::Established);
    let receives = matches!(
        row.connection,
        State::SyncTarget
            | State::PausedSyncT
            | State::WfBitMapT
            | State::StartingSyncT
            | State::WfSyncUuid
    );
    Volume {
        rows: 1,
        no_primary: row.roles.iter().all(|role| *role == Role::Secondary),
        none_has_data: reached
            && row.disks[0] == Disk::Inconsistent
            && matches!(row.disks[1], Disk::Inconsistent | Disk::Diskless),
        peer_has_data: receives || row.disks[1] == Disk::UpToDate,
    }
}

/// A device with one peer, and its volume with all peers.
struct At<'a> {
    device: &'a Drbd,
    volume: Volume,
    resource: &'a str,
}

/// `home/0` of `home/0 to nodeB`.
fn place(device: &Drbd) -> &str {
    let name = device.name.as_str();
    name.split_once(" to ").map_or(name, |(place, _)| place)
}

/// What to do, the most urgent first: I/O that is held back, this end's disk, the connection, the rest.
pub(super) fn advice(device: &Drbd, volumes: &Volumes<'_>) -> Option<Advice> {
    let resource = device.resource.as_ref();
    let at = At {
        device,
        volume: volumes
            .0
            .get(place(device))
            .copied()
            .unwrap_or_else(|| volume_of(device)),
        resource: resource.map_or("RESOURCE", |name| name.as_str()),
    };
    let urgent = [of_requests(device, at.resource), of_own_disk(&at)];
    let rest = of_connection(&at)
        .or_else(|| of_peers_disk(&at))
        .or_else(|| of_sync(&at));
    let all = urgent.into_iter().chain([rest]).flatten();
    all.reduce(|one, other| Advice {
        is_fault: one.is_fault || other.is_fault,
        text: format!("{}. {}", one.text, other.text),
    })
}

/// Requests that wait for a person or a quorum.
fn of_requests(device: &Drbd, resource: &str) -> Option<Advice> {
    if device.quorum_lost {
        return Some(Advice::fault(
            "This end has lost its quorum, so its I/O is held back or fails: bring peers back, and it goes on by itself; \
             force nothing, as the other side may be writing",
        ));
    }
    device.suspended.then(|| {
        Advice::fault(format!(
            "Requests of the application are held back: settle the peer's fencing or the quorum first (a peer that still \
             writes makes a split brain), then `drbdadm resume-io {resource}`"
        ))
    })
}

/// This end's disk.
fn of_own_disk(at: &At<'_>) -> Option<Advice> {
    let resource = at.resource;
    Some(match &at.device.disks[0] {
        Disk::Diskless if at.device.clients[0] => return None,
        Disk::Diskless | Disk::Failed | Disk::Detaching => Advice::fault(format!(
            "This end has no disk: look at `dmesg` for its I/O errors, replace it or attach it again by `drbdadm attach \
             {resource}` (a diskless client of version 9 is meant to be so)"
        )),
        Disk::Outdated => Advice::fault(
            "This end's data are old: wait for the connection and the synchronisation, never force it to be primary first",
        ),
        Disk::Inconsistent if at.volume.none_has_data && at.volume.no_primary => {
            Advice::fault(first_sync(resource))
        }
        Disk::Inconsistent if !at.volume.peer_has_data => Advice::fault(
            "This end's data are not usable alone, and it reaches nobody who has up-to-date data: bring that peer back, \
             never force this end to be primary first",
        ),
        Disk::Attaching | Disk::Negotiating => {
            Advice::note("Wait: the disk is being attached".to_owned())
        }
        Disk::Consistent => Advice::note(
            "Its data are consistent, but whether they are the newest is known only when the peer connects".to_owned(),
        ),
        _ => return None,
    })
}

fn of_connection(at: &At<'_>) -> Option<Advice> {
    let resource = at.resource;
    Some(match &at.device.connection {
        State::Unconfigured => Advice::note(format!("Nothing is set up: `drbdadm up {resource}`")),
        State::StandAlone => Advice::fault(stand_alone(at)),
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
        _ => return None,
    })
}

/// A connection that was dropped: whose data are old is known only where this end's are good.
fn stand_alone(at: &At<'_>) -> String {
    let resource = at.resource;
    if matches!(
        at.device.disks[0],
        Disk::Outdated | Disk::Inconsistent | Disk::Diskless | Disk::Failed | Disk::Detaching
    ) {
        return format!(
            "The good data are not at this end: `drbdadm connect {resource}` on both ends, and discard nothing of the peer's"
        );
    }
    let peer = at.device.name.as_str().split_once(" to ");
    match peer.filter(|_| at.volume.rows > 1) {
        Some((_, peer)) => split_brain_of_peer(resource, peer),
        None => split_brain(resource),
    }
}

/// A split brain with one of several peers, as version 9 has.
fn split_brain_of_peer(resource: &str, peer: &str) -> String {
    format!(
        "If the kernel's log says \"Split-Brain detected\", choose the node whose writes since then are to be lost, and run \
         there `drbdadm secondary {resource}` and `drbdadm connect --discard-my-data {resource}:PEER` with the other as \
         PEER (at this end `{resource}:{peer}`); on the other, and where it is no split brain, `drbdadm connect \
         {resource}:PEER` (here `{resource}:{peer}`)"
    )
}

/// A connection that was dropped.
pub(super) fn split_brain(resource: &str) -> String {
    format!(
        "If the kernel's log says \"Split-Brain detected\", choose the node whose writes since then are to be lost, and run \
         there `drbdadm secondary {resource}` and `drbdadm connect --discard-my-data {resource}` (8.3: `drbdadm -- \
         --discard-my-data connect {resource}`); on the other, and where it is no split brain, `drbdadm connect {resource}`"
    )
}

/// No end that is reached has up-to-date data, and one that is not reached may have them.
pub(super) const NOBODY: &str = "This end has no up-to-date data and reaches nobody who has: bring the peer that has them \
                                 back, and never force this end to be primary first: the peer's writes would be lost";

/// No end has data that are up to date.
pub(super) fn first_sync(resource: &str) -> String {
    format!(
        "Choose the node that has the data, and run only there `drbdadm primary --force {resource}` (8.3: `drbdadm -- \
         --overwrite-data-of-peer primary {resource}`); it overwrites the peer. Where both are empty, either will do, or \
         skip the synchronisation: `drbdadm new-current-uuid --clear-bitmap {resource}/0` (8.3: `drbdadm -- --clear-bitmap \
         new-current-uuid {resource}`)"
    )
}

fn of_peers_disk(at: &At<'_>) -> Option<Advice> {
    let resource = at.resource;
    let is_lost = matches!(
        at.device.disks[1],
        Disk::Diskless | Disk::Failed | Disk::Detaching
    );
    (is_lost && !at.device.clients[1]).then(|| {
        Advice::fault(format!(
            "The peer has no disk: there look at `dmesg`, then `drbdadm attach {resource}` (a diskless client of version 9 is \
             meant to be so)"
        ))
    })
}

fn of_sync(at: &At<'_>) -> Option<Advice> {
    let (device, resource) = (at.device, at.resource);
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
        State::Connected | State::Established => return connected(at),
        _ => return None,
    })
}

fn connected(at: &At<'_>) -> Option<Advice> {
    let (device, resource) = (at.device, at.resource);
    let good = device.disks.iter().all(|disk| *disk == Disk::UpToDate);
    if good && device.out_of_sync_kib.is_some_and(|kib| kib > 0) {
        return Some(Advice::fault(format!(
            "A verification found differences, and nothing copies them yet: `drbdadm disconnect {resource}`, then `drbdadm \
             connect {resource}`"
        )));
    }
    (good && at.volume.no_primary).then(|| Advice {
        is_fault: false,
        text: format!(
            "No end is primary, so nobody can mount it: `drbdadm primary {resource}` on the node that uses it"
        ),
    })
}
