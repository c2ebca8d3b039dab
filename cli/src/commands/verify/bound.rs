//! The bound of a collective that the rate of a file is compared with.

use std::time::Duration;

use canopy_schedule::{Collective, Shares, certified_bound};
use canopy_synth::BoundError;
use canopy_topology::{Rate, Topology};

use crate::clock::Deadline;
use crate::exit::words;
use crate::family;

/// Why there is no bound to compare with.
const NO_TIME: &str = "no time was left to find the bound";

/// Longest search for the bound.
const BOUND_SEARCH_MAX: Duration = Duration::from_secs(30);

/// Upper bound that a certificate, added up again, proves.
pub(super) fn proven(collective: Collective, topology: Option<&Topology>) -> Result<Rate, String> {
    let topology = topology.ok_or("no network is given")?;
    let deadline = Deadline::after(Some(BOUND_SEARCH_MAX));
    let stop = || deadline.is_past();
    let boxed = family::boxed(topology, &stop).map_err(|_| NO_TIME.to_owned())?;
    match canopy_synth::bound(boxed.as_ref().unwrap_or(topology), collective, &Shares::Equal, &stop) {
        Ok(found) => certified_bound(topology, collective, &Shares::Equal, &found.certificate)
            .map_err(|error| format!("the certificate does not hold: {}", words(&error))),
        Err(BoundError::Stopped) => Err(NO_TIME.to_owned()),
        Err(error) => Err(words(&error)),
    }
}
