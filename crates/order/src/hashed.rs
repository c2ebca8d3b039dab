//! What flows that do not divide load, each on a cable that chance takes.
//!
//! Switches without adaptive routing give each connection one of the equally short ways, by a hash of its addresses. A ring
//! for each NIC waits for the slowest of its connections.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::Stopped;
use crate::chance::Chance;
use crate::fabric::Fabric;
use crate::job::{Flow, Job};
use crate::load::{Distances, Loads};

/// Trials whose mean counts, and choices that all of them make together at most.
const TRIALS: u64 = 16;
const CHOICES_MAX: u64 = 1 << 20;

/// NICs of a machine that are told apart at most.
const NICS_MAX: u64 = 64;

/// What cables carry, in parts of what a rank has.
struct Cables {
    /// By edge.
    of_edges: Vec<Vec<f64>>,
    /// By node with ways slower than a NIC, which are parts of wider ones, out of it or into it: as if these had as many
    /// cables as fast as a NIC, with the rate of one.
    of_narrow: BTreeMap<(usize, bool), (Vec<f64>, f64)>,
}

impl Cables {
    fn new(fabric: &Fabric) -> Self {
        let of_edges = fabric.edges.iter().map(|edge| vec![0.0; count(edge.cables.into())]).collect();
        Self { of_edges, of_narrow: BTreeMap::new() }
    }

    /// How long the busiest takes.
    fn busiest(&self, fabric: &Fabric) -> f64 {
        let most = |loads: &[f64]| loads.iter().copied().fold(0.0, f64::max);
        let wide = self.of_edges.iter().zip(&fabric.edges);
        let wide = wide.map(|(loads, edge)| most(loads) * loads.len() as f64 / edge.capacity.max(1) as f64);
        let narrow = self.of_narrow.values().map(|(loads, rate)| most(loads) / rate);
        wide.chain(narrow).fold(0.0, f64::max)
    }

    fn add(&mut self, (way, cable): (usize, usize), part: f64) {
        self.of_edges[way][cable] += part;
    }

    /// Puts a part on any cable of these links from one switch, and returns its link. `from_stage` are all links that the
    /// flow could be on at this distance, from other switches, too.
    fn take_any(
        &mut self,
        fabric: &Fabric,
        (ways, from_stage): (&[usize], &[usize]),
        part: f64,
        chance: &mut Chance,
    ) -> Option<usize> {
        let rate = |&edge: &usize| fabric.edges[edge].capacity;
        if ways.iter().all(|way| rate(way) >= fabric.nic) {
            let total = ways.iter().map(|&edge| self.of_edges[edge].len() as u64).sum();
            let taken = cable_of(fabric, ways, chance.below(total))?;
            self.add(taken, part);
            return Some(taken.0);
        }
        let total: u64 = ways.iter().map(rate).fold(0, u64::saturating_add);
        let mut pick = chance.below(total);
        let way = ways.iter().copied().find(|way| {
            let is_here = pick < rate(way);
            pick = pick.saturating_sub(rate(way));
            is_here
        })?;
        // Parts of what leaves this switch, or of what enters the next one.
        let edge = fabric.edges[way];
        let entering = from_stage.iter().filter(|&&other| fabric.edges[other].to == edge.to).map(rate);
        let entering = entering.fold(0, u64::saturating_add);
        let key = if total >= entering { (edge.from, false) } else { (edge.to, true) };
        let total = total.max(entering);
        let (loads, _) = self.of_narrow.entry(key).or_insert_with(|| {
            let cables = count(total / fabric.nic);
            (vec![0.0; cables], total as f64 / cables as f64)
        });
        let cable = chance.place(loads.len());
        loads[cable] += part;
        Some(way)
    }
}

/// The link and the cable of it that has this number among all cables of these links.
fn cable_of(fabric: &Fabric, ways: &[usize], mut number: u64) -> Option<(usize, usize)> {
    for &way in ways {
        let cables = count(fabric.edges[way].cables.into()) as u64;
        if number < cables {
            return Some((way, usize::try_from(number).unwrap_or(0)));
        }
        number -= cables;
    }
    None
}

/// The same for a NIC, which there may be fewer of.
fn nic_of(fabric: &Fabric, ways: &[usize], nic: u64) -> Option<(usize, usize)> {
    let total: u64 = ways.iter().map(|&edge| count(fabric.edges[edge].cables.into()) as u64).sum();
    cable_of(fabric, ways, nic % total.max(1))
}

/// Cables that are told apart.
fn count(cables: u64) -> usize {
    usize::try_from(cables.clamp(1, 4_096)).unwrap_or(1)
}

/// The time of the busiest cable, all kinds of groups added up by weight, in seconds per byte that a rank has: the mean of
/// some trials.
///
/// Each flow is divided among the NICs of a machine, and each part takes its own NIC and then one cable after another.
///
/// # Errors
/// Stopped.
pub(crate) fn hashed(
    loads: &mut Loads<'_>,
    job: &Job,
    order: &[usize],
    stop: &dyn Fn() -> bool,
) -> Result<f64, Stopped> {
    let fabric = loads.fabric;
    let machines = fabric.machines().len();
    let cables_of =
        |machine: usize| fabric.leaving[machine].iter().map(|&edge| u64::from(fabric.edges[edge].cables)).sum();
    let nics = (0..machines).map(cables_of).min().unwrap_or(1).clamp(1, NICS_MAX);
    let mut sum = 0.0;
    for (number, kind) in job.kinds.iter().enumerate() {
        let flows = loads.flows(number, kind, order);
        let trials = (CHOICES_MAX / (flows.len() as u64 * nics).max(1)).clamp(1, TRIALS);
        let seeds = (1..=trials).map(|trial| Chance(trial.wrapping_mul(Chance::SEED)));
        let mut tries: Vec<(Cables, Chance)> = seeds.map(|chance| (Cables::new(fabric), chance)).collect();
        for &Flow { from, to, amount } in flows.iter() {
            if stop() {
                return Err(Stopped);
            }
            let part = amount as f64 / (kind.per() * nics) as f64;
            send(loads, &mut tries, (order[from], order[to]), (nics, part));
        }
        let busiest: f64 = tries.iter().map(|(cables, _)| cables.busiest(fabric)).sum();
        sum += busiest * f64::from(kind.weight) / trials as f64;
    }
    Ok(sum)
}

/// Puts parts of a flow, one for each NIC, on the cables that they take in each try: out by a NIC, in by the one of the same
/// number, by chance between.
fn send(loads: &mut Loads<'_>, tries: &mut [(Cables, Chance)], (from, to): (usize, usize), (nics, part): (u64, f64)) {
    let fabric: &Fabric = loads.fabric;
    let first_ways = nearer(fabric, &loads.distances_to(to), from);
    let mut known: BTreeMap<usize, Distances> = BTreeMap::new();
    for nic in 0..nics {
        let Some(first) = nic_of(fabric, &first_ways, nic) else { return };
        let start = fabric.edges[first.0].to;
        // Directly, or from the switch that the other NIC is at.
        let last = if start == to { None } else { nic_of(fabric, &fabric.entering[to], nic) };
        let target = last.map_or(to, |last| fabric.edges[last.0].from);
        let distances = Rc::clone(known.entry(target).or_insert_with(|| loads.distances_to(target)));
        for (cables, chance) in tries.iter_mut() {
            cables.add(first, part);
            if let Some(last) = last {
                cables.add(last, part);
                walk(fabric, cables, &distances, (start, part), chance);
            }
        }
    }
}

/// The same of one part from a switch to where distances are to.
fn walk(fabric: &Fabric, cables: &mut Cables, distances: &[u16], (start, part): (usize, f64), chance: &mut Chance) {
    let (mut at, mut stage) = (start, vec![start]);
    while distances[at] > 0 {
        let ways = nearer(fabric, distances, at);
        let from_stage: Vec<usize> = stage.iter().flat_map(|&node| nearer(fabric, distances, node)).collect();
        let Some(way) = cables.take_any(fabric, (&ways, &from_stage), part, chance) else { return };
        at = fabric.edges[way].to;
        stage = from_stage.iter().map(|&edge| fabric.edges[edge].to).collect();
        stage.sort_unstable();
        stage.dedup();
    }
}

/// Links that lead nearer to where distances are to.
fn nearer(fabric: &Fabric, distances: &[u16], at: usize) -> Vec<usize> {
    let is_nearer = |&&edge: &&usize| distances[fabric.edges[edge].to] < distances[at];
    fabric.leaving[at].iter().filter(is_nearer).copied().collect()
}
