//! Runs of a plan of canopy's: the times that simulations give them.

use std::collections::BTreeMap;

use canopy_calibrate::{Parameters, Point, inside};
use canopy_schedule::TransferGraph;
use canopy_simulate::{SimulateError, SimulateOptions, elsewhere, simulate};
use canopy_topology::{LinkIndex, Topology};

use super::not_timed::NotTimed;
use crate::clock::Deadline;
use crate::exit::words;
use crate::material::Material;

/// Bytes that are simulated, however many messages they are.
const BYTES_SIMULATED_LEAST: u64 = 64 << 20;
/// Messages of a roughly computed time at most: that of more bytes is that of fewer and the rest at their rate.
const MESSAGES_ROUGH_MAX: u64 = 8_000;
/// Most messages of a time that is computed with care.
const MESSAGES_MAX: u64 = 130_000;
/// A message of which bytes take next to no time.
const BYTES_SMALL: u64 = 1 << 10;
/// Most work for a time.
const WORK_MAX: u64 = 200_000_000;

/// How messages are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// Each piece begins when the one before has left, as in simulations.
    Pieces,
    /// Without a break, as runtimes send that begin a piece while others are under way.
    Stream,
}

/// How well times are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Care {
    /// Those of very large messages by smaller ones.
    Rough,
    /// All by simulation, but for those of very many messages.
    Exact,
}

/// Times by simulation, in microseconds.
pub(super) fn times(
    plan: &Material,
    sent: Sent,
    points: &[Point],
    at: &Parameters,
    care: Care,
    deadline: Deadline,
) -> Result<Vec<f64>, NotTimed> {
    let wrong = |error: &dyn std::error::Error| NotTimed::Wrong(words(error));
    let measured = at.applied(&plan.topology, &BTreeMap::new()).map_err(|error| wrong(&error))?;
    let graph = elsewhere(&plan.graph, &plan.topology, &measured).map_err(|error| wrong(&error))?;
    if sent == Sent::Stream {
        let (small, _) = simulated(&measured, &graph, BYTES_SMALL, at, deadline)?;
        let per_byte = micros_per_byte(plan, at);
        let rest = |bytes: u64| bytes.saturating_sub(BYTES_SMALL) as f64 * per_byte;
        return Ok(points.iter().map(|point| small + rest(point.bytes)).collect());
    }
    // Sizes come more than once.
    let mut known = BTreeMap::new();
    let mut time = |bytes: u64| match known.get(&bytes) {
        Some(&time) => Ok(time),
        None => {
            let found = simulated(&measured, &graph, bytes, at, deadline)?;
            known.insert(bytes, found);
            Ok(found)
        }
    };
    let largest = points.iter().map(|point| point.bytes).max().unwrap_or(0);
    let mut most = u64::MAX;
    if largest > BYTES_SIMULATED_LEAST {
        let (_, messages) = time(BYTES_SIMULATED_LEAST)?;
        let messages_max = if care == Care::Rough { MESSAGES_ROUGH_MAX } else { MESSAGES_MAX };
        most = BYTES_SIMULATED_LEAST << (messages_max / messages.max(1)).max(1).ilog2();
    }
    let of_point = |point: &Point| {
        if point.bytes <= most {
            return Ok(time(point.bytes)?.0);
        }
        let (part, _) = time(most / 4)?;
        let (whole, _) = time(most)?;
        Ok(whole + (point.bytes - most) as f64 * (whole - part) / (most - most / 4) as f64)
    };
    points.iter().map(of_point).collect()
}

/// What a byte of a large message takes on the busiest link.
fn micros_per_byte(plan: &Material, at: &Parameters) -> f64 {
    let described = 1e6 / (plan.verdict.algbw.gigabytes_per_sec() * 1e9);
    let is_inside = inside(&plan.topology);
    let links = (0..).zip(&is_inside);
    let time = |(number, &is_inside): (u32, &bool)| {
        let factor = if is_inside { at.inside } else { at.across };
        plan.loads.busy(LinkIndex::new(number)).to_f64() * described / factor
    };
    links.map(time).fold(0.0, f64::max)
}

/// What a message takes, in microseconds, and in how many messages it is sent.
fn simulated(
    topology: &Topology,
    graph: &TransferGraph,
    size_bytes: u64,
    at: &Parameters,
    deadline: Deadline,
) -> Result<(f64, u64), NotTimed> {
    let (alpha, launch) = (at.message(), at.launch());
    let options = SimulateOptions { alpha, launch, ..SimulateOptions::usual(size_bytes, WORK_MAX) };
    let outcome = simulate(topology, graph, &options, &|| deadline.is_past());
    match outcome {
        Ok(outcome) => Ok((outcome.time_ps as f64 / 1e6, outcome.message_count)),
        Err(SimulateError::Stopped) => Err(NotTimed::Late),
        Err(error) => Err(NotTimed::Wrong(words(&error))),
    }
}
