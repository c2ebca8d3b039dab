//! From packed trees to the schedule: trees on routes, and phases of trees in one table.

use std::ops::Range;

use canopy_optimize::{FlowUnit, Stop};
use canopy_schedule::{Action, Carrier, Forest, Hop, Phase, RouteIndex, RouteInterner, RouteTable, Tree};
use canopy_topology::{LinkIndex, Rank};
use num_integer::Integer;

use crate::error::SynthesisError;
use crate::forest::logical::{Strand, Strands};
use crate::forest::trees::{Grower, PackedTree};
use crate::forest::{ASK_INTERVAL, RoutedHop, RoutedTree, RoutedTrees, ask};
use crate::progress::{Progress, Stage};

/// Gives each hop of each tree as many strands of its edge as the tree weighs, a single one wherever one is thick enough.
///
/// * **Out.** Trees by root, heaviest first. **Errors.** Stopped; broken, if an edge carries more trees than it has
///   strands for.
/// * **Cost.** O(hops · strands per edge).
pub(super) fn lay<C: FlowUnit>(
    grower: &Grower<C>,
    mut strands: Strands<C>,
    mut trees: Vec<PackedTree<C>>,
    trees_per_root: u64,
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<RoutedTrees, SynthesisError> {
    trees.sort_by_key(|tree| (tree.root, std::cmp::Reverse(tree.weight)));
    let mut of_edges: Vec<Vec<(Strand<C>, Option<RouteIndex>)>> = Vec::with_capacity(grower.edge_count());
    for edge in 0..grower.edge_count() {
        if edge.is_multiple_of(ASK_INTERVAL as usize) {
            ask(stop)?;
        }
        let of_edge = strands.remove(&grower.ends(edge)).unwrap_or_default();
        of_edges.push(of_edge.into_iter().map(|strand| (strand, None)).collect());
    }
    let total = trees.len() as u64;
    let mut laid = Layer { routes: RouteTable::default(), carriers: Vec::new(), hops: Vec::new() };
    let mut routed = Vec::with_capacity(trees.len());
    for (done, tree) in (0..).zip(trees) {
        progress.report(Stage::Routes, done, total);
        let start = position(laid.hops.len())?;
        for (&edge, place) in tree.edges.iter().zip(0_u32..) {
            if place % ASK_INTERVAL == 0 {
                ask(stop)?;
            }
            let (from, to) = grower.ends(edge);
            let carriers = laid.draw(&mut of_edges[edge], tree.weight)?.ok_or_else(|| SynthesisError::Broken {
                what: format!("the trees on the edge {from} -> {to} outnumber its routes"),
            })?;
            laid.hops.push(RoutedHop { from, to, carriers });
        }
        let hops = start..position(laid.hops.len())?;
        routed.push(RoutedTree { root: tree.root, multiplicity: count(tree.weight), hops });
    }
    progress.report(Stage::Routes, total, total);
    let Layer { routes, carriers, hops } = laid;
    Ok(RoutedTrees { trees_per_root, trees: routed, hops, carriers, routes })
}

/// The tables of the trees laid so far.
struct Layer {
    /// Strands of one edge differ in their routes, those of two anyway.
    routes: RouteTable,
    carriers: Vec<(RouteIndex, u64)>,
    hops: Vec<RoutedHop>,
}

impl Layer {
    /// Takes `amount` from the first strand that has so much left, else from the thickest ones; `None` if all together
    /// have less.
    fn draw<C: FlowUnit>(
        &mut self,
        strands: &mut [(Strand<C>, Option<RouteIndex>)],
        amount: C,
    ) -> Result<Option<Range<u32>>, SynthesisError> {
        let start = position(self.carriers.len())?;
        let mut missing = amount;
        while missing > C::ZERO {
            let enough = strands.iter().position(|(strand, _)| strand.amount >= missing);
            let thickest = || (0..strands.len()).rev().max_by_key(|&position| strands[position].0.amount);
            let Some((strand, route)) = enough.or_else(thickest).map(|position| &mut strands[position]) else {
                return Ok(None);
            };
            let part = strand.amount.min(missing);
            if part == C::ZERO {
                return Ok(None);
            }
            strand.amount -= part;
            missing -= part;
            let route = *route.get_or_insert_with(|| self.routes.push(&strand.links));
            self.carriers.push((route, count(part)));
        }
        Ok(Some(start..position(self.carriers.len())?))
    }
}

pub(super) fn count<C: FlowUnit>(amount: C) -> u64 {
    u64::try_from(amount.to_u128()).expect("no tree outweighs the trees of its root, which fit 64 bits")
}

/// A forest being put together, phase by phase.
pub(super) struct Assembly<'a> {
    forest: Forest,
    routes: Routes,
    stop: &'a dyn Stop,
}

/// The routes of a forest.
enum Routes {
    /// Of one phase, whose routes are different already.
    OfOne(RouteTable),
    /// Of several phases, which may have routes in common.
    OfSeveral(RouteInterner),
}

impl Routes {
    fn add(&mut self, links: &[LinkIndex]) -> RouteIndex {
        match self {
            Self::OfOne(table) => table.push(links),
            Self::OfSeveral(table) => table.intern(links),
        }
    }
}

impl<'a> Assembly<'a> {
    /// A forest without phases, in chunks that every phase can be divided into: the least common multiple of their k,
    /// for each unit of the weights of shares.
    pub(super) fn new(
        trees_per_root: impl Iterator<Item = u64>,
        phase_count: usize,
        (rank_count, weight_total): (u32, u128),
        stop: &'a dyn Stop,
    ) -> Result<Self, SynthesisError> {
        let mut common = 1_u128;
        for count in trees_per_root.map(u128::from) {
            // At most two phases, so at most 128 bits.
            common *= count / count.gcd(&common);
        }
        let fits = common.checked_mul(weight_total).is_some_and(|all| u64::try_from(all).is_ok());
        let too_many = SynthesisError::TooManyTrees { trees_per_rank: common, rank_count };
        let chunks_per_share = u64::try_from(common).ok().filter(|_| fits).ok_or(too_many)?;
        let (routes, carriers, hops, phases) = Default::default();
        Ok(Self {
            forest: Forest { chunks_per_share, routes, carriers, hops, phases },
            routes: match phase_count {
                1 => Routes::OfOne(RouteTable::default()),
                _ => Routes::OfSeveral(RouteInterner::default()),
            },
            stop,
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
        let mut phase = PhaseRoutes { action, routed, behind, known: vec![None; routed.routes.len()] };
        self.forest.hops.reserve_exact(routed.hops.len());
        self.forest.carriers.reserve_exact(routed.carriers.len());
        let scale = self.forest.chunks_per_share / routed.trees_per_root;
        let mut trees = Vec::with_capacity(routed.trees.len());
        for tree in &routed.trees {
            ask(self.stop)?;
            let start = position(self.forest.hops.len())?;
            let hops = &routed.hops[tree.hops.start as usize..tree.hops.end as usize];
            match action {
                Action::Copy => {
                    for hop in hops {
                        self.add_hop(hop.from, hop.to, hop, &mut phase, scale)?;
                    }
                }
                Action::Reduce => {
                    for hop in hops.iter().rev() {
                        self.add_hop(hop.to, hop.from, hop, &mut phase, scale)?;
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
        hop: &RoutedHop,
        phase: &mut PhaseRoutes<'_>,
        scale: u64,
    ) -> Result<(), SynthesisError> {
        let start = position(self.forest.carriers.len())?;
        for &(route, count) in &phase.routed.carriers[hop.carriers.start as usize..hop.carriers.end as usize] {
            let route = phase.route(route, &mut self.routes);
            self.forest.carriers.push(Carrier { route, chunk_count: count * scale });
        }
        let carriers = start..position(self.forest.carriers.len())?;
        self.forest.hops.push(Hop { from: Rank::new(from), to: Rank::new(to), carriers });
        Ok(())
    }

    /// The forest.
    pub(super) fn finish(mut self) -> Forest {
        self.forest.routes = match self.routes {
            Routes::OfOne(table) => table,
            Routes::OfSeveral(table) => table.finish(),
        };
        self.forest
    }
}

/// Where the routes of a solution are in the table of the forest.
struct PhaseRoutes<'a> {
    action: Action,
    routed: &'a RoutedTrees,
    behind: &'a [LinkIndex],
    /// Those that have been asked for.
    known: Vec<Option<RouteIndex>>,
}

impl PhaseRoutes<'_> {
    fn route(&mut self, route: RouteIndex, table: &mut Routes) -> RouteIndex {
        *self.known[route.index()].get_or_insert_with(|| {
            let links = self.routed.routes.get(route).expect("carriers name routes of their own table");
            match self.action {
                Action::Copy => table.add(links),
                Action::Reduce => table.add(&turned(links, self.behind)),
            }
        })
    }
}

/// The route of the transposed network as one of the network itself: backwards, link by link.
fn turned(route: &[LinkIndex], behind: &[LinkIndex]) -> Vec<LinkIndex> {
    route.iter().rev().map(|link| behind[link.index()]).collect()
}

pub(super) fn position(length: usize) -> Result<u32, SynthesisError> {
    let too_many = |_| SynthesisError::TooManyHops { needed: length as u64, limit: u32::MAX.into() };
    u32::try_from(length).map_err(too_many)
}
