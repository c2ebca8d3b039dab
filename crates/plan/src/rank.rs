//! Files of one rank of an exchange in stages, made from the rule alone: no tree, no network and no other program.
//!
//! A file of all ranks of a large machine has hundreds of gigabytes, and each rank needs some kilobytes of it. All
//! ranks ask the same rule, so their files fit together although each is made by itself.

mod execution;
mod file;
mod messages;
mod request;
mod steps;

pub use execution::{ExecutionSlice, ExecutionSliceOptions, RankStub, lower_execution_slice, write_execution_slice};
pub use file::{RankFileOptions, rank_file};
pub use messages::lower_oneccl_rank;
pub use request::{RankFileError, RankRequest, require_msccl_ranks};
pub use steps::{
    MoveFault, RANK_STEPS_SCHEMA, RankSteps, RankStepsError, parse_rank_steps, rank_steps, write_rank_steps,
};
