//! Planning with a data folder: plans are looked up there, made if they are missing, and kept there.
//!
//! [`PlanService`] does this in the process that asks, without a server; the server uses the parts of it: what is kept
//! of the request of a plan, the folder's default place and its socket, and what the machine allows.
//!
//! The crate does not know calls, connections or other servers.

pub mod asked;
pub mod bundle;
mod error;
mod folder;
mod limits;
mod machine;
mod network;
mod planning;
mod turns;

pub use error::ServiceError;
pub use folder::{NoHome, SocketPath, data_dir_default, socket_path};
pub use limits::{Limits, LimitsError};
pub use machine::Memory;
pub use network::{STACK_BYTES, on_a_deep_stack, read_punctured};
pub use planning::{Answer, NOT_STORED, Outcome, PlanService, ServerReason, not_stored};
