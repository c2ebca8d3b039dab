//! What the rings of an order load.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::Stopped;
use crate::fabric::{Fabric, WHOLE, ratio};

/// What an order loads: less is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost {
    /// Flow over the busiest link by its capacity, in parts of 2⁶⁴ of a second per byte.
    pub busiest: u128,
    /// Links that all flows pass, the parts of a divided one together.
    pub hops: u64,
}

impl Cost {
    /// How long a ring takes with this order, beside one with another.
    pub fn times(&self, other: &Self) -> f64 {
        self.busiest as f64 / other.busiest.max(1) as f64
    }
}

/// Pairs whose parts are remembered at most: some hundred bytes each.
const REMEMBERED_MAX: usize = 1 << 15;

/// Links and their parts of a flow.
pub(crate) type Parts = Rc<Vec<(usize, u64)>>;

/// Flows between machines of a fabric.
pub(crate) struct Loads<'a> {
    pub(crate) fabric: &'a Fabric,
    known: BTreeMap<(usize, usize), Parts>,
}

impl<'a> Loads<'a> {
    pub(crate) const fn new(fabric: &'a Fabric) -> Self {
        Self { fabric, known: BTreeMap::new() }
    }

    /// How the flow from one machine to another divides.
    pub(crate) fn parts(&mut self, from: usize, to: usize) -> Parts {
        if let Some(parts) = self.known.get(&(from, to)) {
            return Rc::clone(parts);
        }
        let parts = Rc::new(self.fabric.divided(from, &self.fabric.distances_to(to)));
        if self.known.len() < REMEMBERED_MAX {
            self.known.insert((from, to), Rc::clone(&parts));
        }
        parts
    }

    /// What a ring in this order loads.
    pub(crate) fn cost(&mut self, order: &[usize], stop: &dyn Fn() -> bool) -> Result<Cost, Stopped> {
        let mut loads = vec![0_u64; self.fabric.edges.len()];
        let mut hops = 0;
        for (place, &from) in order.iter().enumerate() {
            if stop() {
                return Err(Stopped);
            }
            let to = order[(place + 1) % order.len()];
            for &(edge, part) in self.parts(from, to).iter() {
                loads[edge] += part;
                hops += part;
            }
        }
        Ok(self.of(&loads, hops))
    }

    /// The cost of such loads.
    pub(crate) fn of(&self, loads: &[u64], hops: u64) -> Cost {
        let busiest = loads.iter().zip(&self.fabric.edges).map(|(&load, edge)| ratio(load, edge.capacity.into())).max();
        Cost { busiest: busiest.unwrap_or(0), hops: hops / WHOLE }
    }
}
