//! What is watched: hosts, what their tests share, tasks with their pairs, schedules, expectations and budgets.

use std::path::PathBuf;

use linerate_model::plain_text::PlainText;
use linerate_model::units::{BitRate, Bytes};

/// A whole plan, as `watch.toml` or a template of pSConfig says it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Watched {
    /// The hosts, in the order of the file.
    pub hosts: Vec<WatchedHost>,
    /// Links and machines that tests share.
    pub segments: Vec<Segment>,
    /// What is tested.
    pub tasks: Vec<Task>,
    /// When nothing is tested, and nobody is alerted.
    pub maintenance: Vec<Maintenance>,
    /// Where alerts are sent.
    pub channels: Vec<Channel>,
    /// What the file says and this program does not read, a name each.
    pub ignored: Vec<PlainText>,
}

/// A host that takes part in tests.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchedHost {
    /// Its name, unique in the plan.
    pub name: PlainText,
    /// What other hosts dial: a name or an address.
    pub address: PlainText,
    /// How its end of a test is started.
    pub reach: Reach,
    /// Whether others can connect to it. One behind a NAT only dials.
    pub listens: bool,
    /// The ports at which its servers listen, the first and the last one; absent = whichever is free.
    pub ports: Option<(u16, u16)>,
    /// Rate of its interface; absent = not known.
    pub link: Option<BitRate>,
    /// Whether it may send one test and receive another at the same time.
    pub duplex: Duplex,
    /// Places in [`Watched::segments`] that all its tests with hosts outside of the segment pass.
    pub segments: Vec<usize>,
    /// Groups that it belongs to, for [`crate::cause`].
    pub groups: Vec<PlainText>,
    /// What its tests may use up.
    pub budget: Budget,
}

/// How a host's end of a test is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reach {
    /// An agent on it dials the hub.
    Agent,
    /// The hub starts an agent there, by ssh or another command that reaches it.
    Ssh,
    /// `linerate serve` runs there: it is only tested against, at this port.
    Linerate(u16),
    /// `iperf3 -s` runs there: the same.
    Iperf3(u16),
}

impl Reach {
    /// Whether linerate can start something on it.
    pub const fn commands(&self) -> bool {
        matches!(self, Self::Agent | Self::Ssh)
    }
}

/// Whether the directions of an interface disturb each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Duplex {
    /// One test at a time.
    #[default]
    Exclusive,
    /// One that sends and one that receives at a time.
    Independent,
}

/// Something that the tests of several hosts share: a site's uplink, a trunk, a hypervisor, a NAT address.
#[derive(Debug, Clone, PartialEq)]
pub struct Segment {
    /// Its name, unique in the plan.
    pub name: PlainText,
    /// What it carries; absent = one test at a time.
    pub capacity: Option<BitRate>,
    /// What its tests may use up together.
    pub budget: Budget,
}

/// What tests may use up in a day. A budget refills evenly and never holds more than a day's worth.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Budget {
    /// Payload; absent = any amount.
    pub bytes_a_day: Option<Bytes>,
    /// Seconds in which a test runs; absent = any.
    pub seconds_a_day: Option<f64>,
}

/// Tests of one kind between some pairs.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Its name, unique in the plan.
    pub name: PlainText,
    /// Options of `linerate test` without those of direction, host and report.
    pub options: Vec<String>,
    /// How long the load of a test lasts, the omitted part included, ms.
    pub load_millis: u64,
    /// The rate that a test has at most, where it is paced or its amount is limited; absent = what the path gives.
    pub rate: Option<BitRate>,
    /// Who tests whom.
    pub pairs: Vec<Pair>,
    /// When.
    pub schedule: Schedule,
    /// What a test has to show; absent = nothing.
    pub expected: Option<Expected>,
    /// A test does not begin while other traffic uses more than this share of a link, 0 to 1; absent = it does.
    pub quiet: Option<f64>,
}

/// Data from one host to another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pair {
    /// The sender's place in [`Watched::hosts`].
    pub from: usize,
    /// The receiver's.
    pub to: usize,
    /// The sender's address in this task, where it is another than [`WatchedHost::address`].
    pub from_address: Option<PlainText>,
    /// The receiver's.
    pub to_address: Option<PlainText>,
}

/// When a task's tests are due.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// One test of each pair in every period, ms. Periods begin at 1970-01-01 00:00 UTC.
    pub period_millis: u64,
    /// How much later than its moment a test may end, ms; absent = until its period ends.
    pub slip_millis: Option<u64>,
    /// How the moment within a period is chosen.
    pub sampling: Sampling,
    /// Hours of the day (UTC) in which tests may run, in minutes since midnight; empty = all. `(1320, 360)` is from 22:00 to 6:00.
    pub hours: Vec<(u16, u16)>,
}

/// How the moment of a test is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sampling {
    /// Evenly distributed within each period: gaps are bounded, no two pairs keep step, and all hours are covered.
    #[default]
    Stratified,
    /// Exponential gaps (RFC 2330, section 11.1), cut off at three periods.
    Poisson,
    /// At the beginning of each period.
    Fixed,
}

/// What a test has to show, in bit/s of payload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Expected {
    /// 0.9 times the least of the link rates, the paced rate and the pair's own baseline.
    Auto,
    /// At least so much.
    AtLeast(BitRate),
    /// At least this share of the pair's baseline, 0 to 1.
    OfBaseline(f64),
}

/// A time in which some hosts are not tested, and not alerted for.
#[derive(Debug, Clone, PartialEq)]
pub struct Maintenance {
    /// Places in [`Watched::hosts`]; empty = all.
    pub hosts: Vec<usize>,
    /// From when on, seconds since 1970.
    pub from_unix_s: u64,
    /// Until when.
    pub until_unix_s: u64,
    /// Why, for those who ask.
    pub why: PlainText,
}

/// A way in which alerts leave the hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Channel {
    /// Its name, unique in the plan.
    pub name: PlainText,
    /// What is sent.
    pub kind: ChannelKind,
    /// Where to: `http://` or `https://`, of mail `smtp://` or `smtps://`.
    pub url: String,
    /// The file with the secret that signs what a webhook gets, or with the password of a mail server; absent = neither.
    pub secret_file: Option<PathBuf>,
}

/// What a [`Channel`] sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChannelKind {
    /// Alerts as Alertmanager's API takes them (version 2), again every minute while they fire.
    Alertmanager,
    /// One JSON document for each alert that fires, changes or is resolved.
    Webhook,
    /// A mail for each alert that fires, changes or is resolved.
    Mail(Mail),
}

/// Mail of a [`Channel`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mail {
    /// The server's name or address.
    pub server: String,
    /// Its port; absent = the usual one: 465 with TLS from the first byte, else 587 with a user and 25 without.
    pub port: Option<u16>,
    /// Whether TLS begins with the connection (`smtps://`). Else it begins by STARTTLS (RFC 3207): always with a user,
    /// and without one where the server offers it.
    pub wrapped: bool,
    /// Who logs in, with the password of the secret file; absent = nobody.
    pub user: Option<String>,
    /// The sender's address.
    pub from: String,
    /// The receivers' addresses.
    pub to: Vec<String>,
}
