//! The boxes whose links inside are too few for all trees to enter them once, and how demand is divided for them.

use std::collections::{BTreeMap, BTreeSet};

use num_bigint::BigInt;
use num_integer::Integer;
use num_rational::BigRational;
use num_traits::{One, ToPrimitive, Zero};
use petgraph::unionfind::UnionFind;

use super::candidates::Candidate;
use super::need::Need;
use super::ranges::{common_values, range, scaled_to_parts};
use crate::forest::clusters::Cluster;
use crate::forest::network::Network;

/// Parts of the demand: trees of more are many, and a search for few is about as fast.
const PARTS_MAX: usize = 2;

/// Equal parts of which some are tried before odd numbers.
const EQUAL_PARTS_MAX: u64 = 32;

/// Numbers are kept below this power of two, so that sums of them fit.
const BITS_MAX: u32 = 100;

/// One of the boxes.
pub(super) struct ScantBox {
    /// By unit of it.
    pub(super) needs: Vec<Need>,
    /// How many of all trees enter it once.
    pub(super) once: i128,
}

/// Nodes that are connected without links inside scant boxes.
pub(super) struct Component {
    pub(super) nodes: Vec<u32>,
    /// Those units that are in scant boxes: box, place in the box.
    pub(super) units: Vec<(usize, usize)>,
}

/// All of the boxes.
pub(super) struct ScantBoxes {
    /// By node.
    box_of: Vec<Option<usize>>,
    pub(super) boxes: Vec<ScantBox>,
    /// If there are several.
    pub(super) components: Vec<Component>,
    /// By node: the unit it is in, itself if it is in no other.
    pub(super) unit_of: Vec<u32>,
    /// By unit in a box.
    pub(super) links_into: Vec<Vec<usize>>,
}

/// The network in numbers that can be divided.
pub(super) struct Division {
    /// By what everything was multiplied.
    pub(super) scale: u64,
    /// By link.
    pub(super) capacities: Vec<i128>,
    /// By node.
    pub(super) demands: Vec<i128>,
    /// Of the parts one after the other: trees of all up to that.
    pub(super) ends: Vec<i128>,
}

impl ScantBoxes {
    /// Those of a candidate, and how to divide demand for them; `None` if there are none, or demand can not be divided so
    /// that it suits all. Tight clusters that are part of a box are entered once, like ranks.
    pub(super) fn of(
        network: &Network<'_>,
        (capacities, demands): (&[i128], &[i128]),
        (candidate, clusters): (Candidate, &[Cluster]),
        scale_max: u64,
    ) -> Option<(Self, Division)> {
        let total: i128 = demands.iter().sum();
        let count = candidate.iter().flatten().max().map_or(0, |&last| last + 1);
        let mut found = Self {
            boxes: (0..count).map(|_| ScantBox { needs: Vec::new(), once: total }).collect(),
            unit_of: units(network, &candidate, clusters),
            box_of: candidate,
            components: Vec::new(),
            links_into: Vec::new(),
        };
        found.measure(network, capacities, demands);
        found.keep_scant(total);
        if found.boxes.is_empty() {
            return None;
        }
        found.find_components(network, capacities);
        let (scale, ends) = found.choose(demands, total, scale_max)?;
        let most = capacities.iter().chain(demands).try_fold(0_i128, |sum, value| sum.checked_add(*value))?;
        most.checked_mul(scale.into()).filter(|&most| most < 1 << BITS_MAX)?;
        let times = |values: &[i128]| values.iter().map(|value| value * i128::from(scale)).collect();
        for need in found.boxes.iter_mut().flat_map(|scant| &mut scant.needs) {
            need.inner *= i128::from(scale);
            need.outer *= i128::from(scale);
            need.wanted *= i128::from(scale);
        }
        let division = Division { scale, capacities: times(capacities), demands: times(demands), ends };
        Some((found, division))
    }

    /// The network for trees up to `end` of all. Boxes that these enter at every unit are none; what is left are units.
    pub(super) fn named<'a>(&self, network: &Network<'a>, end: i128) -> Network<'a> {
        let mut named = network.clone();
        for (name, (number, &unit)) in named.boxes.iter_mut().zip(self.box_of.iter().zip(&self.unit_of)) {
            if number.is_some_and(|number| self.boxes[number].once < end) {
                // Far from the names of boxes.
                *name = u32::MAX.checked_sub(unit);
            }
        }
        named
    }

    /// Sums over the nodes of each unit.
    pub(super) fn by_unit(&self, values: &[i128]) -> Vec<i128> {
        let mut sums = vec![0; values.len()];
        for (&unit, value) in self.unit_of.iter().zip(values) {
            sums[unit as usize] += value;
        }
        sums
    }

    /// Whether a link leads from one node to another of the same box.
    pub(super) fn are_together(&self, from: u32, to: u32) -> bool {
        let number = |node: u32| self.box_of[self.unit_of[node as usize] as usize];
        number(from).is_some() && number(from) == number(to)
    }

    /// Whether a node is in a unit of a box, rather than a switch or in no box.
    pub(super) fn is_in_unit(&self, node: u32) -> bool {
        !self.links_into[self.unit_of[node as usize] as usize].is_empty()
    }

    pub(super) fn need(&self, number: usize, place: usize) -> &Need {
        &self.boxes[number].needs[place]
    }

    /// Adds up what each unit wants, and what leads into it.
    fn measure(&mut self, network: &Network<'_>, capacities: &[i128], demands: &[i128]) {
        let mut sums = vec![(0, 0); network.node_count as usize];
        self.links_into = vec![Vec::new(); network.node_count as usize];
        for (place, link) in network.links.iter().enumerate() {
            let unit = self.unit_of[link.to as usize];
            let is_in_box = unit < network.terminal_count && self.box_of[unit as usize].is_some();
            if is_in_box && self.unit_of[link.from as usize] != unit {
                let (inner, outer) = &mut sums[unit as usize];
                *(if self.are_together(link.from, link.to) { inner } else { outer }) += capacities[place];
                self.links_into[unit as usize].push(place);
            }
        }
        let (total, demands_of) = (demands.iter().sum::<i128>(), self.by_unit(demands));
        self.boxes.iter_mut().for_each(|scant| scant.needs.clear());
        for unit in 0..network.terminal_count {
            if let Some(number) = self.box_of[unit as usize].filter(|_| self.unit_of[unit as usize] == unit) {
                let (inner, outer) = sums[unit as usize];
                let wanted = total - demands_of[unit as usize];
                self.boxes[number].needs.push(Need { unit, wanted, inner, outer });
            }
        }
    }

    /// Forgets boxes that all trees may enter once: inside, each takes a link less than the box has units.
    fn keep_scant(&mut self, total: i128) {
        let mut numbers = Vec::with_capacity(self.boxes.len());
        let mut kept = 0;
        self.boxes.retain(|scant| {
            let inner: i128 = scant.needs.iter().map(|need| need.inner).sum();
            let is_scant = inner < (scant.needs.len() as i128 - 1) * total;
            numbers.push(is_scant.then_some(kept));
            kept += usize::from(is_scant);
            is_scant
        });
        self.box_of.iter_mut().for_each(|place| *place = place.and_then(|number| numbers[number]));
    }

    fn find_components(&mut self, network: &Network<'_>, capacities: &[i128]) {
        let mut joined = UnionFind::<u32>::new(network.node_count as usize);
        for (link, &capacity) in network.links.iter().zip(capacities) {
            let is_in_unit = self.unit_of[link.from as usize] == self.unit_of[link.to as usize];
            if capacity > 0 && (is_in_unit || !self.are_together(link.from, link.to)) {
                joined.union(link.from, link.to);
            }
        }
        let mut components: BTreeMap<u32, Component> = BTreeMap::new();
        let component_of = joined.into_labeling();
        for (node, &component) in (0_u32..).zip(&component_of) {
            let new = || Component { nodes: Vec::new(), units: Vec::new() };
            components.entry(component).or_insert_with(new).nodes.push(node);
        }
        for (number, scant) in self.boxes.iter().enumerate() {
            for (place, need) in scant.needs.iter().enumerate() {
                if let Some(component) = components.get_mut(&component_of[need.unit as usize]) {
                    component.units.push((number, place));
                }
            }
        }
        components.retain(|_, component| component.nodes[0] < network.terminal_count);
        if components.len() > 1 {
            self.components = components.into_values().collect();
        }
    }

    /// By unit of each box: what trees that enter at every unit need of the links inside, of all trees. Where what is outside
    /// falls into components, each needs what its units want from others. `None` if there is not enough.
    fn across(&self, demands: &[i128], total: i128) -> Option<Vec<Vec<BigRational>>> {
        let nothing = |scant: &ScantBox| vec![BigRational::zero(); scant.needs.len()];
        let mut across: Vec<Vec<BigRational>> = self.boxes.iter().map(nothing).collect();
        for component in &self.components {
            let own: i128 = component.nodes.iter().map(|&node| demands[node as usize]).sum();
            let inner: i128 = component.units.iter().map(|&(number, place)| self.need(number, place).inner).sum();
            if inner <= total - own {
                return None;
            }
            for &(number, place) in &component.units {
                across[number][place] =
                    BigRational::new((total - own).into(), inner.into()) * BigInt::from(self.need(number, place).inner);
            }
        }
        Some(across)
    }

    /// By what to multiply all numbers so that those parts of all trees are whole; if that is not too much, also those of
    /// each root and what connects boxes, so that what is equal stays equal. `None` if it is too much.
    fn scale(
        &self,
        values: &[BigRational],
        demands: &[i128],
        across: &[Vec<BigRational>],
        total: &BigInt,
        scale_max: u64,
    ) -> Option<u64> {
        let different: BTreeSet<i128> = demands.iter().copied().collect();
        let across: BTreeSet<&BigRational> = across.iter().flatten().collect();
        let of_all = denominator(values.iter().map(|value| value * total));
        let of_roots = denominator(
            values.iter().flat_map(|value| different.iter().map(move |&demand| value * BigInt::from(demand))),
        );
        let of_links = denominator(
            values.iter().flat_map(|value| across.iter().map(move |across| (BigRational::one() - value) * *across)),
        );
        let fits = |scale: BigInt| scale.to_u64().filter(|&scale| scale <= scale_max);
        let even = of_all.lcm(&of_roots);
        fits(even.lcm(&of_links)).or_else(|| fits(even)).or_else(|| fits(of_all))
    }

    /// Chooses how many trees enter each box once, few different numbers. Returns by what to multiply all others for that, and
    /// the ends of parts.
    fn choose(&mut self, demands: &[i128], total: i128, scale_max: u64) -> Option<(u64, Vec<i128>)> {
        let (across, demands_of) = (self.across(demands, total)?, self.by_unit(demands));
        let ranges = self.boxes.iter().zip(&across).map(|(scant, across)| {
            let own: i128 = scant.needs.iter().map(|need| demands_of[need.unit as usize]).sum();
            range(&scant.needs, across, total - own)
        });
        let total = BigInt::from(total);
        let ranges: Vec<(BigRational, BigRational)> = ranges.collect();
        if ranges.iter().any(|(from, to)| from > to) {
            return None;
        }
        // Halves or thirds divide links without rests.
        let few = (1..=EQUAL_PARTS_MAX.min(scale_max)).find_map(|count| {
            let values = common_values(&scaled_to_parts(&ranges, count)?);
            Some((count, values))
        });
        let (scale, values) = match few {
            Some(few) => few,
            None => {
                let values = common_values(&ranges);
                (self.scale(&values, demands, &across, &total, scale_max)?, values)
            }
        };
        if values.len() >= PARTS_MAX {
            return None;
        }
        let all = total * scale;
        for (scant, (from, _)) in self.boxes.iter_mut().zip(&ranges) {
            let value = values.iter().find(|&value| value >= from)?;
            scant.once = (value * &all).to_integer().to_i128()?;
        }
        let mut ends: Vec<i128> = self.boxes.iter().map(|scant| scant.once).chain(all.to_i128()).collect();
        ends.sort_unstable();
        ends.dedup();
        ends.retain(|&end| end > 0);
        Some((scale, ends))
    }
}

/// By what to multiply numbers so that those shares of them are whole.
fn denominator(values: impl Iterator<Item = BigRational>) -> BigInt {
    values.fold(BigInt::one(), |scale, value| scale.lcm(value.denom()))
}

/// By node: the lowest node of the largest tight cluster around it that is part of a box, itself where there is none.
fn units(network: &Network<'_>, candidate: &Candidate, clusters: &[Cluster]) -> Vec<u32> {
    let mut sizes: BTreeMap<usize, usize> = BTreeMap::new();
    for number in candidate[..network.terminal_count as usize].iter().flatten() {
        *sizes.entry(*number).or_default() += 1;
    }
    let mut unit_of: Vec<u32> = (0..network.node_count).collect();
    // Children come before parents.
    for cluster in clusters {
        let lowest = cluster.nodes[0];
        let number = candidate[lowest as usize];
        let ranks = cluster.nodes.iter().take_while(|&&node| node < network.terminal_count);
        let is_part = number.is_some_and(|number| cluster.rank_count < sizes[&number])
            && ranks.into_iter().all(|&rank| candidate[rank as usize] == number);
        if is_part {
            cluster.nodes.iter().for_each(|&node| unit_of[node as usize] = lowest);
        }
    }
    unit_of
}
