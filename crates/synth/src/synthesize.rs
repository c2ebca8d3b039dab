//! The one entry point: picks the synthesizer and refuses what none of them plans.

use std::borrow::Cow;

use canopy_optimize::Stop;
use canopy_schedule::{AllreduceForm, ChunkLayout, Collective, CollectiveKind, FormChoice, Schedule, Shape, Shares};
use canopy_topology::{Rate, Topology};

use crate::algorithm::{Algorithm, TreeLimits};
use crate::all_to_all;
use crate::bfb::{self, Asked, Symmetry};
use crate::concurrent::AllToAllFlow;
use crate::direct;
use crate::error::SynthesisError;
use crate::expansion;
use crate::flow;
use crate::forest;
use crate::load::seconds_per_byte;
use crate::multiport;
use crate::progress::{Progress, Silent};
use crate::request::SynthesisRequest;
use crate::ring;
use crate::stepped;
use crate::stepped_flow;
use crate::sum_options::SumOptions;
use crate::tacos::{self, ProvenTime};

/// Finds a schedule for a collective on a topology.
///
/// [`Algorithm::Auto`] takes forest and flow for the collectives they plan; where forest finds no way to balance a switch, and
/// for an all-to-all too large for flow, the one of direct and ring that keeps its busiest link for less time, direct
/// where both are alike. The schedule bears the name of what made it.
///
/// * **Source.** [`Algorithm::Forest`]: Zhao 2026, chapter 4 and appendix B; see `forest.rs` for departures. The others:
///   see `bfb.rs`, `stepped_flow.rs`, `expansion.rs`, `flow.rs`, `direct.rs`, `ring.rs` and `all_to_all`.
/// * **In.** Any topology whose ranks reach each other. **Out.** Of forest, a schedule that reaches the bound exactly
///   for allgather, reduce-scatter, broadcast and reduce where as much enters each switch as leaves it, and in other
///   networks as [`balanced_optimum`](canopy_optimize::balanced_optimum) says; of flow, one that reaches it for gather
///   and scatter, and for all-to-all comes as close to it as whole chunks, the tolerance or a budget of work allow. Forest's allreduce reaches the bound wherever links are alike in both directions: as a reduce-scatter
///   followed by an allgather where these are as fast, else by sums made anywhere, and then the shares of the schedule say
///   how much of the vector is added up where. On other networks it is the best of both and of sums that come down other
///   trees than they went up: up to 64 ranks and 512 links within a thousandth or so of the optimum, in larger networks at
///   the bound or what bisection finds, if as much enters every node as leaves it. Limits on trees lower the rate to the
///   best they allow, of an allreduce of limited depth in two phases; a tolerance lowers it by no more than it says. Of
///   direct and ring, whatever their routes reach. Equal arguments give equal schedules.
/// * **Shares.** All of that holds for weighted ones, in which a rank of weight 0 has nothing of its own but gets what
///   all get. In an allreduce a share is what is summed up at its rank, so weights change the schedule, not the bound; equal
///   ones leave the choice to forest, unless the request asks for roots that are spread.
/// * **Errors.** [`SynthesisError`]; [`SynthesisError::Stopped`] within 10 ms of CPU time of a request to stop at 1,024
///   ranks (`direct`: 40 ms), 0.12 s at 4,096, most of which the system takes to have a gigabyte of memory back.
/// * **Cost.** Polynomial and independent of the number of trees. 16 to 32 ranks take some milliseconds; 1,024 ranks in
///   boxes, racks, pods, groups or a torus some tenths of a second, joined at random some seconds. Where ranks in boxes need
///   all of their links and some are missing, no box can be cut off: 256 ranks take a second, 512 more than 30.
///   Memory grows with the hops, some 150 bytes each: 170 MiB at 1,024 ranks with one tree each, 2.2 GiB at 4,096.
pub fn synthesize(
    topology: &Topology,
    request: &SynthesisRequest,
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<Schedule, SynthesisError> {
    synthesize_explained(topology, request, None, stop, progress).map(|synthesized| synthesized.schedule)
}

/// A schedule with the reasons for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Synthesized {
    /// As of [`synthesize`].
    pub schedule: Schedule,
    /// The form of an allreduce made of trees; none for everything else.
    pub form: Option<FormChoice>,
    /// The greatest algbw of any choice among the paths that those of the schedule were chosen from, one for each pair of
    /// ranks, in bytes per second. None where no such choice was made, and where prices of links prove nothing of it.
    pub choice_bound: Option<Rate>,
    /// How near to the fastest its time is, of [`Algorithm::TacosIlp`]. Ticks are steps where all links are alike and latencies are left
    /// out of account.
    pub time_proof: Option<ProvenTime>,
}

/// [`synthesize`] with the form that an allreduce has got, and why.
///
/// * `known`: the flow of this very all-to-all on this network, where one is there already.
///
/// # Errors
/// The same.
pub fn synthesize_explained(
    topology: &Topology,
    request: &SynthesisRequest,
    known: Option<&AllToAllFlow>,
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<Synthesized, SynthesisError> {
    let &SynthesisRequest { collective, ref shares, algorithm, limits, sums, size_bytes, ref composition, seed } =
        request;
    // One chunk for each unit of weight: whether the weights fit the collective, and can be added up.
    ChunkLayout::new(collective, topology.rank_count(), 1, shares)?;
    limits.require_applicable(algorithm, collective.kind())?;
    algorithm.require_seed(seed)?;
    sums.require_applicable(algorithm, collective.kind(), limits)?;
    let algorithm = algorithm.resolved(collective.kind());
    let is_free = limits.without_tolerance() == TreeLimits::NONE && sums.form.is_none();
    let in_trees = || match collective.kind() {
        CollectiveKind::Allreduce => {
            let planned = forest::plan_allreduce(topology, shares, (limits, sums), stop, progress);
            planned.map(|(forest, shares, form)| (forest, shares, Some(form)))
        }
        _ => {
            let planned = forest::plan(topology, collective, shares, limits, stop, progress);
            planned.map(|forest| (forest, shares.clone(), None))
        }
    };
    let (mut choice_bound, mut time_proof) = (None, None);
    let (algorithm, shape) = match algorithm {
        Algorithm::Auto => return Err(SynthesisError::Broken { what: "auto stands for no algorithm".to_owned() }),
        Algorithm::Forest => match in_trees() {
            Ok((forest, shares, form)) => {
                let (algorithm, shape) = (algorithm.name().to_owned(), Shape::Forest(forest));
                let schedule = Schedule { collective, algorithm, shares, shape };
                return Ok(Synthesized { schedule, form, choice_bound: None, time_proof: None });
            }
            // No part of the network was found in which trees can be packed.
            Err(SynthesisError::NotEulerian { .. }) if request.algorithm == Algorithm::Auto && is_free => {
                better_of_direct_and_ring(topology, collective, shares, stop, progress)?
            }
            Err(error) => return Err(error),
        },
        Algorithm::Flow if collective.kind() == CollectiveKind::AllToAll => {
            let found = known.map(|known| Ok(Cow::Borrowed(known))).unwrap_or_else(|| {
                AllToAllFlow::of(topology, shares, limits.tolerance, stop, progress).map(Cow::Owned)
            });
            match found.and_then(|flow| flow.plan(topology, limits, stop, progress)) {
                Ok(flow) => (algorithm, Shape::Flow(flow)),
                Err(SynthesisError::TooUneven | SynthesisError::TooManyVariables { .. })
                    if request.algorithm == Algorithm::Auto && is_free =>
                {
                    better_of_direct_and_ring(topology, collective, shares, stop, progress)?
                }
                Err(error) => return Err(error),
            }
        }
        Algorithm::Flow => (algorithm, Shape::Flow(flow::plan(topology, collective, shares, stop, progress)?)),
        Algorithm::Bfb => {
            let asked = Asked { limits, size_bytes, symmetry: Symmetry::Used };
            (algorithm, bfb::plan(topology, (collective, shares), asked, stop, progress)?)
        }
        Algorithm::Tsmcf => (algorithm, stepped_flow::plan(topology, collective, shares, limits, stop, progress)?),
        Algorithm::Tacos | Algorithm::TacosPublished => (algorithm, tacos::plan(topology, request, stop, progress)?),
        Algorithm::TacosIlp => {
            let (shape, time) = tacos::plan_proven(topology, request, stop, progress)?;
            time_proof = Some(time);
            (algorithm, shape)
        }
        Algorithm::DirectXy | Algorithm::RingXy => (algorithm, tacos::queued::plan(topology, request, stop)?),
        Algorithm::Expansion => {
            let planned = expansion::plan(topology, (collective, shares), composition.as_ref(), stop, progress);
            (algorithm, planned?)
        }
        Algorithm::Kautz | Algorithm::KautzM | Algorithm::Dfc2 | Algorithm::Dfc2Do | Algorithm::Multitree => {
            (algorithm, multiport::plan(topology, (collective, shares), algorithm, stop, progress)?)
        }
        Algorithm::Direct => (algorithm, direct::plan(topology, collective, shares, stop, progress)?),
        Algorithm::Ring => (algorithm, ring::plan(topology, collective, shares, stop, progress)?),
        Algorithm::Pairwise
        | Algorithm::Bruck
        | Algorithm::RecursiveDoubling
        | Algorithm::Binomial
        | Algorithm::DoubleTree
        | Algorithm::LocalRing => (algorithm, stepped::plan(topology, request, stop)?),
        Algorithm::Sssp
        | Algorithm::Ewsp
        | Algorithm::Dor
        | Algorithm::Pmcf
        | Algorithm::PmcfShortest
        | Algorithm::IlpDisjoint
        | Algorithm::IlpShortest => {
            let (shape, bound) = all_to_all::plan(topology, request, stop, progress)?;
            choice_bound = bound;
            (algorithm, shape)
        }
    };
    let schedule = Schedule { collective, algorithm: algorithm.name().to_owned(), shares: shares.clone(), shape };
    Ok(Synthesized { schedule, form: None, choice_bound, time_proof })
}

/// The form that an allreduce by forest without limits will have: for who must know how large a plan will be before it is
/// made. Where it says trees, there may still be two phases for want of room.
///
/// # Errors
/// Of the search for both optima, which is all that it costs.
pub fn allreduce_form(
    topology: &Topology,
    shares: &Shares,
    sums: SumOptions,
    stop: &dyn Stop,
) -> Result<AllreduceForm, SynthesisError> {
    forest::allreduce_form(topology, shares, sums, stop)
}

/// The algbw that an allreduce by forest reaches as a reduce-scatter followed by an allgather, one after the other; none
/// where these can not be planned.
///
/// # Errors
/// [`SynthesisError`]: shares that do not fit, too large, stopped. **Cost.** That of two bounds.
pub fn two_phase_rate(topology: &Topology, shares: &Shares, stop: &dyn Stop) -> Result<Option<Rate>, SynthesisError> {
    forest::rate_in_phases(topology, shares, stop)
}

/// What [`Algorithm::Auto`] does where trees can not be packed, and all-to-all has too many variables.
fn better_of_direct_and_ring(
    topology: &Topology,
    collective: Collective,
    shares: &Shares,
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<(Algorithm, Shape), SynthesisError> {
    let direct = direct::plan(topology, collective, shares, stop, progress)?;
    let ring = match ring::plan(topology, collective, shares, stop, &Silent) {
        Ok(ring) => ring,
        Err(SynthesisError::NoRing { .. } | SynthesisError::TooManyHops { .. }) => {
            return Ok((Algorithm::Direct, direct));
        }
        Err(error) => return Err(error),
    };
    let is_faster = seconds_per_byte(topology, &ring) < seconds_per_byte(topology, &direct);
    Ok(if is_faster { (Algorithm::Ring, ring) } else { (Algorithm::Direct, direct) })
}
