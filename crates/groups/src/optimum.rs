//! The greatest common rate of all groups: column generation, then the same in fractions.

use canopy_canonical::{Budget, WORK_STANDARD};
use canopy_optimize::Stop;

use crate::found::{GroupOptimum, GroupOptions};
use crate::layout::Layout;
use crate::problem::{GroupProblem, GroupsError};
use crate::search::Search;
use crate::symmetry::Symmetry;

/// Computes the greatest common rate of all groups.
///
/// * **Source.** The program over trees, and its dual, in which each group pays for the cheapest tree over its members
///   in the distances that prices of links make: exact by column generation, as the cheapest tree is found in
///   polynomial time.
/// * **Out.** A rate with the units that reach it, and lengths that prove the bound. Equal, but where their numbers are
///   too long, or `rounds_max` is reached.
/// * **Errors.** [`GroupsError::NoWay`], [`GroupsError::Stopped`].
/// * **Cost.** In each round, a search of the network for each commodity class (for each member of one whose links
///   differ by direction), and simplex steps of (rows + commodities)².
pub fn group_optimum(
    problem: &GroupProblem,
    options: GroupOptions,
    stop: &dyn Stop,
) -> Result<GroupOptimum, GroupsError> {
    let is_stopped = || stop.is_requested();
    let budget = Budget { work_max: WORK_STANDARD, stop: &is_stopped };
    let found = if options.uses_symmetry { Symmetry::of(problem, None, budget).ok() } else { None };
    let symmetry = found.unwrap_or_else(|| Symmetry::none(problem));
    let layout = Layout::new(problem, &symmetry, budget);
    Search::new(&layout, stop)?.run(options, stop)
}
