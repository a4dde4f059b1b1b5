//! Putting together one end's half of the record, the same way at both ends.

use std::net::IpAddr;
use std::sync::Arc;

use linerate_kernel::clock;
use linerate_kernel::counters::ProtocolsBefore;
use linerate_model::record::{
    CpuUse, EndRecord, HostFacts, InterfaceFacts, InterfacePair, Role, Software, StreamRecord,
};
use linerate_model::series::Series;
use linerate_model::units::Nanos;

use crate::gate::Gate;
use crate::host::{self, HostSamples};
use crate::sample_pool::SamplePool;

/// Shorter tests have no fingerprint: to read it takes about 10 ms, and whoever runs a short one waits for its end.
const WORTH_A_FINGERPRINT: Nanos = Nanos::from_millis(500);

/// What is read before the first byte of payload and again after the streams have drained.
#[derive(Debug, Default)]
pub(crate) struct Before {
    host: HostFacts,
    interface: Option<InterfaceFacts>,
    pair: Option<InterfacePair>,
    protocols: ProtocolsBefore,
    samples: Option<Arc<HostSamples>>,
    control_cpu: CpuUse,
}

impl Before {
    /// Reads the counters of this host, which is `host`, and of the interface towards `peer`.
    pub(crate) fn read(host: HostFacts, peer: IpAddr, pool: &Arc<SamplePool>) -> Self {
        let (interface, before) = host::interface_and_counters(peer).unzip();
        let index = interface.as_ref().map(|interface| interface.index);
        Self {
            host,
            pair: before.flatten().map(|before| InterfacePair {
                before,
                after: before,
            }),
            protocols: ProtocolsBefore::read(),
            samples: Some(HostSamples::begin(index, pool)),
            interface,
            control_cpu: thread_cpu(),
        }
    }

    /// The peer sent before anything was read here: what the interface carried of the test is not known.
    pub(crate) fn without_interface_counters(self) -> Self {
        Self { pair: None, ..self }
    }

    /// The half of this end. Called by the thread that called [`Before::read`].
    pub(crate) fn finish(
        mut self,
        role: Role,
        software: &Software,
        gate: &Gate,
        streams: Vec<StreamRecord>,
    ) -> EndRecord {
        let start = gate.started().unwrap_or_default();
        let after = self
            .interface
            .as_ref()
            .and_then(|interface| host::counters_of(interface.index));
        let control = thread_cpu();
        let end = gate.stopped().unwrap_or(start);
        if end.since(start) >= WORTH_A_FINGERPRINT {
            let name = self.interface.as_ref().map(|interface| &*interface.name);
            self.host.fingerprint = Some(host::fingerprint(name));
        }
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
            host: self.host,
            interface_counters: self
                .pair
                .zip(after)
                .map(|(pair, after)| InterfacePair { after, ..pair }),
            interface: self.interface,
            start_ns: start,
            end_ns: gate.stopped().unwrap_or(start),
            cpu,
            streams,
            counters: self
                .samples
                .map_or_else(Series::default, |samples| samples.series()),
            protocol_growth: self.protocols.growth(),
            stage: None,
        }
    }
}

/// CPU time of the calling thread.
pub(crate) fn thread_cpu() -> CpuUse {
    let times = clock::thread_times();
    CpuUse {
        user_ns: times.user.0,
        system_ns: times.system.0,
    }
}
