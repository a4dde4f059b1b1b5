//! The MTU of an interface that systemd-networkd has: a drop-in beside the `.network` file of that interface.
//!
//! networkd sets `MTUBytes=` of a `.network` file, or an MTU that came by DHCP (`UseMTU=`), after udev has applied the
//! `.link` file. A drop-in holds for every interface that its file matches, so there is one only where the file is
//! for this interface alone.

use std::collections::BTreeMap;

use linerate_model::host::Interface;

use super::Place;

/// Where networkd keeps the state of each link, in a file by the link's index.
pub const LINKS: &str = "/run/systemd/netif/links";

/// A `.network` file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NetworkFile {
    /// Its path from `/`.
    pub path: String,
    /// Its text.
    pub text: String,
}

/// The `.network` file that a link's state names.
pub fn file_in(state: &str) -> Option<&str> {
    let mut lines = state.lines();
    let named = lines.find_map(|line| line.strip_prefix("NETWORK_FILE="))?;
    let file = named.trim_matches('"');
    (file.starts_with('/') && file.strip_suffix(".network").is_some()).then_some(file)
}

impl NetworkFile {
    /// The words of a key in sections of a name, all of its lines together; an empty value forgets those before
    /// (systemd.syntax(7)).
    fn words(&self, section: &str, key: &str) -> Vec<&str> {
        let (mut inside, mut words) = (false, Vec::new());
        for line in self.text.lines().map(str::trim) {
            if let Some(name) = line.strip_prefix('[') {
                inside = name.strip_suffix(']') == Some(section);
            }
            let Some((found, value)) = line.split_once('=').filter(|_| inside) else {
                continue;
            };
            if found.trim() != key {
                continue;
            }
            if value.trim().is_empty() {
                words.clear();
            }
            words.extend(value.split_whitespace());
        }
        words
    }

    /// Whether no other interface can match.
    fn is_for(&self, interface: &Interface) -> bool {
        let only = |key: &str, wanted: Option<&str>| {
            let words = self.words("Match", key);
            matches!((words.as_slice(), wanted), ([word], Some(wanted)) if word.eq_ignore_ascii_case(wanted))
        };
        only("Name", Some(&interface.name))
            || only("PermanentMACAddress", interface.permanent_mac.as_deref())
    }

    fn drop_in(&self) -> String {
        let (_, name) = self.path.rsplit_once('/').unwrap_or_default();
        format!("/etc/systemd/network/{name}.d/95-linerate.conf")
    }
}

/// The drop-in that gives an interface an MTU; `None` where networkd has no file for it alone.
pub(super) fn place(
    interface: &Interface,
    mtu: &str,
    networks: &BTreeMap<String, NetworkFile>,
) -> Option<Place> {
    let file = networks.get(&interface.name)?;
    file.is_for(interface).then(|| Place {
        path: file.drop_in(),
        head: "[Link]\n".to_owned(),
        line: format!("MTUBytes={mtu}"),
        ..Place::default()
    })
}

/// What networkd may set instead.
pub(super) fn warning(
    interface: &Interface,
    mtu: &str,
    networks: &BTreeMap<String, NetworkFile>,
) -> Option<String> {
    let name = &interface.name;
    let Some(file) = networks.get(name) else {
        return Some(format!(
            "systemd-networkd runs: a .network file for {name} that sets the same wins over a .link file"
        ));
    };
    if file.is_for(interface) {
        return None;
    }
    let sets = file.words("Link", "MTUBytes");
    let sets = sets.last().filter(|sets| **sets != mtu)?;
    Some(format!(
        "{} sets MTUBytes={sets} for {name} and wins over a .link file; it is for other interfaces too, so it gets no \
         drop-in: give {name} a file of its own, or set it there",
        file.path
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_named_by_the_state_of_the_link() {
        let state = "# This is private data. Do not parse.\nADMIN_STATE=configured\nNETWORK_FILE=/run/systemd/network/10-netplan-eth0.network\n";
        assert_eq!(
            file_in(state),
            Some("/run/systemd/network/10-netplan-eth0.network")
        );
        assert_eq!(file_in("ADMIN_STATE=unmanaged\n"), None);
        assert_eq!(file_in("NETWORK_FILE=../shadow\n"), None);
    }

    #[test]
    fn a_file_is_for_an_interface_alone_where_it_names_no_other() {
        let interface = Interface {
            name: "eth0".to_owned(),
            permanent_mac: Some("02:00:00:00:00:02".to_owned()),
            ..Interface::default()
        };
        for (text, alone) in [
            ("[Match]\nName=eth0\n", true),
            ("[Match]\nPermanentMACAddress=02:00:00:00:00:02\n", true),
            ("[Match]\nName=eth*\nName=\nName = eth0\n", true),
            ("[Match]\nName=eth0 eth1\n", false),
            ("[Match]\nName=eth0\nName=eth1\n", false),
            ("[Match]\nName=e*\n", false),
            // A VLAN has the address of the card below it.
            ("[Match]\nMACAddress=02:00:00:00:00:02\n", false),
            ("[Network]\nName=eth0\n", false),
        ] {
            let file = NetworkFile {
                path: "/etc/systemd/network/x.network".to_owned(),
                text: text.to_owned(),
            };
            assert_eq!(file.is_for(&interface), alone, "{text}");
        }
    }
}
