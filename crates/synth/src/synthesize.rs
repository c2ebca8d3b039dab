//! The entry point: checks that apply to every algorithm, then the requested one.

use canopy_optimize::Stop;
use canopy_schedule::{AllreduceForm, ChunkLayout, Schedule, Shares};
use canopy_topology::Topology;

use crate::algorithm::{SynthesisRequest, Synthesized, Task};
use crate::error::SynthesisError;
use crate::forest;
use crate::found::Found;
use crate::progress::Progress;
use crate::sum_options::SumOptions;

/// Finds a schedule for a collective on a topology.
///
/// [`Algorithm::Auto`](crate::Algorithm::Auto) takes forest and flow for the collectives they plan; where forest finds no way to balance a switch, and
/// for an all-to-all too large for flow, the one of direct and ring that keeps its busiest link for less time, direct
/// where both are alike. The schedule bears the name of what made it.
///
/// * **Source.** [`Algorithm::Forest`](crate::Algorithm::Forest): Zhao 2026, chapter 4 and appendix B; see `forest.rs` for departures. The others:
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
///   ranks (`direct`: 40 ms), 0.12 s at 4,096, most of it spent returning 1 GB to the operating system.
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

/// [`synthesize`] with the form of an allreduce and the reason for it.
///
/// * `known`: the flow of this very all-to-all on this network, where one is there already.
///
/// # Errors
/// The same.
pub fn synthesize_explained(
    topology: &Topology,
    request: &SynthesisRequest,
    known: Option<&Found>,
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<Synthesized, SynthesisError> {
    let &SynthesisRequest { collective, ref shares, algorithm, limits, sums, seed, .. } = request;
    // One chunk for each unit of weight: whether the weights fit the collective, and can be added up.
    ChunkLayout::new(collective, topology.rank_count(), 1, shares)?;
    limits.require_applicable(algorithm, collective.kind())?;
    algorithm.require_seed(seed)?;
    sums.require_applicable(algorithm, collective.kind(), limits)?;
    (algorithm.plan)(&Task { topology, request, algorithm, known, stop, progress })
}

/// The form of an allreduce by forest without limits, for callers that need the size of a plan in advance. If it says
/// trees, the plan may still have two phases for want of room.
///
/// # Errors
/// Errors of the search for both optima, which is its whole cost.
pub fn allreduce_form(
    topology: &Topology,
    shares: &Shares,
    sums: SumOptions,
    stop: &dyn Stop,
) -> Result<AllreduceForm, SynthesisError> {
    forest::allreduce_form(topology, shares, sums, stop)
}
