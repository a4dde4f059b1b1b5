//! The hub's own certificate for browsers.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A file of certificates or a key is no longer than this, bytes.
const MOST: u64 = 1024 * 1024;

/// The files of a certificate and its key; they are read again when they change.
pub struct TlsFiles {
    certificate: PathBuf,
    key: PathBuf,
    read: Mutex<(Stamp, Arc<ServerConfig>)>,
}

type Stamp = [Option<SystemTime>; 2];

/// Why the certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file.
    #[error("cannot read {}: {error}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Not PEM.
    #[error("{} has no {what} in PEM: {why}", path.display())]
    Pem {
        /// Which.
        path: PathBuf,
        /// What it should have.
        what: &'static str,
        /// Why it has none.
        why: String,
    },
    /// They do not fit.
    #[error("the certificate of {} and the key of {} cannot be used: {error}", certificate.display(), key.display())]
    Unfit {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// Why.
        error: rustls::Error,
    },
}

impl fmt::Debug for TlsFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsFiles")
            .field("certificate", &self.certificate)
            .finish_non_exhaustive()
    }
}

impl TlsFiles {
    /// Reads a chain of certificates, the hub's own first, and its key, both in PEM.
    ///
    /// # Errors
    /// Files that cannot be read, and that do not fit.
    pub fn open(certificate: &Path, key: &Path) -> Result<Self, TlsError> {
        let stamp = stamp(certificate, key);
        let read = Mutex::new((stamp, Arc::new(configuration(certificate, key)?)));
        Ok(Self {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            read,
        })
    }

    /// As the files are now; as they were where what they are now is of no use.
    pub(crate) fn now(&self) -> Arc<ServerConfig> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = stamp(&self.certificate, &self.key);
        if stamp != read.0 {
            read.0 = stamp;
            if let Ok(new) = configuration(&self.certificate, &self.key) {
                read.1 = Arc::new(new);
            }
        }
        read.1.clone()
    }
}

fn stamp(certificate: &Path, key: &Path) -> Stamp {
    [certificate, key].map(|path| fs::metadata(path).and_then(|found| found.modified()).ok())
}

fn configuration(certificate: &Path, key: &Path) -> Result<ServerConfig, TlsError> {
    let pem = |path: &Path, what, error: rustls::pki_types::pem::Error| TlsError::Pem {
        path: path.to_owned(),
        what,
        why: error.to_string(),
    };
    let chain = CertificateDer::pem_slice_iter(&bytes(certificate)?).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|error| pem(certificate, "certificate", error))?;
    let secret = PrivateKeyDer::from_pem_slice(&bytes(key)?);
    let secret = secret.map_err(|error| pem(key, "private key", error))?;
    let unfit = |error| TlsError::Unfit {
        certificate: certificate.to_owned(),
        key: key.to_owned(),
        error,
    };
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut configuration = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(unfit)?
        .with_no_client_auth()
        .with_single_cert(chain, secret)
        .map_err(unfit)?;
    configuration.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(configuration)
}

fn bytes(path: &Path) -> Result<Vec<u8>, TlsError> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MOST).read_to_end(&mut bytes));
    read.map_err(|error| TlsError::File {
        path: path.to_owned(),
        error,
    })?;
    Ok(bytes)
}
