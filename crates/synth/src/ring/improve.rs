//! Makes the worst neighbours of an order nearer.

use canopy_optimize::Stop;

use super::nearness::Near;
use crate::error::SynthesisError;
use crate::reach::ask;

/// Passes over all pairs of neighbours, at most. Orders that start well need two or three.
const PASSES_MAX: usize = 32;

/// Turns parts of a cyclic order around (2-opt) as long as that replaces two pairs of neighbours by a better two: the
/// farther of the new ones is nearer than the farther of the old ones, or as far and the other one nearer.
///
/// All four ends stay, and the sorted list of all distances shrinks lexicographically with each turn, so it ends. Does
/// nothing where distances are not alike in both directions, since turning a part changes all of its steps.
/// O(ranks²) per pass.
pub(super) fn improve(order: &mut [u32], rows: &[Vec<Near>], stop: &dyn Stop) -> Result<(), SynthesisError> {
    let near = |from: u32, to: u32| rows[from as usize][to as usize];
    let is_symmetric = (0..order.len()).all(|from| (0..from).all(|to| rows[from][to] == rows[to][from]));
    if !is_symmetric {
        return Ok(());
    }
    // Every two hops of the ring, with the part between them turned around (2-opt): O(ranks²) for each pass.
    for _ in 0..PASSES_MAX {
        let mut is_better = false;
        for first in 0..order.len().saturating_sub(2) {
            ask(stop)?;
            for second in first + 2..order.len() {
                let (a, b) = (order[first], order[first + 1]);
                let (c, d) = (order[second], order[(second + 1) % order.len()]);
                let before = worst_first(near(a, b), near(c, d));
                if a != d && worst_first(near(a, c), near(b, d)) < before {
                    order[first + 1..=second].reverse();
                    is_better = true;
                }
            }
        }
        if !is_better {
            break;
        }
    }
    Ok(())
}

fn worst_first(one: Near, other: Near) -> (Near, Near) {
    (one.max(other), one.min(other))
}
