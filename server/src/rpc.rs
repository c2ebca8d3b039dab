//! The services of `canopy.v1`, and what every call goes through: the only place that knows its messages.
//!
//! Three rooms: `shared` uses neither of the others, `layers` uses `shared`, `services` uses both. `routes` assembles
//! them. No policy of planning lives here.

pub(crate) mod layers;
mod routes;
mod services;
pub(crate) mod shared;
#[cfg(test)]
mod tests;

pub(crate) use routes::{GATED, OPEN, Shared, deadlines, methods, routes};
pub(crate) use services::archives::PlanSpace;
pub(crate) use shared::decode::{Decoded, Method, decode};
pub(crate) use shared::events::EventStream;
pub(crate) use shared::sources::StoredNetworks;
