//! Smallest sets around groups of terminals with minimum outgoing capacity.

use crate::digraph::{Digraph, MergedGraph};
use crate::error::OptimumError;
use crate::flow::{FlowNetwork, FlowUnit};
use crate::stop::{Meter, Stop, Stopped};

/// For each part, the smallest set S of nodes that holds it, holds no terminal of another part, and has the least
/// `B⁺(S)`. Sorted node lists, in the order of the parts.
///
/// In an Eulerian graph the sets of different parts are disjoint: if two met, each without the other would be left by
/// no more capacity in total, and be smaller. In others they may share nodes.
///
/// * **In.** `parts`: disjoint, non-empty lists of terminals, two or more; together all terminals.
/// * **Errors.** [`OptimumError`]: malformed graph, too large, stopped; [`OptimumError::NothingToMove`] for fewer than
///   two parts.
/// * **Panics.** A part is empty or names no node of the graph.
/// * **Cost.** One flow per part.
pub fn isolating_cuts(graph: &Digraph, parts: &[Vec<u32>], stop: &dyn Stop) -> Result<Vec<Vec<u32>>, OptimumError> {
    if parts.len() < 2 {
        return Err(OptimumError::NothingToMove);
    }
    // What leaves S is what enters it once all arcs are turned around, and flows are pulled.
    let mut meter = Meter::new(stop);
    let transposed = MergedGraph::new(graph, &mut meter)?.transposed();
    if let Some(network) = transposed.network_without_limits::<i64>(1, &mut meter)? {
        return Ok(cuts_around(network, parts, stop)?);
    }
    match transposed.network_without_limits::<i128>(1, &mut meter)? {
        Some(network) => Ok(cuts_around(network, parts, stop)?),
        None => Err(OptimumError::TooLarge { weight: 1 }),
    }
}

fn cuts_around<C: FlowUnit>(
    mut network: FlowNetwork<C>,
    parts: &[Vec<u32>],
    stop: &dyn Stop,
) -> Result<Vec<Vec<u32>>, Stopped> {
    // A part of several terminals drains into one more node, through arcs that are open for that part alone.
    let drain = network.add_node();
    let gates: Vec<Vec<_>> = parts
        .iter()
        .map(|part| {
            let members: &[u32] = if part.len() > 1 { part } else { &[] };
            members.iter().map(|&member| network.add_arc(member, drain, C::ZERO)).collect()
        })
        .collect();
    for &terminal in parts.iter().flatten() {
        network.set_supply(terminal, C::MAX);
    }
    let mut cuts = Vec::with_capacity(parts.len());
    for (part, gates) in parts.iter().zip(&gates) {
        let sink = if gates.is_empty() { part[0] } else { drain };
        part.iter().for_each(|&member| network.set_supply(member, C::ZERO));
        gates.iter().for_each(|&gate| network.set_capacity(gate, C::MAX));
        network.pull(sink, C::MAX, stop)?;
        let mut cut: Vec<u32> = network.min_cut_sink_nodes().iter().copied().filter(|&node| node != drain).collect();
        cut.sort_unstable();
        cuts.push(cut);
        gates.iter().for_each(|&gate| network.set_capacity(gate, C::ZERO));
        part.iter().for_each(|&member| network.set_supply(member, C::MAX));
    }
    Ok(cuts)
}
