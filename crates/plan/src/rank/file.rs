//! The file of one rank in the format of a runtime.

use super::execution::{ExecutionSliceOptions, lower_execution_slice, write_execution_slice};
use super::messages::lower_oneccl_rank;
use super::request::{RankFileError, RankRequest, require_msccl_ranks};
use super::steps::{rank_steps, write_rank_steps};
use crate::msccl::Profile;
use crate::mscclpp::ExecutorProfile;
use crate::oneccl::{LowerOptions, write_rank_plan};
use crate::plan_file::PlanRule;
use crate::target::{Format, Target};

/// Blocks of a GPU that exchange side by side.
const BLOCKS_MIN: u32 = 16;

/// How the file of a rank is made. All ranks need the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankFileOptions {
    /// Label in the file.
    pub name: String,
    /// Input and output share memory.
    pub in_place: bool,
    /// Largest message in bytes, inclusive.
    pub bytes_max: u64,
}

/// Makes the file of one rank: for `json` its steps, for a runtime what its loader reads there.
///
/// The rule must have passed [`check_stages_until`](canopy_schedule::check_stages_until).
///
/// * **Errors.** [`RankFileError`]: no such rank, a runtime that has no room for so many, a format without such files.
/// * **Cost.** O(N + exceptions + Σ digits · places), and the bytes of the file.
pub fn rank_file(
    PlanRule { collective, rank_count, stages }: &PlanRule,
    rank: u32,
    target: Target,
    options: &RankFileOptions,
) -> Result<Vec<u8>, RankFileError> {
    let request = RankRequest { stages, collective: *collective, rank_count: *rank_count, rank };
    let RankFileOptions { name, in_place, bytes_max } = options.clone();
    let whole = || RankFileError::Whole { format: target.format };
    let text = match target.format {
        Format::Json => write_rank_steps(&rank_steps(&request)?),
        Format::OnecclXml => {
            let options = LowerOptions { name, in_place, bytes_max: Some(bytes_max), instances: 1 };
            write_rank_plan(&lower_oneccl_rank(&request, &options)?)
        }
        Format::MscclppJson => {
            let profile: ExecutorProfile = target.profile.parse().map_err(|_| whole())?;
            let options = ExecutionSliceOptions { name, in_place, bytes_max, profile, blocks_min: BLOCKS_MIN };
            write_execution_slice(&lower_execution_slice(&request, &options)?)
        }
        Format::MscclXml => {
            let profile: Profile = target.profile.parse().map_err(|_| whole())?;
            require_msccl_ranks(*rank_count, profile)?;
            return Err(whole());
        }
        Format::RoutesXml => return Err(whole()),
    };
    Ok(text.into_bytes())
}
