//! The command that asks for the same test again, with one thing changed.

use linerate_model::plan::{
    DEFAULT_PORT, DEFAULT_SCTP_BLOCK, DEFAULT_TCP_BLOCK, DEFAULT_UDP_BLOCK, Direction, End, Family,
    Pace, Plan, Protocol,
};

use crate::words;

/// The plan as a command line; what is a default stays out.
pub(crate) fn test(plan: &Plan) -> String {
    let sctp = plan.protocol == Protocol::Sctp;
    // Only iperf3's command line has SCTP.
    let command = if sctp {
        "linerate iperf3 --sctp -c"
    } else {
        "linerate test"
    };
    let mut words = vec![command.to_owned(), host(&plan.host)];
    let mut say = |word: String| words.push(word);
    if plan.port != DEFAULT_PORT {
        say(format!("-p {}", plan.port));
    }
    match plan.family {
        Family::Any => {}
        Family::V4 => say("-4".to_owned()),
        Family::V6 => say("-6".to_owned()),
    }
    if plan.protocol == Protocol::Udp {
        say("-u".to_owned());
    }
    match plan.direction {
        Direction::Send => {}
        Direction::Receive => say("-R".to_owned()),
        Direction::Both => say("--bidir".to_owned()),
    }
    if plan.streams > 1 {
        say(format!("-P {}", plan.streams));
    }
    transport(plan, &mut say);
    length(plan, &mut say);
    questions(plan, &mut say);
    words.join(" ")
}

fn transport(plan: &Plan, say: &mut impl FnMut(String)) {
    match plan.rate_bps {
        Some(_) if plan.rate_is_default => {}
        Some(rate) => say(format!("-b {}", rate.as_option())),
        None if plan.protocol == Protocol::Udp => say("-b 0".to_owned()),
        None => {}
    }
    // Where a rate is left out for the next run, nothing is paced.
    if plan.pace == Pace::Spin && plan.rate_bps.is_some() {
        say("--pace spin".to_owned());
    }
    if let Some(rate) = plan.kernel_pacing_bps {
        say(format!("--fq-rate {}", rate.as_option()));
    }
    if let Some(window) = plan.window_bytes {
        say(format!("-w {}", window.as_option()));
    }
    let default = match plan.protocol {
        Protocol::Tcp => DEFAULT_TCP_BLOCK,
        Protocol::Udp => DEFAULT_UDP_BLOCK,
        Protocol::Sctp => DEFAULT_SCTP_BLOCK,
    };
    if plan.block_bytes != default {
        say(format!("-l {}", plan.block_bytes.as_option()));
    }
    if let Some(mss) = plan.mss_bytes {
        say(format!("-M {mss}"));
    }
    if let Some(congestion) = &plan.congestion {
        say(format!("-C {}", plain(congestion).unwrap_or("ALGORITHM")));
    }
    if plan.mptcp {
        say("--mptcp".to_owned());
    }
    if plan.zerocopy {
        say("-Z".to_owned());
    }
    if plan.skip_receive_copy {
        say("--skip-rx-copy".to_owned());
    }
}

fn length(plan: &Plan, say: &mut impl FnMut(String)) {
    match plan.end {
        End::TimeNs(span) if span.0 == 10_000_000_000 => {}
        End::TimeNs(span) => say(format!("-t {}", span.as_secs_f64())),
        End::Bytes(bytes) => say(format!("-n {}", bytes.as_option())),
        End::Blocks(blocks) => say(format!("-k {blocks}")),
    }
    if plan.omit_ns.0 > 0 {
        say(format!("-O {}", plan.omit_ns.as_secs_f64()));
    }
}

fn questions(plan: &Plan, say: &mut impl FnMut(String)) {
    if let Some(precision) = plan.precision {
        // Hundredths of a percent, as typed: 0.07 × 100 is not 7.
        say(format!(
            "--precision {}%",
            (precision * 1e4).round() / 100.0
        ));
    }
    if let Some(bought) = plan.provisioned_bps {
        say(format!("--provisioned {}", bought.as_option()));
    }
    if let Some(wanted) = plan.expect {
        say(format!("--expect '{wanted}'"));
    }
}

/// A host that a shell takes as one plain word; records may come from strangers.
fn host(name: &str) -> String {
    plain(name).unwrap_or("HOST").to_owned()
}

fn plain(text: &str) -> Option<&str> {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '_' | '-' | '%');
    (!text.is_empty() && !text.starts_with('-') && text.chars().all(fine)).then_some(text)
}

/// A rate as `-b` takes it, rounded down to two digits: `86M`.
pub(crate) fn round_rate(bps: f64) -> u64 {
    let whole = words::whole(bps);
    let unit = 10_u64.pow(whole.max(10).ilog10() - 1);
    whole / unit * unit
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::units::{BitRate, Bytes, Nanos};

    #[test]
    fn what_is_default_stays_out_and_the_rest_is_spelled_as_typed() {
        let mut plan = Plan::new("server");
        assert_eq!(test(&plan), "linerate test server");
        plan.port = 5202;
        plan.direction = Direction::Receive;
        plan.streams = 4;
        plan.window_bytes = Some(Bytes(32 << 20));
        plan.rate_bps = Some(BitRate(100_000_000));
        plan.end = End::TimeNs(Nanos::from_millis(30_000));
        assert_eq!(
            test(&plan),
            "linerate test server -p 5202 -R -P 4 -b 100M -w 32M -t 30"
        );
    }

    #[test]
    fn a_stranger_s_host_name_is_no_shell_command() {
        for name in ["$(reboot)", "a b", "-x", "", "a;b"] {
            assert_eq!(test(&Plan::new(name)), "linerate test HOST", "{name}");
        }
        assert_eq!(
            test(&Plan::new("fe80::1%eth0")),
            "linerate test fe80::1%eth0"
        );
    }

    #[test]
    fn suggested_rates_have_two_digits() {
        assert_eq!(round_rate(87_654_321.0), 87_000_000);
        assert_eq!(round_rate(3.0), 3);
    }
}
