//! What a hop over a link costs: more, the longer the link is kept busy already.

use canopy_optimize::Fraction;
use canopy_schedule::RouteInterner;
use canopy_topology::{LinkIndex, Topology};

use super::hanging::{Hanging, links};

/// Most powers of two by which a link is dearer than one without load.
const EXPONENT_MAX: u128 = 32;
/// Time for a tree over the thickest link.
const TIME_UNIT: u128 = 1 << 12;
/// Longest time for a tree, which keeps prices within 64 bits.
const TIME_MAX: u128 = 1 << 28;
/// Longest time of a link, which keeps products within 128 bits.
const BUSY_MAX: u128 = 1 << 96;

/// Loads and prices of all links.
pub(super) struct Prices {
    /// Trees on each link.
    loads: Vec<u64>,
    /// Time that a tree takes on it.
    times: Vec<u128>,
    /// Time that the busiest link takes, and that it takes at least.
    limit: u128,
    least_limit: u128,
    prices: Vec<u64>,
    /// By link from a rank to a switch: the switch.
    entered: Vec<Option<u32>>,
    entering: Vec<(LinkIndex, u32)>,
    /// By node: no link from a rank to it has a lower price, if it is a switch.
    floors: Vec<u64>,
    /// Trees that are to be added at once.
    weight: u64,
    /// By how many powers of two the busiest link is dearer than one without load, but for [`EXPONENT_MAX`].
    steepness: u128,
}

impl Prices {
    /// Of links without load.
    pub(super) fn new(topology: &Topology) -> Self {
        let links = topology.links();
        let widest = links.iter().map(|link| u128::from(link.capacity.bytes_per_sec())).max().unwrap_or(1);
        let time = |capacity: u64| (widest * TIME_UNIT / u128::from(capacity).max(1)).clamp(TIME_UNIT, TIME_MAX);
        let times = links.iter().map(|link| time(link.capacity.bytes_per_sec())).collect();
        let count = links.len();
        let entered = |link: &canopy_topology::Link| {
            let leads_in = topology.rank_of(link.from).is_some() && topology.rank_of(link.to).is_none();
            leads_in.then(|| link.to.number())
        };
        let entered: Vec<Option<u32>> = links.iter().map(entered).collect();
        let indices = (0_u32..).map(LinkIndex::new).zip(&entered);
        Self {
            loads: vec![0; count],
            times,
            limit: 1,
            least_limit: 1,
            prices: vec![0; count],
            entering: indices.filter_map(|(link, switch)| Some((link, (*switch)?))).collect(),
            entered,
            floors: vec![0; topology.nodes().len()],
            weight: 1,
            steepness: 1,
        }
    }

    /// Sets the loads that links may have at the least time there is any use for, from which on a link counts as busy.
    pub(super) fn expect(&mut self, allowed: &[u64]) {
        self.least_limit = busiest(allowed, &self.times);
    }

    /// Sets all prices anew: for so many trees at once, where the busiest link is dearer by `steepness` powers of two.
    pub(super) fn set(&mut self, weight: u64, steepness: u128) {
        (self.weight, self.steepness) = (weight, steepness);
        self.limit = busiest(&self.loads, &self.times).max(self.least_limit);
        for link in 0..self.loads.len() {
            self.prices[link] = self.price_of(link);
        }
        self.refresh_floors();
    }

    /// What a hop over these links costs.
    pub(super) fn sum(&self, links: &[LinkIndex]) -> u64 {
        links.iter().fold(0, |sum, &link| sum.saturating_add(self.of(link)))
    }

    /// What the hop costs.
    pub(super) fn of(&self, link: LinkIndex) -> u64 {
        self.prices[link.index()]
    }

    /// Looks up the lowest prices again, which are too low once links have become dearer. O(links from ranks to
    /// switches).
    pub(super) fn refresh_floors(&mut self) {
        self.floors.fill(u64::MAX);
        for &(link, switch) in &self.entering {
            let floor = &mut self.floors[switch as usize];
            *floor = self.prices[link.index()].min(*floor);
        }
    }

    /// A price that no link from a rank to a switch is below.
    pub(super) fn floor(&self, switch: usize) -> u64 {
        self.floors[switch]
    }

    /// Trees on a link.
    pub(super) fn load(&self, link: LinkIndex) -> u64 {
        self.loads[link.index()]
    }

    /// Puts trees on a link.
    pub(super) fn add(&mut self, link: LinkIndex, weight: u64) {
        self.loads[link.index()] += weight;
        self.prices[link.index()] = self.price_of(link.index());
    }

    /// Takes trees off a link.
    pub(super) fn give_back(&mut self, link: LinkIndex, weight: u64) {
        self.loads[link.index()] -= weight;
        let price = self.price_of(link.index());
        self.prices[link.index()] = price;
        if let Some(switch) = self.entered[link.index()] {
            let floor = &mut self.floors[switch as usize];
            *floor = price.min(*floor);
        }
    }

    /// Takes a tree off its links.
    pub(super) fn remove(&mut self, tree: &Hanging, routes: &RouteInterner) {
        for link in tree.hops.iter().flat_map(|hop| links(routes, hop)) {
            self.give_back(*link, tree.weight);
        }
    }

    /// Puts these trees on links, and no others. Prices stay as they are.
    pub(super) fn load_all(&mut self, trees: &[Hanging], routes: &RouteInterner) {
        self.loads.fill(0);
        for tree in trees {
            for link in tree.hops.iter().flat_map(|hop| links(routes, hop)) {
                self.loads[link.index()] += tree.weight;
            }
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "28 bits of time and 32 of the exponent")]
    fn price_of(&self, link: usize) -> u64 {
        let time = self.times[link];
        let busy = time.saturating_mul(u128::from(self.loads[link]) + u128::from(self.weight)).min(BUSY_MAX);
        // In 256ths of a power of two.
        let steps = busy * (self.steepness << 8) / self.limit;
        let steps = steps.saturating_sub(self.steepness.saturating_sub(EXPONENT_MAX) << 8).min(EXPONENT_MAX << 8);
        let (exponent, rest) = (steps >> 8, steps & 255);
        ((time * (256 + rest)) << exponent >> 12) as u64
    }

    /// Time per byte of a share that the busiest link takes, exactly, where a share is `count` trees.
    pub(super) fn time(&self, topology: &Topology, count: u64) -> Fraction {
        let time = |(link, &load): (&canopy_topology::Link, &u64)| {
            let trees_per_sec = u128::from(link.capacity.bytes_per_sec()) * u128::from(count);
            Fraction::new(load.into(), trees_per_sec).expect("neither capacities nor numbers of trees are zero")
        };
        topology.links().iter().zip(&self.loads).map(time).max().unwrap_or(Fraction::ZERO)
    }
}

/// Time of the busiest link, at least one.
fn busiest(loads: &[u64], times: &[u128]) -> u128 {
    let busy = loads.iter().zip(times).map(|(&load, &time)| u128::from(load).saturating_mul(time));
    busy.max().unwrap_or(1).clamp(1, BUSY_MAX)
}
