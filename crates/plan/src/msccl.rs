//! MSCCL algorithm files: one program per rank, as thread blocks that move chunks over queues.
//!
//! [`lower`] makes a program from a transfer graph, [`write_msccl_xml`] and [`parse_msccl_xml`] turn it into text and
//! back, [`prove`] judges any program without knowing where it came from. Everything a runtime's version decides
//! (limits, protocol sizes, spelling) is data in [`ProfileLimits`]; the code has no constants of its own.

mod convert;
pub(crate) mod emulate;
#[cfg(test)]
pub(crate) mod examples;
mod figures;
mod lower;
mod parse;
mod profile;
mod program;
pub(crate) mod prove;
pub(crate) mod traffic;
mod write;

pub use convert::{Change, Conversion, ConvertError, convert};
pub use figures::{Figure, InstanceRoom, ProgramFigures};
pub use lower::{Instances, LowerError, LowerOptions, Lowered, forwarder_on_routes, lower, require_own_routes};
pub use parse::{
    Deviation, ForeignFile, MSCCL_BYTES_MAX, MSCCL_OWN_BYTES_MAX, ParseError, ParseFault, parse_msccl_xml,
    parse_msccl_xml_until, read_foreign_msccl_xml, read_msccl_xml_as_runtime,
};
pub use profile::{ByteRange, PlacementRule, Profile, ProfileError, ProfileLimits, Queue, Selection, SelectionOrder};
pub use program::{Buffer, Chunks, Operation, Program, Protocol, Purpose, RankProgram, Step, ThreadBlock};
pub use prove::{Place, Problem, Proof, prove, prove_until};
pub use traffic::{NetworkLoad, TrafficError, network_load, traffic};
pub use write::write_msccl_xml;

pub(crate) use lower::Ranges;
pub(crate) use prove::{Findings, Report};
