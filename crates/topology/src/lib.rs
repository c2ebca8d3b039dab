//! The network between accelerators: model, units, importers, generators and hash.
//!
//! Pure: text and numbers in, a validated [`Topology`] out. It knows nothing of collectives or schedules.

mod error;
mod index;
mod limits;
mod model;
mod units;

pub use error::TopologyError;
pub use index::{LinkIndex, NodeIndex, Rank};
pub use limits::TopologyLimits;
pub use model::{Attributes, DraftLink, DraftNode, Link, Node, NodeKind, Topology, TopologyDraft};
pub use units::{Capacity, FractionError, Latency, Rate, Ratio};
