//! Which links a schedule has anything to do with: whom a fault concerns.

use canopy_topology::LinkIndex;

use crate::route::{RouteIndex, RouteTable};
use crate::schedule::{Carrier, Shape};

/// By link: whether the schedule sends anything over it.
///
/// `link_count`: links of the topology; routes over links beyond them, which the checker rejects, are ignored.
/// O(size of the schedule).
pub fn links_used(shape: &Shape, link_count: usize) -> Vec<bool> {
    let mut used = Used { routes: Vec::new(), links: vec![false; link_count] };
    match shape {
        Shape::Forest(forest) => used.carriers(&forest.routes, &forest.carriers),
        Shape::Steps(steps) => used.carriers(&steps.routes, &steps.carriers),
        Shape::Flow(flow) => used.take(&flow.routes, flow.hops.iter().copied()),
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
