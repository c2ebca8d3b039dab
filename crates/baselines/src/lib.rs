//! Baseline algorithms for comparisons, and the list of all algorithms by name.
//!
//! `auto` never takes one of these. Names from users are looked up in [`algorithms`], the only list with both these and
//! the planner's own algorithms. As pure as `canopy_synth`.

mod algorithms;
mod all_to_all;
mod bine;
mod blink;
mod local_ring;
mod negabinary;
mod published;
mod queued;
mod queues;
mod requests;
mod swing;

pub use algorithms::{UnknownAlgorithm, algorithm, algorithm_names, algorithms};
pub use all_to_all::{DOR, EWSP, ILP_DISJOINT, ILP_SHORTEST, PMCF, PMCF_SHORTEST, SSSP};
pub use bine::{BINE, bine};
pub use blink::BLINK;
pub use local_ring::{LOCAL_RING, local_ring};
pub use published::TACOS_PUBLISHED;
pub use queued::{DIRECT_XY, RING_XY, TACCL_LIKE, Tenant, queued_time_ps, queued_together_ps};
pub use queues::{Message, QueuedLink, queued};
pub use requests::copy_by_requests;
pub use swing::SWING;
