//! Trees of pieces side by side: one of each makes one of the network.

use std::collections::BTreeSet;

use canopy_optimize::Stop;
use canopy_topology::LinkIndex;
use num_integer::Integer;

use crate::error::SynthesisError;
use crate::forest::sums::lanes::Lanes;
use crate::forest::sums::piece::Piece;
use crate::forest::{RoutedHop, RoutedTrees, ask, packing};

/// Equal trees that have no root yet.
pub(super) struct FreeTree {
    pub(super) weight: u64,
    /// One less than terminals, in any order and direction.
    pub(super) hops: Vec<FreeHop>,
}

/// A hop that can be passed either way.
pub(super) struct FreeHop {
    pub(super) ends: [u32; 2],
    /// From the first end to the second: routes of [`FreeTrees::routes`] with the number of trees on each.
    pub(super) carriers: Vec<(usize, u64)>,
}

/// Trees of the network with the routes they use.
pub(super) struct FreeTrees {
    pub(super) tree_count: u64,
    pub(super) trees: Vec<FreeTree>,
    /// Routes from one terminal to another, with the way back over the same lanes.
    pub(super) routes: Vec<[Vec<LinkIndex>; 2]>,
}

impl FreeTrees {
    /// Puts so many trees in the place of each. No number may exceed 64 bits.
    pub(super) fn scale(&mut self, factor: u64) {
        self.tree_count *= factor;
        for tree in &mut self.trees {
            tree.weight *= factor;
            let carriers = tree.hops.iter_mut().flat_map(|hop| &mut hop.carriers);
            carriers.for_each(|(_, count)| *count *= factor);
        }
    }
}

/// Puts the lists of all pieces side by side, all of one length, and cuts where any of them changes. A hop of several
/// routes is cut where they have different ends, which happens in clusters only.
///
/// * **Source.** Our own. **Errors.** Stopped; more trees than 64 bits count, or hops than there is room for.
/// * **Cost.** O(trees made · ranks).
pub(super) fn glue(
    lanes: &Lanes<'_>,
    pieces: &[Piece<'_>],
    (solution_of, solutions): &(Vec<usize>, Vec<RoutedTrees>),
    stop: &dyn Stop,
) -> Result<FreeTrees, SynthesisError> {
    let mut tree_count = 1_u64;
    for solution in solutions {
        let count = solution.trees_per_root;
        let common = tree_count.checked_mul(count / count.gcd(&tree_count));
        let too_many = SynthesisError::TooManyTrees { trees_per_rank: count.into(), rank_count: lanes.rank_count };
        tree_count = common.ok_or(too_many)?;
    }
    let mut routes = Vec::new();
    let mut cuts: BTreeSet<u64> = BTreeSet::from([tree_count]);
    let mut strips = Vec::new();
    for (piece, &solution) in pieces.iter().zip(solution_of) {
        ask(stop)?;
        let trees = &solutions[solution];
        let strip =
            Strip { trees, first_route: routes.len(), scale: tree_count / trees.trees_per_root, tree: 0, start: 0 };
        routes.extend(network_routes(lanes, piece, trees));
        strip.add_cuts(&routes, lanes, &mut cuts);
        packing::require_room(cuts.len(), lanes.terminal_count as usize)?;
        strips.push(strip);
    }
    let mut trees = Vec::with_capacity(cuts.len());
    let mut start = 0;
    for end in cuts {
        ask(stop)?;
        let mut hops = Vec::with_capacity(lanes.terminal_count as usize - 1);
        for strip in &mut strips {
            strip.add_hops(start..end, &routes, lanes, &mut hops);
        }
        trees.push(FreeTree { weight: end - start, hops });
        start = end;
    }
    Ok(FreeTrees { tree_count, trees, routes })
}

/// The routes of a piece in links of the network, and back.
fn network_routes<'a>(
    lanes: &'a Lanes<'_>,
    piece: &Piece<'_>,
    trees: &'a RoutedTrees,
) -> impl Iterator<Item = [Vec<LinkIndex>; 2]> + use<'a> {
    let both = |(lane, is_up): (usize, bool)| {
        let (origin, is_flipped) = piece.origins[lane];
        let [up, down] = lanes.list[origin].links;
        if is_up == is_flipped { [down, up] } else { [up, down] }
    };
    let links: Vec<[LinkIndex; 2]> =
        piece.shape.links().into_iter().map(|(_, lane, is_up)| both((lane, is_up))).collect();
    trees.routes.iter().map(move |route| {
        let there = route.iter().map(|link| links[link.index()][0]).collect();
        [there, route.iter().rev().map(|link| links[link.index()][1]).collect()]
    })
}

/// The trees of a piece, side by side.
struct Strip<'a> {
    trees: &'a RoutedTrees,
    /// Where its routes begin.
    first_route: usize,
    /// Trees of the network for each of its own.
    scale: u64,
    /// The tree that is next, and where it starts.
    tree: usize,
    start: u64,
}

impl Strip<'_> {
    /// The ranks at the ends of a hop's route.
    fn ends(&self, route: usize, routes: &[[Vec<LinkIndex>; 2]], lanes: &Lanes<'_>) -> [u32; 2] {
        let links = &routes[self.first_route + route][0];
        let [first, last] = [links.first(), links.last()].map(|link| *link.expect("a route has a link"));
        lanes.ends_of(first, last)
    }

    fn carriers(&self, hop: &RoutedHop) -> &[(canopy_schedule::RouteIndex, u64)] {
        &self.trees.carriers[hop.carriers.start as usize..hop.carriers.end as usize]
    }

    fn add_cuts(&self, routes: &[[Vec<LinkIndex>; 2]], lanes: &Lanes<'_>, cuts: &mut BTreeSet<u64>) {
        let mut start = 0;
        for tree in &self.trees.trees {
            for hop in &self.trees.hops[tree.hops.start as usize..tree.hops.end as usize] {
                let mut at = start;
                for pair in self.carriers(hop).windows(2) {
                    at += pair[0].1 * self.scale;
                    let ends = |route: canopy_schedule::RouteIndex| self.ends(route.index(), routes, lanes);
                    if ends(pair[0].0) != ends(pair[1].0) {
                        cuts.insert(at);
                    }
                }
            }
            start += tree.multiplicity * self.scale;
            cuts.insert(start);
        }
    }

    /// Adds the hops of the trees in a range, within which nothing changes.
    fn add_hops(
        &mut self,
        range: std::ops::Range<u64>,
        routes: &[[Vec<LinkIndex>; 2]],
        lanes: &Lanes<'_>,
        hops: &mut Vec<FreeHop>,
    ) {
        let mut tree = &self.trees.trees[self.tree];
        if range.start == self.start + tree.multiplicity * self.scale {
            self.start = range.start;
            self.tree += 1;
            tree = &self.trees.trees[self.tree];
        }
        for hop in &self.trees.hops[tree.hops.start as usize..tree.hops.end as usize] {
            let mut at = self.start;
            let mut carriers = Vec::with_capacity(1);
            let mut ends = None;
            for &(route, count) in self.carriers(hop) {
                let end = at + count * self.scale;
                let (first, last) = (at.max(range.start), end.min(range.end));
                if first < last {
                    ends.get_or_insert_with(|| self.ends(route.index(), routes, lanes));
                    carriers.push((self.first_route + route.index(), last - first));
                }
                at = end;
            }
            let ends = ends.expect("a hop has routes for all trees");
            hops.push(FreeHop { ends, carriers });
        }
    }
}
