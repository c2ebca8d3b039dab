//! Completion of a packing that got stuck: trees for the last demands are grown over edges that have too little left, and
//! then ranks move trees from one edge to another until none carries too much.
//!
//! Most of the demands are served by trees that fit. The rest is divided into *change*: trees whose weights are powers of
//! two. As many roots are divided as a rank has edges; then each rank can fill each of its edges to the last unit, like a
//! till from which every amount can be paid, and no other tree has to be divided for it.
//!
//! Nothing is tested: trees for all demands within all capacities are what was asked.

use std::cmp::Reverse;

use canopy_optimize::{FlowUnit, Stop, Stopped};

use crate::forest::ask;
use crate::forest::parents::Choice;
use crate::forest::trees::{Grower, PackedTree, Remainder};

/// Passes over all ranks in which trees are moved as they are.
const PASSES: u32 = 2;

/// Trees for all demands, from trees for most of them; `None` if some rank finds no place for its trees.
///
/// * **In.** What edges can carry; trees within that; what these leave, of edges and of demands.
/// * **Out.** Trees by root, within the capacities. **Source.** Our own. **Errors.** Stopped.
/// * **Cost.** O(trees · edges · depth).
pub(super) fn completed<C: FlowUnit>(
    grower: &Grower<C>,
    capacities: &[C],
    mut trees: Vec<PackedTree<C>>,
    mut left: Remainder<C>,
    stop: &dyn Stop,
) -> Result<Option<Vec<PackedTree<C>>>, Stopped> {
    for (root, weight) in change(grower, &left.demands) {
        ask(stop)?;
        let Some(tree) = grower.grow_over_full_edges(capacities, &left, root, weight) else { return Ok(None) };
        left.take(&tree);
        trees.push(tree);
    }
    let Some(mut choice) = Choice::of_trees(grower, capacities, &trees, stop)? else { return Ok(None) };
    for _ in 0..PASSES {
        choice.refill(stop)?;
    }
    choice.relieve_all(stop)
}

/// The demands left in parts, greatest first: in powers of two and a rest for as many roots as a rank has edges, as they are
/// for others.
fn change<C: FlowUnit>(grower: &Grower<C>, demands: &[C]) -> Vec<(u32, C)> {
    let ranks = 0..u32::try_from(grower.rank_count()).expect("ranks are counted in u32");
    let divided = ranks.map(|rank| grower.entering(rank).len()).max().unwrap_or_default();
    let part = |amount: u128| C::try_from_u128(amount).expect("a part of a demand");
    let mut parts: Vec<(u32, C)> = Vec::new();
    let wanting = (0_u32..).zip(demands).filter(|&(_, &demand)| demand > C::ZERO);
    for (place, (root, demand)) in wanting.enumerate() {
        let mut rest = demand.to_u128();
        let mut coin = 1;
        while place < divided && rest > 2 * coin {
            parts.push((root, part(coin)));
            rest -= coin;
            coin *= 2;
        }
        parts.push((root, part(rest)));
    }
    parts.sort_by_key(|&(root, weight)| (Reverse(weight), root));
    parts
}
