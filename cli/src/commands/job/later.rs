//! Options of the job hooks that canopy's documents name and this version does not have: refused, never ignored.

use crate::exit::Failure;

/// Which of them were given.
#[derive(Debug, clap::Args)]
pub(super) struct Later {
    #[arg(long, hide = true, num_args = 0..=1)]
    partition: Option<Vec<String>>,
    #[arg(long, hide = true, num_args = 0..=1)]
    runtime: Option<Vec<String>>,
}

impl Later {
    /// Fails if any was given, and says what serves instead.
    pub(super) fn refuse(&self) -> Result<(), Failure> {
        let (name, instead) = match (&self.partition, &self.runtime) {
            (Some(_), _) => ("partition", "name the topology itself, T"),
            (None, Some(_)) => ("runtime", "name the runtime with `--profile`"),
            (None, None) => return Ok(()),
        };
        Err(Failure::input(format!("--{name} is not available yet in this version")).help(instead))
    }
}
