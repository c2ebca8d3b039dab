//! The rank that a file is for, and the reasons to refuse it.

use canopy_schedule::{Collective, CollectiveKind, ProgramError, RankProgram, Stages, actions_of};

use crate::msccl::Profile;
use crate::mscclpp::ExecutionLowerError;
use crate::oneccl;
use crate::target::Format;

/// One rank of an exchange in stages.
///
/// The rule must have passed [`check_stages_until`](canopy_schedule::check_stages_until): files of another one may be
/// wrong.
#[derive(Clone, Copy, Debug)]
pub struct RankRequest<'a> {
    /// The rule.
    pub stages: &'a Stages,
    /// What the exchange is for: allgather, reduce-scatter or allreduce.
    pub collective: Collective,
    /// Ranks of the machine, N.
    pub rank_count: u32,
    /// The rank, below N.
    pub rank: u32,
}

/// Why a rank gets no file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum RankFileError {
    #[error(transparent)]
    Program(#[from] ProgramError),
    #[error(
        "the exchange has {found} phases that are not those of {collective}; ask for the collective it was made for"
    )]
    Phases { collective: CollectiveKind, found: usize },
    #[error("the exchange sends what rank {rank} does not have; check it first")]
    Broken { rank: u32 },
    #[error(
        "{rank_count} ranks with {chunks_per_share} chunks per share are over the limit of {limit} chunks; use fewer \
         chunks"
    )]
    Chunks { rank_count: u32, chunks_per_share: u64, limit: u64 },
    #[error(
        "a file for {profile} needs at least {need} XML nodes, one for each rank, and readers keep {limit}; choose \
         oneccl-xml or mscclpp-json"
    )]
    Nodes { profile: Profile, need: u64, limit: u64 },
    #[error("no {format} is made for one rank; use json, oneccl-xml or mscclpp-json, or convert the whole plan")]
    Whole { format: Format },
    #[error(transparent)]
    Messages(#[from] oneccl::LowerError),
    #[error(transparent)]
    Execution(#[from] ExecutionLowerError),
}

impl RankFileError {
    /// Whether the plan is right, and a runtime has no room for it or no word for what it does.
    pub const fn is_of_runtime(&self) -> bool {
        match self {
            Self::Nodes { .. } | Self::Whole { .. } | Self::Messages(_) | Self::Execution(_) | Self::Chunks { .. } => {
                true
            }
            Self::Program(_) | Self::Phases { .. } | Self::Broken { .. } => false,
        }
    }
}

impl RankRequest<'_> {
    /// The program of the rank, and the number of chunks of all shares, at most `limit`. O(N + what the program costs).
    pub(super) fn program(&self, limit: u32) -> Result<(RankProgram, u32), RankFileError> {
        let Self { stages, collective, rank_count, rank } = *self;
        if actions_of(collective.kind()) != Some(stages.actions.as_slice()) {
            return Err(RankFileError::Phases { collective: collective.kind(), found: stages.actions.len() });
        }
        let chunks_per_share = stages.chunks_per_share;
        let chunks = chunks_per_share.checked_mul(rank_count.into()).filter(|&chunks| chunks > 0);
        let chunks = chunks.and_then(|chunks| u32::try_from(chunks).ok()).filter(|&chunks| chunks <= limit);
        let chunks = chunks.ok_or(RankFileError::Chunks { rank_count, chunks_per_share, limit: limit.into() })?;
        Ok((stages.program(rank, rank_count)?, chunks))
    }
}

/// Refuses MSCCL XML for this number of ranks: each is a node in the file of every other one.
///
/// * **Errors.** [`RankFileError::Nodes`] with the nodes of a file without any step, where a profile's readers keep
///   fewer.
/// * **Cost.** O(1).
pub fn require_msccl_ranks(rank_count: u32, profile: Profile) -> Result<(), RankFileError> {
    let (need, limit) = (u64::from(rank_count) + 1, u64::from(profile.limits().nodes));
    if need > limit { Err(RankFileError::Nodes { profile, need, limit }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn msccl_files_are_refused_from_the_first_rank_that_no_reader_keeps() {
        let profile = Profile::Msccl;
        let limit = profile.limits().nodes;
        assert_eq!(require_msccl_ranks(limit - 1, profile), Ok(()));
        let refused = require_msccl_ranks(limit, profile).unwrap_err();
        assert_eq!(refused, RankFileError::Nodes { profile, need: u64::from(limit) + 1, limit: limit.into() });
        assert!(refused.to_string().contains("4096 XML nodes"), "{refused}");
    }
}
