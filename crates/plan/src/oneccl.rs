//! oneCCL plans: steps of asynchronous messages and local work, one program per rank, as XML of canopy's own.
//!
//! [`lower`] makes a program from a transfer graph, [`write`] and [`parse`] turn a program into text and back, [`prove`] judges any program without knowing where it came
//! from, [`emulate`] runs one on real bytes. [`SCHEMA`] is the grammar of the format.

mod arrivals;
mod emulate;
mod lengths;
mod load;
mod lower;
mod memory;
mod parse;
mod program;
mod prove;
mod rank_map;
mod rank_run;
mod write;

pub(crate) use parse::{Attributes, Document, RANKS_MAX, Tag, is_label, plain};
pub(crate) use prove::{Findings, Report};
pub(crate) use write::escaped;

pub use arrivals::arrivals;
pub use emulate::{Blocked, EmulateOptions, EmulationError, EmulationReport, emulate, emulate_until};
pub use load::network_load;
pub use lower::{LowerError, LowerOptions, lower, require_own_routes};
pub use parse::{BYTES_MAX, OWN_BYTES_MAX, ParseError, ParseFault, is_plan, parse, parse_until};
pub use program::{Completion, Local, Meta, Program, RankProgram, Receive, Route, Scope, Send, Span, Step};
pub use prove::{Place, Problem, Proof, prove, prove_routes, prove_until};
pub use rank_map::{device_list, state_rank_map};
pub use rank_run::{Incoming, Outgoing, Piece, RankRun, RunError, Turn};
pub use write::write;

/// The grammar of the format as an XML schema. [`prove`] checks the rules that it cannot express, such as that every
/// send has a receive.
pub const SCHEMA: &str = include_str!("../oneccl.xsd");

#[cfg(test)]
mod examples;
