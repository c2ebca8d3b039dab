//! Options of `canopy plan` that canopy's documents name and this version does not have: refused, never ignored.

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use crate::exit::Failure;

/// Their names.
const NAMES: [&str; 3] = ["link-down", "node-down", "degrade"];

/// Which of them were given.
#[derive(Debug)]
pub(super) struct Later {
    given: Vec<&'static str>,
}

impl Later {
    /// Fails if any was given.
    pub(super) fn refuse(&self) -> Result<(), Failure> {
        match self.given.first() {
            None => Ok(()),
            Some(name) => Err(Failure::input(format!("--{name} is not available yet in this version"))
                .help(format!("leave --{name} out; `canopy plan --help` lists what there is"))),
        }
    }
}

impl FromArgMatches for Later {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |name: &&'static str| matches.value_source(name) == Some(ValueSource::CommandLine);
        Ok(Self { given: NAMES.into_iter().filter(given).collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Later {
    fn augment_args(command: Command) -> Command {
        let hidden = |name| Arg::new(name).long(name).hide(true).num_args(0..=1).action(ArgAction::Append);
        NAMES.into_iter().fold(command, |command, name| command.arg(hidden(name)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
