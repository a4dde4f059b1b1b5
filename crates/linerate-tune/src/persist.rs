//! From what was confirmed to files that keep it over a boot: sysctl.d(5), systemd.link(5), systemd.network(5),
//! NetworkManager.conf(5), tmpfiles.d(5), irqbalance(1). Nothing is written here.

pub mod irqbalance;
pub mod networkd;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use linerate_model::change_set::SetState;
use linerate_model::host::{Effect, HostFacts, Interface, Owner, Setting};
use linerate_model::tuning::{InterfaceSetting, Object};

use crate::apply::same;
use crate::guest::{self, Mac};
use crate::journal::ChangeSet;

use self::networkd::NetworkFile;

/// The first words of every file that is written here, behind the sign for a comment: what bears it may be overwritten
/// and removed.
pub const MARK: &str = "Written by linerate tune persist";

/// The file of sysctl.d: behind what distributions and packages set, before what a site sets last.
pub const SYSCTLS: &str = "/etc/sysctl.d/95-linerate.conf";
const GOVERNOR: &str = "/etc/tmpfiles.d/linerate-governor.conf";
const NETWORKD: &str = "systemd-networkd";
const NETWORK_MANAGER: &str = "/etc/NetworkManager/conf.d/95-linerate.conf";

/// A setting that somebody confirmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confirmed {
    /// What.
    pub object: Object,
    /// The value that was read after it was set.
    pub value: String,
    /// Id of the set of changes.
    pub set: String,
}

/// What was confirmed and not reverted, of several sets the last for each setting; in the order of setting.
pub fn confirmed(sets: &[ChangeSet]) -> Vec<Confirmed> {
    let mut all: Vec<Confirmed> = Vec::new();
    let stays = sets.iter().filter(|set| set.state == SetState::Confirmed);
    for set in stays {
        for (change, fate) in set.snapshot.changes.iter().zip(&set.fates) {
            let object = change.step.object.clone();
            all.retain(|one| one.object != object);
            all.push(Confirmed {
                value: fate.read.clone().unwrap_or(change.step.wanted.clone()),
                set: set.snapshot.id.clone(),
                object,
            });
        }
    }
    all
}

/// A file to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its path below the root.
    pub path: String,
    /// The whole content.
    pub text: String,
}

/// What keeps settings over a boot.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kept {
    /// The files, by path.
    pub files: Vec<File>,
    /// Which file keeps a setting, and the line that does.
    pub lines: Vec<(Object, String, String)>,
    /// Settings that no file can keep, and why.
    pub left_out: Vec<(Object, String)>,
    /// What a file will not do by itself, and what to do.
    pub warnings: Vec<String>,
}

/// Files of others that are there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Others {
    /// The paths of `.link` files.
    pub links: Vec<String>,
    /// The `.network` file that systemd-networkd has for an interface, by the interface's name.
    pub networks: BTreeMap<String, NetworkFile>,
}

/// The files for what was confirmed, beside those of others. `remover` is the set whose journal has those that come
/// out.
pub fn files(confirmed: &[Confirmed], facts: &HostFacts, others: &Others, remover: &str) -> Kept {
    let mut kept = Kept::default();
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    for one in confirmed {
        match place_of(one, facts, others) {
            Err(why) => kept.left_out.push((one.object.clone(), why)),
            Ok(places) => {
                for place in places {
                    let text = texts.entry(place.path.clone()).or_insert_with(|| {
                        format!("{}{}{}", place.first, header(remover), place.head)
                    });
                    // Two interfaces have one drop-in of irqbalance.
                    if !text.lines().any(|line| line == place.line) {
                        // Writing to a String cannot fail.
                        let _ = writeln!(text, "{}", place.line);
                    }
                    kept.lines
                        .push((one.object.clone(), place.path, place.line));
                }
                kept.warnings.extend(warnings(one, facts, others));
            }
        }
    }
    kept.files = texts
        .into_iter()
        .map(|(path, text)| File { path, text })
        .collect();
    let mut told = BTreeSet::new();
    kept.warnings.retain(|warning| told.insert(warning.clone()));
    kept
}

fn header(remover: &str) -> String {
    format!(
        "# {MARK} (set {remover}). All of it is removed by: linerate tune persist --remove\n\
         # What was confirmed and ran then; `linerate tune verify` tells whether it still does.\n"
    )
}

/// A line and where it goes: the file, its first line where that is not ours to choose, and what stands at its head.
#[derive(Debug, Default)]
struct Place {
    path: String,
    first: &'static str,
    head: String,
    line: String,
}

fn place_of(one: &Confirmed, facts: &HostFacts, others: &Others) -> Result<Vec<Place>, String> {
    match &one.object {
        Object::Sysctl { key } => Ok(vec![Place {
            path: SYSCTLS.to_owned(),
            line: format!("{key} = {}", one.value),
            ..Place::default()
        }]),
        Object::Governor => Ok(vec![Place {
            path: GOVERNOR.to_owned(),
            line: format!(
                "w /sys/devices/system/cpu/cpufreq/policy*/scaling_governor - - - - {}",
                one.value
            ),
            ..Place::default()
        }]),
        Object::Block { device, setting } => Err(format!(
            "a rule of udev keeps it, which linerate does not write: ACTION==\"add|change\", KERNEL==\"{device}\", ATTR{{{}}}=\"{}\"",
            setting.file(),
            one.value
        )),
        Object::Interface { interface, setting } => {
            let found = facts.interface(interface);
            let found = found.ok_or_else(|| format!("there is no interface {interface} now"))?;
            if *setting == InterfaceSetting::IrqCpus {
                return irqbalance::places(found, &one.value, facts);
            }
            let mut places = Vec::new();
            if *setting == InterfaceSetting::Mtu && runs(facts, NETWORKD) {
                places.extend(networkd::place(found, &one.value, &others.networks));
            }
            // What stands on other interfaces has no .link file that would be applied in time.
            if found.kind == "hardware" || places.is_empty() {
                let link = on_interface(found, *setting, &one.value, facts)
                    .and_then(|link| of_no_other(found, &others.links).map(|()| link));
                match link {
                    Ok(link) => places.extend(link),
                    // networkd's drop-in keeps it by itself.
                    Err(_) if !places.is_empty() => {}
                    Err(why) => return Err(why),
                }
            }
            Ok(places)
        }
    }
}

/// How systemd.link(5) writes a value.
enum Form {
    Plain,
    Switch,
    Microseconds,
}

const LINK_KEYS: [(InterfaceSetting, &str, Form); 11] = {
    use InterfaceSetting as S;
    [
        (S::Mtu, "MTUBytes", Form::Plain),
        (S::Txqueuelen, "TransmitQueueLength", Form::Plain),
        (S::RxRing, "RxBufferSize", Form::Plain),
        (S::TxRing, "TxBufferSize", Form::Plain),
        (S::Channels, "CombinedChannels", Form::Plain),
        (S::AdaptiveRx, "UseAdaptiveRxCoalesce", Form::Switch),
        (S::RxUsecs, "RxCoalesceSec", Form::Microseconds),
        (S::Tso, "TCPSegmentationOffload", Form::Switch),
        (S::Gso, "GenericSegmentationOffload", Form::Switch),
        (S::Gro, "GenericReceiveOffload", Form::Switch),
        (S::Lro, "LargeReceiveOffload", Form::Switch),
    ]
};

fn on_interface(
    interface: &Interface,
    setting: InterfaceSetting,
    value: &str,
    facts: &HostFacts,
) -> Result<Vec<Place>, String> {
    if setting == InterfaceSetting::Qdisc {
        return Err(format!(
            "no file keeps the qdisc of one interface; net.core.default_qdisc = {value} applies to all interfaces \
             created later"
        ));
    }
    let (_, key, form) = LINK_KEYS
        .iter()
        .find(|(each, ..)| *each == setting)
        .ok_or_else(|| "systemd.link(5) has no word for it".to_owned())?;
    if interface.kind != "hardware" {
        return Err(format!(
            "{} is a {}: set it in the program that creates it at boot (NetworkManager, networkd, ifupdown)",
            interface.name, interface.kind
        ));
    }
    if let Some(master) = &interface.master {
        return Err(format!(
            "{} is a member of {master}, which may have given it another address than its own",
            interface.name
        ));
    }
    let mac = interface.lasting_mac();
    let mac = mac.ok_or_else(|| format!("{} has no address to be known by", interface.name))?;
    let written = match form {
        Form::Plain => value.to_owned(),
        Form::Switch => if value == "on" { "yes" } else { "no" }.to_owned(),
        Form::Microseconds => format!("{value}us"),
    };
    let mut places = vec![Place {
        path: format!("/etc/systemd/network/10-linerate-{}.link", interface.name),
        head: link_head(mac),
        line: format!("{key}={written}"),
        ..Place::default()
    }];
    if setting == InterfaceSetting::Mtu && runs(facts, "NetworkManager") {
        // It sets an MTU when it activates a connection, after udev has applied the .link file.
        places.push(Place {
            path: NETWORK_MANAGER.to_owned(),
            line: format!(
                "[connection-linerate-{0}]\nmatch-device=interface-name:{0}\nethernet.mtu={value}",
                interface.name
            ),
            ..Place::default()
        });
    }
    Ok(places)
}

/// Refuses a second `.link` file for an interface that `tune interfaces` names.
fn of_no_other(interface: &Interface, links: &[String]) -> Result<(), String> {
    let mac = interface.lasting_mac().and_then(|mac| mac.parse().ok());
    let Some(theirs) = mac
        .map(guest::link_file)
        .filter(|file| links.contains(file))
    else {
        return Ok(());
    };
    Err(format!(
        "{theirs} of linerate tune interfaces is for {} already, and systemd takes only one .link file: declare an MTU in \
         interfaces.toml; for anything else take the name out of its declaration there, run linerate tune interfaces \
         apply, and persist again",
        interface.name
    ))
}

/// The interface that a text is a `.link` file for, where `tune persist` wrote it.
pub(crate) fn link_for(text: &str) -> Option<Mac> {
    let mut lines = text.lines().filter(|_| text.contains(MARK));
    lines.find_map(|line| line.strip_prefix(MATCH)?.parse().ok())
}

const MATCH: &str = "PermanentMACAddress=";

/// Only the first .link file that matches is used, so it has to say what systemd's own `99-default.link` says too:
/// without it the interface would lose its name.
fn link_head(mac: &str) -> String {
    format!(
        "[Match]\n{MATCH}{mac}\n\n[Link]\nNamePolicy=keep kernel database onboard slot path\n\
         AlternativeNamesPolicy=database onboard slot path mac\nMACAddressPolicy=persistent\n"
    )
}

/// Whether a program runs that sets things by itself.
pub(crate) fn runs(facts: &HostFacts, program: &str) -> bool {
    facts
        .keepers
        .iter()
        .any(|keeper| keeper.name == program && keeper.running.known() == Some(&true))
}

fn warnings(one: &Confirmed, facts: &HostFacts, others: &Others) -> Vec<String> {
    match &one.object {
        Object::Sysctl { key } => winner(facts, key)
            .filter(|winner| !same(&winner.value, &one.value))
            .map(|winner| {
                format!(
                    "{} sets {key} = {} later and wins: remove that line",
                    winner.place(),
                    winner.value
                )
            })
            .into_iter()
            .collect(),
        Object::Interface { interface, setting } => match setting {
            InterfaceSetting::IrqCpus => vec![irqbalance::WARNING.to_owned()],
            InterfaceSetting::Mtu if runs(facts, NETWORKD) => facts
                .interface(interface)
                .and_then(|found| networkd::warning(found, &one.value, &others.networks))
                .into_iter()
                .collect(),
            _ => Vec::new(),
        },
        Object::Governor | Object::Block { .. } => Vec::new(),
    }
}

/// The line that sets a key after our file at boot; `None` where ours is the last.
pub(crate) fn winner<'a>(facts: &'a HostFacts, key: &'a str) -> Option<&'a Setting> {
    let (_, ours) = SYSCTLS.rsplit_once('/').unwrap_or_default();
    facts
        .setters(key)
        .filter(|line| line.file != SYSCTLS)
        .filter(|line| !matches!(line.effect, Effect::Masked { .. } | Effect::NotAtBoot))
        .filter(|line| {
            let (folder, name) = line.file.rsplit_once('/').unwrap_or_default();
            // Files are read by name, whatever their folder; /etc/sysctl.conf last; tuned and cloud-init after boot.
            line.owner != Owner::Sysctl || !folder.ends_with("sysctl.d") || name > ours
        })
        .last()
}
