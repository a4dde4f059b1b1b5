//! What is declared: `interfaces.toml`, and the INI request of the GENI testbed's guest agent.

use std::fmt;
use std::net::IpAddr;

use linerate_document::{Document, DocumentError, Key, Section, Value};
use serde::{Deserialize, Serialize};

use super::ini;
use super::{Mac, Network};
use crate::profile::MTU;

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

/// A destination and its router.
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

const TOP: Section = Section::of(
    "a declaration of interfaces",
    &[&[
        Key::of("ignore", "list of link-layer addresses"),
        Key::of("interface", "[[interface]]"),
    ]],
);
const INTERFACE: Section = Section::of(
    "an interface",
    &[&[
        Key::of("mac", "link-layer address, by which the interface is found"),
        Key::of("name", ""),
        Key::of("up", ""),
        Key::of("mtu", ""),
        Key::of("addresses", "list of address/prefix"),
        Key::of("routes", "list of { to, via, metric }"),
        Key::of("allow_default_route", ""),
        Key::of("rename_while_up", ""),
    ]],
);
const ROUTE: Section = Section::of(
    "a route",
    &[&[
        Key::of("to", "a network or \"default\""),
        Key::of("via", "address of a router"),
        Key::of("metric", ""),
    ]],
);

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
    let document = Document::parse(file, text, &[&TOP, &INTERFACE])?;
    let top = document.top(&TOP)?;
    let mut declaration = Declaration {
        ignore: top.read_all("ignore", Value::parsed)?,
        ..Declaration::default()
    };
    top.read_all("interface", |value| {
        let declared = interface(value)?;
        distinct(&declaration, &declared).map_err(|reason| value.wrong(reason))?;
        declaration.interfaces.push(declared);
        Ok(())
    })?;
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

fn interface(value: &Value<'_>) -> Result<Declared, DocumentError> {
    let table = value.table(&INTERFACE)?;
    let mut addresses = Vec::new();
    table.read_all("addresses", |value| {
        let address = value.parsed()?;
        value.refuse(addresses.contains(&address), "this address is there twice")?;
        addresses.push(address);
        Ok(())
    })?;
    let declared = Declared {
        mac: table.needed("mac")?.parsed()?,
        name: table.read("name", name)?,
        up: table.or("up", true, Value::boolean)?,
        mtu: table.read("mtu", |value| value.whole(MTU))?,
        addresses,
        routes: table.read_all("routes", route)?,
        allow_default_route: table.or("allow_default_route", false, Value::boolean)?,
        rename_while_up: table.or("rename_while_up", false, Value::boolean)?,
    };
    if let Some(routes) = table.value("routes") {
        possible(&declared).map_err(|reason| routes.wrong(reason))?;
    }
    let six = declared.addresses.iter().any(|one| one.address.is_ipv6());
    match table.value("mtu") {
        Some(mtu) if six && declared.mtu < Some(1280) => Err(mtu.wrong("IPv6 needs at least 1280")),
        _ => Ok(declared),
    }
}

fn route(value: &Value<'_>) -> Result<Route, DocumentError> {
    let table = value.table(&ROUTE)?;
    Ok(Route {
        to: network(table.needed("to")?)?,
        via: table.read("via", Value::parsed)?,
        metric: table.read("metric", |value| value.whole(0..=u32::MAX))?,
    })
}

/// `None` = everywhere.
fn network(value: &Value<'_>) -> Result<Option<Network>, DocumentError> {
    if value.text()? == "default" {
        return Ok(None);
    }
    let to: Network = value.parsed()?;
    based(to).map_err(|reason| value.wrong(reason))?;
    Ok((to.prefix > 0).then_some(to))
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
fn name(value: &Value<'_>) -> Result<String, DocumentError> {
    let name = value.words()?;
    let allowed = |c: char| c.is_ascii_alphanumeric() || ['_', '-', '.'].contains(&c);
    let plain =
        !["all", "default", "lo", ".", ".."].contains(&name.as_str()) && !name.starts_with('-');
    if name.is_empty() || name.len() > 15 || !name.chars().all(allowed) || !plain {
        return Err(value.wrong(
            "a name has 1 to 15 letters, digits, '_', '-' or '.', and is not lo, all or default",
        ));
    }
    // The kernel numbers its own, and one that comes later would find its name taken.
    if ["eth", "wlan"].iter().any(|own| {
        name.strip_prefix(own).is_some_and(|rest| {
            !rest.is_empty() && rest.bytes().all(|digit| digit.is_ascii_digit())
        })
    }) {
        return Err(
            value.wrong("names such as eth0 are the kernel's own; use another one, such as data0")
        );
    }
    Ok(name)
}
