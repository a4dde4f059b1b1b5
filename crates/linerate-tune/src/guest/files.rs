//! Files by which a name survives a reboot and other programs leave an interface alone.

use std::fmt::Write as _;

use super::{Declared, Mac};

/// Where systemd reads `.link` and `.network` files. Of those that match, the first by name counts, whatever its folder.
pub const NETWORK: &str = "/etc/systemd/network";
const OURS: &str = "10-linerate-guest-";
/// What `NetworkManager` reads beside its own file.
pub const MANAGER: &str = "/etc/NetworkManager/conf.d/90-linerate-interfaces.conf";

const HEAD: &str = "# Written by `linerate tune interfaces`; changes here are lost.\n";

/// Whether a file in [`NETWORK`] is one of these. What `tune persist` writes for an interface by its name is not one,
/// whatever the name: none has room for twelve digits behind `guest-`.
pub fn is_ours(name: &str) -> bool {
    let digits = name.strip_prefix(OURS).and_then(|rest| {
        rest.strip_suffix(".link")
            .or_else(|| rest.strip_suffix(".network"))
    });
    digits.is_some_and(|digits| {
        digits.len() == 12 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// The files for declared interfaces: path and text.
pub(super) fn files(interfaces: &[&Declared]) -> Vec<(String, String)> {
    let mut files = Vec::new();
    for declared in interfaces {
        if let Some(name) = &declared.name {
            files.push((link_file(declared.mac), link(declared.mac, name)));
        }
        files.push((network_file(declared.mac), network(declared.mac)));
    }
    if !interfaces.is_empty() {
        files.push((MANAGER.to_owned(), manager(interfaces)));
    }
    files
}

/// The file by which an interface has its declared name.
pub(crate) fn link_file(mac: Mac) -> String {
    format!("{NETWORK}/{OURS}{}.link", mac.digits())
}

/// The file that every declared interface has.
pub(super) fn network_file(mac: Mac) -> String {
    format!("{NETWORK}/{OURS}{}.network", mac.digits())
}

/// systemd.link(5): the first file that matches is the only one, so what the default would do beside naming is said.
fn link(mac: Mac, name: &str) -> String {
    format!(
        "{HEAD}[Match]\nPermanentMACAddress={mac}\n\n[Link]\nNamePolicy=\nName={name}\nMACAddressPolicy=none\n"
    )
}

/// systemd.network(5).
fn network(mac: Mac) -> String {
    format!("{HEAD}[Match]\nPermanentMACAddress={mac}\n\n[Link]\nUnmanaged=yes\n")
}

/// NetworkManager.conf(5): `+=` leaves alone what other files name.
fn manager(interfaces: &[&Declared]) -> String {
    let mut text = format!("{HEAD}[keyfile]\nunmanaged-devices+=");
    for (at, declared) in interfaces.iter().enumerate() {
        let separator = if at == 0 { "" } else { ";" };
        // Writing to a string does not fail.
        let _ = write!(text, "{separator}mac:{}", declared.mac);
    }
    text.push('\n');
    text
}
