//! `linerate expect`: what a healthy path gives, before anything is measured.

pub(crate) mod arguments;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use linerate_explain::expect::{expect, question};
use linerate_kernel::{host, route};
use linerate_model::expectation::{HostSettings, Question};
use linerate_model::record::HostFacts;
use linerate_report::expectation::report;
use linerate_report::json;

use crate::action::Failure;
use crate::on::{self, Kind};
use crate::printer::Printer;
use arguments::ExpectArguments;

/// Addresses of documentation (RFC 5737, RFC 3849), which nothing is ever sent to: their route is the default one.
const ANYWHERE: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 1));
const ANYWHERE_V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, 1));
/// What Ethernet carries where this host does not say.
const USUAL_MTU: u32 = 1500;

pub(crate) fn run(arguments: &ExpectArguments, printer: &mut Printer) -> Result<(), Failure> {
    if let Some(hosts) = arguments.on.hosts()? {
        return on::run(&hosts, &arguments.on.reach, Kind::Text, printer);
    }
    let facts = host::facts();
    let (asked, assumed) = asked(arguments, &facts)?;
    let mut answer =
        expect(&asked, &settings(&facts)).map_err(|error| Failure::Usage(error.to_string()))?;
    answer.notes.extend(assumed);
    if arguments.json {
        printer.json(&json::pretty(&answer))?;
    } else {
        printer.print(&report(&answer))?;
    }
    Ok(())
}

/// The question with this host's own values where none is given, and what had to be assumed.
fn asked(
    arguments: &ExpectArguments,
    facts: &HostFacts,
) -> Result<(Question, Vec<String>), Failure> {
    let ipv6 = arguments.v6 || arguments.to.is_some_and(|address| address.is_ipv6());
    if arguments.v6 && arguments.to.is_some_and(|address| address.is_ipv4()) {
        return Err(Failure::Usage(
            "--to: an IPv4 address has no route over IPv6; leave -6 away".to_owned(),
        ));
    }
    let address = arguments
        .to
        .unwrap_or(if ipv6 { ANYWHERE_V6 } else { ANYWHERE });
    let route = route::to(address).ok().flatten();
    let mut assumed = Vec::new();
    let mtu = arguments
        .mtu
        .or_else(|| mtu_of(route.as_ref()?))
        .unwrap_or_else(|| {
            assumed.push(format!(
                "this host has no such route, so MTU {USUAL_MTU} is assumed: give --mtu"
            ));
            USUAL_MTU
        });
    let congestion = arguments
        .congestion
        .clone()
        .or_else(|| route.as_ref()?.congestion.clone())
        .or_else(|| facts.congestion.as_deref().map(str::to_owned))
        .unwrap_or_else(|| {
            assumed.push(
                "this host's congestion control cannot be read, so cubic is assumed".to_owned(),
            );
            "cubic".to_owned()
        });
    let asked = Question {
        mtu_bytes: mtu,
        ipv6,
        streams: arguments.parallel,
        time_ns: arguments.time,
        window_bytes: arguments.window,
        loss: arguments.loss,
        congestion,
        ..question(arguments.rate, arguments.rtt)
    };
    Ok((asked, assumed))
}

/// A route's own MTU, else its interface's.
fn mtu_of(route: &route::Route) -> Option<u32> {
    let interface = || {
        route::interface_facts(route.interface_index)
            .ok()??
            .mtu_bytes
    };
    // Loopback says 65,536, one more than an IP packet can be long.
    route.mtu.or_else(interface).map(|mtu| mtu.min(65_535))
}

fn settings(facts: &HostFacts) -> HostSettings {
    let tcp = host::tcp_settings();
    HostSettings {
        tcp_rmem: facts.tcp_rmem,
        tcp_wmem: facts.tcp_wmem,
        rmem_max: facts.rmem_max,
        wmem_max: facts.wmem_max,
        adv_win_scale: tcp.adv_win_scale,
        timestamps: tcp.timestamps,
        window_scaling: tcp.window_scaling,
        moderate_rcvbuf: tcp.moderate_rcvbuf,
    }
}
