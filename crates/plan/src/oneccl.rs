//! oneCCL plans: steps of asynchronous messages and local work, one program per rank, as XML of canopy's own.
//!
//! [`lower`] makes a program from a transfer graph, [`write`] and [`parse`] turn a program into text and back, [`prove`] judges any program without knowing where it came
//! from, [`emulate`] runs one on real bytes. [`SCHEMA`] is the grammar of the format.

mod arrivals;
mod emulate;
mod join;
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

pub(crate) use lower::check_options;
pub(crate) use memory::expected_chunks;
pub(crate) use parse::{Attributes, Document, RANKS_MAX, RankLimit, Tag, is_label, plain};
pub(crate) use prove::{Findings, Report};
pub(crate) use write::escaped;

pub use arrivals::arrivals;
pub use emulate::{Blocked, EmulateOptions, EmulationError, EmulationReport, emulate, emulate_until};
pub use join::{JoinError, join_rank_plans};
pub use load::network_load;
pub use lower::{LowerError, LowerOptions, lower, require_own_routes};
pub use parse::{BYTES_MAX, OWN_BYTES_MAX, ParseError, ParseFault, is_plan, parse, parse_rank_plan, parse_until};
pub use program::{Completion, Local, Meta, Program, RankProgram, Receive, Route, Scope, Send, Span, Step};
pub use prove::{Place, Problem, Proof, prove, prove_routes, prove_until};
pub use rank_map::{device_list, state_rank_map};
pub use rank_run::{Incoming, Outgoing, Piece, RankRun, RunError, Turn};
pub use write::{write, write_rank_plan};

/// The grammar of the format as an XML schema. [`prove`] checks the rules that it cannot express, such as that every
/// send has a receive. Files of version 2 have one `<rank>`, those of version 1 one for each rank.
pub const SCHEMA: &str = include_str!("../oneccl.xsd");

#[cfg(test)]
mod examples;
