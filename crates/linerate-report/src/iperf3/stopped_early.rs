//! What iperf3 writes of a test that somebody stopped before its streams ran: a summary without a stream.

use linerate_model::plan::{Plan, Protocol};
use linerate_model::record::{Flow, Role};
use serde_json::{Map, Value, json};

use super::json::{head as sum_head, insert, named};
use super::text::{SEPARATOR, head};
use super::timeline::Span;
use super::{Iperf3Settings, flows};

/// The lines of text: a head with nothing below it.
pub(super) fn lines(settings: &Iperf3Settings, plan: &Plan) -> Vec<String> {
    let columns = match plan.protocol {
        Protocol::Udp => "         Jitter    Lost/Total Datagrams",
        Protocol::Tcp if sends_any(settings.role, plan) => "         Retr",
        Protocol::Tcp | Protocol::Sctp => "",
    };
    vec![SEPARATOR.to_owned(), head(plan, columns)]
}

/// The `end` of the document: nothing moved, in no time.
pub(super) fn end(settings: &Iperf3Settings, plan: &Plan) -> Value {
    let mut end = Map::new();
    insert(&mut end, "streams", json!([]));
    for flow in flows(plan) {
        let sends = sends(settings.role, *flow);
        if plan.protocol == Protocol::Udp {
            insert(&mut end, &named(plan, "sum", *flow), datagrams(sends));
            insert(&mut end, &named(plan, "sum_sent", *flow), datagrams(true));
            let received = datagrams(false);
            insert(&mut end, &named(plan, "sum_received", *flow), received);
            continue;
        }
        let mut sent = nothing();
        if sends && plan.protocol == Protocol::Tcp {
            insert(&mut sent, "retransmits", 0);
        }
        let mut received = nothing();
        for sum in [&mut sent, &mut received] {
            insert(sum, "sender", sends);
        }
        insert(&mut end, &named(plan, "sum_sent", *flow), sent);
        insert(&mut end, &named(plan, "sum_received", *flow), received);
    }
    let cpu = ["host", "remote"].into_iter().flat_map(|side| {
        ["total", "user", "system"].map(|part| (format!("{side}_{part}"), json!(0)))
    });
    let cpu: Map<String, Value> = cpu.collect();
    insert(&mut end, "cpu_utilization_percent", cpu);
    Value::Object(end)
}

fn sends(role: Role, flow: Flow) -> bool {
    (role == Role::Client) == (flow == Flow::ClientToServer)
}

fn sends_any(role: Role, plan: &Plan) -> bool {
    flows(plan).iter().any(|flow| sends(role, *flow))
}

fn nothing() -> Map<String, Value> {
    sum_head(Span::default(), 0, 0.0)
}

fn datagrams(sender: bool) -> Map<String, Value> {
    let mut sum = nothing();
    for key in ["jitter_ms", "lost_packets", "packets", "lost_percent"] {
        insert(&mut sum, key, 0);
    }
    insert(&mut sum, "sender", sender);
    sum
}

#[cfg(test)]
mod tests {
    use linerate_model::plan::Direction;

    use super::*;

    fn keys(value: &Value) -> Vec<&str> {
        let object = value.as_object().unwrap();
        object.keys().map(String::as_str).collect()
    }

    /// As captured from iperf3 3.21 on SIGTERM before its streams.
    #[test]
    fn the_shape_is_iperf3s() {
        let settings = Iperf3Settings::new(Role::Client);
        let mut plan = Plan::new("h");
        assert_eq!(
            lines(&settings, &plan)[1],
            "[ ID] Interval           Transfer     Bitrate         Retr"
        );
        let value = end(&settings, &plan);
        assert_eq!(
            keys(&value),
            [
                "streams",
                "sum_sent",
                "sum_received",
                "cpu_utilization_percent"
            ]
        );
        assert_eq!(
            value["sum_sent"].to_string(),
            r#"{"start":0,"end":0,"seconds":0,"bytes":0,"bits_per_second":0,"retransmits":0,"sender":true}"#
        );
        assert_eq!(value["sum_received"].get("retransmits"), None);
        plan.direction = Direction::Both;
        let value = end(&settings, &plan);
        assert_eq!(keys(&value)[3], "sum_sent_bidir_reverse");
        assert_eq!(value["sum_sent_bidir_reverse"]["sender"], false);
        plan.protocol = Protocol::Udp;
        plan.direction = Direction::Send;
        let value = end(&settings, &plan);
        assert_eq!(
            keys(&value)[..4],
            ["streams", "sum", "sum_sent", "sum_received"]
        );
        assert_eq!(keys(&value["sum"])[5], "jitter_ms");
        assert_eq!(value["sum_received"]["sender"], false);
        let lines = lines(&settings, &plan);
        assert!(lines[1].ends_with("Lost/Total Datagrams"), "{lines:?}");
        // A server that receives knows of no retransmits.
        plan.protocol = Protocol::Tcp;
        let server = Iperf3Settings::new(Role::Server);
        assert!(super::lines(&server, &plan)[1].ends_with("Bitrate"));
        assert_eq!(end(&server, &plan)["sum_sent"].get("retransmits"), None);
    }
}
