//! The services of `canopy.v1`: each decodes, calls one method and encodes.

pub(crate) mod archives;
pub(crate) mod clusters;
pub(crate) mod faults;
pub(crate) mod leases;
pub(crate) mod operations;
pub(crate) mod plan_admin;
pub(crate) mod planner;
pub(crate) mod server_admin;
pub(crate) mod topologies;
