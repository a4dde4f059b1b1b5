//! What drbdsetup prints about resources, devices and connections, each by itself, as devices with their peers.

use std::collections::{HashMap, HashSet};

use linerate_model::storage::{
    ConnectionState, DiskState, Drbd, DrbdChange, DrbdStatus, Paused, Role,
};
use linerate_model::transcript::Printed;

use super::{moves, sync_of};
use crate::number::printed;

/// A connection of a resource.
struct Link {
    state: ConnectionState,
    role: Role,
    /// A device is known of it.
    used: bool,
    line: usize,
}

/// A device with a peer: resource, peer, volume.
pub(super) type Place = (String, String, u64);

/// What is known so far; the last word on each thing counts.
#[derive(Default)]
pub(super) struct Fold {
    resources: HashMap<String, (Role, bool)>,
    links: HashMap<(String, String), Link>,
    order: Vec<(String, String)>,
    disks: HashMap<(String, u64), DiskState>,
    /// Volumes without a quorum.
    without_quorum: HashSet<(String, u64)>,
    /// Volumes that are diskless clients at this end.
    clients: HashSet<(String, u64)>,
    /// Volumes of resources, in their order.
    volumes: Vec<(String, u64, usize)>,
    rows: HashMap<Place, usize>,
    /// Rows that were destroyed.
    gone: HashSet<usize>,
    status: DrbdStatus,
}

impl Fold {
    pub(super) fn resource(&mut self, name: &str, facts: &[(&str, &str)]) {
        let entry = self.resources.entry(name.to_owned()).or_default();
        for (key, value) in facts {
            match *key {
                "role" => entry.0 = Role::from(*value),
                "suspended" => entry.1 = *value != "no",
                _ => {}
            }
        }
    }

    pub(super) fn link(&mut self, line: usize, at: (&str, &str), facts: &[(&str, &str)]) {
        let key = (at.0.to_owned(), at.1.to_owned());
        let order = &mut self.order;
        let link = self.links.entry(key).or_insert_with_key(|key| {
            order.push(key.clone());
            Link {
                // The text of version 9 leaves out what is as it should be.
                state: ConnectionState::Connected,
                role: Role::default(),
                used: false,
                line,
            }
        });
        for (key, value) in facts {
            match *key {
                "connection" => link.state = ConnectionState::from(*value),
                "role" => link.role = Role::from(*value),
                _ => {}
            }
        }
    }

    pub(super) fn device(&mut self, line: usize, at: (&str, u64), facts: &[(&str, &str)]) {
        let disk = facts.iter().find(|(key, _)| *key == "disk");
        let key = (at.0.to_owned(), at.1);
        let known = self.disks.get(&key).cloned();
        if known.is_none() {
            self.volumes.push((at.0.to_owned(), at.1, line));
        }
        let disk = disk.map(|(_, disk)| DiskState::from(*disk)).or(known);
        match facts.iter().find(|(key, _)| *key == "quorum") {
            Some((_, "no")) => drop(self.without_quorum.insert(key.clone())),
            Some(_) => drop(self.without_quorum.remove(&key)),
            None => {}
        }
        match facts.iter().find(|(key, _)| *key == "client") {
            Some((_, "yes")) => drop(self.clients.insert(key.clone())),
            Some(_) => drop(self.clients.remove(&key)),
            None => {}
        }
        self.disks.insert(key, disk.unwrap_or_default());
    }

    pub(super) fn peer_device(&mut self, line: usize, at: &Place, facts: &[(&str, &str)]) -> usize {
        self.link(line, (&at.0, &at.1), &[]);
        if let Some(link) = self.links.get_mut(&(at.0.clone(), at.1.clone())) {
            link.used = true;
        }
        let next = self.status.devices.len();
        let row = *self.rows.entry(at.clone()).or_insert(next);
        if row == next {
            self.status.devices.push(Drbd {
                line,
                name: format!("{}/{} to {}", at.0, at.2, at.1).into(),
                resource: Some(at.0.as_str().into()),
                connection: ConnectionState::Established,
                ..Drbd::default()
            });
        }
        let device = &mut self.status.devices[row];
        for (key, value) in facts {
            set(device, key, value);
        }
        if !moves(&device.connection) {
            device.sync = None;
        }
        row
    }

    /// The replication of a device, as a line of `events2` tells it.
    pub(super) fn change(&mut self, line: usize, row: usize, at_s: Option<f64>) {
        let device = &self.status.devices[row];
        self.status.changes.push(DrbdChange {
            line,
            device: row,
            at_s,
            connection: device.connection.clone(),
            out_of_sync_kib: device.out_of_sync_kib,
        });
    }

    /// `destroy`: what is no longer there.
    pub(super) fn destroy(&mut self, name: &str, peer: Option<&str>, volume: Option<u64>) {
        let name = name.to_owned();
        match (peer, volume) {
            (Some(peer), Some(volume)) => {
                let row = self.rows.remove(&(name, peer.to_owned(), volume));
                self.gone.extend(row);
            }
            (Some(peer), None) => drop(self.links.remove(&(name, peer.to_owned()))),
            (None, Some(volume)) => drop(self.disks.remove(&(name, volume))),
            (None, None) => drop(self.resources.remove(&name)),
        }
    }

    /// Takes out the rows that were destroyed.
    fn clear(&mut self) {
        let gone = std::mem::take(&mut self.gone);
        let mut places = Vec::new();
        let mut kept = 0;
        for row in 0..self.status.devices.len() {
            places.push((!gone.contains(&row)).then_some(kept));
            kept += usize::from(!gone.contains(&row));
        }
        let place = |row: usize| places.get(row).copied().flatten();
        let mut row = 0;
        self.status.devices.retain(|_| {
            row += 1;
            place(row - 1).is_some()
        });
        self.status.changes.retain_mut(|change| {
            let at = place(change.device);
            change.device = at.unwrap_or(0);
            at.is_some()
        });
        for row in self.rows.values_mut() {
            *row = place(*row).unwrap_or(*row);
        }
        let mut seen = HashSet::new();
        let links = &self.links;
        self.order
            .retain(|key| links.contains_key(key) && seen.insert(key.clone()));
        let mut seen = HashSet::new();
        let disks = &self.disks;
        self.volumes.retain(|(resource, volume, _)| {
            let key = (resource.clone(), *volume);
            disks.contains_key(&key) && seen.insert(key)
        });
    }

    /// All of it; what has no peer, or a peer without devices, is there once.
    pub(super) fn finish(mut self) -> DrbdStatus {
        self.clear();
        let mut own: HashMap<&str, u64> = HashMap::new();
        for (resource, volume, _) in self.volumes.iter().rev() {
            own.insert(resource, *volume);
        }
        let mut linked: HashSet<&str> = HashSet::new();
        for key in &self.order {
            linked.insert(&key.0);
            let link = &self.links[key];
            if !link.used {
                let volume = own.get(key.0.as_str()).copied().unwrap_or(0);
                let at = (key.0.clone(), key.1.clone(), volume);
                self.status.devices.push(alone(link.line, &at, &link.state));
                self.rows.insert(at, self.status.devices.len() - 1);
            }
        }
        for (resource, volume, line) in &self.volumes {
            if !linked.contains(resource.as_str()) {
                let at = (resource.clone(), String::new(), *volume);
                self.status
                    .devices
                    .push(alone(*line, &at, &ConnectionState::StandAlone));
                self.rows.insert(at, self.status.devices.len() - 1);
            }
        }
        for ((resource, peer, volume), row) in &self.rows {
            let device = &mut self.status.devices[*row];
            let (role, suspended) = self.resources.get(resource).cloned().unwrap_or_default();
            device.suspended = suspended;
            device.roles[0] = role;
            let own = (resource.clone(), *volume);
            device.clients[0] = self.clients.contains(&own);
            device.quorum_lost = self.without_quorum.contains(&own);
            if let Some(disk) = self.disks.get(&own) {
                device.disks[0] = disk.clone();
            }
            if let Some(link) = self.links.get(&(resource.clone(), peer.clone())) {
                device.roles[1] = link.role.clone();
                let replicates = link.state == ConnectionState::Connected
                    && !matches!(
                        device.connection,
                        ConnectionState::Off | ConnectionState::Other(_)
                    );
                if !replicates {
                    device.connection = link.state.clone();
                    device.sync = None;
                }
            }
        }
        self.status
    }
}

/// A device of which nothing but the connection is known.
fn alone(line: usize, at: &Place, state: &ConnectionState) -> Drbd {
    let peer = if at.1.is_empty() {
        String::new()
    } else {
        format!(" to {}", at.1)
    };
    Drbd {
        line,
        name: format!("{}/{}{peer}", at.0, at.2).into(),
        resource: Some(at.0.as_str().into()),
        connection: state.clone(),
        ..Drbd::default()
    }
}

/// A fact of a device with its peer.
fn set(device: &mut Drbd, key: &str, value: &str) {
    let number = || printed(value);
    match key {
        "replication" => {
            device.connection = ConnectionState::from(value);
            device.sync = moves(&device.connection).then(|| sync_of(&device.connection));
        }
        "peer-client" => device.clients[1] = value == "yes",
        "peer-disk" => device.disks[1] = DiskState::from(value),
        "out-of-sync" => {
            device.out_of_sync_kib = value.parse().ok();
            let left = device.out_of_sync_kib.map(|kib| kib as f64 / 1024.0);
            if let Some(sync) = &mut device.sync {
                sync.left_mib = left;
            }
        }
        "done" => {
            if let (Some(sync), Some(done)) = (&mut device.sync, number()) {
                sync.done_percent = Some(Printed {
                    value: done.value.clamp(0.0, 100.0),
                    half: done.half,
                });
            }
        }
        "resync-suspended" => {
            let by = |who: &str| value.split(',').any(|one| one == who);
            device.paused = Paused {
                after: by("after") || by("dependency"),
                peer: by("peer"),
                user: by("user"),
            };
        }
        "pending" => device.waiting.pending = value.parse().ok(),
        "unacked" => device.waiting.unacknowledged = value.parse().ok(),
        // The JSON of version 9, in MiB/s.
        "want" => {
            if let Some(sync) = &mut device.sync {
                let want = number().map(|want| want.value * 1024.0);
                sync.want_kib_per_second = want.filter(|want| *want > 0.0);
            }
        }
        "db1/dt1 [MiB/s]" => {
            if let Some(sync) = &mut device.sync {
                sync.kib_per_second = number().map(|rate| rate.value * 1024.0);
            }
        }
        "estimated-seconds-to-finish" => {
            if let Some(sync) = &mut device.sync {
                // 987654321 stands for never.
                sync.finish_s = value.parse().ok().filter(|seconds| *seconds < 987_654_321);
            }
        }
        _ => {}
    }
}
