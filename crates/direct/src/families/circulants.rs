//! Rings and circulants: graphs on the numbers modulo `n` that look the same from every node.

use num_integer::Integer as _;

use super::FamilyError;
use crate::digraph::Digraph;
use crate::size::Size;

pub(super) fn uni_ring_size(n: u64, d: u64) -> Result<Size, FamilyError> {
    if n < 2 {
        return Err(FamilyError::value("uniring", "n", n, "whole numbers from 2"));
    }
    if d == 0 {
        return Err(FamilyError::value("uniring", "d", d, "whole numbers from 1"));
    }
    Ok(Size::regular(n.into(), d.into()))
}

pub(super) fn uni_ring(n: u32, d: u32) -> Digraph {
    Digraph::by_tail(n, |node, heads| heads.extend(std::iter::repeat_n((node + 1) % n, d as usize)))
}

pub(super) fn bi_ring_size(n: u64, d: u64) -> Result<Size, FamilyError> {
    if n < 3 {
        return Err(FamilyError::value(
            "biring",
            "n",
            n,
            "whole numbers from 3 (for two nodes with d links use uniring:n=2)",
        ));
    }
    if d == 0 || !d.is_multiple_of(2) {
        return Err(FamilyError::value("biring", "d", d, "even numbers from 2, half for each direction"));
    }
    Ok(Size::regular(n.into(), d.into()))
}

/// Edges onwards before those back.
pub(super) fn bi_ring(n: u32, d: u32) -> Digraph {
    circulant(n, &[1], d / 2)
}

pub(super) fn circulant_size(n: u64, offsets: &[u64], copies: u64) -> Result<Size, FamilyError> {
    let refused =
        |found: &dyn std::fmt::Display, expected| Err(FamilyError::value("circulant", "offsets", found, expected));
    if offsets.is_empty() {
        return refused(&"", "at least one offset");
    }
    for (position, &offset) in offsets.iter().enumerate() {
        if offset == 0 || u128::from(offset) * 2 >= u128::from(n) {
            return refused(&offset, "offsets from 1 to below n/2 (an offset of n/2 gives one link, not two)");
        }
        if offsets[..position].contains(&offset) {
            return refused(&offset, "each offset once (for parallel links give d)");
        }
    }
    if copies == 0 {
        return Err(FamilyError::value("circulant", "d", 0, "a positive multiple of twice the number of offsets"));
    }
    let common = offsets.iter().fold(n, |common, &offset| common.gcd(&offset));
    if common > 1 {
        let expected = "offsets that have no common divisor with n (the network would be split)";
        return refused(&super::joined(offsets, "+"), expected);
    }
    let degree = (offsets.len() as u128).saturating_mul(2).saturating_mul(copies.into());
    Ok(Size::regular(n.into(), degree))
}

/// Offset by offset, edges onwards before those back.
pub(super) fn circulant(n: u32, offsets: &[u32], copies: u32) -> Digraph {
    let around = |node: u32, offset: u32| {
        let sum = u64::from(node) + u64::from(offset);
        u32::try_from(sum % u64::from(n)).expect("below n")
    };
    Digraph::by_tail(n, |node, heads| {
        for &offset in offsets {
            heads.extend(std::iter::repeat_n(around(node, offset), copies as usize));
            heads.extend(std::iter::repeat_n(around(node, n - offset), copies as usize));
        }
    })
}

/// The least `m` with `2m² + 2m + 1 ≥ n`, which is `⌈(√(2n−1) − 1)/2⌉`: so many nodes are within `m` steps at most.
pub(super) fn least_diameter(n: u64) -> u64 {
    let mut m = ((2 * u128::from(n) - 1).isqrt() / 2).saturating_sub(1);
    while 2 * m * m + 2 * m + 1 < u128::from(n) {
        m += 1;
    }
    u64::try_from(m).expect("below n")
}

pub(super) fn directed_size(d: u64) -> Result<Size, FamilyError> {
    if d == 0 {
        return Err(FamilyError::value("dcirculant", "d", d, "whole numbers from 1"));
    }
    Ok(Size::regular(u128::from(d) + 2, d.into()))
}

pub(super) fn directed(d: u32) -> Digraph {
    let n = d + 2;
    Digraph::by_tail(n, |node, heads| heads.extend((1..=d).map(|offset| (node + offset) % n)))
}
