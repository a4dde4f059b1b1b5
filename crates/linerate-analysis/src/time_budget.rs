//! Where the time of sending streams went: every moment of each belongs to one class.
//!
//! web100's triage (`SndLimTimeRwin`, `SndLimTimeCwnd`, `SndLimTimeSender`) came from a kernel that booked each
//! moment on one state. Linux has three clocks in its place (`tcp_info`, 4.10): `busy_time`, and within it
//! `rwnd_limited` and `sndbuf_limited`. They mislead where
//!
//! - data is outstanding all the time although the application wrote little: the clock says busy;
//! - the send buffer limits: its clock stops whenever an acknowledgement frees space;
//! - a window or a buffer only bounds a queue that stands in the path anyway;
//! - a window of megabytes is held for a moment by the scheduling of one machine.
//!
//! So the samples decide ([`crate::moments`]): what was in flight against the congestion window, the peer's
//! window and the send buffer, the congestion state, the round trip against the least one, whether anything
//! was left unsent. The clocks are one witness among them. Time is counted in whole nanoseconds, so the
//! classes of a budget add to its time exactly.

use serde::{Deserialize, Serialize};

use crate::apportion::apportion;

/// What a moment of a sending stream's time went to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Nothing to send, or held to the rate that was asked for: the sending application.
    Application,
    /// The send buffer was full of what was in flight, and the windows were open.
    SendBuffer,
    /// The peer's receive window was full.
    ReceiveWindow,
    /// The congestion window was full and the path was not: no queue stood in it (slow start, growth after a
    /// loss).
    CongestionWindow,
    /// Lost segments were being repaired (`ca_state` Recovery).
    Recovery,
    /// Waiting for the retransmission timer, or for acknowledgements that did not come (`ca_state` Loss).
    Timeout,
    /// The path was full: a queue stood in it, the link carried all that it can, or the congestion control
    /// paced to the path's own rate.
    FillingPath,
}

impl Class {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 7] = [
        Self::Application,
        Self::SendBuffer,
        Self::ReceiveWindow,
        Self::CongestionWindow,
        Self::Recovery,
        Self::Timeout,
        Self::FillingPath,
    ];

    /// All of them, what the path does first, then what the hosts do.
    pub const NETWORK_FIRST: [Self; 7] = [
        Self::FillingPath,
        Self::CongestionWindow,
        Self::Recovery,
        Self::Timeout,
        Self::ReceiveWindow,
        Self::SendBuffer,
        Self::Application,
    ];

    /// Whether the network is meant: congestion window, recovery, timeout, the path itself.
    pub const fn network(self) -> bool {
        matches!(
            self,
            Self::CongestionWindow | Self::Recovery | Self::Timeout | Self::FillingPath
        )
    }

    /// In words: `receive window`.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::SendBuffer => "send buffer",
            Self::ReceiveWindow => "receive window",
            Self::CongestionWindow => "congestion window",
            Self::Recovery => "recovery",
            Self::Timeout => "timeout",
            Self::FillingPath => "filling the path",
        }
    }

    /// Its place in [`Class::ALL`].
    pub(crate) const fn place(self) -> usize {
        self as usize
    }
}

/// Time of each class, ns; the sum is what was classified.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClassTimes([u64; 7]);

impl ClassTimes {
    /// Time spent in a class, ns.
    pub const fn of(&self, class: Class) -> u64 {
        self.0[class.place()]
    }

    /// Time of all classes, ns.
    pub fn total(&self) -> u64 {
        self.0.iter().fold(0, |sum, ns| sum.saturating_add(*ns))
    }

    /// The class that took most, the first of equal ones; `None` of no time.
    pub fn largest(&self) -> Option<Class> {
        let most = self.0.iter().max().filter(|ns| **ns > 0)?;
        Class::ALL
            .into_iter()
            .find(|class| self.of(*class) == *most)
    }

    /// Adds time to a class.
    pub fn add(&mut self, class: Class, ns: u64) {
        let time = &mut self.0[class.place()];
        *time = time.saturating_add(ns);
    }

    /// Adds all times of another.
    pub fn join(&mut self, other: &Self) {
        for class in Class::ALL {
            self.add(class, other.of(class));
        }
    }

    /// Times as whole parts of `whole` that add to it exactly, in the order of [`Class::ALL`]: 100 gives
    /// percent.
    pub fn parts_of(&self, whole: u64) -> [u64; 7] {
        let mut parts = [0; 7];
        for (part, share) in parts.iter_mut().zip(apportion(&self.0, whole)) {
            *part = share;
        }
        parts
    }
}

/// Where the time of a direction's sending streams went over the plateau.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeBudget {
    /// Time of all streams together, by class.
    pub times: ClassTimes,
    /// Begin and end of the samples that it rests on, ns on the sender's clock.
    pub span_ns: [u64; 2],
}

impl TimeBudget {
    /// Share of a class, 0 to 1; the shares of all classes add to one, but for the last bit of a float.
    pub fn share(&self, class: Class) -> f64 {
        self.times.of(class) as f64 / self.times.total().max(1) as f64
    }

    /// Share of the network: congestion window, recovery, timeout and filling the path.
    pub fn network(&self) -> f64 {
        let network = Class::ALL.into_iter().filter(|class| class.network());
        network.map(|class| self.share(class)).sum()
    }
}

/// A run of time in which one class took most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Band {
    /// Begin, ns on the sender's clock.
    pub from_ns: u64,
    /// End, ns on the sender's clock.
    pub to_ns: u64,
    /// The one that took most of it.
    pub class: Class,
}

/// The bands of one stream over the whole run; at most [`crate::evidence::GRID_POINTS`] of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamBands {
    /// The stream.
    pub id: u32,
    /// In the order of time, without gaps where samples are.
    pub bands: Vec<Band>,
}

/// Cuts of a span into even steps, each with the time of its classes, merged where neighbours agree.
pub(crate) fn merge(from_ns: u64, step_ns: u64, steps: &[ClassTimes]) -> Vec<Band> {
    let mut bands: Vec<Band> = Vec::new();
    for (number, times) in steps.iter().enumerate() {
        let Some(class) = times.largest() else {
            continue;
        };
        let begin = from_ns.saturating_add((number as u64).saturating_mul(step_ns));
        let end = begin.saturating_add(step_ns);
        match bands.last_mut() {
            Some(last) if last.class == class && last.to_ns == begin => last.to_ns = end,
            _ => bands.push(Band {
                from_ns: begin,
                to_ns: end,
                class,
            }),
        }
    }
    bands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_stand_at_their_place() {
        for (place, class) in Class::ALL.into_iter().enumerate() {
            assert_eq!(class.place(), place);
        }
    }

    #[test]
    fn percents_add_to_a_hundred() {
        let mut times = ClassTimes::default();
        times.add(Class::Application, 1);
        times.add(Class::Recovery, 1);
        times.add(Class::FillingPath, 1);
        let parts = times.parts_of(100);
        assert_eq!(parts.iter().sum::<u64>(), 100);
        assert_eq!(parts, [34, 0, 0, 0, 33, 0, 33]);
        assert_eq!(times.largest(), Some(Class::Application));
        assert_eq!(ClassTimes::default().largest(), None);
    }

    #[test]
    fn neighbours_of_one_class_are_one_band_and_gaps_stay() {
        let of = |class| {
            let mut times = ClassTimes::default();
            times.add(class, 5);
            times
        };
        let empty = ClassTimes::default();
        let steps = [
            of(Class::Recovery),
            of(Class::Recovery),
            empty,
            of(Class::Recovery),
            of(Class::Timeout),
        ];
        let bands = merge(100, 10, &steps);
        let seen: Vec<_> = bands
            .iter()
            .map(|band| (band.from_ns, band.to_ns, band.class))
            .collect();
        assert_eq!(
            seen,
            [
                (100, 120, Class::Recovery),
                (130, 140, Class::Recovery),
                (140, 150, Class::Timeout)
            ]
        );
    }
}
