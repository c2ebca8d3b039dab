//! All-to-all as a maximum concurrent flow: every rank sends to every other at one rate for each unit of what it has for it, the
//! greatest that the links allow.
//!
//! A linear program says how, in floating point (`canopy_optimize`), and proves with lengths of links how much better
//! anything could be; its flow is rounded to whole chunks, and these are taken apart into paths. Where a network looks the
//! same from all of its ranks, by a group of translations, the paths of one rank serve them all.

mod network;
mod routes;
mod symmetric;

use canopy_optimize::{
    Chunking, ConcurrentOptimum, Fraction, SolverOptions, Stop, WholeFlow, concurrent_optimum, length_bound,
};
use canopy_schedule::{Bound, Certificate, ChunkLayout, Collective, CollectiveKind, Flow, Shares};
use canopy_topology::{Rate, Topology};
use num_bigint::BigUint;

use self::network::Network;
use self::symmetric::Symmetric;
use crate::error::SynthesisError;
use crate::limits::TreeLimits;
use crate::progress::{Progress, Stage};
use crate::reach::require_reach;
use crate::tolerance::Tolerance;

/// Variables from which on symmetries are looked for that leave several kinds of ranks.
const SYMMETRY_MIN: u64 = 1 << 17;
/// Part of the rate that a flow may lack where no tolerance is stated, by variables: some seconds on two cores.
const TOLERANCES: [(u64, f64); 3] = [(1 << 18, 1e-6), (1 << 21, 1e-3), (u64::MAX, 1e-2)];
/// Variables times iterations that may be spent: some ten seconds, and where a tolerance is stated some minutes.
const WORK_MAX: u64 = 4_000_000_000;
const WORK_MAX_ASKED: u64 = 64_000_000_000;

/// Most variables: some gigabytes.
const VARIABLES_MAX: u64 = 1 << 25;

/// The flow of an all-to-all, with a proof of its quality.
#[derive(Clone, Debug)]
pub struct AllToAllFlow {
    network: Network,
    /// Of all blocks together, those that ranks keep included.
    weight_total: u128,
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
    /// * **In.** `shares`: equal, or weights of blocks. `tolerance`: how much of the best rate may be lacking, so that the search ends sooner, or later; by itself it
    ///   ends at a millionth up to some hundred ranks, at a percent for a thousand, or where its work is done.
    /// * **Errors.** Ranks that do not reach each other, capacities too uneven to count, stopped.
    /// * **Cost.** One rank of a network with translations: milliseconds; else 10 ms for 16 ranks, and for 1,000 ranks
    ///   of degree 4 some seconds at one percent.
    pub fn of(
        topology: &Topology,
        shares: &Shares,
        tolerance: Option<Tolerance>,
        stop: &dyn Stop,
        progress: &dyn Progress,
    ) -> Result<Self, SynthesisError> {
        let collective = Collective::new(CollectiveKind::AllToAll, None, topology.rank_count());
        let collective = collective.expect("an all-to-all has no root to be wrong");
        let all = ChunkLayout::new(collective, topology.rank_count(), 1, shares)?.total();
        require_reach(topology, collective, shares)?;
        progress.report(Stage::Optimum, 0, 1);
        let network = Network::of(topology, shares, VARIABLES_MAX, stop)?;
        let problem = network.problem()?;
        let variables = problem.variables();
        let usual = TOLERANCES.iter().find(|&&(most, _)| variables <= most).map_or(1.0, |&(_, usual)| usual);
        let asked = tolerance.map(|tolerance| {
            let (numerator, denominator) = tolerance.parts();
            f64::from(numerator) / f64::from(denominator)
        });
        let tolerance = asked.unwrap_or(usual);
        let options = SolverOptions { tolerance, work_max: asked.map_or(WORK_MAX, |_| WORK_MAX_ASKED) };
        let may_be_symmetric = network.is_uniform() && !network.is_translated();
        let symmetric = match variables >= SYMMETRY_MIN && may_be_symmetric {
            true => Symmetric::of(topology, (problem.graph(), problem.commodities()), stop)?,
            false => None,
        };
        let optimum = match symmetric {
            None => concurrent_optimum(&problem, &options, stop)?,
            Some(symmetric) => {
                let found = concurrent_optimum(&symmetric.problem(problem.graph())?, &options, stop)?;
                let flow = symmetric.spread(problem.graph(), topology.rank_count() as usize, &found.flow, stop)?;
                ConcurrentOptimum { flow, ..found }
            }
        };
        let limit = length_bound(&problem, &optimum.lengths, stop)?;
        let nothing = || SynthesisError::Broken { what: "lengths that leave all ranks at distance 0".to_owned() };
        let limit = limit.ok_or_else(nothing)?;
        let chunking = Chunking { problem: &problem, optimum: &optimum, limit, tolerance };
        let finest = chunking.finest(stop)?;
        progress.report(Stage::Optimum, 1, 1);
        Ok(Self { network, weight_total: all.into(), optimum, limit, tolerance, finest })
    }

    /// Bounds on algbw: from above by the lengths, from below by the flow in whole chunks.
    pub fn bound(&self, topology: &Topology) -> Bound {
        let (all, ranks) = (BigUint::from(self.weight_total), BigUint::from(topology.rank_count()));
        let rate = |Fraction { numerator, denominator }: Fraction| Rate::new(&all * numerator, &ranks * denominator);
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
        let problem = self.network.problem()?;
        let (limit, tolerance) = (self.limit, self.tolerance);
        let chunking = Chunking { problem: &problem, optimum: &self.optimum, limit, tolerance };
        let (exactly, at_most) = (limits.chunks.map(u64::from), limits.max_chunks.map(u64::from));
        let other = match (exactly, at_most) {
            (Some(chunks), _) if chunks != self.finest.chunks => Some(chunking.exactly(chunks, stop)?),
            (None, Some(most)) if most < self.finest.chunks => Some(chunking.at_most(most, stop)?),
            _ => None,
        };
        progress.report(Stage::Routes, 0, u64::from(topology.rank_count()));
        let whole = other.as_ref().unwrap_or(&self.finest);
        routes::flow(topology, &self.network, &problem, whole, stop, progress)
    }
}

#[cfg(test)]
mod tests;
