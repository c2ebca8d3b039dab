//! Route plans: which queue pairs each rank makes, over which ports of which nodes, in which layer, and what it posts on
//! them, as XML of canopy's own for fabrics that forward by source routing.
//!
//! [`lower`] makes a program from a flow whose paths have layers, [`write`] and [`parse`] turn a program into text and back,
//! [`prove`] judges any program without knowing where it came from. [`SCHEMA`] is the grammar of the format.

mod lower;
mod parse;
mod program;
mod prove;
mod write;

pub use crate::oneccl::{ParseError, ParseFault, Problem, Proof};
pub use lower::{LowerError, LowerOptions, lower};
pub use parse::{OWN_BYTES_MAX, is_plan, parse, parse_until};
pub use program::{Node, Port, Program, QueuePair, RankProgram, Role};
pub use prove::{prove, prove_on, prove_until};
pub use write::write;

/// The grammar of the format as an XML schema. [`prove`] checks the rules that it cannot express, such as that every
/// chunk arrives.
pub const SCHEMA: &str = include_str!("../routes.xsd");
