//! Finds schedules: collective and topology in, a [`Schedule`](canopy_schedule::Schedule) of greatest rate out.
//!
//! Pure: no clock, no files, no threads but those of the caller's pool. Callers pass a [`Stop`] that is asked regularly and a [`Progress`]
//! that is told about every stage. Nothing here judges a schedule: `canopy_schedule::check` does, and shares no code.

mod algorithm;
mod algorithms;
mod all_pairs;
mod all_to_all;
mod auto;
mod bfb;
mod bound;
mod concurrent;
mod direct;
mod error;
mod expansion;
mod explain;
mod flow;
mod forest;
mod layers;
mod limits;
mod load;
mod multiport;
mod parts;
mod peel;
mod progress;
mod reach;
mod repair;
mod ring;
mod routing;
mod stepped;
mod stepped_flow;
mod sum_options;
mod symmetry;
mod synthesize;
mod tacos;
mod tolerance;

pub use algorithm::{
    ALL_COLLECTIVES, Algorithm, Composition, ConstructionUse, HeededLimits, Kept, Memory, Paths, ProvenTime, Rival,
    SPREADING, Solver, SynthesisRequest, Synthesized, Synthesizer, Task,
};
pub use algorithms::UnknownAlgorithm;
pub use bfb::{Symmetry, breadth_first};
pub use bound::{BoundError, PlainBounds, bound, plain_bounds};
pub use canopy_optimize::{Never, Stop, Stopped};
pub use canopy_tacos::TimeProof;
pub use concurrent::AllToAllFlow;
pub use error::{AllToAllError, ExpansionError, MultiportError, SteppedError, SynthesisError};
pub use explain::{PartClass, Repair, Repaired, part_classes, repairs};
pub use layers::{LayeredFlow, LayersError, layered_flow};
pub use limits::{LimitsError, TreeLimits};
pub use multiport::family_algorithms;
pub use progress::{Progress, Silent, Stage};
pub use repair::{REPAIR, RepairError, RepairOptions, is_remainder, repaired};
pub use ring::{NicRings, NicRingsError, nic_rings};
pub use stepped::{binomial, bruck, double_tree, local_ring, pairwise, recursive_doubling, with_shares};
pub use sum_options::{RootPolicy, SumOptions, SumOptionsError};
pub use synthesize::{allreduce_form, synthesize, synthesize_explained, two_phase_rate};
pub use tacos::joint::{JointCollective, JointPlan, JointPlans, JointSynthesisError, synthesize_joint};
pub use tacos::queued::queued_time_ps;
pub use tolerance::Tolerance;
