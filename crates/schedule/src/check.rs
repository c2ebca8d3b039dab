//! An independent judge of transfer graphs, and of flows that have none: structure, meaning, exact load.
//!
//! It reads the topology and the graph or flow, and trusts neither the compiler nor the synthesizer: it calls no code of
//! theirs and relies on no convention of theirs that it has not checked itself. It has in common with the compiler what a
//! schedule and a transfer graph are, and nothing that finds anything; a test of the workspace reads its modules for that.

mod error;
mod flow;
mod in_network;
mod in_turn;
mod load;
mod meaning;
mod once;
mod orbits;
mod order;
mod phases;
mod pieces;
mod seconds;
mod stages;
mod steps;
mod structure;

use canopy_topology::{LinkIndex, Rate, Topology};

use crate::forest::Action;
use crate::transfer::TransferGraph;
use structure::Reach;

pub use error::{FlowError, LoadError, MeaningError, RouteFault, StructureError, TransferFault};
pub use flow::{check_flow, check_flow_until};
pub use in_network::InNetwork;
pub(crate) use load::{link_loads, takes_longer};
pub use once::check_steps_until;
pub use orbits::{GeneratorFault, OrbitsError, PatchFault, TemplateFault, check_orbits_until, judge_orbits_until};
pub use stages::{PieceFault, StagesError, TreeFault, check_stages_until, judge_stages_until};
pub use steps::StepCost;

/// Whether the caller wants the work to end.
type Stop<'a> = &'a (dyn Fn() -> bool + Sync);

/// What the checker found of a graph that passed every check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Size ÷ time in the bandwidth limit; what *size* means for each collective is in [`check`]. Of numbered steps, at their
    /// pace.
    pub algbw: Rate,
    /// The link that takes longest in all, the one of smallest index among equals.
    pub busiest_link: LinkIndex,
    /// Σ multiplicities over all batches of the first phase: those with the action of the first batch.
    pub tree_count: u64,
    /// Greatest depth of a tree in rank-to-rank hops; for allreduce the sum of both phases' greatest depths.
    pub depth_max: u32,
    /// Σ over all batches of depth × multiplicity: divided by `tree_count` it is the mean depth of a tree (for
    /// allreduce: of the two trees a chunk passes, together).
    pub depth_sum: u128,
    /// The same as `depth_max`, counted in links: those of a hop's longest route, switches' included.
    pub links_max: u32,
    /// The same as `depth_sum`, counted in links.
    pub links_sum: u128,
    /// Number of batches, over all phases.
    pub batch_count: usize,
    /// Transfers in the longest chain of which each waits for the one before: no run takes fewer rounds.
    pub chain_max: u32,
    /// What numbered steps cost; `None` where transfers have none.
    pub steps: Option<StepCost>,
    /// What switches that multicast or aggregate save; `None` where no switch does.
    pub in_network: Option<InNetwork>,
    /// Names of the checks that ran and passed: `structure`, `meaning`, `load`.
    pub checks: [&'static str; 3],
}

/// Why a transfer graph or a flow was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// It is not a well-formed graph on this topology.
    #[error(transparent)]
    Structure(#[from] StructureError),
    /// It does not compute what the collective promises.
    #[error(transparent)]
    Meaning(#[from] MeaningError),
    /// It is not a flow on this topology, or not the flow that the collective needs.
    #[error(transparent)]
    Flow(#[from] FlowError),
    /// It is no exchange in stages that brings every share to every rank.
    #[error(transparent)]
    Stages(#[from] StagesError),
    /// It is no orbit forest that brings every share to every rank.
    #[error(transparent)]
    Orbits(#[from] OrbitsError),
    /// Its load has no exact value.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The caller wanted the work to end.
    #[error("stopped before the schedule was judged")]
    Stopped,
}

impl CheckError {
    /// Name of the check that failed, as [`Verdict::checks`] names it; `stopped` if none did.
    pub const fn check(&self) -> &'static str {
        match self {
            Self::Structure(_) => "structure",
            Self::Meaning(_) => "meaning",
            Self::Flow(error) => error.check(),
            Self::Stages(error) => error.check(),
            Self::Orbits(error) => error.check(),
            Self::Load(_) => "load",
            Self::Stopped => "stopped",
        }
    }
}

/// Judges a transfer graph: `structure`, then `meaning`, then `load`, each relying on the ones before.
///
/// * **Structure.** Ranks, routes, chunk ranges and dependencies exist and fit together; each batch is a tree.
/// * **Meaning.** A symbolic run over chunk ranges: every rank ends with exactly what the collective promises, every
///   contribution reduced exactly once, nothing delivered twice; and any two transfers whose order matters are ordered
///   by the dependencies.
/// * **Load.** Chunks over each link, both phases of an allreduce together, hence the exact
///   `algbw = size / max(load · chunk size / capacity)`; where the graph has steps, the maximum of each step, added up, or
///   what they take [in turn](crate::Pace::InTurn). *Size* is the full vector of all shares; the message for
///   broadcast and reduce; the mean over ranks of one's blocks for all-to-all. Every transfer counts by itself; where switches multicast
///   or aggregate, [`Verdict::in_network`] says what they save.
///
/// * **Errors.** The first fault, with the transfer, rank and chunk where it shows.
/// * **Cost.** O(transfers · N/64) for graphs compiled from forests, plus the sizes of the graph's tables; the meaning
///   on all threads of the caller's pool.
pub fn check(topology: &Topology, graph: &TransferGraph) -> Result<Verdict, CheckError> {
    check_until(topology, graph, &|| false)
}

/// [`check`], ended early with [`CheckError::Stopped`] soon after `stop` says so. It is asked for every few transfers,
/// so it has to be quick.
pub fn check_until(
    topology: &Topology,
    graph: &TransferGraph,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Verdict, CheckError> {
    let (layout, reaches) = structure::check_structure(topology, graph, stop)?;
    meaning::check_meaning(graph, &layout, stop)?;
    if stop() {
        return Err(CheckError::Stopped);
    }
    let (algbw, busiest_link) = load::check_load(topology, graph, &layout)?;
    let steps = steps::check_steps(topology, graph, &layout)?;
    let trees = || graph.batches.iter().zip(&reaches);
    let most = |of: fn(&Reach) -> u32| -> u32 {
        let of_phase = |action| trees().filter(|(batch, _)| batch.action == action).map(|(_, reach)| of(reach)).max();
        [Action::Reduce, Action::Copy].into_iter().filter_map(of_phase).sum()
    };
    let sum = |of: fn(&Reach) -> u32| -> u128 {
        trees().map(|(batch, reach)| u128::from(batch.chunk_count) * u128::from(of(reach))).sum()
    };
    let first_action = graph.batches.first().map(|batch| batch.action);
    let first_phase = trees().filter(|(batch, _)| Some(batch.action) == first_action);
    let found: u128 = first_phase.map(|(batch, _)| u128::from(batch.chunk_count)).sum();
    Ok(Verdict {
        algbw: steps.as_ref().map_or(algbw, |steps| steps.algbw.clone()),
        busiest_link,
        tree_count: u64::try_from(found).map_err(|_| LoadError::TooManyTrees { found })?,
        depth_max: most(|reach| reach.depth),
        depth_sum: sum(|reach| reach.depth),
        links_max: most(|reach| reach.links),
        links_sum: sum(|reach| reach.links),
        batch_count: graph.batches.len(),
        chain_max: chain_max(graph),
        steps,
        in_network: in_network::weigh(topology, graph, &layout, stop)?,
        checks: ["structure", "meaning", "load"],
    })
}

/// Transfers in the longest chain of dependencies. O(transfers + dependencies), where transfers in a row that wait for
/// the same count once.
fn chain_max(graph: &TransferGraph) -> u32 {
    let mut chains: Vec<u32> = Vec::with_capacity(graph.transfers.len());
    let mut latest = (0..0, 0);
    for transfer in &graph.transfers {
        if latest.0 != transfer.dependencies {
            let before = graph.dependencies_of(transfer).iter().map(|&before| chains[before as usize]);
            latest = (transfer.dependencies.clone(), before.max().unwrap_or(0));
        }
        chains.push(latest.1 + 1);
    }
    chains.into_iter().max().unwrap_or(0)
}
