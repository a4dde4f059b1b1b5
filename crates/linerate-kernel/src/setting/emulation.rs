//! The disciplines that make a path on an interface's way out: netem delays, loses and doubles, tbf is a link of a
//! rate with a queue in bytes. What they did is reported by [`crate::counters::qdiscs`].
//!
//! A packet meets netem first: its delay line holds what is on the way, and hands it to tbf where that hangs below.
//! Both are changed in place, so that what waits in them stays.

use std::io;

use linerate_model::units::{BitRate, Nanos};

use super::qdisc::{self, Discipline, ROOT};
use crate::KernelError;
use crate::error::Explained;
use crate::netlink::{push_attribute, push_nested};

// include/uapi/linux/pkt_sched.h
const TCA_NETEM_DELAY_DIST: u16 = 2;
const TCA_NETEM_LOSS: u16 = 5;
const TCA_NETEM_RATE: u16 = 6;
const TCA_NETEM_RATE64: u16 = 8;
const TCA_NETEM_LATENCY64: u16 = 10;
const TCA_NETEM_JITTER64: u16 = 11;
const TCA_NETEM_PRNG_SEED: u16 = 14;
const NETEM_LOSS_GE: u16 = 2;
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_BURST: u16 = 6;
/// Sizes are not looked up in a table (`TC_LINKLAYER_UNAWARE` would want one).
const TC_LINKLAYER_ETHERNET: u8 = 1;
/// An entry of netem's distribution that stands for the whole of its spread (`NETEM_DIST_SCALE`).
pub const WHOLE_SPREAD: i16 = 8192;
/// The most entries that a distribution has (`NETEM_DIST_MAX`).
pub const LONGEST_DISTRIBUTION: usize = 16_384;
/// Bytes of an Ethernet header, which the disciplines count as a part of each packet (`skb->len`).
const LINK_HEADER: i32 = 14;
/// A packet may start as soon as the one before it at this rate, bytes a second: so netem keeps their order, as it
/// does wherever it has a rate (`netem_enqueue`), and takes a nanosecond for the longest.
const IN_ORDER: u64 = 1_000_000_000_000;
/// Time in the kernel's old units is in steps of 64 ns (`PSCHED_SHIFT`).
const TICK_SHIFT: u32 = 6;
/// The disciplines' numbers, and the only class of a netem.
const NETEM: u32 = 0x0001_0000;
const BUCKET: u32 = 0x0002_0000;
const BELOW_NETEM: u32 = NETEM | 1;

/// A delay line.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Netem {
    /// Packets that it holds at most.
    pub limit: u32,
    /// Each packet stays for so long.
    pub delay: Nanos,
    /// Some stay longer.
    pub spread: Option<Spread>,
    /// Whether packets leave in the order in which they came, whatever their delays.
    pub in_order: bool,
    /// Those that are lost as they come.
    pub loss: NetemLoss,
    /// Share of the packets that are doubled, 0 to 1.
    pub duplicate: f64,
    /// What its dice begin with; kernels before 6.6 have dice of their own.
    pub seed: u64,
}

/// How much longer packets stay: each draws one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spread {
    /// What an entry of [`WHOLE_SPREAD`] adds; up to 2.1 s.
    pub most: Nanos,
    /// 1 to [`LONGEST_DISTRIBUTION`] entries, in parts of [`WHOLE_SPREAD`].
    pub distribution: Vec<i16>,
}

/// Which packets a netem loses.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum NetemLoss {
    /// None.
    #[default]
    None,
    /// Each with these odds, 0 to 1.
    Independent(f64),
    /// Two states (Gilbert 1960, Elliott 1963); all odds 0 to 1.
    GilbertElliott {
        /// Odds of turning bad.
        p: f64,
        /// Odds of turning good again.
        r: f64,
        /// Odds of loss in the bad state.
        bad: f64,
        /// Odds of loss in the good state.
        good: f64,
    },
}

/// A link of a rate, with a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenBucket {
    /// Its rate; below 8 bit/s it is 8 bit/s.
    pub rate: BitRate,
    /// Bytes that pass at once after a rest. What is larger than this never passes.
    pub burst: u32,
    /// Bytes that wait at most, the packet that is next included.
    pub queue: u32,
}

/// Where a token bucket stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// It is all that the interface has.
    Alone,
    /// Behind the [`Netem`] of [`set_netem`].
    BelowNetem,
}

/// Puts a netem at the root of an interface, or changes the one that [`set_netem`] put there. Every packet counts
/// `overhead` bytes beside its IP bytes, 0 to 1000, wherever bytes count at the interface.
///
/// # Errors
/// `ENOENT` where this kernel has no netem; `ENODEV`, `EPERM`; `EINVAL` for an empty or too long distribution.
pub fn set_netem(interface: &str, netem: &Netem, overhead: u32) -> Result<(), KernelError> {
    let wanted = Discipline::wanted("netem", NETEM, ROOT, netem.options());
    qdisc::put_sized(interface, &wanted, Some(&sizes(overhead)))
        .map_err(|error| absent(error, "netem (CONFIG_NET_SCH_NETEM, module sch_netem)"))
        .map_err(KernelError::of("put the qdisc netem on", interface))
}

/// Puts a token bucket on an interface, or changes the one that is there. `overhead` as of [`set_netem`]; below a
/// netem that one's counts.
///
/// # Errors
/// `ENOENT` where this kernel has no tbf; `ENODEV`, `EPERM`; `EINVAL` for a burst of nothing.
pub fn set_token_bucket(
    interface: &str,
    bucket: &TokenBucket,
    place: Place,
    overhead: u32,
) -> Result<(), KernelError> {
    // A packet keeps the length that the root counted for it.
    let (parent, sizes) = match place {
        Place::Alone => (ROOT, Some(sizes(overhead))),
        Place::BelowNetem => (BELOW_NETEM, None),
    };
    let wanted = Discipline::wanted("tbf", BUCKET, parent, bucket.options());
    qdisc::put_sized(interface, &wanted, sizes.as_deref())
        .map_err(|error| absent(error, "tbf (CONFIG_NET_SCH_TBF, module sch_tbf)"))
        .map_err(KernelError::of("put the qdisc tbf on", interface))
}

/// The kernel's answer to a kind that it does not know is that there is no such file.
fn absent(error: io::Error, what: &str) -> io::Error {
    if error.kind() != io::ErrorKind::NotFound {
        return error;
    }
    let words = format!("this kernel has no {what}");
    Explained {
        code: libc::ENOENT,
        words,
    }
    .into()
}

/// `struct tc_sizespec` without a table: what is added to each packet's length (`__qdisc_calculate_pkt_len`).
fn sizes(overhead: u32) -> Vec<u8> {
    let added = i32::try_from(overhead).unwrap_or(i32::MAX) - LINK_HEADER;
    let mut spec = vec![0; 24];
    spec[4..8].copy_from_slice(&added.to_ne_bytes());
    spec[8..12].copy_from_slice(&u32::from(TC_LINKLAYER_ETHERNET).to_ne_bytes());
    spec
}

impl Netem {
    /// `struct tc_netem_qopt` and the attributes behind it. What may have been set before is always said anew: the
    /// kernel keeps what an order does not name.
    fn options(&self) -> Vec<u8> {
        let spread = self.spread.as_ref().map_or(Nanos::ZERO, |one| one.most);
        let loss = match self.loss {
            NetemLoss::Independent(odds) => part(odds),
            NetemLoss::None | NetemLoss::GilbertElliott { .. } => 0,
        };
        let mut options = words(&[
            ticks(self.delay),
            self.limit,
            loss,
            0,
            part(self.duplicate),
            ticks(spread),
        ]);
        for (kind, span) in [
            (TCA_NETEM_LATENCY64, self.delay),
            (TCA_NETEM_JITTER64, spread),
        ] {
            let span = i64::try_from(span.0).unwrap_or(i64::MAX);
            push_attribute(&mut options, kind, &span.to_ne_bytes());
        }
        if let Some(spread) = &self.spread {
            let entries = spread.distribution.iter();
            let entries: Vec<u8> = entries.flat_map(|entry| entry.to_ne_bytes()).collect();
            push_attribute(&mut options, TCA_NETEM_DELAY_DIST, &entries);
        }
        if let NetemLoss::GilbertElliott { p, r, bad, good } = self.loss {
            push_nested(&mut options, TCA_NETEM_LOSS, |options| {
                let model = words(&[part(p), part(r), part(1.0 - bad), part(good)]);
                push_attribute(options, NETEM_LOSS_GE, &model);
            });
        }
        let rate = if self.in_order { u32::MAX } else { 0 };
        push_attribute(&mut options, TCA_NETEM_RATE, &words(&[rate, 0, 0, 0]));
        if self.in_order {
            push_attribute(&mut options, TCA_NETEM_RATE64, &IN_ORDER.to_ne_bytes());
        }
        push_attribute(&mut options, TCA_NETEM_PRNG_SEED, &self.seed.to_ne_bytes());
        options
    }
}

impl TokenBucket {
    /// `struct tc_tbf_qopt`: two `struct tc_ratespec`, of which the second, the peak rate, is not used; limit,
    /// buffer, MTU. Rate and burst follow in attributes that hold all of them.
    fn options(&self) -> Vec<u8> {
        let rate = (self.rate.0 / 8).max(1);
        let mut parameters = vec![0; 36];
        parameters[1] = TC_LINKLAYER_ETHERNET;
        let short = u32::try_from(rate).unwrap_or(u32::MAX);
        parameters[8..12].copy_from_slice(&short.to_ne_bytes());
        parameters[13] = TC_LINKLAYER_ETHERNET;
        parameters[24..28].copy_from_slice(&self.queue.to_ne_bytes());
        let mut options = Vec::new();
        push_attribute(&mut options, TCA_TBF_PARMS, &parameters);
        push_attribute(&mut options, TCA_TBF_BURST, &self.burst.to_ne_bytes());
        push_attribute(&mut options, TCA_TBF_RATE64, &rate.to_ne_bytes());
        options
    }
}

/// A share of `u32::MAX`, as netem has its odds.
fn part(share: f64) -> u32 {
    let whole = linerate_model::units::whole(share * f64::from(u32::MAX));
    u32::try_from(whole).unwrap_or(u32::MAX)
}

fn ticks(span: Nanos) -> u32 {
    u32::try_from(span.0 >> TICK_SHIFT).unwrap_or(u32::MAX)
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::{attribute, word};

    /// Bytes of `struct tc_netem_qopt`.
    const QOPT: usize = 24;

    fn long(bytes: &[u8]) -> u64 {
        u64::from_ne_bytes(bytes.try_into().unwrap())
    }

    #[test]
    fn a_netem_s_options_are_as_tc_lays_them_out() {
        let netem = Netem {
            limit: 1000,
            delay: Nanos::from_millis(20),
            spread: Some(Spread {
                most: Nanos::from_millis(3),
                distribution: vec![0, WHOLE_SPREAD, -1],
            }),
            in_order: false,
            loss: NetemLoss::Independent(0.01),
            duplicate: 1.0,
            seed: 7,
        };
        let options = netem.options();
        // latency, limit, loss, gap, duplicate, jitter; `tc … delay 20ms 3ms loss 1% duplicate 100%` sends the same.
        let fields: Vec<u32> = (0..6).filter_map(|at| word(&options, 4 * at)).collect();
        assert_eq!(fields, [312_500, 1000, 42_949_673, 0, u32::MAX, 46_875]);
        let list = &options[QOPT..];
        assert_eq!(
            long(attribute(list, TCA_NETEM_LATENCY64).unwrap()),
            20_000_000
        );
        assert_eq!(
            long(attribute(list, TCA_NETEM_JITTER64).unwrap()),
            3_000_000
        );
        assert_eq!(long(attribute(list, TCA_NETEM_PRNG_SEED).unwrap()), 7);
        let entries: Vec<i16> = attribute(list, TCA_NETEM_DELAY_DIST)
            .unwrap()
            .chunks(2)
            .map(|two| i16::from_ne_bytes(two.try_into().unwrap()))
            .collect();
        assert_eq!(entries, [0, 8192, -1]);
        // A rate of nothing takes back one that kept the order.
        assert_eq!(attribute(list, TCA_NETEM_RATE), Some([0; 16].as_slice()));
        assert_eq!(attribute(list, TCA_NETEM_RATE64), None);
        assert_eq!(attribute(list, TCA_NETEM_LOSS), None);
    }

    #[test]
    fn bursts_of_loss_and_order_are_attributes() {
        let netem = Netem {
            in_order: true,
            loss: NetemLoss::GilbertElliott {
                p: 0.25,
                r: 0.5,
                bad: 1.0,
                good: 0.0,
            },
            ..Netem::default()
        };
        let options = netem.options();
        assert_eq!(options[..QOPT], [0; QOPT]);
        let list = &options[QOPT..];
        let model = attribute(attribute(list, TCA_NETEM_LOSS).unwrap(), NETEM_LOSS_GE).unwrap();
        // p, r, and of the bad state the odds that nothing is lost (`gemodel`'s 1-h), then those of loss in the good.
        let fields: Vec<u32> = (0..4).filter_map(|at| word(model, 4 * at)).collect();
        assert_eq!(fields, [0x4000_0000, 0x8000_0000, 0, 0]);
        assert_eq!(attribute(list, TCA_NETEM_DELAY_DIST), None);
        assert_eq!(long(attribute(list, TCA_NETEM_RATE64).unwrap()), IN_ORDER);
    }

    #[test]
    fn a_bucket_s_rate_is_in_bytes_and_may_be_longer_than_32_bits() {
        let bucket = TokenBucket {
            rate: BitRate(100_000_000),
            burst: 25_000,
            queue: 250_000,
        };
        let options = bucket.options();
        let parameters = attribute(&options, TCA_TBF_PARMS).unwrap();
        assert_eq!(parameters.len(), 36);
        // cell_log, linklayer, overhead, cell_align, mpu; then the rate.
        assert_eq!(parameters[..8], [0, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(word(parameters, 8), Some(12_500_000));
        assert_eq!(word(parameters, 20), Some(0), "no peak rate");
        assert_eq!(word(parameters, 24), Some(250_000));
        let burst = attribute(&options, TCA_TBF_BURST).unwrap();
        assert_eq!(word(burst, 0), Some(25_000));
        let fast = TokenBucket {
            rate: BitRate(400_000_000_000),
            ..bucket
        };
        let options = fast.options();
        let parameters = attribute(&options, TCA_TBF_PARMS).unwrap();
        assert_eq!(word(parameters, 8), Some(u32::MAX));
        assert_eq!(
            long(attribute(&options, TCA_TBF_RATE64).unwrap()),
            50_000_000_000
        );
    }

    #[test]
    fn the_link_s_own_header_is_not_counted_twice() {
        // cell_log, size_log, cell_align, overhead, linklayer, mpu, mtu, tsize.
        assert_eq!(sizes(38), words(&[0, 24, 1, 0, 0, 0]));
        assert_eq!(sizes(0)[4..8], (-14_i32).to_ne_bytes());
    }

    #[test]
    fn what_the_kernel_lacks_is_named() {
        let error = absent(io::Error::from_raw_os_error(libc::ENOENT), "netem (X)");
        assert!(error.to_string().contains("this kernel has no netem (X)"));
        let other = absent(io::Error::from_raw_os_error(libc::EPERM), "netem (X)");
        assert_eq!(other.raw_os_error(), Some(libc::EPERM));
    }
}
