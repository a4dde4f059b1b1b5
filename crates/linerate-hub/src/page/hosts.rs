//! Hosts: whether they answer, what they are, what changed on them.

use linerate_model::alert::HostChange;
use linerate_model::watch::UnixMillis;
use maud::{Markup, html};

use super::{Sheet, counted, document, encoded, host_address, time};
use crate::live::{AgentState, ReachedBy};
use crate::moment;
use crate::view::alert::change;
use crate::view::host::{HostView, KERNEL};

pub(crate) fn page(hosts: &[HostView], now: UnixMillis, firing: usize) -> String {
    let away = hosts
        .iter()
        .filter_map(|host| host.agent.as_ref())
        .filter(|agent| !agent.connected);
    let content = html! {
        h1 { "Hosts" }
        p class="about" {
            (counted(hosts.len(), "host"))
            @match away.count() { 0 => ", all connected.", away => { ", " (away) " not connected." } }
        }
        div class="wide" tabindex="0" role="region" aria-label="Hosts" {
            table class="rows" {
                thead {
                    tr {
                        th scope="col" { "Host" } th scope="col" { "Agent" } th scope="col" { "Last seen" } th scope="col" { "Kernel" }
                        th scope="col" { "Interfaces" } th scope="col" { "Sends" } th scope="col" { "Receives" } th scope="col" { "Last change" }
                    }
                }
                tbody { @for host in hosts { (row(host, now)) } }
            }
        }
    };
    document(
        Sheet {
            title: "Hosts",
            place: "/hosts",
            now,
            firing,
        },
        &content,
    )
}

fn row(host: &HostView, now: UnixMillis) -> Markup {
    let seen = host.agent.as_ref().and_then(|agent| agent.last_seen);
    html! {
        tr {
            th scope="row" { a href=(host_address(&host.name)) { (host.name) } }
            td { (agent(host.agent.as_ref())) }
            td { (seen.map_or_else(|| "–".to_owned(), |seen| moment::ago(seen, now))) }
            td { (host.fact(KERNEL).map_or("–", |kernel| kernel)) }
            td { @if host.interfaces.is_empty() { "–" } @for interface in host.interfaces.iter().take(3) { span class="item" { (interface.name) @if let Some(mtu) = interface.mtu { " (MTU " (mtu) ")" } } " " } }
            td { (side(host.sends)) }
            td { (side(host.receives)) }
            td { @match host.changes.first() { Some(first) => { (change(first)) " " span class="age" { (moment::ago(first.first_after, now)) } }, None => "–" } }
        }
    }
}

fn agent(agent: Option<&AgentState>) -> Markup {
    html! {
        @match agent {
            None => span class="sign not_run" { span class="glyph" aria-hidden="true" { "○" } " not in the plan" },
            Some(AgentState { connected: true, reach, .. }) => span class="sign good" { span class="glyph" aria-hidden="true" { "✓" } " " (reached(*reach)) },
            Some(AgentState { reach: reach @ (ReachedBy::Linerate | ReachedBy::Iperf3), .. }) => span class="sign" { (reached(*reach)) },
            Some(agent) => { span class="sign failing" { span class="glyph" aria-hidden="true" { "✕" } " not connected" } @if let Some(why) = &agent.why { ": " (why) } },
        }
    }
}

const fn reached(reach: ReachedBy) -> &'static str {
    match reach {
        ReachedBy::Agent => "connected",
        ReachedBy::Ssh => "connected by ssh",
        ReachedBy::Linerate => "linerate serve, tested against",
        ReachedBy::Iperf3 => "iperf3 -s, tested against",
    }
}

fn side([pairs, bad]: [usize; 2]) -> String {
    match bad {
        0 => counted(pairs, "pair"),
        _ => format!("{bad} of {pairs} not good"),
    }
}

/// The page of one host.
pub(crate) fn host(host: &HostView, now: UnixMillis, firing: usize) -> String {
    let content = html! {
        h1 { (host.name) }
        p { (agent(host.agent.as_ref())) @if let Some(seen) = host.agent.as_ref().and_then(|agent| agent.last_seen) { " Last seen " (moment::ago(seen, now)) "." } }
        p { "Sends: " (side(host.sends)) ". Receives: " (side(host.receives)) ". " a href={ "/api/v1/hosts?name=" (encoded(&host.name)) } { "JSON" } }
        section aria-labelledby="changes" {
            h2 id="changes" { "What changed in the last 30 days" }
            (changes(&host.changes, now))
        }
        section aria-labelledby="facts" {
            h2 id="facts" { "Facts" }
            @match host.facts_at {
                None => p { "Not read yet: facts come from an agent on the host." },
                Some(at) => {
                    p class="about" { "Read " (time(at, now, true)) }
                    dl { @for (name, value) in &host.facts { dt { (name) } dd { (value.as_ref().map_or("not known", |value| value)) } } }
                }
            }
        }
        @if !host.interfaces.is_empty() {
            section aria-labelledby="interfaces" {
                h2 id="interfaces" { "Interfaces" }
                table class="rows" {
                    thead { tr { th scope="col" { "Name" } th scope="col" { "Kind" } th scope="col" { "State" } th scope="col" class="number" { "MTU" } } }
                    tbody {
                        @for interface in &host.interfaces {
                            tr { th scope="row" { (interface.name) } td { (interface.kind) } td { @if interface.up { "up" } @else { "down" } } td class="number" { (interface.mtu.map_or_else(|| "–".to_owned(), |mtu| mtu.to_string())) } }
                        }
                    }
                }
            }
        }
    };
    document(
        Sheet {
            title: &host.name,
            place: "/hosts",
            now,
            firing,
        },
        &content,
    )
}

/// Changes of hosts, a line each.
pub(crate) fn changes(changes: &[HostChange], now: UnixMillis) -> Markup {
    html! {
        @if changes.is_empty() { p { "Nothing that is known." } } @else {
            ul class="changes" { @for one in changes { li { (time(one.first_after, now, true)) " " (change(one)) } } }
        }
    }
}
