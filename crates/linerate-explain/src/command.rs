//! The command that asks for the same test again, with one thing changed.

use linerate_model::plan::{Plan, Protocol, options};

use crate::words;

/// The plan as a command line; what is a default stays out.
pub(crate) fn test(plan: &Plan) -> String {
    // Only iperf3's command line has SCTP.
    let command = match plan.protocol {
        Protocol::Sctp => "linerate iperf3 --sctp -c",
        Protocol::Tcp | Protocol::Udp => "linerate test",
    };
    let host = options::plain(&plan.host).unwrap_or("HOST");
    let mut words = vec![command.to_owned(), host.to_owned()];
    words.extend(options::said(plan));
    words.join(" ")
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
