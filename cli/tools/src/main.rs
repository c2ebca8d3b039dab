//! `canopy-tools`: the command line with all commands; `canopy` runs it for those that it does not have.

use std::process::ExitCode;

fn main() -> ExitCode {
    canopy_commands::main()
}
