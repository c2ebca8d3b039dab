//! Faults of a network: names of elements, effects on links and nodes, and a log of who reported what and for how long
//! it counts.
//!
//! Pure: text, numbers and times in, faults of a topology out. It has no clock: every time is an argument, in
//! milliseconds since 1970.

mod event;
pub mod feeds;
mod log;
mod remaining;
mod resolve;
mod singles;
mod target;
mod text;

pub use event::{Event, EventError, Severity};
pub use log::{FaultLog, FaultLogError, Outcome, Policy, PolicyError, Record, Word};
pub use remaining::{Remaining, RemainingError};
pub use resolve::{Directory, MeaningError, ResolveError};
pub use singles::{EquivalentFaults, SINGLE_KINDS, singles};
pub use target::{Device, Loss, Target, TargetError};
