//! Actions, done: files, interfaces of the kernel, programs that read their files again.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::{Command, Stdio};

use linerate_kernel::inventory::Root;
use linerate_kernel::setting::{self, Change, RouteOver};
use linerate_tune::guest::{Action, Effects, Route};
use linerate_tune::kept_file;

use super::store::replace;

pub(super) struct Guest {
    root: Root,
}

impl Guest {
    pub(super) fn below(root: Root) -> Self {
        Self { root }
    }
}

impl Effects for Guest {
    fn act(&mut self, action: &Action) -> Result<(), String> {
        let change = |add: &bool| if *add { Change::Add } else { Change::Remove };
        let done = match action {
            Action::WriteFile { path, text } => return replace(&self.root, path, text),
            Action::RemoveFile { path } => {
                return kept_file::remove(&self.root, path).map_err(|error| error.to_string());
            }
            Action::Reload { program } => return reload(program),
            Action::Rename { from, to, .. } => setting::rename(from, to),
            Action::Mtu { interface, mtu, .. } => setting::set_mtu(interface, *mtu),
            Action::Up { interface, up, .. } => setting::set_up(interface, *up),
            Action::Address {
                interface,
                address,
                add,
                ..
            } => setting::change_address(interface, address.address, address.prefix, change(add)),
            Action::Route {
                interface,
                route,
                add,
                ..
            } => setting::change_route(over(interface, route), change(add)),
        };
        done.or_else(|error| match error.code() {
            code if is_gone(action, code) => Ok(()),
            Some(EPERM) => Err(format!("{}: run it as root", error.source)),
            _ => Err(error.source.to_string()),
        })
    }
}

const EPERM: i32 = 1;
const ESRCH: i32 = 3;
const EADDRNOTAVAIL: i32 = 99;

/// Whether the kernel refused to remove what is not there: systemd-networkd removes the addresses and routes of an
/// interface at about the same time, once it reads that it is unmanaged.
fn is_gone(action: &Action, code: Option<i32>) -> bool {
    match action {
        Action::Address { add: false, .. } => code == Some(EADDRNOTAVAIL),
        Action::Route { add: false, .. } => code == Some(ESRCH),
        _ => false,
    }
}

fn over<'a>(interface: &'a str, route: &Route) -> RouteOver<'a> {
    let everywhere = match route.via {
        Some(IpAddr::V6(_)) => IpAddr::from(Ipv6Addr::UNSPECIFIED),
        _ => IpAddr::from(Ipv4Addr::UNSPECIFIED),
    };
    RouteOver {
        to: route
            .to
            .map_or((everywhere, 0), |to| (to.address, to.prefix)),
        via: route.via,
        interface,
        metric: route.metric,
    }
}

fn reload(program: &str) -> Result<(), String> {
    let (command, words): (&str, &[&str]) = match program {
        "NetworkManager" => ("nmcli", &["general", "reload", "conf"]),
        _ => ("networkctl", &["reload"]),
    };
    let output = Command::new(command)
        .args(words)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run {command}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{command} {}: {}", words.join(" "), said.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_somebody_else_removed_is_removed() {
        let action = |add| Action::Address {
            mac: "52:54:00:00:00:01".parse().unwrap(),
            interface: "data0".to_owned(),
            address: "10.0.2.15/24".parse().unwrap(),
            add,
        };
        assert!(is_gone(&action(false), Some(EADDRNOTAVAIL)));
        assert!(!is_gone(&action(false), Some(EPERM)));
        assert!(!is_gone(&action(true), Some(EADDRNOTAVAIL)));
        assert!(!is_gone(&action(false), None));
    }
}
