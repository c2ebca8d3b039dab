//! ForestColl: schedules made of spanning trees that together reach the optimum of the network.
//!
//! Four stages, each in a file of its own: the optimum fixes how many trees there are and how many each link carries
//! (`instance`); switches are replaced by edges between ranks (`switches`, `pattern`, on the routes kept in `logical`);
//! trees are packed (`packed`, `packing`, `parents`, `completion`, `trees`, `exact`, `rehang`); trees are laid on routes
//! (`assembly`). What holds them together is one invariant (`condition`).
//!
//! A network of many ranks is taken apart first, where it has clusters whose boundary can be made tight without loss
//! (`clusters`, `trim`): each kind of cluster is solved once, on its own (`piece`, at once if it is a `star`), and the trees
//! are put together (`decomposition`, `glue`), in numbers that make few (`coarse`). Of machines of unequal boxes the trees can be written down (`boxes`). What
//! can not be taken apart is solved as a whole, by the same stages. Either way the deepest trees are made less deep in the
//! end (`lower`).
//!
//! Where NICs are fast beside the links in a box, no boundary but that of each rank is tight. Then demand is divided into parts
//! whose trees enter boxes once, or at every rank, each of which can be taken apart (`modes`).
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
mod star;
mod sums;
mod switches;
mod translated;
mod trees;
mod trim;

#[cfg(test)]
mod tests;

use std::ops::Range;

use canopy_optimize::{FlowUnit, Fraction, Stop};
use canopy_schedule::{Action, Collective, CollectiveKind, Forest, RouteIndex, RouteTable, Schedule, Shape, Shares};
use canopy_topology::{Rank, Topology};

use crate::algorithm::{HeededLimits, Kept, SPREADING, SynthesisRequest, Synthesized, Synthesizer, Task};
use crate::error::SynthesisError;
use crate::limits::TreeLimits;
use crate::parts::phase_actions;
use crate::progress::{Progress, Silent, Stage};
use crate::reach::ask;
use sums::{PlannedAllreduce, plan_allreduce};
pub(crate) use sums::{form as allreduce_form, rate_in_phases, strength_through_switches};

use assembly::Assembly;
use condition::Condition;
use instance::{Instance, Roots, instances};
use logical::LogicalGraph;
use network::Network;
use packed::Packed;
use packing::PackingChoice;
use pattern::Spread;
use translated::translated_trees;
use trees::{Grower, PackedTree, Remainder};

/// Edges or hops handled between two looks at whether to stop, where each costs some ten to some hundred nanoseconds.
const ASK_INTERVAL: u32 = 1 << 12;

/// Ranks from which on a network is taken apart where it can be. Below, all of it together is fast, and has shallower
/// trees.
const PIECES_FROM: u32 = 64;

/// Depth of the trees of a single root from which on flatter ones are looked for that pass through relays.
const RELAYS_FROM: u32 = 6;

/// Trees per root up to which a network is solved as a whole if its trees are found at once.
const FEW_TREES: u64 = 2;

/// Terminals of a piece from which on parts of its demand are looked for that take it further apart. Trees of smaller ones
/// are soon found.
const MODES_FROM: usize = 24;

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
    // Where the network is its own mirror image, one solution serves both directions.
    let is_mirror = transposed == *topology;
    let behind = instance::links_behind_transposed(topology);
    let network_of = |&action: &Action| if action == Action::Reduce { &transposed } else { topology };
    let networks: Vec<&Topology> =
        actions.iter().take(if is_mirror { 1 } else { actions.len() }).map(network_of).collect();
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
    // Of a mirror image, the one solution is that of every phase.
    for (&action, solution) in actions.iter().zip(solutions.iter().cycle()) {
        assembly.add_phase(action, solution, &behind)?;
    }
    Ok(assembly.finish())
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

/// What trees may cost.
#[derive(Clone, Copy)]
struct Effort {
    /// Networks are taken apart from this number of ranks on.
    pieces_from: u32,
    /// In the packing.
    choice: PackingChoice,
    /// There may be as many trees per root if that helps to divide them into parts.
    trees_per_root_max: u64,
}

impl Effort {
    /// What a plan is worth.
    const FULL: Self = Self { pieces_from: PIECES_FROM, choice: PackingChoice::Best, trees_per_root_max: 0 };
}

/// Trees that spread the data of an instance to all ranks at its rate.
fn solve(
    topology: &Topology,
    instance: &Instance,
    effort: Effort,
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<RoutedTrees, SynthesisError> {
    match instance.magnitude().and_then(FlowRange::of) {
        Some(FlowRange::Narrow) => solve_in::<i64>(topology, instance, effort, stop, progress),
        Some(FlowRange::Wide) => solve_in::<i128>(topology, instance, effort, stop, progress),
        None => {
            let trees_per_rank = instance.trees_per_root.into();
            Err(SynthesisError::TooManyTrees { trees_per_rank, rank_count: topology.rank_count() })
        }
    }
}

/// What numbers it takes to compute with capacities and demands.
enum FlowRange {
    /// 64 bits.
    Narrow,
    /// 128 bits.
    Wide,
}

impl FlowRange {
    /// For numbers with this sum; `None` if they are too large. A flow is less than twice the sum, an unlimited supply more.
    fn of(sum: u128) -> Option<Self> {
        if sum < u128::from(i64::MAX.unsigned_abs()) / 4 {
            Some(Self::Narrow)
        } else if sum < i128::MAX.unsigned_abs() / 4 {
            Some(Self::Wide)
        } else {
            None
        }
    }
}

fn solve_in<C: FlowUnit>(
    topology: &Topology,
    instance: &Instance,
    effort: Effort,
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<RoutedTrees, SynthesisError> {
    let Effort { pieces_from, choice, trees_per_root_max } = effort;
    let convert = |value: u128| C::try_from_u128(value).expect("the sum of all numbers was found to fit");
    let capacities: Vec<C> = instance.capacities.iter().map(|&capacity| convert(capacity)).collect();
    let demands: Vec<C> = instance.demands.iter().map(|&demand| convert(demand.into())).collect();
    let rank_count = topology.rank_count();

    let network = Network::of(topology);
    let numbers = (capacities.as_slice(), demands.as_slice());
    let trees_per_root = instance.trees_per_root;
    if rank_count >= pieces_from {
        let apart = decomposition::take_apart(&network, &capacities, &demands, stop)?;
        // What has few trees as a whole has more of them in parts.
        if apart.is_whole()
            && trees_per_root <= FEW_TREES
            && let Some(trees) = solve_whole(&network, numbers, trees_per_root, effort, Search::AtOnce, stop, progress)?
        {
            return Ok(trees);
        }
        let mut solved = None;
        if apart.largest() >= MODES_FROM.min(pieces_from as usize) {
            let counts = (trees_per_root, trees_per_root_max);
            solved = modes::solve_in_modes(&network, &apart, numbers, counts, choice, (stop, progress))?;
        }
        if solved.is_none() && !apart.is_whole() {
            solved = Some(apart.solve(trees_per_root, choice, stop, progress)?);
        }
        if let Some(mut trees) = solved {
            lower::lower(&mut trees, rank_count, stop)?;
            return Ok(trees);
        }
    }
    let trees = solve_whole(&network, numbers, trees_per_root, effort, Search::Fully, stop, progress)?;
    trees.ok_or_else(|| SynthesisError::Broken { what: "no trees of a network that admits them".to_owned() })
}

/// How long trees may take.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Search {
    /// They are found without a test, or not at all.
    AtOnce,
    Fully,
}

/// Trees of a network that is not taken apart, of symmetry if it is large; `None` if they had to be found at once, and are not.
fn solve_whole<C: FlowUnit>(
    network: &Network<'_>,
    (capacities, demands): (&[C], &[C]),
    trees_per_root: u64,
    Effort { pieces_from, choice, .. }: Effort,
    search: Search,
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<Option<RoutedTrees>, SynthesisError> {
    let rank_count = network.terminal_count;
    let mut graph = LogicalGraph::new(network, capacities, stop)?;
    switches::remove_switches(network, &mut graph, demands, Spread::All, stop, progress)?;

    let lay = |grower: &Grower<C>, trees: Vec<PackedTree<C>>, graph: LogicalGraph<'_, C>| {
        assembly::lay(grower, graph.into_strands(stop)?, trees, trees_per_root, stop, progress)
    };
    let mut trees = None;
    if rank_count >= pieces_from {
        let condition = Condition::new(graph.edges(), demands[..rank_count as usize].to_vec(), rank_count, stop)?;
        let grower = Grower::new(&condition, rank_count);
        let left = Remainder::of(&condition, rank_count);
        // As shallow as trees can be, but many.
        if let Some(trees) = translated_trees(&grower, &left, &network.boxes, stop)? {
            packing::require_room(trees.len(), grower.rank_count())?;
            return lay(&grower, trees, graph).map(Some);
        }
        if search == Search::AtOnce {
            let Some(found) = packing::at_once(&condition, &grower, stop, progress)? else { return Ok(None) };
            trees = Some((packing::pack(&condition, &grower, Some(found), choice, stop, progress)?, grower));
        }
    }
    let mut trees = match trees {
        Some((trees, grower)) => lay(&grower, trees, graph)?,
        None => {
            let Packed { graph, grower, trees } =
                packed::packed(network, graph, capacities, demands, choice, stop, progress)?;
            lay(&grower, trees, graph)?
        }
    };
    lower::lower(&mut trees, rank_count, stop)?;
    Ok(Some(trees))
}
