//! The error whose message reaches a user.

use std::io;

/// The kernel refused something that a user asked for by name.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation} {object}: {source}")]
pub struct KernelError {
    /// What was tried, as a verb phrase: `set the congestion control`.
    pub operation: &'static str,
    /// On what: the name or value as it was asked for.
    pub object: String,
    /// The kernel's answer.
    pub source: io::Error,
}

impl KernelError {
    /// For `map_err`: adds operation and object to the kernel's answer.
    pub(crate) fn of(operation: &'static str, object: &str) -> impl FnOnce(io::Error) -> Self {
        let object = object.to_owned();
        move |source| Self {
            operation,
            object,
            source,
        }
    }
}

impl From<KernelError> for io::Error {
    /// Keeps the error's kind and the whole message.
    fn from(error: KernelError) -> Self {
        Self::new(error.source.kind(), error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_names_operation_and_object() {
        let refused =
            KernelError::of("bind to device", "eth7")(io::Error::from(io::ErrorKind::NotFound));
        let text = io::Error::from(refused).to_string();
        assert!(text.starts_with("cannot bind to device eth7: "), "{text}");
    }
}
