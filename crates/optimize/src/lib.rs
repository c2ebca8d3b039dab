//! Exact optima of flow problems on directed graphs: the best rates to spread, collect or deliver data.
//!
//! Graphs and integers in, integers and fractions out. It knows nothing of topologies, collectives or schedules: a
//! node is a number, a demand is a weight. Nothing here reads a clock; long computations ask [`Stop`].

mod balance;
mod bfb;
mod binary;
mod concurrent;
mod digraph;
mod error;
pub mod field;
mod flow;
mod fraction;
mod isolate;
mod layers;
mod lowered;
mod nullspace;
mod optimum;
mod paths;
mod rooted;
mod stop;
mod strength;
mod sweep;
mod whole;

pub use balance::{BalanceLimit, BalancedOptimum, SumsLimit, SumsTerm, balance_limit, balanced_optimum, sums_limit};
pub use bfb::{Arrivals, BfbError, BfbGraph, InLink, JointArrivals, Piece, StepLoads, chunks_needed, step_loads};
pub use binary::{BinaryEffort, BinaryProgram, Decision, Literal, Relaxed};
pub use concurrent::{
    Chunking, Commodity, ConcurrentError, ConcurrentOptimum, ConcurrentProblem, EXACT_VARIABLES_MAX, Effort, PATHS_MAX,
    PathOptimum, ProposedFlow, SolverOptions, SteppedOptions, SteppedRoutes, Trajectory, WholeFlow, WholePath,
    concurrent_optimum, length_bound, path_optimum, sharpened, solve, solve_exactly, stepped_routes,
};
pub use digraph::{Arc, Digraph};
pub use error::{DigraphError, OptimumError};
pub use flow::{ArcId, FlowNetwork, FlowUnit};
pub use fraction::Fraction;
pub use isolate::isolating_cuts;
pub use layers::{Ascent, Layers};
pub use lowered::lower;
pub use optimum::{ForestOptimum, forest_optimum, forest_optimum_for};
pub use paths::{
    PathGraph, ShortestPaths, SingleOptions, SinglePaths, WholePaths, single_load_bound, single_paths, whole_paths,
};
pub use rooted::{broadcast_optimum, gather_optimum, scatter_optimum};
pub use stop::{Never, Stop, Stopped};
pub use strength::{Division, Orientation, OrientedPair, Strength, divided, halved, orientation, strength};
pub use sweep::sweep;
pub use whole::{WholeForest, WholeSums, WholeTrees};
