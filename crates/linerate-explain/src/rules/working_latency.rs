//! `working-latency`: small messages beside the load take far longer than without it.
//!
//! By the probes of `--latency`: their median under load is at least three times that of before, and at least 30 ms longer. A
//! queue of one bandwidth-delay product at most doubles it; 30 ms are a fifth of what speech bears from mouth to ear (ITU-T
//! G.114: 150 ms). What holds the messages is said as far as the kernels of both ends show it.

use linerate_model::finding::{Finding, Severity};
use linerate_model::words::with;

use crate::facts::case::Case;
use crate::facts::working_latency::{self, Holder, Latency};
use crate::words;

const MANY_TIMES: f64 = 3.0;
const LONG_US: f64 = 30_000.0;

pub(crate) fn judge(case: &Case<'_>) -> Option<Finding> {
    // The messages go both ways, so they tell no direction from the other.
    if case.record().flows().first() != Some(&case.direction.flow) {
        return None;
    }
    let latency = working_latency::of(case)?;
    let (idle, loaded) = (latency.idle_us, latency.loaded_us);
    if loaded < MANY_TIMES * idle || latency.growth_us() < LONG_US {
        return None;
    }
    let minute = with(latency.per_minute, |rate| {
        format!(
            ", {} round trips per minute",
            words::count(words::whole(rate))
        )
    });
    let sentence = format!(
        "Under load a small message and its answer take {} instead of {}{minute}: {}",
        words::micros(loaded),
        words::micros(idle),
        held_by(case, &latency),
    );
    let busiest = latency.busiest;
    let mut draft = case
        .finding("working-latency", Severity::Note, sentence)
        .figure("message idle median, µs", idle, "client application")
        .figure("message loaded median, µs", loaded, "client application")
        .figure(
            "handshake idle median, µs",
            latency.handshake_us.map(|both| both.0),
            "client kernel",
        )
        .figure(
            "handshake loaded median, µs",
            latency.handshake_us.map(|both| both.1),
            "client kernel",
        )
        .sender(
            "loaded connection rtt median, µs",
            latency.loaded_connection_us,
        )
        .sender("qdisc mean, bytes", latency.qdisc.map(|both| both.0))
        .figure(
            "late sends trimmed mean, µs",
            latency.own_delay_us,
            "client application",
        )
        .figure(
            "round trips per minute under load",
            latency.per_minute,
            "both ends",
        );
    if let Some((role, share)) = busiest {
        draft = draft.figure("CPUs busy", share, case.kernel(role));
    }
    draft.rate().done()
}

/// Which queue it is, what shows that, and what to change.
fn held_by(case: &Case<'_>, latency: &Latency) -> String {
    let handshake = with(latency.handshake_us, |(_, loaded)| words::micros(loaded));
    let connection = with(latency.loaded_connection_us, |us| {
        format!(
            ", the loaded connection's round trips {}",
            words::micros(us)
        )
    });
    let kernels = format!("the kernels' handshakes took {handshake}{connection}");
    match latency.holder(case) {
        Holder::Qdisc => {
            let (bytes, waits) = latency.qdisc.unwrap_or_default();
            format!(
                "the qdisc of {} holds them (on average {} waited there, {} at this rate); use fq_codel or fq on its \
                 interface",
                case.sending_host(),
                words::size(bytes),
                words::micros(waits)
            )
        }
        Holder::Path => format!(
            "the queue is in the path ({kernels}); use fq_codel or CAKE at the bottleneck to keep it short"
        ),
        Holder::OneHost => format!(
            "the queue is between the kernels of the two ends ({kernels}), which run on one host: no network holds them"
        ),
        Holder::Processors => {
            let busy = with(latency.busiest, |(role, share)| {
                format!("; the CPUs of {} were {} busy", case.host(role), words::percent(share))
            });
            format!(
                "the hosts' CPUs may hold them as well as a queue (messages left {} late{busy}); repeat the test while \
                 the hosts are otherwise idle, or with a rate (-b)",
                words::micros(latency.own_delay_us)
            )
        }
        Holder::Programs => format!(
            "no queue between the hosts delays every packet that long ({kernels}): messages were lost and retransmitted, or a \
             program at one end waited for a CPU; look for loss, and repeat the test while the hosts are otherwise idle"
        ),
        Holder::Unknown => {
            "the kernels' own times do not show which queue holds them; test longer, so that more handshakes are measured"
                .to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_analysis::evidence::Evidence;
    use linerate_model::column::{Column, CpuTime};
    use linerate_model::latency::Latencies;
    use linerate_model::plan::Plan;
    use linerate_model::record::{EndRecord, Role, RunRecord};
    use linerate_model::series::Series;
    use linerate_model::units::Nanos;
    use linerate_model::working_latency::{LatencyProbes, ProbePhase};
    use linerate_testing::fixture::{self, CLIENT_START_NS, Traffic};

    use super::*;
    use crate::explain;

    fn times(millis: f64) -> Latencies {
        let mut all = Latencies::default();
        for _ in 0..40 {
            all.add(Nanos(words::whole(millis * 1e6)));
        }
        all
    }

    fn phase(from_ms: u64, message_ms: f64, handshake_ms: f64) -> ProbePhase {
        let at = |millis| Nanos(CLIENT_START_NS).plus(Nanos::from_millis(millis));
        ProbePhase {
            from_ns: at(from_ms),
            to_ns: at(9900),
            sent: 40,
            round_trips: times(message_ms),
            own_delays: times(0.01),
            connects: times(message_ms),
            handshakes: times(handshake_ms),
            ..ProbePhase::default()
        }
    }

    /// A test over a path of 10 ms whose messages take so long under load, and its kernels' handshakes so long.
    fn run(rtt_ms: u64, message_ms: f64, handshake_ms: f64) -> RunRecord {
        let plan = Plan {
            latency: true,
            ..Plan::new("h")
        };
        let traffic = Traffic {
            rtt_us: rtt_ms * 1000,
            ..Traffic::default()
        };
        let mut record = fixture::run(&plan, &traffic);
        record.latency = Some(Box::new(LatencyProbes {
            idle: phase(0, 10.0, 10.0),
            loaded: phase(3000, message_ms, handshake_ms),
            ..LatencyProbes::default()
        }));
        record
    }

    fn client(record: &mut RunRecord) -> &mut EndRecord {
        record.client.as_mut().unwrap()
    }

    /// Counters of the client's host ten times a second.
    fn counters(name: &str, value: fn(u64) -> u64) -> Series {
        let rows = 0..100_u64;
        let at = rows.clone().map(|row| CLIENT_START_NS + row * 100_000_000);
        let mut series = Series::new(at.collect());
        series
            .insert(name.to_owned(), rows.map(value).collect())
            .unwrap();
        series
    }

    fn found(record: &RunRecord) -> Option<Finding> {
        let findings = explain(&Evidence::of(record));
        findings.into_iter().find(|one| one.id == "working-latency")
    }

    fn sentence(record: &RunRecord) -> String {
        found(record).expect("a finding").sentence
    }

    #[test]
    fn what_all_kernels_see_is_in_the_path() {
        let record = run(110, 112.0, 108.0);
        let finding = found(&record).unwrap();
        assert!(finding.sentence.contains("in the path"), "{finding:?}");
        assert!(
            finding
                .figures
                .iter()
                .any(|one| one.name.contains("handshake loaded"))
        );
        let others = explain(&Evidence::of(&record));
        assert!(
            others.iter().all(|one| one.id != "bufferbloat"),
            "{others:?}"
        );
    }

    #[test]
    fn less_than_three_times_or_30_ms_is_nothing() {
        assert_eq!(found(&run(29, 29.0, 29.0)), None);
        let mut short = run(3, 29.0, 29.0);
        short.latency.as_mut().unwrap().idle = phase(0, 1.0, 1.0);
        assert_eq!(found(&short), None);
    }

    #[test]
    fn what_only_programs_see_is_no_queue() {
        let text = sentence(&run(11, 112.0, 11.0));
        assert!(text.contains("no queue between the hosts"), "{text}");
    }

    #[test]
    fn the_senders_qdisc_is_named_where_it_holds_the_bytes() {
        let mut record = run(110, 112.0, 108.0);
        // 1.2 MB at 95 Mbit/s are 100 ms.
        client(&mut record).counters = counters(Column::qdisc_backlog_bytes.name(), |_| 1_200_000);
        let text = sentence(&record);
        assert!(text.contains("the qdisc of the client"), "{text}");
    }

    #[test]
    fn busy_cpus_keep_the_path_from_being_blamed() {
        let mut record = run(110, 112.0, 108.0);
        let busy = CpuTime::Busy.of(0);
        client(&mut record).counters = counters(&busy, |row| row * 98);
        let text = sentence(&record);
        assert!(
            text.contains("CPUs of the client") && !text.contains("in the path"),
            "{text}"
        );
        let mut record = run(110, 112.0, 108.0);
        record.latency.as_mut().unwrap().loaded.own_delays = times(90.0);
        assert!(!sentence(&record).contains("in the path"));
    }

    #[test]
    fn one_host_keeps_the_path_from_being_blamed() {
        let mut record = run(110, 112.0, 108.0);
        for role in [Role::Client, Role::Server] {
            let end = match role {
                Role::Client => record.client.as_mut(),
                Role::Server => record.server.as_mut(),
            };
            let host = &mut end.unwrap().host;
            host.boot_id = Some("one".into());
            host.network_namespace = Some(if role == Role::Client { 1 } else { 2 });
        }
        let text = sentence(&record);
        assert!(
            text.contains("on one host") && !text.contains("in the path"),
            "{text}"
        );
    }

    #[test]
    fn a_fair_queue_is_no_bufferbloat_for_others() {
        let record = run(400, 12.0, 12.0);
        let findings = explain(&Evidence::of(&record));
        let ids: Vec<&str> = findings.iter().map(|one| one.id.as_str()).collect();
        assert!(
            !ids.contains(&"bufferbloat") && !ids.contains(&"working-latency"),
            "{ids:?}"
        );
        let mut unprobed = record;
        unprobed.latency = None;
        let findings = explain(&Evidence::of(&unprobed));
        assert!(
            findings.iter().any(|one| one.id == "bufferbloat"),
            "{findings:?}"
        );
    }
}
