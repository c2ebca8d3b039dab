//! Plans and networks for other simulators: SimGrid platform files, ASTRA-sim network files, Chakra execution traces.
//!
//! The module is pure: a topology and the [messages](crate::messages) of a run in, text or plain data out.
//! Equal input gives equal output. It neither finds nor judges plans, and leaves files and protobuf encoding to its
//! callers.

mod astra;
mod chakra;
mod simgrid;

pub use astra::{Block, Dimension, Network, NetworkError, network};
pub use chakra::{TraceError, TraceNode, TraceWork, traces};
pub use simgrid::{Replay, simgrid};
