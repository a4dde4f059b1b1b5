//! A message between two linerates: what is read can be written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_wire::extension::Message;

fuzz_target!(|data: &[u8]| {
    let Ok(message) = Message::from_json(data) else {
        return;
    };
    assert_eq!(
        Message::from_json(&message.to_json()).expect("ours are readable"),
        message
    );
});
