//! What a path let pass of one stream of datagrams at a constant rate.

use linerate_model::column::Column;
use linerate_model::counter_test::Passage;
use linerate_model::record::StreamRecord;

use crate::statistics;

/// A sample with less than this share of the mean number of datagrams had a pause of the sender, in which a queue empties.
const EVEN: f64 = 0.8;
/// Where fewer samples were even, nothing is known of the wait.
const MOSTLY: f64 = 0.5;
/// Fewer samples of the second half tell nothing.
const LEAST: usize = 10;

/// As the receiver's samples show it. `None` where they are too few, or an older peer does not tell how long datagrams were
/// on their way.
///
/// The rate is that of the second half of the time, in which what a bucket or a queue lets pass at first has passed.
pub(crate) fn of(stream: &StreamRecord) -> Option<Passage> {
    let samples = &stream.samples;
    let column = |column| samples.column(column);
    let (at, bytes) = (samples.at_ns(), column(Column::app_bytes)?);
    let (datagrams, highest) = (column(Column::datagrams)?, column(Column::highest)?);
    let (unique, dropped) = (column(Column::unique)?, column(Column::socket_drops)?);
    let waited = column(Column::transit_over_least_ns)?;
    let from = highest.iter().position(|highest| *highest > 0)?;
    let last = (from + 1..highest.len())
        .rev()
        .find(|row| highest[*row] > highest[row - 1])?;
    let grown = |values: &[u64], from: usize| values[last].saturating_sub(values[from]) as f64;
    let size = bytes[last] as f64 / (datagrams[last] as f64).max(1.0);
    let bytes_per_ns = |from: usize, counted: &[u64]| size * grown(counted, from) / grown(at, from);
    let offered = bytes_per_ns(from, highest);
    // Those of the first row were sent before it.
    let begin = at[from] as f64 - highest[from] as f64 * size / offered;
    let half = f64::midpoint(begin, at[last] as f64);
    let middle = (from..last).find(|row| at[*row] as f64 >= half)?;
    let delivered = bytes_per_ns(middle, unique);
    let beyond = (from..=middle)
        .map(|row| unique[row] as f64 * size - delivered * (at[row] as f64 - begin))
        .fold(0.0, f64::max);
    let sent = grown(highest, middle);
    let lost = sent - grown(unique, middle) - grown(dropped, middle);
    // Samples follow one another evenly; one that came late holds more.
    let each = sent / (last - middle) as f64;
    let even = |row: &usize| highest[*row].saturating_sub(highest[row - 1]) as f64 >= EVEN * each;
    let waits: Vec<f64> = (middle + 1..=last)
        .filter(even)
        .map(|row| waited[row] as f64 / 1e3)
        .collect();
    let enough = waits.len() >= LEAST && waits.len() as f64 >= MOSTLY * (last - middle) as f64;
    (enough && offered.is_finite() && delivered.is_finite()).then_some(())?;
    Some(Passage {
        offered_bps: 8e9 * offered,
        delivered_bps: 8e9 * delivered,
        lost_share: (lost / sent).clamp(0.0, 1.0),
        beyond_bytes: beyond,
        waited_us: statistics::median(&waits)?,
        datagram_bytes: size,
    })
}

#[cfg(test)]
mod tests {
    use linerate_model::record::Flow;
    use linerate_model::series::Series;

    use super::*;

    const SIZE: u64 = 1250;

    /// Two seconds of datagrams, sampled every 10 ms; `passes` says how many of so many arrived.
    fn received(
        per_row: u64,
        passes: impl Fn(u64) -> u64,
        waited: impl Fn(u64) -> u64,
    ) -> StreamRecord {
        let rows: Vec<u64> = (0..=200).collect();
        let column =
            |of: &dyn Fn(u64) -> u64| rows.iter().map(|row| of(*row)).collect::<Vec<u64>>();
        let mut samples = Series::new(column(&|row| row * 10_000_000));
        let unique = |row: u64| passes(row * per_row);
        for (name, values) in [
            (Column::app_bytes, column(&|row| unique(row) * SIZE)),
            (Column::datagrams, column(&unique)),
            (Column::unique, column(&unique)),
            (Column::highest, column(&|row| row * per_row)),
            (Column::socket_drops, column(&|_| 0)),
            (Column::transit_over_least_ns, column(&waited)),
        ] {
            samples.insert(name, values).unwrap();
        }
        let fields = serde_json::json!({
            "id": 1, "flow": Flow::ClientToServer, "sends": false, "local": "192.0.2.2:5201",
            "remote": "192.0.2.1:40000", "app_bytes": unique(200) * SIZE, "samples": samples,
        });
        serde_json::from_value(fields).unwrap()
    }

    #[test]
    fn a_bucket_passes_its_credit_and_then_its_tokens_and_nothing_waits() {
        // 20 Mbit/s sent; 400 datagrams of credit, then 10 Mbit/s.
        let passed = of(&received(20, |sent| sent.min(400 + sent / 2), |_| 3000)).unwrap();
        assert!((passed.offered_bps - 20e6).abs() < 1e5, "{passed:?}");
        assert!((passed.delivered_bps - 10e6).abs() < 1e5, "{passed:?}");
        assert!((passed.lost_share - 0.5).abs() < 0.01, "{passed:?}");
        assert!(
            (passed.beyond_bytes - 500_000.0).abs() < 20_000.0,
            "{passed:?}"
        );
        assert!((passed.waited_us - 3.0).abs() < 0.1, "{passed:?}");
    }

    #[test]
    fn what_waited_in_a_queue_is_told_and_what_all_arrived_has_lost_nothing() {
        let queued = of(&received(
            20,
            |sent| sent.min(400 + sent / 2),
            |row| 400_000_000.min(row * 10_000_000),
        ))
        .unwrap();
        assert!((queued.waited_us - 400_000.0).abs() < 1.0, "{queued:?}");
        let all = of(&received(20, |sent| sent, |_| 0)).unwrap();
        assert!(
            all.lost_share < 1e-9 && all.beyond_bytes < 20_000.0,
            "{all:?}"
        );
        assert!((all.delivered_bps - 20e6).abs() < 1e5, "{all:?}");
    }

    #[test]
    fn nothing_received_is_no_passage() {
        assert_eq!(of(&received(0, |_| 0, |_| 0)), None);
    }
}
