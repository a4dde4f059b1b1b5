//! What a check may ask: the facts, the required load, and what rose between two readings.

use linerate_model::audit::{Advised, Change, Outcome, Risk, Role, Target};
use linerate_model::host::{CpuSet, HostFacts, Interface, Setting};
use linerate_model::tuning::{BlockSetting, InterfaceSetting};
use linerate_model::units::{BitRate, Bytes, Nanos, whole};

/// What a check says of one thing; an error is why it cannot know.
pub(crate) type Answer = Result<Outcome, String>;

/// The greatest window of TCP: 65535 scaled by 2^14 (RFC 7323, section 2.3).
pub(crate) const GREATEST_WINDOW: u64 = 65_535 << 14;
/// The greatest value of a buffer's sysctl; they are `int`s.
pub(crate) const GREATEST_BUFFER: u64 = (1 << 31) - 1;
/// The share of a receive buffer that is window once the kernel has learned how much of it packets fill; since
/// Linux 6.6 a ratio of each socket (`scaling_ratio` in `net/ipv4/tcp_input.c`), about 0.9 with large packets.
const LEARNED_RATIO: f64 = 0.9;

/// A host, its task, and perhaps an earlier reading.
#[derive(Debug)]
pub(crate) struct Case<'a> {
    pub(crate) facts: &'a HostFacts,
    pub(crate) earlier: Option<&'a HostFacts>,
    pub(crate) target: &'a Target,
    /// The interfaces that the traffic may take, with those below them.
    pub(crate) interfaces: Vec<&'a Interface>,
}

/// Where a host stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// A machine of its own.
    BareMetal,
    /// A virtual machine.
    VirtualMachine,
    /// A container, or any network namespace but the first.
    Container,
}

/// What became of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rise {
    /// It is still 0, or did not move between two readings.
    Still,
    /// It rose by this between two readings.
    Rose(u64),
}

impl Case<'_> {
    /// Where the host stands; where that is not known, it is taken for a machine of its own.
    pub(crate) fn place(&self) -> Place {
        // A container that has the machine's own namespace has its interfaces and settings too.
        let contained = match self.facts.system.first_namespace.known() {
            Some(first) => !first,
            None => self.is_container(),
        };
        self.place_of(contained)
    }

    /// Where the host stands as to its disks, which no network namespace hides.
    pub(crate) fn storage_place(&self) -> Place {
        self.place_of(self.is_container())
    }

    fn is_container(&self) -> bool {
        matches!(self.facts.system.container.known(), Some(Some(_)))
    }

    fn place_of(&self, contained: bool) -> Place {
        let virtual_machine = self.facts.system.virtual_machine.known();
        if contained {
            Place::Container
        } else if matches!(virtual_machine, Some(Some(_))) || self.target.role == Role::Guest {
            Place::VirtualMachine
        } else {
            Place::BareMetal
        }
    }

    /// A setting that runs.
    pub(crate) fn text(&self, key: &str) -> Result<String, String> {
        self.facts.sysctl(key).ask().cloned()
    }

    /// A setting that is a number.
    pub(crate) fn number(&self, key: &str) -> Result<u64, String> {
        let text = self.text(key)?;
        text.parse()
            .map_err(|_| format!("{key} is '{text}', which is not a number"))
    }

    /// A setting of three numbers.
    pub(crate) fn triple(&self, key: &str) -> Result<[u64; 3], String> {
        let text = self.text(key)?;
        triple(&text).ok_or_else(|| format!("{key} is '{text}', which are not three numbers"))
    }

    /// The rate that is wanted.
    pub(crate) fn rate(&self) -> Result<BitRate, String> {
        self.target
            .rate_bps
            .ok_or_else(|| "the rate is not known: no link states a speed; give --rate, or --peer to measure what the path carries".to_owned())
    }

    /// The round-trip time.
    pub(crate) fn rtt(&self) -> Result<Nanos, String> {
        self.target.rtt.ok_or_else(|| {
            "the round-trip time is not known; give --rtt, or --peer to measure it".to_owned()
        })
    }

    /// Bytes on the way of one flow.
    pub(crate) fn flow_product(&self) -> Result<u64, String> {
        self.rate()?;
        self.rtt()?;
        let product = self.target.flow_product();
        product
            .map(Bytes::count)
            .ok_or_else(|| "rate and round-trip time are not known".to_owned())
    }

    /// The rate that one flow is to have.
    pub(crate) fn flow_rate(&self) -> Result<BitRate, String> {
        Ok(BitRate(
            self.rate()?.0 / u64::from(self.target.flows.max(1)),
        ))
    }

    /// The rate that a window allows at the round-trip time.
    pub(crate) fn rate_of(&self, window: f64) -> Result<BitRate, String> {
        Ok(BitRate(whole(window * 8.0 / self.rtt()?.as_secs_f64())))
    }

    /// `major.minor` of the kernel.
    pub(crate) fn kernel(&self) -> Result<(u32, u32), String> {
        let release = self.facts.system.kernel.ask()?;
        version(release).ok_or_else(|| format!("the kernel's release is '{release}'"))
    }

    /// The share of a receive buffer that is window: at first, and once it is learned.
    pub(crate) fn ratio(&self) -> Result<(f64, f64), String> {
        if self.kernel()? >= (6, 6) {
            return Ok((0.5, LEARNED_RATIO));
        }
        let key = "net.ipv4.tcp_adv_win_scale";
        let scale: i32 = self
            .text(key)?
            .parse()
            .map_err(|_| format!("{key} is not a number"))?;
        // tcp_win_from_space, include/net/tcp.h before Linux 6.6.
        let part = 2_f64.powi(-scale.abs().min(31));
        let ratio = if scale > 0 { 1.0 - part } else { part };
        Ok((ratio, ratio))
    }

    /// Whether a counter rises. One reading can only tell a counter that never moved; `what` names it.
    pub(crate) fn rise(
        &self,
        what: &str,
        read: impl Fn(&HostFacts) -> Result<u64, String>,
    ) -> Result<Rise, String> {
        let now = read(self.facts)?;
        if now == 0 {
            return Ok(Rise::Still);
        }
        let Some(earlier) = self.earlier else {
            return Err(format!(
                "{what}: {now} since the start; two readings under load show whether they rise (--for 10s, --peer)"
            ));
        };
        let boots = (&earlier.system.boot_id, &self.facts.system.boot_id);
        if boots
            .0
            .known()
            .zip(boots.1.known())
            .is_none_or(|(a, b)| a != b)
        {
            return Err("the two readings are not of one boot".to_owned());
        }
        let before = read(earlier)?;
        match now.checked_sub(before) {
            Some(0) => Ok(Rise::Still),
            Some(more) => Ok(Rise::Rose(more)),
            None => Err(format!("{what} were reset between the two readings")),
        }
    }

    /// The CPUs that interrupts of an interface should go to: those of its node, or all.
    pub(crate) fn local_cpus(&self, interface: &Interface) -> Result<CpuSet, String> {
        let online = self.facts.processors.online.ask()?;
        let Some(local) = interface.local_cpus.known().filter(|cpus| !cpus.is_empty()) else {
            return Ok(online.clone());
        };
        let local: CpuSet = local
            .cpus()
            .iter()
            .copied()
            .filter(|cpu| online.cpus().contains(cpu))
            .collect();
        Ok(local)
    }

    /// The rate that an interface may have to carry: its link's, else the one that is wanted.
    pub(crate) fn capacity(&self, interface: &Interface) -> Result<BitRate, String> {
        match speed_mbps(interface) {
            Ok(mbps) => Ok(BitRate(u64::from(mbps) * 1_000_000)),
            Err(why) => self
                .rate()
                .map_err(|_| format!("{why}, and no --rate is given")),
        }
    }

    /// The lines that set a key and are read: not those that another file of their name hides.
    pub(crate) fn lines<'b>(&'b self, key: &'b str) -> impl Iterator<Item = &'b Setting> {
        use linerate_model::host::Effect;
        self.facts
            .setters(key)
            .filter(|setting| !matches!(setting.effect, Effect::Masked { .. }))
    }

    /// The line that gave a key the value that runs: `/etc/sysctl.d/10-x.conf:3`. None where the kernel's own
    /// value runs, or one that was set by hand.
    pub(crate) fn set_by(&self, key: &str) -> Option<String> {
        use linerate_model::host::Effect;
        let words =
            |text: &str| -> Vec<String> { text.split_whitespace().map(str::to_owned).collect() };
        let running = words(&self.text(key).ok()?);
        self.facts
            .setters(key)
            .filter(|line| matches!(line.effect, Effect::Wins))
            .find(|line| words(&line.value) == running)
            .map(Setting::place)
    }

    /// The memory that a flow's buffers may take so that all flows' together fit.
    pub(crate) fn room(&self) -> Result<Room, String> {
        let group = self.facts.system.cgroup_memory_bytes.known().copied();
        let tcp = self.triple("net.ipv4.tcp_mem").and_then(|pages| {
            let page = self.facts.system.page_bytes.ask()?;
            Ok(pages[1].saturating_mul(*page))
        });
        let (all, of_group) = match (tcp, group.flatten()) {
            (Ok(tcp), Some(group)) => (tcp.min(group), group < tcp),
            (Ok(tcp), None) => (tcp, false),
            (Err(_), Some(group)) => (group, true),
            (Err(why), None) => return Err(why),
        };
        Ok(Room {
            all,
            each: all / u64::from(self.target.flows.max(1)),
            of_group,
        })
    }
}

/// Memory for buffers, bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    pub(crate) all: u64,
    /// A flow's share.
    pub(crate) each: u64,
    /// A control group bounds it, not `tcp_mem`.
    pub(crate) of_group: bool,
}

impl Room {
    /// What bounds it.
    pub(crate) fn what(&self) -> &'static str {
        if self.of_group {
            "the control group's memory"
        } else {
            "tcp_mem[1], where the kernel begins to limit all sockets,"
        }
    }
}

/// The speed of a link, Mbit/s.
pub(crate) fn speed_mbps(interface: &Interface) -> Result<u32, String> {
    let why = || format!("{} states no speed", interface.name);
    let link = interface.link.known();
    link.and_then(|link| link.speed_mbps).ok_or_else(why)
}

/// Three numbers with blanks between.
pub(crate) fn triple(text: &str) -> Option<[u64; 3]> {
    let numbers: Vec<u64> = text
        .split_whitespace()
        .map(|word| word.parse().ok())
        .collect::<Option<_>>()?;
    numbers.try_into().ok()
}

/// `6.12.3-amd64` → (6, 12).
pub(crate) fn version(release: &str) -> Option<(u32, u32)> {
    let mut parts = release.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Something that a check found, under way to its outcome.
pub(crate) struct Advice {
    sentence: String,
    changes: Vec<Change>,
    severity: Option<u8>,
    risk: Option<Risk>,
    set_by: Vec<String>,
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "callers pass numbers, rates and text by value"
)]
impl Advice {
    pub(crate) fn new(sentence: impl Into<String>) -> Self {
        Self {
            sentence: sentence.into(),
            changes: Vec::new(),
            severity: None,
            risk: None,
            set_by: Vec::new(),
        }
    }

    /// What should be changed, and why to this value.
    pub(crate) fn change(mut self, advised: Advised, why: impl Into<String>) -> Self {
        self.changes.push(Change {
            advised,
            now: None,
            why: why.into(),
        });
        self
    }

    /// A setting of the kernel that should have a value, and why this one.
    pub(crate) fn sysctl(
        self,
        key: impl Into<String>,
        value: impl ToString,
        why: impl Into<String>,
    ) -> Self {
        self.change(Advised::sysctl(key, value.to_string()), why)
    }

    /// A setting of an interface that should have a value, and why this one.
    pub(crate) fn interface(
        self,
        name: &str,
        setting: InterfaceSetting,
        value: impl ToString,
        why: impl Into<String>,
    ) -> Self {
        self.change(Advised::interface(name, setting, value.to_string()), why)
    }

    /// A setting of a block device that should have a value, and why this one.
    pub(crate) fn block(
        self,
        device: &str,
        setting: BlockSetting,
        value: impl ToString,
        why: impl Into<String>,
    ) -> Self {
        self.change(Advised::block(device, setting, value.to_string()), why)
    }

    /// What no plan sets, what it should be, and why.
    pub(crate) fn by_hand(
        self,
        what: impl Into<String>,
        value: impl ToString,
        why: impl Into<String>,
    ) -> Self {
        self.change(Advised::by_hand(what, value.to_string()), why)
    }

    /// What it is now, of the last change.
    pub(crate) fn now(self, value: impl ToString) -> Self {
        self.now_where_known(Some(value.to_string()))
    }

    /// The same; `None` where it is not known.
    pub(crate) fn now_where_known(mut self, value: Option<String>) -> Self {
        if let Some(change) = self.changes.last_mut() {
            change.now = value;
        }
        self
    }

    /// Another severity than the check's.
    pub(crate) fn severity(mut self, severity: u8) -> Self {
        self.severity = Some(severity);
        self
    }

    /// Another risk than the check's.
    pub(crate) fn risk(mut self, risk: Risk) -> Self {
        self.risk = Some(risk);
        self
    }

    /// Lines of files that set it.
    pub(crate) fn set_by(mut self, places: impl IntoIterator<Item = String>) -> Self {
        self.set_by.extend(places);
        self
    }

    /// The outcome; severity and risk are 0 and [`Risk::Nothing`] where the check's own hold.
    #[expect(clippy::unnecessary_wraps, reason = "every check ends with an answer")]
    pub(crate) fn fires(self) -> Answer {
        Ok(Outcome::Fires {
            severity: self.severity.unwrap_or(0),
            risk: self.risk.unwrap_or(Risk::Nothing),
            sentence: self.sentence,
            changes: self.changes,
            set_by: self.set_by,
        })
    }
}

/// It is as it should be.
#[expect(clippy::unnecessary_wraps, reason = "every check ends with an answer")]
pub(crate) fn holds(read: impl Into<String>) -> Answer {
    Ok(Outcome::Holds { read: read.into() })
}

/// It is no question here.
#[expect(clippy::unnecessary_wraps, reason = "every check ends with an answer")]
pub(crate) fn does_not_apply(why: impl Into<String>) -> Answer {
    Ok(Outcome::DoesNotApply { why: why.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_and_triples_are_read() {
        assert_eq!(version("6.12.3-amd64"), Some((6, 12)));
        assert_eq!(version("5.14.0-427.el9"), Some((5, 14)));
        assert_eq!(version("next"), None);
        assert_eq!(
            triple("4096 131072 6291456"),
            Some([4096, 131_072, 6_291_456])
        );
        assert_eq!(triple("1 2"), None);
    }
}
