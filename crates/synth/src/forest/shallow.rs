//! Trees of limited depth, at the expense of the rate.
//!
//! How deep trees must be at the optimal rate is not known, so this is another method, after the local search for
//! facility location. It begins with one tree per root: as flat as trees can be, or grown by the hop that costs least
//! (`growth`). The price of a link rises exponentially with its load (`prices`), and ranks are hung elsewhere in
//! their trees as long as that is cheaper (`relief`). Then each tree is divided into halves that may become
//! different, and so on (`packing`). The rate is whatever the loads come to, and exact. Any depth that the network
//! allows is kept.

mod distances;
mod editing;
mod growth;
mod hanging;
mod packing;
mod prices;
mod relief;
#[cfg(test)]
mod tests;

use canopy_optimize::{Fraction, Stop};
use canopy_schedule::RouteInterner;
use canopy_topology::Topology;

use crate::error::SynthesisError;
use crate::forest::assembly::position;
use crate::forest::instance::Roots;
use crate::forest::{RoutedHop, RoutedTree, RoutedTrees};
use crate::progress::Progress;
use distances::require_depth;
use hanging::Hanging;
use packing::{Packed, Packing};

/// Different trees per root, at most: more of them spread the load more evenly.
pub(super) const PARTS_MAX: u64 = 8;

/// Divisions in succession that may bring nothing before the search ends.
const VAIN_MAX: u32 = 2;

/// Greatest number of hops between the root of a tree and a rank. O(hops).
pub(super) fn depth_max(solution: &RoutedTrees, rank_count: u32) -> u32 {
    let mut depths = vec![0; rank_count as usize];
    let mut most = 0;
    for tree in &solution.trees {
        depths[tree.root as usize] = 0;
        for hop in &solution.hops[tree.hops.start as usize..tree.hops.end as usize] {
            let depth = depths[hop.from as usize] + 1;
            depths[hop.to as usize] = depth;
            most = most.max(depth);
        }
    }
    most
}

/// Trees of at most so many hops from root to rank, of that of the numbers of trees per root that makes the fastest
/// schedule; the first of them among equals.
///
/// * **Source.** Our own; Arya and others 2004 for the changes, Plotkin, Shmoys and Tardos 1995 for the prices.
/// * **In.** A topology whose ranks reach each other, balanced or not; numbers of trees per root, each twice the one
///   before; `enough`, a time per share that need not be beaten. **Out.** The best schedule found.
/// * **Errors.** [`SynthesisError::TooShallow`] if no schedule is that flat; too many trees or hops, stopped.
/// * **Cost.** O(trees · ranks · links between switches), some seconds at most.
pub(super) fn shallow(
    topology: &Topology,
    roots: Roots<'_>,
    counts: &[u64],
    depth_max: u32,
    enough: Fraction,
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<RoutedTrees, SynthesisError> {
    require_depth(topology, roots, depth_max, stop)?;
    // Trees of all ranks may cross a link on the way to each rank.
    let rank_count = topology.rank_count();
    let weights = topology.ranks().map(|rank| (rank.number(), roots.weight(rank)));
    let units = weights.clone().fold(0_u128, |sum, (_, weight)| sum + u128::from(weight)).max(rank_count.into());
    let most = counts.iter().copied().max().unwrap_or(0);
    let crossings = units.saturating_mul(rank_count.into()).saturating_mul(most.into());
    if u64::try_from(crossings).is_err() {
        return Err(SynthesisError::TooManyTrees { trees_per_rank: most.into(), rank_count });
    }
    let weighted = weights.filter(|&(_, weight)| weight > 0).collect();
    let mut packing = Packing::new(topology, weighted, depth_max, enough, stop)?;
    let mut stages = stages(counts).into_iter();
    let (count, parts) = stages.next().expect("a number of trees is given");
    packing.start(count, progress)?;
    packing.divide(count, parts);
    let (mut best, mut best_count, mut in_vain) = (packing.relieve(count)?, count, 0);
    for (count, parts) in stages {
        if best.time <= enough || in_vain == VAIN_MAX || !packing.divide(count, parts) {
            break;
        }
        let next = packing.relieve(count)?;
        in_vain += 1;
        if next.time < best.time {
            (best, best_count, in_vain) = (next, count, 0);
        }
    }
    let Packed { trees, .. } = best;
    lay(best_count, trees, &packing.into_routes())
}

/// Numbers of trees per root, each with how many of them may differ: of a single number first one, then twice as many.
fn stages(counts: &[u64]) -> Vec<(u64, u64)> {
    let doubled = || (0..).map(|exponent| 1 << exponent).take_while(|&parts| parts <= PARTS_MAX);
    match counts {
        [count] => doubled().map(|parts| (*count, parts)).collect(),
        _ => counts.iter().map(|&count| (count, PARTS_MAX)).collect(),
    }
}

/// Writes trees down, equal ones once, hops in an order in which data can flow down.
fn lay(count: u64, mut trees: Vec<Hanging>, known: &RouteInterner) -> Result<RoutedTrees, SynthesisError> {
    trees.sort_by(|a, b| (a.root, &a.hops).cmp(&(b.root, &b.hops)));
    trees.dedup_by(|next, kept| {
        let are_equal = (next.root, &next.hops) == (kept.root, &kept.hops);
        if are_equal {
            kept.weight += next.weight;
        }
        are_equal
    });
    trees.sort_by_key(|tree| (tree.root, std::cmp::Reverse(tree.weight)));
    let mut routes = RouteInterner::default();
    let (mut laid, mut hops, mut carriers) = (Vec::with_capacity(trees.len()), Vec::new(), Vec::new());
    for tree in trees {
        let start = position(hops.len())?;
        let mut order: Vec<_> = (0_u32..).zip(&tree.hops).filter_map(|(to, hop)| Some((to, hop, hop.route?))).collect();
        order.sort_by_key(|(_, hop, _)| hop.depth);
        for (to, hop, route) in order {
            let first = position(carriers.len())?;
            let links = known.get(route).expect("routes of hops are known");
            carriers.push((routes.intern(links), tree.weight));
            hops.push(RoutedHop { from: hop.from, to, carriers: first..first + 1 });
        }
        laid.push(RoutedTree { root: tree.root, multiplicity: tree.weight, hops: start..position(hops.len())? });
    }
    Ok(RoutedTrees { trees_per_root: count, trees: laid, hops, carriers, routes: routes.finish() })
}
