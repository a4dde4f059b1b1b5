//! A client's parameters: what is read can be written and read again.

use linerate_wire::parameters::{MAX_PARAMETERS_BYTES, Parameters, Protocol};

/// Feeds one input.
pub fn run(data: &[u8]) {
    let Ok(parameters) = Parameters::from_json(data) else {
        return;
    };
    let _ = parameters.check();
    let written = parameters.to_json();
    if written.len() > MAX_PARAMETERS_BYTES {
        return;
    }
    let again = Parameters::from_json(&written).expect("ours are readable");
    // What is not written over TCP, or not where it is 0, comes back as the default.
    if parameters.protocol == Protocol::Udp && parameters.pacing_timer != 0 {
        assert_eq!(again, parameters);
    }
}
