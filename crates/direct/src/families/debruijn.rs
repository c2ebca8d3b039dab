//! De Bruijn graphs, two of whose kinds of links lead nowhere new, and what is made of them without these.

use super::FamilyError;
use crate::digraph::Digraph;
use crate::size::{Size, saturating_power};

pub(super) fn debruijn_size(d: u64, n: u64) -> Result<Size, FamilyError> {
    if d < 2 {
        return Err(FamilyError::value("debruijn", "d", d, "whole numbers from 2"));
    }
    if n == 0 {
        return Err(FamilyError::value("debruijn", "n", n, "whole numbers from 1"));
    }
    Ok(Size::regular(saturating_power(d, n), d.into()))
}

/// `x → d·x + a` modulo `dⁿ`, in increasing `a` from 0 to `d − 1`.
pub(super) fn debruijn(d: u32, n: u32) -> Digraph {
    let order = d.pow(n);
    // x without its first digit, so that nothing overflows.
    let rest = order / d;
    Digraph::by_tail(order, |node, heads| heads.extend((0..d).map(|a| node % rest * d + a)))
}

/// The cycle that stands in for the edges taken out of each graph there is.
fn cycle(d: u64, n: u64) -> Option<&'static [u32]> {
    match (d, n) {
        (2, 3) => Some(&[0, 2, 5, 7]),
        (2, 4) => Some(&[0, 5, 10, 15]),
        (4, 2) => Some(&[12, 13, 1, 15, 0, 4, 5, 14, 6, 2, 3, 11, 8, 10, 7, 9]),
        _ => None,
    }
}

pub(super) fn modified_size(d: u64, n: u64) -> Result<Size, FamilyError> {
    if cycle(d, n).is_none() {
        let found = format!("d={d},n={n}");
        return Err(FamilyError::value("dbjmod", "n", found, "d=2,n=3 or d=2,n=4 or d=4,n=2"));
    }
    Ok(Size::regular(saturating_power(d, n), d.into()))
}

/// The de Bruijn graph without edges from a node to itself and without pairs of edges there and back, whose nodes are then
/// joined by one cycle.
///
/// Zhao 2026 gives the graphs as figures only. These cycles give them every published number: steps, bandwidth, symmetry
/// and the rate of an all-to-all.
pub(super) fn modified(d: u32, n: u32) -> Digraph {
    let plain = debruijn(d, n);
    let cycle = cycle(d.into(), n.into()).expect("the size was checked");
    Digraph::by_tail(plain.order(), |node, heads| {
        let out = plain.out(node);
        heads.extend(out.iter().copied().filter(|&head| head != node && !plain.out(head).contains(&node)));
        if let Some(place) = cycle.iter().position(|&other| other == node) {
            heads.push(cycle[(place + 1) % cycle.len()]);
        }
    })
}

/// Eight nodes of degree 2 within three steps.
///
/// Zhao 2026 gives it as a figure only. Of the graphs of that size this one and its transpose, which are different, have
/// every published number.
pub(super) fn diamond() -> Digraph {
    const HEADS: [[u32; 2]; 8] = [[7, 3], [0, 7], [4, 1], [1, 4], [6, 5], [3, 6], [2, 0], [5, 2]];
    Digraph::by_tail(8, |node, heads| heads.extend(HEADS[node as usize]))
}
