//! What carries bytes to a host and back: a command line with the host in it, to which the script is added as its last
//! word.

use std::process::Command;

use linerate_model::units::Nanos;

/// Stands for the host in a template.
const HOST: &str = "{host}";

/// What a template lacks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CarrierError {
    /// It has no place for the host.
    #[error("`{template}` does not say where the host's name belongs: write {HOST} there")]
    NoHost {
        /// The template.
        template: String,
    },
    /// A quote does not end.
    #[error("a quote in `{template}` does not end")]
    OpenQuote {
        /// The template.
        template: String,
    },
}

/// A command line that reaches a host: it runs its last word there with a POSIX shell, with our standard streams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Carrier {
    words: Vec<String>,
}

impl Carrier {
    /// The system's ssh, which asks nobody anything. It gives up connecting after `connect_timeout`, in whole seconds.
    pub fn ssh(connect_timeout: Nanos) -> Self {
        let seconds = connect_timeout.0.div_ceil(1_000_000_000).max(1);
        let timeout = format!("ConnectTimeout={seconds}");
        let options = [
            "BatchMode=yes",
            &timeout,
            "ServerAliveInterval=5",
            "ServerAliveCountMax=4",
            // The user's own master is used; none is started that would stay.
            "ControlMaster=no",
            "ClearAllForwardings=yes",
            "ForwardX11=no",
        ];
        let mut words = vec!["ssh".to_owned(), "-T".to_owned()];
        for option in options {
            words.extend(["-o".to_owned(), option.to_owned()]);
        }
        words.extend([HOST.to_owned(), "--".to_owned()]);
        Self { words }
    }

    /// Reads a template such as `env LINERATE_HOST={host} sh -c`. Words are separated by blanks; quotes and backslashes
    /// are a shell's, and nothing else of a shell is.
    pub fn template(template: &str) -> Result<Self, CarrierError> {
        let template_of = || template.to_owned();
        let words = words(template).ok_or_else(|| CarrierError::OpenQuote {
            template: template_of(),
        })?;
        if !words.iter().any(|word| word.contains(HOST)) {
            return Err(CarrierError::NoHost {
                template: template_of(),
            });
        }
        Ok(Self { words })
    }

    /// The program that is run.
    pub fn program(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    /// The command that runs a script on a host.
    pub(crate) fn command(&self, host: &str, script: &str) -> Command {
        let mut words = self.words.iter().map(|word| word.replace(HOST, host));
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).arg(script);
        command
    }
}

/// The words of a command line; `None` where a quote does not end.
fn words(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => word.get_or_insert_default().push(letters.next()?),
            (None, letter) if letter.is_whitespace() => words.extend(word.take()),
            (_, letter) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(command: &Command) -> Vec<String> {
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        words
            .map(|word| word.to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn a_template_is_cut_into_words_and_the_script_is_one() {
        let carrier = Carrier::template("  env 'A B'={host} \"x y\" z\\ w '' sh -c ").unwrap();
        let command = carrier.command("n1", "a b; c");
        assert_eq!(
            line(&command),
            ["env", "A B=n1", "x y", "z w", "", "sh", "-c", "a b; c"]
        );
    }

    #[test]
    fn ssh_asks_nobody_and_gives_up_in_time() {
        let command = Carrier::ssh(Nanos::from_millis(2_500)).command("n1", "script");
        let line = line(&command).join(" ");
        assert!(line.starts_with("ssh -T -o BatchMode=yes -o ConnectTimeout=3 "));
        assert!(line.ends_with(" n1 -- script"), "{line}");
    }

    #[test]
    fn a_template_that_reaches_no_host_is_refused() {
        let error = |template| Carrier::template(template).unwrap_err().to_string();
        assert!(error("sh -c").contains("{host}"));
        assert!(error("").contains("{host}"));
        assert!(error("sh 'x {host}").contains("quote"));
    }
}
