//! Automorphisms and canonical forms of coloured, weighted, directed graphs: graphs in, permutations out.
//!
//! [`analyse`] says in one search which nodes of a [`Graph`] cannot be told apart, and in which order to write it down so
//! that isomorphic graphs read alike. It individualises and refines (B. McKay, A. Piperno, *Practical graph isomorphism
//! II*, J. Symb. Comput. 60, 2014, §2–3), and takes the graph apart wherever refinement allows:
//!
//! * `refine`: cells such that every node of a cell has as many links of each weight into every cell;
//! * `reduce`: links that all pairs of two cells have are dropped, which leaves components that are solved apart;
//! * `search`: what is left is solved for each way to single out one node of a cell, up to symmetry.
//!
//! Every automorphism is verified link by link on the graph as it was given before it is handed out. The search has a
//! budget of work: graphs made to be hard end it, and the answer says so. It is our own because the one port of nauty to
//! Rust, canonaut 1.0.0, can only be stopped for a whole process at once, takes seconds for a thousand nodes, and misses
//! automorphisms of small graphs (`tests/graphs/counted.rs` has one of ten nodes).
//!
//! [`compare`] says what two graphs have to do with each other, [`Carriers`] finds all automorphisms that move one node to
//! another, where these are few. [`graph_of`] makes a graph of a topology, and [`normalised`] puts a topology into the order of
//! its canonical form; nothing else here knows topologies.

mod analysis;
mod automorphism;
mod budget;
mod carriers;
mod compare;
pub mod families;
mod fingerprint;
mod graph;
mod network;
mod normal;
mod orbits;
mod partition;
mod profile;
mod reduce;
mod refine;
mod search;

pub use analysis::{Analysis, Outcome, Solution, analyse, automorphisms};
pub use automorphism::Automorphism;
pub use budget::{Budget, Stopped, WORK_SERVED, WORK_STANDARD};
pub use carriers::Carriers;
pub use compare::{CompareError, Comparison, Difference, compare};
pub use fingerprint::form_hash;
pub use graph::{Arc, Graph, GraphError, Weight};
pub use network::graph_of;
pub use normal::{Normal, boxes, normalised};
pub use orbits::Orbits;
