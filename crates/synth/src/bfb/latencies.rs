//! When latencies have a say in how shares are divided, and how many bytes each of them is worth.
//!
//! Breadth-first broadcasts take as many steps as they take. What latencies can change is over which links a rank receives:
//! one that is late by as long as a share takes may as well stay idle. That depends on the size of messages, so it is
//! asked only where one is stated, where the links into some rank differ, and where the differences matter beside the bytes.
//! Behind hosts it is not asked: there the division of one rank depends on that of others.

use std::num::NonZeroU64;

use canopy_optimize::{BfbError, BfbGraph, Fraction, StepLoads};
use num_integer::Integer;

use super::network::Direction;
use super::wires::Wires;
use crate::error::SynthesisError;

/// Latencies count if the largest differences, one in each step, add up to more than one part in so many of the time for
/// the bytes.
const COUNTED_PART: u128 = 100;

/// Latencies of links beyond the shortest, as what a link carries meanwhile: by link, in parts of `per` of an amount for each
/// width.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Delays {
    pub(super) of_links: Vec<u64>,
    pub(super) per: u64,
}

/// Whether the links into some rank, in one of the directions, differ in their latencies.
pub(super) fn are_unequal(wires: &Wires, directions: &[Direction]) -> bool {
    let latency = |arc: u32| wires.all[arc as usize].latency_ns;
    directions.iter().any(|Direction { graph, .. }| {
        (0..graph.node_count())
            .any(|node| graph.in_links(node).windows(2).any(|pair| latency(pair[0].arc) != latency(pair[1].arc)))
    })
}

/// Delays for messages of this size, if they count beside the loads that steps have without them.
///
/// Amounts add up to A for `size_bytes` of data, and a link of width w carries `w·unit` bytes per second, so a latency of
/// α ns is worth `α·A·unit / (10⁹·size_bytes)` of an amount for each width. None also where that takes more than 64 bits,
/// which only rates without a common divisor do.
pub(super) fn that_count(
    wires: &Wires,
    directions: &[Direction],
    exact: &[StepLoads],
    size_bytes: NonZeroU64,
) -> Option<Delays> {
    let graph = &directions.first()?.graph;
    let amount: u128 = (0..graph.node_count()).map(|node| u128::from(graph.amount(node))).sum();
    let (worth, per) = (amount.checked_mul(graph.unit().into())?, u128::from(size_bytes.get()) * 1_000_000_000);
    let common = worth.gcd(&per);
    let (worth, per) = (u64::try_from(worth / common).ok()?, u64::try_from(per / common).ok()?);
    let least = wires.all.iter().map(|wire| wire.latency_ns).min()?;
    let delay = |nanos: u64| (nanos - least).checked_mul(worth);
    let of_links: Vec<u64> = wires.all.iter().map(|wire| delay(wire.latency_ns)).collect::<Option<_>>()?;
    let longest = of_links.iter().copied().max()?;
    let step_count: usize = exact.iter().map(|loads| loads.loads.len()).sum();
    let waiting = u128::from(longest).checked_mul(step_count as u128)?.checked_mul(COUNTED_PART)?;
    let waiting = Fraction::new(waiting, per.into())?;
    let bytes = exact.iter().try_fold(Fraction::ZERO, |sum, loads| sum.checked_add(loads.total()?))?;
    (waiting > bytes).then_some(Delays { of_links, per })
}

/// The same directions on links with delays; none where times could not be counted exactly.
///
/// # Errors
/// Bugs.
pub(super) fn delayed(directions: &[Direction], delays: &Delays) -> Result<Option<Vec<Direction>>, SynthesisError> {
    let delayed = |direction: &Direction| -> Result<Direction, BfbError> {
        let graph: BfbGraph = direction.graph.clone();
        Ok(Direction { graph: graph.with_delays(&delays.of_links, delays.per)?, action: direction.action, joint: None })
    };
    match directions.iter().map(delayed).collect() {
        Ok(directions) => Ok(Some(directions)),
        Err(BfbError::InexactDelays { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
