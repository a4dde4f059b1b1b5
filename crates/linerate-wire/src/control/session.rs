//! What the machines of both ends have in common.

use std::collections::VecDeque;
use std::fmt::Debug;

use linerate_model::plain_text::PlainText;

use super::reader::{Frame, Item, Reader};
use crate::error::ProtocolError;
use crate::extension::Message;
use crate::frame::Unread;
use crate::state::State;

/// Events that may wait for the caller.
const MAX_EVENTS: usize = 64;

/// Where a session is.
pub trait Phase: Debug + Copy + PartialEq {
    /// The peer sent what cannot be, or was interrupted; only a last word to it is left.
    const FAILED: Self;
    /// The session is over.
    const CLOSED: Self;
    /// What the peer may send next.
    fn expected(self) -> &'static str;
    /// What is going on, for errors of the calling program.
    fn doing(self) -> &'static str;
}

/// One of the two ends: what its machine remembers beside the common part, and what it makes of its peer's messages.
pub trait Side: Debug + Clone {
    /// What the peer said.
    type Event: Debug + Clone;
    /// Where the session is.
    type Phase: Phase;
    /// What the peer is taken for, in errors: `server` or `client`.
    const PEER: &'static str;
    /// State bytes that the peer may send in the place of anything.
    const INTERRUPTS: &'static [u8];
    /// The longest results that the peer may send.
    const RESULTS_BYTES: usize;
    /// Takes what the peer sent.
    fn handle(control: &mut Control<Self>, item: Item) -> Result<(), ProtocolError>;
}

/// One end of a control connection.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each notes one message that comes once"
)]
pub struct Control<S: Side> {
    pub(super) side: S,
    pub(super) phase: S::Phase,
    pub(super) reader: Reader,
    pub(super) output: VecDeque<Vec<u8>>,
    events: VecDeque<S::Event>,
    is_unanswered: bool,
    /// Our extension is spoken.
    pub(super) is_linerate: bool,
    /// Pings without a pong.
    pub(super) pings: usize,
    pub(super) finishing_seen: bool,
    pub(super) finishing_sent: bool,
}

impl<S: Side> Control<S> {
    pub(super) const fn begun(side: S, phase: S::Phase) -> Self {
        Self {
            side,
            phase,
            reader: Reader::new(S::PEER, S::INTERRUPTS),
            output: VecDeque::new(),
            events: VecDeque::new(),
            is_unanswered: true,
            is_linerate: false,
            pings: 0,
            finishing_seen: false,
            finishing_sent: false,
        }
    }

    /// Takes bytes from the peer, cut anywhere. After an error the machine is closed, but for a last word to the peer:
    /// a client's `terminate`, a server's `error`, `deny` or `terminate`.
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
            let handled = match self.reader.next(input) {
                Ok(Some(item)) => S::handle(self, item),
                other => other.map(drop),
            };
            if let Err(error) = handled {
                self.phase = S::Phase::FAILED;
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
    pub fn poll_event(&mut self) -> Option<S::Event> {
        self.events.pop_front()
    }

    /// Whether our extension is spoken: the client offered it and the server's hello took the offer.
    pub const fn is_linerate(&self) -> bool {
        self.is_linerate
    }

    /// Whether the peer has said nothing yet.
    pub const fn is_unanswered(&self) -> bool {
        self.is_unanswered
    }

    /// How much has come of the frame that is awaited, also when it has failed; absent where none is.
    pub fn unread(&self) -> Option<Unread> {
        self.reader.unread()
    }

    /// Whether the session is over, by an end or an error.
    pub fn is_closed(&self) -> bool {
        self.phase == S::Phase::FAILED || self.phase == S::Phase::CLOSED
    }

    pub(super) fn push(&mut self, event: S::Event) -> Result<(), ProtocolError> {
        if self.events.len() >= MAX_EVENTS {
            return Err(ProtocolError::TooManyMessages { bound: MAX_EVENTS });
        }
        self.events.push_back(event);
        Ok(())
    }

    pub(super) fn advance(
        &mut self,
        phase: S::Phase,
        event: S::Event,
    ) -> Result<(), ProtocolError> {
        self.phase = phase;
        self.push(event)
    }

    /// The last word: nothing comes behind it.
    pub(super) fn close_with(&mut self, bytes: Vec<u8>) {
        if self.phase != S::Phase::CLOSED {
            self.phase = S::Phase::CLOSED;
            self.output.push_back(bytes);
        }
    }

    pub(super) fn transmit(&mut self, message: &Message) {
        self.output.push_back(message.encode());
    }

    pub(super) fn expect_results(&mut self) {
        self.reader.expect_frame(Frame::Results, S::RESULTS_BYTES);
    }

    pub(super) fn require(&self, verb: &'static str, allowed: bool) -> Result<(), ProtocolError> {
        let phase = self.phase.doing();
        let refused = ProtocolError::OutOfTurn { verb, phase };
        if allowed { Ok(()) } else { Err(refused) }
    }

    /// Moves the session on with a state byte, where it is its turn.
    pub(super) fn step(
        &mut self,
        verb: &'static str,
        allowed: bool,
        phase: S::Phase,
        state: State,
    ) -> Result<(), ProtocolError> {
        self.require(verb, allowed)?;
        self.phase = phase;
        self.output.push_back(vec![state.byte()]);
        Ok(())
    }

    pub(super) fn out_of_order(&self, received: impl Into<PlainText>) -> ProtocolError {
        ProtocolError::OutOfOrder {
            received: received.into(),
            expected: self.phase.expected(),
        }
    }
}
