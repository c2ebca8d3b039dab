//! Kautz graphs and what generalises them to every number of nodes.

use super::FamilyError;
use crate::digraph::Digraph;
use crate::size::{Size, saturating_power};

pub(super) fn kautz_size(d: u64, n: u64) -> Result<Size, FamilyError> {
    if d < 2 {
        return Err(FamilyError::value("kautz", "d", d, "whole numbers from 2 (words of two letters make complete:2)"));
    }
    if n == 0 {
        return Err(FamilyError::value("kautz", "n", n, "whole numbers from 1"));
    }
    let words = saturating_power(d, n - 1).saturating_mul(u128::from(d) + 1);
    Ok(Size::regular(words, d.into()))
}

/// The words as numbers: the first letter, then for each further one its place among the letters that differ from the one
/// before, first letter slowest.
///
/// Of a word, the first letter selects a run of `dⁿ⁻¹`; the words that follow `x₁…xₙ` stand side by side, `d` of them,
/// because they agree in all but the last letter.
pub(super) fn kautz(d: u32, n: u32) -> Digraph {
    let order = (d + 1) * d.pow(n - 1);
    let run = order / (d + 1);
    Digraph::by_tail(order, |word, heads| {
        if n == 1 {
            return heads.extend((0..=d).filter(|&letter| letter != word));
        }
        // Letters x1 and x2, from the place of x2 among those that differ from x1.
        let (first, rest) = (word / run, word % run);
        let (place, tail) = (rest / (run / d), rest % (run / d));
        let second = place + u32::from(place >= first);
        let follower = second * run + tail * d;
        heads.extend(follower..follower + d);
    })
}

pub(super) fn generalized_size(n: u64, d: u64) -> Result<Size, FamilyError> {
    if d < 2 {
        // x → −x − 1 leads back at once.
        return Err(FamilyError::value("genkautz", "d", d, "whole numbers from 2"));
    }
    if n <= d {
        return Err(FamilyError::value("genkautz", "n", n, "more nodes than d"));
    }
    Ok(Size::regular(n.into(), d.into()))
}

/// `x → −d·x − a` modulo `n`, in increasing `a` from 1 to `d`.
///
/// Source: M. Imase, M. Itoh, "A design for directed graphs with minimum diameter", IEEE Trans. Comput. C-32, 1983.
pub(super) fn generalized(n: u32, d: u32) -> Digraph {
    let (n, d) = (u64::from(n), u64::from(d));
    let order = u32::try_from(n).expect("it was one");
    Digraph::by_tail(order, |node, heads| {
        heads.extend((1..=d).map(|a| {
            let forward = (d * u64::from(node) + a) % n;
            u32::try_from((n - forward) % n).expect("below n")
        }));
    })
}
