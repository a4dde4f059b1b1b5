//! From `[[channel]]` to where alerts are sent.

use linerate_document::{Table, Value};

use super::keys::CHANNEL;
use super::read::Result;
use crate::watched::{Channel, ChannelKind, Mail};

const WEB_SCHEMES: [&str; 2] = ["http://", "https://"];
const MAIL_SCHEMES: [&str; 2] = ["smtp://", "smtps://"];

/// One channel; `known` are those before it.
pub(super) fn channel(value: &Value<'_>, known: &[Channel]) -> Result<Channel> {
    let table = value.table(&CHANNEL)?;
    let kind_value = table.needed("kind")?;
    let kinds = [("alertmanager", 0), ("webhook", 1), ("mail", 2)];
    let kind = kind_value.word(&kinds)?;
    let word = kind_value.words()?;
    let (webhook, mail) = (kind == 1, kind == 2);
    let url_value = table.needed("url")?;
    let url = url_value.words()?;
    let schemes = if mail { MAIL_SCHEMES } else { WEB_SCHEMES };
    let rest = schemes.iter().find_map(|scheme| url.strip_prefix(scheme));
    let [first, second] = schemes;
    url_value.refuse(
        rest.is_none_or(str::is_empty),
        format!("it does not begin with {first} or {second}"),
    )?;
    let secret_file = table.read("secret_file", |value| {
        let path = std::path::PathBuf::from(value.words()?);
        value.refuse(!path.is_absolute(), "it is not an absolute path")?;
        value.refuse(
            !(webhook || mail),
            "only what a webhook gets is signed, and only mail servers want a password",
        )?;
        Ok(path)
    })?;
    let kind = match rest {
        Some(rest) if mail => {
            let wrapped = url.starts_with(MAIL_SCHEMES[1]);
            ChannelKind::Mail(mail_of(&table, url_value, rest, wrapped)?)
        }
        _ if webhook => ChannelKind::Webhook,
        _ => ChannelKind::Alertmanager,
    };
    for key in ["from", "to"] {
        table.read(key, |value| {
            value.refuse(!mail, "only mail has senders and receivers")
        })?;
    }
    if let ChannelKind::Mail(mail) = &kind {
        let alone = mail.user.is_some() != secret_file.is_some();
        let why = "a user needs a secret_file with the password, and a secret_file a user";
        url_value.refuse(alone, why)?;
    }
    let name = table.or("name", word, Value::words)?;
    value.refuse(
        known.iter().any(|other| other.name == name),
        format!("another channel has the name '{name}'"),
    )?;
    Ok(Channel {
        name: name.into(),
        kind,
        url,
        secret_file,
    })
}

/// The server of a URL without its scheme, and who writes to whom.
fn mail_of(table: &Table<'_>, url: &Value<'_>, rest: &str, wrapped: bool) -> Result<Mail> {
    let (user, place) = match rest.rsplit_once('@') {
        Some((user, place)) => (Some(user.to_owned()), place),
        None => (None, rest),
    };
    let no_password = "the password belongs into a file: secret_file";
    url.refuse(
        user.as_ref().is_some_and(|user| user.contains(':')),
        no_password,
    )?;
    url.refuse(
        user.as_ref().is_some_and(String::is_empty),
        "its user is empty",
    )?;
    let place = place.trim_end_matches('/');
    // Of an IPv6 address in brackets the colons are no port's.
    let port_at = place.rfind(':').filter(|at| !place[*at..].contains(']'));
    let (server, port) = match port_at {
        Some(at) => (&place[..at], Some(&place[at + 1..])),
        None => (place, None),
    };
    let server = server.trim_start_matches('[').trim_end_matches(']');
    let plain = |c: char| c.is_ascii_alphanumeric() || ".-:_".contains(c);
    url.refuse(
        server.is_empty() || !server.chars().all(plain),
        "the server's name or address is not one",
    )?;
    let read = port.map(str::parse::<u16>).transpose();
    url.refuse(
        !matches!(read, Ok(None | Some(1..))),
        "its port is not one of 1 to 65535",
    )?;
    let port = read.ok().flatten();
    let mut to = Vec::new();
    for one in table.needed("to")?.list()? {
        to.push(address(&one)?);
    }
    table
        .needed("to")?
        .refuse(to.is_empty(), "nobody gets the mails")?;
    Ok(Mail {
        server: server.to_owned(),
        port,
        wrapped,
        user,
        from: address(table.needed("from")?)?,
        to,
    })
}

/// A mail address: the server decides whether it exists.
fn address(value: &Value<'_>) -> Result<String> {
    let text = value.words()?;
    let parts = text.split_once('@');
    let is_one = parts.is_some_and(|(name, at)| !name.is_empty() && !at.is_empty());
    let odd = |c: char| c.is_whitespace() || c.is_control() || "<>,;\"".contains(c);
    value.refuse(!is_one || text.contains(odd), "it is not a mail address")?;
    Ok(text)
}
