//! Which of the server's streams is which of ours.
//!
//! Both ends number streams from one, we as we open them and the server as it accepts them. Where a path loses the last
//! packet of a handshake, a connection that was opened first is accepted second, and the numbers differ; iperf3 then
//! books one stream's bytes under another. The addresses of the connections tell.

use std::collections::BTreeMap;

use linerate_model::record::{EndRecord, PeerResults, StreamRecord};

/// Gives the server's streams, in its half and its results, the numbers that ours have. They stay as they are where the
/// connections cannot be told apart, as behind a translation of ports.
pub(super) fn number(ours: &EndRecord, half: &mut EndRecord, results: Option<&mut PeerResults>) {
    let Some(ids) = ids(ours, half) else {
        return;
    };
    let ours = |id: u32| ids.get(&id).copied().unwrap_or(id);
    for stream in &mut half.streams {
        stream.id = ours(stream.id);
    }
    half.streams.sort_by_key(|stream| stream.id);
    if let Some(results) = results {
        for stream in &mut results.streams {
            stream.id = ours(stream.id);
        }
        results.streams.sort_by_key(|stream| stream.id);
    }
}

/// Our number for each of the server's, where these differ and every connection has one at both ends.
fn ids(ours: &EndRecord, half: &EndRecord) -> Option<BTreeMap<u32, u32>> {
    let mut ids = BTreeMap::new();
    for theirs in &half.streams {
        let mut same = ours.streams.iter().filter(|ours| one(ours, theirs));
        let (found, other) = (same.next()?, same.next());
        if other.is_some() || ids.insert(theirs.id, found.id).is_some() {
            return None;
        }
    }
    let mut taken: Vec<u32> = ids.values().copied().collect();
    taken.sort_unstable();
    taken.dedup();
    let differ = ids.iter().any(|(theirs, ours)| theirs != ours);
    (differ && taken.len() == ids.len()).then_some(ids)
}

/// Whether two ends' streams are one connection: by its ports, since addresses may be translated.
fn one(ours: &StreamRecord, theirs: &StreamRecord) -> bool {
    let port = |address: &str| address.rsplit(':').next().map(str::to_owned);
    ours.flow == theirs.flow
        && ours.sends != theirs.sends
        && port(&ours.local) == port(&theirs.remote)
        && port(&ours.remote) == port(&theirs.local)
}

#[cfg(test)]
mod tests {
    use linerate_model::plan::Plan;
    use linerate_model::record::{EndRecord, PeerResults, PeerStream};
    use linerate_testing::fixture::{self, Traffic};

    use super::number;

    /// Both ends of a run with three streams from the ports 40001 to 40003, the server's numbered in this order of ports.
    fn ends(accepted: [u16; 3]) -> (EndRecord, EndRecord, PeerResults) {
        let mut plan = Plan::new("server");
        plan.streams = 3;
        let record = fixture::run(&plan, &Traffic::default());
        let (mut ours, mut theirs) = (record.client.unwrap(), record.server.unwrap());
        for (stream, port) in ours.streams.iter_mut().zip(40_001..) {
            stream.local = format!("192.0.2.1:{port}").into();
            stream.remote = "192.0.2.2:5201".into();
        }
        let mut results = PeerResults {
            cpu_total_percent: 0.0,
            cpu_user_percent: 0.0,
            cpu_system_percent: 0.0,
            congestion: None,
            sender_has_retransmits: -1,
            streams: Vec::new(),
            output_text: None,
            output_json: None,
        };
        for (stream, port) in theirs.streams.iter_mut().zip(accepted) {
            stream.local = "192.0.2.2:5201".into();
            stream.remote = format!("192.0.2.1:{port}").into();
            stream.app_bytes = u64::from(port);
            results.streams.push(PeerStream {
                id: stream.id,
                bytes: u64::from(port),
                ..PeerStream::default()
            });
        }
        (ours, theirs, results)
    }

    /// The number of each stream, and the bytes it carried.
    type Numbered = Vec<(u32, u64)>;

    fn numbered(accepted: [u16; 3]) -> (Numbered, Numbered) {
        let (ours, mut theirs, mut results) = ends(accepted);
        number(&ours, &mut theirs, Some(&mut results));
        let of_half = theirs.streams.iter().map(|one| (one.id, one.app_bytes));
        let of_results = results.streams.iter().map(|one| (one.id, one.bytes));
        (of_half.collect(), of_results.collect())
    }

    #[test]
    fn streams_accepted_in_another_order_get_our_numbers() {
        let right = vec![(1, 40_001), (3, 40_002), (4, 40_003)];
        let both = (right.clone(), right);
        assert_eq!(numbered([40_001, 40_002, 40_003]), both);
        assert_eq!(numbered([40_001, 40_003, 40_002]), both);
        assert_eq!(numbered([40_003, 40_001, 40_002]), both);
    }

    #[test]
    fn where_ports_were_translated_the_numbers_stay() {
        let stays = vec![(1, 40_001), (3, 50_003), (4, 40_002)];
        assert_eq!(numbered([40_001, 50_003, 40_002]), (stays.clone(), stays));
        // Two of one port are two connections all the same.
        let twice = vec![(1, 40_002), (3, 40_002), (4, 40_003)];
        assert_eq!(numbered([40_002, 40_002, 40_003]), (twice.clone(), twice));
    }
}
