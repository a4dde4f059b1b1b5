//! The server's machine.

use std::collections::VecDeque;

use linerate_model::plain_text::PlainText;
use linerate_model::units::Nanos;

use super::reader::{Item, Reader};
use super::{Events, Limits};
use crate::error::{ProtocolError, excerpt};
use crate::extension::{Finishing, Hello, MAX_END_BYTES, MAX_MESSAGE_BYTES, Message, Received};
use crate::frame::{self, Unread};
use crate::parameters::{MAX_PARAMETERS_BYTES, Parameters};
use crate::results::Results;
use crate::state::State;

/// What a client may send in the place of anything.
const INTERRUPTS: [u8; 1] = [State::ClientTerminate.byte()];

/// What a client said.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "a handful of events a test, never stored in bulk"
)]
pub enum ServerEvent {
    /// What the client asks for; [`Parameters::check`] was not called yet. Where
    /// [`Parameters::linerate`] is set, `send_hello` may answer it.
    Parameters {
        /// The parameters.
        parameters: Parameters,
        /// What had to be ignored in them, for people.
        warnings: Vec<PlainText>,
    },
    /// Answer with a pong.
    Ping {
        /// The client's number for it.
        n: u64,
    },
    /// The client has pinged enough: create the streams.
    Ready,
    /// What the client had sent when it stopped (two linerates only).
    Finishing(Finishing),
    /// The test is over.
    TestEnd,
    /// The client's results.
    PeerResults(Results),
    /// The client wants our half of the record.
    EndRequested {
        /// The longest record it takes, in bytes, at most 64 MiB.
        max_bytes: u64,
    },
    /// The session is over, perhaps before the test was. The machine is closed.
    Done,
    /// The client was interrupted. Only a last word to it is left.
    ClientTerminated,
}

/// Where the session is, named after what was done last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    New,
    Asked,
    ParametersKnown,
    Greeted,
    ClientReady,
    CreatingStreams,
    Running,
    Ended,
    Exchanging,
    ResultsKnown,
    Exchanged,
    Displaying,
    /// The client was interrupted or sent what cannot be; only a last word to it is left.
    Failed,
    Closed,
}

impl Phase {
    /// What the client may send next.
    const fn expected(self) -> &'static str {
        match self {
            Self::New => "nothing before PARAM_EXCHANGE (9)",
            Self::Asked => "the parameters",
            Self::Greeted => "a linerate ping or ready",
            Self::ParametersKnown | Self::ClientReady | Self::CreatingStreams => {
                "nothing before the test runs"
            }
            Self::Running => "TEST_END (4) or a linerate finishing",
            Self::Exchanging => "the client's results",
            Self::Exchanged => "a linerate ping or end_request",
            Self::Displaying => "IPERF_DONE (16)",
            Self::Ended | Self::ResultsKnown | Self::Failed | Self::Closed => "nothing",
        }
    }

    /// What is going on, for errors of the calling program.
    const fn doing(self) -> &'static str {
        match self {
            Self::New => "nothing was asked",
            Self::Asked => "the parameters are awaited",
            Self::ParametersKnown => "the parameters are known and nothing is answered",
            Self::Greeted => "the client pings",
            Self::ClientReady => "the client is ready",
            Self::CreatingStreams => "the streams are created",
            Self::Running => "the test runs",
            Self::Ended => "the test has ended",
            Self::Exchanging => "the client's results are awaited",
            Self::ResultsKnown => "the client waits for our results",
            Self::Exchanged => "the results are exchanged",
            Self::Displaying => "the session ends",
            Self::Failed => "the session has failed",
            Self::Closed => "the session is closed",
        }
    }
}

/// The frames a client sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FrameKind {
    Parameters,
    Results,
    Extension,
}

/// What became of the client's wish for our half of the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndRecord {
    NotRequested,
    Requested { max_bytes: u64 },
    Sent,
}

/// The server's end of a control connection. The listener has read the cookie.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each notes one message that comes once"
)]
pub struct ServerControl {
    limits: Limits,
    phase: Phase,
    reader: Reader,
    frame_kind: FrameKind,
    output: VecDeque<Vec<u8>>,
    events: Events<ServerEvent>,
    warnings: Vec<PlainText>,
    /// The client offered our extension.
    is_offered: bool,
    /// We took the offer.
    is_linerate: bool,
    pings_waiting: usize,
    finishing_seen: bool,
    finishing_sent: bool,
    end_record: EndRecord,
}

impl ServerControl {
    /// A session whose cookie was read. Nothing is transmitted before
    /// [`Self::ask_parameters`] or [`Self::deny`].
    pub const fn new(limits: Limits) -> Self {
        Self {
            limits,
            phase: Phase::New,
            reader: Reader::new("client", &INTERRUPTS),
            frame_kind: FrameKind::Parameters,
            output: VecDeque::new(),
            events: Events::new(limits.events),
            warnings: Vec::new(),
            is_offered: false,
            is_linerate: false,
            pings_waiting: 0,
            finishing_seen: false,
            finishing_sent: false,
            end_record: EndRecord::NotRequested,
        }
    }

    /// Takes bytes from the client, cut anywhere. After an error the machine is closed, but for a
    /// last word to the client with [`Self::error`], [`Self::deny`] or [`Self::terminate`].
    pub fn handle_input(&mut self, mut input: &[u8]) -> Result<(), ProtocolError> {
        while !input.is_empty() && !self.is_closed() {
            self.handle_to_event(&mut input)?;
        }
        Ok(())
    }

    /// The same up to the first event: what is behind it stays in `input`, so that the event is answered before that is
    /// refused.
    pub fn handle_to_event(&mut self, input: &mut &[u8]) -> Result<(), ProtocolError> {
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
    pub fn poll_event(&mut self) -> Option<ServerEvent> {
        self.events.pop()
    }

    /// What had to be ignored in the client's results, for people; each is reported once.
    pub fn take_warnings(&mut self) -> Vec<PlainText> {
        std::mem::take(&mut self.warnings)
    }

    /// Whether our extension is spoken: the client offered it and `send_hello` took the offer.
    pub const fn is_linerate(&self) -> bool {
        self.is_linerate
    }

    /// Whether a part of a message has come: now a peer that stops should be timed out.
    pub fn is_mid_message(&self) -> bool {
        self.reader.is_mid_message()
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
            // The reader of a server is never told to expect error codes.
            None | Some(Item::ErrorCodes { .. }) => Ok(()),
            Some(Item::State(byte)) => match State::try_from(byte) {
                Ok(state) => self.handle_state(state),
                Err(_) => Err(ProtocolError::NotIperf3 {
                    text: excerpt(before).into(),
                    role: self.reader.role(),
                }),
            },
            Some(Item::Frame(payload)) => match self.frame_kind {
                FrameKind::Parameters => self.handle_parameters(&payload),
                FrameKind::Results => self.handle_results(&payload),
                FrameKind::Extension => self.handle_message(&payload),
            },
        }
    }

    fn handle_state(&mut self, state: State) -> Result<(), ProtocolError> {
        match (self.phase, state) {
            (_, State::ClientTerminate) => {
                self.advance(Phase::Failed, ServerEvent::ClientTerminated)
            }
            // iperf3's server passes over it.
            (Phase::CreatingStreams | Phase::Running | Phase::Displaying, State::TestStart) => {
                Ok(())
            }
            (Phase::Running, State::TestEnd) => self.advance(Phase::Ended, ServerEvent::TestEnd),
            (Phase::CreatingStreams | Phase::Running | Phase::Displaying, State::IperfDone) => {
                self.advance(Phase::Closed, ServerEvent::Done)
            }
            (Phase::Greeted | Phase::Running | Phase::Exchanged, State::Linerate)
                if self.is_linerate =>
            {
                self.frame_kind = FrameKind::Extension;
                self.reader
                    .expect_frame("linerate message", MAX_MESSAGE_BYTES);
                Ok(())
            }
            _ => Err(self.out_of_order(state.to_string())),
        }
    }

    fn handle_parameters(&mut self, payload: &[u8]) -> Result<(), ProtocolError> {
        let (parameters, warnings) = Parameters::from_json(payload)?;
        self.is_offered = parameters.linerate.is_some();
        self.advance(
            Phase::ParametersKnown,
            ServerEvent::Parameters {
                parameters,
                warnings,
            },
        )
    }

    fn handle_results(&mut self, payload: &[u8]) -> Result<(), ProtocolError> {
        let (results, warnings) = Results::from_client_json(payload)?;
        self.warnings.extend(warnings);
        self.advance(Phase::ResultsKnown, ServerEvent::PeerResults(results))
    }

    fn handle_message(&mut self, payload: &[u8]) -> Result<(), ProtocolError> {
        match (self.phase, Message::from_json(payload)?) {
            (Phase::Greeted | Phase::Exchanged, Message::Ping { n }) => {
                self.pings_waiting += 1;
                self.events.push(ServerEvent::Ping { n })
            }
            (Phase::Greeted, Message::Ready) => {
                self.advance(Phase::ClientReady, ServerEvent::Ready)
            }
            (Phase::Running, Message::Finishing(finishing)) if !self.finishing_seen => {
                self.finishing_seen = true;
                self.events.push(ServerEvent::Finishing(finishing))
            }
            (Phase::Exchanged, Message::EndRequest { max_bytes })
                if self.end_record == EndRecord::NotRequested =>
            {
                let longest = u64::try_from(MAX_END_BYTES).unwrap_or(u64::MAX);
                let max_bytes = max_bytes.min(longest);
                self.end_record = EndRecord::Requested { max_bytes };
                self.events.push(ServerEvent::EndRequested { max_bytes })
            }
            (_, other) => Err(self.out_of_order(format!("a linerate {}", other.name()))),
        }
    }

    /// Asks for the parameters: `PARAM_EXCHANGE`.
    pub fn ask_parameters(&mut self) -> Result<(), ProtocolError> {
        self.require("PARAM_EXCHANGE", self.phase == Phase::New)?;
        self.phase = Phase::Asked;
        self.frame_kind = FrameKind::Parameters;
        self.reader.expect_frame("parameters", MAX_PARAMETERS_BYTES);
        self.transmit_state(State::ParamExchange);
        Ok(())
    }

    /// Takes the client's offer of our extension. Without it the client is treated as stock.
    pub fn send_hello(&mut self, hello: Hello) -> Result<(), ProtocolError> {
        self.require(
            "hello",
            self.phase == Phase::ParametersKnown && self.is_offered,
        )?;
        self.phase = Phase::Greeted;
        self.is_linerate = true;
        self.transmit(&Message::Hello(hello));
        Ok(())
    }

    /// Answers a ping: when it came and when this is written, on our monotonic clock.
    pub fn send_pong(&mut self, n: u64, received: Nanos, sent: Nanos) -> Result<(), ProtocolError> {
        self.require("pong", self.pings_waiting > 0)?;
        self.pings_waiting -= 1;
        self.transmit(&Message::Pong { n, received, sent });
        Ok(())
    }

    /// Lets the client open its streams: `CREATE_STREAMS`. After a hello the client must have
    /// said `ready`.
    pub fn create_streams(&mut self) -> Result<(), ProtocolError> {
        let may = matches!(self.phase, Phase::ParametersKnown | Phase::ClientReady);
        self.require("CREATE_STREAMS", may)?;
        self.pings_waiting = 0;
        self.phase = Phase::CreatingStreams;
        self.transmit_state(State::CreateStreams);
        Ok(())
    }

    /// Starts the test: `TEST_START` and `TEST_RUNNING`, back to back as upstream.
    pub fn start_test(&mut self) -> Result<(), ProtocolError> {
        self.require("TEST_START", self.phase == Phase::CreatingStreams)?;
        self.phase = Phase::Running;
        self.output
            .push_back(vec![State::TestStart.byte(), State::TestRunning.byte()]);
        Ok(())
    }

    /// Says what was sent, once, after [`ServerEvent::TestEnd`] and before
    /// [`Self::exchange_results`].
    pub fn send_finishing(&mut self, finishing: Finishing) -> Result<(), ProtocolError> {
        let in_time = matches!(self.phase, Phase::Running | Phase::Ended);
        let may = in_time && self.is_linerate && !self.finishing_sent;
        self.require("finishing", may)?;
        self.finishing_sent = true;
        self.transmit(&Message::Finishing(finishing));
        Ok(())
    }

    /// Tells what has arrived, while the test runs; only where the client asked for it.
    pub fn send_received(&mut self, received: Received) -> Result<(), ProtocolError> {
        self.require("received", self.phase == Phase::Running && self.is_linerate)?;
        self.transmit(&Message::Received(received));
        Ok(())
    }

    /// Asks for the client's results: `EXCHANGE_RESULTS`.
    pub fn exchange_results(&mut self) -> Result<(), ProtocolError> {
        self.require("EXCHANGE_RESULTS", self.phase == Phase::Ended)?;
        self.phase = Phase::Exchanging;
        self.frame_kind = FrameKind::Results;
        self.reader
            .expect_frame("results", self.limits.results_bound());
        self.transmit_state(State::ExchangeResults);
        Ok(())
    }

    /// Sends our results, after [`ServerEvent::PeerResults`].
    pub fn send_results(&mut self, results: &Results) -> Result<(), ProtocolError> {
        self.require("results", self.phase == Phase::ResultsKnown)?;
        self.phase = Phase::Exchanged;
        self.output.push_back(frame::encode(&results.to_json()));
        Ok(())
    }

    /// Sends our half of the record, JSON, after [`ServerEvent::EndRequested`] and no longer than
    /// that allows.
    pub fn send_end(&mut self, record: Vec<u8>) -> Result<(), ProtocolError> {
        let EndRecord::Requested { max_bytes } = self.end_record else {
            return self.require("end", false);
        };
        let length = u64::try_from(record.len()).unwrap_or(u64::MAX);
        if length > max_bytes {
            return Err(ProtocolError::OursTooLong {
                message: "record",
                length,
                bound: max_bytes,
                remedy: "send fewer samples",
            });
        }
        self.require("end", self.phase == Phase::Exchanged)?;
        self.end_record = EndRecord::Sent;
        self.transmit(&Message::End(record));
        Ok(())
    }

    /// Lets the client show its results: `DISPLAY_RESULTS`; to a stock client straight after our
    /// results, to a linerate after [`Self::send_end`].
    pub fn display_results(&mut self) -> Result<(), ProtocolError> {
        let is_complete = !self.is_linerate || self.end_record == EndRecord::Sent;
        self.require(
            "DISPLAY_RESULTS",
            self.phase == Phase::Exchanged && is_complete,
        )?;
        self.phase = Phase::Displaying;
        self.transmit_state(State::DisplayResults);
        Ok(())
    }

    /// Turns the client away: `ACCESS_DENIED`, unless the session is over. The machine is closed.
    pub fn deny(&mut self) {
        self.close_with(vec![State::AccessDenied.byte()]);
    }

    /// Gives up and says why: `SERVER_ERROR` with iperf3's code (27 bitrate limit, 37 longest
    /// duration, 142 authentication, 160 expired) and an errno or 0, unless the session is over.
    /// The machine is closed.
    pub fn error(&mut self, code: i32, errno: i32) {
        let mut bytes = vec![State::ServerError.byte()];
        bytes.extend_from_slice(&code.to_be_bytes());
        bytes.extend_from_slice(&errno.to_be_bytes());
        self.close_with(bytes);
    }

    /// Interrupts the session: `SERVER_TERMINATE`, unless it is over. The machine is closed.
    pub fn terminate(&mut self) {
        self.close_with(vec![State::ServerTerminate.byte()]);
    }

    fn close_with(&mut self, bytes: Vec<u8>) {
        if self.phase != Phase::Closed {
            self.phase = Phase::Closed;
            self.output.push_back(bytes);
        }
    }

    fn transmit(&mut self, message: &Message) {
        self.output.push_back(message.encode());
    }

    fn transmit_state(&mut self, state: State) {
        self.output.push_back(vec![state.byte()]);
    }

    fn advance(&mut self, phase: Phase, event: ServerEvent) -> Result<(), ProtocolError> {
        self.phase = phase;
        self.events.push(event)
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
