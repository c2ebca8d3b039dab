//! Discrete-event simulation of the time of a transfer graph on its topology, for a message of any size.
//!
//! The crate is pure: a graph and numbers in, integer picoseconds out; equal input gives equal output. It neither finds
//! nor judges schedules: its input has been checked, and no time is below the exact bandwidth limit.
//!
//! **The model.** A transfer is cut into *pieces* ([`Pieces`]), each a message of its own. A message may start when what its
//! transfer waits for has brought the same part of the chunks ([`Sync::Deps`]) or when everything of earlier steps has
//! arrived ([`Sync::Steps`]), and when the piece before it has left the sender. It then takes α, lets what is of earlier steps on
//! its route go first, crosses the route, and has arrived the route's latencies after its last byte was sent. Ranks store and forward, switches cut through. Links
//! are shared fairly among the messages on them, or serve one after the other ([`Sharing`]). If adding up takes time, a
//! rank adds one message after the other before it has arrived (γ); the call as a whole may take a constant before its
//! first message (ε).
//!
//! So a message of `b` bytes that is alone takes `α + Σ latencies + b/capacity`, as in Hockney's model, and a chain of `D`
//! hops with `P` pieces takes `(D + P − 1)(α + b/(P·capacity))`.

mod activity;
mod by_class;
mod elsewhere;
mod event_queue;
pub mod export;
mod fair;
mod fifo;
mod gates;
mod limit;
mod messages;
mod options;
mod outcome;
mod reached;
mod run;
mod steps;
pub mod timeline;
mod together;
mod turns;
mod workload;

pub use activity::{busiest, busy_by_part, part_start_ps};
pub use by_class::{ClassModel, ClassOutcome};
pub use elsewhere::{ElsewhereError, elsewhere};
pub use limit::{algbw, bandwidth_limit_ps, busbw, least_time_ps};
pub use messages::{Message, messages};
pub use options::{ALPHA_NS_USUAL, PIECE_BYTES_USUAL, Pieces, Sharing, SimulateError, SimulateOptions, Stop, Sync};
pub use outcome::{Leg, LinkUse, Outcome, Sent, Start};
pub use reached::Reached;
pub use run::{simulate, simulate_traced};
pub use steps::step_numbers;
pub use together::{Together, TogetherError, TogetherPart, simulate_together};
