//! Plans of single ranks put together again.

use super::program::Program;

/// Why plans of single ranks are not one plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum JoinError {
    #[error("found no plan of a rank; give one for each")]
    Nothing,
    #[error("a plan has {found} ranks; give plans of one rank each")]
    Ranks { found: usize },
    #[error("the plans of ranks {first} and {rank} differ in more than their ranks; take both from one plan")]
    Head { first: u32, rank: u32 },
    #[error("rank {rank} has two plans; give one for each")]
    Twice { rank: u32 },
    #[error("rank {rank} of {rank_count} has no plan; give one for each")]
    Missing { rank: u32, rank_count: u32 },
}

/// The plan of all ranks, from those of each in any order. O(ranks log ranks + routes).
///
/// # Errors
/// [`JoinError`]: the plans are not of one rank each, of all ranks, and alike but for those and their routes.
pub fn join_rank_plans(plans: impl IntoIterator<Item = Program>) -> Result<Program, JoinError> {
    let mut plans = plans.into_iter();
    let mut whole = plans.next().ok_or(JoinError::Nothing)?;
    let first = only(&whole)?;
    for mut plan in plans {
        let rank = only(&plan)?;
        let (ranks, routes) = (std::mem::take(&mut plan.ranks), std::mem::take(&mut plan.routes));
        let kept = (std::mem::take(&mut whole.ranks), std::mem::take(&mut whole.routes));
        let is_alike = plan == whole;
        (whole.ranks, whole.routes) = kept;
        if !is_alike {
            return Err(JoinError::Head { first, rank });
        }
        whole.ranks.extend(ranks);
        whole.routes.extend(routes);
    }
    whole.ranks.sort_by_key(|rank| rank.rank);
    for (expected, found) in (0..).zip(&whole.ranks) {
        if found.rank != expected {
            let rank_count = whole.rank_count;
            return Err(match found.rank < expected {
                true => JoinError::Twice { rank: found.rank },
                false => JoinError::Missing { rank: expected, rank_count },
            });
        }
    }
    match u32::try_from(whole.ranks.len()).ok().filter(|&rank| rank < whole.rank_count) {
        Some(rank) => Err(JoinError::Missing { rank, rank_count: whole.rank_count }),
        None => Ok(whole),
    }
}

/// The rank of a plan of one.
fn only(plan: &Program) -> Result<u32, JoinError> {
    match plan.ranks.as_slice() {
        [rank] => Ok(rank.rank),
        ranks => Err(JoinError::Ranks { found: ranks.len() }),
    }
}
