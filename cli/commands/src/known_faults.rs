//! The argument that says what to make of faults that a server knows, and what is said where they were taken into account.

use canopy_proto::v1;

use crate::messages::{advise, warn};

/// What is made of the faults that the server knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::Args)]
pub(crate) struct FaultArgs {
    /// Plan around the faults that the server knows, or ignore them
    #[arg(long, value_name = "WHAT", value_enum, default_value = "apply")]
    faults: FaultsName,
}

/// What is made of known faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum FaultsName {
    /// Plan around them
    Apply,
    /// Plan for the healthy network
    Ignore,
}

impl FaultArgs {
    /// The same on the wire.
    pub(crate) fn policy(self) -> v1::FaultPolicy {
        match self.faults {
            FaultsName::Apply => v1::FaultPolicy::Apply,
            FaultsName::Ignore => v1::FaultPolicy::Ignore,
        }
    }

    /// Whether they are left out of account.
    pub(crate) fn ignores(self) -> bool {
        self.faults == FaultsName::Ignore
    }
}

/// What is worth a line on the terminal: which devices ranks are matters only where a file for a runtime is written.
pub(crate) fn worth_saying(warnings: &[v1::Warning], is_for_runtime: bool) -> impl Iterator<Item = &v1::Warning> {
    warnings.iter().filter(move |warning| is_for_runtime || warning.code != "RANK_MAP_ASSUMED")
}

/// Prints something that an answer warns of.
pub(crate) fn say_warning(v1::Warning { code, text }: &v1::Warning) {
    warn(format_args!("{code}: {}", text.replace("FAULT_POLICY_IGNORE", "--faults ignore")));
}

/// Prints what an answer warns of; of faults, with the way to have the `what` of the healthy network.
pub(crate) fn say_warnings<'a>(warnings: impl IntoIterator<Item = &'a v1::Warning>, what: &str) {
    for warning in warnings {
        say_warning(warning);
        if warning.code == "FAULTS_APPLIED" {
            advise(format_args!("add `--faults ignore` for the {what} of the healthy network"));
        }
    }
}
