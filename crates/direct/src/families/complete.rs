//! Complete and complete bipartite graphs.

use super::FamilyError;
use crate::digraph::Digraph;
use crate::size::Size;

pub(super) fn complete_size(n: u64) -> Result<Size, FamilyError> {
    at_least_one("complete", n)?;
    Ok(Size::regular(n.into(), u128::from(n) - 1))
}

/// Heads in increasing order.
pub(super) fn complete(n: u32) -> Digraph {
    Digraph::by_tail(n, |node, heads| heads.extend((0..n).filter(|&head| head != node)))
}

pub(super) fn bipartite_size(left: u64, right: u64) -> Result<Size, FamilyError> {
    at_least_one("bipartite", left.min(right))?;
    let (left, right) = (u128::from(left), u128::from(right));
    Ok(Size { order: left + right, edges: left.saturating_mul(right).saturating_mul(2) })
}

/// Heads in increasing order.
pub(super) fn bipartite(left: u32, right: u32) -> Digraph {
    let all = left + right;
    Digraph::by_tail(all, |node, heads| heads.extend(if node < left { left..all } else { 0..left }))
}

fn at_least_one(family: &'static str, n: u64) -> Result<(), FamilyError> {
    if n == 0 { Err(FamilyError::value(family, "size", n, "whole numbers from 1")) } else { Ok(()) }
}
