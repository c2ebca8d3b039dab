//! What networks of ranks alone are like as graphs: ports, steps from end to end, and whether they look the same backwards.

use canopy_canonical::{Comparison, compare};
use canopy_direct::{Facts, facts, moore_steps, moore_steps_undirected};
use canopy_topology::Topology;
use serde::Serialize;

use super::symmetry::{BUDGET, graph};
use crate::exit::Failure;
use crate::input;
use crate::output::stated_rate;

/// Member of the JSON object of `show`; all of it is found by looking, nothing taken from a family.
#[derive(Serialize)]
pub(super) struct Direct {
    /// Ports out of and into every rank, if these are one number; ports that lead back to their own rank count.
    degree: Option<u32>,
    /// Rate of a port in bytes/s; none where no rate divides all links into a sensible number of ports.
    port_rate: Option<String>,
    self_loops: u32,
    /// No parallel ports, and none that leads back to its own rank.
    simple: bool,
    /// As many ports lead from any rank to any other as back.
    bidirectional: bool,
    /// Most links on a shortest way from one rank to another; none where there is no way.
    diameter: Option<u32>,
    /// The least diameter of any network of so many ranks and ports.
    diameter_min: Option<u64>,
    /// The same where every link leads both ways and none are parallel; only for such networks.
    diameter_min_both_ways: Option<u64>,
    moore_optimal: Option<bool>,
    /// Whether it is the same network with all links turned around; none where that is not known.
    reverse_symmetric: Option<bool>,
}

impl Direct {
    /// Finds out; none for networks with switches, or with compute devices that only forward.
    pub(super) fn of(topology: &Topology) -> Result<Option<Self>, Failure> {
        let Some(ports) = topology.ports(&input::limits()?) else { return Ok(None) };
        let Facts { degree, self_loops, simple, bidirectional, distances } = facts(&ports.graph);
        let degree = degree.filter(|_| ports.rate.is_some());
        let order = u64::from(topology.rank_count());
        let diameter = distances.map(|distances| distances.max);
        let diameter_min = degree.and_then(|degree| moore_steps(order, degree.into()));
        let both_ways = degree.filter(|_| simple && bidirectional);
        let moore_optimal = diameter.zip(diameter_min).map(|(found, least)| u64::from(found) == least);
        Ok(Some(Self {
            degree,
            port_rate: ports.rate.map(|rate| rate.bytes_per_sec().to_string()),
            self_loops,
            simple,
            bidirectional,
            diameter,
            diameter_min,
            diameter_min_both_ways: both_ways.and_then(|degree| moore_steps_undirected(order, degree.into())),
            moore_optimal,
            reverse_symmetric: reverse_symmetric(topology)?,
        }))
    }

    /// Lines for people.
    pub(super) fn lines(&self) -> [String; 3] {
        let rate = self.port_rate.as_ref().map(|rate| format!(" of {}", stated_rate(rate))).unwrap_or_default();
        let ports = match self.degree {
            Some(degree) => format!("{degree}{rate} at every rank"),
            None if self.port_rate.is_some() => format!("number differs by rank{rate}"),
            None => "of no common rate".to_owned(),
        };
        let loops = match self.self_loops {
            0 if self.simple => ", to different ranks".to_owned(),
            0 => ", some of them parallel".to_owned(),
            count => format!(", {count} of all lead back to their own rank"),
        };
        let steps = match (self.diameter, self.diameter_min) {
            (None, _) => "no route between some ranks".to_owned(),
            (Some(found), None) => format!("at most {found} between any two ranks"),
            (Some(found), Some(least)) => {
                let undirected = self.diameter_min_both_ways.filter(|both| *both > least);
                let undirected =
                    undirected.map(|both| format!(", {both} where links lead both ways")).unwrap_or_default();
                format!("at most {found} between any two ranks; the minimum for this many ports is {least}{undirected}")
            }
        };
        let reversed = match (self.bidirectional, self.reverse_symmetric) {
            (true, _) => "every link leads both ways",
            (false, Some(true)) => "links lead one way; the same network when all are turned around",
            (false, Some(false)) => "links lead one way; another network when all are turned around",
            (false, None) => "links lead one way; whether it is the same network turned around is not determined",
        };
        [format!("ports      {ports}{loops}"), format!("steps      {steps}"), format!("ways       {reversed}")]
    }
}

/// Whether turning all links around gives the same network under other numbers.
fn reverse_symmetric(topology: &Topology) -> Result<Option<bool>, Failure> {
    let turned = topology.transposed();
    if turned.links() == topology.links() {
        return Ok(Some(true));
    }
    let comparison = compare(&graph(topology)?, &graph(&turned)?, BUDGET);
    match comparison.map_err(|error| Failure::fault(error.to_string()))? {
        Comparison::Same(_) => Ok(Some(true)),
        Comparison::Different(_) => Ok(Some(false)),
        Comparison::Undetermined => Ok(None),
    }
}
