//! What a stream of a transfer carries, cut by the first byte, into a target that only checks it: it is taken, or the target
//! says why not.

use linerate_storage::transfer::Target;
use linerate_storage::transfer::frame::{HEADER, Header, check_name};

/// Feeds one input.
pub fn run(data: &[u8]) {
    let Some((how, input)) = data.split_first() else {
        return;
    };
    if let Some(bytes) = input.first_chunk::<HEADER>()
        && let Ok(header) = Header::decode(bytes)
    {
        assert_eq!(Header::decode(&header.encode()), Ok(header));
        assert!(header.offset + u64::from(header.length) <= header.size);
    }
    if let Ok(()) = check_name(input) {
        assert!(
            !input.starts_with(b"/")
                && !input.split(|byte| *byte == b'/').any(|part| part == b"..")
        );
    }
    // Without a thread that takes pieces out, its ring fills and then gives no more room.
    let target = Target::in_memory().expect("descriptors");
    let mut inlet = target.inlet();
    let mut rest = input;
    while !rest.is_empty() {
        let Ok(Some(room)) = inlet.room() else { break };
        let length = room.len().min(rest.len()).min(usize::from(*how) + 1);
        room[..length].copy_from_slice(&rest[..length]);
        rest = &rest[length..];
        if let Err(error) = inlet.received(length) {
            assert!(!error.to_string().is_empty());
            assert!(target.failed().is_some());
            return;
        }
    }
    let _ = inlet.ended();
}
