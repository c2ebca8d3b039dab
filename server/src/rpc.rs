//! The services of `canopy.v1`, and what every call goes through: the only place that knows its messages.
//!
//! A service decodes, calls one method and encodes. No policy of planning lives here.

pub(crate) mod answered;
mod archives;
mod audited;
mod cached;
mod call_pool;
mod cluster_parts;
mod clusters;
pub(crate) mod connection_threads;
pub(crate) mod deadline;
mod decode;
mod deliver;
mod describe;
mod events;
mod faults;
mod fields;
pub(crate) mod finds;
mod gate;
pub(crate) mod guard;
pub(crate) mod judge;
mod known_faults;
mod learning;
mod leases;
mod listing;
pub(crate) mod malformed;
mod operations;
mod oversize;
mod parts;
mod plan_admin;
mod plan_summaries;
mod planner;
mod rank_map;
pub(crate) mod record;
mod request_log;
mod revoked;
mod routes;
mod server_admin;
mod sources;
pub(crate) mod status;
pub(crate) mod store_check;
#[cfg(test)]
mod tests;
pub(crate) mod timeout;
mod topologies;
pub(crate) mod web;
mod work;

pub(crate) use archives::PlanSpace;
pub(crate) use decode::{Decoded, Method, decode};
pub(crate) use events::EventStream;
pub(crate) use routes::{GATED, OPEN, Shared, deadlines, methods, routes};
pub(crate) use sources::StoredNetworks;
