//! Agents that connect by themselves: who may ([`book`], kept by [`register`]), what proves it ([`authority`]), and where they
//! connect ([`listener`]).

pub mod arrivals;
pub mod authority;
pub mod book;
pub mod listener;
pub mod register;

use std::path::PathBuf;

use aws_lc_rs::digest::{SHA256, digest};
use linerate_model::hexadecimal;

pub use arrivals::Arrivals;
pub use authority::Authority;
pub use book::{Book, Refusal};
pub use listener::{Listening, listen};
pub use register::Register;

/// Why something of the hub's part of enrolling could not be done.
#[derive(Debug, thiserror::Error)]
pub enum EnrolledError {
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
    /// A file that others can read or write.
    #[error(
        "{} may be read or written by others than its owner: `chmod 600` it, and replace the key in it where others had \
         access",
        path.display()
    )]
    Open {
        /// The file.
        path: PathBuf,
    },
    /// A file that is not what was written.
    #[error("{} is not what the hub wrote: {why}; restore it from a backup, or move the folder away and enrol all agents anew", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A certificate could not be made.
    #[error("cannot make a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    /// TLS could not be set up.
    #[error("cannot set TLS up: {0}")]
    Tls(#[from] rustls::Error),
    /// The same, of the check of agents' certificates.
    #[error("cannot set TLS up: {0}")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
    /// The system's random numbers.
    #[error("cannot read random numbers: {0}")]
    Random(std::io::Error),
}

/// SHA-256 in hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    hexadecimal::digits(digest(&SHA256, bytes).as_ref())
}
