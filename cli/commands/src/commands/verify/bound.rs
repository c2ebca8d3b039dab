//! The bound of a collective that the rate of a file is compared with.

use std::time::Duration;

use canopy_planner::proven_bound;
use canopy_schedule::{Collective, Shares};
use canopy_topology::{Rate, Topology};

use crate::clock::Deadline;
use crate::exit::words;

/// Why there is no bound to compare with.
const NO_TIME: &str = "no time was left to find the bound";

/// Longest search for the bound.
const BOUND_SEARCH_MAX: Duration = Duration::from_secs(30);

/// Upper bound that a certificate, added up again, proves.
pub(super) fn proven(collective: Collective, topology: Option<&Topology>) -> Result<Rate, String> {
    let topology = topology.ok_or("no network is given")?;
    let deadline = Deadline::after(Some(BOUND_SEARCH_MAX));
    match proven_bound(topology, collective, &Shares::Equal, &|| deadline.is_past()) {
        Ok(found) => Ok(found.upper),
        Err(error) if error.is_cancellation() => Err(NO_TIME.to_owned()),
        Err(error) => Err(words(&error)),
    }
}
