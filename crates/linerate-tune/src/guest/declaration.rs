//! What is declared: `interfaces.toml`, and the INI request of the GENI testbed's guest agent.

use std::fmt;
use std::net::IpAddr;

use linerate_model::tuning::InterfaceSetting;
use serde::{Deserialize, Serialize};
use toml::de::{DeTable, DeValue};

use super::ini;
use super::{Mac, Network};
use crate::document::{Document, DocumentError, Key, Value};

/// All that is declared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declaration {
    /// Interfaces that are never touched, also where they are declared.
    pub ignore: Vec<Mac>,
    /// Interfaces, in the order of the file.
    pub interfaces: Vec<Declared>,
    /// What of the file is not for interfaces.
    pub notes: Vec<String>,
}

/// A declared interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declared {
    /// Its link-layer address.
    pub mac: Mac,
    /// Its name; `None` = the one that it has.
    pub name: Option<String>,
    /// Up or down.
    pub up: bool,
    /// Largest packet, bytes; `None` = the one that it has.
    pub mtu: Option<u32>,
    /// Its addresses, all of them.
    pub addresses: Vec<Network>,
    /// Routes over it.
    pub routes: Vec<Route>,
    /// Whether it may be the interface of the default route.
    pub allow_default_route: bool,
    /// Whether it may be renamed while it is up (Linux 6.2).
    pub rename_while_up: bool,
}

/// A route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// Where to; `None` = everywhere.
    pub to: Option<Network>,
    /// The next router; `None` = on the link.
    pub via: Option<IpAddr>,
    /// Lower is preferred; `None` = the kernel's default.
    pub metric: Option<u32>,
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.to {
            Some(to) => write!(f, "{to}")?,
            None => f.write_str("default")?,
        }
        if let Some(via) = self.via {
            write!(f, " via {via}")?;
        }
        match self.metric {
            Some(metric) => write!(f, " metric {metric}"),
            None => Ok(()),
        }
    }
}

impl Declared {
    pub(super) fn new(mac: Mac) -> Self {
        Self {
            mac,
            name: None,
            up: true,
            mtu: None,
            addresses: Vec::new(),
            routes: Vec::new(),
            allow_default_route: false,
            rename_while_up: false,
        }
    }
}

const TOP: [&str; 2] = ["ignore", "interface"];
const KEYS: [&str; 8] = [
    "mac",
    "name",
    "up",
    "mtu",
    "addresses",
    "routes",
    "allow_default_route",
    "rename_while_up",
];
const ROUTE_KEYS: [&str; 3] = ["to", "via", "metric"];

/// Reads a declaration: TOML where the name of the file ends in `.toml`, else the INI request.
///
/// # Errors
/// What is wrong, with its line and for unknown keys with the nearest one.
pub fn parse(file: &str, text: &str) -> Result<Declaration, DocumentError> {
    let toml = std::path::Path::new(file)
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("toml"));
    if toml {
        parse_toml(file, text)
    } else {
        ini::parse(file, text)
    }
}

fn parse_toml(file: &str, text: &str) -> Result<Declaration, DocumentError> {
    let document = Document { file, text };
    let table = document.top()?;
    let mut declaration = Declaration::default();
    for (key, value) in table.get_ref() {
        match key.get_ref().as_ref() {
            "ignore" => {
                for one in document.list("ignore", value)? {
                    declaration.ignore.push(document.parsed("ignore", one)?);
                }
            }
            "interface" => {
                for one in document.list("interface", value)? {
                    let declared = interface(&document, one)?;
                    distinct(&declaration, &declared)
                        .map_err(|reason| document.wrong("interface", one, reason))?;
                    declaration.interfaces.push(declared);
                }
            }
            _ => return Err(document.unknown("a declaration of interfaces", key, &TOP)),
        }
    }
    Ok(declaration)
}

pub(super) fn distinct(before: &Declaration, declared: &Declared) -> Result<(), String> {
    for other in &before.interfaces {
        if other.mac == declared.mac {
            return Err(format!("{} is declared twice", declared.mac));
        }
        if other.name.is_some() && other.name == declared.name {
            let name = other.name.as_deref().unwrap_or_default();
            return Err(format!(
                "{} and {} cannot both be {name}",
                other.mac, declared.mac
            ));
        }
    }
    Ok(())
}

fn interface(document: &Document<'_>, value: &Value<'_>) -> Result<Declared, DocumentError> {
    let table = document.table("interface", value)?;
    let find = |wanted: &str| table.iter().find(|(key, _)| key.get_ref() == wanted);
    let Some((_, mac)) = find("mac") else {
        return Err(document.wrong("interface", value, "it has no mac, by which it is found"));
    };
    let mut declared = Declared::new(document.parsed("mac", mac)?);
    for (key, value) in table {
        field(document, key, value, &mut declared)?;
    }
    if let Some((_, value)) = find("routes") {
        possible(&declared).map_err(|reason| document.wrong("routes", value, reason))?;
    }
    let six = declared.addresses.iter().any(|one| one.address.is_ipv6());
    if let (Some((_, value)), true) = (
        find("mtu"),
        six && declared.mtu.is_some_and(|mtu| mtu < 1280),
    ) {
        return Err(document.wrong("mtu", value, "IPv6 needs at least 1280"));
    }
    Ok(declared)
}

fn field(
    document: &Document<'_>,
    key: &Key<'_>,
    value: &Value<'_>,
    declared: &mut Declared,
) -> Result<(), DocumentError> {
    match key.get_ref().as_ref() {
        "mac" => {}
        "name" => {
            let name = document.words_of("name", value)?;
            name_of(&name).map_err(|reason| document.wrong("name", value, reason))?;
            declared.name = Some(name);
        }
        "up" => declared.up = document.switch("up", value)?,
        "allow_default_route" => {
            declared.allow_default_route = document.switch("allow_default_route", value)?;
        }
        "rename_while_up" => {
            declared.rename_while_up = document.switch("rename_while_up", value)?;
        }
        "mtu" => {
            let mtu = document.interface_value(InterfaceSetting::Mtu, "mtu", value)?;
            declared.mtu = mtu.parse().ok();
        }
        "addresses" => {
            for one in document.list("addresses", value)? {
                let address = document.parsed("addresses", one)?;
                if declared.addresses.contains(&address) {
                    return Err(document.wrong("addresses", one, "it is named twice"));
                }
                declared.addresses.push(address);
            }
        }
        "routes" => {
            for one in document.list("routes", value)? {
                declared.routes.push(route(document, one)?);
            }
        }
        _ => return Err(document.unknown("an interface", key, &KEYS)),
    }
    Ok(())
}

fn route(document: &Document<'_>, value: &Value<'_>) -> Result<Route, DocumentError> {
    let table: &DeTable<'_> = document.table("routes", value)?;
    let mut route = Route {
        to: None,
        via: None,
        metric: None,
    };
    let mut told = false;
    for (key, value) in table {
        match key.get_ref().as_ref() {
            "to" => {
                told = true;
                if !matches!(value.get_ref(), DeValue::String(text) if text == "default") {
                    let to: Network = document.parsed("to", value)?;
                    based(to).map_err(|reason| document.wrong("to", value, reason))?;
                    route.to = (to.prefix > 0).then_some(to);
                }
            }
            "via" => route.via = Some(document.parsed("via", value)?),
            "metric" => {
                let metric = document.whole("metric", value, 0..=u64::from(u32::MAX))?;
                route.metric = u32::try_from(metric).ok();
            }
            _ => return Err(document.unknown("a route", key, &ROUTE_KEYS)),
        }
    }
    if !told {
        return Err(document.wrong(
            "routes",
            value,
            "a route has no 'to': a network or \"default\"",
        ));
    }
    Ok(route)
}

/// A network has no bits behind its prefix.
pub(super) fn based(network: Network) -> Result<(), String> {
    let base = network.base();
    if base == network {
        return Ok(());
    }
    Err(format!(
        "it is an address in a network; the network is {base}"
    ))
}

/// What holds of an interface with its routes as a whole.
pub(super) fn possible(declared: &Declared) -> Result<(), String> {
    for route in &declared.routes {
        if route.to.is_none() && !declared.allow_default_route {
            return Err("a default route over it needs allow_default_route = true".to_owned());
        }
        if route.to.is_none() && route.via.is_none() {
            return Err("a default route needs 'via'".to_owned());
        }
        if let (Some(to), Some(via)) = (route.to, route.via)
            && to.address.is_ipv4() != via.is_ipv4()
        {
            return Err(format!("{to} and {via} are not of one family"));
        }
    }
    Ok(())
}

/// `dev_valid_name` of `net/core/dev.c`, and no name that a program would take for another thing.
fn name_of(name: &str) -> Result<(), String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || ['_', '-', '.'].contains(&c);
    let plain = !["all", "default", "lo", ".", ".."].contains(&name) && !name.starts_with('-');
    if name.is_empty() || name.len() > 15 || !name.chars().all(allowed) || !plain {
        return Err(
            "a name has 1 to 15 letters, digits, '_', '-' or '.', and is not lo, all or default"
                .to_owned(),
        );
    }
    // The kernel numbers its own, and one that comes later would find its name taken.
    if ["eth", "wlan"].iter().any(|own| {
        name.strip_prefix(own).is_some_and(|rest| {
            !rest.is_empty() && rest.bytes().all(|digit| digit.is_ascii_digit())
        })
    }) {
        return Err(
            "names such as eth0 are the kernel's own; use another one, such as data0".to_owned(),
        );
    }
    Ok(())
}
