//! DRBD: `/proc/drbd` of 8.3, 8.4 and 9, `drbdsetup` status, events2 and show (text and JSON), show-gi, refusals.

mod fold;
mod json;
mod messages;
mod proc;
mod settings;
mod status;

use linerate_model::transcript::Part;

use crate::Input;
pub(super) use json::take as take_json;

/// Lines of DRBD's tools.
#[derive(Default)]
pub(super) struct Lines {
    proc: proc::Lines,
    status: status::Lines,
    settings: settings::Lines,
    messages: messages::Lines,
}

impl Lines {
    pub(super) fn take(
        &mut self,
        input: &Input<'_>,
        words: &[&str],
        parts: &mut Vec<Part>,
    ) -> bool {
        self.settings.take(input, words, parts)
            || self.proc.take(input.number, words, parts)
            || self.status.take(input, words, parts)
            || self.messages.take(input, words, parts)
    }

    /// Something else begins.
    pub(super) fn end(&mut self, parts: &mut [Part]) {
        self.status.end(parts);
        *self = Self::default();
    }
}

/// Whether a status has this replication state while blocks are copied or compared, paused or not.
fn moves(state: &linerate_model::storage::ConnectionState) -> bool {
    use linerate_model::storage::ConnectionState as State;
    matches!(
        state,
        State::SyncSource
            | State::SyncTarget
            | State::PausedSyncS
            | State::PausedSyncT
            | State::VerifyS
            | State::VerifyT
    )
}

/// What a sync of this state is, before its figures are known.
fn sync_of(state: &linerate_model::storage::ConnectionState) -> linerate_model::storage::DrbdSync {
    use linerate_model::storage::ConnectionState as State;
    linerate_model::storage::DrbdSync {
        verifies: matches!(state, State::VerifyS | State::VerifyT),
        ..Default::default()
    }
}
