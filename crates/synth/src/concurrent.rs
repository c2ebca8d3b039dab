//! All-to-all as a maximum concurrent flow: every rank sends to every other at one rate, the greatest that the links allow.
//!
//! A linear program says how, in floating point (`canopy_optimize`), and proves with lengths of links how much better
//! anything could be; its flow is rounded to whole chunks, and these are taken apart into paths. Where a network looks the
//! same from all of its ranks, by a group of translations, the paths of one rank serve them all.

mod chunks;
mod network;
mod routes;

use canopy_optimize::{
    ConcurrentError, ConcurrentOptimum, Fraction, SolverOptions, Stop, WholeFlow, length_bound, solve, solve_exactly,
};
use canopy_schedule::{Bound, Certificate, Flow};
use canopy_topology::{Rank, Rate, Topology};
use num_bigint::BigUint;

use self::chunks::Division;
use self::network::Network;
use crate::algorithm::TreeLimits;
use crate::error::SynthesisError;
use crate::progress::{Progress, Stage};
use crate::reach::disconnected;
use crate::tolerance::Tolerance;

/// Part of the rate that a flow may lack where no tolerance is stated: less than any chunk counts.
const TOLERANCE: f64 = 1e-6;
/// Variables times iterations that the first-order solver may spend: some ten seconds on two cores.
const WORK_MAX: u64 = 6_000_000_000;

/// Most variables: some gigabytes.
const VARIABLES_MAX: u64 = 1 << 25;

/// The flow of an all-to-all, and what proves how good it is.
#[derive(Clone, Debug)]
pub struct AllToAllFlow {
    network: Network,
    optimum: ConcurrentOptimum,
    /// No flow has a greater rate.
    limit: Fraction,
    tolerance: f64,
    /// In as many chunks as it takes to lose next to nothing.
    finest: WholeFlow,
}

impl AllToAllFlow {
    /// Solves the program for a network.
    ///
    /// * **Source.** Basu 2024 §3.1.2, equations (6)–(9), the flows of each source together.
    /// * **In.** `tolerance`: how much of the best rate may be lacking, so that the search ends sooner; by itself it ends at
    ///   a millionth, or where its work is done.
    /// * **Errors.** Ranks that do not reach each other, capacities too uneven to be counted, stopped.
    /// * **Cost.** One rank of a network with translations: milliseconds; else 10 ms for 16 ranks, and for 1,000 ranks
    ///   of degree 4 some seconds at one percent.
    pub fn of(
        topology: &Topology,
        tolerance: Option<Tolerance>,
        stop: &dyn Stop,
        progress: &dyn Progress,
    ) -> Result<Self, SynthesisError> {
        if let Some((from, to)) = topology.first_unreachable() {
            return Err(disconnected(topology, from, to));
        }
        let (ranks, links) = (topology.rank_count(), topology.links().len());
        progress.report(Stage::Optimum, 0, 1);
        let network = Network::of(topology, stop)?;
        let fault = |error| fault(topology, error);
        let problem = network.problem().map_err(fault)?;
        if problem.commodities().len() as u64 * links as u64 > VARIABLES_MAX {
            return Err(SynthesisError::TooManyVariables { ranks, links, limit: VARIABLES_MAX });
        }
        let tolerance = tolerance.map_or(TOLERANCE, |tolerance| {
            let (numerator, denominator) = tolerance.parts();
            f64::from(numerator) / f64::from(denominator)
        });
        let exact = solve_exactly(&problem, stop).map_err(fault)?;
        let optimum = match exact {
            Some(optimum) => optimum,
            None => {
                // Half of what may be lacking is left to whole chunks.
                let options = SolverOptions { tolerance: tolerance / 2.0, work_max: WORK_MAX };
                solve(&problem, &options, stop, &mut |_, _| ()).map_err(fault)?
            }
        };
        let limit = length_bound(&problem, &optimum.lengths, stop).map_err(fault)?;
        let nothing = || SynthesisError::Broken { what: "lengths that leave all ranks at distance 0".to_owned() };
        let limit = limit.ok_or_else(nothing)?;
        let division = Division { problem: &problem, optimum: &optimum, limit, tolerance };
        let finest = division.finest(stop).map_err(fault)?;
        progress.report(Stage::Optimum, 1, 1);
        Ok(Self { network, optimum, limit, tolerance, finest })
    }

    /// Bounds on algbw: from above by the lengths, from below by the flow in whole chunks.
    pub fn bound(&self, topology: &Topology) -> Bound {
        let ranks = BigUint::from(topology.rank_count());
        let rate = |Fraction { numerator, denominator }: Fraction| Rate::new(&ranks * numerator, denominator);
        let upper = rate(self.limit).unwrap_or_else(Rate::zero);
        let lower = self.finest.rate().and_then(rate).unwrap_or_else(Rate::zero);
        Bound { upper, lower, certificate: Certificate::LpDual { lengths: self.optimum.lengths.clone() } }
    }

    /// Paths in whole chunks: as many for each block as `chunks` says, at most `max_chunks`, else as few as lose next to
    /// nothing of the rate.
    ///
    /// * **Source.** Basu 2024 §3.2.1 and §4.
    /// * **Errors.** More chunks or hops than can be counted, stopped. **Cost.** O(hops), and the rounding.
    pub fn plan(
        &self,
        topology: &Topology,
        limits: TreeLimits,
        stop: &dyn Stop,
        progress: &dyn Progress,
    ) -> Result<Flow, SynthesisError> {
        let fault = |error| fault(topology, error);
        let problem = self.network.problem().map_err(fault)?;
        let (limit, tolerance) = (self.limit, self.tolerance);
        let division = Division { problem: &problem, optimum: &self.optimum, limit, tolerance };
        let (exactly, at_most) = (limits.chunks.map(u64::from), limits.max_chunks.map(u64::from));
        let other = match (exactly, at_most) {
            (Some(chunks), _) if chunks != self.finest.chunks => Some(division.exactly(chunks, stop).map_err(fault)?),
            (None, Some(most)) if most < self.finest.chunks => Some(division.at_most(most, stop).map_err(fault)?),
            _ => None,
        };
        progress.report(Stage::Routes, 0, u64::from(topology.rank_count()));
        let whole = other.as_ref().unwrap_or(&self.finest);
        routes::flow(topology, &self.network, &problem, whole, stop, progress)
    }
}

/// Says in terms of ranks why there is no flow.
fn fault(topology: &Topology, error: ConcurrentError) -> SynthesisError {
    match error {
        ConcurrentError::Stopped => SynthesisError::Stopped,
        ConcurrentError::Unreachable { from, to } => disconnected(topology, Rank::new(from), Rank::new(to)),
        ConcurrentError::TooLarge => SynthesisError::TooUneven,
        other => SynthesisError::Broken { what: other.to_string() },
    }
}

#[cfg(test)]
mod tests;
