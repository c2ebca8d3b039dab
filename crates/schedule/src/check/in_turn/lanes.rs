//! How fast each route is.

use canopy_topology::{LinkIndex, Topology};
use num_integer::Integer as _;

use crate::check::load::takes_longer;
use crate::transfer::TransferGraph;

/// A chunk of one byte takes `shared / capacity` seconds, in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pace {
    pub(super) shared: u64,
    pub(super) capacity: u64,
}

/// Routes by how long they take for one chunk of one byte.
pub(super) struct Lanes {
    /// Different paces, sorted.
    pub(super) paces: Vec<Pace>,
    /// By route, the position of its pace; 0 for one that carries nothing.
    pub(super) pace_of: Vec<usize>,
}

impl Lanes {
    /// The lanes of a graph whose structure is right. O(carriers + links of all routes).
    pub(super) fn of(topology: &Topology, graph: &TransferGraph) -> Self {
        let mut is_used = vec![false; graph.routes.len()];
        for carrier in graph.transfers.iter().flat_map(|transfer| graph.carriers_of(transfer)) {
            is_used[carrier.route.index()] = true;
        }
        let mut lanes = vec![0_u64; topology.links().len()];
        let used = || graph.routes.iter().zip(&is_used).filter(|&(_, &is_used)| is_used).map(|(links, _)| links);
        used().flatten().for_each(|link| lanes[link.index()] += 1);
        let pace_on = |link: &LinkIndex| {
            let shared = lanes[link.index()];
            let capacity = topology.link(*link).capacity.bytes_per_sec();
            let divisor = shared.gcd(&capacity);
            Pace { shared: shared / divisor, capacity: capacity / divisor }
        };
        let slower = |a: Pace, b: Pace| {
            let is_slower = takes_longer((b.shared.into(), b.capacity), (a.shared.into(), a.capacity));
            if is_slower { b } else { a }
        };
        let slowest =
            |(links, &is_used): (&[LinkIndex], &bool)| links.iter().filter(|_| is_used).map(pace_on).reduce(slower);
        let by_route: Vec<Option<Pace>> = graph.routes.iter().zip(&is_used).map(slowest).collect();
        let mut paces: Vec<Pace> = by_route.iter().flatten().copied().collect();
        paces.sort_unstable();
        paces.dedup();
        let place = |pace: &Pace| paces.binary_search(pace).expect("every pace is in the list");
        let pace_of = by_route.iter().map(|pace| pace.as_ref().map_or(0, place)).collect();
        Self { paces, pace_of }
    }
}
