//! Graphs on coordinates: products of rings, lines and complete graphs, and tori with a twist.

use super::{FamilyError, complete};
use crate::digraph::Digraph;
use crate::expand::product;
use crate::size::{Limit, Size, saturating_power};

/// What the lines of a grid are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lines {
    /// Node `i` with `i + 1`.
    Open,
    /// Node `i` with `i + 1` and the last with the first; two nodes are linked once, one not at all.
    Ring,
    /// Every node with every other.
    Complete,
}

/// `family:axbx…`: the product of lines.
pub(super) fn grid_size(family: &'static str, lines: Lines, extents: &[u64]) -> Result<Size, FamilyError> {
    if extents.is_empty() {
        return Err(FamilyError::value(family, "size", "", "extents such as 4x4"));
    }
    let mut size = Size { order: 1, edges: 0 };
    for &extent in extents {
        if extent == 0 {
            return Err(FamilyError::value(family, "size", extent, "whole numbers from 1"));
        }
        let wide = u128::from(extent);
        let edges = match lines {
            Lines::Ring if extent > 2 => 2 * wide,
            Lines::Open | Lines::Ring => 2 * (wide - 1),
            Lines::Complete => wide.saturating_mul(wide - 1),
        };
        size = size.times(Size { order: wide, edges });
    }
    Ok(size)
}

pub(super) fn grid(lines: Lines, extents: &[u32], limit: Limit) -> Digraph {
    let factors: Vec<Digraph> = extents.iter().map(|&extent| line(lines, extent)).collect();
    let factors: Vec<&Digraph> = factors.iter().collect();
    product(&factors, limit).expect("the size was checked")
}

/// Edges onwards before those back.
fn line(lines: Lines, extent: u32) -> Digraph {
    let joined = lines == Lines::Ring && extent > 2;
    match lines {
        Lines::Complete => complete::complete(extent),
        Lines::Open | Lines::Ring => Digraph::by_tail(extent, |node, heads| {
            if joined || node + 1 < extent {
                heads.push((node + 1) % extent);
            }
            if joined || node > 0 {
                heads.push((node + extent - 1) % extent);
            }
        }),
    }
}

/// One way around; a single node has no edge.
pub(super) fn one_way_ring_size(n: u64) -> Result<Size, FamilyError> {
    if n == 0 {
        return Err(FamilyError::value("ring", "size", n, "whole numbers from 1"));
    }
    Ok(Size { order: n.into(), edges: if n == 1 { 0 } else { n.into() } })
}

pub(super) fn one_way_ring(n: u32) -> Digraph {
    Digraph::by_tail(n, |node, heads| heads.extend((n > 1).then_some((node + 1) % n)))
}

/// `2ⁿ` nodes of `n` edges.
pub(super) fn hypercube_size(dimension: u64) -> Result<Size, FamilyError> {
    if dimension == 0 {
        return Err(FamilyError::value("hypercube", "size", dimension, "whole numbers from 1"));
    }
    Ok(Size::regular(saturating_power(2, dimension), dimension.into()))
}

/// Nodes are linked when their numbers differ in one bit; edges by falling bit, as in the power of two linked nodes.
pub(super) fn hypercube(dimension: u32) -> Digraph {
    Digraph::by_tail(1 << dimension, |node, heads| heads.extend((0..dimension).rev().map(|bit| node ^ (1 << bit))))
}

/// How a twisted torus with these extents is twisted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Twist {
    /// `2a×a`: who leaves through the end of the second dimension comes back `a` further along the first.
    Flat { a: u32 },
    /// `a×a×2a`: who leaves through the end of the first or second comes back `a` further along the third.
    Solid { a: u32 },
}

const TWISTED: &str = "extents 2a x a or a x a x 2a with a from 2, such as 8x4 or 4x4x8";

/// Which twist the extents ask for, by their smallest.
fn twist<T: Copy + PartialEq + PartialOrd + From<u8> + std::ops::Add<Output = T>>(extents: &[T]) -> Option<(T, bool)> {
    let two = T::from(2);
    match *extents {
        [x, y] if y >= two && x == y + y => Some((y, false)),
        [x, y, z] if x >= two && x == y && z == y + y => Some((y, true)),
        _ => None,
    }
}

pub(super) fn twisted_torus_size(extents: &[u64]) -> Result<Size, FamilyError> {
    let wide: Vec<u128> = extents.iter().copied().map(u128::from).collect();
    if twist(&wide).is_none() {
        return Err(FamilyError::value("twisted-torus", "size", super::joined(extents, "x"), TWISTED));
    }
    let order = wide.iter().fold(1_u128, |order, &extent| order.saturating_mul(extent));
    Ok(Size::regular(order, 2 * extents.len() as u128))
}

/// Dimension by dimension, edges onwards before those back.
///
/// Source: J. M. Cámara et al., "Twisted torus topologies for enhanced interconnection networks", IEEE TPDS 21(12), 2010;
/// N. Jouppi et al., "TPU v4", ISCA 2023, §2.8, name the shapes and say no more. That these twists have the low diameters
/// is tested.
pub(super) fn twisted_torus(extents: &[u32]) -> Digraph {
    let twist = match twist(extents) {
        Some((a, false)) => Twist::Flat { a },
        Some((a, true)) => Twist::Solid { a },
        None => unreachable!("the size was checked"),
    };
    let order = extents.iter().product();
    Digraph::by_tail(order, |node, heads| {
        for dimension in 0..extents.len() {
            for onwards in [true, false] {
                let mut place = coordinates(node, extents);
                let extent = extents[dimension];
                let wraps = place[dimension] == if onwards { extent - 1 } else { 0 };
                place[dimension] = (place[dimension] + if onwards { 1 } else { extent - 1 }) % extent;
                match twist {
                    Twist::Flat { a } if wraps && dimension == 1 => place[0] = (place[0] + a) % extents[0],
                    Twist::Solid { a } if wraps && dimension < 2 => place[2] = (place[2] + a) % extents[2],
                    Twist::Flat { .. } | Twist::Solid { .. } => {}
                }
                heads.push(place.iter().zip(extents).fold(0, |number, (&own, &extent)| number * extent + own));
            }
        }
    })
}

/// Row-major, the first slowest.
fn coordinates(mut node: u32, extents: &[u32]) -> Vec<u32> {
    let mut place: Vec<u32> = extents
        .iter()
        .rev()
        .map(|&extent| {
            let own = node % extent;
            node /= extent;
            own
        })
        .collect();
    place.reverse();
    place
}

/// The cube of eight nodes with the links 0–4 and 1–5 replaced by 0–5 and 1–4.
///
/// Source: A.-H. Esfahanian, L. Ni, B. Sagan, "The twisted N-cube with application to multiprocessing", IEEE Trans.
/// Comput. 40(1), 1991.
pub(super) fn twisted_cube() -> Digraph {
    let twisted = |node: u32| match node {
        0 => 5,
        1 => 4,
        4 => 1,
        5 => 0,
        _ => node ^ 4,
    };
    Digraph::by_tail(8, |node, heads| heads.extend([twisted(node), node ^ 2, node ^ 1]))
}
