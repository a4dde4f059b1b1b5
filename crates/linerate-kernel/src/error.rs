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

impl KernelError {
    /// The kernel's number of the error (`errno`), where it is the kernel's.
    pub fn code(&self) -> Option<i32> {
        let explained = || {
            let inner = self.source.get_ref()?.downcast_ref::<Explained>()?;
            Some(inner.code)
        };
        self.source.raw_os_error().or_else(explained)
    }
}

/// A refusal that the kernel gave words to (`NLMSGERR_ATTR_MSG`).
#[derive(Debug, thiserror::Error)]
#[error("{words} ({})", io::Error::from_raw_os_error(*.code))]
pub(crate) struct Explained {
    pub(crate) code: i32,
    pub(crate) words: String,
}

impl From<Explained> for io::Error {
    fn from(refusal: Explained) -> Self {
        Self::new(Self::from_raw_os_error(refusal.code).kind(), refusal)
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
    fn the_kernel_s_words_keep_its_number() {
        let words = "Specified qdisc kind is unknown".to_owned();
        let refusal = Explained { code: 2, words };
        let error = KernelError::of("set", "fq")(refusal.into());
        assert_eq!(error.code(), Some(2));
        let text = error.to_string();
        assert!(
            text.contains("set fq: Specified qdisc kind is unknown (No such"),
            "{text}"
        );
        assert_eq!(
            KernelError::of("a", "b")(io::Error::from_raw_os_error(1)).code(),
            Some(1)
        );
    }

    #[test]
    fn the_message_names_operation_and_object() {
        let refused =
            KernelError::of("bind to device", "eth7")(io::Error::from(io::ErrorKind::NotFound));
        let text = io::Error::from(refused).to_string();
        assert!(text.starts_with("cannot bind to device eth7: "), "{text}");
    }
}
