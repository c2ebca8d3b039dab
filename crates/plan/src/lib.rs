//! What leaves canopy: plans lowered to a runtime's file, read back, proved and emulated; and canopy's own plan file.
//!
//! Pure: a transfer graph or text in, text or a verdict out. It knows nothing of how schedules are found, and the
//! proof and the emulator know nothing of how a file was made: they judge any file.

mod emulate;
mod msccl;
mod plan_file;

pub use emulate::{Blocked, EmulateOptions, EmulationError, EmulationReport, Operator, emulate};
pub use msccl::{
    Buffer, Chunks, LowerError, LowerOptions, Operation, ParseError, ParseFault, Place, Problem, Profile, ProfileError,
    ProfileLimits, Program, Proof, Protocol, Queue, RankProgram, Step, ThreadBlock, lower, parse_msccl_xml, prove,
    write_msccl_xml,
};
pub use plan_file::{PLAN_SCHEMA, PlanFile, PlanFileError, Provenance, read_plan, write_plan};
