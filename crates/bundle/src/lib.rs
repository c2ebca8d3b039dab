//! Bundles: the plans of a job's communicators, collectives and message sizes, and which of their files a runtime picks.
//!
//! Runtimes match a call by collective, number of ranks, in-place state and size. Only executors of oneCCL plans also
//! compare the devices of the ranks. They silently ignore files that do not match. So this crate decides which file is meant for which call, and models
//! what the runtime does with the finished folder, rule by rule:
//!
//! | module | what it says |
//! |---|---|
//! | `runtime` | the rules of each runtime, as a table |
//! | `file` | what a runtime reads of a file, as the file states it |
//! | `select` | which file a call gets, or why it gets none |
//! | `crossover` | the ranges of sizes in which each of several plans is fastest |
//! | `fit` | fewer ranges for runtimes that read few files |
//! | `apart` | which communicators a runtime cannot tell apart |
//! | `audit` | whether every call gets the file that is meant for it |
//!
//! The crate is pure: files and times in, ranges and verdicts out. It neither makes plans nor measures times.

mod apart;
mod audit;
mod crossover;
mod file;
mod fit;
mod operator;
mod range;
mod runtime;
mod select;

pub use apart::{Communicator, Standing, standings};
pub use audit::{AuditError, Intended, audit};
pub use crossover::{Margin, RangeSearch, Times, ranges};
pub use file::{Divisor, Folder, PlanFileError, PlanFileFacts};
pub use fit::{Ladder, fit, ladder};
pub use operator::Operator;
pub use range::{ByteRange, PlanRange};
pub use runtime::{Indivisible, Maximum, OtherFiles, Rules, Runtime, UnknownRuntime, Variable};
pub use select::{Call, Mismatch, Selection, select};
