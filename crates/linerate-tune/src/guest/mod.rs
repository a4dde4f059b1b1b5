//! Data-plane interfaces of a guest: a declaration by MAC address, and what has to be done so that it holds.
//!
//! Pure: [`declaration`] reads what is declared, [`plan()`] holds it against the facts and against what was applied the
//! last time, [`carry_out`] takes the actions through a trait. Interfaces that are not declared are never touched.

mod address;
pub mod declaration;
mod files;
mod ini;
mod plan;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use address::{AddressError, Mac, Network};
pub use declaration::{Declaration, Declared, Route};
pub(crate) use files::link_file;
pub use files::{MANAGER, NETWORK, is_ours};
pub use plan::{GuestPlan, Present, Situation, plan};

/// Something that is done to a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "action")]
pub enum Action {
    /// Gives a file this text.
    WriteFile {
        /// Absolute, below the root.
        path: String,
        /// The whole content.
        text: String,
    },
    /// Removes a file of ours.
    RemoveFile {
        /// Absolute, below the root.
        path: String,
    },
    /// Has a program that runs read its files again.
    Reload {
        /// `NetworkManager`, `systemd-networkd`.
        program: String,
    },
    /// Gives an interface another name.
    Rename {
        /// The interface.
        mac: Mac,
        /// Its name now.
        from: String,
        /// Its name then.
        to: String,
    },
    /// Sets the largest packet.
    Mtu {
        /// The interface.
        mac: Mac,
        /// Its name.
        interface: String,
        /// Bytes.
        mtu: u32,
    },
    /// Brings an interface up or down.
    Up {
        /// The interface.
        mac: Mac,
        /// Its name.
        interface: String,
        /// Up or down.
        up: bool,
    },
    /// Adds or removes an address.
    Address {
        /// The interface.
        mac: Mac,
        /// Its name.
        interface: String,
        /// With the length of its prefix.
        address: Network,
        /// Added, or removed.
        add: bool,
    },
    /// Adds or removes a route.
    Route {
        /// The interface.
        mac: Mac,
        /// Its name.
        interface: String,
        /// Destination, router and metric.
        route: Route,
        /// Added, or removed.
        add: bool,
    },
}

impl Action {
    /// The interface that it is done to; `None` for files and programs.
    pub fn mac(&self) -> Option<Mac> {
        match self {
            Self::WriteFile { .. } | Self::RemoveFile { .. } | Self::Reload { .. } => None,
            Self::Rename { mac, .. }
            | Self::Mtu { mac, .. }
            | Self::Up { mac, .. }
            | Self::Address { mac, .. }
            | Self::Route { mac, .. } => Some(*mac),
        }
    }
}

impl std::fmt::Display for Action {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let verb = |add: &bool| if *add { "add" } else { "remove" };
        match self {
            Self::WriteFile { path, .. } => write!(f, "write {path}"),
            Self::RemoveFile { path } => write!(f, "remove {path}"),
            Self::Reload { program } => write!(f, "have {program} read its files again"),
            Self::Rename { from, to, .. } => write!(f, "rename {from} to {to}"),
            Self::Mtu { interface, mtu, .. } => write!(f, "set the MTU of {interface} to {mtu}"),
            Self::Up { interface, up, .. } => {
                write!(f, "bring {interface} {}", if *up { "up" } else { "down" })
            }
            Self::Address {
                interface,
                address,
                add,
                ..
            } => write!(f, "{} the address {address} of {interface}", verb(add)),
            Self::Route {
                interface,
                route,
                add,
                ..
            } => write!(f, "{} the route {route} of {interface}", verb(add)),
        }
    }
}

/// What was applied the last time, so that what people changed by hand since then is left alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// Id of the boot in which it was applied.
    pub boot_id: String,
    /// The start of the service by which it was applied; empty by hand.
    pub start: String,
    /// What was applied, by MAC address.
    pub applied: BTreeMap<Mac, Applied>,
}

/// What was applied to an interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Applied {
    /// Its index then: one that was taken out and put in again has another.
    pub index: u32,
    /// The declaration then.
    pub declared: Declared,
}

/// Where actions are done.
pub trait Effects {
    /// Does one.
    ///
    /// # Errors
    /// Why it could not be done.
    fn act(&mut self, action: &Action) -> Result<(), String>;
}

/// What became of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Done {
    /// Actions that were done.
    pub done: Vec<String>,
    /// Actions that failed, with the reason.
    pub failed: Vec<String>,
    /// Interfaces of which all was done.
    #[serde(skip)]
    pub whole: Vec<Mac>,
}

/// Does all actions of a plan. After one that fails, the rest of its interface is left; others go on.
pub fn carry_out(plan: &GuestPlan, effects: &mut impl Effects) -> Done {
    let mut done = Done::default();
    let mut broken: Vec<Mac> = Vec::new();
    for action in &plan.actions {
        if action.mac().is_some_and(|mac| broken.contains(&mac)) {
            continue;
        }
        match effects.act(action) {
            Ok(()) => done.done.push(action.to_string()),
            Err(why) => {
                done.failed.push(format!("cannot {action}: {why}"));
                broken.extend(action.mac());
            }
        }
    }
    let whole = |mac: &&Mac| !broken.contains(mac);
    done.whole = plan.due.keys().filter(whole).copied().collect();
    done
}
