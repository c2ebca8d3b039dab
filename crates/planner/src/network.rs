//! From the network that a request names to the one that is planned on: read, without who takes no part and what is broken.

mod bases;
mod composition;
mod input;
mod puncture;
mod relatives;
mod seats;

pub(crate) use self::bases::{Bases, Whole};
pub(crate) use self::composition::{found as composition_found, stated as composition_stated};
pub use self::input::{assumptions, read_reported, read_topology};
pub use self::puncture::seen_by;
pub(crate) use self::puncture::{Part, faults};
pub(crate) use self::relatives::{Relative, Relatives};
pub(crate) use self::seats::{Seats, take};
