//! The hosts' charts: processors, the streams' threads, and drops.

use linerate_analysis::evidence::Evidence;
use linerate_model::column::{Column, CpuTime};
use linerate_model::record::{EndRecord, Role};
use linerate_model::series::Series;
use linerate_model::units::Nanos;

use super::axis::Axis;
use super::{Chart, Line, Panel, Stroke, windows};
use crate::words;

/// A host of more processors than this shows the busiest and the mean.
const EACH: usize = 8;
/// Processor time is counted in ticks of 10 ms: shorter windows show the ticks.
const LEAST_WINDOW: u64 = 500_000_000;
/// All of a window's time.
const ALL: u64 = 10_000;
/// Counters of what a host dropped, and what they are called.
const DROPS: [(Column, &str); 5] = [
    (Column::if_rx_dropped, "interface, receiving"),
    (Column::if_tx_dropped, "interface, sending"),
    (Column::qdisc_drops, "qdisc"),
    (Column::softnet_dropped, "softnet backlog"),
    (
        Column::softnet_time_squeeze,
        "softnet out of time (not a drop)",
    ),
];

pub(super) fn charts(evidence: &Evidence<'_>, axis: Axis) -> Vec<Chart> {
    let record = evidence.record;
    let one_machine = evidence.directions.iter().any(|of| of.ends.one_host());
    let mut charts = Vec::new();
    for role in [Role::Client, Role::Server] {
        let Some(end) = record.end(role) else {
            continue;
        };
        let host = Host {
            end,
            role,
            axis,
            span: span(end),
        };
        if !(one_machine && role == Role::Server) {
            charts.push(host.processors(one_machine));
        }
        charts.push(host.threads(record.plan.sample_ns.0));
        charts.push(host.drops());
    }
    charts
}

/// From the start of the streams to the last counters within the test.
fn span(end: &EndRecord) -> [u64; 2] {
    let at = end.counters.at_ns();
    let first = at.first().copied().unwrap_or(0).max(end.start_ns.0);
    let last = at.last().copied().unwrap_or(0);
    // Draining is shown, tearing down is not.
    let drained = end
        .streams
        .iter()
        .filter_map(|stream| stream.samples.at_ns().last())
        .max();
    [first, drained.map_or(last, |drained| last.min(*drained))]
}

struct Host<'a> {
    end: &'a EndRecord,
    role: Role,
    axis: Axis,
    span: [u64; 2],
}

impl Host<'_> {
    fn chart(
        &self,
        panel: Panel,
        titles: [&'static str; 2],
        about: impl Into<String>,
        lines: Vec<Line>,
    ) -> Chart {
        let (end, title) = match self.role {
            Role::Client => ("client", titles[0]),
            Role::Server => ("server", titles[1]),
        };
        Chart {
            title,
            ..Chart::of(panel, end, about, lines)
        }
    }

    /// Windows over the whole span, none shorter than this.
    fn edges(&self, least: u64) -> Vec<u64> {
        let span = self.span[1].saturating_sub(self.span[0]);
        windows::edges(self.span, windows::length(span, 10_000_000, 0).max(least))
    }

    fn line(
        &self,
        name: impl Into<String>,
        colour: usize,
        stroke: Stroke,
        edges: &[u64],
        values: &[Option<u64>],
    ) -> Line {
        let points = windows::steps(&self.axis, self.role, edges, values);
        Line::steps(name, colour, stroke, points)
    }

    /// Busy shares of the processors, over windows long enough for ticks.
    fn processors(&self, one_machine: bool) -> Chart {
        let edges = self.edges(LEAST_WINDOW);
        let busy = self.cpus(CpuTime::Busy, &edges);
        let lines = if busy.len() <= EACH {
            self.each_processor(busy, &edges)
        } else {
            self.busiest_and_mean(&busy, &edges)
        };
        let about = format!(
            "Share of the time that each processor was busy{}; mean over {}",
            words::when(one_machine, ", of the one machine that both ends ran on"),
            Nanos(
                edges
                    .get(1)
                    .map_or(LEAST_WINDOW, |second| second - edges[0])
            )
        );
        let titles = if one_machine {
            ["Processors"; 2]
        } else {
            ["Processors of the client", "Processors of the server"]
        };
        self.chart(Panel::Cpu, titles, about, lines)
    }

    fn each_processor(&self, busy: Vec<(String, Vec<Option<u64>>)>, edges: &[u64]) -> Vec<Line> {
        let line = |(place, (cpu, values)): (usize, (String, Vec<Option<u64>>))| {
            self.line(cpu, place, Stroke::Plain, edges, &values)
        };
        let mut lines: Vec<Line> = busy.into_iter().enumerate().map(line).collect();
        for (time, what, stroke) in [
            (CpuTime::Softirq, "softirq", Stroke::Dashed),
            (CpuTime::Steal, "stolen by the hypervisor", Stroke::Dotted),
        ] {
            for (place, (cpu, values)) in self.cpus(time, edges).into_iter().enumerate().take(EACH)
            {
                // Below a fiftieth they are a line along the axis.
                if values.iter().flatten().any(|share| *share >= 200) {
                    lines.push(self.line(format!("{cpu}, {what}"), place, stroke, edges, &values));
                }
            }
        }
        lines
    }

    fn busiest_and_mean(&self, busy: &[(String, Vec<Option<u64>>)], edges: &[u64]) -> Vec<Line> {
        let over = |of: fn(&[u64]) -> Option<u64>| -> Vec<Option<u64>> {
            let window = |window| {
                let all = busy.iter().map(|(_, values)| *values.get(window)?);
                of(&all.collect::<Option<Vec<u64>>>()?)
            };
            (0..edges.len().saturating_sub(1)).map(window).collect()
        };
        let busiest = over(|all| all.iter().max().copied());
        let mean = over(|all| all.iter().sum::<u64>().checked_div(all.len() as u64));
        let mean_of = format!("mean of {}", busy.len());
        vec![
            self.line(
                "the busiest at each moment",
                0,
                Stroke::Plain,
                edges,
                &busiest,
            ),
            self.line(mean_of, 1, Stroke::Plain, edges, &mean),
        ]
    }

    /// The CPU time of each stream's thread.
    fn threads(&self, sample_ns: u64) -> Chart {
        let mut lines = Vec::new();
        for (place, stream) in self.end.streams.iter().enumerate() {
            let last = stream.samples.at_ns().last().copied().unwrap_or(0);
            let span = [self.end.start_ns.0, last];
            let length = windows::length(span[1].saturating_sub(span[0]), sample_ns, 0);
            let edges = windows::edges(span, length);
            for (column, what, stroke) in [
                (Column::thread_cpu_ns, "on a CPU", Stroke::Plain),
                (Column::thread_wait_ns, "waiting for a CPU", Stroke::Dotted),
            ] {
                let Some(values) = stream.samples.column(column) else {
                    continue;
                };
                let values = shares(&stream.samples, values, &edges, 1);
                if values.iter().flatten().any(|share| *share >= 100) {
                    let name = format!("stream {}, {what}", stream.id);
                    lines.push(Line {
                        kind: Some(what.to_owned()),
                        stream: Some(stream.id),
                        ..self.line(name, place, stroke, &edges, &values)
                    });
                }
            }
        }
        let titles = [
            "Threads of the client's streams",
            "Threads of the server's streams",
        ];
        let about = "Share of the time that the thread of each stream ran, and that it could have run but had to wait for a processor";
        self.chart(Panel::Threads, titles, about, lines)
    }

    /// What the host dropped; no chart where it dropped nothing.
    fn drops(&self) -> Chart {
        let edges = self.edges(100_000_000);
        let mut lines = Vec::new();
        for (place, (column, name)) in DROPS.into_iter().enumerate() {
            let Some(values) = self.end.counters.column(column) else {
                continue;
            };
            let growth = windows::growth(self.end.counters.at_ns(), values, &edges);
            if growth.iter().any(|count| *count > 0) {
                let values: Vec<Option<u64>> = growth.into_iter().map(Some).collect();
                lines.push(self.line(name, place, Stroke::Filled, &edges, &values));
            }
        }
        let titles = ["Drops on the client's host", "Drops on the server's host"];
        let about = "Packets that the host itself dropped, in each window, by its own counters";
        self.chart(Panel::Drops, titles, about, lines)
    }

    /// `CPU 0` and the shares of its time, in the order of the processors.
    fn cpus(&self, time: CpuTime, edges: &[u64]) -> Vec<(String, Vec<Option<u64>>)> {
        let counters = &self.end.counters;
        let cpus = counters.cpus(time).into_iter();
        cpus.map(|(cpu, values)| {
            let shares = shares(counters, values, edges, 1_000_000);
            (format!("CPU {cpu}"), shares)
        })
        .collect()
    }
}

/// A counter of busy time as hundredths of a percent of each window; `ns` = what it counts in.
fn shares(series: &Series, values: &[u64], edges: &[u64], ns: u64) -> Vec<Option<u64>> {
    let growth = windows::growth(series.at_ns(), values, edges);
    // A reading taken a little after its instant makes more than all of a short window.
    windows::per_second(edges, &growth, u128::from(ALL) * u128::from(ns))
        .into_iter()
        .map(|share| share.map(|share| share.min(ALL)))
        .collect()
}
#[cfg(test)]
mod tests {
    use linerate_model::plan::Plan;
    use linerate_testing::fixture::{self, Traffic};

    use super::*;

    #[test]
    fn one_machine_has_its_processors_once_also_where_no_boot_is_known() {
        let mut record = fixture::run(&Plan::new("server"), &Traffic::default());
        let processors = |record: &linerate_model::record::RunRecord| -> Vec<&'static str> {
            let all = charts(&Evidence::of(record), Axis::of(record)).into_iter();
            all.filter(|chart| chart.panel == Panel::Cpu)
                .map(|chart| chart.title)
                .collect()
        };
        assert_eq!(
            processors(&record),
            ["Processors of the client", "Processors of the server"]
        );
        for end in [&mut record.client, &mut record.server] {
            let end = end.as_mut().unwrap();
            end.host.boot_id = None;
            end.interface.as_mut().unwrap().name = "lo".into();
        }
        assert_eq!(processors(&record), ["Processors"]);
    }
}
