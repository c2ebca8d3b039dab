//! Maximum concurrent flow: the greatest rate at which many sources meet the demands of many sinks at once.
//!
//! The linear program (Basu 2024, equations (6)–(9), grouped by source): flows `g[s, e] ≥ 0` with `Σ_s g[s, e] ≤ c_e` on every
//! arc e, and at every node v other than the source as much more entering than leaving as `F·D[s][v]`; maximise F. Its dual:
//! lengths `ℓ_e ≥ 0`, `F ≤ Σ c·ℓ / Σ D[s][t]·dist_ℓ(s, t)`, with equality for the best lengths.

mod best;
mod bound;
mod chunking;
mod cycles;
mod distances;

mod exact;
mod first_order;
mod problem;
#[cfg(test)]
mod samples;
mod stepped;
mod whole;

pub use best::concurrent_optimum;
pub use bound::length_bound;
pub use chunking::Chunking;
pub use exact::{EXACT_VARIABLES_MAX, PATHS_MAX, PathOptimum, path_optimum, sharpened, solve_exactly};
pub(crate) use exact::{Program, Solution, as_float};
pub use first_order::{SolverOptions, solve};
pub use problem::{Commodity, ConcurrentError, ConcurrentProblem};
pub use stepped::{SteppedOptions, SteppedRoutes, Trajectory, stepped_routes};
pub use whole::{Effort, WholeFlow, WholePath};

/// A flow for each commodity, in floating point: what solvers propose, and rounding makes whole and exact.
///
/// In units of demand: a commodity's flow brings each of its sinks about what it wants of it, so the load of an arc is
/// a time once it is divided by the capacity, and `1/F` that of the busiest arc.
#[derive(Clone, Debug, PartialEq)]
pub struct ProposedFlow {
    /// By commodity: arcs that carry something, ascending, each with how much. Nothing is negative or not a number; what
    /// enters a node and what leaves it may differ a little from what they should.
    pub amounts: Vec<Vec<(u32, f64)>>,
}

/// What a solver found.
#[derive(Clone, Debug, PartialEq)]
pub struct ConcurrentOptimum {
    /// A length for each arc, whose [`length_bound`] is the proven limit.
    pub lengths: Vec<u64>,
    /// The flow.
    pub flow: ProposedFlow,
    /// Rate of the flow, after it was mended and scaled to fit: F for each unit of demand, in units of capacity.
    pub rate: f64,
    /// `length_bound(lengths)` as a float, never less than `rate` but for rounding.
    pub limit: f64,
}
