//! What the flows of a job load in some order.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::Stopped;
use crate::fabric::{Fabric, WHOLE, ratio};
use crate::job::{Flow, Job, Kind};

/// What an order loads: less is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost {
    /// Flow over the busiest link by its capacity, in parts of 2⁶⁴ of a second per byte that a rank has; of several kinds
    /// of groups, added up by weight.
    pub busiest: u128,
    /// The same of double binary trees over all machines, where all ranks are one group; else 0.
    pub trees: u128,
    /// Links that all flows pass, the parts of a divided one together.
    pub hops: u64,
}

impl Cost {
    /// How long the job's collectives take with this order, beside one with another; 1 if neither takes any time.
    pub fn times(&self, other: &Self) -> f64 {
        times(self.busiest, other.busiest)
    }
}

/// One load beside another.
pub(crate) fn times(load: u128, other: u128) -> f64 {
    if load == other { 1.0 } else { load as f64 / other.max(1) as f64 }
}

/// Pairs whose parts are remembered at most: some hundred bytes each.
const REMEMBERED_MAX: usize = 1 << 15;

/// Distances that are remembered at most: 2 bytes each.
const DISTANCES_MAX: usize = 1 << 25;

/// Links and their parts of a flow.
pub(crate) type Parts = Rc<Vec<(usize, u64)>>;

/// By node, how far it is from a machine.
pub(crate) type Distances = Rc<Vec<u16>>;

/// Flows between machines of a fabric.
pub(crate) struct Loads<'a> {
    pub(crate) fabric: &'a Fabric,
    job: &'a Job,
    /// Of each kind, then of those that decide between equals; none where they depend on the order of unequal machines.
    flows: Option<Vec<Rc<Vec<Flow>>>>,
    known: BTreeMap<(usize, usize), Parts>,
    distances: BTreeMap<usize, Distances>,
}

impl<'a> Loads<'a> {
    pub(crate) fn new(fabric: &'a Fabric, job: &'a Job) -> Self {
        let counts = fabric.rank_counts();
        let are_equal = counts.windows(2).all(|pair| pair[0] == pair[1]);
        let flows =
            are_equal.then(|| job.kinds.iter().chain(&job.ties).map(|kind| Rc::new(kind.flows(counts))).collect());
        Self { fabric, job, flows, known: BTreeMap::new(), distances: BTreeMap::new() }
    }

    /// How the flow from one machine to another divides.
    pub(crate) fn parts(&mut self, from: usize, to: usize) -> Parts {
        if let Some(parts) = self.known.get(&(from, to)) {
            return Rc::clone(parts);
        }
        let distances = self.distances_to(to);
        let parts = Rc::new(self.fabric.divided(from, &distances));
        if self.known.len() < REMEMBERED_MAX {
            self.known.insert((from, to), Rc::clone(&parts));
        }
        parts
    }

    /// By node, how far it is to a machine.
    pub(crate) fn distances_to(&mut self, machine: usize) -> Distances {
        if let Some(distances) = self.distances.get(&machine) {
            return Rc::clone(distances);
        }
        let distances = Rc::new(self.fabric.distances_to(machine));
        if self.distances.len().saturating_mul(distances.len()) < DISTANCES_MAX {
            self.distances.insert(machine, Rc::clone(&distances));
        }
        distances
    }

    /// Flows of a kind in an order.
    pub(crate) fn flows(&self, number: usize, kind: &Kind, order: &[usize]) -> Rc<Vec<Flow>> {
        match self.flows.as_ref().and_then(|flows| flows.get(number)) {
            Some(flows) => Rc::clone(flows),
            None => {
                let counts = self.fabric.rank_counts();
                let counts: Vec<u32> = order.iter().filter_map(|&machine| counts.get(machine).copied()).collect();
                Rc::new(kind.flows(&counts))
            }
        }
    }

    /// By link: what the flows of a kind load it with, in parts of [`WHOLE`] and of the kind.
    pub(crate) fn of_kind(
        &mut self,
        (number, kind): (usize, &Kind),
        order: &[usize],
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<u128>, Stopped> {
        let mut loads = vec![0_u128; self.fabric.edges.len()];
        for &Flow { from, to, amount } in self.flows(number, kind, order).iter() {
            if stop() {
                return Err(Stopped);
            }
            for &(edge, part) in self.parts(order[from], order[to]).iter() {
                loads[edge] += u128::from(part) * u128::from(amount);
            }
        }
        Ok(loads)
    }

    /// The busiest link's load of each kind, those that decide between equals last, and what all pass.
    pub(crate) fn by_kind(&mut self, order: &[usize], stop: &dyn Fn() -> bool) -> Result<(Vec<u128>, u64), Stopped> {
        let (mut busiest, mut hops) = (Vec::new(), 0);
        let job = self.job;
        for (number, kind) in job.kinds.iter().chain(&job.ties).enumerate() {
            let loads = self.of_kind((number, kind), order, stop)?;
            let per = u128::from(kind.per());
            let of = |(&load, edge): (&u128, &crate::fabric::Edge)| ratio(load, u128::from(edge.capacity) * per);
            busiest.push(loads.iter().zip(&self.fabric.edges).map(of).max().unwrap_or(0));
            if number < job.kinds.len() {
                hops += loads.iter().sum::<u128>() / per / u128::from(WHOLE);
            }
        }
        Ok((busiest, u64::try_from(hops).unwrap_or(u64::MAX)))
    }

    /// What an order loads.
    pub(crate) fn cost(&mut self, order: &[usize], stop: &dyn Fn() -> bool) -> Result<Cost, Stopped> {
        let (by_kind, hops) = self.by_kind(order, stop)?;
        let (kinds, ties) = by_kind.split_at(self.job.kinds.len());
        let weighted = |(&busiest, kind): (&u128, &Kind)| busiest.saturating_mul(kind.weight.into());
        let busiest = kinds.iter().zip(&self.job.kinds).map(weighted).fold(0, u128::saturating_add);
        Ok(Cost { busiest, trees: ties.iter().copied().fold(0, u128::saturating_add), hops })
    }
}
