//! One end of the run.

use linerate_model::plain_text::PlainText;
use linerate_model::record::{EndRecord, HostFacts, InterfaceFacts, Role, RunRecord};
use serde::Serialize;

use crate::words;

/// An end. Of a stock peer only the software and a CPU share are known.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EndView {
    /// Which.
    pub role: Role,
    /// What the user calls its host, where the test was started from elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<PlainText>,
    /// Whether its kernel and application were asked by a linerate.
    pub known: bool,
    /// Program and version, as far as it told.
    pub software: PlainText,
    /// Its control address and port.
    pub address: PlainText,
    /// Kernel, CPUs and settings; empty where the end's record did not arrive.
    pub host: HostFacts,
    /// The interface that carried the streams.
    pub interface: Option<InterfaceFacts>,
    /// CPU time that the run cost it.
    pub cpu: Option<CpuView>,
    /// Payload that passed it in both directions, bytes, the omitted part included.
    pub bytes: Option<u64>,
}

/// CPU time of a process between start and end.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CpuView {
    /// In the program, s.
    pub user_s: Option<f64>,
    /// In the kernel on its behalf, s.
    pub system_s: Option<f64>,
    /// User and system, s per 10^9 bytes of payload sent or received.
    pub seconds_per_gigabyte: Option<f64>,
    /// User and system as a share of one core: 1 = one core all the time.
    pub core_share: Option<f64>,
    /// Whether a stock peer said so of itself.
    pub told_by_peer: bool,
}

impl EndView {
    pub(super) fn of(record: &RunRecord, role: Role) -> Self {
        let end = record.end(role);
        let own = record.written_by == role;
        let software = match (
            end,
            record
                .control
                .peer_software
                .as_ref()
                .or(record.control.iperf2.as_ref()),
        ) {
            (Some(end), _) => format!("{} {}", end.software.name, end.software.version),
            (None, _) if own => format!("{} {}", record.software.name, record.software.version),
            (None, Some(told)) => told.to_string(),
            (None, None) if record.own_end().is_none() => "program not known".to_owned(),
            (None, None) => "iperf3 (does not report its version)".to_owned(),
        };
        let address = if own {
            &record.control.local
        } else {
            &record.control.remote
        };
        Self {
            role,
            name: record.host_names.as_ref().map(|names| match role {
                Role::Client => names.client.clone(),
                Role::Server => names.server.clone(),
            }),
            known: end.is_some(),
            software: software.into(),
            address: address.clone(),
            host: end.map(|end| end.host.clone()).unwrap_or_default(),
            interface: end.and_then(|end| end.interface.clone()),
            cpu: cpu(record, role),
            bytes: end.map(bytes),
        }
    }
}

fn bytes(end: &EndRecord) -> u64 {
    end.streams
        .iter()
        .fold(0, |sum, stream| sum.saturating_add(stream.app_bytes))
}

pub(super) fn cpu(record: &RunRecord, role: Role) -> Option<CpuView> {
    let Some(end) = record.end(role) else {
        let told = record
            .peer_results
            .as_ref()
            .filter(|_| record.written_by != role)?;
        let share = words::finite(told.cpu_total_percent / 100.0).filter(|share| *share > 0.0)?;
        return Some(CpuView {
            core_share: Some(share),
            told_by_peer: true,
            ..CpuView::default()
        });
    };
    let (user, system) = (end.cpu.user_ns as f64 / 1e9, end.cpu.system_ns as f64 / 1e9);
    if user + system <= 0.0 {
        // No program runs for nothing: the figure is missing.
        return None;
    }
    let elapsed = end.end_ns.since(end.start_ns).as_secs_f64();
    let gigabytes = bytes(end) as f64 / 1e9;
    Some(CpuView {
        user_s: Some(user),
        system_s: Some(system),
        seconds_per_gigabyte: (gigabytes > 0.0).then(|| (user + system) / gigabytes),
        core_share: (elapsed > 0.0).then(|| (user + system) / elapsed),
        told_by_peer: false,
    })
}
