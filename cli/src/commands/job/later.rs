//! Options of the job hooks that canopy's documents name and this version does not have: refused, never ignored.

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use crate::exit::Failure;

/// Their names, and what serves instead.
const NAMES: [(&str, &str); 2] =
    [("partition", "name the topology itself, T"), ("runtime", "name the runtime with `--profile`")];

/// Which of them were given.
#[derive(Debug)]
pub(super) struct Later {
    given: Vec<(&'static str, &'static str)>,
}

impl Later {
    /// Fails if any was given.
    pub(super) fn refuse(&self) -> Result<(), Failure> {
        match self.given.first() {
            None => Ok(()),
            Some((name, instead)) => {
                Err(Failure::input(format!("--{name} is not available yet in this version")).help(*instead))
            }
        }
    }
}

impl FromArgMatches for Later {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = |(name, _): &(&str, &str)| matches.value_source(name) == Some(ValueSource::CommandLine);
        Ok(Self { given: NAMES.into_iter().filter(given).collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for Later {
    fn augment_args(command: Command) -> Command {
        let hidden = |(name, _)| Arg::new(name).long(name).hide(true).num_args(0..=1).action(ArgAction::Append);
        NAMES.into_iter().fold(command, |command, name| command.arg(hidden(name)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
