//! Trees of one instance: the network taken apart where it is large, else solved as a whole.

use canopy_optimize::{FlowUnit, Stop};
use canopy_topology::Topology;

use super::chains::Shortened;
use super::condition::Condition;
use super::decomposition::{self, Apart};
use super::instance::Instance;
use super::logical::LogicalGraph;
use super::network::Network;
use super::packed::{self, Packed};
use super::packing::{self, PackingChoice};
use super::pattern::Spread;
use super::translated::translated_trees;
use super::trees::{Grower, PackedTree, Remainder};
use super::{PIECES_FROM, RoutedTrees, assembly, lower, modes, spare, switches};
use crate::error::SynthesisError;
use crate::progress::Progress;

/// Trees per root up to which a network is solved as a whole if its trees are found at once.
const FEW_TREES: u64 = 2;

/// Terminals of a piece from which on parts of its demand are looked for that take it further apart. Trees of smaller ones
/// are soon found.
const MODES_FROM: usize = 24;

/// The same where links are spared for it: what is found without is flatter.
const SPARE_FROM: usize = 48;

/// What trees may cost.
#[derive(Clone, Copy)]
pub(super) struct Effort {
    /// Networks are taken apart from this number of ranks on.
    pub(super) pieces_from: u32,
    /// In the packing.
    pub(super) choice: PackingChoice,
    /// There may be as many trees per root if that helps to divide them into parts.
    pub(super) trees_per_root_max: u64,
}

impl Effort {
    /// What a plan is worth.
    pub(super) const FULL: Self = Self { pieces_from: PIECES_FROM, choice: PackingChoice::Best, trees_per_root_max: 0 };
}

/// Trees that spread the data of an instance to all ranks at its rate.
pub(super) fn solve(
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
pub(super) enum FlowRange {
    /// 64 bits.
    Narrow,
    /// 128 bits.
    Wide,
}

impl FlowRange {
    /// For numbers with this sum; `None` if they are too large. A flow is less than twice the sum, an unlimited supply more.
    pub(super) fn of(sum: u128) -> Option<Self> {
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
    let convert = |value: u128| C::try_from_u128(value).expect("the sum of all numbers was found to fit");
    let capacities: Vec<C> = instance.capacities.iter().map(|&capacity| convert(capacity)).collect();
    let demands: Vec<C> = instance.demands.iter().map(|&demand| convert(demand.into())).collect();
    let whole = Network::of(topology);
    let short = Shortened::of(&whole, &capacities, &demands);
    let trees = solve_short(&short, instance.trees_per_root, effort, stop, progress)?;
    Ok(short.lengthen(trees))
}

/// The same on a network without switches that only pass on.
fn solve_short<C: FlowUnit>(
    short: &Shortened<'_, C>,
    trees_per_root: u64,
    effort: Effort,
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<RoutedTrees, SynthesisError> {
    let Effort { pieces_from, choice, trees_per_root_max } = effort;
    let Shortened { network, capacities, demands, .. } = short;
    let numbers = (capacities.as_slice(), demands.as_slice());
    let rank_count = network.terminal_count;
    if rank_count >= pieces_from {
        let apart = decomposition::take_apart(network, capacities, demands, stop)?;
        let mut solved = None;
        // To replace as many switches as ranks takes longer than all else.
        if apart.is_whole() && network.node_count >= rank_count + rank_count / 2 {
            solved = solve_spared(short, &apart, trees_per_root, choice, (stop, progress))?;
        }
        // What has few trees as a whole has more of them in parts.
        if solved.is_none()
            && apart.is_whole()
            && trees_per_root <= FEW_TREES
            && let Some(trees) = solve_whole(network, numbers, trees_per_root, effort, Search::AtOnce, stop, progress)?
        {
            return Ok(trees);
        }
        if solved.is_none() && apart.largest() >= MODES_FROM.min(pieces_from as usize) {
            let counts = (trees_per_root, trees_per_root_max);
            solved = modes::solve_in_modes(network, &apart, numbers, counts, choice, (stop, progress))?;
            if solved.is_none() && apart.largest() >= SPARE_FROM {
                solved = solve_spared(short, &apart, trees_per_root, choice, (stop, progress))?;
            }
        }
        if solved.is_none() && !apart.is_whole() {
            solved = Some(apart.solve(trees_per_root, choice, stop, progress)?);
        }
        if let Some(mut trees) = solved {
            lower::lower(&mut trees, rank_count, stop)?;
            return Ok(trees);
        }
    }
    let trees = solve_whole(network, numbers, trees_per_root, effort, Search::Fully, stop, progress)?;
    trees.ok_or_else(|| SynthesisError::Broken { what: "no trees of a network that admits them".to_owned() })
}

/// Trees without links that can be spared; `None` if pieces are not much smaller then.
fn solve_spared<C: FlowUnit>(
    short: &Shortened<'_, C>,
    apart: &Apart<'_, C>,
    trees_per_root: u64,
    choice: PackingChoice,
    (stop, progress): (&dyn Stop, &dyn Progress),
) -> Result<Option<RoutedTrees>, SynthesisError> {
    let Shortened { network, capacities, demands, .. } = short;
    let Some(fewer) = spare::without_spare_links(network, capacities, demands, stop)? else { return Ok(None) };
    let spared = Shortened::of(network, &fewer, demands);
    let spared_apart = decomposition::take_apart(&spared.network, &spared.capacities, &spared.demands, stop)?;
    if spared_apart.largest() > apart.largest() / 2 {
        return Ok(None);
    }
    let trees = spared_apart.solve(trees_per_root, choice, stop, progress)?;
    Ok(Some(spared.lengthen(trees)))
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
