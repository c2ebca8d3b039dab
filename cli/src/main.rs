//! `canopy`: the command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    canopy_commands::main()
}
