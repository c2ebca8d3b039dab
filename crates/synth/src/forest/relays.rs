//! Flat trees of a single root: each rank is given a part, and spreads it as in an allgather.
//!
//! Where links are all in use, the root can send each chunk only once, and so can most others: few trees are then long
//! chains. With a part of the data for every other rank, who passes it on to all, trees of the same rate are one way to a
//! rank and a tree of an allgather. A set of ranks that is short of links takes in the parts of its own ranks and what
//! the others tell it: as much as before, so nothing is lost as long as no part passes through it on its way elsewhere.

use std::collections::VecDeque;
use std::ops::Range;

use canopy_optimize::{FlowNetwork, Stop};
use canopy_schedule::{RouteIndex, RouteInterner};
use canopy_topology::{LinkIndex, Rank, Topology};
use num_integer::Integer;

use crate::error::SynthesisError;
use crate::forest::assembly::position;
use crate::forest::condition::Condition;
use crate::forest::instance::Instance;
use crate::forest::{RoutedHop, RoutedTree, RoutedTrees, ask};
use crate::peel::Peeler;

/// Hops of all trees, at most: those of 512 ranks. Beyond, trees for every rank take much longer than those of one.
const HOPS_MAX: u64 = 1 << 18;

/// Solves an instance; trees of all ranks but one are asked for in this way.
pub(super) type Solve<'a> = &'a dyn Fn(&Instance) -> Result<RoutedTrees, SynthesisError>;

/// Trees of one root that spread its data at the rate of the instance by giving every other rank an equal part; `None` if
/// the parts cannot be handed out beside the trees that spread them, or there would be too many trees.
///
/// Parts go on ways through switches alone where these suffice, else through ranks, which then have no need of the tree's
/// own hop to them. Trees are as flat as hops of both allow.
///
/// * **Source.** Our own; broadcast as scatter and allgather (van de Geijn) on any network, with the condition of the forest
///   as the test. **In.** An instance of a single root that meets the condition. **Errors.** Stopped.
/// * **Cost.** Two flows, that of `solve`, and O(hops).
pub(super) fn relayed(
    network: &Topology,
    root: Rank,
    instance: &Instance,
    solve: Solve<'_>,
    stop: &dyn Stop,
) -> Result<Option<RoutedTrees>, SynthesisError> {
    let Some(relay_count) = relay_count(network.rank_count()) else { return Ok(None) };
    let scale = (relay_count / instance.trees_per_root).max(1);
    for ways in WAYS {
        let Some(Distribution { amounts, spread }) = distribute(network, root, instance, scale, ways, stop)? else {
            continue;
        };
        let trees = solve(&spread)?;
        return join(network, root, (&spread, &trees), amounts, stop).map(Some);
    }
    Ok(None)
}

/// Parts on their way.
struct Distribution {
    /// What each link carries of them.
    amounts: Vec<u64>,
    /// What is left for spreading them: each rank's part is its demand.
    spread: Instance,
}

/// How many ranks there are to pass things on, unless they are too few or too many for that.
pub(super) fn relay_count(rank_count: u32) -> Option<u64> {
    let relay_count = u64::from(rank_count).saturating_sub(1);
    (relay_count >= 3 && relay_count * relay_count <= HOPS_MAX).then_some(relay_count)
}

/// Which ways parts may take.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ways {
    Direct,
    OverRanks,
}

/// Ways through ranks last: who passes a part on to another takes it in twice, or spreads it in place of someone else.
const WAYS: [Ways; 2] = [Ways::Direct, Ways::OverRanks];

/// Hands out `scale` times the trees of the instance; `None` where what is left does not suffice to spread them, or numbers
/// do not fit. The flow chooses who gets how much, at most one tree more than the mean.
fn distribute(
    network: &Topology,
    root: Rank,
    instance: &Instance,
    scale: u64,
    ways: Ways,
    stop: &dyn Stop,
) -> Result<Option<Distribution>, SynthesisError> {
    let narrow = |number: u128| i64::try_from(number.checked_mul(scale.into())?).ok();
    let capacities: Option<Vec<i64>> = instance.capacities.iter().map(|&capacity| narrow(capacity)).collect();
    let (Some(capacities), Some(total)) = (capacities, narrow(instance.trees_per_root.into())) else { return Ok(None) };
    // So that every number below, those of the flow and of the condition, fits 64 bits.
    let sum = capacities.iter().try_fold(total, |sum, &capacity| sum.checked_add(capacity));
    if sum.is_none_or(|sum| sum >= i64::MAX / 4) {
        return Ok(None);
    }
    let sink = u32::try_from(network.nodes().len()).expect("nodes are counted in u32");
    let mut flow = FlowNetwork::<i64>::new(sink + 1);
    let is_closed = |node: u32| ways == Ways::Direct && node < network.rank_count() && node != root.number();
    let ends = network.links().iter().map(|link| (link.from.number(), link.to.number()));
    let mut arcs = Vec::with_capacity(capacities.len());
    for ((from, to), &capacity) in ends.clone().zip(&capacities) {
        arcs.push(flow.add_arc(from, to, if is_closed(from) || to == root.number() { 0 } else { capacity }));
    }
    let relays = || network.ranks().filter(|&rank| rank != root).map(|rank| rank.number());
    let most = Integer::div_ceil(&total, &(i64::from(network.rank_count()) - 1));
    let parts: Vec<_> = relays().map(|relay| flow.add_arc(relay, sink, most)).collect();
    flow.set_supply(root.number(), i64::MAX);
    if flow.pull(sink, total, stop).map_err(|_| SynthesisError::Stopped)? < total {
        return Ok(None);
    }
    let amounts: Vec<i64> = arcs.into_iter().map(|arc| flow.flow(arc)).collect();
    let mut demands = vec![0; sink as usize];
    relays().zip(parts).for_each(|(relay, part)| demands[relay as usize] = flow.flow(part));
    let left: Vec<i64> = capacities.iter().zip(&amounts).map(|(capacity, amount)| capacity - amount).collect();
    let edges = ends.zip(&left).map(|((from, to), &left)| (from, to, left));
    if Condition::new(edges, demands.clone(), network.rank_count(), stop)?.violation()?.is_some() {
        return Ok(None);
    }
    let whole = |number: i64| u64::try_from(number).expect("no flow is below nothing or beyond its capacity");
    let spread = Instance {
        trees_per_root: whole(total),
        demands: demands.into_iter().map(whole).collect(),
        capacities: left.into_iter().map(|left| whole(left).into()).collect(),
    };
    Ok(Some(Distribution { amounts: amounts.into_iter().map(whole).collect(), spread }))
}

/// Puts the way of each part before the trees that spread it.
fn join(
    network: &Topology,
    root: Rank,
    (spread, found): (&Instance, &RoutedTrees),
    amounts: Vec<u64>,
    stop: &dyn Stop,
) -> Result<RoutedTrees, SynthesisError> {
    let mut peeler = Peeler::new(network, root.node(), true, amounts);
    let mut joined = Joined::new(network, root, found);
    let mut trees = found.trees.iter().peekable();
    for relay in network.ranks().filter(|&relay| relay != root) {
        ask(stop)?;
        let mut ways = peeler.paths(relay.node(), spread.demands[relay.number() as usize]).into_iter();
        let mut way = ways.next();
        while let Some(tree) = trees.next_if(|tree| tree.root == relay.number()) {
            let mut begin = 0;
            while begin < tree.multiplicity
                && let Some((left, links)) = &mut way
            {
                let count = (tree.multiplicity - begin).min(*left);
                joined.add(links, tree, begin..begin + count)?;
                begin += count;
                *left -= count;
                if *left == 0 {
                    way = ways.next();
                }
            }
        }
    }
    Ok(joined.finish(spread.trees_per_root))
}

/// Trees of the root being written down.
struct Joined<'a> {
    network: &'a Topology,
    root: Rank,
    spread: &'a RoutedTrees,
    routes: RouteInterner,
    /// Of the routes of `spread`.
    route_of: Vec<Option<RouteIndex>>,
    trees: Vec<RoutedTree>,
    hops: Vec<RoutedHop>,
    carriers: Vec<(RouteIndex, u64)>,
    /// By rank, for the tree at hand: hops out of it, by where they lead. Empty between trees.
    leaving: Vec<Vec<(u32, Source)>>,
}

/// Where a hop comes from.
#[derive(Clone, Copy)]
enum Source {
    /// The way of the part.
    Way(RouteIndex),
    /// A hop of the tree that spreads it.
    Tree(u32),
}

impl<'a> Joined<'a> {
    fn new(network: &'a Topology, root: Rank, spread: &'a RoutedTrees) -> Self {
        Self {
            network,
            root,
            spread,
            routes: RouteInterner::default(),
            route_of: vec![None; spread.routes.len()],
            trees: Vec::new(),
            hops: Vec::new(),
            carriers: Vec::new(),
            leaving: vec![Vec::new(); network.rank_count() as usize],
        }
    }

    /// Adds these copies of a tree, with the links of the way to its root, last one first.
    fn add(&mut self, way: &[LinkIndex], tree: &RoutedTree, copies: Range<u64>) -> Result<(), SynthesisError> {
        let (mut from, mut links) = (self.root.number(), Vec::new());
        for &link in way.iter().rev() {
            links.push(link);
            let to = self.network.link(link).to;
            if to.number() < self.network.rank_count() {
                let route = self.routes.intern(&links);
                self.leaving[from as usize].push((to.number(), Source::Way(route)));
                (from, links) = (to.number(), Vec::new());
            }
        }
        for hop in tree.hops.clone() {
            let RoutedHop { from, to, .. } = self.spread.hops[hop as usize];
            self.leaving[from as usize].push((to, Source::Tree(hop)));
        }
        let start = position(self.hops.len())?;
        let mut is_reached = vec![false; self.leaving.len()];
        is_reached[self.root.number() as usize] = true;
        let mut next = VecDeque::from([self.root.number()]);
        while let Some(from) = next.pop_front() {
            // Every rank comes up once, and leaves its list empty for the next tree.
            let mut leaving = std::mem::take(&mut self.leaving[from as usize]);
            for (to, source) in leaving.drain(..) {
                if !std::mem::replace(&mut is_reached[to as usize], true) {
                    let carriers = self.carry(source, &copies)?;
                    self.hops.push(RoutedHop { from, to, carriers });
                    next.push_back(to);
                }
            }
            self.leaving[from as usize] = leaving;
        }
        let hops = start..position(self.hops.len())?;
        let multiplicity = copies.end - copies.start;
        self.trees.push(RoutedTree { root: self.root.number(), multiplicity, hops });
        Ok(())
    }

    /// The routes of these copies of a hop.
    fn carry(&mut self, source: Source, copies: &Range<u64>) -> Result<Range<u32>, SynthesisError> {
        let start = position(self.carriers.len())?;
        match source {
            Source::Way(route) => self.carriers.push((route, copies.end - copies.start)),
            Source::Tree(hop) => {
                let Range { start, end } = self.spread.hops[hop as usize].carriers;
                let mut begin = 0;
                for &(route, count) in &self.spread.carriers[start as usize..end as usize] {
                    let (first, last) = (copies.start.max(begin), copies.end.min(begin + count));
                    begin += count;
                    if first < last {
                        let route = self.route(route);
                        self.carriers.push((route, last - first));
                    }
                }
            }
        }
        Ok(start..position(self.carriers.len())?)
    }

    fn route(&mut self, route: RouteIndex) -> RouteIndex {
        let links = || self.spread.routes.get(route).expect("carriers name routes of their own table");
        let known = &mut self.route_of[route.index()];
        *known.get_or_insert_with(|| self.routes.intern(links()))
    }

    /// The trees, as few per root as their numbers allow.
    fn finish(self, trees_per_root: u64) -> RoutedTrees {
        let Self { mut trees, hops, mut carriers, routes, .. } = self;
        let counts = carriers.iter().map(|&(_, count)| count);
        let unit = counts.fold(trees_per_root, |unit, count| unit.gcd(&count));
        carriers.iter_mut().for_each(|(_, count)| *count /= unit);
        trees.iter_mut().for_each(|tree| tree.multiplicity /= unit);
        trees.sort_by_key(|tree| std::cmp::Reverse(tree.multiplicity));
        RoutedTrees { trees_per_root: trees_per_root / unit, trees, hops, carriers, routes: routes.finish() }
    }
}
