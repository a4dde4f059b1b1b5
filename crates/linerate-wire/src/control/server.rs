//! The server's machine.

use linerate_model::units::Nanos;

use super::reader::{Frame, Item};
use super::session::{self, Control, Side};
use crate::error::ProtocolError;
use crate::extension::{
    Finishing, Hello, MAX_END_BYTES, MAX_MESSAGE_BYTES, Message, Received, Stored,
};
use crate::frame;
use crate::parameters::{MAX_PARAMETERS_BYTES, Parameters};
use crate::results::{MAX_CLIENT_RESULTS_BYTES, Results};
use crate::state::State;

/// What a client said.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "a session has one of them at a time, and one in all that is large"
)]
pub enum ServerEvent {
    /// What the client asks for; [`Parameters::check`] was not called yet. Where
    /// [`Parameters::linerate`] is set, `send_hello` may answer it.
    Parameters(Parameters),
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
pub enum Phase {
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

impl session::Phase for Phase {
    const FAILED: Self = Self::Failed;
    const CLOSED: Self = Self::Closed;

    fn expected(self) -> &'static str {
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

    fn doing(self) -> &'static str {
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

/// What became of the client's wish for our half of the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndRecord {
    NotRequested,
    Requested { max_bytes: u64 },
    Sent,
}

/// What only the server's machine remembers.
#[derive(Debug, Clone)]
pub struct ServerSide {
    /// The client offered our extension.
    is_offered: bool,
    end_record: EndRecord,
}

impl Side for ServerSide {
    type Event = ServerEvent;
    type Phase = Phase;
    const PEER: &'static str = "client";
    const INTERRUPTS: &'static [u8] = &[State::ClientTerminate.byte()];
    const RESULTS_BYTES: usize = MAX_CLIENT_RESULTS_BYTES;

    fn handle(control: &mut ServerControl, item: Item) -> Result<(), ProtocolError> {
        match item {
            Item::State(state) => control.handle_state(state),
            Item::Frame(Frame::Parameters, payload) => control.handle_parameters(&payload),
            Item::Frame(Frame::Results, payload) => control.handle_results(&payload),
            Item::Frame(Frame::Extension, payload) => control.handle_message(&payload),
            // The reader of a server never expects error codes.
            Item::ErrorCodes { .. } => Ok(()),
        }
    }
}

/// The server's end of a control connection. The listener has read the cookie.
pub type ServerControl = Control<ServerSide>;

impl Default for ServerControl {
    /// A session whose cookie was read. Nothing is transmitted before
    /// [`Self::ask_parameters`] or [`Self::deny`].
    fn default() -> Self {
        let side = ServerSide {
            is_offered: false,
            end_record: EndRecord::NotRequested,
        };
        Self::begun(side, Phase::New)
    }
}

impl ServerControl {
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
                self.reader
                    .expect_frame(Frame::Extension, MAX_MESSAGE_BYTES);
                Ok(())
            }
            _ => Err(self.out_of_order(state.to_string())),
        }
    }

    fn handle_parameters(&mut self, payload: &[u8]) -> Result<(), ProtocolError> {
        let parameters = Parameters::from_json(payload)?;
        self.side.is_offered = parameters.linerate.is_some();
        self.advance(Phase::ParametersKnown, ServerEvent::Parameters(parameters))
    }

    fn handle_results(&mut self, payload: &[u8]) -> Result<(), ProtocolError> {
        let results = Results::from_client_json(payload)?;
        self.advance(Phase::ResultsKnown, ServerEvent::PeerResults(results))
    }

    fn handle_message(&mut self, payload: &[u8]) -> Result<(), ProtocolError> {
        match (self.phase, Message::from_json(payload)?) {
            (Phase::Greeted | Phase::Exchanged, Message::Ping { n }) => {
                self.pings += 1;
                self.push(ServerEvent::Ping { n })
            }
            (Phase::Greeted, Message::Ready {}) => {
                self.advance(Phase::ClientReady, ServerEvent::Ready)
            }
            (Phase::Running, Message::Finishing(finishing)) if !self.finishing_seen => {
                self.finishing_seen = true;
                self.push(ServerEvent::Finishing(finishing))
            }
            (Phase::Exchanged, Message::EndRequest { max_bytes })
                if self.side.end_record == EndRecord::NotRequested =>
            {
                let longest = u64::try_from(MAX_END_BYTES).unwrap_or(u64::MAX);
                let max_bytes = max_bytes.min(longest);
                self.side.end_record = EndRecord::Requested { max_bytes };
                self.push(ServerEvent::EndRequested { max_bytes })
            }
            (_, other) => Err(self.out_of_order(format!("a linerate {}", other.name()))),
        }
    }

    /// Asks for the parameters: `PARAM_EXCHANGE`.
    pub fn ask_parameters(&mut self) -> Result<(), ProtocolError> {
        let may = self.phase == Phase::New;
        self.step("PARAM_EXCHANGE", may, Phase::Asked, State::ParamExchange)?;
        self.reader
            .expect_frame(Frame::Parameters, MAX_PARAMETERS_BYTES);
        Ok(())
    }

    /// Takes the client's offer of our extension. Without it the client is treated as stock.
    pub fn send_hello(&mut self, hello: Hello) -> Result<(), ProtocolError> {
        self.require(
            "hello",
            self.phase == Phase::ParametersKnown && self.side.is_offered,
        )?;
        self.phase = Phase::Greeted;
        self.is_linerate = true;
        self.transmit(&Message::Hello(hello));
        Ok(())
    }

    /// Answers a ping: when it came and when this is written, on our monotonic clock.
    pub fn send_pong(&mut self, n: u64, received: Nanos, sent: Nanos) -> Result<(), ProtocolError> {
        self.require("pong", self.pings > 0)?;
        self.pings -= 1;
        self.transmit(&Message::Pong { n, received, sent });
        Ok(())
    }

    /// Lets the client open its streams: `CREATE_STREAMS`. After a hello the client must have
    /// said `ready`.
    pub fn create_streams(&mut self) -> Result<(), ProtocolError> {
        let may = matches!(self.phase, Phase::ParametersKnown | Phase::ClientReady);
        let (phase, state) = (Phase::CreatingStreams, State::CreateStreams);
        self.step("CREATE_STREAMS", may, phase, state)?;
        self.pings = 0;
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

    /// Tells how far the target is, until [`Self::exchange_results`]; only where the client asked for one.
    pub fn send_stored(&mut self, stored: Stored) -> Result<(), ProtocolError> {
        let in_time = matches!(self.phase, Phase::Running | Phase::Ended);
        self.require("stored", in_time && self.is_linerate)?;
        self.transmit(&Message::Stored(stored));
        Ok(())
    }

    /// Asks for the client's results: `EXCHANGE_RESULTS`.
    pub fn exchange_results(&mut self) -> Result<(), ProtocolError> {
        let may = self.phase == Phase::Ended;
        let (phase, state) = (Phase::Exchanging, State::ExchangeResults);
        self.step("EXCHANGE_RESULTS", may, phase, state)?;
        self.expect_results();
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
        let EndRecord::Requested { max_bytes } = self.side.end_record else {
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
        self.side.end_record = EndRecord::Sent;
        self.transmit(&Message::End(record));
        Ok(())
    }

    /// Lets the client show its results: `DISPLAY_RESULTS`; to a stock client straight after our
    /// results, to a linerate after [`Self::send_end`].
    pub fn display_results(&mut self) -> Result<(), ProtocolError> {
        let is_complete = !self.is_linerate || self.side.end_record == EndRecord::Sent;
        let may = self.phase == Phase::Exchanged && is_complete;
        let (phase, state) = (Phase::Displaying, State::DisplayResults);
        self.step("DISPLAY_RESULTS", may, phase, state)
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
}
