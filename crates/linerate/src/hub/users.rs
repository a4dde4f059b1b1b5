//! Users of the hub's pages and their API tokens: `linerate hub user`, and what the running hub knows of them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use linerate_fleet::enrolled::register::{read_private, write_private};
use linerate_hub::access::users::{LONGEST_PASSWORD, Role, Users, UsersError};
use linerate_kernel::terminal::read_hidden;

use super::arguments::{
    FolderArguments, UserAddArguments, UserCommand, UserNameArguments, UserTokenArguments,
};
use super::enrolling::now;
use super::folder;
use super::stamp::Stamp;
use crate::action::Failure;
use crate::printer::Printer;

/// The users, in the hub's folder.
const USERS: &str = "users.json";

/// The users of a running hub.
pub(super) struct Known {
    path: PathBuf,
    read: Mutex<(Option<Stamp>, Arc<Users>)>,
}

impl Known {
    pub(super) fn of(folder: &Path) -> Result<Self, Failure> {
        let path = folder.join(USERS);
        let read = Mutex::new((Stamp::of(&path), Arc::new(read(&path)?)));
        Ok(Self { path, read })
    }

    /// The users as they are now. Says what changed.
    pub(super) fn now(&self) -> Result<Arc<Users>, String> {
        let mut known = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = Stamp::of(&self.path);
        if known.0 != stamp {
            let new = Arc::new(read(&self.path).map_err(|failure| failure.to_string())?);
            for change in changes(&known.1, &new) {
                Printer::new().tell(&format!("linerate hub: {change}"));
            }
            *known = (stamp, new);
        }
        Ok(known.1.clone())
    }
}

/// What changed, a line each.
fn changes(before: &Users, after: &Users) -> Vec<String> {
    let roles = |users: &Users| -> BTreeMap<String, Role> {
        let all = users.all();
        all.map(|(name, user)| (name.to_owned(), user.role))
            .collect()
    };
    let (old, new) = (roles(before), roles(after));
    let gone = old.keys().filter(|name| !new.contains_key(*name));
    let mut lines: Vec<String> = gone
        .map(|name| format!("user {name} was removed"))
        .collect();
    for (name, role) in &new {
        let role = role.word();
        match old.get(name) {
            None => lines.push(format!("user {name} was added, {role}")),
            Some(_) if before.named(name) == after.named(name) => {}
            Some(_) => lines.push(format!("user {name} was changed, {role}")),
        }
    }
    lines
}

fn read(path: &Path) -> Result<Users, Failure> {
    let Some(text) = read_private(path)? else {
        return Ok(Users::default());
    };
    Users::from_text(&text).map_err(|error| {
        Failure::File(format!(
            "cannot read users from {}: {error}",
            path.display()
        ))
    })
}

/// `linerate hub user`.
pub(super) fn run(command: &UserCommand, printer: &Printer) -> Result<(), Failure> {
    match command {
        UserCommand::Add(arguments) => add(arguments, printer),
        UserCommand::List(arguments) => list(arguments, printer),
        UserCommand::Remove(arguments) => remove(arguments, printer),
        UserCommand::Token(arguments) => token(arguments, printer),
    }
}

/// Changes the users on disk, one change at a time.
fn change<T>(
    folder: &FolderArguments,
    change: impl FnOnce(&mut Users) -> Result<T, UsersError>,
) -> Result<T, Failure> {
    let folder = folder::given_or_usual(folder.folder.as_ref())?;
    fs::create_dir_all(&folder)
        .map_err(|error| Failure::cannot("make the folder", &folder, &error))?;
    let lock = File::open(&folder).map_err(|error| Failure::cannot("open", &folder, &error))?;
    linerate_kernel::file::lock(&lock).map_err(|error| Failure::cannot("lock", &folder, &error))?;
    let path = folder.join(USERS);
    let mut users = read(&path)?;
    let done = change(&mut users)?;
    write_private(&path, users.to_text()?.as_bytes())?;
    Ok(done)
}

fn add(arguments: &UserAddArguments, printer: &Printer) -> Result<(), Failure> {
    let password = match (&arguments.password_file, arguments.no_password) {
        (_, true) => None,
        (Some(file), false) => Some(from_file(file)?),
        (None, false) => Some(from_terminal(&arguments.name)?),
    };
    let name = &arguments.name;
    let role = arguments.role;
    let is_new = change(&arguments.folder, |users| {
        users.add(name, role, password.as_deref())
    })?;
    let word = role.word();
    let line = if is_new {
        format!("{name} is a user, {word}")
    } else {
        format!(
            "{name} is {word} now, with the new password; what {name} is logged in with has ended"
        )
    };
    Ok(printer.line(&line)?)
}

/// The first line of a file.
fn from_file(path: &Path) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let most = LONGEST_PASSWORD as u64 + 2;
    File::open(path)
        .and_then(|file| file.take(most).read_to_end(&mut bytes))
        .map_err(|error| Failure::cannot("read the password from", path, &error))?;
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::File(format!("{} is not UTF-8", path.display())))?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

fn from_terminal(name: &str) -> Result<String, Failure> {
    let ask = |prompt: &str| {
        read_hidden(prompt).map_err(|error| {
            Failure::Usage(format!(
                "cannot ask for the password: {error}; --password-file FILE names a file whose first line it is"
            ))
        })
    };
    let name = linerate_model::plain_text::PlainText::from(name);
    let password = ask(&format!("Password of {name}: "))?;
    if ask("Once more: ")? == password {
        return Ok(password);
    }
    Err(Failure::Usage(
        "the two passwords are not the same".to_owned(),
    ))
}

fn list(arguments: &FolderArguments, printer: &Printer) -> Result<(), Failure> {
    let folder = folder::given_or_usual(arguments.folder.as_ref())?;
    let users = read(&folder.join(USERS))?;
    if users.is_empty() {
        printer.line("there are no users: on loopback nobody has to log in, elsewhere the hub does not listen")?;
    }
    let now = now();
    for (name, user) in users.all() {
        let login = if user.has_password() {
            ""
        } else {
            ", cannot log in"
        };
        let tokens: Vec<String> = user
            .tokens()
            .map(|(label, made)| format!("{label} ({} days old)", now.since(made) / 86_400_000))
            .collect();
        let tokens = match tokens.as_slice() {
            [] => String::new(),
            _ => format!(", tokens: {}", tokens.join(", ")),
        };
        printer.line(&format!("{name}: {}{login}{tokens}", user.role.word()))?;
    }
    Ok(())
}

fn remove(arguments: &UserNameArguments, printer: &Printer) -> Result<(), Failure> {
    let name = &arguments.name;
    change(&arguments.folder, |users| users.remove(name))?;
    Ok(printer.line(&format!("{name} is no user any more"))?)
}

fn token(arguments: &UserTokenArguments, printer: &Printer) -> Result<(), Failure> {
    let UserTokenArguments { name, label, .. } = arguments;
    if arguments.remove {
        change(&arguments.folder, |users| users.remove_token(name, label))?;
        return Ok(printer.line(&format!("the token {label} of {name} is removed"))?);
    }
    let token = change(&arguments.folder, |users| {
        users.make_token(name, label, now())
    })?;
    Ok(printer.line(&token)?)
}

impl From<UsersError> for Failure {
    fn from(error: UsersError) -> Self {
        match error {
            UsersError::Hash(_) | UsersError::Broken(_) => Self::File(error.to_string()),
            _ => Self::Usage(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_says_what_changed() {
        let mut before = Users::default();
        before.add("ada", Role::Viewer, None).unwrap();
        before.add("eve", Role::Viewer, None).unwrap();
        before.add("same", Role::Admin, None).unwrap();
        let mut after = before.clone();
        after.remove("eve").unwrap();
        after.add("ada", Role::Admin, None).unwrap();
        after.add("bob", Role::Operator, None).unwrap();
        assert_eq!(
            changes(&before, &after),
            [
                "user eve was removed",
                "user ada was changed, admin",
                "user bob was added, operator"
            ]
        );
    }
}
