//! Getting a certificate: the first one by an invitation, later ones by the one before.

use std::path::Path;
use std::sync::Arc;

use linerate_fleet::enrolled::sha256;
use linerate_fleet::tunnel::Tunnel;
use linerate_kernel::clock;
use linerate_model::watch::UnixMillis;
use linerate_wire::enrol::{ENROL, Invitation, Reply, Request, decode, encode};
use rcgen::{CertificateParams, KeyPair};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

use crate::dial::{PATIENCE, connect};
use crate::error::AgentError;
use crate::identity::Identity;

/// Enrols this host by the name with the hub of an invitation; `hub` is where that is dialled. The identity is on disk
/// when this returns.
///
/// # Errors
/// Where the hub cannot be reached, is not the one of the invitation, or refuses.
pub fn enrol(
    hub: &str,
    invitation: &Invitation,
    name: &str,
    folder: &Path,
) -> Result<Identity, AgentError> {
    let key = KeyPair::generate()?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = |error: rustls::Error| AgentError::Connect {
        hub: hub.to_owned(),
        why: error.to_string(),
    };
    let pinned = Arc::new(Pinned {
        pin: invitation.pin.clone(),
        algorithms: provider.signature_verification_algorithms,
        provider: provider.clone(),
    });
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(tls)?
        .dangerous()
        .with_custom_certificate_verifier(pinned)
        .with_no_client_auth();
    config.alpn_protocols = vec![ENROL.to_vec()];
    config.resumption = rustls::client::Resumption::disabled();
    let mut tunnel = connect(hub, Arc::new(config))?;
    let request = Request::Enrol {
        token: invitation.token.clone(),
        name: name.to_owned(),
        csr: request(&key)?,
    };
    let mut identity = ask(hub, &mut tunnel, &request, name, &key)?;
    tunnel.close();
    identity.token = sha256(invitation.token.as_bytes());
    if identity.pin().as_ref() != Ok(&invitation.pin) {
        return Err(AgentError::Reply {
            hub: hub.to_owned(),
            why: "its authority is not that of the invitation".to_owned(),
        });
    }
    identity.keep(folder)?;
    Ok(identity)
}

/// Gets a new certificate for a new key, by the one that the host has.
///
/// # Errors
/// Where the hub cannot be reached or refuses; the identity stays as it is.
pub fn renew(hub: &str, identity: &Identity, folder: &Path) -> Result<Identity, AgentError> {
    let config = identity.renewing().map_err(|why| AgentError::Connect {
        hub: hub.to_owned(),
        why,
    })?;
    let key = KeyPair::generate()?;
    let mut tunnel = connect(hub, config)?;
    let request = Request::Renew {
        csr: request(&key)?,
    };
    let new = ask(hub, &mut tunnel, &request, &identity.name, &key)?;
    tunnel.close();
    let new = Identity {
        // A renewal never changes whom this host trusts.
        authority: identity.authority.clone(),
        token: identity.token.clone(),
        ..new
    };
    new.keep(folder)?;
    Ok(new)
}

/// What proves that the asker has the key. The hub takes nothing else of it.
fn request(key: &KeyPair) -> Result<String, AgentError> {
    let params = CertificateParams::new([])?;
    Ok(params.serialize_request(key)?.pem()?)
}

fn ask(
    hub: &str,
    tunnel: &mut Tunnel,
    request: &Request,
    name: &str,
    key: &KeyPair,
) -> Result<Identity, AgentError> {
    let strange = |why: String| AgentError::Reply {
        hub: hub.to_owned(),
        why,
    };
    let failed = |source| AgentError::Hub {
        hub: hub.to_owned(),
        source,
    };
    let until = clock::monotonic().plus(PATIENCE);
    let bytes = encode(request).map_err(|error| strange(error.to_string()))?;
    tunnel.send(&bytes, until).map_err(failed)?;
    let mut bytes = Vec::new();
    loop {
        tunnel.receive(&mut bytes, until).map_err(failed)?;
        match decode(&bytes).map_err(|error| strange(error.to_string()))? {
            None => {}
            Some(Reply::Certified {
                certificate,
                authority,
                not_after,
            }) => {
                let identity = Identity {
                    name: name.to_owned(),
                    key: key.serialize_pem(),
                    certificate,
                    not_after: UnixMillis(not_after),
                    authority,
                    token: String::new(),
                };
                // It is kept only where it fits together.
                identity.renewing().map_err(strange)?;
                return Ok(identity);
            }
            Some(Reply::Refused { why }) => {
                return Err(AgentError::Refused {
                    hub: hub.to_owned(),
                    why,
                });
            }
        }
    }
}

/// Accepts a hub whose chain ends in the authority of this pin.
#[derive(Debug)]
struct Pinned {
    pin: String,
    algorithms: WebPkiSupportedAlgorithms,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let other = || {
            rustls::Error::General(
                "this is not the hub that issued the invitation: its CA certificate has another SHA-256"
                    .to_owned(),
            )
        };
        let mut shown = intermediates.iter();
        let authority = shown
            .find(|one| sha256(one) == self.pin)
            .ok_or_else(other)?;
        let mut roots = RootCertStore::empty();
        roots.add(authority.clone().into_owned())?;
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), self.provider.clone())
            .build()
            .map_err(|error| rustls::Error::General(error.to_string()))?
            .verify_server_cert(end_entity, &[], server_name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("TLS 1.2 is not used".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, cert, dss, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
