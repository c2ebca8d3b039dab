//! Which links a schedule has anything to do with: whom a fault concerns.

use canopy_topology::{LinkIndex, Topology};

use crate::forest::Carrier;
use crate::loads::{chunks_of_orbits, chunks_of_stages};
use crate::route::{RouteIndex, RouteTable};
use crate::schedule::{Schedule, Shape};

/// By link: whether the schedule sends anything over it.
///
/// Routes over links that do not exist, which the checker rejects, are ignored; of stages and orbits that it rejects no link is used.
/// O(size of the schedule), for stages and orbits the cost of the checker.
pub fn links_used(topology: &Topology, schedule: &Schedule) -> Vec<bool> {
    let mut used = Used { routes: Vec::new(), links: vec![false; topology.links().len()] };
    match &schedule.shape {
        Shape::Forest(forest) => used.carriers(&forest.routes, &forest.carriers),
        Shape::Steps(steps) => used.carriers(&steps.routes, &steps.carriers),
        Shape::Flow(flow) => used.take(&flow.routes, flow.hops.iter().copied()),
        Shape::Stages(stages) => {
            if let Ok(chunks) = chunks_of_stages(topology, schedule.collective, stages) {
                used.links = chunks.iter().map(|&chunks| chunks > 0).collect();
            }
        }
        Shape::Orbits(orbits) => {
            if let Ok(chunks) = chunks_of_orbits(topology, schedule.collective, orbits) {
                used.links = chunks.iter().map(|&chunks| chunks > 0).collect();
            }
        }
    }
    used.links
}

struct Used {
    routes: Vec<bool>,
    links: Vec<bool>,
}

impl Used {
    fn carriers(&mut self, table: &RouteTable, carriers: &[Carrier]) {
        self.take(table, carriers.iter().map(|carrier| carrier.route));
    }

    fn take(&mut self, table: &RouteTable, routes: impl Iterator<Item = RouteIndex>) {
        self.routes = vec![false; table.len()];
        for route in routes {
            if let Some(known) = self.routes.get_mut(route.index()) {
                *known = true;
            }
        }
        for (links, _) in table.iter().zip(&self.routes).filter(|(_, known)| **known) {
            for link in links.iter().map(|link: &LinkIndex| link.index()) {
                if let Some(used) = self.links.get_mut(link) {
                    *used = true;
                }
            }
        }
    }
}
