//! An iteration of training or of an application on a time line: computations and collectives, what each waits for, and
//! which of them overlap.
//!
//! The module is pure: operations and the time of each collective in, integer picoseconds out; equal input gives equal
//! output. It does not know how plans are found or how long one takes: callers simulate each collective at its size.
//!
//! | module | what it does |
//! |---|---|
//! | `program` | operations in an order in which they can run |
//! | `training` | layers to operations: data parallel in buckets, fully sharded, experts |
//! | `trace` | nodes of an execution trace to operations |
//! | `run` | operations to the time at which each starts and ends |
//!
//! **The model.** Computations run one after the other, and so do collectives: all of them use the same links, so two
//! at once would not be faster. A computation and a collective overlap if neither waits for the other. Sources: Zhao
//! 2026 §A.1.4 (one stream for computations, one for collectives); Pham §3.2.3 (epochs).

mod program;
mod run;
mod trace;
mod training;

pub use program::{Call, OPERATIONS_MAX, Operation, Order, Overlap, Program, ProgramError, WAITS_MAX, Work};
pub use run::{RunError, Slot, Timeline, Traffic, run};
pub use trace::{TraceError, TraceNode, operations};
pub use training::{Layer, Parallelism, Resharding, Training};
