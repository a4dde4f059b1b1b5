//! The arguments of `linerate expect`.

use std::net::IpAddr;

use clap::Args;
use linerate_model::units::{BitRate, Bytes, Nanos};

use crate::arguments::seconds;
use crate::on::OnArguments;

// `linerate expect`.
#[derive(Args, Debug, Clone)]
pub(crate) struct ExpectArguments {
    /// Rate of the slowest link in bit/s, Ethernet's framing included (K, M, G of 1000)
    #[arg(long, value_name = "RATE")]
    pub(super) rate: BitRate,
    /// Round-trip time of the idle path, with its unit: 60ms
    #[arg(long, value_name = "TIME", value_parser = round_trip)]
    pub(super) rtt: Nanos,
    /// Path MTU, bytes [default: that of the route to --to]
    #[arg(long, value_name = "BYTES")]
    pub(super) mtu: Option<u32>,
    /// Socket buffers, as requested by `linerate test -w` (K, M, G of 1024) [default: autotuned]
    #[arg(short = 'w', long, value_name = "BYTES")]
    pub(super) window: Option<Bytes>,
    /// Random packet loss, a share: 1e-6 or 0.01%
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(super) loss: Option<f64>,
    /// Duration of the test, seconds
    #[arg(short = 't', long, value_name = "SECONDS", value_parser = seconds, default_value = "10")]
    pub(super) time: Nanos,
    /// Streams, 1 to 128
    #[arg(short = 'P', long, default_value_t = 1)]
    pub(super) parallel: u16,
    /// Congestion control of the sender [default: this host's]
    #[arg(short = 'C', long, value_name = "NAME")]
    pub(super) congestion: Option<String>,
    /// Take MTU and congestion control from the route to this address [default: the default route]
    #[arg(long, value_name = "ADDRESS")]
    pub(super) to: Option<IpAddr>,
    /// IPv6
    #[arg(short = '6')]
    pub(super) v6: bool,
    /// One JSON document
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) on: OnArguments,
}

/// A time that names its unit: in seconds a round trip is never meant.
fn round_trip(text: &str) -> Result<Nanos, String> {
    let units = [("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];
    let (digits, scale) = units
        .into_iter()
        .find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, scale)))
        .ok_or("give a time with its unit, such as 60ms or 250us")?;
    match digits.trim_end().parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => {
            Ok(Nanos::from_secs_f64(number * scale))
        }
        _ => Err("give a time with its unit, such as 60ms or 250us".to_owned()),
    }
}

/// `1e-6` or `0.01%`.
fn share(text: &str) -> Result<f64, String> {
    let (digits, scale) = text
        .strip_suffix('%')
        .map_or((text, 1.0), |digits| (digits, 0.01));
    match digits.trim().parse::<f64>().map(|number| number * scale) {
        Ok(share) if (0.0..1.0).contains(&share) => Ok(share),
        _ => Err("give a share from 0 to less than 1, such as 1e-6 or 0.01%".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_names_its_unit() {
        assert_eq!(round_trip("60ms"), Ok(Nanos::from_millis(60)));
        assert_eq!(round_trip("0.25s"), Ok(Nanos::from_millis(250)));
        assert_eq!(round_trip("250us"), Ok(Nanos(250_000)));
        for wrong in ["60", "-1ms", "ms", "", "1e400ms", "NaNms", "6 0ms"] {
            assert!(round_trip(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_loss_is_a_share_of_the_packets() {
        assert_eq!(share("1e-6"), Ok(1e-6));
        assert!((share("0.01%").unwrap() - 1e-4).abs() < 1e-12);
        for wrong in ["1", "100%", "-1e-3", "x", "", "NaN", "inf"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }
}
