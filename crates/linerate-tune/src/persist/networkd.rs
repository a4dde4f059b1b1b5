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

/// Where `.network` files and their drop-ins are; of two of one name the earlier folder's is read.
pub const FOLDERS: [&str; 4] = [
    "/etc/systemd/network",
    "/run/systemd/network",
    "/usr/local/lib/systemd/network",
    "/usr/lib/systemd/network",
];

const OURS: &str = "95-linerate.conf";

/// A `.network` file of systemd-networkd that matches an interface (systemd.network(5)).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NetworkFile {
    /// Absolute, below the root.
    pub path: String,
    /// The whole content.
    pub text: String,
    /// Drop-ins of others.
    pub drop_ins: DropIns,
}

/// Drop-ins of a `.network` file, by the name of the file, in the order in which they are read: path from `/`, text.
pub type DropIns = BTreeMap<String, (String, String)>;

/// The `.network` file that a link's state names.
pub fn file_in(state: &str) -> Option<&str> {
    let mut lines = state.lines();
    let named = lines.find_map(|line| line.strip_prefix("NETWORK_FILE="))?;
    let file = named.trim_matches('"');
    (file.starts_with('/') && file.strip_suffix(".network").is_some()).then_some(file)
}

impl NetworkFile {
    /// Its text and those of its drop-ins, as they are read, with their paths.
    fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        let drop_ins = self.drop_ins.values();
        let drop_ins = drop_ins.map(|(path, text)| (path.as_str(), text.as_str()));
        std::iter::once((self.path.as_str(), self.text.as_str())).chain(drop_ins)
    }

    /// The words of a key in sections of a name, all of its lines together, each with the file that it is in.
    fn words(&self, section: &str, key: &str) -> Vec<(&str, &str)> {
        let mut words = Vec::new();
        for (path, text) in self.texts() {
            gather(text, section, key, &mut |value| match value {
                None => words.clear(),
                Some(word) => words.push((path, word)),
            });
        }
        words
    }

    /// The file that has networkd take an MTU from DHCP.
    fn takes_mtu(&self) -> Option<&str> {
        // [DHCP] is the older name (systemd.network(5)).
        let sections = ["DHCPv4", "DHCP"].into_iter();
        let mut last = sections.filter_map(|section| self.words(section, "UseMTU").pop());
        let yes = ["yes", "true", "on", "1", "y", "t"];
        last.find(|(_, word)| yes.contains(&word.to_ascii_lowercase().as_str()))
            .map(|(path, _)| path)
    }

    /// What a drop-in that is read after linerate's sets instead.
    fn wins_over_ours(&self, mtu: &str) -> Option<(&str, &str)> {
        let sets = self.words("Link", "MTUBytes").pop()?;
        let (path, value) = sets;
        let (_, name) = path.rsplit_once('/').unwrap_or_default();
        (self.drop_ins.contains_key(name) && name > OURS && value != mtu).then_some(sets)
    }

    /// Whether no other interface can match.
    fn is_for(&self, interface: &Interface) -> bool {
        let only = |key: &str, wanted: Option<&str>| {
            let words = self.words("Match", key);
            matches!((words.as_slice(), wanted), ([(_, word)], Some(wanted)) if word.eq_ignore_ascii_case(wanted))
        };
        only("Name", Some(&interface.name))
            || only("PermanentMACAddress", interface.permanent_mac.as_deref())
    }

    fn drop_in(&self) -> String {
        let (_, name) = self.path.rsplit_once('/').unwrap_or_default();
        format!("/etc/systemd/network/{name}.d/{OURS}")
    }
}

/// Tells the words of a key in sections of a name; an empty value, told as `None`, forgets those before
/// (systemd.syntax(7)).
fn gather<'a>(text: &'a str, section: &str, key: &str, tell: &mut dyn FnMut(Option<&'a str>)) {
    let mut inside = false;
    for line in text.lines().map(str::trim) {
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
            tell(None);
        }
        value.split_whitespace().for_each(|word| tell(Some(word)));
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
        return file.wins_over_ours(mtu).map(|(path, sets)| {
            format!("{path} sets MTUBytes={sets} for {name} after linerate's drop-in and wins: remove that line")
        });
    }
    let advice = format!(
        "for {name} and wins over a .link file; it is for other interfaces too, so it gets no drop-in: give {name} a file of \
         its own, or set it there"
    );
    match file.words("Link", "MTUBytes").pop() {
        // Where there is one, UseMTU= does nothing.
        Some((_, sets)) if sets == mtu => None,
        Some((path, sets)) => Some(format!("{path} sets MTUBytes={sets} {advice}")),
        None => file
            .takes_mtu()
            .map(|path| format!("{path} takes the MTU that DHCP gives (UseMTU=) {advice}")),
    }
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
                ..NetworkFile::default()
            };
            assert_eq!(file.is_for(&interface), alone, "{text}");
        }
    }
}
