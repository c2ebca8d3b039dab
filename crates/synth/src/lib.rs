//! Finds schedules: collective and topology in, a [`Schedule`](canopy_schedule::Schedule) of greatest rate out.
//!
//! Pure: no clock, no files, no threads but those of the caller's pool. Callers pass a [`Stop`] that is asked regularly and a [`Progress`]
//! that receives every stage. Nothing here judges a schedule: `canopy_schedule::check` does, and shares no code.

mod algorithm;
mod algorithms;
mod all_pairs;
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
mod found;
mod large;
mod layers;
mod limits;
mod load;
mod mirror;
mod multiport;
mod orbits;
mod parts;
mod peel;
mod progress;
mod reach;
mod reachable;
mod repair;
mod ring;
mod routing;
mod stages;
mod stepped;
mod stepped_flow;
mod sum_options;
pub mod symmetric;
mod symmetry;
mod synthesize;
mod tacos;
mod tolerance;

pub use algorithm::{
    ALL_COLLECTIVES, Algorithm, Composition, ConstructionUse, HeededLimits, Kept, Memory, Networks, Paths, ProvenTime,
    Rival, SPREADING, Scale, Solver, SynthesisRequest, Synthesized, Synthesizer, Task,
};
pub use auto::is_by_rule;
pub use bfb::{Symmetry, breadth_first, has_only_cards};
pub use bound::{BoundError, PlainBounds, plain_bounds, quick_bound};
pub use canopy_optimize::{Never, Stop, Stopped};
pub use canopy_tacos::TimeProof;
pub use concurrent::AllToAllFlow;
pub use error::{
    AllToAllError, ExpansionError, MultiportError, OrbitsNetworkError, StagesNetworkError, SteppedError, SynthesisError,
};
pub use explain::{PartClass, Repair, Repaired, part_classes, repairs};
pub use found::Found;
pub use large::are_listed;
pub use layers::{LayeredFlow, LayersError, layered_flow};
pub use limits::{LimitsError, TreeLimits};
pub use multiport::family_algorithms;
pub use progress::{Progress, Silent, Stage};
pub use reachable::{bound, bound_found};
pub use repair::{REPAIR, RepairError, RepairOptions, is_remainder, repaired};
pub use ring::{NicRings, NicRingsError, nic_rings};
pub use stepped::{binomial, bruck, double_tree, pairwise, recursive_doubling, with_shares};
pub use sum_options::{RootPolicy, SumOptions, SumOptionsError};
pub use synthesize::{allreduce_form, synthesize, synthesize_explained};
pub use tacos::joint::{JointCollective, JointPlan, JointPlans, JointSynthesisError, synthesize_joint};
pub use tacos::{CopySearch, plan_by};
pub use tolerance::Tolerance;

/// Building blocks for synthesizers of other crates.
pub mod components {
    pub use crate::all_pairs::digraph;
    pub use crate::load::seconds_per_byte;
    pub use crate::parts::{FlowParts, HOPS_MAX, pairs, phase_actions, require_room};
    pub use crate::reach::{ask, require_reach};
    pub use crate::routing::{Heading, Network};
    pub use crate::stepped::{Rounds, planned_by_textbook, spreading, written};
    pub use crate::tacos::sends::write as write_sends;
    pub use crate::tacos::times::Clock;
    pub use crate::tacos::unwound::{Unwound, UnwoundLink};
}
