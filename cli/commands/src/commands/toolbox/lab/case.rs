//! What is run in a lab: a plan with its scale, size and pieces, and what it is predicted to take.

use canopy_lab::{Compiled, Demand, FRAME_HEAD_BYTES, Job, Pace, Scale, compile};
use canopy_simulate::{Pieces, SimulateOptions, simulate};
use canopy_topology::{Latency, Rate};
use num_traits::ToPrimitive as _;

use crate::exit::{Failure, words};
use crate::material::Material;

/// Percent of its plan's rate at which a connection sends: a little more than it needs, for the heads of frames.
const PACE_PERCENT: u64 = 102;
/// Part of the rate of large messages, in percent, that pieces may cost before smaller ones are taken.
const PIECES_PERCENT: u128 = 97;
/// Frames of a piece, from the largest to the smallest.
const FRAMES: [u64; 4] = [4, 3, 2, 1];
/// Factor of sizes and pieces in simulations: the lab has no latencies, and beside large messages they do not count.
const LARGER: u64 = 4096;
/// Most work of a simulation.
const WORK_MAX: u64 = 100_000_000;
/// Smallest size that says anything.
const SIZE_BYTES_MIN: u64 = 1 << 10;

/// A plan in a lab.
pub(super) struct Case {
    pub(super) name: String,
    pub(super) material: Material,
    pub(super) scale: Scale,
    pub(super) size_bytes: u64,
    pub(super) piece_bytes: u64,
    pub(super) compiled: Compiled,
    /// Of large messages, in the lab, in nanoseconds.
    pub(super) predicted_ns: u64,
    /// With these pieces.
    pub(super) simulated_ns: u64,
}

/// How a plan is to be run, where that is stated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wishes {
    pub(super) scale: Option<Scale>,
    pub(super) size_bytes: Option<u64>,
    pub(super) piece_bytes: Option<u64>,
    pub(super) run_ms: u64,
    pub(super) is_paced: bool,
}

/// The scale at which this machine emulates a plan's network.
pub(super) fn scale_for(material: &Material, wishes: &Wishes) -> Result<Scale, Failure> {
    if let Some(scale) = wishes.scale {
        return Ok(scale);
    }
    let topology = &material.topology;
    let (mut demand, mut traffic) =
        (Demand { slowest_bytes_per_sec: u64::MAX, fastest_bytes_per_sec: 0, traffic_bytes_per_sec: 0 }, 0_u128);
    for (link, index) in topology.links().iter().zip(0..) {
        let capacity = link.capacity.bytes_per_sec();
        demand.fastest_bytes_per_sec = demand.fastest_bytes_per_sec.max(capacity);
        let busy = material.loads.busy(canopy_topology::LinkIndex::new(index)).to_f64();
        if busy > 0.0 {
            demand.slowest_bytes_per_sec = demand.slowest_bytes_per_sec.min(capacity);
            traffic += (busy * capacity.to_f64().unwrap_or(0.0)).to_u128().unwrap_or(0);
        }
    }
    demand.traffic_bytes_per_sec = traffic;
    Scale::usual(&demand)
        .map_err(|error| Failure::input(words(&error)).help("choose one with --scale, such as 1GBps=2Mbit"))
}

/// A rate of the topology in the lab, in bytes per second.
pub(super) fn in_lab(rate: &Rate, scale: Scale) -> u64 {
    let (numerator, denominator) = rate.parts();
    let bytes = numerator * scale.bits_per_gigabyte() / (denominator * 8_000_000_000_u64);
    bytes.to_u64().unwrap_or(u64::MAX)
}

/// A rate in the lab as the topology states it, in GB/s: for display.
pub(super) fn gigabytes(size_bytes: u64, nanos: u64, scale: Scale) -> f64 {
    let number = |value: u64| value.to_f64().unwrap_or(f64::NAN);
    number(size_bytes) * 8e9 / number(nanos.max(1)) / number(scale.bits_per_gigabyte())
}

impl Case {
    /// Chooses size and pieces where none are stated, and makes the ranks' programs. `route_first` is the number of its
    /// first route.
    pub(super) fn new(
        name: String,
        material: Material,
        scale: Scale,
        wishes: &Wishes,
        route_first: u32,
    ) -> Result<Self, Failure> {
        let rate = in_lab(&material.verdict.algbw, scale).max(1);
        let wanted = wishes.size_bytes.unwrap_or(rate / 1000 * wishes.run_ms).max(SIZE_BYTES_MIN);
        let sizes = FRAMES.map(|frames| frames * Pace::QUANTUM_BYTES as u64 - FRAME_HEAD_BYTES as u64);
        let mut best = None;
        for piece_bytes in wishes.piece_bytes.map_or(sizes.to_vec(), |piece| vec![piece]) {
            let size_bytes = wishes.size_bytes.map_or_else(|| even(&material, wanted, piece_bytes), Ok)?;
            let predicted_ns = nanos(size_bytes, rate);
            let job = Job {
                topology: &material.topology,
                graph: &material.graph,
                size_bytes,
                piece_bytes,
                time_ns: predicted_ns,
                pace_percent: if wishes.is_paced { PACE_PERCENT } else { 0 },
                route_first,
            };
            // Before the simulation: what is too large is known at once.
            let compiled = compile(&job).map_err(|error| Failure::input(words(&error)))?;
            let simulated_ns = simulated(&material, size_bytes, piece_bytes, scale)?;
            best = Some((size_bytes, piece_bytes, predicted_ns, simulated_ns, compiled));
            if u128::from(predicted_ns) * 100 >= u128::from(simulated_ns) * PIECES_PERCENT {
                break;
            }
        }
        let best = best.ok_or_else(|| Failure::fault("no size of pieces was tried"))?;
        let (size_bytes, piece_bytes, predicted_ns, simulated_ns, compiled) = best;
        Ok(Self { name, material, scale, size_bytes, piece_bytes, compiled, predicted_ns, simulated_ns })
    }
}

/// How long these bytes take at a rate.
fn nanos(size_bytes: u64, bytes_per_sec: u64) -> u64 {
    let nanos = u128::from(size_bytes) * 1_000_000_000 / u128::from(bytes_per_sec.max(1));
    u64::try_from(nanos).unwrap_or(u64::MAX).max(1)
}

/// A size near the wanted one whose chunks are whole pieces, or whole words where they are smaller.
fn even(material: &Material, wanted: u64, piece_bytes: u64) -> Result<u64, Failure> {
    let layout = material.graph.layout().map_err(|error| Failure::input(words(&error)))?;
    let size = layout.size();
    let (chunks, divisor) = (u128::from(size.chunks), u128::from(size.divisor));
    let chunk = u128::from(wanted) * divisor / chunks;
    let unit = if chunk >= u128::from(piece_bytes) { u128::from(piece_bytes) } else { 4 };
    let chunk = (chunk / unit).max(1) * unit;
    u64::try_from(chunk * chunks / divisor).map_err(|_| Failure::input("the size is too large").help("lower --size"))
}

/// How long a plan takes in the lab by simulation.
fn simulated(material: &Material, size_bytes: u64, piece_bytes: u64, scale: Scale) -> Result<u64, Failure> {
    let options = SimulateOptions {
        alpha: Latency::from_nanos(0),
        pieces: Pieces::AtMost { bytes: piece_bytes.saturating_mul(LARGER) },
        ..SimulateOptions::usual(size_bytes.saturating_mul(LARGER), WORK_MAX)
    };
    let outcome = simulate(&material.topology, &material.graph, &options, &|| false)
        .map_err(|error| Failure::input(words(&error)).help("lower --size, or raise --piece"))?;
    // Picoseconds on links of `8·10⁹/scale` times the rate, for `LARGER` times the bytes.
    let nanos =
        u128::from(outcome.time_ps) * 8_000_000_000 / u128::from(scale.bits_per_gigabyte()) / 1000 / u128::from(LARGER);
    Ok(u64::try_from(nanos).unwrap_or(u64::MAX).max(1))
}
