//! Bundles: the plans of a job's communicators, collectives and message sizes, and which of their files a runtime picks.
//!
//! Runtimes match a call by collective, number of ranks, in-place state and size, never by the devices of its ranks, and a
//! file that does not match is passed over without a word. So which file is meant for which call is decided here, and what
//! the runtime would do with the finished folder is modelled rule by rule:
//!
//! | module | what it says |
//! |---|---|
//! | `runtime` | the rules of each runtime, as a table |
//! | `file` | what a runtime reads of a file, as the file states it |
//! | `select` | which file a call gets, or why none |
//! | `crossover` | which of several plans is fastest at which sizes, as ranges |
//! | `fit` | fewer ranges, where a runtime reads few files |
//! | `apart` | which communicators a runtime cannot tell apart |
//! | `tuner` | advice for a runtime that runs no plans, as a table for its tuner |
//! | `audit` | whether every call of a folder gets the file that is meant for it |
//!
//! Pure: files and times in, ranges and verdicts out. It neither makes plans nor knows how times are found.

mod apart;
mod audit;
mod crossover;
mod file;
mod fit;
mod operator;
mod range;
mod runtime;
mod select;
mod tuner;

pub use apart::{Communicator, Standing, standings};
pub use audit::{AuditError, Intended, audit};
pub use crossover::{Margin, RangeSearch, Times, ranges};
pub use file::{Divisor, Folder, PlanFileError, PlanFileFacts};
pub use fit::{Ladder, fit, ladder};
pub use operator::Operator;
pub use range::{ByteRange, PlanRange};
pub use runtime::{Indivisible, Maximum, OtherFiles, Rules, Runtime, UnknownRuntime, Variable};
pub use select::{Call, Mismatch, Selection, select};
pub use tuner::{ADVICE_BYTES_MIN, Advice, NcclAlgorithm, NcclNetwork, nccl_algorithms, tuner_csv, tuner_word};
