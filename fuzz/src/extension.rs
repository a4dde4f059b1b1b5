//! A message between two linerates: what is read can be written and read again.

use linerate_wire::extension::Message;

/// Feeds one input.
pub fn run(data: &[u8]) {
    let Ok(message) = Message::from_json(data) else {
        return;
    };
    assert_eq!(
        Message::from_json(&message.to_json()).expect("ours are readable"),
        message
    );
}
