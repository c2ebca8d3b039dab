//! Sets that are joined with each other more closely than with others, without a switch of their own that would say so:
//! the groups of a dragonfly, whose routers are all joined directly.

use std::collections::BTreeMap;

use canopy_optimize::{Stop, Stopped};

use crate::forest::clusters::Finder;
use crate::forest::{ASK_INTERVAL, ask};

/// Neighbours compared at most, some nanoseconds each: beyond it the network is too dense to have communities.
const WORK_MAX: usize = 1 << 25;

/// Components of the links whose ends have many neighbours in common.
///
/// A link is *close* if its ends share more than half as many neighbours as either shares with any of its own. Within a
/// group that is joined all with all, every pair shares the others; a link to another group has next to nothing beside
/// it. Components whose inner links have no more capacity than their boundary are left out: those are chance.
///
/// Ranks, free switches and outermost clusters count as one node each.
///
/// * **Out.** Disjoint sets of nodes, each sorted, with ranks in at least two of the nodes counted. **Errors.** Stopped.
/// * **Cost.** O(Σ over links of the degrees of their ends), at most [`WORK_MAX`].
pub(super) fn communities(finder: &Finder, stop: &dyn Stop) -> Result<Vec<Vec<u32>>, Stopped> {
    let units = Units::new(finder);
    let work: usize = units.around.iter().map(|around| around.len().saturating_mul(2 * around.len())).sum();
    if work > WORK_MAX {
        return Ok(Vec::new());
    }
    let mut shared: Vec<Vec<usize>> = Vec::with_capacity(units.around.len());
    for around in &units.around {
        ask(stop)?;
        shared.push(around.keys().map(|&other| common(around, &units.around[other])).collect());
    }
    let most: Vec<usize> = shared.iter().map(|counts| counts.iter().copied().max().unwrap_or_default()).collect();
    let mut components = Vec::new();
    let mut is_taken = vec![false; units.around.len()];
    for start in 0..units.around.len() {
        if std::mem::replace(&mut is_taken[start], true) {
            continue;
        }
        let mut members = vec![start];
        let mut next = 0;
        while let Some(&unit) = members.get(next) {
            if next.is_multiple_of(ASK_INTERVAL as usize) {
                ask(stop)?;
            }
            next += 1;
            for (&other, &count) in units.around[unit].keys().zip(&shared[unit]) {
                let is_close = 2 * count > most[unit].max(most[other]);
                if is_close && !std::mem::replace(&mut is_taken[other], true) {
                    members.push(other);
                }
            }
        }
        let is_set_of_ranks = members.iter().filter(|&&unit| units.holds_ranks[unit]).count() > 1;
        if is_set_of_ranks && units.holds_together(&members) {
            let mut nodes: Vec<u32> = members.iter().flat_map(|&unit| finder.whole(units.first[unit])).collect();
            nodes.sort_unstable();
            components.push(nodes);
        }
    }
    Ok(components)
}

/// How many keys two maps have in common.
fn common(one: &BTreeMap<usize, u128>, other: &BTreeMap<usize, u128>) -> usize {
    let (few, many) = if one.len() < other.len() { (one, other) } else { (other, one) };
    few.keys().filter(|key| many.contains_key(key)).count()
}

/// The network with every outermost cluster as one node.
struct Units {
    /// The lowest node of each.
    first: Vec<u32>,
    /// Whether there are ranks in each.
    holds_ranks: Vec<bool>,
    /// Neighbours of each, with the capacity of the links between.
    around: Vec<BTreeMap<usize, u128>>,
}

impl Units {
    fn new(finder: &Finder) -> Self {
        let mut of_cluster: Vec<Option<usize>> = vec![None; finder.clusters.len()];
        let mut first = Vec::new();
        let mut of_node = Vec::with_capacity(finder.neighbours.len());
        for (node, cluster) in (0_u32..).zip(&finder.outermost) {
            let known = cluster.and_then(|cluster| of_cluster[cluster]);
            let unit = known.unwrap_or(first.len());
            if unit == first.len() {
                first.push(node);
                cluster.iter().for_each(|&cluster| of_cluster[cluster] = Some(unit));
            }
            of_node.push(unit);
        }
        let mut around = vec![BTreeMap::new(); first.len()];
        for (&unit, neighbours) in of_node.iter().zip(&finder.neighbours) {
            for &(other, capacity) in neighbours {
                let other = of_node[other as usize];
                if other != unit {
                    *around[unit].entry(other).or_default() += capacity;
                }
            }
        }
        // Ranks come before switches.
        let holds_ranks = first.iter().map(|&node| finder.whole(node)[0] < finder.rank_count).collect();
        Self { first, holds_ranks, around }
    }

    /// Whether links between members have more capacity than those to others.
    fn holds_together(&self, members: &[usize]) -> bool {
        let mut sorted = members.to_vec();
        sorted.sort_unstable();
        let (mut inner, mut boundary) = (0_u128, 0_u128);
        for &unit in members {
            for (other, &capacity) in &self.around[unit] {
                let sum = if sorted.binary_search(other).is_ok() { &mut inner } else { &mut boundary };
                *sum = sum.saturating_add(capacity);
            }
        }
        inner > boundary
    }
}
