//! A tree that may be taken for certain: every edge is tested before it joins.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use canopy_optimize::FlowUnit;

use crate::error::SynthesisError;
use crate::forest::condition::{Condition, EdgeIndex};
use crate::forest::trees::{Grower, PackedTree};

/// Candidates beyond the first usable one that are tested in the hope of a heavier tree.
const CANDIDATES_MAX: usize = 6;

/// Grows a tree at `root`, as heavy as the edges met allow but at most `weight_max`, and takes it out of the network.
///
/// Of the edges that lead out of the tree, those from shallow ranks come first, thick ones before thin ones. An edge
/// (x, y) may join with at most μ copies of the tree: its capacity, or the slack of the tightest set that holds y and
/// not x. Where that is less than the weight so far, the set says where to look: the tree has entered it and should
/// not do so again, so edges within it come next (Lovász), and if none does, the weight falls to the best μ found.
///
/// * **Source.** Zhao 2026, theorem 32, with one growing tree. **Errors.** Stopped; broken if no edge has μ > 0.
/// * **Cost.** At least N−1 flows.
pub(super) fn exact_tree<C: FlowUnit>(
    condition: &mut Condition<'_, C>,
    grower: &Grower<C>,
    root: u32,
    weight_max: C,
) -> Result<PackedTree<C>, SynthesisError> {
    let weight = condition.demand(root).min(weight_max);
    condition.lower_demand(root, weight);
    let mut depths = vec![None; grower.rank_count()];
    depths[root as usize] = Some(0);
    let mut tree = PackedTree { root, weight, edges: Vec::with_capacity(grower.rank_count() - 1) };
    while tree.edges.len() + 1 < grower.rank_count() {
        let (edge, most) = next_edge(condition, grower, &tree, &depths)?;
        if most < tree.weight {
            let cut_off = tree.weight - most;
            condition.raise_demand(root, cut_off);
            for &earlier in &tree.edges {
                condition.raise(earlier, cut_off);
            }
            tree.weight = most;
        }
        condition.lower(edge, tree.weight);
        let (from, to) = grower.ends(edge);
        depths[to as usize] = depths[from as usize].map(|depth: u32| depth + 1);
        tree.edges.push(edge);
    }
    Ok(tree)
}

/// The edge to join next and how many copies of the tree may take it.
fn next_edge<C: FlowUnit>(
    condition: &mut Condition<'_, C>,
    grower: &Grower<C>,
    tree: &PackedTree<C>,
    depths: &[Option<u32>],
) -> Result<(EdgeIndex, C), SynthesisError> {
    let inside = (0_u32..).zip(depths).filter_map(|(rank, depth)| depth.map(|_| rank));
    let leads_out =
        |&edge: &EdgeIndex| depths[grower.ends(edge).1 as usize].is_none() && condition.capacity(edge) > C::ZERO;
    let candidates = inside.flat_map(|rank| grower.leaving(rank).iter().copied()).filter(leads_out);
    // Few of them are looked at, so they are not sorted.
    let mut candidates: BinaryHeap<_> = candidates
        .map(|edge| {
            let capacity = condition.capacity(edge).min(tree.weight);
            (capacity, Reverse(depths[grower.ends(edge).0 as usize]), Reverse(edge))
        })
        .collect();
    let mut best: Option<(EdgeIndex, C)> = None;
    let mut tested = 0;
    let mut critical: Option<Vec<bool>> = None;
    while let Some((wanted, _, Reverse(edge))) = candidates.pop() {
        let (from, to) = grower.ends(edge);
        if best.is_some_and(|(_, most)| most >= wanted) {
            break;
        }
        if critical.as_ref().is_some_and(|set| !set[to as usize] || !set[from as usize]) {
            continue;
        }
        let (most, tight) = condition.slack(from, to, wanted)?;
        if most == tree.weight {
            return Ok((edge, most));
        }
        if most > C::ZERO && best.is_none_or(|(_, known)| most > known) {
            best = Some((edge, most));
        }
        if tight.is_some() {
            critical = tight;
        }
        tested += usize::from(best.is_some());
        if tested > CANDIDATES_MAX {
            break;
        }
    }
    best.ok_or_else(|| SynthesisError::Broken { what: format!("a tree rooted at rank {} can not grow", tree.root) })
}
