//! Files that set sysctls: sysctl.d(5), /etc/sysctl.conf, tuned's active profile, cloud-init's user data.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::host::{Effect, Owner, Pinning, Setting};

use super::root::Root;

/// Where systemd-sysctl(8) and `sysctl --system` look, the first before the others: a file hides those of its
/// name in the folders behind it.
const FOLDERS: [&str; 5] = [
    "/etc/sysctl.d",
    "/run/sysctl.d",
    "/usr/local/lib/sysctl.d",
    "/usr/lib/sysctl.d",
    "/lib/sysctl.d",
];
const CONF: &str = "/etc/sysctl.conf";
const SYSTEMD: [&str; 2] = [
    "/usr/lib/systemd/systemd-sysctl",
    "/lib/systemd/systemd-sysctl",
];
const PROFILES: [&str; 4] = [
    "/etc/tuned",
    "/etc/tuned/profiles",
    "/usr/lib/tuned",
    "/usr/lib/tuned/profiles",
];
/// Profiles that include one another; more is a circle.
const MOST_PROFILES: usize = 32;

/// Every line that sets a sysctl, in the order in which they are read at boot.
pub(super) fn read(root: &Root) -> Vec<Setting> {
    let mut settings = from_sysctl(root);
    settings.extend(from_tuned(root));
    settings.extend(from_cloud_init(root));
    settings
}

/// A file with its name, and what hides it.
struct Source {
    path: String,
    effect: Effect,
}

fn from_sysctl(root: &Root) -> Vec<Setting> {
    let mut settings = Vec::new();
    for source in sources(root) {
        // What cannot be read sets nothing; the running values still tell.
        let Ok(text) = root.text(&source.path) else {
            continue;
        };
        let lines = assignments(&text).map(|(line, key, value)| Setting {
            key,
            value,
            file: source.path.clone(),
            line,
            owner: Owner::Sysctl,
            effect: source.effect.clone(),
        });
        settings.extend(lines);
    }
    mark_overridden(&mut settings);
    settings
}

/// The files in the order in which they are read: by name, whatever their folder; `/etc/sysctl.conf` last.
fn sources(root: &Root) -> Vec<Source> {
    let mut first: BTreeMap<String, String> = BTreeMap::new();
    let mut hidden: Vec<Source> = Vec::new();
    let mut seen_folders = BTreeSet::new();
    for folder in FOLDERS {
        // Where /lib is a link to /usr/lib it is one folder.
        let real = real_folder(root, folder);
        if !seen_folders.insert(real) {
            continue;
        }
        for name in root.names(folder) {
            if std::path::Path::new(&name)
                .extension()
                .is_none_or(|extension| extension != "conf")
            {
                continue;
            }
            let path = format!("{folder}/{name}");
            match first.get(&name) {
                Some(by) => hidden.push(Source {
                    path,
                    effect: Effect::Masked { by: by.clone() },
                }),
                None => {
                    first.insert(name, path);
                }
            }
        }
    }
    let linked = first
        .values()
        .any(|path| root.target(path).as_deref() == Some(CONF));
    let mut sources: Vec<Source> = first
        .into_values()
        .map(|path| Source {
            path,
            effect: Effect::Wins,
        })
        .collect();
    if !linked && root.has(CONF) {
        let systemd = SYSTEMD.iter().any(|path| root.has(path));
        sources.push(Source {
            path: CONF.to_owned(),
            effect: if systemd {
                Effect::NotAtBoot
            } else {
                Effect::Wins
            },
        });
    }
    sources.extend(hidden);
    sources
}

fn real_folder(root: &Root, folder: &str) -> String {
    let lib_is_linked = root
        .link_name("/lib")
        .is_some_and(|_| root.target("/lib").as_deref() == Some("/usr/lib"));
    match folder.strip_prefix("/lib/") {
        Some(rest) if lib_is_linked => format!("/usr/lib/{rest}"),
        _ => folder.to_owned(),
    }
}

/// Lines `key = value` of a file, with their number from 1 on. `-` before a key lets an error pass; a key with
/// `-` and without a value excludes itself from patterns and sets nothing.
fn assignments(text: &str) -> impl Iterator<Item = (u32, String, String)> {
    (1..).zip(text.lines()).filter_map(|(number, line)| {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            return None;
        }
        let (key, value) = line.split_once('=')?;
        let key = key.trim();
        let key = dotted(key.strip_prefix('-').unwrap_or(key).trim());
        (!key.is_empty()).then(|| (number, key, single_blanks(value)))
    })
}

/// A key with dots. Where the first separator is a slash, slashes separate and dots belong to names.
fn dotted(key: &str) -> String {
    match key.find(['.', '/']) {
        Some(at) if key.as_bytes()[at] == b'/' => key
            .chars()
            .map(|c| match c {
                '/' => '.',
                '.' => '/',
                other => other,
            })
            .collect(),
        _ => key.to_owned(),
    }
}

pub(super) fn single_blanks(value: &str) -> String {
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Of several lines for a key, the last one wins; an exact key wins against a pattern wherever it stands.
fn mark_overridden(settings: &mut [Setting]) {
    let counts = |setting: &Setting| setting.effect == Effect::Wins;
    for at in 0..settings.len() {
        if !counts(&settings[at]) {
            continue;
        }
        let this = &settings[at];
        let later = settings[at + 1..]
            .iter()
            .rfind(|other| counts(other) && other.key == this.key)
            .map(Setting::place);
        if let Some(by) = later {
            settings[at].effect = Effect::Overridden { by };
        }
    }
}

/// tuned's active profile with those that it includes, which are read before it.
fn from_tuned(root: &Root) -> Vec<Setting> {
    let active = root.word("/etc/tuned/active_profile").unwrap_or_default();
    let mut settings = Vec::new();
    let mut seen = BTreeSet::new();
    for profile in active.split_whitespace() {
        profile_lines(root, profile, &mut seen, &mut settings);
    }
    mark_overridden(&mut settings);
    settings
}

fn profile_lines(
    root: &Root,
    profile: &str,
    seen: &mut BTreeSet<String>,
    settings: &mut Vec<Setting>,
) {
    if seen.len() >= MOST_PROFILES || !seen.insert(profile.to_owned()) {
        return;
    }
    let file = PROFILES
        .iter()
        .map(|folder| format!("{folder}/{profile}/tuned.conf"))
        .find(|path| root.has(path));
    let Some((file, text)) = file.and_then(|file| Some((file.clone(), root.text(&file).ok()?)))
    else {
        return;
    };
    let mut section = String::new();
    let mut own = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|rest| rest.split(']').next())
        {
            name.clone_into(&mut section);
            continue;
        }
        let Some((key, value)) = line.split_once('=').filter(|_| !line.starts_with('#')) else {
            continue;
        };
        match (section.as_str(), key.trim()) {
            ("main", "include") => {
                for name in value.split([',', ' ']).filter(|name| !name.is_empty()) {
                    profile_lines(root, name, seen, settings);
                }
            }
            ("sysctl", key) => own.push(Setting {
                key: dotted(key),
                value: single_blanks(
                    value
                        .trim()
                        .trim_start_matches('>')
                        .trim()
                        .trim_matches('"'),
                ),
                file: file.clone(),
                line: number,
                owner: Owner::Tuned,
                effect: Effect::Wins,
            }),
            _ => {}
        }
    }
    settings.extend(own);
}

/// Lines of cloud-init's configuration and user data that set a network sysctl.
fn from_cloud_init(root: &Root) -> Vec<Setting> {
    let mut files: Vec<String> = root
        .names("/etc/cloud/cloud.cfg.d")
        .into_iter()
        .map(|name| format!("/etc/cloud/cloud.cfg.d/{name}"))
        .collect();
    files.push("/var/lib/cloud/instance/user-data.txt".to_owned());
    let mut settings = Vec::new();
    for file in files {
        let Ok(text) = root.text(&file) else { continue };
        for (number, line) in (1..).zip(text.lines()) {
            if let Some((key, value)) = in_user_data(line) {
                settings.push(Setting {
                    key,
                    value,
                    file: file.clone(),
                    line: number,
                    owner: Owner::CloudInit,
                    effect: Effect::Wins,
                });
            }
        }
    }
    mark_overridden(&mut settings);
    settings
}

/// `- sysctl -w net.core.rmem_max=1` or a line of a file to be written.
fn in_user_data(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    if line.starts_with('#') {
        return None;
    }
    let at = ["net.core.", "net.ipv4.", "net.ipv6."]
        .iter()
        .find_map(|head| line.find(head))?;
    let (key, value) = line[at..].split_once('=')?;
    let known = |c: char| c.is_ascii_alphanumeric() || ['.', '_', '-'].contains(&c);
    let key = key.trim();
    let value = value.trim_matches(|c: char| c.is_whitespace() || ['"', '\'', ','].contains(&c));
    key.chars()
        .all(known)
        .then(|| (key.to_owned(), single_blanks(value)))
}

/// Files that are run at start and may pin interrupts: themselves, or all of a folder.
const START_FILES: [&str; 2] = ["/etc/rc.local", "/etc/rc.d/rc.local"];
const START_FOLDERS: [&str; 5] = [
    "/etc/systemd/system",
    "/etc/udev/rules.d",
    "/etc/network/if-up.d",
    "/etc/NetworkManager/dispatcher.d",
    "/etc/networkd-dispatcher/routable.d",
];

/// Lines of start-up files that write an interrupt's affinity.
pub(super) fn pinnings(root: &Root) -> Vec<Pinning> {
    let in_folders = START_FOLDERS.iter().flat_map(|folder| {
        let names = root.names(folder);
        names
            .into_iter()
            .map(move |name| format!("{folder}/{name}"))
    });
    let mut found = Vec::new();
    for file in START_FILES
        .iter()
        .map(|file| (*file).to_owned())
        .chain(in_folders)
    {
        let Ok(text) = root.text(&file) else { continue };
        for (number, line) in (1..).zip(text.lines()) {
            let line: &str = line.trim();
            let pins = line.contains("smp_affinity") || line.contains("set_irq_affinity");
            if pins && !line.starts_with('#') {
                found.push(Pinning {
                    place: format!("{file}:{number}"),
                    text: line.to_owned(),
                });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_sysctl_reads_them() {
        let text = "# no\n; no\n\n net/ipv4/tcp_sack = 0\n-net.core.rmem_max=1\nnet/ipv4/conf/eth0.5/forwarding=1\nnet.ipv4.tcp_rmem =\t4096  87380\t6291456 \n-net.ipv4.conf.all.rp_filter\n";
        let read: Vec<_> = assignments(text).collect();
        let key = |at: usize| (read[at].0, read[at].1.as_str(), read[at].2.as_str());
        assert_eq!(key(0), (4, "net.ipv4.tcp_sack", "0"));
        assert_eq!(key(1), (5, "net.core.rmem_max", "1"));
        assert_eq!(key(2), (6, "net.ipv4.conf.eth0/5.forwarding", "1"));
        assert_eq!(key(3), (7, "net.ipv4.tcp_rmem", "4096 87380 6291456"));
        assert_eq!(read.len(), 4);
    }

    #[test]
    fn user_data_sets_keys_in_commands_and_files() {
        assert_eq!(
            in_user_data("  - sysctl -w net.ipv4.tcp_rmem='4096 87380 16777216'"),
            Some((
                "net.ipv4.tcp_rmem".to_owned(),
                "4096 87380 16777216".to_owned()
            ))
        );
        assert_eq!(
            in_user_data("net.ipv6.conf.all.accept_ra=0"),
            Some(("net.ipv6.conf.all.accept_ra".to_owned(), "0".to_owned()))
        );
        assert_eq!(in_user_data("password=net.core"), None);
        assert_eq!(in_user_data("# net.core.rmem_max=1"), None);
    }
}
