//! What `-h` and `-v` say.

use std::fmt::Write as _;

use super::options::{Argument, SPELLINGS, Side};

const HEAD: &str = "\
Usage: iperf3 [-s|-c host] [options]
       iperf3 [-h|--help] [-v|--version]

This is linerate in its iperf3 mode: iperf3's options, text and JSON, measured by
linerate. It talks to any iperf3. `linerate --help' shows linerate's own commands; docs/iperf3.md
says what is the same, what is different and what is not implemented.

";

const TAIL: &str = "
Sizes (-n -k -l -w) take K, M, G, T of 1024; rates (-b --fq-rate --server-bitrate-limit) of 1000.
Long options may be abbreviated. The password for --username is read from IPERF3_PASSWORD.
";

/// The text of `-h`, made from the table of options.
pub(crate) fn help_text() -> String {
    let mut text = HEAD.to_owned();
    for (title, side) in [
        ("Server or client", None),
        ("Server only", Some(Side::Server)),
        ("Client only", Some(Side::Client)),
    ] {
        text += title;
        text += ":\n";
        for spelling in SPELLINGS
            .iter()
            .filter(|spelling| spelling.side == side && !spelling.help.is_empty())
        {
            let short = match spelling.short {
                "" => "    ".to_owned(),
                letter => format!("-{letter}, "),
            };
            let argument = match spelling.argument {
                Argument::None => "",
                Argument::Required => " #",
                Argument::Optional => "[=#]",
            };
            let option = format!("{short}--{}{argument}", spelling.long);
            let _ = writeln!(text, "  {option:<34} {}", spelling.help);
        }
    }
    text + TAIL
}

/// The text of `-v`: a first line that programs which look for `iperf 3.x` can read.
pub(crate) fn version_text(version: &str, system: &str) -> String {
    format!(
        "iperf 3.21 (linerate {version})\n{system}\nThis is linerate's iperf3 mode, not ESnet's iperf3.\n\
         Optional features available: CPU affinity setting, IPv6 flow label, TCP congestion algorithm setting, \
         sendfile / zerocopy, socket pacing, authentication, bind to device, support IPv4 don't fragment, \
         POSIX threads, GSO/GRO support\n"
    )
}
