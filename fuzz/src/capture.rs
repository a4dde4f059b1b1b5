//! A packet capture in pieces, as `explain` reads it; the first byte says how it is cut. Where it is cut must
//! not matter.

use linerate_readers::capture::{Reader, is_capture};

/// Feeds one input.
pub fn run(data: &[u8]) {
    let Some((how, input)) = data.split_first() else {
        return;
    };
    if !is_capture(input) {
        return;
    }
    let read = |piece: usize| {
        let mut reader = Reader::new("fuzz");
        for piece in input.chunks(piece) {
            reader.push(piece);
        }
        reader.finish()
    };
    let whole = read(input.len());
    match (read(usize::from(*how) + 1), whole) {
        (Ok(pieces), Ok(whole)) => {
            assert_eq!(pieces, whole);
            crate::transcript::show(whole);
        }
        (Err(pieces), Err(whole)) => assert_eq!(pieces.to_string(), whole.to_string()),
        (pieces, whole) => panic!("in pieces {pieces:?}, as a whole {whole:?}"),
    }
}
