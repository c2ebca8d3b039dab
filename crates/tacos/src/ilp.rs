//! Schedules that are proven to be fastest, by an integer program for each horizon.
//!
//! A schedule that ends at the bound is the proof itself. Where the greedy engines end later, horizons are decided one after the
//! other from the bound on (`model`, [`BinaryProgram`](canopy_optimize::BinaryProgram)): each is proven to be too short, which
//! raises the bound, until one suffices. Where the effort does not suffice for one, or the network is too large for the program, the
//! answer says so: its bound is less than its end. Then what the fractions of the relaxation propose is completed by
//! shortest paths (`recovery`), and kept if that ends sooner; where times have no large common unit, slower clocks are tried
//! (`coarse`).
//!
//! Source: Won et al., section 3.

mod coarse;
mod demands;
mod model;
mod recovery;

use canopy_optimize::{BinaryEffort, Decision, Stop, Stopped};

use crate::network::TimedNetwork;
use crate::sends::Sends;
use crate::task::CopyTask;
use crate::unicast::Demand;
use demands::ChunkDemands;
use model::{Model, Models, NoModel};
use recovery::completed;

/// How far proofs are tried: numbers, not times, so that the same effort gives the same answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IlpEffort {
    /// Most variables of a program.
    pub variables_max: u32,
    /// Most variables of a program whose relaxation is solved.
    pub relaxed_variables_max: u32,
    /// Most conflicts of the search for each horizon.
    pub conflicts_max: u32,
}

impl IlpEffort {
    /// Some seconds for each horizon at most.
    pub const STANDARD: Self = Self { variables_max: 200_000, relaxed_variables_max: 2_000, conflicts_max: 10_000 };

    /// For one program.
    const fn binary(self) -> BinaryEffort {
        let Self { relaxed_variables_max, conflicts_max, .. } = self;
        BinaryEffort { relaxed_variables_max, conflicts_max }
    }
}

/// How near a schedule is to the fastest, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeProof {
    /// When it ends.
    pub end: u64,
    /// No schedule ends before: proven.
    pub bound: u64,
}

impl TimeProof {
    /// Whether no schedule is faster.
    pub const fn is_optimal(&self) -> bool {
        self.end <= self.bound
    }
}

/// A schedule, and how near it is to the fastest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proven {
    /// The schedule.
    pub sends: Sends,
    /// Of its end.
    pub proof: TimeProof,
    /// Variables of the largest program that was made or, beyond the effort, would have been needed at least; 0 where none was.
    pub variables: u64,
}

/// The fastest schedule of copies, if the effort suffices, else the best that is found.
///
/// * **In.** A schedule of the task, and a bound as of [`lower_bound`](crate::lower_bound). **Out.** One that ends no later.
/// * **Errors.** Stopped: asked at every iteration and conflict.
/// * **Cost.** For each horizon between bound and end that of a program of O(chunks · links · horizon) variables.
pub fn prove_copies(
    network: &TimedNetwork,
    task: &CopyTask,
    known: Sends,
    bound: u64,
    effort: IlpEffort,
    stop: &dyn Stop,
) -> Result<Proven, Stopped> {
    proven(network, || ChunkDemands::of_copies(task), known, bound, effort, stop)
}

/// [`prove_copies`] of chunks for one node each; a bound as of [`delivery_bound`](crate::delivery_bound).
///
/// # Errors
/// The same.
pub fn prove_deliveries(
    network: &TimedNetwork,
    demands: &[Demand],
    known: Sends,
    bound: u64,
    effort: IlpEffort,
    stop: &dyn Stop,
) -> Result<Proven, Stopped> {
    proven(network, || ChunkDemands::of_deliveries(demands), known, bound, effort, stop)
}

/// Horizon after horizon, from the bound up to what is known.
fn proven(
    network: &TimedNetwork,
    demands: impl FnOnce() -> ChunkDemands,
    known: Sends,
    bound: u64,
    effort: IlpEffort,
    stop: &dyn Stop,
) -> Result<Proven, Stopped> {
    if known.end <= bound {
        return Ok(Proven { proof: TimeProof { end: known.end, bound }, sends: known, variables: 0 });
    }
    let demands = &demands();
    let models = Models::new(network, demands, effort.variables_max);
    let binary = effort.binary();
    let (mut best, mut bound, mut variables) = (known, bound, 0_u64);
    let mut horizon = bound;
    while horizon < best.end {
        if stop.is_requested() {
            return Err(Stopped);
        }
        let decision = match models.of(horizon) {
            Err(NoModel::TooFar) => Decision::Infeasible,
            Err(NoModel::TooLarge(needed)) => {
                variables = variables.max(needed);
                best = coarse::improved(network, demands, best, bound, effort, stop)?;
                break;
            }
            Ok(model) => {
                variables = variables.max(model.program.variable_count().into());
                let decision = model.program.decide(binary, stop)?;
                match &decision {
                    Decision::Feasible(choice) => best = demands.useful(network, model.sends(choice)),
                    Decision::Undecided => {
                        let proposed = proposed(network, demands, &model, binary, stop)?;
                        best = proposed.filter(|proposed| proposed.end < best.end).unwrap_or(best);
                    }
                    Decision::Infeasible => {}
                }
                decision
            }
        };
        horizon += 1;
        // What is too short says so of all that is shorter, decided or not.
        if decision == Decision::Infeasible {
            bound = horizon;
        }
    }
    Ok(Proven { proof: TimeProof { end: best.end, bound }, sends: best, variables })
}

/// What fractions propose, where they are computed at all, completed by shortest paths.
fn proposed(
    network: &TimedNetwork,
    demands: &ChunkDemands,
    model: &Model,
    effort: BinaryEffort,
    stop: &dyn Stop,
) -> Result<Option<Sends>, Stopped> {
    if model.program.variable_count() > effort.relaxed_variables_max {
        return Ok(None);
    }
    let Some(relaxed) = model.program.relaxed(stop)? else { return Ok(None) };
    completed(network, demands, model.weighted(&relaxed.values), stop).map(Some)
}
