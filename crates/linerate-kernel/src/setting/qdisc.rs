//! Queueing disciplines of an interface: all of them as they are, another kind at every leaf, and back.
//!
//! A discipline is made anew from its kind, number, place and options as the kernel tells of them. Where the
//! kernel does not take what it tells (tables that it does not show, filters), [`Disciplines::unsaveable`] says so
//! beforehand.

use std::fmt;
use std::io;
use std::str::FromStr;

use crate::KernelError;
use crate::netlink::{
    Ask, CREATE, Netlink, Order, REPLACE, attribute, push_attribute, push_nested, text, word,
};
use crate::route::index_or_error;

/// Bytes of `struct tcmsg`: family u8 and padding, interface i32, handle u32, parent u32, info u32.
const HEADER: usize = 20;
// include/uapi/linux/rtnetlink.h, pkt_sched.h
const TCA_STAB_BASE: u16 = 1;
pub(super) const ROOT: u32 = u32::MAX;
/// The number that one is given where none was there.
const FIRST_HANDLE: u32 = 0x0001_0000;

/// Disciplines that only spread packets over their children.
const SPREADERS: [&str; 2] = ["mq", "mqprio"];
/// Those that hold no packets and are no leaves.
const INGRESS: [&str; 2] = ["ingress", "clsact"];
/// Those whose options the kernel takes as it tells them (`dump` and `init` in `net/sched/sch_*.c` of Linux 6.18).
/// Of others it hides a part: red, gred and choke their table, netem its distribution.
const SAVEABLE: [&str; 15] = [
    "fq",
    "fq_codel",
    "fq_pie",
    "pfifo_fast",
    "pfifo",
    "bfifo",
    "pfifo_head_drop",
    "sfq",
    "cake",
    "codel",
    "pie",
    "hhf",
    "tbf",
    "noqueue",
    "noop",
];
/// Their options hold counters as well.
const COUNTING: [&str; 1] = ["sfq"];

/// One queueing discipline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discipline {
    /// `fq`, `pfifo_fast` …
    pub kind: String,
    /// Its number, the major half used; 0 = made by the kernel itself.
    pub handle: u32,
    /// Where it hangs: the class of another one, or `0xffff_ffff` for the root.
    pub parent: u32,
    /// Its options as the kernel tells them.
    pub options: Option<Vec<u8>>,
    /// It has a table of sizes, which the kernel does not show.
    sized: bool,
}

/// All queueing disciplines of an interface, those of received packets left out; the root first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Disciplines(Vec<Discipline>);

impl Disciplines {
    /// Those of an interface now.
    ///
    /// # Errors
    /// `ENODEV`; a kernel that does not answer.
    pub fn of(interface: &str) -> Result<Self, KernelError> {
        index_or_error(interface)
            .and_then(|index| dump(&mut Netlink::open()?, index))
            .map_err(KernelError::of("list the qdiscs of", interface))
    }

    /// Each of them, the root first.
    pub fn all(&self) -> &[Discipline] {
        &self.0
    }

    /// Where packets wait: those that none hangs from, but for mere spreaders.
    pub fn leaves(&self) -> impl Iterator<Item = &Discipline> {
        self.0.iter().filter(|one| {
            // What the kernel made by itself has no number, and nothing but mq's leaves below it.
            let parent = |other: &Discipline| major(other.parent) == major(one.handle);
            let has_children = one.handle != 0 && self.0.iter().any(parent);
            !one.spreads() && !has_children
        })
    }

    fn root(&self) -> Option<&Discipline> {
        self.0.iter().find(|one| one.parent == ROOT)
    }

    fn at(&self, parent: u32) -> Option<&Discipline> {
        self.0.iter().find(|one| one.parent == parent)
    }

    /// What of the leaves could not be made again from what is known of them; `None`: nothing.
    ///
    /// # Errors
    /// As of [`Disciplines::of`].
    pub fn unsaveable(&self, interface: &str) -> Result<Option<String>, KernelError> {
        for leaf in self.leaves() {
            let why = if !SAVEABLE.contains(&leaf.kind.as_str()) {
                "the kernel does not report all of its options"
            } else if leaf.sized {
                "it has a size table, which the kernel does not report"
            } else if has_filters(interface, leaf.handle)
                .map_err(KernelError::of("list the filters of", interface))?
            {
                "it has filters"
            } else {
                continue;
            };
            return Ok(Some(format!(
                "the qdisc {} could not be restored as it is: {why}",
                leaf.kind
            )));
        }
        Ok(None)
    }

    /// Whether all that was saved is there: exactly, or (`alike`) with other numbers where the kernel gave them.
    fn has(&self, saved: &Self, alike: bool) -> bool {
        let renumbered = self.renumbered(saved);
        saved.0.iter().all(|was| {
            let parent = match renumbered {
                Some(root) if alike && major(was.parent) == 0 => root | minor(was.parent),
                _ => was.parent,
            };
            self.at(parent)
                .is_some_and(|is| is.is(was, saved.is_inner(was), alike))
        })
    }

    /// The number of a root that had none.
    fn renumbered(&self, saved: &Self) -> Option<u32> {
        let was = saved.root().filter(|root| root.handle == 0)?;
        let is = self.root().filter(|root| root.kind == was.kind)?;
        (is.handle != 0).then_some(is.handle)
    }

    fn is_inner(&self, one: &Discipline) -> bool {
        !self.leaves().any(|leaf| leaf == one)
    }
}

impl Discipline {
    fn spreads(&self) -> bool {
        SPREADERS.contains(&self.kind.as_str())
    }

    fn is(&self, was: &Self, inner: bool, alike: bool) -> bool {
        let number = self.handle == was.handle || (alike && was.handle == 0);
        // The options of an inner one are not changed here, and some count packets.
        let options = inner
            || COUNTING.contains(&self.kind.as_str())
            || self.options.as_deref().unwrap_or_default()
                == was.options.as_deref().unwrap_or_default();
        // Before an interface is up for the first time it has no discipline at all, and no way back to that.
        let none = was.kind == "noop" && self.handle == 0;
        none || (self.kind == was.kind && number && options)
    }
}

const fn major(handle: u32) -> u32 {
    handle >> 16
}

const fn minor(handle: u32) -> u32 {
    handle & 0xffff
}

/// Puts a discipline of this kind, with the kernel's defaults, at every leaf; leaves that are of it stay as they are.
/// Under mq that is each of its queues, and mq stays.
///
/// # Errors
/// `ENOENT` for a kind that this kernel does not have; `ENODEV`, `EPERM`.
pub fn set_leaves(interface: &str, kind: &str) -> Result<(), KernelError> {
    let attempt = || {
        let index = index_or_error(interface)?;
        let mut netlink = Netlink::open_explained()?;
        let mut now = dump(&mut netlink, index)?;
        let unnumbered = now.root().filter(|root| root.spreads() && root.handle == 0);
        if let Some(root) = unnumbered.filter(|_| now.leaves().any(|leaf| leaf.kind != kind)) {
            // The queues of an mq without number cannot be named; the new one has the same default leaves.
            let numbered = Discipline {
                handle: FIRST_HANDLE,
                ..root.clone()
            };
            put(&mut netlink, index, &numbered)?;
            now = dump(&mut netlink, index)?;
        }
        for leaf in now.leaves().filter(|leaf| leaf.kind != kind) {
            let wanted = Discipline {
                kind: kind.to_owned(),
                handle: 0,
                parent: leaf.parent,
                options: None,
                sized: false,
            };
            put(&mut netlink, index, &wanted)?;
        }
        Ok(())
    };
    let object = format!("{kind} on {interface}");
    attempt().map_err(KernelError::of("put the qdisc", &object))
}

/// Makes the disciplines again what they were. Where nothing but a number of the kernel's own choice differs in the
/// end (its own mq and its own leaves of classes have none, and what is made by hand is given one), that is as good.
///
/// # Errors
/// What the kernel refuses; where it takes all and they are still others, which they are.
pub fn restore(interface: &str, saved: &Disciplines) -> Result<(), KernelError> {
    let attempt = || {
        let index = index_or_error(interface)?;
        let mut netlink = Netlink::open_explained()?;
        if dump(&mut netlink, index)?.has(saved, false) {
            return Ok(());
        }
        let in_place = fill(&mut netlink, index, saved);
        let mut now = dump(&mut netlink, index)?;
        if now.has(saved, false) {
            return Ok(());
        }
        if now.rebuildable(saved) {
            now = rebuild(&mut netlink, index, saved)?;
        } else {
            in_place?;
        }
        if now.has(saved, true) {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "they are '{}', and were '{}'",
            now.in_words(),
            saved.in_words()
        )))
    };
    attempt().map_err(KernelError::of("restore the qdiscs of", interface))
}

/// Gives leaves back what was there, below a root that is still the same.
fn fill(netlink: &mut Netlink, index: u32, saved: &Disciplines) -> io::Result<()> {
    let now = dump(netlink, index)?;
    let root = now.root().zip(saved.root());
    if !root.is_some_and(|(is, was)| is.kind == was.kind && is.handle == was.handle) {
        return Ok(());
    }
    for was in saved.leaves() {
        let is = now.at(was.parent);
        if was.parent == ROOT || is.is_some_and(|is| is.is(was, false, false)) {
            continue;
        }
        put(netlink, index, was)?;
    }
    Ok(())
}

impl Disciplines {
    /// Whether nothing is lost when the root is removed: what hangs there is one leaf, or a spreader's leaves, now and
    /// in what was saved.
    fn rebuildable(&self, saved: &Self) -> bool {
        let plain = |all: &Self| {
            all.root().is_none_or(|root| {
                let below = |one: &&Discipline| one.parent != ROOT;
                let deep = all.0.iter().filter(below).any(|one| all.is_inner(one));
                (root.kind == "mq" && !deep) || !all.is_inner(root)
            })
        };
        plain(self) && plain(saved)
    }

    /// `mq 1: (fq, fq)`.
    fn in_words(&self) -> String {
        let words = |one: &Discipline| format!("{} {:x}:", one.kind, major(one.handle));
        let below = self.0.iter().filter(|one| one.parent != ROOT).map(words);
        let below: Vec<String> = below.collect();
        let root = self.root().map_or("nothing".to_owned(), words);
        if below.is_empty() {
            return root;
        }
        format!("{root} ({})", below.join(", "))
    }
}

/// Removes the root, so that the kernel puts its own default there, and what was saved in its place where it is
/// another.
fn rebuild(netlink: &mut Netlink, index: u32, saved: &Disciplines) -> io::Result<Disciplines> {
    let now = dump(netlink, index)?;
    if now.root().is_some_and(|root| root.handle != 0) {
        remove(netlink, index, ROOT)?;
    }
    let now = dump(netlink, index)?;
    let Some(root) = saved.root().filter(|_| !now.has(saved, true)) else {
        return Ok(now);
    };
    let inner = saved.is_inner(root);
    let handle = match root.handle {
        0 if inner => FIRST_HANDLE,
        handle => handle,
    };
    let made = Discipline {
        handle,
        ..root.clone()
    };
    put(netlink, index, &made)?;
    for was in saved.0.iter().filter(|one| one.parent != ROOT) {
        let now = dump(netlink, index)?;
        let parent = handle | minor(was.parent);
        if now.at(parent).is_some_and(|is| is.is(was, false, true)) {
            continue;
        }
        let leaf = Discipline {
            parent,
            ..was.clone()
        };
        put(netlink, index, &leaf)?;
    }
    dump(netlink, index)
}

fn put(netlink: &mut Netlink, index: u32, wanted: &Discipline) -> io::Result<()> {
    let body = filled(index, wanted, None);
    order(netlink, libc::RTM_NEWQDISC, CREATE | REPLACE, body)
}

/// Puts a discipline there, at the root with a table of sizes if wanted (the kernel takes it nowhere else); one of its
/// kind and number is changed and keeps its packets.
pub(super) fn put_sized(
    interface: &str,
    wanted: &Discipline,
    sizes: Option<&[u8]>,
) -> io::Result<()> {
    let body = filled(index_or_error(interface)?, wanted, sizes);
    crate::netlink::order(libc::RTM_NEWQDISC, CREATE | REPLACE, body)
}

fn filled(index: u32, wanted: &Discipline, sizes: Option<&[u8]>) -> Vec<u8> {
    let mut body = message(index, wanted.handle, wanted.parent);
    let mut kind = wanted.kind.clone().into_bytes();
    kind.push(0);
    push_attribute(&mut body, libc::TCA_KIND, &kind);
    if let Some(options) = &wanted.options {
        push_attribute(&mut body, libc::TCA_OPTIONS, options);
    }
    if let Some(sizes) = sizes {
        push_nested(&mut body, libc::TCA_STAB, |body| {
            push_attribute(body, TCA_STAB_BASE, sizes);
        });
    }
    body
}

impl Discipline {
    /// One to be made.
    pub(super) fn wanted(kind: &str, handle: u32, parent: u32, options: Vec<u8>) -> Self {
        Self {
            kind: kind.to_owned(),
            handle,
            parent,
            options: Some(options),
            sized: false,
        }
    }
}

fn remove(netlink: &mut Netlink, index: u32, parent: u32) -> io::Result<()> {
    order(netlink, libc::RTM_DELQDISC, 0, message(index, 0, parent))
}

fn order(netlink: &mut Netlink, kind: u16, flags: u16, body: Vec<u8>) -> io::Result<()> {
    netlink.order(&[Order {
        kind,
        flags,
        answered: true,
        body,
    }])
}

fn message(index: u32, handle: u32, parent: u32) -> Vec<u8> {
    let mut body = vec![0; HEADER];
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    body[8..12].copy_from_slice(&handle.to_ne_bytes());
    body[12..16].copy_from_slice(&parent.to_ne_bytes());
    body
}

/// The disciplines of one interface; the kernel lists those of all.
fn dump(netlink: &mut Netlink, index: u32) -> io::Result<Disciplines> {
    let mut request = vec![0; HEADER];
    // Also those that the kernel made by itself.
    push_attribute(&mut request, libc::TCA_DUMP_INVISIBLE, &[]);
    let mut found = Vec::new();
    netlink.ask(libc::RTM_GETQDISC, Ask::All, &request, |body| {
        if word(body, 4) == Some(index) {
            found.extend(parse(body));
        }
    })?;
    found.retain(|one: &Discipline| !INGRESS.contains(&one.kind.as_str()));
    found.sort_by_key(|one| (one.parent != ROOT, one.parent));
    Ok(Disciplines(found))
}

fn parse(body: &[u8]) -> Option<Discipline> {
    let list = body.get(HEADER..)?;
    Some(Discipline {
        kind: text(attribute(list, libc::TCA_KIND)?),
        handle: word(body, 8)?,
        parent: word(body, 12)?,
        options: attribute(list, libc::TCA_OPTIONS).map(<[u8]>::to_vec),
        sized: attribute(list, libc::TCA_STAB).is_some(),
    })
}

fn has_filters(interface: &str, handle: u32) -> io::Result<bool> {
    // What has no number cannot be given filters.
    if handle == 0 {
        return Ok(false);
    }
    let index = index_or_error(interface)?;
    let mut any = false;
    Netlink::open()?.ask(
        libc::RTM_GETTFILTER,
        Ask::All,
        &message(index, 0, handle),
        |_| {
            any = true;
        },
    )?;
    Ok(any)
}

/// One line each: kind, number and place in hexadecimal, the options' bytes or `-`.
impl fmt::Display for Disciplines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for one in &self.0 {
            write!(f, "{} {:x} {:x} ", one.kind, one.handle, one.parent)?;
            match &one.options {
                None => writeln!(f, "-")?,
                Some(options) => {
                    f.write_str("=")?;
                    options
                        .iter()
                        .try_for_each(|byte| write!(f, "{byte:02x}"))?;
                    writeln!(f)?;
                }
            }
        }
        Ok(())
    }
}

/// A text that tells of no queueing disciplines.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' does not describe a qdisc")]
pub struct DisciplinesError(String);

impl FromStr for Disciplines {
    type Err = DisciplinesError;

    fn from_str(text: &str) -> Result<Self, DisciplinesError> {
        let one = |line: &str| {
            let mut words = line.split(' ');
            let kind = words.next().filter(|kind| !kind.is_empty())?.to_owned();
            let mut number = || u32::from_str_radix(words.next()?, 16).ok();
            let (handle, parent) = (number()?, number()?);
            let options = match words.next()?.strip_prefix('=') {
                None => None,
                Some(digits) => Some(bytes_of(digits)?),
            };
            Some(Discipline {
                kind,
                handle,
                parent,
                options,
                sized: false,
            })
        };
        text.lines()
            .map(|line| one(line).ok_or_else(|| DisciplinesError(line.to_owned())))
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    if !digits.is_ascii() || !digits.len().is_multiple_of(2) {
        return None;
    }
    (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn discipline(kind: &str, handle: u32, parent: u32) -> Discipline {
        Discipline {
            kind: kind.to_owned(),
            handle,
            parent,
            options: Some(vec![1, 0xab]),
            sized: false,
        }
    }

    #[test]
    fn disciplines_are_written_and_read_as_text() {
        let all = Disciplines(vec![
            Discipline {
                options: None,
                ..discipline("mq", 0x1_0000, ROOT)
            },
            discipline("fq", 0x8001_0000, 0x1_0001),
            Discipline {
                options: Some(Vec::new()),
                ..discipline("pfifo_fast", 0, 0x1_0002)
            },
        ]);
        let text = all.to_string();
        assert_eq!(
            text,
            "mq 10000 ffffffff -\nfq 80010000 10001 =01ab\npfifo_fast 0 10002 =\n"
        );
        assert_eq!(text.parse(), Ok(all));
        for wrong in ["fq", "fq 1 2", "fq x 2 -", "fq 1 2 =0", "fq 1 2 =é1", "\n"] {
            assert!(wrong.parse::<Disciplines>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn leaves_are_where_packets_wait() {
        let kinds = |all: &Disciplines| -> Vec<String> {
            all.leaves().map(|leaf| leaf.kind.clone()).collect()
        };
        let mq = Disciplines(vec![discipline("mq", 0, ROOT), discipline("fq", 0, 1)]);
        assert_eq!(kinds(&mq), ["fq"]);
        let htb = Disciplines(vec![
            discipline("htb", 0x1_0000, ROOT),
            discipline("pfifo", 0, 0x1_0010),
        ]);
        assert_eq!(kinds(&htb), ["pfifo"]);
        assert_eq!(
            kinds(&Disciplines(vec![discipline("noqueue", 0, ROOT)])),
            ["noqueue"]
        );
    }

    #[test]
    fn an_order_names_interface_place_and_kind() {
        let body = message(3, 0x1_0000, ROOT);
        assert_eq!(body.len(), HEADER);
        assert_eq!(parse(&body), None);
        let mut whole = body;
        push_attribute(&mut whole, libc::TCA_KIND, b"mq\0");
        let read = parse(&whole).unwrap();
        assert_eq!(
            (read.kind.as_str(), read.handle, read.parent),
            ("mq", 0x1_0000, ROOT)
        );
        assert_eq!(
            whole[HEADER..HEADER + 4],
            [7_u16.to_ne_bytes(), 1_u16.to_ne_bytes()].concat()
        );
    }

    #[test]
    fn a_number_of_the_kernel_s_choice_is_as_good_and_another_kind_is_not() {
        let was = Disciplines(vec![discipline("mq", 0, ROOT), discipline("fq", 0, 1)]);
        let is = Disciplines(vec![
            discipline("mq", 0x1_0000, ROOT),
            discipline("fq", 0x8002_0000, 0x1_0001),
        ]);
        assert!(is.has(&was, true) && !is.has(&was, false));
        let other = Disciplines(vec![
            discipline("mq", 0x1_0000, ROOT),
            discipline("pfifo", 0x8002_0000, 0x1_0001),
        ]);
        assert!(!other.has(&was, true));
    }
}
