//! The client's machine.

use linerate_model::units::Nanos;

use super::reader::{Frame, Item};
use super::session::{self, Control, Side};
use crate::cookie::Cookie;
use crate::error::ProtocolError;
use crate::extension::{
    END_ENVELOPE_BYTES, Finishing, Hello, MAX_END_BYTES, MAX_MESSAGE_BYTES, Message, Received,
    Stored,
};
use crate::frame;
use crate::parameters::Parameters;
use crate::results::{MAX_RESULTS_BYTES, Results};
use crate::state::State;

/// What a server said.
#[derive(Debug, Clone, PartialEq)]
pub enum ClientEvent {
    /// The server is a linerate: ping it, then say `ready`.
    Hello(Hello),
    /// The answer to a ping.
    Pong {
        /// The number of the ping.
        n: u64,
        /// When the ping came, on the server's monotonic clock.
        received: Nanos,
        /// When the answer was written, on the same clock.
        sent: Nanos,
    },
    /// Open the data streams.
    CreateStreams,
    /// Start the timers.
    TestStart,
    /// Move data. It proves that the server has accepted every stream.
    TestRunning,
    /// What the server had sent when it stopped (two linerates only).
    Finishing(Finishing),
    /// What has arrived at the server so far (two linerates only, where it was asked for).
    Received(Received),
    /// How far the server's target is.
    Stored(Stored),
    /// Send the results.
    ExchangeResults,
    /// The server's results.
    PeerResults(Results),
    /// The server's half of the record, as JSON that was not looked into.
    EndRecord(Vec<u8>),
    /// Everything was exchanged; say `done`.
    DisplayResults,
    /// The server was interrupted. The machine is closed.
    ServerTerminated,
    /// The server is busy, or does not want this client. The machine is closed.
    Denied,
    /// The server gave up, and says why. The machine is closed.
    ServerError {
        /// iperf3's code: 27 bitrate limit, 37 longest duration, 142 authentication, 160 expired.
        code: i32,
        /// The server's errno, 0 where there is none.
        errno: i32,
    },
}

/// Where the session is, named after what was done last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    CookieSent,
    ParametersSent,
    Greeted,
    Ready,
    CreatingStreams,
    Started,
    Running,
    Ended,
    Exchanging,
    Exchanged,
    Displaying,
    /// The server sent what cannot be; only `terminate` is left.
    Failed,
    Closed,
}

impl session::Phase for Phase {
    const FAILED: Self = Self::Failed;
    const CLOSED: Self = Self::Closed;

    fn expected(self) -> &'static str {
        match self {
            Self::CookieSent => "PARAM_EXCHANGE (9)",
            Self::ParametersSent => "CREATE_STREAMS (10) or a linerate hello",
            Self::Greeted => "a linerate pong",
            Self::Ready => "CREATE_STREAMS (10)",
            Self::CreatingStreams => "TEST_START (1)",
            Self::Started => "TEST_RUNNING (2)",
            Self::Running => "nothing before the end of the test but a linerate received",
            Self::Ended => "EXCHANGE_RESULTS (13) or a linerate finishing",
            Self::Exchanging => "the server's results",
            Self::Exchanged => "DISPLAY_RESULTS (14), a linerate pong or end",
            Self::Displaying | Self::Failed | Self::Closed => "nothing",
        }
    }

    fn doing(self) -> &'static str {
        match self {
            Self::CookieSent => "the server has not asked for the parameters",
            Self::ParametersSent => "the server looks at the parameters",
            Self::Greeted => "pings are exchanged",
            Self::Ready | Self::CreatingStreams => "the streams are created",
            Self::Started => "the test starts",
            Self::Running => "the test runs",
            Self::Ended => "the server ends the test",
            Self::Exchanging => "results are exchanged",
            Self::Exchanged => "the results are exchanged",
            Self::Displaying => "all is exchanged",
            Self::Failed => "the session has failed",
            Self::Closed => "the session is closed",
        }
    }
}

/// What only the client's machine remembers.
#[derive(Debug, Clone)]
pub struct ClientSide {
    parameters: Parameters,
    results_sent: bool,
    results_seen: bool,
    /// The longest record asked for and not yet received.
    end_bound: Option<usize>,
}

impl Side for ClientSide {
    type Event = ClientEvent;
    type Phase = Phase;
    const PEER: &'static str = "server";
    /// Such results may hold the server's output.
    const RESULTS_BYTES: usize = MAX_RESULTS_BYTES;
    const INTERRUPTS: &'static [u8] = &[
        State::ServerTerminate.byte(),
        State::ServerError.byte(),
        State::AccessDenied.byte(),
    ];

    fn handle(control: &mut ClientControl, item: Item) -> Result<(), ProtocolError> {
        match item {
            Item::State(state) => control.handle_state(state),
            Item::Frame(Frame::Extension, payload) => control.handle_message(&payload),
            // A server sends no parameters, and none are expected.
            Item::Frame(Frame::Results | Frame::Parameters, payload) => {
                control.handle_results(&payload)
            }
            Item::ErrorCodes { code, errno } => {
                control.advance(Phase::Closed, ClientEvent::ServerError { code, errno })
            }
        }
    }
}

/// The client's end of a control connection.
pub type ClientControl = Control<ClientSide>;

impl ClientControl {
    /// A session with `cookie`, which is the first thing to transmit, and `parameters`, which are
    /// transmitted when the server asks for them. With [`Parameters::linerate`] set, the server
    /// may answer with our extension.
    pub fn new(cookie: Cookie, parameters: Parameters) -> Self {
        let side = ClientSide {
            parameters,
            results_sent: false,
            results_seen: false,
            end_bound: None,
        };
        let mut control = Self::begun(side, Phase::CookieSent);
        control.output.push_back(cookie.as_bytes().to_vec());
        control
    }

    fn handle_state(&mut self, state: State) -> Result<(), ProtocolError> {
        match (self.phase, state) {
            (_, State::ServerTerminate) => {
                self.advance(Phase::Closed, ClientEvent::ServerTerminated)
            }
            (_, State::AccessDenied) => self.advance(Phase::Closed, ClientEvent::Denied),
            (_, State::ServerError) => {
                self.reader.expect_error_codes();
                Ok(())
            }
            (Phase::CookieSent, State::ParamExchange) => self.transmit_parameters(),
            (Phase::ParametersSent | Phase::Ready, State::CreateStreams) => {
                self.advance(Phase::CreatingStreams, ClientEvent::CreateStreams)
            }
            (Phase::CreatingStreams, State::TestStart) => {
                self.advance(Phase::Started, ClientEvent::TestStart)
            }
            (Phase::Started, State::TestRunning) => {
                self.advance(Phase::Running, ClientEvent::TestRunning)
            }
            (Phase::Ended, State::ExchangeResults) => {
                self.expect_results();
                self.advance(Phase::Exchanging, ClientEvent::ExchangeResults)
            }
            (Phase::Exchanged, State::DisplayResults) => {
                self.advance(Phase::Displaying, ClientEvent::DisplayResults)
            }
            (_, State::Linerate) if self.may_receive_message() => {
                let bound = self.side.end_bound.map_or(MAX_MESSAGE_BYTES, |end| {
                    end.saturating_add(END_ENVELOPE_BYTES)
                        .max(MAX_MESSAGE_BYTES)
                });
                self.reader.expect_frame(Frame::Extension, bound);
                Ok(())
            }
            _ => Err(self.out_of_order(state.to_string())),
        }
    }

    /// Whether a message of ours can come at all in this phase; which one is judged when it is
    /// whole.
    const fn may_receive_message(&self) -> bool {
        match self.phase {
            Phase::ParametersSent => self.side.parameters.linerate.is_some(),
            Phase::Greeted | Phase::Ready | Phase::Running | Phase::Ended | Phase::Exchanged => {
                self.is_linerate
            }
            _ => false,
        }
    }

    fn handle_message(&mut self, payload: &[u8]) -> Result<(), ProtocolError> {
        let message = Message::from_json(payload)?;
        match (self.phase, message) {
            (Phase::ParametersSent, Message::Hello(hello)) => {
                self.is_linerate = true;
                self.advance(Phase::Greeted, ClientEvent::Hello(hello))
            }
            (
                Phase::Greeted | Phase::Ready | Phase::Exchanged,
                Message::Pong { n, received, sent },
            ) if self.pings > 0 => {
                self.pings -= 1;
                self.push(ClientEvent::Pong { n, received, sent })
            }
            (Phase::Running | Phase::Ended, Message::Finishing(finishing))
                if !self.finishing_seen =>
            {
                self.finishing_seen = true;
                self.push(ClientEvent::Finishing(finishing))
            }
            (Phase::Running | Phase::Ended, Message::Received(received))
                if self.wants_received() =>
            {
                self.push(ClientEvent::Received(received))
            }
            (Phase::Running | Phase::Ended, Message::Stored(stored)) if self.has_target() => {
                self.push(ClientEvent::Stored(stored))
            }
            (Phase::Exchanged, Message::End(record)) if self.side.end_bound.is_some() => {
                self.accept_record(record)
            }
            (_, other) => Err(self.out_of_order(format!("a linerate {}", other.name()))),
        }
    }

    fn wants_received(&self) -> bool {
        let offered = self.side.parameters.linerate.as_ref();
        offered.is_some_and(|extension| extension.received_ns.is_some())
    }

    fn has_target(&self) -> bool {
        let offered = self.side.parameters.linerate.as_ref();
        offered.is_some_and(|extension| extension.target.is_some())
    }

    fn accept_record(&mut self, record: Vec<u8>) -> Result<(), ProtocolError> {
        let bound = self.side.end_bound.take().unwrap_or(0);
        if record.len() > bound {
            return Err(ProtocolError::too_long("the record", record.len(), bound));
        }
        self.push(ClientEvent::EndRecord(record))
    }

    fn handle_results(&mut self, payload: &[u8]) -> Result<(), ProtocolError> {
        let results = Results::from_json(payload)?;
        self.side.results_seen = true;
        self.finish_exchange();
        self.push(ClientEvent::PeerResults(results))
    }

    fn transmit_parameters(&mut self) -> Result<(), ProtocolError> {
        let json = self.side.parameters.checked_json()?;
        self.output.push_back(frame::encode(&json));
        self.phase = Phase::ParametersSent;
        Ok(())
    }

    /// Asks for a pong, before `ready` or after the results.
    pub fn send_ping(&mut self, n: u64) -> Result<(), ProtocolError> {
        self.require(
            "ping",
            matches!(self.phase, Phase::Greeted | Phase::Exchanged) && self.is_linerate,
        )?;
        self.pings += 1;
        self.transmit(&Message::Ping { n });
        Ok(())
    }

    /// Ends the pings: the server may create the streams.
    pub fn ready(&mut self) -> Result<(), ProtocolError> {
        self.require("ready", self.phase == Phase::Greeted)?;
        self.phase = Phase::Ready;
        self.transmit(&Message::Ready {});
        Ok(())
    }

    /// Says what was sent, once, before [`Self::end_test`].
    pub fn send_finishing(&mut self, finishing: Finishing) -> Result<(), ProtocolError> {
        let may = self.phase == Phase::Running && self.is_linerate && !self.finishing_sent;
        self.require("finishing", may)?;
        self.finishing_sent = true;
        self.transmit(&Message::Finishing(finishing));
        Ok(())
    }

    /// Ends the test: `TEST_END`.
    pub fn end_test(&mut self) -> Result<(), ProtocolError> {
        let may = self.phase == Phase::Running;
        self.step("the end of the test", may, Phase::Ended, State::TestEnd)
    }

    /// Sends our results, once, after [`ClientEvent::ExchangeResults`].
    pub fn send_results(&mut self, results: &Results) -> Result<(), ProtocolError> {
        self.require(
            "results",
            self.phase == Phase::Exchanging && !self.side.results_sent,
        )?;
        self.side.results_sent = true;
        self.output.push_back(frame::encode(&results.to_json()));
        self.finish_exchange();
        Ok(())
    }

    /// Asks for the server's half of the record, of at most `max_bytes` (64 MiB count), after the
    /// results.
    pub fn request_end(&mut self, max_bytes: u64) -> Result<(), ProtocolError> {
        let may =
            self.phase == Phase::Exchanged && self.is_linerate && self.side.end_bound.is_none();
        self.require("end_request", may)?;
        let bound = usize::try_from(max_bytes)
            .unwrap_or(MAX_END_BYTES)
            .min(MAX_END_BYTES);
        self.side.end_bound = Some(bound);
        let max_bytes = u64::try_from(bound).unwrap_or(max_bytes);
        self.transmit(&Message::EndRequest { max_bytes });
        Ok(())
    }

    /// Ends the session: `IPERF_DONE`. The machine is closed.
    pub fn done(&mut self) -> Result<(), ProtocolError> {
        let may = self.phase == Phase::Displaying;
        self.step(
            "the end of the session",
            may,
            Phase::Closed,
            State::IperfDone,
        )
    }

    /// Interrupts the session: `CLIENT_TERMINATE`, unless it is over. The machine is closed.
    pub fn terminate(&mut self) {
        self.close_with(vec![State::ClientTerminate.byte()]);
    }

    fn finish_exchange(&mut self) {
        if self.side.results_sent && self.side.results_seen {
            self.phase = Phase::Exchanged;
        }
    }
}
