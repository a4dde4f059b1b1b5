//! docs/reference/checks.md is made from the checks, and checked against them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use linerate_tune::checks::CHECKS;

const HEAD: &str = "# Checks

What `linerate host audit` looks at; S01 to S16 with `--storage`, and the others without. Made from the program's own table (`cargo test -p linerate-tune -- --ignored
write_the_reference_of_checks`). How to use it: [the guide](../guides/host.md).

BDP is the rate of a flow × the round-trip time: the bytes in flight. ρ is the share of a receive buffer that becomes
window: 0.5 at first, about 0.9 once the kernel (6.6 and later) has measured how full packets are; before 6.6 it follows
from `tcp_adv_win_scale`.

A check fires, holds, cannot be known (and says what would show it), or does not apply. Only two readings show whether a
counter rises (`--for 10s`, or `--since FACTS.json`); one reading can show that it never did.

Severity: 1 worst to 4. Risk: what applying may cost; *data* = it erases, moves or can lose what is stored: back up first. Scope: B bare metal, V virtual machine, K container or another network
namespace than the machine's first. For S01 to S16 network namespaces do not count, and in a container the machine has to change its disks.

";

fn markdown() -> String {
    let mut out = HEAD.to_owned();
    out.push_str(
        "| check | reads | fires when | recommends | severity | risk | scope | source |\n",
    );
    out.push_str("|---|---|---|---|---|---|---|---|\n");
    for check in &CHECKS {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            check.id,
            check.reads,
            check.fires,
            check.recommends,
            check.severity,
            check.risk.words(),
            check.scope,
            check.source
        );
    }
    out
}

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/checks.md")
}

#[test]
fn the_reference_of_checks_is_up_to_date() {
    let written = std::fs::read_to_string(path()).unwrap();
    assert_eq!(
        written,
        markdown(),
        "run `cargo test -p linerate-tune -- --ignored write_the_reference_of_checks`"
    );
}

#[test]
#[ignore = "writes docs/reference/checks.md"]
fn write_the_reference_of_checks() {
    std::fs::write(path(), markdown()).unwrap();
}
