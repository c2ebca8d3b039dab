//! The greatest common rate of all groups: column generation, then the same in fractions.

use canopy_canonical::{Budget, WORK_STANDARD};
use canopy_optimize::Stop;

use crate::found::{GroupOptimum, GroupOptions};
use crate::layout::Layout;
use crate::problem::{GroupProblem, GroupsError};
use crate::search::{End, Search};
use crate::symmetry::Symmetry;

/// Computes the greatest common rate of all groups.
///
/// * **Source.** The program over trees, and its dual, in which each group pays for the cheapest tree over its members
///   in the distances that prices of links make: exact by column generation, as the cheapest tree is found in
///   polynomial time.
/// * **Out.** A rate with the units that reach it, and lengths that prove the bound. Equal, but where their numbers are
///   too long, or `rounds_max` is reached.
/// * **Errors.** [`GroupsError::NoWay`], [`GroupsError::Stopped`], [`GroupsError::Frozen`].
/// * **Cost.** In each round, a search of the network for each commodity class (for each member of one whose links
///   differ by direction), and simplex steps of (rows + commodities)².
pub fn group_optimum(
    problem: &GroupProblem,
    options: GroupOptions,
    stop: &dyn Stop,
) -> Result<GroupOptimum, GroupsError> {
    if let Some(group) = problem.frozen().iter().position(Option::is_some) {
        return Err(GroupsError::Frozen { group });
    }
    let is_stopped = || stop.is_requested();
    let budget = Budget { work_max: WORK_STANDARD, stop: &is_stopped };
    let symmetry = symmetry(problem, options, budget);
    let layout = Layout::new(problem, &symmetry);
    let mut search = Search::new(&layout, stop)?;
    let solved = match search.run(options, stop)? {
        End::Proven(solved) => solved,
        End::Unproven | End::Zero => search.approximate()?,
    };
    Ok(search.optimum(&solved))
}

/// The symmetries of a problem, as far as they are asked for and found.
pub(crate) fn symmetry(problem: &GroupProblem, options: GroupOptions, budget: Budget<'_>) -> Symmetry {
    let found = if options.uses_symmetry { Symmetry::of(problem, budget).ok() } else { None };
    found.unwrap_or_else(|| Symmetry::none(problem))
}
