//! MSCCL++ execution plans: one program per rank, as thread blocks that read and write each other's memory.
//!
//! There are no queues: every order is stated by signals, meetings of threads or blocks, and semaphores.
//! [`lower_execution_plan`] makes a plan from a transfer graph, [`write_execution_plan`] and [`parse_execution_plan`] turn it
//! into text and back, [`prove_execution_plan`] and [`emulate_execution_plan`] judge any plan without knowing where it came
//! from. What a version of the runtime decides is data in [`ExecutorLimits`].

mod calls;
mod contract;
mod cut;
mod emulate;
mod loader;
mod lower;
mod machine;
mod parse;
mod profile;
mod program;
mod prove;
mod python;
mod slots;
mod switches;
mod write;

pub(crate) use cut::cut_execution_plan;
pub use emulate::emulate_execution_plan;
pub(crate) use emulate::{Emulator, ExecutionOptions};
pub use lower::{ExecutionLowerError, ExecutionLowerOptions, execution_alignment_bytes, lower_execution_plan};
pub use parse::{EXECUTION_PLAN_BYTES_MAX, ExecutionPlanError, parse_execution_plan, parse_execution_plan_head};
pub use profile::{ExecutorLimits, ExecutorProfile, UnknownExecutorProfile};
pub use program::{
    ChannelType, ChunkRef, ExecutionBlock, ExecutionOp, ExecutionPlan, ExecutionRank, OpName, Pipeline, RankChannels,
    RefPlace, RemoteBuffer, SwitchGroup,
};
pub use prove::prove_execution_plan;
pub use python::execution_plan_loader;
pub use slots::{SlotPlan, SlotPlanError, SlotPlanOptions, emulate_slot_plan, plan_slots, prove_slot_plan};
pub use switches::{SwitchDomain, switch_domains};
pub use write::write_execution_plan;

pub(crate) use contract::{read_word, word as collective_word};
pub(crate) use loader::message_chunks;
pub(crate) use write::{write_plan_end, write_plan_head, write_rank, write_rank_links};
