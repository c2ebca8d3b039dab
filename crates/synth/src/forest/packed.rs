//! Trees of a network whose switches are edges: on edges to all neighbours of a switch, or, where trees are not found at once
//! on these, without the upper levels of switches, if they can be spared, or on edges to few neighbours. Fewer and thicker
//! edges make deeper trees, but they leave less to test.

use canopy_optimize::{FlowUnit, Stop, Stopped};

use crate::error::SynthesisError;
use crate::forest::condition::Condition;
use crate::forest::logical::LogicalGraph;
use crate::forest::network::{Network, Way};
use crate::forest::packing::{self, PackingChoice};
use crate::forest::pattern::{FEW, Spread};
use crate::forest::switches::remove_switches;
use crate::forest::trees::{Grower, PackedTree};
use crate::progress::{Progress, Silent};

/// Ranks from which on fewer edges are tried. Below, all packings are fast.
const FEWER_FROM: u32 = 32;

/// A packing with the edges that it is of.
pub(super) struct Packed<'a, C> {
    pub(super) graph: LogicalGraph<'a, C>,
    pub(super) grower: Grower<C>,
    pub(super) trees: Vec<PackedTree<C>>,
}

/// Packs trees for all demands of a network, those included that come from outside.
///
/// * **In.** A network that meets the condition, and the same without its switches, all of whose neighbours have edges.
/// * **Errors.** Stopped, or broken if the input does not meet the condition. **Cost.** That of [`packing::pack`], one test, and
///   of removing the switches up to twice more.
pub(super) fn packed<'a, C: FlowUnit>(
    network: &'a Network<'_>,
    graph: LogicalGraph<'a, C>,
    capacities: &[C],
    demands: &[C],
    choice: PackingChoice,
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<Packed<'a, C>, SynthesisError> {
    let rank_count = network.outside.unwrap_or(network.terminal_count);
    let condition = condition_inside(network, &graph, demands, stop)?;
    let grower = Grower::new(&condition, rank_count);
    let first = packing::at_once(&condition, &grower, stop, progress)?;
    if first.is_none()
        && rank_count >= FEWER_FROM
        && let Some(lowest) = without_upper_levels(network, capacities, demands, stop)?
    {
        let mut graph = LogicalGraph::new(network, &lowest, stop)?;
        remove_switches(network, &mut graph, demands, Spread::All, stop, &Silent)?;
        let condition = condition_inside(network, &graph, demands, stop)?;
        let grower = Grower::new(&condition, rank_count);
        let first = packing::at_once(&condition, &grower, stop, progress)?;
        if first.is_some() {
            let trees = packing::pack(&condition, &grower, first, PackingChoice::First, stop, progress)?;
            return Ok(Packed { graph, grower, trees });
        }
    }
    if first.is_none() && rank_count >= FEWER_FROM && has_wide_switches(network) {
        let mut graph = LogicalGraph::new(network, capacities, stop)?;
        remove_switches(network, &mut graph, demands, Spread::Few, stop, &Silent)?;
        let condition = condition_inside(network, &graph, demands, stop)?;
        let grower = Grower::new(&condition, rank_count);
        let first = packing::at_once(&condition, &grower, stop, progress)?;
        let trees = packing::pack(&condition, &grower, first, choice, stop, progress)?;
        return Ok(Packed { graph, grower, trees });
    }
    let trees = packing::pack(&condition, &grower, first, choice, stop, progress)?;
    Ok(Packed { graph, grower, trees })
}

/// Capacities without those between switches, if there are any, and the trees do without.
fn without_upper_levels<C: FlowUnit>(
    network: &Network<'_>,
    capacities: &[C],
    demands: &[C],
    stop: &dyn Stop,
) -> Result<Option<Vec<C>>, SynthesisError> {
    let is_upper = |link: &Way| link.from.min(link.to) >= network.terminal_count;
    let keep = |(link, &capacity): (&Way, &C)| if is_upper(link) { C::ZERO } else { capacity };
    let lowest: Vec<C> = network.links.iter().zip(capacities).map(keep).collect();
    if lowest == capacities || !network.switches_are_balanced(&lowest) {
        return Ok(None);
    }
    let edges = network.links.iter().zip(&lowest).map(|(link, &capacity)| (link.from, link.to, capacity));
    let mut condition = Condition::new(edges, demands.to_vec(), network.terminal_count, stop)?;
    Ok(condition.violation()?.is_none().then_some(lowest))
}

/// Whether some switch has more neighbours than [`Spread::Few`] gives each of them.
fn has_wide_switches(network: &Network<'_>) -> bool {
    let mut neighbours = vec![0; network.node_count as usize];
    network.links.iter().for_each(|way| neighbours[way.to as usize] += 1);
    neighbours[network.terminal_count as usize..].iter().any(|&count| count > FEW + 1)
}

/// What ranks have to do among each other: trees that come from outside start where they enter.
fn condition_inside<'s, C: FlowUnit>(
    network: &Network<'_>,
    graph: &LogicalGraph<'_, C>,
    demands: &[C],
    stop: &'s dyn Stop,
) -> Result<Condition<'s, C>, Stopped> {
    let rank_count = network.outside.unwrap_or(network.terminal_count);
    let mut demands = demands[..rank_count as usize].to_vec();
    let mut edges = Vec::new();
    for (from, to, capacity) in graph.edges() {
        if network.outside == Some(from) {
            demands[to as usize] += capacity;
        } else if to < rank_count {
            edges.push((from, to, capacity));
        }
    }
    Condition::new(edges.into_iter(), demands, rank_count, stop)
}
