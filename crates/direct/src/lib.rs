//! Graphs of networks without switches, as plain numbers: families with exact definitions, the operators that make
//! larger graphs of smaller ones, and what can be said of a graph by looking at it.
//!
//! Numbers in, numbers out. A node is a number, an edge is one port of its tail: parallel edges are several ports, and an
//! edge from a node to itself wastes one. It knows nothing of topologies, rates or schedules.

mod digraph;
mod expand;
mod facts;
mod families;
mod size;

pub use digraph::{Digraph, DigraphError};
pub use expand::{bidirect, degree, line, power, product};
pub use facts::{Facts, diameter, distances_from, facts, moore_steps, moore_steps_undirected};
pub use families::{Family, FamilyError};
pub use size::{Limit, Size, TooLarge};
