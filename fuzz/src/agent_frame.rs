//! Frames of an agent or of who asks it, cut by the first byte: each frame is written again and read back.

use linerate_wire::agent::{FrameReader, Header, MOST_BODY, encode};

/// Feeds one input.
pub fn run(data: &[u8]) {
    let Some((how, input)) = data.split_first() else {
        return;
    };
    let mut reader = FrameReader::default();
    for piece in input.chunks(usize::from(*how) + 1) {
        reader.push(piece);
        loop {
            match reader.frame() {
                Ok(None) => break,
                Ok(Some(frame)) => {
                    assert!(frame.body.len() <= MOST_BODY);
                    if let Header::Ask(ask) = &frame.header
                        && let Ok(files) = ask.files_in(&frame.body)
                    {
                        assert_eq!(files.concat(), frame.body);
                    }
                    // A header may be longer with the escapes of text that acts on a terminal.
                    if let Ok(bytes) = encode(&frame.header, &frame.body) {
                        let mut again = FrameReader::default();
                        again.push(&bytes);
                        assert_eq!(again.frame(), Ok(Some(frame)));
                        assert!(again.is_between_frames());
                    }
                }
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    return;
                }
            }
        }
    }
}
