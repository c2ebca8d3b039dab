//! All-to-all on networks with few kinds of links.
//!
//! Of best lengths of links the average over all symmetries is as good, so links that symmetries exchange may have the same length.
//! That leaves a linear program with one row for each orbit of links. Its columns are ways to send everything, each found by
//! shortest paths from one rank of each kind; averaged over all symmetries, a way loads all links of an orbit alike.

mod master;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use canopy_canonical::{Arc, Budget, WORK_SERVED, analyse, graph_of};
use canopy_optimize::Stop;
use canopy_schedule::{Bound, Certificate, Shares};
use canopy_topology::{NodeIndex, Rate, Topology};

use self::master::{Master, Round};
use super::BoundError;
use super::lengths::rate_of;

/// Ranks times links from which on symmetries are looked for: below, the whole program takes some tenths of a second.
const SIZE_MIN: u64 = 1 << 17;
/// Most kinds of links.
const ORBITS_MAX: usize = 16;
/// Most ways that are tried; a few for each orbit suffice.
const ROUNDS_MAX: usize = 256;

/// The best bound of a large network with few kinds of links; `None` for others, and where it is not found soon.
///
/// * **Source.** The dual of Basu 2024, equations (6)–(9), over lengths that are alike within orbits; columns as in Dantzig and
///   Wolfe 1960.
/// * **Out.** What the lengths prove is computed on all ranks and links, so no symmetry need be right for it to hold.
/// * **Errors.** Stopped. **Cost.** The search for symmetries, one search for shortest paths for each rank, and for each way one
///   for each kind of ranks.
pub(super) fn bound(topology: &Topology, shares: &Shares, stop: &dyn Stop) -> Result<Option<Bound>, BoundError> {
    let size = u64::from(topology.rank_count()).saturating_mul(topology.links().len() as u64);
    if *shares != Shares::Equal || size < SIZE_MIN {
        return Ok(None);
    }
    found(topology, stop)
}

/// The same for networks of any size.
fn found(topology: &Topology, stop: &dyn Stop) -> Result<Option<Bound>, BoundError> {
    let Some(kinds) = Kinds::of(topology, stop)? else { return Ok(None) };
    let mut master = Master::new(&kinds.capacities);
    for _ in 0..ROUNDS_MAX {
        if stop.is_requested() {
            return Err(BoundError::Stopped);
        }
        let Some(lengths) = master.lengths() else { return Ok(None) };
        let Some(uses) = kinds.nearest(&lengths) else { return Ok(None) };
        match master.add(&uses) {
            Round::Better => {}
            Round::Stuck => return Ok(None),
            Round::Best => {
                let lengths: Vec<u64> = kinds.orbit_of.iter().map(|&orbit| lengths[orbit]).collect();
                let Some(upper) = rate_of(topology, &Shares::Equal, &lengths, stop)? else { return Ok(None) };
                let (top, bottom) = master.rate();
                let lower = Rate::new(top * topology.rank_count(), bottom).unwrap_or_else(Rate::zero);
                return Ok(Some(Bound { upper, lower, certificate: Certificate::LpDual { lengths } }));
            }
        }
    }
    Ok(None)
}

/// Ranks and links that symmetries do not exchange.
struct Kinds {
    /// A rank of each kind, and how many there are.
    sources: Vec<(NodeIndex, u64)>,
    /// By link.
    orbit_of: Vec<usize>,
    /// By orbit, in bytes per second, all together.
    capacities: Vec<u128>,
    /// By node: where its links lead, and of which orbit they are.
    leaving: Vec<Vec<(u32, usize)>>,
    rank_count: u32,
}

impl Kinds {
    /// `None` where there are many kinds of links. Automorphisms are verified link by link by who finds them.
    fn of(topology: &Topology, stop: &dyn Stop) -> Result<Option<Self>, BoundError> {
        let Some(graph) = graph_of(topology, &[]) else { return Ok(None) };
        let budget = Budget { work_max: WORK_SERVED, stop: &|| stop.is_requested() };
        let analysis = analyse(&graph, budget).map_err(|_| BoundError::Stopped)?;
        let arc_orbits = analysis.arc_orbits(&graph);
        if arc_orbits.count() > ORBITS_MAX {
            return Ok(None);
        }
        let mut numbers: BTreeMap<u32, usize> = BTreeMap::new();
        let mut orbit_of = Vec::with_capacity(topology.links().len());
        let mut capacities: Vec<u128> = Vec::new();
        let mut leaving = vec![Vec::new(); topology.nodes().len()];
        for link in topology.links() {
            let (from, to) = (link.from.number(), link.to.number());
            let arc = Arc { from, to, weight: [link.capacity.bytes_per_sec(), link.latency.nanos()] };
            let Ok(first) = u32::try_from(graph.arcs().partition_point(|other| *other < arc)) else { return Ok(None) };
            let next = numbers.len();
            let orbit = *numbers.entry(arc_orbits.representative(first)).or_insert(next);
            if orbit == next {
                capacities.push(0);
            }
            capacities[orbit] += u128::from(link.capacity.bytes_per_sec());
            orbit_of.push(orbit);
            leaving[link.from.index()].push((to, orbit));
        }
        let kinds = analysis.orbits.to_sets().into_iter().filter(|kind| kind[0] < topology.rank_count());
        let sources = kinds.map(|kind| (NodeIndex::new(kind[0]), kind.len() as u64)).collect();
        Ok(Some(Self { sources, orbit_of, capacities, leaving, rank_count: topology.rank_count() }))
    }

    /// By orbit, how many of its links the shortest paths between all ranks use together, of equally long ones those of the
    /// fewest links; `None` where a rank is out of reach.
    fn nearest(&self, lengths: &[u64]) -> Option<Vec<u128>> {
        let mut uses = vec![0_u128; lengths.len()];
        for &(source, copies) in &self.sources {
            let mut distances: Vec<Option<(u128, u32)>> = vec![None; self.leaving.len()];
            // By node and orbit, the links of the path there.
            let mut passed = vec![0_u64; self.leaving.len() * lengths.len()];
            distances[source.index()] = Some((0, 0));
            let mut queue = BinaryHeap::from([Reverse(((0_u128, 0_u32), source.number()))]);
            while let Some(Reverse((distance, node))) = queue.pop() {
                if distances[node as usize] != Some(distance) {
                    continue;
                }
                for &(to, orbit) in &self.leaving[node as usize] {
                    let through = (distance.0 + u128::from(lengths[orbit]), distance.1 + 1);
                    let known = &mut distances[to as usize];
                    if known.is_none_or(|known| through < known) {
                        *known = Some(through);
                        let own = node as usize * lengths.len();
                        passed.copy_within(own..own + lengths.len(), to as usize * lengths.len());
                        passed[to as usize * lengths.len() + orbit] += 1;
                        queue.push(Reverse((through, to)));
                    }
                }
            }
            for rank in 0..self.rank_count as usize {
                distances[rank]?;
                let path = &passed[rank * lengths.len()..(rank + 1) * lengths.len()];
                uses.iter_mut().zip(path).for_each(|(uses, &links)| *uses += u128::from(links) * u128::from(copies));
            }
        }
        Some(uses)
    }
}

#[cfg(test)]
mod tests {
    use canopy_optimize::Never;
    use canopy_topology::{TopologyLimits, generate};

    use super::*;
    use crate::concurrent::AllToAllFlow;
    use crate::progress::Silent;

    fn network(expression: &str) -> Topology {
        generate(expression, &TopologyLimits::STANDARD).unwrap()
    }

    /// The rate of the whole program, on networks small enough for it to be exact.
    #[test]
    fn few_kinds_of_links_have_the_bound_of_the_whole_program() {
        for expression in [
            "kautz:d=2,n=2",
            "kautz:d=3,n=2",
            "kautz:d=2,n=3",
            "dfc2:3x5",
            "dfc2:4x4",
            "torus:3x4",
            "hypercube:3",
            "ring:5",
            "hamming:2x3x4",
            "circulant:n=12,offsets=2+3",
            "mesh:3x3",
            "dgx-a100:boxes=2",
        ] {
            let topology = network(expression);
            let own = found(&topology, &Never).unwrap().unwrap_or_else(|| panic!("{expression}: few kinds of links"));
            let whole = AllToAllFlow::of(&topology, &Shares::Equal, None, &Never, &Silent).unwrap().bound(&topology);
            assert_eq!((&own.upper, &own.lower), (&whole.upper, &own.upper), "{expression}");
        }
    }

    /// Every link of a square grid carries as many blocks as a line has ranks. Between 2d + 1 blocks, by shortest paths, and
    /// 2d + 1 − 2/d, if all links carried as much, lies what a Kautz network can do.
    #[test]
    fn large_networks_are_bounded_exactly() {
        let of = |expression: &str| {
            let topology = network(&format!("{expression},bw=1GB/s"));
            bound(&topology, &Shares::Equal, &Never).unwrap().unwrap()
        };
        let grid = of("dfc2:16x16");
        assert_eq!(grid.upper, Rate::new(256_u64 * 1_000_000_000, 16_u64).unwrap());
        assert_eq!(grid.lower, grid.upper);
        let kautz = of("kautz:d=16,n=2");
        assert_eq!(kautz.lower, kautz.upper);
        assert!(kautz.upper > Rate::new(272_u64 * 1_000_000_000, 33_u64).unwrap(), "{}", kautz.upper);
        assert!(kautz.upper <= Rate::new(272_u64 * 16_000_000_000, 526_u64).unwrap(), "{}", kautz.upper);
        assert_eq!(bound(&network("kautz:d=3,n=2"), &Shares::Equal, &Never), Ok(None));
    }

    #[test]
    fn ranks_out_of_reach_are_left_to_others() {
        let topology = network("uniring:n=4,d=1,down=0>1");
        assert_eq!(found(&topology, &Never), Ok(None));
        assert_eq!(found(&network("ring:5"), &|| true), Err(BoundError::Stopped));
    }
}
