//! A command line in iperf3's spelling: words with zero bytes or newlines between them.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

// The parser is a module of the binary, which nothing can import.
#[path = "../../crates/linerate/src/iperf3_arguments/mod.rs"]
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "only the binary uses what is parsed")
)]
mod parser;

/// Feeds one input.
pub fn run(data: &[u8]) {
    let words = data.split(|byte| matches!(byte, 0 | b'\n'));
    let words = words.map(|word| OsString::from_vec(word.to_vec()));
    match parser::parse(words) {
        Ok(parser::Iperf3Action::Client(client)) => assert!(client.plan.check().is_ok()),
        Ok(parser::Iperf3Action::Help) => assert!(!parser::help_text().is_empty()),
        Ok(parser::Iperf3Action::Version) => {
            assert!(!parser::version_text("1", "Linux").is_empty());
        }
        Ok(parser::Iperf3Action::Server(_)) => {}
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
