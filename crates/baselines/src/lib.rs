//! Algorithms that exist to be compared with, and all algorithms by name.
//!
//! `auto` never takes one of these, and nothing that plans depends on them but by the list ([`algorithms`]): what users name is looked
//! up here, since only here both the planner's own and these are known. As pure as `canopy_synth`, of whose public parts they are made.

mod algorithms;
mod all_to_all;
mod local_ring;
mod published;
mod queued;
mod queues;
mod requests;

pub use algorithms::{UnknownAlgorithm, algorithm, algorithm_names, algorithms};
pub use all_to_all::{DOR, EWSP, ILP_DISJOINT, ILP_SHORTEST, PMCF, PMCF_SHORTEST, SSSP};
pub use local_ring::{LOCAL_RING, local_ring};
pub use published::TACOS_PUBLISHED;
pub use queued::{DIRECT_XY, RING_XY, queued_time_ps};
pub use queues::{Message, QueuedLink, queued};
pub use requests::copy_by_requests;
