//! One pass over the terminals that tests whether demands can be met: the workhorse of forest schedules.

use crate::flow::{FlowNetwork, FlowUnit};
use crate::stop::{Stop, Stopped};

/// Tests whether every set of nodes that holds a terminal can be entered by all demands from outside it.
///
/// The condition, for `D = Σ demands`: `in(T) ≥ D − demands(T)` for each `T` with a terminal. For an Eulerian network
/// (or one in which every node is a terminal) it is necessary and sufficient for `demands[r]` trees rooted at each `r`
/// that all reach every terminal and fit the capacities (Edmonds; Bang-Jensen, Frank and Jackson).
///
/// A terminal passes if it can pull `D` from the demands. It then joins the sources for good, since every set that
/// holds it has passed; so later flows find what they need close by.
///
/// * **Source.** Zhao 2026, theorem 23, with merged sources in place of one flow per sink from scratch.
/// * **In.** Capacities as they stand in `network` (a flow in progress is dropped); `demands` per node;
///   `terminals` in the order of testing, best that of
///   [`breadth_first_order`](FlowNetwork::breadth_first_order), in which neighbours follow each other.
/// * **Out.** `None` if the condition holds, else a violated set `T`. All supplies are zero afterwards.
/// * **Errors.** [`Stopped`].
/// * **Panics.** `demands` has another length than the network has nodes, their sum does not fit `C`, or a terminal is
///   no node.
/// * **Cost.** One flow per terminal, most of them local; memory O(nodes).
pub fn sweep<C: FlowUnit>(
    network: &mut FlowNetwork<C>,
    demands: &[C],
    terminals: &[u32],
    stop: &dyn Stop,
) -> Result<Option<Vec<bool>>, Stopped> {
    let total = set_demands(network, demands);
    let violated = first_violated(network, total, terminals, stop).map(|found| found.map(|(_, set)| set));
    network.clear_supplies();
    violated
}

/// Makes each demand the supply of its node and returns their sum.
pub(crate) fn set_demands<C: FlowUnit>(network: &mut FlowNetwork<C>, demands: &[C]) -> C {
    assert_eq!(demands.len(), network.node_count() as usize, "there is one demand per node");
    let mut total = C::ZERO;
    for (node, &demand) in (0_u32..).zip(demands) {
        total = total.checked_add(demand).expect("the caller keeps the sum of demands within range");
        network.set_supply(node, demand);
    }
    total
}

/// Tests terminals in turn and gives each that passes unlimited supply. Returns the position of the first that does
/// not, with the smallest violated set around it.
pub(crate) fn first_violated<C: FlowUnit>(
    network: &mut FlowNetwork<C>,
    total: C,
    terminals: &[u32],
    stop: &dyn Stop,
) -> Result<Option<(usize, Vec<bool>)>, Stopped> {
    for (position, &terminal) in terminals.iter().enumerate() {
        if network.pull(terminal, total, stop)? < total {
            return Ok(Some((position, network.min_cut_sink_side())));
        }
        network.set_supply(terminal, C::MAX);
    }
    Ok(None)
}
