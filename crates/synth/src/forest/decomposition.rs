//! Large networks in pieces: clusters with tight boundaries are solved apart, equal ones once, and put together.
//!
//! Nothing is lost: the trimmed network still meets the condition, and tight boundaries separate (see `trim`).

use canopy_optimize::{FlowUnit, Stop};

use crate::error::SynthesisError;
use crate::forest::clusters::find_clusters;
use crate::forest::condition::Condition;
use crate::forest::glue::glue;
use crate::forest::network::Network;
use crate::forest::piece::{pieces, solve};
use crate::forest::trim::trim;
use crate::forest::{RoutedTrees, ask};
use crate::progress::Progress;

/// Trees for all demands, in capacities of the network that admit them; `None` if it has no clusters that can be made
/// tight, or is not balanced at every switch.
///
/// * **Source.** Our own. **Errors.** Stopped, too many hops; broken if the input does not meet the condition.
/// * **Cost.** Some tests of the network, the different pieces, and what the result takes.
pub(super) fn solve_in_pieces<C: FlowUnit>(
    network: &Network<'_>,
    capacities: &[C],
    demands: &[C],
    trees_per_root: u64,
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<Option<RoutedTrees>, SynthesisError> {
    ask(stop)?;
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
    if tight.clusters.is_empty() {
        return Ok(None);
    }
    let (pieces, homes) = pieces(network, demands, &tight, stop)?;
    let (solution_of, solutions) = solve(&pieces, stop, progress)?;
    let demands = &demands[..network.terminal_count as usize];
    glue(&pieces, (&solution_of, &solutions), &homes, demands, trees_per_root, (stop, progress)).map(Some)
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
