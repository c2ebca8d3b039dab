//! The group of an orbit forest: that its generators are symmetries which commute, and that each symmetry is known by
//! where it moves one root.

use super::error::{GeneratorFault, OrbitsError};
use crate::orbits::{Motion, Orbits};

/// Most ranges whose digits one generator turns: each is looked at for each node.
const TURNS_MAX: usize = 64;
/// Marks a seat that no orbit has.
const NOWHERE: u32 = u32::MAX;

/// A group that moves the root of each orbit to each other seat of it in one way.
///
/// A seat has a *code*: the number of its orbit times the size of the group, and the number of the symmetry that moves
/// the root of the orbit there. Symmetries are numbered by how often each generator is applied.
pub(super) struct Group {
    /// Number of symmetries.
    size: u32,
    orders: Vec<u32>,
    /// By symmetry: how often each generator is applied.
    digits: Vec<u32>,
    /// By generator, by node.
    images: Vec<Vec<u32>>,
    codes: Vec<u32>,
    seats: Vec<u32>,
}

impl Group {
    /// Checks generators on all nodes, and codes all seats from the roots of orbits.
    ///
    /// Commuting generators of orders n₁, n₂, … make at most n₁·n₂·… symmetries. If those move a root to as many seats,
    /// they are all different, and only the identity keeps it where it is. O(nodes · generators²).
    pub(super) fn new(orbits: &Orbits, node_count: usize, roots: &[u32]) -> Result<Self, OrbitsError> {
        let seat_count = orbits.seat_count;
        let mut size = 1_u32;
        for (number, generator) in orbits.generators.iter().enumerate() {
            if generator.order < 2 {
                let fault = GeneratorFault::Order { order: generator.order };
                return Err(OrbitsError::Generator { generator: number, fault });
            }
            let product = size.checked_mul(generator.order).filter(|&product| product <= seat_count);
            size = product.ok_or(OrbitsError::TooManySymmetries { seat_count })?;
        }
        let mut images: Vec<Vec<u32>> = Vec::new();
        for number in 0..orbits.generators.len() {
            let of_all = images_of(orbits, number, node_count);
            let of_all = of_all.map_err(|fault| OrbitsError::Generator { generator: number, fault })?;
            for (first, earlier) in images.iter().enumerate() {
                let differs = |&node: &usize| earlier[of_all[node] as usize] != of_all[earlier[node] as usize];
                if let Some(node) = (0..node_count).find(differs) {
                    let node = u32::try_from(node).unwrap_or(u32::MAX);
                    return Err(OrbitsError::Order { first, second: number, node });
                }
            }
            images.push(of_all);
        }
        let orders: Vec<u32> = orbits.generators.iter().map(|generator| generator.order).collect();
        let digits = digits(&orders, size);
        let mut group =
            Self { size, orders, digits, images, codes: vec![NOWHERE; seat_count as usize], seats: Vec::new() };
        for &root in roots {
            group.code(root)?;
        }
        match group.codes.iter().zip(0..).find(|(code, _)| **code == NOWHERE) {
            Some((_, seat)) => Err(OrbitsError::NoTemplate { seat }),
            None => Ok(group),
        }
    }

    /// Codes the orbit of a root.
    fn code(&mut self, root: u32) -> Result<(), OrbitsError> {
        let first = self.seats.len();
        self.seats.push(root);
        for (images, &order) in self.images.iter().zip(&self.orders) {
            // All that the earlier generators reach, moved by this one again and again.
            let block = self.seats.len() - first;
            for at in first..first + block * (order as usize - 1) {
                let moved = images[self.seats[at] as usize];
                self.seats.push(moved);
            }
        }
        for (&seat, code) in self.seats[first..].iter().zip(first..) {
            let slot = &mut self.codes[seat as usize];
            if *slot != NOWHERE {
                return Err(OrbitsError::NotRegular { root, seat });
            }
            *slot = u32::try_from(code).expect("as many codes as seats");
        }
        Ok(())
    }

    /// Number of symmetries, which is that of the seats of each orbit.
    pub(super) const fn size(&self) -> u32 {
        self.size
    }

    pub(super) fn code_of(&self, seat: u32) -> u32 {
        self.codes[seat as usize]
    }

    pub(super) fn seat_of(&self, code: u32) -> u32 {
        self.seats[code as usize]
    }

    pub(super) const fn orbit_of(&self, code: u32) -> u32 {
        // Most networks have one orbit, and this is asked for each hop.
        if code < self.size { 0 } else { code / self.size }
    }

    /// The images of a node, by generator.
    pub(super) fn images(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        self.images.iter().map(move |images| images[node as usize])
    }

    fn digits_of(&self, code: u32) -> &[u32] {
        let symmetry = if code < self.size { code } else { code % self.size };
        let (at, count) = (symmetry as usize, self.orders.len());
        &self.digits[at * count..(at + 1) * count]
    }

    /// Where the symmetry that moves the first seat of its orbit to `by` moves a seat; codes.
    pub(super) fn forth(&self, code: u32, by: u32) -> u32 {
        let (mut number, mut unit) = (0, 1);
        for ((&own, &more), &order) in self.digits_of(code).iter().zip(self.digits_of(by)).zip(&self.orders) {
            let left = order - more;
            number += unit * if own >= left { own - left } else { own + more };
            unit *= order;
        }
        self.orbit_of(code) * self.size + number
    }

    /// What that symmetry moves to a seat; codes.
    pub(super) fn back(&self, code: u32, by: u32) -> u32 {
        let (mut number, mut unit) = (0, 1);
        for ((&own, &less), &order) in self.digits_of(code).iter().zip(self.digits_of(by)).zip(&self.orders) {
            number += unit * if own >= less { own - less } else { own + (order - less) };
            unit *= order;
        }
        self.orbit_of(code) * self.size + number
    }
}

/// Digits of all numbers of symmetries, the lowest first.
fn digits(orders: &[u32], size: u32) -> Vec<u32> {
    let of_number = |number: u32| {
        orders.iter().scan(number, |rest, &order| {
            let digit = *rest % order;
            *rest /= order;
            Some(digit)
        })
    };
    (0..size).flat_map(of_number).collect()
}

/// Where a generator moves all nodes, if it is a symmetry of the stated order that keeps seats and switches apart.
fn images_of(orbits: &Orbits, number: usize, node_count: usize) -> Result<Vec<u32>, GeneratorFault> {
    let generator = &orbits.generators[number];
    match &generator.motion {
        Motion::Table(table) if table.len() != node_count => {
            return Err(GeneratorFault::Length { found: table.len(), expected: node_count });
        }
        Motion::Turns(turns) if turns.len() > TURNS_MAX => {
            return Err(GeneratorFault::TooManyTurns { found: turns.len(), max: TURNS_MAX });
        }
        _ => {}
    }
    let nodes = 0..u32::try_from(node_count).unwrap_or(u32::MAX);
    let (mut images, mut seen) = (Vec::with_capacity(node_count), vec![false; node_count]);
    for node in nodes.clone() {
        let image = generator.motion.image(node).filter(|image| nodes.contains(image));
        let image = image.ok_or(GeneratorFault::NoNode { node })?;
        if (node < orbits.seat_count) != (image < orbits.seat_count) {
            return Err(GeneratorFault::Kind { node, image });
        }
        if std::mem::replace(&mut seen[image as usize], true) {
            return Err(GeneratorFault::Twice { image });
        }
        images.push(image);
    }
    for node in nodes {
        let (mut at, mut found) = (node, 0_u32);
        while std::mem::replace(&mut seen[at as usize], false) {
            at = images[at as usize];
            found += 1;
        }
        if found > 0 && !generator.order.is_multiple_of(found) {
            return Err(GeneratorFault::Cycle { node, found });
        }
    }
    Ok(images)
}
