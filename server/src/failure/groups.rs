//! Why the groups of a job are not planned together.

use canopy_training::job::{BesideError, RatesError, ShareError};

/// Why there is no common rate, or no plan of a group in its share.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GroupsFailure {
    #[error(transparent)]
    Rates(#[from] RatesError),
    #[error(transparent)]
    Share(#[from] ShareError),
    #[error("running[{position}]: {error}")]
    Running { position: usize, error: BesideError },
    #[error(
        "group {group} sends through `{node}`, a rank of other groups, and no runtime forwards there; let ranks forward \
         nothing for other groups (`members_only`, or `forward: false` in a job file), or ask for format json alone"
    )]
    Forwards { group: String, node: String },
}
