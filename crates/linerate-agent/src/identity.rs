//! The key and certificates of a host, in a folder that only the agent reads.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use linerate_fleet::enrolled::register::{make_private, read_private, write_private};
use linerate_fleet::enrolled::sha256;
use linerate_model::watch::UnixMillis;
use linerate_wire::enrol::{AGENT, ENROL, Invitation};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use serde::{Deserialize, Serialize};

use crate::error::AgentError;

/// Key, certificate and authority belong together: one file, replaced as a whole.
const IDENTITY: &str = "identity.json";
/// A certificate is renewed once it is valid for no longer than this: 30 of its 90 days.
pub const RENEW_BEFORE: u64 = 30 * 86_400_000;

/// What proves to the hub who this host is, and to this host who the hub is.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// The name that it enrolled with.
    pub name: String,
    /// Its private key, PEM.
    pub(crate) key: String,
    /// Its certificate, PEM.
    pub(crate) certificate: String,
    /// Until when that is valid.
    pub not_after: UnixMillis,
    /// The certificate of the hub's authority, PEM.
    pub(crate) authority: String,
    /// SHA-256 of the token that it enrolled with: the same invitation is not used twice.
    pub(crate) token: String,
}

/// Without the key.
impl std::fmt::Debug for Identity {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Identity")
            .field("name", &self.name)
            .field("not_after", &self.not_after)
            .finish_non_exhaustive()
    }
}

impl Identity {
    /// The one in this folder; `None` where the host never enrolled.
    ///
    /// # Errors
    /// Those of the file, among them one that others can read.
    pub fn open(folder: &Path) -> Result<Option<Self>, AgentError> {
        let Some(text) = read_private(&folder.join(IDENTITY))? else {
            return Ok(None);
        };
        let identity: Self =
            serde_json::from_str(&text).map_err(|error| broken(folder, &error.to_string()))?;
        // Whether they fit together is known before anything is dialled.
        identity.client(AGENT).map_err(|why| broken(folder, &why))?;
        Ok(Some(identity))
    }

    /// Writes it, mode 0600, at once or not at all.
    ///
    /// # Errors
    /// Those of writing.
    pub fn keep(&self, folder: &Path) -> Result<(), AgentError> {
        make_private(folder)?;
        let text = serde_json::to_vec(self).map_err(|error| broken(folder, &error.to_string()))?;
        Ok(write_private(&folder.join(IDENTITY), &text)?)
    }

    /// SHA-256 of the authority's certificate.
    ///
    /// # Errors
    /// Where that is none, in words.
    pub fn pin(&self) -> Result<String, String> {
        Ok(sha256(&authority(&self.authority)?))
    }

    /// Whether it comes of this invitation.
    pub fn is_of(&self, invitation: &Invitation) -> bool {
        self.token == sha256(invitation.token.as_bytes())
    }

    /// Whether its certificate is to be renewed.
    pub fn is_due(&self, now: UnixMillis) -> bool {
        self.not_after.since(now) <= RENEW_BEFORE
    }

    /// How it speaks TLS with its hub: version 1.3, that hub's authority alone, its own certificate.
    pub(crate) fn client(&self, protocol: &[u8]) -> Result<Arc<ClientConfig>, String> {
        let mut roots = RootCertStore::empty();
        let text = |error: rustls::Error| error.to_string();
        roots.add(authority(&self.authority)?).map_err(text)?;
        let chain = CertificateDer::from_pem_slice(self.certificate.as_bytes())
            .map_err(|error| error.to_string())?;
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes())
            .map_err(|error| error.to_string())?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(text)?
            .with_root_certificates(roots)
            .with_client_auth_cert(vec![chain], key)
            .map_err(text)?;
        config.alpn_protocols = vec![protocol.to_vec()];
        config.resumption = rustls::client::Resumption::disabled();
        Ok(Arc::new(config))
    }

    /// The same, to renew.
    pub(crate) fn renewing(&self) -> Result<Arc<ClientConfig>, String> {
        self.client(ENROL)
    }
}

fn authority(pem: &str) -> Result<CertificateDer<'static>, String> {
    CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|error| error.to_string())
}

fn broken(folder: &Path, why: &str) -> AgentError {
    AgentError::Broken {
        folder: PathBuf::from(folder),
        why: why.to_owned(),
    }
}
