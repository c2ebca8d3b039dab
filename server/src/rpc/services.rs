//! The services of `canopy.v1`: each decodes, calls one method and encodes.

pub(crate) mod analysis;
pub(crate) mod archives;
pub(crate) mod faults;
pub(crate) mod leases;
pub(crate) mod networks;
pub(crate) mod operations;
pub(crate) mod planner;
pub(crate) mod plans;
pub(crate) mod server;
