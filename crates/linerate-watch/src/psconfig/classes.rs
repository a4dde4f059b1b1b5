//! Which addresses a class of a template has.

use std::collections::HashMap;
use std::net::IpAddr;
use std::rc::Rc;

use super::template::{Address, AddressClass, Filter, Template};

/// Filters that are asked before a template counts as too large.
const MOST_STEPS: usize = 2_000_000;
/// Classes within classes within classes …
const MOST_DEPTH: usize = 16;

/// Why a class selects nothing.
type Unread = String;

/// The addresses of each class that was asked for.
pub(super) struct Classes<'t> {
    template: &'t Template,
    known: HashMap<&'t str, Rc<[usize]>>,
    steps: usize,
    /// What is to be said of classes.
    pub(super) said: Vec<String>,
}

impl<'t> Classes<'t> {
    pub(super) fn new(template: &'t Template) -> Self {
        Self {
            template,
            known: HashMap::new(),
            steps: 0,
            said: Vec::new(),
        }
    }

    /// The places of the addresses of a class; none where there is no such class, or where it cannot be decided.
    pub(super) fn members(&mut self, name: &'t str) -> Rc<[usize]> {
        if let Some(known) = self.known.get(name) {
            return Rc::clone(known);
        }
        let members = self.select(name).unwrap_or_else(|why| {
            let line = format!("address-classes: '{name}' selects nothing: {why}");
            self.said.push(line);
            Vec::new()
        });
        let members: Rc<[usize]> = members.into();
        self.known.insert(name, Rc::clone(&members));
        members
    }

    fn select(&mut self, name: &str) -> Result<Vec<usize>, Unread> {
        let template = self.template;
        let class = template.address_classes.named(name);
        let class = class.ok_or("there is no such class")?;
        if class.data_source.kind != "current-config" {
            return Err(format!(
                "its data source '{}' is of pSConfig's agents",
                class.data_source.kind
            ));
        }
        let mut members = Vec::new();
        for (place, (_, address)) in template.addresses.iter().enumerate() {
            if self.has(class, address, 0)? {
                members.push(place);
            }
        }
        Ok(members)
    }

    fn has(
        &mut self,
        class: &AddressClass,
        address: &Address,
        depth: usize,
    ) -> Result<bool, Unread> {
        if let Some(filter) = &class.match_filter
            && !self.passes(filter, address, depth)?
        {
            return Ok(false);
        }
        match &class.exclude_filter {
            Some(filter) => Ok(!self.passes(filter, address, depth)?),
            None => Ok(true),
        }
    }

    fn passes(&mut self, filter: &Filter, address: &Address, depth: usize) -> Result<bool, Unread> {
        self.steps += 1;
        if self.steps > MOST_STEPS {
            return Err("the filters take too long".to_owned());
        }
        match filter.kind.as_str() {
            "tag" => Ok(self.has_tag(filter, address)),
            "host" => self.host_passes(filter, address),
            "ip-version" => {
                let wanted = filter.ip_version;
                let version = literal(address)?.map(|ip| if ip.is_ipv4() { 4 } else { 6 });
                Ok(version.is_some() && version == wanted)
            }
            "netmask" => within(filter, address),
            "not" => match &filter.filter {
                Some(inner) => Ok(!self.passes(inner, address, depth)?),
                None => Ok(true),
            },
            "and" => {
                for inner in &filter.filters {
                    if !self.passes(inner, address, depth)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            "or" => {
                for inner in &filter.filters {
                    if self.passes(inner, address, depth)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            "address-class" => self.class_passes(filter, address, depth),
            other => Err(format!("filters of type '{other}' are not read")),
        }
    }

    fn class_passes(
        &mut self,
        filter: &Filter,
        address: &Address,
        depth: usize,
    ) -> Result<bool, Unread> {
        let Some(name) = &filter.class else {
            return Ok(true);
        };
        if depth >= MOST_DEPTH {
            return Err("its classes name each other more than 16 deep".to_owned());
        }
        match self.template.address_classes.named(name) {
            Some(class) => self.has(class, address, depth + 1),
            None => Ok(false),
        }
    }

    fn has_tag(&self, filter: &Filter, address: &Address) -> bool {
        let Some(tag) = filter.tag.as_deref().filter(|tag| !tag.is_empty()) else {
            return true;
        };
        let host = address.host.as_deref();
        let host = host.and_then(|host| self.template.hosts.named(host));
        is_among(tag, &address.tags) || host.is_some_and(|host| is_among(tag, &host.tags))
    }

    fn host_passes(&self, filter: &Filter, address: &Address) -> Result<bool, Unread> {
        if filter.jq.is_some() {
            return Err("filters of jq are not read".to_owned());
        }
        let host = address.host.as_deref();
        let Some(host) = host.and_then(|host| self.template.hosts.named(host)) else {
            return Ok(false);
        };
        let tag = filter.tag.as_deref().filter(|tag| !tag.is_empty());
        Ok(tag.is_none_or(|tag| is_among(tag, &host.tags)) && filter.no_agent == host.no_agent)
    }
}

fn is_among(tag: &str, tags: &[String]) -> bool {
    let tag = tag.to_lowercase();
    tags.iter().any(|known| known.to_lowercase() == tag)
}

/// The address as a number. A name is not resolved here: names change, and a plan is the same wherever it is read.
fn literal(address: &Address) -> Result<Option<IpAddr>, Unread> {
    let Some(text) = &address.address else {
        return Ok(None);
    };
    text.parse().map(Some).map_err(|_| {
        format!("it asks for the IP address of '{text}', and names are not resolved here")
    })
}

fn within(filter: &Filter, address: &Address) -> Result<bool, Unread> {
    let (Some(mask), Some(ip)) = (&filter.netmask, literal(address)?) else {
        return Ok(false);
    };
    let wrong = || format!("'{mask}' is not a network such as 192.0.2.0/24");
    let (network, length) = mask.split_once('/').ok_or_else(wrong)?;
    let (network, length): (IpAddr, u32) = (
        network.parse().map_err(|_| wrong())?,
        length.parse().map_err(|_| wrong())?,
    );
    let (network, ip, bits) = match (network, ip) {
        (IpAddr::V4(network), IpAddr::V4(ip)) => (
            u128::from(network.to_bits()),
            u128::from(ip.to_bits()),
            32_u32,
        ),
        (IpAddr::V6(network), IpAddr::V6(ip)) => (network.to_bits(), ip.to_bits(), 128),
        _ => return Ok(false),
    };
    let beyond = bits.checked_sub(length).ok_or_else(wrong)?;
    let shifted = |address: u128| address.checked_shr(beyond).unwrap_or(0);
    Ok(shifted(network) == shifted(ip))
}
