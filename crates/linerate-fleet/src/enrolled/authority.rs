//! The hub's own authority: it signs the certificates of its agents, and the one that the hub shows them.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use linerate_model::watch::UnixMillis;
use linerate_wire::enrol::{AGENT, ENROL, HUB_NAME};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, DistinguishedName,
    DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, PublicKeyData as _,
    date_time_ymd,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

use super::register::{make_private, read_private, write_private};
use super::{EnrolledError, sha256};

/// The certificate that agents pin.
const CERTIFICATE: &str = "authority.pem";
const KEY: &str = "authority-key.pem";
/// How long an authority lasts, and with it the hub's own certificate.
const YEARS: u64 = 20;
const DAY_MILLIS: u64 = 86_400_000;
/// How long an agent's certificate is valid.
pub const VALID: u64 = 90 * DAY_MILLIS;
/// The clocks of hosts may differ by so much.
const SKEW_MILLIS: u64 = 3_600_000;

/// The authority of a hub.
pub struct Authority {
    certificate: CertificateDer<'static>,
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedCertificate {
    /// It as PEM.
    pub pem: String,
    /// SHA-256 of its DER.
    pub sha256: String,
    /// SHA-256 of its public key.
    pub key: String,
    /// Until when it is valid.
    pub not_after: UnixMillis,
}

impl Authority {
    /// The one of this folder; a new one where there is none.
    ///
    /// # Errors
    /// Those of its files, among them a key that others can read.
    pub fn open(folder: &Path, now: UnixMillis) -> Result<Self, EnrolledError> {
        make_private(folder)?;
        let (path, key_path) = (folder.join(CERTIFICATE), folder.join(KEY));
        if read_private(&key_path)?.is_none() {
            let (certificate, key) = new(now)?;
            // The key last: without it there is no authority yet.
            write_private(&path, certificate.as_bytes())?;
            write_private(&key_path, key.as_bytes())?;
        }
        let broken = |path: &Path, why: String| EnrolledError::Broken {
            path: path.to_owned(),
            why,
        };
        let key = read_private(&key_path)?.unwrap_or_default();
        let key = KeyPair::from_pem(&key).map_err(|error| broken(&key_path, error.to_string()))?;
        let text = read_private(&path)?.unwrap_or_default();
        let certificate = CertificateDer::from_pem_slice(text.as_bytes())
            .map_err(|error| broken(&path, error.to_string()))?;
        let issuer = Issuer::from_ca_cert_der(&certificate, key)
            .map_err(|error| broken(&path, error.to_string()))?;
        Ok(Self {
            certificate,
            pem: text,
            issuer,
        })
    }

    /// What agents pin: the SHA-256 of its certificate.
    pub fn pin(&self) -> String {
        sha256(&self.certificate)
    }

    /// Its certificate, PEM.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// Signs the key of a request for a host of this name. Nothing else of the request is taken over; its signature
    /// proves that the asker has the key.
    ///
    /// # Errors
    /// Where the request is none, or its signature is wrong.
    pub fn sign(
        &self,
        csr: &str,
        name: &str,
        now: UnixMillis,
    ) -> Result<SignedCertificate, EnrolledError> {
        let mut request = CertificateSigningRequestParams::from_pem(csr)?;
        let not_after = now.plus_millis(VALID);
        request.params = params(name, ExtendedKeyUsagePurpose::ClientAuth, now, not_after)?;
        let key = sha256(&request.public_key.subject_public_key_info());
        let certificate = request.signed_by(&self.issuer)?;
        Ok(SignedCertificate {
            pem: certificate.pem(),
            sha256: sha256(certificate.der()),
            key,
            not_after,
        })
    }

    /// How the hub speaks TLS: version 1.3 alone, certificates of this authority from agents, none from those who enrol.
    ///
    /// # Errors
    /// Those of making the hub's certificate.
    pub fn server(&self, now: UnixMillis) -> Result<Arc<ServerConfig>, EnrolledError> {
        let key = KeyPair::generate()?;
        let until = now.plus_millis(YEARS * 365 * DAY_MILLIS);
        let mut own = params("hub", ExtendedKeyUsagePurpose::ServerAuth, now, until)?;
        own.subject_alt_names = CertificateParams::new([HUB_NAME.to_owned()])?.subject_alt_names;
        let own = own.signed_by(&key, &self.issuer)?;
        let chain = vec![own.der().clone(), self.certificate.clone()];
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone())?;
        let clients = WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone())
            .allow_unauthenticated()
            .build()?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_client_cert_verifier(clients)
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![AGENT.to_vec(), ENROL.to_vec()];
        // A resumed session would not show its certificate anew.
        config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }
}

/// A certificate and a key, PEM.
fn new(now: UnixMillis) -> Result<(String, String), EnrolledError> {
    let key = KeyPair::generate()?;
    let until = now.plus_millis(YEARS * 365 * DAY_MILLIS);
    let mut params = params(
        "linerate hub",
        ExtendedKeyUsagePurpose::ClientAuth,
        now,
        until,
    )?;
    params.extended_key_usages.clear();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let certificate = params.self_signed(&key)?;
    Ok((certificate.pem(), key.serialize_pem()))
}

fn params(
    name: &str,
    usage: ExtendedKeyUsagePurpose,
    now: UnixMillis,
    not_after: UnixMillis,
) -> Result<CertificateParams, EnrolledError> {
    let mut params = CertificateParams::new([])?;
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, name);
    params.distinguished_name = subject;
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![usage];
    let at = |moment: u64| date_time_ymd(1970, 1, 1) + Duration::from_millis(moment);
    params.not_before = at(now.0.saturating_sub(SKEW_MILLIS));
    params.not_after = at(not_after.0);
    Ok(params)
}
