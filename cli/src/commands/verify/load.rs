//! Exact rate of a program on a network, and how near it is to the best.

use std::time::Duration;

use canopy_plan::{NetworkLoad, TrafficError};
use canopy_schedule::{Collective, Shares, certified_bound};
use canopy_synth::BoundError;
use canopy_topology::{Rate, Topology};

use crate::clock::Deadline;
use crate::commands::verify::{Problem, Report};
use crate::exit::words;
use crate::family;

/// Why there is no bound to compare with.
const NO_TIME: &str = "no time was left to find the bound";

/// Longest search for the bound.
const BOUND_SEARCH_MAX: Duration = Duration::from_secs(30);

/// Compares the rate of a routed program with the bound of its collective, both exactly.
pub(super) fn rate(
    load: Result<NetworkLoad, TrafficError>,
    collective: Result<Collective, String>,
    topology: &Topology,
    report: &mut Report,
) {
    let load = match load {
        Ok(load) => load,
        Err(error) => return report.record("load", Some(words(&error))),
    };
    report.record("load", None);
    let link = topology.link(load.busiest);
    let (from, to) = (&topology.node(link.from).id, &topology.node(link.to).id);
    report.routing = Some(format!(
        "each pair of ranks on one shortest route, as the file names none; {from} -> {to} is busiest with {} chunks",
        load.chunks
    ));
    report.algbw = Some(load.algbw.to_string());
    compare(&load.algbw, collective, topology, report);
}

/// Compares a rate with the bound of a collective.
pub(super) fn compare(algbw: &Rate, collective: Result<Collective, String>, topology: &Topology, report: &mut Report) {
    match collective.and_then(|collective| bound(collective, topology)) {
        Ok(bound) if *algbw > bound => {
            let words = format!("{algbw} bytes/s are above the proven bound of {bound}: one is wrong");
            report.record("load", Some(words));
        }
        Ok(bound) => report.optimality = algbw.ratio_to(&bound).map(|ratio| ratio.to_string()),
        Err(reason) => {
            let message = format!("how near the rate is to the best is not known: {reason}");
            report.warnings.push(Problem { check: "load", message, place: "file".to_owned() });
        }
    }
}

/// Upper bound that a certificate, added up again, proves.
fn bound(collective: Collective, topology: &Topology) -> Result<Rate, String> {
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
