//! Links shared fairly: rates are max-min fair and change whenever a message joins or leaves.
//!
//! All messages on one route have the same rate per unit of weight, so a route is served as one: `served` grows at that
//! rate, and a message has left when as much was served as when it joined plus its bytes by its weight. An event so costs
//! a heap operation, and shares are computed over routes, not messages; only those are touched that share a link, through
//! others if need be, with the route that changed.
//!
//! **Rounding.** Served amounts count 2⁻³² of a byte per second times a picosecond, rates 2⁻³² of a byte per second. A rate
//! is rounded up and a time is rounded up to a picosecond, so a message neither loses a byte nor takes a picosecond more
//! than its exact share allows where that is a whole number; what a rate gains is below a byte in a century for each unit of weight.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use canopy_schedule::TransferGraph;
use canopy_topology::Topology;

use crate::limit::PS_PER_SEC;
use crate::workload::number_of;

/// Bits behind the point of a rate.
const FRACTION_BITS: u32 = 32;

/// Messages on the way, route by route.
#[derive(Debug)]
pub(crate) struct Fair<'a> {
    graph: &'a TransferGraph,
    routes: Vec<Route>,
    links: Vec<LinkState>,
    /// When a route's first message leaves, if nothing changes: time, route, and the version of the route it is true for.
    leaving: BinaryHeap<Reverse<(u64, u32, u32)>>,
    /// Routes whose messages changed since shares were computed.
    changed: Vec<u32>,
    /// Work done on shares.
    pub(crate) work: u64,
    scratch: Scratch,
}

/// The messages on one route.
#[derive(Debug, Default)]
struct Route {
    /// By what must have been served when they leave.
    messages: BinaryHeap<Reverse<(u128, u32)>>,
    /// Sum of their weights.
    weight: u64,
    /// Served to each unit of weight since the route was idle.
    served: u128,
    /// When `served` was brought up to date.
    at: u64,
    /// Rate of each unit of weight.
    rate: u128,
    /// The link that sets the rate.
    bottleneck: u32,
    /// When the first message leaves at this rate.
    leaves: u64,
    version: u32,
}

#[derive(Debug)]
struct LinkState {
    /// In units of a rate.
    capacity: u128,
    /// Routes over it that have messages.
    routes: BTreeSet<u32>,
    /// Since when it has any.
    busy_since: u64,
    busy: u64,
    /// While shares are computed: what is left of the capacity, and for how much weight.
    left: u128,
    weight: u128,
}

/// Buffers of the computing of shares.
#[derive(Debug, Default)]
struct Scratch {
    routes: Vec<u32>,
    links: Vec<u32>,
    route_seen: Vec<bool>,
    link_seen: Vec<bool>,
    is_fixed: Vec<bool>,
}

impl<'a> Fair<'a> {
    /// An idle network.
    pub(crate) fn new(topology: &Topology, graph: &'a TransferGraph) -> Self {
        let link = |link: &canopy_topology::Link| LinkState {
            capacity: u128::from(link.capacity.bytes_per_sec()) << FRACTION_BITS,
            routes: BTreeSet::new(),
            busy_since: 0,
            busy: 0,
            left: 0,
            weight: 0,
        };
        let links: Vec<LinkState> = topology.links().iter().map(link).collect();
        let route_count = graph.routes.len();
        let scratch = Scratch {
            route_seen: vec![false; route_count],
            link_seen: vec![false; links.len()],
            is_fixed: vec![false; route_count],
            ..Scratch::default()
        };
        let routes = (0..route_count).map(|_| Route::default()).collect();
        Self { graph, routes, links, leaving: BinaryHeap::new(), changed: Vec::new(), work: 0, scratch }
    }

    /// A message of at least one byte begins to be sent. O(log messages + links of the route · log routes).
    pub(crate) fn join(&mut self, time: u64, message: u32, number: u32, bytes: u64, weight: u64) {
        let route = &mut self.routes[number as usize];
        if route.weight == 0 {
            (route.served, route.rate) = (0, 0);
            for link in links_of(self.graph, number) {
                let link = &mut self.links[link];
                if link.routes.is_empty() {
                    link.busy_since = time;
                }
                link.routes.insert(number);
            }
        }
        route.advance(time);
        let amount = (u128::from(bytes) * u128::from(PS_PER_SEC)) << FRACTION_BITS;
        route.messages.push(Reverse((route.served + amount / u128::from(weight), message)));
        route.weight += weight;
        self.changed.push(number);
    }

    /// When the next message leaves, once shares are [settled](Self::settle).
    pub(crate) fn next_time(&mut self) -> Option<u64> {
        while let Some(&Reverse((time, route, version))) = self.leaving.peek() {
            if self.routes[route as usize].version == version {
                return Some(time);
            }
            self.leaving.pop();
        }
        None
    }

    /// Takes out the messages that leave now, with the link that set their rate.
    pub(crate) fn leave(&mut self, time: u64, weight_of: impl Fn(u32) -> u64, left: &mut Vec<(u32, u32)>) {
        while self.next_time() == Some(time) {
            let Some(Reverse((_, number, _))) = self.leaving.pop() else { return };
            let route = &mut self.routes[number as usize];
            route.advance(time);
            while let Some(&Reverse((amount, message))) = route.messages.peek()
                && amount <= route.served
            {
                route.messages.pop();
                route.weight -= weight_of(message);
                left.push((message, route.bottleneck));
            }
            route.version += 1;
            route.leaves = 0;
            if route.weight == 0 {
                for link in links_of(self.graph, number) {
                    let link = &mut self.links[link];
                    // A route that takes a link twice leaves it once.
                    if link.routes.remove(&number) && link.routes.is_empty() {
                        link.busy += time - link.busy_since;
                    }
                }
            }
            self.changed.push(number);
        }
    }

    /// Time for which each link had a message on it.
    pub(crate) fn busy(&self) -> impl Iterator<Item = u64> {
        self.links.iter().map(|link| link.busy)
    }

    /// Computes the rates of all routes that are connected to a changed one by links in use.
    ///
    /// Max-min fairness by filling: of all links, that with the least capacity left for a unit of weight sets the rate of
    /// all routes over it that have none yet; what they take is taken from their other links, and so on. O(routes · links
    /// of a route · log links).
    pub(crate) fn settle(&mut self, time: u64) {
        if self.changed.is_empty() {
            return;
        }
        self.collect();
        let Self { graph, routes, links, scratch, .. } = self;
        for &number in &scratch.routes {
            let route = &mut routes[number as usize];
            route.advance(time);
            for link in links_of(graph, number) {
                links[link].weight += u128::from(route.weight);
            }
        }
        let mut fullest: BinaryHeap<Reverse<(u128, u32)>> = scratch
            .links
            .iter()
            .filter(|&&link| links[link as usize].weight > 0)
            .map(|&link| Reverse((links[link as usize].share(), link)))
            .collect();
        let mut level = 0;
        while let Some(Reverse((share, number))) = fullest.pop() {
            let link = &links[number as usize];
            if link.weight == 0 {
                continue;
            }
            // Exactly, shares only grow as others are served; rounding must not make them shrink.
            let current = link.share().max(level);
            if current > share {
                fullest.push(Reverse((current, number)));
                continue;
            }
            level = current;
            let over: Vec<u32> = link.routes.iter().copied().filter(|&of| !scratch.is_fixed[of as usize]).collect();
            for of in over {
                scratch.is_fixed[of as usize] = true;
                let route = &mut routes[of as usize];
                (route.rate, route.bottleneck) = (level, number);
                for link in links_of(graph, of) {
                    let link = &mut links[link];
                    link.weight -= u128::from(route.weight);
                    link.left = link.left.saturating_sub(level.saturating_mul(route.weight.into()));
                }
                self.work += 1;
            }
        }
        self.announce();
    }

    /// Finds the routes and links to be looked at.
    fn collect(&mut self) {
        let Self { graph, links, scratch, changed, .. } = self;
        scratch.routes.clear();
        scratch.links.clear();
        for number in changed.drain(..) {
            scratch.see(graph, links, number);
        }
        let mut next = 0;
        while let Some(&link) = scratch.links.get(next) {
            next += 1;
            let over: Vec<u32> = links[link as usize].routes.iter().copied().collect();
            self.work += over.len() as u64;
            for number in over {
                if !std::mem::replace(&mut scratch.route_seen[number as usize], true) {
                    scratch.routes.push(number);
                    scratch.see(graph, links, number);
                }
            }
        }
    }

    /// Says when the routes looked at have a message leave, and clears the marks.
    fn announce(&mut self) {
        let Self { routes, scratch, leaving, .. } = self;
        for &number in &scratch.routes {
            scratch.route_seen[number as usize] = false;
            scratch.is_fixed[number as usize] = false;
            let route = &mut routes[number as usize];
            let Some(&Reverse((amount, _))) = route.messages.peek() else { continue };
            let wait = amount.saturating_sub(route.served).div_ceil(route.rate.max(1));
            let leaves = u64::try_from(wait).map_or(u64::MAX, |wait| route.at.saturating_add(wait));
            if leaves != route.leaves {
                route.leaves = leaves;
                route.version += 1;
                leaving.push(Reverse((leaves, number, route.version)));
            }
        }
        for &link in &scratch.links {
            scratch.link_seen[link as usize] = false;
        }
    }
}

impl Scratch {
    /// Notes the links of a route, each once and with all of its capacity left.
    fn see(&mut self, graph: &TransferGraph, links: &mut [LinkState], route: u32) {
        for link in links_of(graph, route) {
            if !std::mem::replace(&mut self.link_seen[link], true) {
                (links[link].left, links[link].weight) = (links[link].capacity, 0);
                self.links.push(number_of(link));
            }
        }
    }
}

impl Route {
    /// Brings what was served up to date.
    fn advance(&mut self, time: u64) {
        self.served += self.rate * u128::from(time - self.at);
        self.at = time;
    }
}

impl LinkState {
    /// What is left for a unit of weight, rounded up.
    fn share(&self) -> u128 {
        self.left.div_ceil(self.weight)
    }
}

/// Links of an existing route, as positions.
fn links_of(graph: &TransferGraph, route: u32) -> impl Iterator<Item = usize> {
    let links = graph.routes.get(canopy_schedule::RouteIndex::new(route)).unwrap_or_default();
    links.iter().map(|link| link.index())
}
