//! One POST, bounded in time.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use aws_lc_rs::hmac;
use linerate_model::hexadecimal;
use linerate_model::watch::UnixMillis;
use ureq::Agent;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

use super::secret;

/// A channel that does not answer in this time is broken.
const WITHIN: Duration = Duration::from_secs(10);
/// Where systems keep the certificates that they trust; `SSL_CERT_FILE` comes first.
const TRUSTED: [&str; 3] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
];

/// Sends JSON. Success is an answer of 200 to 299.
pub(super) fn post(url: &str, headers: &[(&str, String)], body: &[u8]) -> Result<(), String> {
    let mut request = agent().post(url).header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, value);
    }
    match request.send(body) {
        Ok(_) => Ok(()),
        Err(ureq::Error::StatusCode(code)) => Err(format!("{url} answered {code}")),
        Err(error) => Err(format!("cannot send to {url}: {error}")),
    }
}

/// `Linerate-Timestamp` (seconds since 1970), and `Linerate-Signature`: `sha256=` and the HMAC-SHA256, in hexadecimal
/// digits, of the timestamp, a dot and the body.
pub(super) fn signature(
    file: &Path,
    now: UnixMillis,
    body: &[u8],
) -> Result<Vec<(&'static str, String)>, String> {
    let secret = secret::read(file)?;
    let timestamp = (now.0 / 1000).to_string();
    Ok(vec![
        ("linerate-signature", signed(&secret, &timestamp, body)),
        ("linerate-timestamp", timestamp),
    ])
}

fn signed(secret: &[u8], timestamp: &str, body: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    let mut context = hmac::Context::with_key(&key);
    context.update(timestamp.as_bytes());
    context.update(b".");
    context.update(body);
    format!("sha256={}", hexadecimal::digits(context.sign().as_ref()))
}

fn agent() -> &'static Agent {
    static AGENT: OnceLock<Agent> = OnceLock::new();
    AGENT.get_or_init(|| {
        let provider = rustls::crypto::aws_lc_rs::default_provider();
        let tls = TlsConfig::builder()
            .root_certs(trusted())
            .unversioned_rustls_crypto_provider(Arc::new(provider))
            .build();
        Agent::config_builder()
            .timeout_global(Some(WITHIN))
            .max_redirects(0)
            .max_redirects_will_error(true)
            .user_agent(concat!("linerate/", env!("CARGO_PKG_VERSION")))
            .tls_config(tls)
            .build()
            .into()
    })
}

/// The certificates that this system trusts.
fn trusted() -> RootCerts {
    let named = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    let mut files = named.into_iter().chain(TRUSTED.map(PathBuf::from));
    let pem = files.find_map(|file| std::fs::read(file).ok());
    let pem = pem.unwrap_or_default();
    let certificates: Vec<_> = parse_pem(&pem)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    RootCerts::from(certificates)
}

#[cfg(test)]
mod tests {
    use super::signed;

    /// Python: `hmac.new(b"key", b"1764038400.{}", "sha256").hexdigest()`.
    #[test]
    fn the_signature_is_that_of_any_hmac() {
        let expected = "sha256=07a906bdae9d897ad5894c3f49285779dd2d776e1dcad7139ff848b3529ca75c";
        assert_eq!(signed(b"key", "1764038400", b"{}"), expected);
    }
}
