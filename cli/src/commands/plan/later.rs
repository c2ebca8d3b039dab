//! Options of `canopy plan` that canopy's documents name and this version does not have: refused, never ignored.

use crate::exit::Failure;

/// Which of them were given.
#[derive(Debug, clap::Args)]
pub(super) struct Later {
    #[arg(long, hide = true, num_args = 0..=1)]
    link_down: Option<Vec<String>>,
    #[arg(long, hide = true, num_args = 0..=1)]
    node_down: Option<Vec<String>>,
    #[arg(long, hide = true, num_args = 0..=1)]
    degrade: Option<Vec<String>>,
}

impl Later {
    /// Fails if any was given.
    pub(super) fn refuse(&self) -> Result<(), Failure> {
        let all = [("link-down", &self.link_down), ("node-down", &self.node_down), ("degrade", &self.degrade)];
        match all.into_iter().find(|(_, given)| given.is_some()) {
            None => Ok(()),
            Some((name, _)) => Err(Failure::input(format!("--{name} is not available yet in this version"))
                .help(format!("leave --{name} out; `canopy plan --help` lists what there is"))),
        }
    }
}
