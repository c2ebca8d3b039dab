//! Plans for tens of thousands of ranks from what repeats in their network, without a tree for each rank.
//!
//! [`boxes`] finds the boxes of any network, however its nodes are numbered, and which of them are alike. [`stages`]
//! makes the exchange between boxes that a cut around one of them bounds, with other pieces for boxes that faults have
//! touched, and [`stages_inside_first`] one that uses NICs more and boxes less. [`torus`] finds the coordinates of ranks in any torus, and [`orbits`] makes trees from one rank that the
//! symmetries of the torus move to all others, with other parents where faults are. Whether a plan is right is for the
//! checker of `canopy_schedule`, which shares no code with this module, to say.

mod digits;
mod inside_first;
mod network;
mod nics;
mod odd;
mod planned;
mod relay;
mod slowest;
mod tori;
mod torus;

pub use network::{BoxNetwork, boxes, likely_boxes};
pub use planned::{Planned, stages, stages_inside_first};
pub use slowest::slowest;
pub use tori::{PlannedOrbits, orbits};
pub use torus::{Torus, torus};
