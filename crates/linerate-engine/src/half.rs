//! Putting together one end's half of the record, the same way at both ends.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use linerate_kernel::clock;
use linerate_model::record::{
    CpuUse, EndRecord, InterfaceFacts, InterfacePair, Role, Software, StreamRecord,
};
use linerate_model::units::Nanos;

use crate::host::{self, HostSamples};

/// What is read before the streams open and again after they have drained.
#[derive(Debug)]
pub(crate) struct Before {
    interface: Option<InterfaceFacts>,
    pair: Option<InterfacePair>,
    protocols: BTreeMap<String, u64>,
    samples: Arc<HostSamples>,
    control_cpu: CpuUse,
}

impl Before {
    /// Reads the counters of this host and of the interface towards `peer`.
    pub(crate) fn read(peer: IpAddr) -> Self {
        let interface = host::interface_to(peer);
        let index = interface.as_ref().map(|interface| interface.index);
        let before = index.and_then(host::interface_counters);
        Self {
            pair: before.map(|before| InterfacePair {
                before,
                after: before,
            }),
            protocols: host::protocol_counters(),
            samples: HostSamples::begin(index),
            interface,
            control_cpu: thread_cpu(),
        }
    }

    /// In place of readings that have been used.
    pub(crate) fn nothing() -> Self {
        Self {
            interface: None,
            pair: None,
            protocols: BTreeMap::new(),
            samples: HostSamples::none(),
            control_cpu: CpuUse::default(),
        }
    }

    /// The half of this end. Called by the thread that called [`Before::read`].
    pub(crate) fn finish(
        self,
        role: Role,
        software: &Software,
        start: Nanos,
        end: Nanos,
        streams: Vec<StreamRecord>,
    ) -> EndRecord {
        let after = self
            .interface
            .as_ref()
            .and_then(|interface| host::interface_counters(interface.index));
        let control = thread_cpu();
        let mut cpu = CpuUse {
            user_ns: control.user_ns.saturating_sub(self.control_cpu.user_ns),
            system_ns: control.system_ns.saturating_sub(self.control_cpu.system_ns),
        };
        for stream in &streams {
            cpu.user_ns += stream.cpu.user_ns;
            cpu.system_ns += stream.cpu.system_ns;
        }
        EndRecord {
            role,
            software: software.clone(),
            host: self.samples.facts().clone(),
            interface_counters: self
                .pair
                .zip(after)
                .map(|(pair, after)| InterfacePair { after, ..pair }),
            interface: self.interface,
            start_ns: start,
            end_ns: end,
            cpu,
            streams,
            counters: self.samples.series(),
            protocol_growth: host::protocol_growth(&self.protocols, &host::protocol_counters()),
        }
    }
}

fn thread_cpu() -> CpuUse {
    let times = clock::thread_times();
    CpuUse {
        user_ns: times.user.0,
        system_ns: times.system.0,
    }
}
