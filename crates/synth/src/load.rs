//! How long a schedule keeps the busiest link, to choose between schedules. What a plan states is the checker's word,
//! which shares nothing with this.

use std::ops::Range;

use canopy_optimize::Fraction;
use canopy_schedule::{Carrier, RouteTable, Shape};
use canopy_topology::Topology;

/// Seconds per byte of one share (in all-to-all: of one block) in the bandwidth limit: the greatest `chunks / (k · capacity)`
/// of any link. O(size of the schedule).
pub(crate) fn seconds_per_byte(topology: &Topology, shape: &Shape) -> Fraction {
    let routes = match shape {
        Shape::Forest(forest) => &forest.routes,
        Shape::Steps(steps) => &steps.routes,
        Shape::Flow(flow) => &flow.routes,
    };
    let mut route_loads = vec![0_u128; routes.len()];
    let mut add = |carriers: &[Carrier]| {
        carriers.iter().for_each(|carrier| route_loads[carrier.route.index()] += u128::from(carrier.chunk_count));
    };
    let slice = |range: &Range<u32>| range.start as usize..range.end as usize;
    match shape {
        Shape::Forest(forest) => {
            for tree in forest.phases.iter().flat_map(|phase| &phase.trees) {
                forest.hops_of(tree).iter().for_each(|hop| add(forest.carriers_of(hop)));
            }
        }
        Shape::Steps(steps) => steps.sends.iter().for_each(|send| add(&steps.carriers[slice(&send.carriers)])),
        Shape::Flow(flow) => {
            for path in &flow.paths {
                let chunk_count = path.chunk_count;
                flow.hops[slice(&path.hops)].iter().for_each(|&route| add(&[Carrier { route, chunk_count }]));
            }
        }
    }
    busiest(topology, routes, &route_loads, shape.chunks_per_share())
}

fn busiest(topology: &Topology, routes: &RouteTable, route_loads: &[u128], chunks_per_share: u64) -> Fraction {
    let mut loads = vec![0_u128; topology.links().len()];
    for (links, load) in routes.iter().zip(route_loads) {
        links.iter().for_each(|link| loads[link.index()] += load);
    }
    let time = |(load, capacity): (u128, u64)| {
        let chunks_per_sec = u128::from(capacity) * u128::from(chunks_per_share);
        Fraction::new(load, chunks_per_sec).expect("neither capacities nor chunks per share are zero")
    };
    let capacities = topology.links().iter().map(|link| link.capacity.bytes_per_sec());
    loads.into_iter().zip(capacities).map(time).max().unwrap_or(Fraction::ZERO)
}
