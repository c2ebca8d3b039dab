//! From packed trees to the schedule: trees on routes, and phases of trees in one table.

use std::collections::BTreeMap;

use canopy_optimize::FlowUnit;
use canopy_schedule::{Action, Carrier, Forest, Hop, Phase, RouteInterner, Tree};
use canopy_topology::{LinkIndex, Rank};
use num_integer::Integer;

use crate::error::SynthesisError;
use crate::forest::logical::Strand;
use crate::forest::trees::{Grower, PackedTree};
use crate::forest::{RoutedHop, RoutedTree, RoutedTrees};
use crate::progress::{Progress, Stage};

/// Gives each hop of each tree as many strands of its edge as the tree weighs, a single one wherever one is thick enough.
///
/// * **Out.** Trees by root, heaviest first. **Errors.** Broken, if an edge carries more trees than it has strands for.
/// * **Cost.** O(hops · strands per edge).
pub(super) fn lay<C: FlowUnit>(
    grower: &Grower<C>,
    mut strands: BTreeMap<(u32, u32), Vec<Strand<C>>>,
    mut trees: Vec<PackedTree<C>>,
    trees_per_root: u64,
    progress: &dyn Progress,
) -> Result<RoutedTrees, SynthesisError> {
    trees.sort_by_key(|tree| (tree.root, std::cmp::Reverse(tree.weight)));
    let total = trees.len() as u64;
    let mut laid = Vec::with_capacity(trees.len());
    for (done, tree) in (0..).zip(trees) {
        progress.report(Stage::Routes, done, total);
        let mut hops = Vec::with_capacity(tree.edges.len());
        for &edge in &tree.edges {
            let (from, to) = grower.ends(edge);
            let carriers = strands.get_mut(&(from, to)).and_then(|strands| draw(strands, tree.weight));
            let carriers = carriers.ok_or_else(|| SynthesisError::Broken {
                what: format!("the trees on the edge {from} -> {to} outnumber its routes"),
            })?;
            hops.push(RoutedHop { from, to, carriers });
        }
        laid.push(RoutedTree { root: tree.root, multiplicity: count(tree.weight), hops });
    }
    progress.report(Stage::Routes, total, total);
    Ok(RoutedTrees { trees_per_root, trees: laid })
}

/// Takes `amount` from the first strand that has so much left, else from the thickest ones; `None` if all together
/// have less.
fn draw<C: FlowUnit>(strands: &mut [Strand<C>], amount: C) -> Option<Vec<(Vec<LinkIndex>, u64)>> {
    let mut missing = amount;
    let mut carriers = Vec::new();
    while missing > C::ZERO {
        let enough = strands.iter().position(|strand| strand.amount >= missing);
        let thickest = || (0..strands.len()).rev().max_by_key(|&position| strands[position].amount);
        let strand = &mut strands[enough.or_else(thickest)?];
        let part = strand.amount.min(missing);
        if part == C::ZERO {
            return None;
        }
        strand.amount -= part;
        missing -= part;
        carriers.push((strand.links.clone(), count(part)));
    }
    Some(carriers)
}

fn count<C: FlowUnit>(amount: C) -> u64 {
    u64::try_from(amount.to_u128()).expect("no tree outweighs the trees of its root, which fit 64 bits")
}

/// A forest being put together, phase by phase.
pub(super) struct Assembly {
    forest: Forest,
    routes: RouteInterner,
}

impl Assembly {
    /// A forest without phases, in chunks that every phase can be divided into: the least common multiple of their k.
    pub(super) fn new(trees_per_root: impl Iterator<Item = u64>, rank_count: u32) -> Result<Self, SynthesisError> {
        let mut common = 1_u128;
        for count in trees_per_root.map(u128::from) {
            // At most two phases, so at most 128 bits.
            common *= count / count.gcd(&common);
        }
        let fits = common.checked_mul(rank_count.into()).is_some_and(|all| u64::try_from(all).is_ok());
        let too_many = SynthesisError::TooManyTrees { trees_per_rank: common, rank_count };
        let chunks_per_share = u64::try_from(common).ok().filter(|_| fits).ok_or(too_many)?;
        let (routes, carriers, hops, phases) = Default::default();
        Ok(Self {
            forest: Forest { chunks_per_share, routes, carriers, hops, phases },
            routes: RouteInterner::default(),
        })
    }

    /// Appends a phase of these trees; a reducing one turns them around, with the routes of the transposed network
    /// they were found on.
    pub(super) fn add_phase(
        &mut self,
        action: Action,
        routed: &RoutedTrees,
        behind: &[LinkIndex],
    ) -> Result<(), SynthesisError> {
        let scale = self.forest.chunks_per_share / routed.trees_per_root;
        let mut trees = Vec::with_capacity(routed.trees.len());
        for tree in &routed.trees {
            let start = position(self.forest.hops.len())?;
            match action {
                Action::Copy => {
                    for hop in &tree.hops {
                        self.add_hop(hop.from, hop.to, &hop.carriers, scale)?;
                    }
                }
                Action::Reduce => {
                    for hop in tree.hops.iter().rev() {
                        let carriers: Vec<(Vec<LinkIndex>, u64)> =
                            hop.carriers.iter().map(|(route, count)| (turned(route, behind), *count)).collect();
                        self.add_hop(hop.to, hop.from, &carriers, scale)?;
                    }
                }
            }
            let hops = start..position(self.forest.hops.len())?;
            trees.push(Tree { root: Rank::new(tree.root), multiplicity: tree.multiplicity * scale, hops });
        }
        self.forest.phases.push(Phase { action, trees });
        Ok(())
    }

    fn add_hop(
        &mut self,
        from: u32,
        to: u32,
        carriers: &[(Vec<LinkIndex>, u64)],
        scale: u64,
    ) -> Result<(), SynthesisError> {
        let start = position(self.forest.carriers.len())?;
        for (route, count) in carriers {
            self.forest.carriers.push(Carrier { route: self.routes.intern(route), chunk_count: count * scale });
        }
        let carriers = start..position(self.forest.carriers.len())?;
        self.forest.hops.push(Hop { from: Rank::new(from), to: Rank::new(to), carriers });
        Ok(())
    }

    /// The forest.
    pub(super) fn finish(mut self) -> Forest {
        self.forest.routes = self.routes.finish();
        self.forest
    }
}

/// The route of the transposed network as one of the network itself: backwards, link by link.
fn turned(route: &[LinkIndex], behind: &[LinkIndex]) -> Vec<LinkIndex> {
    route.iter().rev().map(|link| behind[link.index()]).collect()
}

fn position(length: usize) -> Result<u32, SynthesisError> {
    u32::try_from(length).map_err(|_| SynthesisError::TooManyHops)
}
