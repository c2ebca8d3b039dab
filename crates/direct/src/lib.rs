//! Graphs of networks without switches, as plain numbers: families with exact definitions, the operators that make
//! larger graphs of smaller ones, what can be said of a graph by looking at it, and allgathers that grow with the graphs.
//!
//! Numbers in, numbers out. A node is a number, an edge is one port of its tail: parallel edges are several ports, and an
//! edge from a node to itself wastes one. What a composed schedule costs is predicted exactly from what it is composed of
//! ([`Prediction`]), and the schedule itself is written out once, at the end ([`Composed`]). It knows nothing of topologies
//! or rates.

mod bases;
mod construction;
mod cost;
mod digraph;
mod error;
mod expand;
mod facts;
mod families;
mod given;
pub mod multiport;
mod prediction;
mod rate;
mod regular;
mod reversal;
mod schedule;
mod size;
mod transfer;

pub use bases::Bases;
pub use construction::Construction;
pub use cost::{Cost, Exactness, least_bandwidth};
pub use digraph::{Digraph, DigraphError};
pub use error::{GraphError, PredictError};
pub use expand::{bidirect, degree, line, power, product};
pub use facts::{Facts, diameter, distances_from, facts, moore_steps, moore_steps_undirected};
pub use families::{Family, FamilyError};
pub use prediction::{Prediction, RuleError, Side};
pub use rate::{AllToAllRate, RateError, all_to_all_rate, full_tree_rate, proven_rate};
pub use reversal::reversal;
pub use schedule::{Composed, Heading, ScheduleError};
pub use size::{Limit, Size, TooLarge};
pub use transfer::Transfer;
