//! Balanced parts in floats to balanced parts in whole numbers.

use super::way::Way;
use crate::flow::{ArcId, FlowNetwork};
use crate::stop::{Stop, Stopped};

/// As near as this to a whole number, a float means it.
const NEAR: f64 = 1e-5;

/// Whole numbers next to `kept`, above or below, that are balanced where these are; `None` where floats are too far out of
/// balance.
///
/// What terminals send out and take in is next to what it was, too: what was whole stays as it is. A flow decides which numbers
/// are rounded up: as one in fractions exists, so does one in whole numbers.
///
/// * **In.** By arc, what it keeps, below 2⁴⁰.
/// * **Cost.** One flow for each terminal and node at most, with capacities of 0 and 1.
#[expect(clippy::cast_possible_truncation, reason = "numbers are below 2^53")]
pub(super) fn rounded(
    ways: &[Way],
    is_balanced: &[bool],
    kept: &[f64],
    stop: &dyn Stop,
) -> Result<Option<Vec<u128>>, Stopped> {
    let node_count = is_balanced.len();
    // Node v sends out, v + n takes in; of balanced ones both are v. A hub joins all that is not balanced.
    let (hub, all) = (2 * node_count, 2 * node_count + 1);
    let taking = |node: u32| if is_balanced[node as usize] { node as usize } else { node as usize + node_count };
    let mut sums = vec![0.0; all];
    for (&(from, to, _), kept) in ways.iter().zip(kept) {
        sums[from as usize] += if is_balanced[from as usize] { 0.0 } else { *kept };
        sums[taking(to)] += if is_balanced[to as usize] { 0.0 } else { *kept };
    }
    let of_arcs = ways.iter().zip(kept).map(|(&(from, to, _), &kept)| (from as usize, taking(to), kept));
    let of_terminals = (0..node_count).filter(|&node| !is_balanced[node]);
    let of_terminals =
        of_terminals.flat_map(|node| [(hub, node, sums[node]), (node + node_count, hub, sums[node + node_count])]);
    let mut network = FlowNetwork::<i64>::new(all as u32);
    // What enters a node, rounded down, less what leaves it.
    let mut surplus = vec![0_i64; all];
    let mut whole: Vec<i64> = Vec::with_capacity(ways.len());
    let mut up: Vec<ArcId> = Vec::with_capacity(ways.len());
    let mut is_open: Vec<bool> = Vec::with_capacity(ways.len());
    for (from, to, value) in of_arcs.chain(of_terminals) {
        let nearest = value.round();
        let is_whole = (value - nearest).abs() < NEAR;
        let down = if is_whole { nearest as i64 } else { value.floor() as i64 };
        up.push(network.add_arc(from as u32, to as u32, i64::from(!is_whole)));
        is_open.push(!is_whole);
        whole.push(down);
        surplus[to] += down;
        surplus[from] -= down;
    }
    for (node, &surplus) in (0_u32..).zip(&surplus) {
        network.set_supply(node, surplus.max(0));
    }
    // A node that lacks something pulls it from those that have too much.
    for (node, &surplus) in (0_u32..).zip(&surplus).filter(|(_, surplus)| **surplus < 0) {
        if network.pull(node, -surplus, stop)? < -surplus {
            return Ok(None);
        }
        network.commit();
    }
    let taken = up.iter().map(|&arc| 1 - network.capacity(arc)).zip(is_open);
    let taken = taken.map(|(taken, is_open)| if is_open { taken } else { 0 });
    let kept = whole.iter().zip(taken).take(ways.len()).map(|(down, taken)| u128::try_from(down + taken).ok());
    Ok(kept.collect())
}
