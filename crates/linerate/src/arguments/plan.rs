//! The options of `linerate test` that make its plan, from the one definition in the model.

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, parser::ValueSource};
use linerate_model::plan::options::{self, Form, OPTIONS, PlanOption};
use linerate_model::plan::{Plan, PlanError};

/// The options that were given, with their values.
#[derive(Debug, Clone)]
pub(crate) struct PlanArguments {
    given: Vec<(&'static PlanOption, String)>,
}

impl PlanArguments {
    /// A test of this host.
    pub(super) fn plan(&self, host: String) -> Result<Plan, PlanError> {
        let given = self.given.iter();
        options::plan(host, given.map(|(option, text)| (*option, text.as_str())))
    }

    /// The options that were given, a word each, but for those by these names.
    pub(crate) fn words_without(&self, names: &[&str]) -> Vec<String> {
        let left = self.given.iter();
        let left = left.filter(|(option, _)| !names.iter().any(|name| option.is(name)));
        left.map(|(option, text)| match option.form {
            Form::Switch { .. } => option.long.to_owned(),
            Form::Value { .. } => format!("{}={text}", option.long),
        })
        .collect()
    }

    /// Whether this option was given.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.given.iter().any(|(option, _)| option.is(name))
    }
}

impl Args for PlanArguments {
    fn augment_args(command: Command) -> Command {
        command.args(OPTIONS.iter().map(arg))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for PlanArguments {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = OPTIONS.iter().filter_map(|option| {
            let typed = matches.value_source(id(option)) == Some(ValueSource::CommandLine);
            let text = match option.form {
                Form::Switch { .. } => None,
                Form::Value { .. } => matches.get_one(id(option)).cloned(),
            };
            typed.then(|| (option, text.unwrap_or_default()))
        });
        Ok(Self {
            given: given.collect(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn id(option: &'static PlanOption) -> &'static str {
    option.long.trim_start_matches('-')
}

fn arg(option: &'static PlanOption) -> Arg {
    let arg = Arg::new(id(option))
        .long(id(option))
        .short(option.short.chars().nth(1))
        .help(option.help)
        .default_value(option.default)
        .conflicts_with_all(option.conflicts.iter().map(|name| &name[2..]));
    let arg = match option.alias.strip_prefix("--") {
        Some(alias) => arg.alias(alias),
        None => arg,
    };
    match option.form {
        Form::Switch { .. } => arg.action(ArgAction::SetTrue),
        Form::Value { name, .. } => arg
            .value_name(name)
            // It is read again once all are known.
            .value_parser(move |text: &str| {
                let scratch = &mut Plan::new("");
                option.read(scratch, text).map(|()| text.to_owned())
            }),
    }
}
