//! What the JSON report says of time and rate, and what a comparison says.

use super::{Row, row};

const SENDER: &str = "sending kernel's samples";
const GOODPUT: &str = "where goodput is measured";
const CLOCKS: &str = "sending kernel's clocks";

/// Below `summary.directions[]` of `--json`.
pub(super) const DIRECTION: &[Row] = &[
    row(
        "rates.from_ns",
        "ns since the measuring end was let go",
        GOODPUT,
        "Begin of the first step of the curve; `rates` is null where there are no samples.",
    ),
    row(
        "rates.step_ns",
        "ns",
        GOODPUT,
        "Length of a step; there are at most 1000.",
    ),
    row(
        "rates.bps[]",
        "bit/s of payload",
        GOODPUT,
        "Rate of all streams together in each step.",
    ),
    row(
        "time_budget.application",
        "0 to 1",
        SENDER,
        "Share of the plateau's time with nothing to send, or held to the rate asked for. `time_budget` is null where it \
         cannot be known; the shares of the seven classes add to one.",
    ),
    row(
        "time_budget.send_buffer",
        "0 to 1",
        SENDER,
        "The send buffer was full of what was in flight.",
    ),
    row(
        "time_budget.receive_window",
        "0 to 1",
        SENDER,
        "The peer's receive window was full.",
    ),
    row(
        "time_budget.congestion_window",
        "0 to 1",
        SENDER,
        "The congestion window was full and the path was not: no queue stood in it.",
    ),
    row(
        "time_budget.recovery",
        "0 to 1",
        SENDER,
        "Lost segments were being repaired.",
    ),
    row(
        "time_budget.timeout",
        "0 to 1",
        SENDER,
        "Waiting for the retransmission timer, or for acknowledgements that did not come.",
    ),
    row(
        "time_budget.filling_path",
        "0 to 1",
        SENDER,
        "The path was full: a queue stood in it, the link carried all that it can, or BBR paced to it.",
    ),
    row(
        "time_budget.network",
        "0 to 1",
        SENDER,
        "The last four together.",
    ),
    row(
        "time_budget.time_ns",
        "ns",
        SENDER,
        "Time of all sending streams that was classified.",
    ),
    row(
        "time_budget.span_ns[]",
        "ns since the sender was let go",
        SENDER,
        "Begin and end of the samples that it rests on.",
    ),
    row(
        "time_budget.kernel_clocks.application",
        "0 to 1",
        CLOCKS,
        "Elapsed less `busy_time`: what the clocks alone say, which now and then mislead.",
    ),
    row(
        "time_budget.kernel_clocks.send_buffer",
        "0 to 1",
        CLOCKS,
        "`sndbuf_limited`.",
    ),
    row(
        "time_budget.kernel_clocks.receive_window",
        "0 to 1",
        CLOCKS,
        "`rwnd_limited`.",
    ),
    row(
        "time_budget.kernel_clocks.network",
        "0 to 1",
        CLOCKS,
        "The rest of `busy_time`.",
    ),
    row(
        "time_budget_unknown",
        "-",
        "-",
        "Why there is no budget; else null.",
    ),
    row(
        "bands[].from_ns",
        "ns since the sender was let go",
        SENDER,
        "Begin of a run of time in which one class took most of the streams' time, over the whole run.",
    ),
    row(
        "bands[].to_ns",
        "ns since the sender was let go",
        SENDER,
        "Its end.",
    ),
    row(
        "bands[].class",
        "-",
        SENDER,
        "The class: `application`, `send_buffer`, `receive_window`, `congestion_window`, `recovery`, `timeout` or \
         `filling_path`.",
    ),
    row(
        "waterfall.line_bps",
        "bit/s on the wire",
        "as `waterfall.line` says",
        "Where it begins. `waterfall` is null where it cannot be known; `line_bps` less all steps is `goodput_bps`, exactly.",
    ),
    row(
        "waterfall.line",
        "-",
        "-",
        "What that rate is: `client_interface` or `server_interface` (the slower one's speed), `path_seen_full` (what \
         passed while the path was full, with the framing added), `most_seen` (the most that passed in 40 ms, which is no bound: the path may carry more, and less where that came out of a queue at once).",
    ),
    row(
        "waterfall.steps[].step",
        "-",
        "-",
        "What took it: `framing`, `path`, `congestion_window`, `recovery`, `timeout`, `receive_window`, `send_buffer`, \
         `application`, `loss`, `receiver_drop`, `not_known`, `ramp`.",
    ),
    row(
        "waterfall.steps[].bps",
        "bit/s",
        "as its source says",
        "How much; negative where it gave.",
    ),
    row(
        "waterfall.steps[].left_bps",
        "bit/s",
        "-",
        "What is left after it.",
    ),
    row(
        "waterfall.steps[].source",
        "-",
        "-",
        "What the figure rests on.",
    ),
    row(
        "waterfall.plateau_bps",
        "bit/s",
        GOODPUT,
        "Goodput of the plateau.",
    ),
    row(
        "waterfall.goodput_bps",
        "bit/s",
        GOODPUT,
        "Goodput of the whole run, ramp included.",
    ),
    row(
        "waterfall_unknown",
        "-",
        "-",
        "Why there is no waterfall; else null.",
    ),
];

/// `linerate compare --json`.
pub(super) const COMPARISON: &[Row] = &[
    row(
        "sides[].letter",
        "-",
        "-",
        "A, B …: what the text calls it.",
    ),
    row(
        "sides[].name",
        "-",
        "-",
        "The record's file, or the folder of several.",
    ),
    row("sides[].runs", "runs", "-", "Runs in it."),
    row(
        "sides[].started_at_unix_ms",
        "ms since 1970-01-01 UTC",
        "writer's wall clock",
        "A label; nothing is computed from it.",
    ),
    row(
        "sides[].findings[].id",
        "-",
        "-",
        "A finding's rule, as in docs/findings.",
    ),
    row(
        "sides[].findings[].severity",
        "-",
        "-",
        "`healthy`, `note`, `limit` or `fault`.",
    ),
    row(
        "sides[].findings[].flow",
        "-",
        "-",
        "The direction that it is about; null = the whole run.",
    ),
    row(
        "sides[].findings[].runs",
        "runs",
        "-",
        "Runs of the side that it was found in.",
    ),
    row(
        "sides[].findings[].verdict",
        "-",
        "-",
        "Whether it is the first finding of its direction in any of them.",
    ),
    row(
        "sides[].findings[].sentence",
        "-",
        "-",
        "Its sentence, of the first of them.",
    ),
    row(
        "directions[].flow",
        "-",
        "-",
        "`client_to_server` or `server_to_client`.",
    ),
    row(
        "directions[].sides[].goodput_bps",
        "bit/s of payload",
        GOODPUT,
        "Goodput of the plateau; the mean of the runs where there are several. Sides stand in the order of `sides`.",
    ),
    row(
        "directions[].sides[].goodput_low_bps",
        "bit/s",
        GOODPUT,
        "Lower end of its 95 % interval.",
    ),
    row(
        "directions[].sides[].goodput_high_bps",
        "bit/s",
        GOODPUT,
        "Upper end.",
    ),
    row(
        "directions[].sides[].interval",
        "-",
        "-",
        "What the interval covers: `within_one_run` (how the rate wavered in it) or `between_runs`.",
    ),
    row(
        "directions[].sides[].whole_run_bps",
        "bit/s",
        GOODPUT,
        "Goodput of the whole run, ramp included.",
    ),
    row(
        "directions[].sides[].ramp_ns",
        "ns",
        GOODPUT,
        "Time of the ramp.",
    ),
    row(
        "directions[].sides[].retransmit_share",
        "0 to 1",
        "sending kernel",
        "Segments sent again, of all.",
    ),
    row(
        "directions[].sides[].rtt_us",
        "µs",
        "sending kernel",
        "Mean round trip over the plateau.",
    ),
    row(
        "directions[].sides[].min_rtt_us",
        "µs",
        "sending kernel",
        "Least round trip.",
    ),
    row(
        "directions[].sides[].loss_share",
        "0 to 1",
        "receiving application",
        "Datagrams lost, of those sent (UDP).",
    ),
    row(
        "directions[].sides[].jitter_ns",
        "ns",
        "receiving application",
        "Smoothed jitter, RFC 3550 (UDP).",
    ),
    row(
        "directions[].sides[].client_seconds_per_gigabyte",
        "s per 10^9 bytes",
        "client's kernel",
        "CPU time at the client.",
    ),
    row(
        "directions[].sides[].server_seconds_per_gigabyte",
        "s per 10^9 bytes",
        "server's kernel",
        "CPU time at the server.",
    ),
    row(
        "directions[].sides[].time_budget",
        "-",
        SENDER,
        "As above, of the side's first run.",
    ),
    row(
        "directions[].sides[].against_first.bps",
        "bit/s",
        GOODPUT,
        "Goodput less that of the first side; `against_first` is null for the first itself.",
    ),
    row(
        "directions[].sides[].against_first.low_bps",
        "bit/s",
        GOODPUT,
        "Lower end of the difference's 95 % interval: half widths of independent means add as squares.",
    ),
    row(
        "directions[].sides[].against_first.high_bps",
        "bit/s",
        GOODPUT,
        "Upper end.",
    ),
    row(
        "directions[].sides[].against_first.share",
        "-",
        GOODPUT,
        "The difference as a share of the first side's goodput.",
    ),
    row(
        "directions[].sides[].against_first.differs",
        "-",
        "-",
        "Whether that interval leaves out zero; null where a side has no interval.",
    ),
    row(
        "settings[].name",
        "-",
        "-",
        "A setting or a fact that is not the same on all sides, by its path in the record.",
    ),
    row(
        "settings[].values[]",
        "-",
        "-",
        "Its value on each side; null = not set, or not known.",
    ),
    row(
        "remarks[]",
        "-",
        "-",
        "What has to be known before the figures are believed.",
    ),
];

/// The whole reference as Markdown.
pub fn report() -> String {
    let mut text = String::from(
        "# The report as JSON: time, rate, comparison\n\n\
         Made by `linerate_report::reference` and checked against documents. What is not known is null, never 0.\n\n\
         ## Where the time and where the rate went\n\n\
         Below `summary.directions[]` of `linerate test --json` and `linerate show --json`, beside the direction's other figures; \
         `time_budget[]` at the top\nholds the same budgets, each with its `flow`.\n\n",
    );
    super::table(&mut text, DIRECTION.iter());
    text.push_str("\n## A comparison\n\nWhat `linerate compare --json` prints.\n\n");
    super::table(&mut text, COMPARISON.iter());
    text
}
