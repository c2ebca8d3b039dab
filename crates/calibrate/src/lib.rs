//! What measured runs say of a network: latencies, rates that are reached, and links that are slower than described.
//!
//! Pure: texts and numbers in, numbers out. How long a run would take with given parameters is asked of the caller, who
//! simulates it; so what is found is right for the simulations that it is made for.
//!
//! | module | what it does |
//! |---|---|
//! | `read` | runs in the words of the programs that timed them |
//! | `parameters` | what is found, and what it makes of a network |
//! | `fit` | least squares, how far parameters may be off, and which of them the runs do not determine |
//! | `links` | links slower than described, from runs between pairs of ranks |
//! | `overlay` | the file of what was found |
//!
//! Source: our own; Gauss–Newton with Huber's weights is textbook.

#[cfg(test)]
mod chance;
mod fit;
mod links;
mod overlay;
mod parameters;
mod read;
mod solve;

pub use fit::{Estimate, Fit, FitError, Undetermined, Why, approach, fit};
pub use links::{PairError, SlowLink, slow_links};
pub use overlay::{OVERLAY_BYTES_MAX, Overlay, OverlayError};
pub use parameters::{Parameter, Parameters, RATE_MAX, inside};
pub use read::{LIBRARY, Measured, Pair, Point, RUNS_BYTES_MAX, ReadRunsError, Run, read_runs};
