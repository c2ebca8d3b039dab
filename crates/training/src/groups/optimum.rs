//! The greatest common rate of all groups: column generation, then the same in fractions.

use canopy_canonical::{Budget, WORK_STANDARD};

use crate::groups::found::{GroupOptimum, GroupOptions};
use crate::groups::layout::Layout;
use crate::groups::patience::Patience;
use crate::groups::problem::{GroupProblem, GroupsError};
use crate::groups::search::{End, Search};
use crate::groups::symmetry::Symmetry;

/// Computes the greatest common rate of all groups.
///
/// * **Source.** The program over trees, and its dual, in which each group pays for the cheapest tree over its members
///   in the distances that prices of links make: exact by column generation, as the cheapest tree is found in
///   polynomial time.
/// * **Out.** A rate with the units that reach it, and lengths that prove the bound. Equal, but where their numbers are
///   too long, or `rounds_max` is reached.
/// * **Errors.** [`GroupsError::NoWay`], [`GroupsError::Stopped`], [`GroupsError::NoRoom`], [`GroupsError::Frozen`].
/// * **Cost.** In each round, a search of the network for each commodity class (for each member of one whose links
///   differ by direction), and simplex steps of (rows + commodities)². Memory of 32 · (rows + commodities)² bytes, for
///   the inverse of the basis, and for the units of all rounds; it is taken of the room before it is allocated.
pub fn group_optimum(
    problem: &GroupProblem,
    options: GroupOptions,
    patience: Patience<'_>,
) -> Result<GroupOptimum, GroupsError> {
    if let Some(group) = problem.frozen().iter().position(Option::is_some) {
        return Err(GroupsError::Frozen { group });
    }
    let symmetry = symmetry(problem, options, patience);
    let layout = Layout::new(problem, &symmetry, patience.stop)?;
    let mut search = Search::new(&layout, patience)?;
    let solved = match search.run(options, patience)? {
        End::Proven(solved) => solved,
        End::Unproven | End::Zero => search.approximate(patience.stop)?,
    };
    Ok(search.optimum(&solved))
}

/// The symmetries of a problem, as far as they are asked for and found.
pub(crate) fn symmetry(problem: &GroupProblem, options: GroupOptions, patience: Patience<'_>) -> Symmetry {
    let budget = Budget { work_max: WORK_STANDARD, stop: &|| patience.is_over() };
    let found = if options.uses_symmetry { Symmetry::of(problem, budget).ok() } else { None };
    found.unwrap_or_else(|| Symmetry::none(problem))
}
