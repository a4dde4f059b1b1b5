//! Hosts: whether they answer, what they are, what changed on them.

use linerate_model::alert::HostChange;
use linerate_model::units::BitRate;
use linerate_model::watch::UnixMillis;
use maud::{Markup, html};

use super::{Sheet, counted, document, encoded, host_address, time};
use crate::live::{AgentState, ReachedBy};
use crate::moment;
use crate::view::alert::changed;
use crate::view::audit::{AuditView, SettingView, WrongView};
use crate::view::host::{HostView, InterfaceView, KERNEL};

pub(crate) fn page(hosts: &[HostView], now: UnixMillis, firing: usize) -> String {
    let is_away = |host: &&HostView| host.agent.as_ref().is_some_and(is_missing);
    let count = |is: &dyn Fn(&&HostView) -> bool| hosts.iter().filter(is).count();
    let (away, wrong) = (count(&is_away), count(&|host| wrong(host) > 0));
    // Whoever looks here looks for these first.
    let mut hosts: Vec<&HostView> = hosts.iter().collect();
    hosts.sort_by_key(|host| !is_away(host));
    let content = html! {
        h1 { "Hosts" }
        p class="about" {
            (counted(hosts.len(), "host"))
            @match away { 0 => ", all connected", away => { ", " strong { (away) " not connected" } } }
            @if wrong > 0 { ", " (wrong) " with settings to look at" }
            "."
        }
        div class="wide" tabindex="0" role="region" aria-label="Hosts" {
            table class="rows" {
                thead {
                    tr {
                        th scope="col" { "Host" } th scope="col" { "Agent" } th scope="col" { "Audit" } th scope="col" { "Sends" } th scope="col" { "Receives" }
                        th scope="col" { "Last change" } th scope="col" { "Last seen" } th scope="col" { "Kernel" } th scope="col" { "Interfaces" }
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

/// Whether the hub should be connected to it and is not.
const fn is_missing(agent: &AgentState) -> bool {
    !agent.connected && matches!(agent.reach, ReachedBy::Agent | ReachedBy::Ssh)
}

/// How many settings of a host are to be looked at.
fn wrong(host: &HostView) -> usize {
    host.audit.as_ref().map_or(0, |audit| audit.wrong.len())
}

fn row(host: &HostView, now: UnixMillis) -> Markup {
    let seen = host.agent.as_ref().and_then(|agent| agent.last_seen);
    html! {
        tr {
            th scope="row" { a href=(host_address(&host.name)) { (host.name) } }
            td class="state" { (agent(host.agent.as_ref())) }
            td class="keep" { (audit_in_short(host)) }
            td class="keep" { (side(host.sends)) }
            td class="keep" { (side(host.receives)) }
            td class="change" { (latest_change(host, now)) }
            td class="keep" { (seen.map_or_else(|| "–".to_owned(), |seen| moment::ago(seen, now))) }
            td class="keep" { (host.fact(KERNEL).map_or("–", |kernel| kernel)) }
            td { @if host.interfaces.is_empty() { "–" } @for interface in host.interfaces.iter().take(3) { span class="item" { (in_short(interface)) } " " } @if host.interfaces.len() > 3 { "and " (host.interfaces.len() - 3) " more" } }
        }
    }
}

/// The latest change of a host, and how many more were seen with it.
fn latest_change(host: &HostView, now: UnixMillis) -> Markup {
    let Some(first) = host.changes.first() else {
        return html! { "–" };
    };
    let with_it = |change: &&HostChange| change.first_after == first.first_after;
    let more = host.changes.iter().filter(with_it).count() - 1;
    html! {
        (changed(first))
        @if more > 0 { ", and " a href={ (host_address(&host.name)) "#changes" } { (more) " more" } }
        ". " span class="age" { (moment::ago(first.first_after, now)) }
    }
}

fn audit_in_short(host: &HostView) -> Markup {
    let address = format!("{}#audit", host_address(&host.name));
    html! {
        @match &host.audit {
            None => "–",
            Some(audit) if audit.wrong.is_empty() => span class="sign good" { span class="glyph" aria-hidden="true" { "✓" } " nothing found" },
            Some(audit) => a href=(address) { (audit.wrong.len()) " to look at" },
        }
    }
}

/// `eth0 25 Gbit/s, MTU 9000`.
fn in_short(interface: &InterfaceView) -> String {
    let speed = interface.speed_mbps.map(|mbps| format!(" {}", speed(mbps)));
    let mtu = interface.mtu.map(|mtu| format!(", MTU {mtu}"));
    format!(
        "{}{}{}",
        interface.name,
        speed.unwrap_or_default(),
        mtu.unwrap_or_default()
    )
}

fn speed(mbps: u32) -> String {
    BitRate(u64::from(mbps) * 1_000_000).to_string()
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
        @if let Some(audit) = &host.audit { (audited(audit)) }
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
        @if !host.interfaces.is_empty() { (interfaces(&host.interfaces)) }
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

fn interfaces(interfaces: &[InterfaceView]) -> Markup {
    html! {
        section aria-labelledby="interfaces" {
            h2 id="interfaces" { "Interfaces" }
            div class="wide" tabindex="0" role="region" aria-label="Table of interfaces" {
                table class="rows" {
                    thead {
                        tr {
                            th scope="col" { "Name" } th scope="col" { "Kind" } th scope="col" { "State" } th scope="col" class="number" { "Speed" }
                            th scope="col" class="number" { "MTU" } th scope="col" { "Driver" }
                        }
                    }
                    tbody {
                        @for one in interfaces {
                            tr {
                                th scope="row" { (one.name) } td { (one.kind) } td { @if one.up { "up" } @else { "down" } }
                                td class="number" { (one.speed_mbps.map_or_else(|| "–".to_owned(), speed)) }
                                td class="number" { (one.mtu.map_or_else(|| "–".to_owned(), |mtu| mtu.to_string())) }
                                td { (one.driver.as_ref().map_or("–", |driver| driver)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// What is not as it should be, and what to set.
fn audited(audit: &AuditView) -> Markup {
    html! {
        section aria-labelledby="audit" {
            h2 id="audit" {
                "Audit"
                small { @match audit.wrong.len() { 0 => "nothing found", count => { (count) " to look at" } } }
            }
            p class="about" {
                "For " (audit.load) ". " (counted(audit.passed, "check")) " passed, " (audit.unknown) " cannot be answered by these facts. "
                "On the host, " code { "linerate host audit --all" } " lists them all."
            }
            @for wrong in &audit.wrong { (to_look_at(wrong)) }
        }
    }
}

fn to_look_at(wrong: &WrongView) -> Markup {
    let class = if wrong.severity == 1 {
        "severe"
    } else {
        "mild"
    };
    html! {
        article class={ "wrong " (class) } {
            h3 { (wrong.sentence) }
            @if !wrong.changes.is_empty() { ul { @for setting in &wrong.changes { li { (to_set(setting)) } } } }
            p class="about" { "Severity " (wrong.severity) " of 4. Risk of setting it: " (wrong.risk) ". Check " (wrong.check) "." }
        }
    }
}

fn to_set(setting: &SettingView) -> Markup {
    html! {
        "Set " code { (setting.setting) } " to " code { (setting.value) }
        @if let Some(now) = &setting.now { " (now " code { (now) } ")" }
        ": " (setting.why.trim_end_matches('.')) "."
    }
}

/// Changes of one host, a line each.
pub(crate) fn changes(changes: &[HostChange], now: UnixMillis) -> Markup {
    html! {
        @if changes.is_empty() { p { "Nothing that is known." } } @else {
            ul class="changes" { @for one in changes { li { (time(one.first_after, now, true)) " " (changed(one)) "." } } }
        }
    }
}
