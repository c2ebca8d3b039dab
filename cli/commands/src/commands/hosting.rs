//! Commands of a server that runs in this process, and of the files that it keeps.

mod audit;
mod serve;
mod tokens;

use clap::Subcommand;

use crate::exit::Failure;

#[derive(Debug, Subcommand)]
pub(super) enum Hosting {
    Serve(Box<serve::ServeArgs>),
    #[command(subcommand)]
    Tokens(tokens::TokensCommand),
    #[command(subcommand)]
    Audit(audit::AuditCommand),
}

impl Hosting {
    /// Runs the command to its end; a server ends in order when it is interrupted.
    pub(super) fn run(self) -> Result<(), Failure> {
        match self {
            Self::Serve(args) => serve::run(*args),
            Self::Tokens(command) => tokens::run(command),
            Self::Audit(command) => audit::run(command),
        }
    }
}
