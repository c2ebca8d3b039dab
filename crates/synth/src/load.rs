//! How long a schedule keeps the busiest link, to choose between schedules. What a plan states is the checker's word,
//! which shares nothing with this.

use std::ops::Range;

use canopy_optimize::Fraction;
use canopy_schedule::{
    Carrier, Collective, Forest, Orbits, RouteTable, Shape, Stages, chunks_of_orbits, chunks_of_stages,
};
use canopy_topology::Topology;

/// Seconds per byte of one share (in all-to-all: of one block) in the bandwidth limit: the greatest `chunks / (k · capacity)`
/// of any link. O(size of the schedule).
pub fn seconds_per_byte(topology: &Topology, shape: &Shape) -> Fraction {
    let slice = |range: &Range<u32>| range.start as usize..range.end as usize;
    match shape {
        Shape::Forest(forest) => seconds_per_byte_of_forest(topology, forest),
        Shape::Steps(steps) => {
            let mut loads = RouteLoads::of(&steps.routes);
            steps.sends.iter().for_each(|send| loads.add(&steps.carriers[slice(&send.carriers)]));
            loads.busiest(topology, steps.chunks_per_share)
        }
        Shape::Flow(flow) => {
            let mut loads = RouteLoads::of(&flow.routes);
            for path in &flow.paths {
                let chunk_count = path.chunk_count;
                flow.hops[slice(&path.hops)].iter().for_each(|&route| loads.add(&[Carrier { route, chunk_count }]));
            }
            loads.busiest(topology, flow.chunks_per_share)
        }
        // What moves nothing that is known of takes longer than anything.
        Shape::Stages(stages) => seconds_per_byte_of_stages(topology, stages).unwrap_or(NEVER),
        Shape::Orbits(orbits) => seconds_per_byte_of_orbits(topology, orbits).unwrap_or(NEVER),
    }
}

/// Longer than any plan takes.
const NEVER: Fraction = Fraction { numerator: u128::MAX, denominator: 1 };

/// The same of an exchange in stages; `None` for what the rule does not bring to all ranks.
pub(crate) fn seconds_per_byte_of_stages(topology: &Topology, stages: &Stages) -> Option<Fraction> {
    let collective = Collective::new(stages.kind()?, None, topology.rank_count()).ok()?;
    let loads = chunks_of_stages(topology, collective, stages).ok()?;
    Some(busiest(topology, loads.into_iter(), stages.chunks_per_share))
}

/// The same of a forest.
pub(crate) fn seconds_per_byte_of_forest(topology: &Topology, forest: &Forest) -> Fraction {
    let mut loads = RouteLoads::of(&forest.routes);
    for tree in forest.phases.iter().flat_map(|phase| &phase.trees) {
        forest.hops_of(tree).iter().for_each(|hop| loads.add(forest.carriers_of(hop)));
    }
    loads.busiest(topology, forest.chunks_per_share)
}

/// The same of an orbit forest.
pub(crate) fn seconds_per_byte_of_orbits(topology: &Topology, orbits: &Orbits) -> Option<Fraction> {
    let collective = Collective::new(orbits.kind()?, None, topology.rank_count()).ok()?;
    let loads = chunks_of_orbits(topology, collective, orbits).ok()?;
    Some(busiest(topology, loads.into_iter(), orbits.chunks_per_share))
}

/// Chunks on each route.
struct RouteLoads<'a> {
    routes: &'a RouteTable,
    chunks: Vec<u128>,
}

impl<'a> RouteLoads<'a> {
    fn of(routes: &'a RouteTable) -> Self {
        Self { routes, chunks: vec![0; routes.len()] }
    }

    fn add(&mut self, carriers: &[Carrier]) {
        carriers.iter().for_each(|carrier| self.chunks[carrier.route.index()] += u128::from(carrier.chunk_count));
    }

    fn busiest(&self, topology: &Topology, chunks_per_share: u64) -> Fraction {
        let mut loads = vec![0_u128; topology.links().len()];
        for (links, load) in self.routes.iter().zip(&self.chunks) {
            links.iter().for_each(|link| loads[link.index()] += load);
        }
        busiest(topology, loads.into_iter(), chunks_per_share)
    }
}

/// The time of the busiest link, given the chunks on each.
fn busiest(topology: &Topology, loads: impl Iterator<Item = u128>, chunks_per_share: u64) -> Fraction {
    // Not in lowest terms, which take longer to find than to compare.
    let time = |(numerator, capacity)| Fraction { numerator, denominator: u128::from(capacity) };
    let capacities = topology.links().iter().map(|link| link.capacity.bytes_per_sec());
    let most = loads.zip(capacities).map(time).max().unwrap_or(Fraction::ZERO);
    Fraction::new(most.numerator, most.denominator * u128::from(chunks_per_share))
        .expect("neither capacities nor chunks per share are zero")
}
