//! All-to-all by named routings: what people use, or compare with, where they do not solve a flow problem.
//!
//! Every pair of ranks gets paths chosen by a simple rule, each with a whole number of chunks of the block. None of them claims
//! an optimum; what they reach is the checker's word.

mod dor;
mod ewsp;
mod ilp;
mod pmcf;
mod sets;
mod sssp;

use canopy_optimize::{Fraction, Stop};
use canopy_schedule::{CollectiveKind, Flow, Shape, Shares};
use canopy_topology::{Rate, Topology};
use num_bigint::BigUint;

use crate::algorithm::Algorithm;
use crate::error::SynthesisError;
use crate::progress::Progress;
use crate::reach::require_reach;
use crate::request::SynthesisRequest;
use sets::Choice;

use crate::error::AllToAllError;
pub(crate) use dor::{Line, lines_of};

/// Routes handled between two looks at whether to stop.
const ASK_INTERVAL: usize = 64;

/// Plans an all-to-all by one of the algorithms that plan nothing else.
///
/// * **In.** Any topology whose ranks reach each other, as far as the algorithm says nothing else.
/// * **Out.** The schedule's shape, and [`choice_bound`](crate::Synthesized::choice_bound).
/// * **Errors.** Another collective or algorithm, disconnected, too many hops, stopped, and what each algorithm says.
pub(crate) fn plan(
    topology: &Topology,
    request: &SynthesisRequest,
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<(Shape, Option<Rate>), SynthesisError> {
    let (collective, algorithm) = (request.collective, request.algorithm);
    if collective.kind() != CollectiveKind::AllToAll {
        return Err(SynthesisError::Unsupported { algorithm, collective: collective.kind() });
    }
    let shares = &request.shares;
    require_reach(topology, collective, shares)?;
    let chosen = |choice| {
        let (flow, least) = ilp::plan(topology, algorithm, choice, stop, progress)?;
        Ok((Shape::Flow(flow), rate_of(topology, least)))
    };
    let flow: Flow = match algorithm {
        Algorithm::Sssp => sssp::plan(topology, shares, stop, progress)?,
        Algorithm::Ewsp => ewsp::plan(topology, (collective, shares), stop, progress)?,
        Algorithm::Dor => dor::plan(topology, shares, request.composition.as_ref(), stop, progress)?,
        Algorithm::Pmcf => pmcf::plan(topology, shares, (algorithm, Choice::Disjoint), stop, progress)?,
        Algorithm::PmcfShortest => pmcf::plan(topology, shares, (algorithm, Choice::Shortest), stop, progress)?,
        Algorithm::IlpDisjoint | Algorithm::IlpShortest if *shares != Shares::Equal => {
            return Err(AllToAllError::UnequalBlocks { algorithm }.into());
        }
        Algorithm::IlpDisjoint => return chosen(Choice::Disjoint),
        Algorithm::IlpShortest => return chosen(Choice::Shortest),
        other => return Err(SynthesisError::Broken { what: format!("{other} is not a routing of all-to-all") }),
    };
    Ok((Shape::Flow(flow), None))
}

/// The algbw at which the busiest link carries so many blocks for each byte per second; none for no load.
fn rate_of(topology: &Topology, load: Fraction) -> Option<Rate> {
    let ranks = u128::from(topology.rank_count());
    load.inverse().and_then(|rate| Rate::new(BigUint::from(ranks) * rate.numerator, rate.denominator))
}

#[cfg(test)]
mod tests;
