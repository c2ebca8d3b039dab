//! A lab: the network of a topology with links of limited rate on one machine, and a plan's ranks as programs on it.
//!
//! The crate is pure. It says which namespaces, addresses, routes and rate limits make the network, as commands for
//! `ip` and `tc`; which pieces each rank sends when, and how fast; and how many bytes each link has to carry. It starts
//! nothing and opens nothing. [`RankState`] is the whole of a rank but for its sockets and its clock.
//!
//! **Routes are addresses.** Each route of a plan has an address of its own at the rank where it ends, and a host route
//! at each node on the way, so a connection to that address takes exactly the links of the plan.

mod address;
mod command;
mod compile;
mod data;
mod error;
mod network;
mod pace;
mod paths;
mod program;
mod rank;
mod routes;
mod scale;
mod segments;

pub use address::{MANAGEMENT_NET, NODES_MAX, PORT, RANK_NET, management_address, rank_address};
pub use command::{Command, Program};
pub use compile::{Compiled, Job, compile};
pub use data::value;
pub use error::LabError;
pub use network::{LinkChange, NAMESPACES, Network, Pair, interface, namespace, namespace_file};
pub use pace::Pace;
pub use program::{FRAME_HEAD_BYTES, Incoming, Outgoing, RankProgram, Receive, Segment, SendOrder};
pub use rank::{Arrival, RankState, StateError};
pub use routes::PlanRoute;
pub use scale::{Demand, Scale};
