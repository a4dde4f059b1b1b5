//! The plan in force, what both hosts are, the clocks, and remarks.

use std::fmt::Display;

use linerate_model::plan::{End, Plan};
use linerate_model::record::{HostFacts, InterfaceFacts, Role};
use linerate_model::units::{BitRate, Bytes, Nanos, grouped};
use maud::{Markup, html};
use serde::Serialize;

use crate::json;
use crate::markup;
use crate::text::layout;
use crate::view::{EndView, RunView};

/// A name and what is said of it; nothing of what is absent, or of a switch that is off.
type Fact = (&'static str, Option<String>);

pub(super) fn sections(view: &RunView) -> Markup {
    html! {
        @if !view.notes.is_empty() {
            section class="notes" {
                h2 { "Remarks" }
                ul { @for note in &view.notes { li { (note.text) } } }
            }
        }
        section class="facts" {
            h2 { "Plan and hosts" }
            div class="columns" {
                (group("Plan", plan(&view.plan)))
                @for role in [Role::Client, Role::Server] {
                    (group(&layout::capital(layout::role(role)), end(view.end(role))))
                }
                (group("Run", run(view)))
            }
        }
    }
}

fn group(title: &str, facts: Vec<Fact>) -> Markup {
    let known = facts
        .into_iter()
        .filter_map(|(name, text)| Some((name, text?)));
    html! {
        div class="group" {
            h3 { (title) }
            (markup::list(None, &known.collect::<Vec<_>>()))
        }
    }
}

fn plan(plan: &Plan) -> Vec<Fact> {
    vec![
        ("host", shown(Some(&plan.host))),
        ("port", shown(Some(plan.port))),
        ("family", named(&plan.family)),
        ("protocol", named(&plan.protocol)),
        ("mptcp", switch(plan.mptcp)),
        ("direction", named(&plan.direction)),
        ("streams", shown(Some(plan.streams))),
        match plan.end {
            End::TimeNs(time) => ("end, time", shown(Some(time))),
            End::Bytes(bytes) => ("end, bytes", size(Some(bytes))),
            End::Blocks(blocks) => ("end, blocks", shown(Some(blocks))),
        },
        ("omit", shown(Some(plan.omit_ns))),
        ("interval", shown(Some(plan.interval_ns))),
        ("sample", shown(Some(plan.sample_ns))),
        ("block", size(Some(plan.block_bytes))),
        ("rate", shown(plan.rate_bps)),
        ("rate is default", switch(plan.rate_is_default)),
        ("kernel pacing", shown(plan.kernel_pacing_bps)),
        ("pace", named(&plan.pace)),
        ("window", size(plan.window_bytes)),
        ("mss", packet(plan.mss_bytes)),
        ("nodelay", switch(plan.nodelay)),
        ("congestion", shown(plan.congestion.as_ref())),
        ("tos", shown(Some(plan.tos))),
        ("flow label", shown(plan.flow_label)),
        ("bind", shown(plan.bind.as_ref())),
        ("bind device", shown(plan.bind_device.as_ref())),
        ("client port", shown(plan.client_port)),
        ("zerocopy", switch(plan.zerocopy)),
        ("skip receive copy", switch(plan.skip_receive_copy)),
        ("client cpu", shown(plan.client_cpu)),
        ("server cpu", shown(plan.server_cpu)),
        ("dont fragment", switch(plan.dont_fragment)),
        ("connect timeout", shown(Some(plan.connect_timeout_ns))),
        ("idle timeout", shown(Some(plan.idle_timeout_ns))),
        ("receive timeout", shown(plan.receive_timeout_ns)),
        ("send timeout", shown(plan.send_timeout_ns)),
        ("precision", shown(plan.precision)),
        ("expect", shown(plan.expect)),
        ("provisioned", shown(plan.provisioned_bps)),
        ("title", shown(plan.title.as_ref())),
        ("extra data", shown(plan.extra_data.as_ref())),
    ]
}

fn end(end: &EndView) -> Vec<Fact> {
    let mut all = vec![
        ("name", shown(end.name.as_ref())),
        ("software", shown(Some(&end.software))),
        ("address", shown(Some(&end.address))),
    ];
    if end.known {
        all.extend(host(&end.host));
    } else {
        all.push(("host", shown(Some("reports nothing about itself"))));
    }
    all.extend(end.interface.iter().flat_map(interface));
    all
}

fn host(host: &HostFacts) -> Vec<Fact> {
    vec![
        ("hostname", shown(host.hostname.as_ref())),
        ("kernel", shown(host.kernel.as_ref())),
        ("architecture", shown(host.architecture.as_ref())),
        ("boot id", shown(host.boot_id.as_ref())),
        ("network namespace", shown(host.network_namespace)),
        ("cpu model", shown(host.cpu_model.as_ref())),
        ("cpus", shown(host.cpus)),
        ("memory", size(host.memory_bytes.map(Bytes))),
        ("virtualisation", shown(host.virtualisation.as_ref())),
        ("tcp_rmem", three(host.tcp_rmem)),
        ("tcp_wmem", three(host.tcp_wmem)),
        ("rmem_max", size(host.rmem_max.map(Bytes))),
        ("wmem_max", size(host.wmem_max.map(Bytes))),
        ("congestion", shown(host.congestion.as_ref())),
        ("default qdisc", shown(host.default_qdisc.as_ref())),
        (
            "fingerprint",
            shown(host.fingerprint.as_ref().map(|one| one.hash)),
        ),
    ]
}

fn interface(of: &InterfaceFacts) -> Vec<Fact> {
    let speed = of.speed_mbit_per_s;
    let speed = speed.map(|mbit| BitRate(mbit.saturating_mul(1_000_000)));
    vec![
        ("interface name", shown(Some(&of.name))),
        ("interface index", shown(Some(of.index))),
        ("interface mtu", packet(of.mtu_bytes)),
        ("interface kind", shown(of.kind.as_ref())),
        ("interface driver", shown(of.driver.as_ref())),
        ("interface speed", shown(speed)),
        ("interface qdisc", shown(of.qdisc.as_ref())),
    ]
}

fn run(view: &RunView) -> Vec<Fact> {
    let (role, software) = (layout::role(view.written_by), &view.software);
    let writer = format!("{role}, {} {}", software.name, software.version);
    let clocks = view.clock.map(|clock| {
        let known = Nanos(clock.before.uncertainty_ns);
        format!("± {known} (half of the shortest round trip)")
    });
    let control = &view.control;
    vec![
        ("record's schema version", shown(Some(view.schema_version))),
        ("written by", Some(writer)),
        ("control connection opened in", shown(control.connect_ns)),
        ("its maximum segment size", packet(control.mss_bytes)),
        ("clocks compared to within", clocks),
    ]
}

fn shown(value: Option<impl Display>) -> Option<String> {
    value.map(|value| value.to_string())
}

/// A choice by its name in the record.
fn named(choice: &impl Serialize) -> Option<String> {
    json::value(choice).as_str().map(str::to_owned)
}

fn switch(on: bool) -> Option<String> {
    on.then(|| "yes".to_owned())
}

/// `1.00 MiB (1,048,576)`.
fn size(bytes: Option<Bytes>) -> Option<String> {
    bytes.map(|bytes| match bytes.0 {
        ..1000 => bytes.to_string(),
        exact => format!("{bytes} ({})", grouped(exact)),
    })
}

/// `1448 B`: nobody counts packets in KiB.
fn packet(bytes: Option<impl Display>) -> Option<String> {
    bytes.map(|bytes| format!("{bytes} B"))
}

/// A sysctl of three sizes, as the kernel writes it.
fn three(sizes: Option<[u64; 3]>) -> Option<String> {
    sizes.map(|sizes| sizes.map(|size| size.to_string()).join(" "))
}

#[cfg(test)]
mod tests {
    use linerate_model::units::Bytes;
    use linerate_testing::fixture::{self, Traffic};
    use serde_json::Value;

    use super::*;

    /// What of a value is neither absent nor a switch that is off.
    fn said(of: &impl Serialize) -> usize {
        let value = json::value(of);
        let members = value.as_object().into_iter().flat_map(|all| all.values());
        members
            .filter(|value| !matches!(value, Value::Null | Value::Bool(false)))
            .count()
    }

    #[test]
    fn every_field_is_on_the_page_and_what_is_absent_is_not() {
        let known = |facts: Vec<Fact>| facts.into_iter().filter(|(_, text)| text.is_some()).count();
        let bare = Plan::new("server");
        let full = Plan {
            mptcp: true,
            rate_bps: Some(BitRate(1)),
            rate_is_default: true,
            kernel_pacing_bps: Some(BitRate(1)),
            window_bytes: Some(Bytes(1)),
            mss_bytes: Some(1),
            nodelay: true,
            congestion: Some("bbr".into()),
            flow_label: Some(1),
            bind: Some("::1".into()),
            bind_device: Some("eth0".into()),
            client_port: Some(1),
            zerocopy: true,
            skip_receive_copy: true,
            client_cpu: Some(0),
            server_cpu: Some(0),
            dont_fragment: true,
            receive_timeout_ns: Some(Nanos(1)),
            send_timeout_ns: Some(Nanos(1)),
            precision: Some(0.01),
            expect: "> 1G".to_owned().try_into().ok(),
            provisioned_bps: Some(BitRate(1)),
            title: Some("title".into()),
            extra_data: Some("more".into()),
            ..bare.clone()
        };
        for of in [&bare, &full] {
            assert_eq!(known(plan(of)), said(of));
        }
        assert!(plan(&full).iter().all(|(_, text)| text.is_some()));
        let record = fixture::run(&bare, &Traffic::default());
        let end = record.client.as_ref().unwrap();
        assert_eq!(known(host(&end.host)), said(&end.host));
        let own = end.interface.as_ref().unwrap();
        assert_eq!(known(interface(own)), said(own));
    }

    #[test]
    fn facts_are_spelled_with_their_units() {
        assert_eq!(size(Some(Bytes(999))).unwrap(), "999 B");
        let exact = size(Some(Bytes(1_048_576))).unwrap();
        assert_eq!(exact, "1.00 MiB (1,048,576)");
        assert_eq!(packet(Some(1500)).unwrap(), "1500 B");
        let rmem = three(Some([4096, 131_072, 6_291_456])).unwrap();
        assert_eq!(rmem, "4096 131072 6291456");
        let of = InterfaceFacts {
            speed_mbit_per_s: Some(25_000),
            ..InterfaceFacts::default()
        };
        assert!(interface(&of).contains(&("interface speed", Some("25.0 Gbit/s".to_owned()))));
    }
}
