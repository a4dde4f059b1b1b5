//! One mail, bounded in time.

use std::path::Path;
use std::time::Duration;

use lettre::message::header::ContentType;
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::transport::smtp::{SMTP_PORT, SUBMISSION_PORT, SUBMISSIONS_PORT};
use lettre::{Address, Message, SmtpTransport, Transport as _};
use linerate_hub::words::AlertWords;
use linerate_model::alert::Alert;
use linerate_watch::watched::Mail;

use super::secret;

/// A server that does not answer in this time is broken.
const WITHIN: Duration = Duration::from_secs(10);

/// Sends an alert as it is now.
pub(super) fn send(mail: &Mail, password: Option<&Path>, alert: &Alert) -> Result<(), String> {
    let failed = |why: String| format!("cannot send mail by {}: {why}", mail.server);
    let message = message(mail, alert).map_err(&failed)?;
    let transport = transport(mail, password).map_err(&failed)?;
    match transport.send(&message) {
        Ok(_) => Ok(()),
        Err(error) => Err(failed(with_causes(&error))),
    }
}

fn transport(mail: &Mail, password: Option<&Path>) -> Result<SmtpTransport, String> {
    let parameters = TlsParameters::builder(mail.server.clone());
    let parameters = parameters
        .build_rustls()
        .map_err(|error| error.to_string())?;
    let (tls, port) = match (mail.wrapped, &mail.user) {
        (true, _) => (Tls::Wrapper(parameters), SUBMISSIONS_PORT),
        (false, Some(_)) => (Tls::Required(parameters), SUBMISSION_PORT),
        (false, None) => (Tls::Opportunistic(parameters), SMTP_PORT),
    };
    let mut builder = SmtpTransport::builder_dangerous(mail.server.as_str())
        .tls(tls)
        .port(mail.port.unwrap_or(port))
        .timeout(Some(WITHIN));
    if let (Some(user), Some(file)) = (&mail.user, password) {
        let password = String::from_utf8(secret::read(file)?)
            .map_err(|_| format!("the password in {} is not UTF-8", file.display()))?;
        builder = builder.credentials(Credentials::new(user.clone(), password));
    }
    Ok(builder.build())
}

/// Mails of one alert are one thread.
fn message(mail: &Mail, alert: &Alert) -> Result<Message, String> {
    let address = |text: &str| {
        let parsed: Result<Address, _> = text.parse();
        parsed.map_err(|error| format!("{text}: {error}"))
    };
    let words = AlertWords::of(alert);
    let thread = format!("<{}@linerate.invalid>", alert.id);
    let this = format!("<{}.{}@linerate.invalid>", alert.id, alert.changed.0);
    let mut builder = Message::builder()
        .from(address(&mail.from)?.into())
        .subject(format!(
            "[linerate] {}: {}",
            alert.state.word(),
            words.title
        ))
        .message_id(Some(this))
        .references(thread);
    for to in &mail.to {
        builder = builder.to(address(to)?.into());
    }
    let built = builder
        .header(ContentType::TEXT_PLAIN)
        .body(text(alert, &words));
    built.map_err(|error| error.to_string())
}

fn text(alert: &Alert, words: &AlertWords) -> String {
    let mut lines = vec![words.title.clone(), String::new()];
    lines.extend(words.why.iter().cloned());
    if !words.what_to_do.is_empty() {
        lines.push(String::new());
        lines.push("What to do:".to_owned());
        lines.extend(words.what_to_do.iter().cloned());
    }
    lines.push(String::new());
    lines.push(format!("Alert {} of task {}.", alert.id, alert.task));
    lines.join("\r\n") + "\r\n"
}

/// The words of an error and of what caused it: a library's own are "Connection error" alone.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(one) = cause {
        let words = one.to_string();
        if !text.contains(&words) {
            text = format!("{text}: {words}");
        }
        cause = one.source();
    }
    text
}
