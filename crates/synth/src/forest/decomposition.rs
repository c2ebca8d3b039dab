//! Large networks in pieces: clusters with tight boundaries are solved apart, equal ones once, and put together.
//!
//! Nothing is lost: the trimmed network still meets the condition, and tight boundaries separate (see `trim`). Machines of
//! boxes that are not all alike are one piece, the trees of which can be written down (see `boxes`).

use canopy_optimize::{FlowUnit, Stop};

use crate::error::SynthesisError;
use crate::forest::clusters::find_clusters;
use crate::forest::condition::Condition;
use crate::forest::glue::glue;
use crate::forest::network::Network;
use crate::forest::packing::PackingChoice;
use crate::forest::piece::{Machine, Solution, pieces, solve};
use crate::forest::trim::{Tight, trim};
use crate::forest::{RoutedTrees, ask};
use crate::progress::{Progress, Stage};

/// Different trees per rank up to which those of a machine of boxes are taken as they are: where shares are of all sizes
/// they are many, and pieces have fewer.
const TREES_PER_RANK: usize = 4;

/// Trees for all demands, in capacities of the network that admit them; `None` if it is no machine of boxes whose trees
/// can be written down, and has no clusters that can be made tight, or is not balanced at every switch.
///
/// * **Source.** Our own. **Errors.** Stopped, too many hops; broken if the input does not meet the condition.
/// * **Cost.** Some tests of the network, the different pieces, and what the result takes.
pub(super) fn solve_in_pieces<C: FlowUnit>(
    network: &Network<'_>,
    capacities: &[C],
    demands: &[C],
    trees_per_root: u64,
    choice: PackingChoice,
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<Option<RoutedTrees>, SynthesisError> {
    ask(stop)?;
    let of_ranks = &demands[..network.terminal_count as usize];
    let whole = Tight { capacities: capacities.to_vec(), clusters: Vec::new() };
    let whole = pieces(network, demands, &whole, stop)?;
    let piece = &whole.0[0];
    // Where all boxes are alike, so are the trees of pieces, or those that symmetry finds, and they are flatter.
    let (at_once, at_last) = match piece.machine() {
        Some(machine) if machine.is_uniform() => (None, Some(machine).filter(Machine::has_more_links)),
        machine => (machine, None),
    };
    let mut boxes = match at_once {
        Some(machine) => piece.solve_boxes(machine, stop)?,
        None => None,
    };
    let is_few =
        |solution: &Solution<C>| solution.trees.iter().map(Vec::len).sum::<usize>() <= TREES_PER_RANK * of_ranks.len();
    let tight = match boxes.as_ref().is_some_and(is_few) {
        true => None,
        false => tight_clusters(network, capacities, demands, stop)?,
    };
    if let (None, Some(machine)) = (&tight, at_last) {
        boxes = piece.solve_boxes(machine, stop)?;
    }
    let ((pieces, homes), (solution_of, solutions)) = match (tight, boxes) {
        (Some(tight), _) => {
            let pieces = pieces(network, demands, &tight, stop)?;
            let solved = solve(&pieces.0, choice, stop, progress)?;
            (pieces, solved)
        }
        (None, Some(boxes)) => {
            progress.report(Stage::Trees, 1, 1);
            (whole, (vec![0], vec![boxes]))
        }
        (None, None) => return Ok(None),
    };
    glue(&pieces, (&solution_of, &solutions), &homes, of_ranks, trees_per_root, (stop, progress)).map(Some)
}

/// Clusters with tight boundaries; `None` if there are none, or the network is not balanced at every switch.
fn tight_clusters<C: FlowUnit>(
    network: &Network<'_>,
    capacities: &[C],
    demands: &[C],
    stop: &dyn Stop,
) -> Result<Option<Tight<C>>, SynthesisError> {
    if !switches_are_balanced(network, capacities) {
        return Ok(None);
    }
    let clusters = find_clusters(network, capacities, stop)?;
    if clusters.is_empty() {
        return Ok(None);
    }
    let edges = network.links.iter().zip(capacities).map(|(link, &capacity)| (link.from, link.to, capacity));
    let mut condition = Condition::new(edges, demands.to_vec(), network.terminal_count, stop)?;
    let tight = trim(network, capacities, clusters, &mut condition)?;
    Ok(Some(tight).filter(|tight| !tight.clusters.is_empty()))
}

/// Whether as much enters every switch as leaves it. Of ranks it need not be so: where `trim` argues with balance, it
/// does so for sets of switches.
fn switches_are_balanced<C: FlowUnit>(network: &Network<'_>, capacities: &[C]) -> bool {
    let mut entering = vec![C::ZERO; network.node_count as usize];
    let mut leaving = entering.clone();
    for (link, &capacity) in network.links.iter().zip(capacities) {
        leaving[link.from as usize] += capacity;
        entering[link.to as usize] += capacity;
    }
    let switches = network.terminal_count as usize..;
    entering[switches.clone()] == leaving[switches]
}
