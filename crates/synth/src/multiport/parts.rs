//! What is cut into parts that take different trees.

use std::cmp::Reverse;

use canopy_direct::multiport::{Grid, Trees};
use num_integer::Integer as _;

/// What travels on a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payload {
    /// On the tree of each rank its share.
    Shares,
    /// On the tree of the root the message.
    Message,
    /// On the tree of the root the shares of all ranks that a link leads to.
    Shared,
    /// On the tree of each rank its blocks for all ranks that a link leads to.
    Blocks,
}

/// Trees for so much of every share, block or message, compared with other parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) weight: u64,
    pub(super) trees: Trees,
}

/// Trees along one dimension after the other: shorter lines first, so that fewer shares are there when the longer ones are
/// passed; where a link carries what is for all beyond it, longer ones first. Of blocks links carry as many in any order: along
/// lines whose ranks are far apart by number first, so that what a message has for the other lines is in a row.
///
/// Source: Pham 2026, section 4.2.2, DO.
pub(super) fn in_one_order(grid: &Grid, payload: Payload, roots: &[u32]) -> Trees {
    let mut order: Vec<usize> = (0..grid.sides().len()).collect();
    match payload {
        Payload::Shares | Payload::Message => {}
        Payload::Shared => order.reverse(),
        Payload::Blocks => order.sort_by_key(|&dimension| Reverse(grid.stride(dimension))),
    }
    grid.trees_along(&order, roots)
}

/// Trees along all dimensions, from one on.
fn in_order(grid: &Grid, first: usize, roots: &[u32]) -> Trees {
    let dimensions = grid.sides().len();
    let order: Vec<usize> = (first..dimensions).chain(0..first).collect();
    grid.trees_along(&order, roots)
}

/// A part for each dimension to begin with, so that in every step each has the links of a dimension to itself.
///
/// Weights are the best of three kinds: equal ones, those that balance the first step, and those that balance the last one.
///
/// * **Source.** Pham 2026, sections 4.2.2 (two dimensions) and 4.5 (more); weights by what is sent are our own.
pub(super) fn in_all_orders(grid: &Grid, payload: Payload, roots: &[u32]) -> Vec<Part> {
    let sides: Vec<u64> = grid.sides().iter().map(|&side| side.into()).collect();
    let dimensions = sides.len();
    let last = |first: usize| sides[(first + dimensions - 1) % dimensions];
    let candidates: [Vec<u64>; 3] = [vec![1; dimensions], sides.clone(), (0..dimensions).map(last).collect()];
    let candidates = candidates.into_iter().map(|weights| {
        let common = weights.iter().fold(0, |common: u64, weight| common.gcd(weight)).max(1);
        weights.into_iter().map(|weight| weight / common).collect::<Vec<u64>>()
    });
    // The first of the best: fewer chunks.
    let best = candidates.reduce(|best, next| {
        let (own, others) = (cost(&sides, payload, &next), cost(&sides, payload, &best));
        if own.0 * others.1 < others.0 * own.1 { next } else { best }
    });
    let weights = best.unwrap_or_default();
    let parts =
        weights.into_iter().zip(0..).map(|(weight, first)| Part { weight, trees: in_order(grid, first, roots) });
    match parts.collect::<Vec<Part>>() {
        // One rank.
        parts if parts.is_empty() => vec![Part { weight: 1, trees: in_order(grid, 0, roots) }],
        parts => parts,
    }
}

/// What the busiest link of each step carries, added up, in shares or blocks: a fraction.
fn cost(sides: &[u64], payload: Payload, weights: &[u64]) -> (u128, u128) {
    let dimensions = sides.len();
    let side = |dimension: usize| u128::from(sides[dimension % dimensions]);
    let total = weights.iter().map(|&weight| u128::from(weight)).sum();
    let carried = |first: usize, step: usize| -> u128 {
        let before = || (first..first + step).map(side).product::<u128>();
        let after = || (first + step + 1..first + dimensions).map(side).product::<u128>();
        match payload {
            Payload::Shares => before(),
            Payload::Message => 1,
            Payload::Shared => after(),
            Payload::Blocks => before() * after(),
        }
    };
    let longest = |step: usize| {
        (0..).zip(weights).map(|(first, &weight)| u128::from(weight) * carried(first, step)).max().unwrap_or(0)
    };
    ((0..dimensions).map(longest).sum(), total)
}
