//! What a hop over a link costs: more, the longer the link is kept busy already.

use canopy_optimize::Fraction;
use canopy_topology::{LinkIndex, Topology};

use super::growth::Grown;

/// Most powers of two.
const EXPONENT_MAX: u128 = 40;
/// Time for a tree over the thickest link.
const TIME_UNIT: u128 = 1 << 12;
/// Longest time for a tree, which keeps prices far from 128 bits.
const TIME_MAX: u128 = 1 << 40;

/// Loads and prices of all links.
pub(super) struct Prices {
    /// Trees on each link.
    loads: Vec<u64>,
    /// Time that a tree takes on it.
    times: Vec<u128>,
    /// What the busiest link may take, in the same unit.
    limit: u128,
    /// The same at the end of the first round, as far as can be told.
    limit_last: u128,
    prices: Vec<u128>,
    /// By how many powers of two a link is dearer once it is as busy as the busiest may be.
    pub(super) steepness: u128,
}

impl Prices {
    /// Of links without load. `count` trees for each of `units` of weight are expected: those have to enter every rank.
    pub(super) fn new(topology: &Topology, count: u64, units: u64, steepness: u128) -> Self {
        let links = topology.links();
        let widest = links.iter().map(|link| u128::from(link.capacity.bytes_per_sec())).max().unwrap_or(1);
        let time = |capacity: u128| (widest * TIME_UNIT / capacity.max(1)).clamp(TIME_UNIT, TIME_MAX);
        let mut entering = vec![0_u128; topology.rank_count() as usize];
        for link in links {
            if let Some(sum) = entering.get_mut(link.to.index()) {
                *sum += u128::from(link.capacity.bytes_per_sec());
            }
        }
        let scarcest = entering.into_iter().min().unwrap_or(1);
        let trees = u128::from(count).saturating_mul(units.into());
        let limit_last = time(scarcest.min(widest)).saturating_mul(trees).min(1 << 100);
        let times = links.iter().map(|link| time(link.capacity.bytes_per_sec().into())).collect();
        Self {
            loads: vec![0; links.len()],
            times,
            limit: limit_last,
            limit_last,
            prices: vec![0; links.len()],
            steepness,
        }
    }

    /// So many of all trees are there once the next one is: no link need be busier than in proportion.
    pub(super) fn expect_share(&mut self, done: u64, total: u64) {
        let share = done.max(total / 4).max(1);
        self.limit = (self.limit_last / u128::from(total.max(1))).saturating_mul(share.into()).max(1);
    }

    /// All trees are there: the busiest link should become less busy.
    pub(super) fn expect_less(&mut self) {
        let busiest = (0..self.loads.len()).map(|link| u128::from(self.loads[link]).saturating_mul(self.times[link]));
        self.limit = busiest.max().unwrap_or(1).max(1);
    }

    /// Prices of a tree that stands for so many.
    pub(super) fn set_weight(&mut self, weight: u64) {
        for link in 0..self.loads.len() {
            self.prices[link] = self.price_of(link, weight);
        }
    }

    /// What the hop costs.
    pub(super) fn of(&self, link: LinkIndex) -> u128 {
        self.prices[link.index()]
    }

    /// Puts trees on a link.
    pub(super) fn add(&mut self, link: LinkIndex, weight: u64) {
        self.loads[link.index()] += weight;
        self.prices[link.index()] = self.price_of(link.index(), weight);
    }

    /// Takes trees off a link.
    pub(super) fn give_back(&mut self, link: LinkIndex, weight: u64) {
        self.loads[link.index()] -= weight;
        self.prices[link.index()] = self.price_of(link.index(), weight);
    }

    /// Takes a tree off its links.
    pub(super) fn remove(&mut self, tree: &Grown) {
        for link in tree.hops.iter().flat_map(|hop| &hop.links) {
            self.loads[link.index()] -= tree.weight;
        }
    }

    fn price_of(&self, link: usize, weight: u64) -> u128 {
        let time = self.times[link];
        let busy = time.saturating_mul(u128::from(self.loads[link]) + u128::from(weight)).min(1 << 100);
        // In 256ths of a power of two.
        let steps = busy * (self.steepness << 8) / self.limit;
        let (exponent, rest) = ((steps >> 8).min(EXPONENT_MAX), steps & 255);
        (time * (256 + rest)) << exponent >> 8
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
