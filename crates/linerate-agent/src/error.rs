//! Why an agent cannot serve its hub.

use std::path::PathBuf;

use linerate_document::DocumentError;
use linerate_fleet::enrolled::EnrolledError;
use linerate_fleet::tunnel::TunnelError;
use linerate_model::plain_text::PlainText;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// A file.
    #[error("cannot {what} {}: {source}", path.display())]
    File {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's words.
        source: std::io::Error,
    },
    /// Others than root can change the law.
    #[error(
        "{} is not used: {why}; a hub must not be able to change it: `chown root` and `chmod 644` it, and the folder in \
         which it is",
        path.display()
    )]
    OpenLaw {
        /// The file or a folder above it.
        path: PathBuf,
        /// Who can change it.
        why: String,
    },
    /// The law cannot be read.
    #[error(transparent)]
    Law(#[from] DocumentError),
    /// The files of the identity.
    #[error(transparent)]
    Identity(#[from] EnrolledError),
    /// The files of the identity do not fit together.
    #[error("the key and certificate in {} cannot be used: {why}; remove them and enrol again", folder.display())]
    Broken {
        /// The folder.
        folder: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The host never enrolled.
    #[error(
        "this host has not enrolled: `linerate hub token new` on the hub prints an invitation; give it with --enrol (state \
         folder {})",
        folder.display()
    )]
    NotEnrolled {
        /// The folder.
        folder: PathBuf,
    },
    /// A certificate request could not be made.
    #[error("cannot make a key or a request for a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    /// The hub could not be reached.
    #[error("cannot connect to the hub at {hub}: {why}")]
    Connect {
        /// Its address.
        hub: String,
        /// Why not.
        why: String,
    },
    /// The hub is not the one that this host enrolled with, or the connection broke.
    #[error("the hub at {hub}: {source}")]
    Hub {
        /// Its address.
        hub: String,
        /// What went wrong.
        source: TunnelError,
    },
    /// The hub refused.
    #[error("the hub at {hub} refuses: {why}")]
    Refused {
        /// Its address.
        hub: String,
        /// Its words.
        why: PlainText,
    },
    /// What the hub sent is no reply.
    #[error("the hub at {hub} sent what no hub sends: {why}")]
    Reply {
        /// Its address.
        hub: String,
        /// What is wrong.
        why: String,
    },
}
