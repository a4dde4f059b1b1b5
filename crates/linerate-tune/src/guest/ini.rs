//! The INI request of the guest agent of the GENI testbed (neuca-guest-tools 1.7):
//!
//! ```text
//! [global]
//! dataplane-macs-to-ignore = fe:16:3e:00:00:01, FE-16-3E-00-00-02
//! [interfaces]
//! fe:16:3e:00:00:03 = up:ipv4:172.16.0.1/24
//! [routes]
//! 10.1.0.0/16 = 172.16.0.2
//! ```

use std::net::IpAddr;

use linerate_document::DocumentError;
use linerate_model::nearest;

use super::declaration::{Declaration, Declared, Route, based, distinct, possible};
use super::{Mac, Network};

const IGNORE: &str = "dataplane-macs-to-ignore";
const SECTIONS: [&str; 3] = ["global", "interfaces", "routes"];
/// Sections of the same request that other parts of the agent read.
const OTHERS: [&str; 4] = ["storage", "users", "scripts", "neuca"];

pub(super) fn parse(file: &str, text: &str) -> Result<Declaration, DocumentError> {
    let mut declaration = Declaration::default();
    let mut routes = Vec::new();
    let mut section = String::new();
    for (line, whole) in (1..).zip(text.lines()) {
        let whole = whole.trim();
        if whole.is_empty() || whole.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = whole
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            section = name.trim().to_ascii_lowercase();
            known(file, line, &section, &mut declaration)?;
            continue;
        }
        let wrong = |key: &str, reason| DocumentError::in_line(file, line, key, whole, reason);
        let Some((key, value)) = whole.split_once('=') else {
            return Err(wrong("the line", "not 'key = value'".to_owned()));
        };
        let (key, value) = (key.trim(), value.trim());
        match section.as_str() {
            "global" if key.eq_ignore_ascii_case(IGNORE) => {
                for one in value.split(',').filter(|one| !one.trim().is_empty()) {
                    let mac = one.parse::<Mac>();
                    declaration
                        .ignore
                        .push(mac.map_err(|error| wrong(key, error.to_string()))?);
                }
            }
            "interfaces" => {
                let declared = interface(key, value).map_err(|reason| wrong(key, reason))?;
                distinct(&declaration, &declared).map_err(|reason| wrong(key, reason))?;
                declaration.interfaces.push(declared);
            }
            "routes" => {
                let route = route(key, value).map_err(|reason| wrong(key, reason))?;
                routes.push((line, whole, route));
            }
            "" => return Err(wrong(key, "not in a section".to_owned())),
            // The rest of [global] is about the guest, and other sections are not for interfaces.
            _ => {}
        }
    }
    for (line, whole, (route, via)) in routes {
        place(&mut declaration, route, via)
            .map_err(|reason| DocumentError::in_line(file, line, "the route", whole, reason))?;
    }
    Ok(declaration)
}

fn known(
    file: &str,
    line: usize,
    section: &str,
    declaration: &mut Declaration,
) -> Result<(), DocumentError> {
    if OTHERS.contains(&section) {
        let note = format!("{file}:{line}: [{section}] is not for interfaces, and is left out");
        declaration.notes.push(note);
        return Ok(());
    }
    if SECTIONS.contains(&section) {
        return Ok(());
    }
    Err(DocumentError::UnknownKey {
        file: file.to_owned(),
        line,
        section: "a request",
        key: section.to_owned(),
        hint: nearest::hint(section, &SECTIONS),
    })
}

/// `up|down : ipv4|ipv6 : address/prefix`; without an address it is up or down alone.
fn interface(mac: &str, value: &str) -> Result<Declared, String> {
    let mut declared = Declared::new(mac.parse::<Mac>().map_err(|error| error.to_string())?);
    let mut parts = value.splitn(3, ':').map(str::trim);
    declared.up = match parts
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase()
        .as_str()
    {
        "up" => true,
        "down" => false,
        other => return Err(format!("'{other}' is neither up nor down")),
    };
    let four = match parts.next().filter(|family| !family.is_empty()) {
        None => return Ok(declared),
        Some(family) if family.eq_ignore_ascii_case("ipv4") => true,
        Some(family) if family.eq_ignore_ascii_case("ipv6") => false,
        Some(other) => return Err(format!("'{other}' is neither ipv4 nor ipv6")),
    };
    let Some(address) = parts.next().filter(|address| !address.is_empty()) else {
        return Ok(declared);
    };
    let address: Network = address.parse().map_err(|error| format!("{error}"))?;
    if address.address.is_ipv4() != four {
        return Err(format!("{address} is not of the family that it names"));
    }
    declared.addresses.push(address);
    Ok(declared)
}

fn route(network: &str, hop: &str) -> Result<(Route, IpAddr), String> {
    let to: Network = network.parse().map_err(|error| format!("{error}"))?;
    based(to)?;
    let via: IpAddr = hop
        .parse()
        .map_err(|_| format!("'{hop}' is not the address of a router"))?;
    let route = Route {
        to: (to.prefix > 0).then_some(to),
        via: Some(via),
        metric: None,
    };
    Ok((route, via))
}

/// A route goes over the interface in whose network its router is.
fn place(declaration: &mut Declaration, route: Route, via: IpAddr) -> Result<(), String> {
    let holds = |one: &&mut Declared| one.addresses.iter().any(|network| network.holds(via));
    let found = declaration.interfaces.iter_mut().find(holds);
    let Some(declared) = found else {
        return Err(format!(
            "{via} is in the network of no interface of the request"
        ));
    };
    declared.routes.push(route);
    possible(declared)
}
