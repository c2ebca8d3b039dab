//! MSCCL algorithm files: one program per rank, as thread blocks that move chunks over queues.
//!
//! [`lower`] makes a program from a transfer graph, [`write_msccl_xml`] and [`parse_msccl_xml`] turn it into text and
//! back, [`prove`] judges any program without knowing where it came from. Everything a runtime's version decides
//! (limits, protocol sizes, spelling) is data in [`ProfileLimits`]; the code has no constants of its own.

#[cfg(test)]
pub(crate) mod examples;
mod lower;
mod parse;
mod profile;
mod program;
mod prove;
mod write;

pub use lower::{LowerError, LowerOptions, lower};
pub use parse::{ParseError, ParseFault, parse_msccl_xml};
pub use profile::{Profile, ProfileError, ProfileLimits, Queue};
pub use program::{Buffer, Chunks, Operation, Program, Protocol, RankProgram, Step, ThreadBlock};
pub use prove::{Place, Problem, Proof, prove};
pub use write::write_msccl_xml;

pub(crate) use program::{Memory, expected_chunks};
