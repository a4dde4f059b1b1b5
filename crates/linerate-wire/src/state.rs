//! The single bytes that move a session from one state to the next.

use std::fmt;

/// A state byte of the control connection. iperf3 reads them as signed chars; the values here are
/// the bytes on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum State {
    /// S→C: get ready; the timers start.
    TestStart = 1,
    /// S→C: move data.
    TestRunning = 2,
    /// C→S: the test is over.
    TestEnd = 4,
    /// S→C: send the parameters.
    ParamExchange = 9,
    /// S→C: open the data streams.
    CreateStreams = 10,
    /// S→C: the server was interrupted.
    ServerTerminate = 11,
    /// C→S: the client was interrupted.
    ClientTerminate = 12,
    /// S→C: send the results.
    ExchangeResults = 13,
    /// S→C: both results are known.
    DisplayResults = 14,
    /// C→S: the session is over.
    IperfDone = 16,
    /// Both ways, between two linerates only: a frame with a message of ours follows.
    Linerate = 76,
    /// S→C: an error; two big-endian i32 follow, iperf3's code and errno.
    ServerError = 0xFE,
    /// S→C: busy, or not for this client.
    AccessDenied = 0xFF,
}

impl State {
    /// Every state with its name in iperf3's source.
    const ALL: [(Self, &'static str); 13] = [
        (Self::TestStart, "TEST_START"),
        (Self::TestRunning, "TEST_RUNNING"),
        (Self::TestEnd, "TEST_END"),
        (Self::ParamExchange, "PARAM_EXCHANGE"),
        (Self::CreateStreams, "CREATE_STREAMS"),
        (Self::ServerTerminate, "SERVER_TERMINATE"),
        (Self::ClientTerminate, "CLIENT_TERMINATE"),
        (Self::ExchangeResults, "EXCHANGE_RESULTS"),
        (Self::DisplayResults, "DISPLAY_RESULTS"),
        (Self::IperfDone, "IPERF_DONE"),
        (Self::Linerate, "a linerate message"),
        (Self::ServerError, "SERVER_ERROR"),
        (Self::AccessDenied, "ACCESS_DENIED"),
    ];

    /// The byte on the wire.
    pub const fn byte(self) -> u8 {
        self as u8
    }

    /// The state of a byte; `None` for one that is no state.
    pub fn of(byte: u8) -> Option<Self> {
        let mut states = Self::ALL.into_iter().map(|(state, _)| state);
        states.find(|state| state.byte() == byte)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Self::ALL.into_iter().find(|(state, _)| state == self);
        let name = named.map_or("", |(_, name)| name);
        write!(f, "{name} ({})", self.byte())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_states_are_one_to_one() {
        let known: Vec<u8> = (0..=255)
            .filter(|byte| State::of(*byte).is_some())
            .collect();
        assert_eq!(known, [1, 2, 4, 9, 10, 11, 12, 13, 14, 16, 76, 0xFE, 0xFF]);
        for byte in known {
            assert_eq!(State::of(byte).unwrap().byte(), byte);
        }
    }
}
