//! ForestColl: schedules made of spanning trees that together reach the optimum of the network.
//!
//! Four stages, each in a file of its own: the optimum fixes how many trees there are and how many each link carries
//! (`instance`); switches are replaced by edges between ranks (`switches`, `pattern`, on the routes kept in `logical`);
//! trees are packed (`packed`, `packing`, `parents`, `completion`, `trees`, `exact`, `rehang`); trees are laid on routes
//! (`assembly`). What holds them together is one invariant (`condition`).
//!
//! What each instance is solved by, `solve` decides. Switches that only pass on are left out (`chains`).
//!
//! A network of many ranks is taken apart first, where it has clusters whose boundary can be made tight without loss
//! (`clusters`, `trim`): each kind of cluster is solved once, on its own (`piece`, at once if it is a `star` or several alike), and the trees
//! are put together (`decomposition`, `glue`), in numbers that make few (`coarse`). Of machines of unequal boxes the trees can be written down (`boxes`). What
//! can not be taken apart is solved as a whole, by the same stages. Either way the deepest trees are made less deep in the
//! end (`lower`).
//!
//! Where NICs are fast beside the links in a box, no boundary but that of each rank is tight. Then demand is divided into parts
//! whose trees enter boxes once, or at every rank, each of which can be taken apart (`modes`).
//!
//! Where links inside boxes could be done without, they may be what holds it together: those are spared (`spare`).
//!
//! A network without switches that looks the same from every rank needs trees for one root only (`symmetry`,
//! `translated`).
//!
//! Trees of a single root that come out as long chains go by way of relays instead (`relays`).
//!
//! Trees may be asked to be flatter than those turn out (`shallow`), fewer (`instance`), or sooner found (`instance/near`), at
//! the expense of the rate.
//!
//! An allreduce in two phases is held up by its weakest rank. Where that costs anything, sums are made where they are
//! best made instead (`sums`).
//!
//! Switches that could replicate or reduce are used as if they could not: that costs no throughput for the collectives
//! planned here, only traffic.
//!
//! Source: L. Zhao, dissertation 2026, chapter 4 and appendix B (ForestColl).

mod assembly;
mod boxes;
mod chains;
mod clusters;
mod coarse;
mod completion;
mod condition;
mod decomposition;
mod exact;
mod glue;
mod instance;
mod links;
mod logical;
mod lower;
mod modes;
mod network;
mod packed;
mod packing;
mod parents;
mod pattern;
mod piece;
mod rehang;
mod relays;
mod shallow;
mod solve;
mod spare;
mod star;
mod sums;
mod switches;
mod translated;
mod trees;
mod trim;

#[cfg(test)]
mod tests;

use std::ops::Range;

use canopy_optimize::{Fraction, Stop};
use canopy_schedule::{Action, Collective, CollectiveKind, Forest, RouteIndex, RouteTable, Schedule, Shape, Shares};
use canopy_topology::{LinkIndex, Rank, Topology};

use crate::algorithm::{HeededLimits, Kept, SPREADING, SynthesisRequest, Synthesized, Synthesizer, Task};
use crate::error::SynthesisError;
use crate::limits::TreeLimits;
use crate::mirror::mirror;
use crate::parts::phase_actions;
use crate::progress::{Progress, Silent, Stage};
use crate::reach::ask;
use sums::{PlannedAllreduce, plan_allreduce};
pub(crate) use sums::{form as allreduce_form, strength_through_switches};

use assembly::Assembly;
use instance::{Instance, Roots, instances};
use packing::PackingChoice;
use solve::{Effort, FlowRange, solve};

/// Edges or hops handled between two looks at whether to stop, where each costs some ten to some hundred nanoseconds.
const ASK_INTERVAL: u32 = 1 << 12;

/// Ranks from which on a network is taken apart where it can be. Below, all of it together is fast, and has shallower
/// trees.
const PIECES_FROM: u32 = 64;

/// Depth of the trees of a single root from which on flatter ones are looked for that pass through relays.
const RELAYS_FROM: u32 = 6;

/// Trees that reach the optimum.
pub(crate) static FOREST: Synthesizer = Synthesizer {
    limits: HeededLimits::Trees,
    kept: Kept::ByShape,
    ..Synthesizer::new("forest", "optimal spanning-tree packing (Zhao 2026, chapter 4)", SPREADING, planned)
};

/// A plan of trees; of an allreduce with its form, and with shares that say what is added up where.
fn planned(task: &Task<'_>) -> Result<Synthesized, SynthesisError> {
    let &Task { topology, request, stop, progress, .. } = task;
    let &SynthesisRequest { collective, ref shares, limits, sums, .. } = request;
    if collective.kind() != CollectiveKind::Allreduce {
        return Ok(task.planned(Shape::Forest(plan(topology, collective, shares, limits, stop, progress)?)));
    }
    let PlannedAllreduce { forest, shares, form } = plan_allreduce(topology, shares, limits, sums, stop, progress)?;
    let schedule = Schedule { collective, algorithm: FOREST.name.to_owned(), shares, shape: Shape::Forest(forest) };
    Ok(Synthesized { schedule, form: Some(form), choice_bound: None, time_proof: None })
}

/// Plans a collective as weighted trees.
///
/// Reduce trees are broadcast trees of the network with all links turned around, turned around themselves.
pub(crate) fn plan(
    topology: &Topology,
    collective: Collective,
    shares: &Shares,
    limits: TreeLimits,
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<Forest, SynthesisError> {
    plan_from(topology, collective, shares, limits, PIECES_FROM, stop, progress)
}

/// [`plan`], taking networks apart from this number of ranks on.
fn plan_from(
    topology: &Topology,
    collective: Collective,
    shares: &Shares,
    limits: TreeLimits,
    pieces_from: u32,
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<Forest, SynthesisError> {
    let roots = match (collective.kind(), collective.root()) {
        (CollectiveKind::Broadcast | CollectiveKind::Reduce, Some(root)) => Roots::One(root),
        (CollectiveKind::Allgather | CollectiveKind::ReduceScatter | CollectiveKind::Allreduce, _) => {
            Roots::All(shares)
        }
        (kind, _) => return Err(FOREST.unsupported(kind)),
    };
    let actions = phase_actions(collective.kind()).ok_or(FOREST.unsupported(collective.kind()))?;
    for &action in actions {
        instance::require_plannable(topology, roots, action)?;
    }
    let root_count = topology.ranks().filter(|&rank| roots.weight(rank) > 0).count();
    packing::require_room(root_count, topology.rank_count() as usize)?;
    ask(stop)?;
    let transposed = topology.transposed();
    // Where the network is its own mirror image, one solution serves both directions, with other names of links.
    let like = if actions.len() > 1 { mirror(&transposed, topology) } else { None };
    let behind = instance::links_behind_transposed(topology);
    let network_of = |&action: &Action| if action == Action::Reduce { &transposed } else { topology };
    let networks = actions.iter().take(like.as_ref().map_or(actions.len(), |_| 1)).map(network_of);
    let networks: Vec<&Topology> = networks.collect();
    progress.report(Stage::Optimum, 0, 1);
    let instances = instances(&networks, roots, limits, stop)?;
    progress.report(Stage::Optimum, 1, 1);
    // Chunks of all shares are numbered in 64 bits, and must suit all phases.
    let numbers =
        u64::try_from(u128::from(u64::MAX) / shares.weight_total(topology.rank_count()).max(1)).unwrap_or(u64::MAX);
    let trees_per_root_max = match (limits.max_chunks.or(limits.trees_per_root), networks.len()) {
        (Some(_), _) => 0,
        (None, 1) => numbers,
        (None, _) => numbers.isqrt(),
    };
    let mut solutions: Vec<RoutedTrees> = Vec::new();
    for (network, instance) in networks.iter().zip(&instances) {
        let effort = Effort { pieces_from, trees_per_root_max, ..Effort::FULL };
        let solution = match roots {
            Roots::One(root) if limits.trees_per_root.is_none() => {
                solve_rooted(network, root, instance, limits, effort, stop, progress)?
            }
            _ => solve(network, instance, effort, stop, progress)?,
        };
        solutions.push(solution);
    }
    if let Some(depth_max) = limits.max_depth {
        flatten(&networks, roots, limits, depth_max.get(), &mut solutions, stop, progress)?;
    }
    let mut assembly = Assembly::new(
        solutions.iter().map(|solution| solution.trees_per_root),
        actions.len(),
        (topology.rank_count(), shares.weight_total(topology.rank_count())),
        stop,
    )?;
    for (number, &action) in actions.iter().enumerate() {
        let solution = &mut solutions[number % networks.len()];
        if let Some(like) = like.as_ref().filter(|_| number > 0) {
            solution.routes = renamed(&solution.routes, like);
        }
        assembly.add_phase(action, solution, &behind)?;
    }
    Ok(assembly.finish())
}

/// The same routes on the links that these stand for.
fn renamed(routes: &RouteTable, links: &[LinkIndex]) -> RouteTable {
    let mut renamed = RouteTable::default();
    for route in routes.iter() {
        renamed.push(&route.iter().map(|link| links[link.index()]).collect::<Vec<LinkIndex>>());
    }
    renamed
}

/// Trees of one root; by way of relays, if that makes them at most half as deep.
fn solve_rooted(
    network: &Topology,
    root: Rank,
    instance: &Instance,
    limits: TreeLimits,
    effort: Effort,
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<RoutedTrees, SynthesisError> {
    let rank_count = network.rank_count();
    if relays::relay_count(rank_count).is_none() {
        return solve(network, instance, effort, stop, progress);
    }
    // What will be measured against something better need not be the best of its kind.
    let hasty = Effort { choice: PackingChoice::First, ..effort };
    let first = solve(network, instance, hasty, stop, progress)?;
    let depth_max = shallow::depth_max(&first, rank_count);
    if depth_max < RELAYS_FROM {
        return Ok(first);
    }
    // Of few ranks, pieces cost a hop or two that the whole does without.
    let whole = Effort { pieces_from: u32::MAX, ..hasty };
    let efforts = if rank_count < 2 * PIECES_FROM { [Some(hasty), Some(whole)] } else { [Some(hasty), None] };
    let mut best: Option<(u32, RoutedTrees)> = None;
    for effort in efforts.into_iter().flatten() {
        let spread = |spread: &Instance| solve(network, spread, effort, stop, &Silent);
        let Some(mut relayed) = relays::relayed(network, root, instance, &spread, stop)? else { break };
        lower::lower(&mut relayed, rank_count, stop)?;
        let depth = shallow::depth_max(&relayed, rank_count);
        let fits = limits.max_chunks.is_none_or(|most| relayed.trees_per_root <= most.get());
        if fits && 2 * depth <= depth_max && best.as_ref().is_none_or(|&(known, _)| depth < known) {
            best = Some((depth, relayed));
        }
    }
    if let Some((_, relayed)) = best {
        return Ok(relayed);
    }
    solve(network, instance, effort, stop, &Silent)
}

/// Replaces solutions with trees deeper than `depth_max` by flatter ones.
fn flatten(
    networks: &[&Topology],
    roots: Roots<'_>,
    limits: TreeLimits,
    depth_max: u32,
    solutions: &mut [RoutedTrees],
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<(), SynthesisError> {
    let is_too_deep =
        |solution: &RoutedTrees, network: &Topology| shallow::depth_max(solution, network.rank_count()) > depth_max;
    let kept = networks.iter().zip(&*solutions).find(|&(network, solution)| !is_too_deep(solution, network));
    let kept = kept.map(|(_, solution)| solution.trees_per_root);
    let powers = || (0..).map(|exponent| 1 << exponent).take_while(|&count| count <= shallow::PARTS_MAX);
    let counts: Vec<u64> = match (limits.trees_per_root, limits.max_chunks, kept) {
        (Some(count), ..) => vec![count.get()],
        // The chunks of a share must suit the other phase, too.
        (None, Some(_), Some(count)) => vec![count],
        (None, Some(most), None) => powers().take_while(|&count| count <= most.get()).collect(),
        (None, None, _) => powers().collect(),
    };
    for (network, solution) in networks.iter().zip(solutions) {
        if is_too_deep(solution, network) {
            let enough = seconds_per_unit(network, solution);
            *solution = shallow::shallow(network, roots, &counts, depth_max, enough, stop, progress)?;
        }
    }
    Ok(())
}

/// Time in which trees spread one byte for each unit of weight, in seconds. O(size of the solution).
fn seconds_per_unit(network: &Topology, solution: &RoutedTrees) -> Fraction {
    let mut of_routes = vec![0_u128; solution.routes.len()];
    // Not all carriers belong to a hop.
    for hop in &solution.hops {
        for &(route, count) in &solution.carriers[hop.carriers.start as usize..hop.carriers.end as usize] {
            of_routes[route.index()] += u128::from(count);
        }
    }
    let mut loads = vec![0_u128; network.links().len()];
    for (route, count) in solution.routes.iter().zip(of_routes) {
        route.iter().for_each(|link| loads[link.index()] += count);
    }
    let time = |(link, load): (&canopy_topology::Link, u128)| {
        let per_sec = u128::from(link.capacity.bytes_per_sec()) * u128::from(solution.trees_per_root);
        Fraction::new(load, per_sec).unwrap_or(Fraction::ZERO)
    };
    network.links().iter().zip(loads).map(time).max().unwrap_or(Fraction::ZERO)
}

/// Broadcast trees on physical routes, flat: plans have tens of millions of hops.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RoutedTrees {
    /// k, for each unit of weight.
    trees_per_root: u64,
    /// By root.
    trees: Vec<RoutedTree>,
    /// Hops of all trees; trees own ranges of it.
    hops: Vec<RoutedHop>,
    /// Routes with the number of trees on each; hops own ranges of it.
    carriers: Vec<(RouteIndex, u64)>,
    /// On the network that the trees were found on.
    routes: RouteTable,
}

/// Equal broadcast trees.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RoutedTree {
    root: u32,
    multiplicity: u64,
    /// In an order in which data can flow down.
    hops: Range<u32>,
}

/// One hop of a broadcast tree.
#[derive(Clone, Debug, PartialEq, Eq)]
struct RoutedHop {
    from: u32,
    to: u32,
    carriers: Range<u32>,
}
