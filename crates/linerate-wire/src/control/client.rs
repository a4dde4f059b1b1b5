//! The client's machine.

use std::collections::VecDeque;

use linerate_model::plain_text::PlainText;
use linerate_model::units::Nanos;

use super::reader::{Item, Reader};
use super::{Events, Limits};
use crate::cookie::Cookie;
use crate::error::{ProtocolError, excerpt};
use crate::extension::{
    END_ENVELOPE_BYTES, Finishing, Hello, MAX_END_BYTES, MAX_MESSAGE_BYTES, Message, Received,
};
use crate::frame::{self, Unread};
use crate::parameters::{MAX_PARAMETERS_BYTES, Parameters};
use crate::results::Results;
use crate::state::State;

/// What a server may send in the place of anything.
const INTERRUPTS: [u8; 3] = [
    State::ServerTerminate.byte(),
    State::ServerError.byte(),
    State::AccessDenied.byte(),
];

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
enum Phase {
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

impl Phase {
    /// What the server may send next.
    const fn expected(self) -> &'static str {
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

    /// What is going on, for errors of the calling program.
    const fn doing(self) -> &'static str {
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

/// The frames a server sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FrameKind {
    Results,
    Extension,
}

/// The client's end of a control connection.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each notes one message that comes once"
)]
pub struct ClientControl {
    parameters: Parameters,
    limits: Limits,
    phase: Phase,
    reader: Reader,
    frame_kind: FrameKind,
    output: VecDeque<Vec<u8>>,
    events: Events<ClientEvent>,
    warnings: Vec<PlainText>,
    is_unanswered: bool,
    is_linerate: bool,
    pings_out: usize,
    finishing_seen: bool,
    finishing_sent: bool,
    results_sent: bool,
    results_seen: bool,
    /// The longest record asked for and not yet received.
    end_bound: Option<usize>,
}

impl ClientControl {
    /// A session with `cookie`, which is the first thing to transmit, and `parameters`, which are
    /// transmitted when the server asks for them. With [`Parameters::linerate`] set, the server
    /// may answer with our extension.
    pub fn new(cookie: Cookie, parameters: Parameters, limits: Limits) -> Self {
        Self {
            parameters,
            limits,
            phase: Phase::CookieSent,
            reader: Reader::new("server", &INTERRUPTS),
            frame_kind: FrameKind::Results,
            output: VecDeque::from([cookie.as_bytes().to_vec()]),
            events: Events::new(limits.events),
            warnings: Vec::new(),
            is_unanswered: true,
            is_linerate: false,
            pings_out: 0,
            finishing_seen: false,
            finishing_sent: false,
            results_sent: false,
            results_seen: false,
            end_bound: None,
        }
    }

    /// Takes bytes from the server, cut anywhere. After an error the machine is closed, but for a
    /// last word to the server with [`Self::terminate`].
    pub fn handle_input(&mut self, mut input: &[u8]) -> Result<(), ProtocolError> {
        while !input.is_empty() && !self.is_closed() {
            self.handle_to_event(&mut input)?;
        }
        Ok(())
    }

    /// The same up to the first event: what is behind it stays in `input`, so that the event is answered before that is
    /// refused.
    pub fn handle_to_event(&mut self, input: &mut &[u8]) -> Result<(), ProtocolError> {
        self.is_unanswered &= input.is_empty();
        while !input.is_empty() && !self.is_closed() {
            if let Err(error) = self.handle_next(input) {
                self.phase = Phase::Failed;
                return Err(error);
            }
            if !self.events.is_empty() {
                return Ok(());
            }
        }
        *input = &[];
        Ok(())
    }

    /// The next bytes to write, in order; `None` where there are none.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.output.pop_front()
    }

    /// The next event; `None` where there is none.
    pub fn poll_event(&mut self) -> Option<ClientEvent> {
        self.events.pop()
    }

    /// What had to be ignored in the server's results, for people; each is reported once.
    pub fn take_warnings(&mut self) -> Vec<PlainText> {
        std::mem::take(&mut self.warnings)
    }

    /// Whether the server answered our offer, so that our extension is spoken.
    pub const fn is_linerate(&self) -> bool {
        self.is_linerate
    }

    /// Whether a part of a message has come: now a peer that stops should be timed out.
    pub fn is_mid_message(&self) -> bool {
        self.reader.is_mid_message()
    }

    /// Whether the server has said nothing yet.
    #[must_use]
    pub fn is_unanswered(&self) -> bool {
        self.is_unanswered
    }

    /// How much has come of the frame that is awaited, also when it has failed; absent where none is.
    pub fn unread(&self) -> Option<Unread> {
        self.reader.unread()
    }

    /// Whether the session is over, by an end or an error.
    pub fn is_closed(&self) -> bool {
        matches!(self.phase, Phase::Failed | Phase::Closed)
    }

    fn handle_next(&mut self, input: &mut &[u8]) -> Result<(), ProtocolError> {
        let before = *input;
        match self.reader.next(input)? {
            None => Ok(()),
            Some(Item::State(byte)) => match State::try_from(byte) {
                Ok(state) => self.handle_state(state),
                Err(_) => Err(ProtocolError::NotIperf3 {
                    text: excerpt(before).into(),
                    role: self.reader.role(),
                }),
            },
            Some(Item::Frame(payload)) => match self.frame_kind {
                FrameKind::Results => self.handle_results(&payload),
                FrameKind::Extension => self.handle_message(&payload),
            },
            Some(Item::ErrorCodes { code, errno }) => {
                self.phase = Phase::Closed;
                self.events.push(ClientEvent::ServerError { code, errno })
            }
        }
    }

    fn handle_state(&mut self, state: State) -> Result<(), ProtocolError> {
        match (self.phase, state) {
            (_, State::ServerTerminate) => self.close_with(ClientEvent::ServerTerminated),
            (_, State::AccessDenied) => self.close_with(ClientEvent::Denied),
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
                self.frame_kind = FrameKind::Results;
                self.reader
                    .expect_frame("results", self.limits.results_bound());
                self.advance(Phase::Exchanging, ClientEvent::ExchangeResults)
            }
            (Phase::Exchanged, State::DisplayResults) => {
                self.advance(Phase::Displaying, ClientEvent::DisplayResults)
            }
            (_, State::Linerate) if self.may_receive_message() => {
                self.frame_kind = FrameKind::Extension;
                let bound = self.end_bound.map_or(MAX_MESSAGE_BYTES, |end| {
                    end.saturating_add(END_ENVELOPE_BYTES)
                        .max(MAX_MESSAGE_BYTES)
                });
                self.reader.expect_frame("linerate message", bound);
                Ok(())
            }
            _ => Err(self.out_of_order(state.to_string())),
        }
    }

    /// Whether a message of ours can come at all in this phase; which one is judged when it is
    /// whole.
    const fn may_receive_message(&self) -> bool {
        match self.phase {
            Phase::ParametersSent => self.parameters.linerate.is_some(),
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
            ) if self.pings_out > 0 => {
                self.pings_out -= 1;
                self.events.push(ClientEvent::Pong { n, received, sent })
            }
            (Phase::Running | Phase::Ended, Message::Finishing(finishing))
                if !self.finishing_seen =>
            {
                self.finishing_seen = true;
                self.events.push(ClientEvent::Finishing(finishing))
            }
            (Phase::Running | Phase::Ended, Message::Received(received))
                if self.wants_received() =>
            {
                self.events.push(ClientEvent::Received(received))
            }
            (Phase::Exchanged, Message::End(record)) if self.end_bound.is_some() => {
                self.accept_record(record)
            }
            (_, other) => Err(self.out_of_order(format!("a linerate {}", other.name()))),
        }
    }

    fn wants_received(&self) -> bool {
        let offered = self.parameters.linerate.as_ref();
        offered.is_some_and(|extension| extension.received_ns.is_some())
    }

    fn accept_record(&mut self, record: Vec<u8>) -> Result<(), ProtocolError> {
        let bound = self.end_bound.take().unwrap_or(0);
        if record.len() > bound {
            return Err(ProtocolError::FrameTooLong {
                message: "the record",
                length: u64::try_from(record.len()).unwrap_or(u64::MAX),
                bound: u64::try_from(bound).unwrap_or(u64::MAX),
            });
        }
        self.events.push(ClientEvent::EndRecord(record))
    }

    fn handle_results(&mut self, payload: &[u8]) -> Result<(), ProtocolError> {
        let (results, warnings) = Results::from_json(payload)?;
        self.warnings.extend(warnings);
        self.results_seen = true;
        self.finish_exchange();
        self.events.push(ClientEvent::PeerResults(results))
    }

    fn transmit_parameters(&mut self) -> Result<(), ProtocolError> {
        let json = self.parameters.to_json();
        if json.len() > MAX_PARAMETERS_BYTES {
            return Err(ProtocolError::OursTooLong {
                message: "parameters",
                length: u64::try_from(json.len()).unwrap_or(u64::MAX),
                bound: u64::try_from(MAX_PARAMETERS_BYTES).unwrap_or(u64::MAX),
                remedy: "shorten title or extra_data",
            });
        }
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
        self.pings_out += 1;
        self.transmit(&Message::Ping { n });
        Ok(())
    }

    /// Ends the pings: the server may create the streams.
    pub fn ready(&mut self) -> Result<(), ProtocolError> {
        self.require("ready", self.phase == Phase::Greeted)?;
        self.phase = Phase::Ready;
        self.transmit(&Message::Ready);
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
        self.require("the end of the test", self.phase == Phase::Running)?;
        self.phase = Phase::Ended;
        self.transmit_state(State::TestEnd);
        Ok(())
    }

    /// Sends our results, once, after [`ClientEvent::ExchangeResults`].
    pub fn send_results(&mut self, results: &Results) -> Result<(), ProtocolError> {
        self.require(
            "results",
            self.phase == Phase::Exchanging && !self.results_sent,
        )?;
        self.results_sent = true;
        self.output.push_back(frame::encode(&results.to_json()));
        self.finish_exchange();
        Ok(())
    }

    /// Asks for the server's half of the record, of at most `max_bytes` (64 MiB count), after the
    /// results.
    pub fn request_end(&mut self, max_bytes: u64) -> Result<(), ProtocolError> {
        let may = self.phase == Phase::Exchanged && self.is_linerate && self.end_bound.is_none();
        self.require("end_request", may)?;
        let bound = usize::try_from(max_bytes)
            .unwrap_or(MAX_END_BYTES)
            .min(MAX_END_BYTES);
        self.end_bound = Some(bound);
        let max_bytes = u64::try_from(bound).unwrap_or(max_bytes);
        self.transmit(&Message::EndRequest { max_bytes });
        Ok(())
    }

    /// Ends the session: `IPERF_DONE`. The machine is closed.
    pub fn done(&mut self) -> Result<(), ProtocolError> {
        self.require("the end of the session", self.phase == Phase::Displaying)?;
        self.phase = Phase::Closed;
        self.transmit_state(State::IperfDone);
        Ok(())
    }

    /// Interrupts the session: `CLIENT_TERMINATE`, unless it is over. The machine is closed.
    pub fn terminate(&mut self) {
        if self.phase != Phase::Closed {
            self.phase = Phase::Closed;
            self.transmit_state(State::ClientTerminate);
        }
    }

    fn transmit(&mut self, message: &Message) {
        self.output.push_back(message.encode());
    }

    fn transmit_state(&mut self, state: State) {
        self.output.push_back(vec![state.byte()]);
    }

    fn finish_exchange(&mut self) {
        if self.results_sent && self.results_seen {
            self.phase = Phase::Exchanged;
        }
    }

    fn advance(&mut self, phase: Phase, event: ClientEvent) -> Result<(), ProtocolError> {
        self.phase = phase;
        self.events.push(event)
    }

    fn close_with(&mut self, event: ClientEvent) -> Result<(), ProtocolError> {
        self.advance(Phase::Closed, event)
    }

    const fn require(&self, verb: &'static str, allowed: bool) -> Result<(), ProtocolError> {
        if allowed {
            Ok(())
        } else {
            Err(ProtocolError::OutOfTurn {
                verb,
                phase: self.phase.doing(),
            })
        }
    }

    fn out_of_order(&self, received: impl Into<PlainText>) -> ProtocolError {
        ProtocolError::OutOfOrder {
            received: received.into(),
            expected: self.phase.expected(),
        }
    }
}
