//! Plans and networks for other simulators: SimGrid's platform files, ASTRA-sim's network files, Chakra execution traces.
//!
//! Pure: a topology and the [messages](canopy_simulate::messages) of a run in, text or plain data out, the same for the
//! same input. It neither finds nor judges plans, and knows no files and no protobuf: whoever writes traces encodes them.

mod astra;
mod chakra;
mod simgrid;

pub use astra::{Block, Dimension, Network, NetworkError, network};
pub use chakra::{TraceError, TraceNode, TraceWork, traces};
pub use simgrid::{Replay, simgrid};
