//! The parts of the demand, each with the capacities that are left to it.

use std::ops::Range;

use canopy_optimize::Stop;
use num_bigint::BigInt;
use num_traits::ToPrimitive;

use super::boxes::{Division, ScantBoxes};
use crate::error::SynthesisError;
use crate::forest::ask;
use crate::forest::network::{Network, Way};
use crate::forest::pattern::quotas;

/// A part of the demand, and of the network.
pub(super) struct Part {
    /// By link.
    pub(super) capacities: Vec<i128>,
    /// By node.
    pub(super) demands: Vec<i128>,
}

/// Divides the demand, and of each link the capacity. `None` if the numbers do not work out.
///
/// What needs no exact number is divided in proportion, and rounded so that sums are right.
///
/// O(links · parts).
pub(super) fn parts(
    network: &Network<'_>,
    boxes: &ScantBoxes,
    division: &Division,
    stop: &dyn Stop,
) -> Result<Option<Vec<Part>>, SynthesisError> {
    let mut divider = Divider::new(network, boxes, division);
    for part in 0..division.ends.len() {
        ask(stop)?;
        divider.divide_demand(part);
    }
    if !divider.connect() {
        return Ok(None);
    }
    for number in 0..boxes.boxes.len() {
        ask(stop)?;
        if !divider.divide_box(number) {
            return Ok(None);
        }
    }
    for part in (0..division.ends.len()).rev() {
        ask(stop)?;
        divider.divide_links(part);
    }
    Ok(Some(divider.parts))
}

struct Divider<'a> {
    network: &'a Network<'a>,
    boxes: &'a ScantBoxes,
    division: &'a Division,
    /// By link: what no part has yet.
    capacities: Vec<i128>,
    /// By node.
    demands: Vec<i128>,
    /// By part, then by unit: trees it roots, what leads into it from the rest of its box, and from outside.
    rooted: Vec<Vec<i128>>,
    inner: Vec<Vec<i128>>,
    outer: Vec<Vec<i128>>,
    parts: Vec<Part>,
}

impl<'a> Divider<'a> {
    fn new(network: &'a Network<'a>, boxes: &'a ScantBoxes, division: &'a Division) -> Self {
        let none = vec![vec![0; network.node_count as usize]; division.ends.len()];
        Self {
            network,
            boxes,
            division,
            capacities: division.capacities.clone(),
            demands: division.demands.clone(),
            rooted: Vec::new(),
            inner: none.clone(),
            outer: none,
            parts: Vec::new(),
        }
    }

    /// Trees of a part.
    fn size(&self, part: usize) -> i128 {
        self.division.ends[part] - if part == 0 { 0 } else { self.division.ends[part - 1] }
    }

    fn divide_demand(&mut self, part: usize) {
        let demands = quotas(&self.demands, self.size(part));
        self.demands.iter_mut().zip(&demands).for_each(|(left, &taken)| *left -= taken);
        self.rooted.push(self.boxes.by_unit(&demands));
        self.parts.push(Part { capacities: vec![0; self.capacities.len()], demands });
    }

    /// The parts whose trees enter a box at every rank.
    fn direct_parts(&self, number: usize) -> Range<usize> {
        let once = self.boxes.boxes[number].once;
        self.division.ends.partition_point(|&end| end <= once)..self.division.ends.len()
    }

    /// Gives trees that enter boxes at every rank what connects them inside: into each component outside, what its ranks
    /// need from others, such that boxes keep what trees need that enter once. Says whether there is as much.
    fn connect(&mut self) -> bool {
        let boxes = self.boxes;
        for part in 0..self.division.ends.len() {
            for component in &boxes.components {
                let own: i128 = component.nodes.iter().map(|&node| self.parts[part].demands[node as usize]).sum();
                let inner: Vec<i128> =
                    component.units.iter().map(|&(number, place)| boxes.need(number, place).inner).collect();
                let missing = self.size(part) - own;
                if inner.iter().sum::<i128>() < missing {
                    return false;
                }
                for (&(number, place), taken) in component.units.iter().zip(quotas(&inner, missing)) {
                    if self.direct_parts(number).contains(&part) {
                        self.inner[part][boxes.need(number, place).unit as usize] = taken;
                    }
                }
            }
        }
        self.even_out()
    }

    /// Moves what connects the last part from boxes that have too little left to others, within components.
    fn even_out(&mut self) -> bool {
        let boxes = self.boxes;
        let last = self.division.ends.len() - 1;
        let spare = |inner: &[Vec<i128>], number: usize| {
            let scant = &boxes.boxes[number];
            let needs = scant.needs.iter();
            let left: i128 =
                needs.map(|need| need.inner - inner.iter().map(|part| part[need.unit as usize]).sum::<i128>()).sum();
            left - (scant.needs.len() as i128 - 1) * scant.once
        };
        let mut spares: Vec<i128> = (0..boxes.boxes.len()).map(|number| spare(&self.inner, number)).collect();
        for component in &boxes.components {
            let mut givers: Vec<(usize, usize)> = component.units.clone();
            givers.retain(|&(number, _)| spares[number] > 0);
            for &(number, place) in &component.units {
                let rank = boxes.need(number, place).unit as usize;
                while spares[number] < 0 && self.inner[last][rank] > 0 {
                    let Some(&(giver, there)) = givers.last() else { break };
                    let need = boxes.need(giver, there);
                    let room = need.inner - self.inner.iter().map(|part| part[need.unit as usize]).sum::<i128>();
                    let moved = room.min(spares[giver]).min(-spares[number]).min(self.inner[last][rank]);
                    if moved <= 0 {
                        givers.pop();
                        continue;
                    }
                    self.inner[last][rank] -= moved;
                    self.inner[last][need.unit as usize] += moved;
                    spares[number] += moved;
                    spares[giver] -= moved;
                }
            }
        }
        spares.iter().all(|&spare| spare >= 0)
    }

    /// Divides what leads into the ranks of a box. Says whether there is as much.
    fn divide_box(&mut self, number: usize) -> bool {
        let boxes = self.boxes;
        let scant = &boxes.boxes[number];
        let direct = self.direct_parts(number);
        let mut inner: Vec<i128> = scant.needs.iter().map(|need| need.inner).collect();
        let mut outer: Vec<i128> = scant.needs.iter().map(|need| need.outer).collect();
        for part in direct.clone() {
            for (place, need) in scant.needs.iter().enumerate() {
                let rank = need.unit as usize;
                let wanted = self.size(part) - self.rooted[part][rank];
                self.outer[part][rank] = (wanted - self.inner[part][rank]).max(0);
                outer[place] -= self.outer[part][rank];
                inner[place] -= self.inner[part][rank];
            }
        }
        if inner.iter().chain(&outer).any(|&left| left < 0) {
            return false;
        }
        let mut size_left = scant.once;
        for part in 0..direct.start {
            let size = self.size(part);
            let inner_sum: i128 = inner.iter().sum();
            let inners = quotas(&inner, portion(inner_sum, size, size_left));
            let demands = &self.rooted[part];
            let of_box: i128 = scant.needs.iter().map(|need| demands[need.unit as usize]).sum();
            // Between what a rank must have from outside, and what it may.
            let least: Vec<i128> = scant
                .needs
                .iter()
                .zip(&inners)
                .map(|(need, inner)| (size - demands[need.unit as usize] - inner).max(0))
                .collect();
            let rooms: Vec<i128> = outer
                .iter()
                .zip(&least)
                .map(|(&outer, least)| portion(outer, size, size_left).min(outer) - least)
                .collect();
            let rooms: Vec<i128> = rooms.into_iter().map(|room| room.max(0)).collect();
            let missing = size - of_box - least.iter().sum::<i128>();
            if missing < 0
                || rooms.iter().sum::<i128>() < missing
                || least.iter().zip(&outer).any(|(least, outer)| least > outer)
            {
                return false;
            }
            for (place, (more, need)) in quotas(&rooms, missing).into_iter().zip(&scant.needs).enumerate() {
                let rank = need.unit as usize;
                self.inner[part][rank] = inners[place];
                self.outer[part][rank] = least[place] + more;
                inner[place] -= self.inner[part][rank];
                outer[place] -= self.outer[part][rank];
            }
            size_left -= size;
        }
        true
    }

    /// Gives a part its capacity of each link: into ranks of these boxes what was found, out of them to switches as much as
    /// comes back, elsewhere in proportion.
    fn divide_links(&mut self, part: usize) {
        let size_left = self.division.ends[part];
        let (network, boxes) = (self.network, self.boxes);
        let mut given: Vec<i128> =
            self.capacities.iter().map(|&left| portion(left, self.size(part), size_left).min(left)).collect();
        for need in boxes.boxes.iter().flat_map(|scant| &scant.needs) {
            let unit = need.unit as usize;
            for (is_inner, amount) in [(true, self.inner[part][unit]), (false, self.outer[part][unit])] {
                let is_meant =
                    |&&link: &&usize| boxes.are_together(network.links[link].from, network.links[link].to) == is_inner;
                let into: Vec<usize> = boxes.links_into[unit].iter().filter(is_meant).copied().collect();
                let left: Vec<i128> = into.iter().map(|&link| self.capacities[link]).collect();
                for (&link, amount) in into.iter().zip(quotas(&left, amount)) {
                    given[link] = amount;
                }
            }
        }
        self.mirror(&mut given);
        self.fill_units(part, &mut given);
        self.capacities.iter_mut().zip(&given).for_each(|(left, &taken)| *left -= taken);
        self.parts[part].capacities = given;
    }

    /// Gives ranks of units that have NICs for less than they want more of the links inside their unit.
    fn fill_units(&self, part: usize, given: &mut [i128]) {
        let (network, boxes) = (self.network, self.boxes);
        let mut missing: Vec<i128> = self.parts[part].demands.iter().map(|rooted| self.size(part) - rooted).collect();
        for (link, &capacity) in network.links.iter().zip(&*given) {
            missing[link.to as usize] -= capacity;
        }
        for (place, link) in network.links.iter().enumerate() {
            let is_inside = link.from != link.to
                && boxes.unit_of[link.from as usize] == boxes.unit_of[link.to as usize]
                && link.from.max(link.to) < network.terminal_count;
            if is_inside && missing[link.to as usize] > 0 {
                let more = missing[link.to as usize].min(self.capacities[place] - given[place]);
                given[place] += more;
                missing[link.to as usize] -= more;
            }
        }
    }

    /// Lets as much leave units of boxes for each switch as comes from there, if their links carry it.
    fn mirror(&self, given: &mut [i128]) {
        let (network, boxes) = (self.network, self.boxes);
        let between = |from: u32, to: u32| {
            let place = |end: (u32, u32)| network.links.partition_point(|link| (link.from, link.to) < end);
            place((from, to))..place((from, to + 1))
        };
        let mut next = 0;
        while let Some(&Way { from, to, .. }) = network.links.get(next) {
            let links = between(from, to);
            next = links.end;
            if boxes.is_in_unit(to) || !boxes.is_in_unit(from) {
                continue;
            }
            let left: Vec<i128> = self.capacities[links.clone()].to_vec();
            let amount = given[between(to, from)].iter().sum::<i128>().min(left.iter().sum());
            for (link, amount) in links.zip(quotas(&left, amount)) {
                given[link] = amount;
            }
        }
    }
}

/// `amount · part / whole`, rounded down; all of it where the part is the whole.
fn portion(amount: i128, part: i128, whole: i128) -> i128 {
    if part >= whole {
        return amount;
    }
    match amount.checked_mul(part) {
        Some(product) => num_integer::Integer::div_floor(&product, &whole),
        None => (BigInt::from(amount) * part / whole).to_i128().unwrap_or(amount),
    }
}
