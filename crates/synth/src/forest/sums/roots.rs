//! Roots of trees where they were asked for, instead of at the centres.
//!
//! A tree that is gone up and down loads its links alike wherever its root is. So roots can be had in any proportion:
//! trees are cut into such parts, and each part is given to one of the ranks where it is lowest that still want some.

use canopy_optimize::Stop;
use num_integer::Integer;

use crate::error::SynthesisError;
use crate::forest::sums::glue::{FreeHop, FreeTree, FreeTrees};
use crate::forest::sums::hung::Hung;
use crate::forest::{ask, packing};

/// Cuts trees into parts, each with a root, so that the roots are in proportion to weights by rank.
///
/// Greedily: tree by tree, its lowest ranks first. Not the least heights there could be in sum, which would be a
/// transport problem.
///
/// * **Out.** Trees with roots; [`FreeTrees::tree_count`] is the least multiple that divides. **Errors.** Stopped; more
///   trees than 64 bits count, or hops than there is room for. **Cost.** O((trees + ranks) · ranks).
pub(super) fn allot(
    free: FreeTrees,
    weights: &[u64],
    terminal_count: u32,
    stop: &dyn Stop,
) -> Result<(FreeTrees, Vec<u32>), SynthesisError> {
    let rank_count = u32::try_from(weights.len()).expect("ranks are counted in u32");
    let FreeTrees { tree_count, trees, routes } = free;
    let sum: u128 = weights.iter().map(|&weight| u128::from(weight)).sum();
    let factor = sum / sum.gcd(&u128::from(tree_count));
    let all = u128::from(tree_count).checked_mul(factor).and_then(|all| u64::try_from(all).ok());
    let too_many = || SynthesisError::TooManyTrees { trees_per_rank: u128::from(tree_count), rank_count };
    let (all, factor) = all.zip(u64::try_from(factor).ok()).ok_or_else(too_many)?;
    let quota = |&weight: &u64| u64::try_from(u128::from(weight) * u128::from(all) / sum).expect("a part of all trees");
    let mut wanted: Vec<u64> = weights.iter().map(quota).collect();
    let roots_max = weights.iter().filter(|&&weight| weight > 0).count();
    packing::require_room(trees.len() + roots_max, terminal_count as usize)?;

    let (mut parts, mut roots) = (Vec::new(), Vec::new());
    for tree in &trees {
        ask(stop)?;
        let heights = Hung::heights(tree, terminal_count)
            .ok_or_else(|| SynthesisError::Broken { what: "the trees of pieces do not make one tree".to_owned() })?;
        let mut by_height: Vec<u32> = (0..rank_count).filter(|&rank| wanted[rank as usize] > 0).collect();
        by_height.sort_by_key(|&rank| heights[rank as usize]);
        let weight = tree.weight * factor;
        let mut start = 0;
        for root in by_height {
            let part = wanted[root as usize].min(weight - start);
            if part == 0 {
                break;
            }
            wanted[root as usize] -= part;
            parts.push(part_of(tree, factor, start..start + part));
            roots.push(root);
            start += part;
        }
        assert!(start == weight, "ranks want as many trees as there are");
    }
    Ok((FreeTrees { tree_count: all, trees: parts, routes }, roots))
}

/// Some of equal trees, of which there are `factor` for each that there was.
fn part_of(tree: &FreeTree, factor: u64, range: std::ops::Range<u64>) -> FreeTree {
    let part = |hop: &FreeHop| {
        let mut carriers = Vec::with_capacity(1);
        let mut start = 0;
        for &(route, count) in &hop.carriers {
            let end = start + count * factor;
            let (first, last) = (range.start.max(start), range.end.min(end));
            if first < last {
                carriers.push((route, last - first));
            }
            start = end;
        }
        FreeHop { ends: hop.ends, carriers }
    };
    FreeTree { weight: range.end - range.start, hops: tree.hops.iter().map(part).collect() }
}
