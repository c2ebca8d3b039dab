//! All-to-all by named routings: common choices and baselines that solve no flow problem.
//!
//! Every pair of ranks gets paths chosen by a simple rule, each with a whole number of chunks of the block. None claims
//! an optimum; the checker states the rate.

pub(crate) mod dor;
mod ewsp;
mod ilp;
mod pmcf;
mod sets;
mod sssp;

use canopy_optimize::Fraction;
use canopy_schedule::{CollectiveKind, Flow, Shape, Shares};
use canopy_synth::components::require_reach;
use canopy_synth::{
    Algorithm, AllToAllError, ConstructionUse, Memory, Networks, Paths, Rival, Scale, Solver, SynthesisError,
    SynthesisRequest, Synthesized, Synthesizer, Task,
};
use canopy_topology::{Rate, Topology};
use num_bigint::BigUint;

use sets::Choice;

/// Routes handled between two looks at whether to stop.
const ASK_INTERVAL: usize = 64;

/// One shortest path for each pair.
pub const SSSP: Algorithm = Algorithm::of(&SSSP_ROW);
static SSSP_ROW: Synthesizer = routing(
    "sssp",
    "one shortest path for each pair of an all-to-all, chosen source by source (Basu 2024, section 5)",
    Memory::USUAL,
    |task| routed(task, sssp::plan),
);

/// All shortest paths.
pub const EWSP: Algorithm = Algorithm::of(&EWSP_ROW);
static EWSP_ROW: Synthesizer = routing(
    "ewsp",
    "each pair of an all-to-all divided equally among all shortest paths (Basu 2024, section 5)",
    Memory { paths: Paths::AllShortest, ..Memory::USUAL },
    |task| routed(task, ewsp::plan),
);

/// Dimension by dimension.
pub const DOR: Algorithm = Algorithm::of(&DOR_ROW);
static DOR_ROW: Synthesizer = Synthesizer {
    construction: ConstructionUse::Stated,
    ..routing(
        "dor",
        "one path for each pair of an all-to-all, dimension by dimension through a grid",
        Memory::USUAL,
        |task| routed(task, dor::plan),
    )
};

/// The best use of link-disjoint paths.
pub const PMCF: Algorithm = Algorithm::of(&PMCF_ROW);
static PMCF_ROW: Synthesizer = routing(
    "pmcf",
    "the best use of link-disjoint paths for each pair of an all-to-all (Basu 2024, section 3.1.4)",
    DISJOINT,
    |task| routed(task, |task| pmcf::plan(task, Choice::Disjoint)),
);

/// The best use of shortest paths.
pub const PMCF_SHORTEST: Algorithm = Algorithm::of(&PMCF_SHORTEST_ROW);
static PMCF_SHORTEST_ROW: Synthesizer =
    routing("pmcf-shortest", "the same with all shortest paths", SHORTEST, |task| {
        routed(task, |task| pmcf::plan(task, Choice::Shortest))
    });

/// One of some paths without a common link.
pub const ILP_DISJOINT: Algorithm = Algorithm::of(&ILP_DISJOINT_ROW);
static ILP_DISJOINT_ROW: Synthesizer = Synthesizer {
    claim: Some(CHOICE_BOUND),
    rival: CHOICES,
    ..routing(
        "ilp-disjoint",
        "one of the link-disjoint paths for each pair of an all-to-all, by an integer program (Basu 2024, section 5)",
        DISJOINT,
        |task| chosen(task, Choice::Disjoint),
    )
};

/// One of the shortest paths.
pub const ILP_SHORTEST: Algorithm = Algorithm::of(&ILP_SHORTEST_ROW);
static ILP_SHORTEST_ROW: Synthesizer = Synthesizer {
    claim: Some(CHOICE_BOUND),
    rival: CHOICES,
    ..routing("ilp-shortest", "the same with all shortest paths", SHORTEST, |task| chosen(task, Choice::Shortest))
};

/// Choices of paths are searched until the work is spent, so they are never made to compare with.
const CHOICES: Option<Rival> = Some(Rival { place: 26, work: |_| u64::MAX, ..Rival::PAIRS });

/// What is solved for the best use of paths.
const DISJOINT: Memory = Memory { solver: Solver::DisjointPaths, ..Memory::USUAL };
const SHORTEST: Memory = Memory { solver: Solver::ShortestPaths, ..Memory::USUAL };

/// What [`Synthesized::choice_bound`] says.
const CHOICE_BOUND: &str = "bound on choices of paths";

/// The row of an algorithm that plans nothing else than all-to-all.
const fn routing(
    name: &'static str,
    help: &'static str,
    memory: Memory,
    plan: fn(&Task<'_>) -> Result<Synthesized, SynthesisError>,
) -> Synthesizer {
    let work = match memory.solver {
        Solver::None => Scale::ranks_by_links,
        _ => Scale::programs,
    };
    let rival = Some(Rival { place: 25, plans: Networks::All, work, ..Rival::PAIRS });
    Synthesizer { memory, rival, ..Synthesizer::new(name, help, &[CollectiveKind::AllToAll], plan) }
}

/// A schedule of these paths.
///
/// * **In.** Any topology whose ranks reach each other, as far as the algorithm says nothing else.
/// * **Errors.** Another collective, disconnected, too many hops, stopped, and what each algorithm says.
fn routed(task: &Task<'_>, flow: fn(&Task<'_>) -> Result<Flow, SynthesisError>) -> Result<Synthesized, SynthesisError> {
    require_plannable(task)?;
    Ok(task.planned(Shape::Flow(flow(task)?)))
}

/// A schedule of one path for each pair, with [`choice_bound`](Synthesized::choice_bound).
fn chosen(task: &Task<'_>, choice: Choice) -> Result<Synthesized, SynthesisError> {
    require_plannable(task)?;
    if task.request.shares != Shares::Equal {
        return Err(AllToAllError::UnequalBlocks { algorithm: task.algorithm.name() }.into());
    }
    let (flow, least) = ilp::plan(task, choice)?;
    Ok(Synthesized { choice_bound: rate_of(task.topology, least), ..task.planned(Shape::Flow(flow)) })
}

/// Refuses other collectives, and networks on which blocks cannot come where they are wanted.
fn require_plannable(task: &Task<'_>) -> Result<(), SynthesisError> {
    let SynthesisRequest { collective, shares, .. } = task.request;
    if collective.kind() != CollectiveKind::AllToAll {
        return Err(task.algorithm.unsupported(collective.kind()));
    }
    require_reach(task.topology, *collective, shares)
}

/// The algbw at which the busiest link carries so many blocks for each byte per second; none for no load.
fn rate_of(topology: &Topology, load: Fraction) -> Option<Rate> {
    let ranks = u128::from(topology.rank_count());
    load.inverse().and_then(|rate| Rate::new(BigUint::from(ranks) * rate.numerator, rate.denominator))
}

#[cfg(test)]
mod tests;
