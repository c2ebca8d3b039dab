//! The files of canopy: plans lowered to a runtime's file, read back, proved and emulated; and canopy's own plan file.
//!
//! The crate is pure: a transfer graph or text in, text or a verdict out. It does not know how schedules are found, and
//! the proof and the emulator do not know how a file was made: they judge any file.

mod batches;
mod cut;
mod elements;
mod meaning;
mod msccl;
mod mscclpp;
mod need;
pub mod oneccl;
mod plan_file;
mod promise;
mod proof;
mod rank;
pub mod routes;
mod slots;
mod target;
mod waits;

pub use cut::{NoSuchRank, SliceError};
pub use elements::{ElementType, Operator};
pub use msccl::emulate::{Blocked, EmulateOptions, EmulationError, EmulationReport, emulate, emulate_until};
pub use msccl::{
    Buffer, ByteRange, Change, Chunks, Conversion, ConvertError, Deviation, Figure, ForeignFile, InstanceRoom,
    Instances, LowerError, LowerOptions, Lowered, MSCCL_BYTES_MAX, MSCCL_OWN_BYTES_MAX, NetworkLoad, Operation,
    ParseError, ParseFault, Place, PlacementRule, Problem, Profile, ProfileError, ProfileLimits, Program,
    ProgramFigures, Proof, Protocol, Purpose, Queue, RankProgram, Selection, SelectionOrder, Step, ThreadBlock,
    TrafficError, convert, forwarder_on_routes, lower, network_load, parse_msccl_xml, parse_msccl_xml_until, prove,
    prove_until, read_foreign_msccl_xml, read_msccl_xml_as_runtime, require_own_routes, traffic, write_msccl_xml,
};
pub use mscclpp::{
    ChannelType, ChunkRef, EXECUTION_PLAN_BYTES_MAX, ExecutionBlock, ExecutionLowerError, ExecutionLowerOptions,
    ExecutionOp, ExecutionPlan, ExecutionPlanError, ExecutionRank, ExecutorLimits, ExecutorProfile, OpName, Pipeline,
    RankChannels, RefPlace, RemoteBuffer, SlotPlan, SlotPlanError, SlotPlanOptions, SwitchDomain, SwitchGroup,
    UnknownExecutorProfile, emulate_execution_plan, emulate_slot_plan, execution_alignment_bytes,
    execution_plan_loader, lower_execution_plan, parse_execution_plan, parse_execution_plan_head, plan_slots,
    prove_execution_plan, prove_slot_plan, switch_domains, write_execution_plan,
};
pub use need::Certainty;
pub use plan_file::{PLAN_SCHEMA, PlanFile, PlanFileError, PlanRule, Provenance, read_plan, read_rule, write_plan};
pub use promise::{Promise, Promises};
pub use proof::{Stop, Stopped};
pub use rank::{
    ExecutionSlice, ExecutionSliceOptions, MoveFault, RANK_STEPS_SCHEMA, RankFileError, RankFileOptions, RankRequest,
    RankSteps, RankStepsError, RankStub, lower_execution_slice, lower_oneccl_rank, parse_rank_steps, rank_file,
    rank_steps, require_msccl_ranks, write_execution_slice, write_rank_steps,
};
pub use slots::{SlotRoute, SlotRouteError, Slots, SlotsError, slot_transfers};
pub use target::{
    Asked, Expected, Finding, Format, InstancesAsked, Layered, Limit, Needs, OptionError, OptionField, Stated,
    SwitchUse, Target, TargetError, TargetFile, TargetOptions, TargetReason, TargetWarning, UnknownFormat, Verdict,
    WithFewer, chain,
};
