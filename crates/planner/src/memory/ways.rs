//! Shortest ways between ranks: how long they are and how many, roughly, as a few ranks see it.

use canopy_topology::{Rank, Topology};

/// Ranks from which ways are looked at.
const SAMPLE_RANKS: u32 = 16;

/// Sums over all ordered pairs of ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ways {
    /// Links on one shortest way of each.
    pub(super) distance: u64,
    /// All shortest ways.
    pub(super) paths: u64,
    /// Links on all of these.
    pub(super) hops: u64,
}

impl Ways {
    /// Those from a few ranks stand for all. O(nodes + links).
    pub(super) fn of(topology: &Topology) -> Self {
        let ranks = topology.rank_count();
        let count = ranks.min(SAMPLE_RANKS);
        let from = (0..count).map(|sample| Rank::new(sample * (ranks / count.max(1))));
        let sum = from.map(|rank| Self::from(topology, rank)).fold(Self::default(), |sum, ways| Self {
            distance: sum.distance.saturating_add(ways.distance),
            paths: sum.paths.saturating_add(ways.paths),
            hops: sum.hops.saturating_add(ways.hops),
        });
        let of_all = |sum: u64| sum.saturating_mul(u64::from(ranks)).div_ceil(u64::from(count.max(1)));
        Self { distance: of_all(sum.distance), paths: of_all(sum.paths), hops: of_all(sum.hops) }
    }

    /// From one rank to each other. Breadth-first, O(nodes + links).
    fn from(topology: &Topology, from: Rank) -> Self {
        // By node, how many shortest ways lead there; 0 where it is not reached yet.
        let mut ways = vec![0_u64; topology.nodes().len()];
        ways[from.index()] = 1;
        let (mut near, mut distance, mut sum) = (vec![from.node()], 0_u64, Self::default());
        while !near.is_empty() {
            distance += 1;
            let (mut next, mut found) = (Vec::new(), Vec::new());
            for node in near {
                let ends = topology.links_from(node).map(|link| topology.link(link).to);
                let new = ends.filter(|to| ways[to.index()] == 0);
                found.extend(new.map(|to| (to, ways[node.index()])));
            }
            for (to, more) in found {
                let known = &mut ways[to.index()];
                if *known == 0 {
                    next.push(to);
                }
                *known = known.saturating_add(more);
            }
            for to in next.iter().filter(|&&to| topology.rank_of(to).is_some()) {
                sum.distance += distance;
                sum.paths = sum.paths.saturating_add(ways[to.index()]);
                sum.hops = sum.hops.saturating_add(ways[to.index()].saturating_mul(distance));
            }
            near = next;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use canopy_topology::{Capacity, Latency, TopologyDraft, TopologyLimits, generate};

    use super::*;

    fn of(expression: &str) -> Ways {
        Ways::of(&generate(expression, &TopologyLimits::STANDARD).unwrap())
    }

    /// In a ring two ranks are at each distance and one is opposite; in a torus both dimensions add up.
    #[test]
    fn distances_are_those_of_all_ranks() {
        assert_eq!(of("ring:8").distance, 8 * 2 * (1 + 2 + 3) + 8 * 4);
        assert_eq!(of("complete:20").distance, 20 * 19);
        // Only sixteen ranks are looked at, which all see the same.
        assert_eq!(of("torus:10x10").distance, 100 * 10 * (2 * 25));
    }

    /// In a hypercube d! ways lead to each of the C(n, d) ranks at distance d; in a ring two to the opposite one; over two spines
    /// two, and one to a neighbour.
    #[test]
    fn all_shortest_ways_are_counted() {
        let cube = of("hypercube:4");
        assert_eq!((cube.paths, cube.hops), (16 * (4 + 6 * 2 + 4 * 6 + 24), 16 * (4 + 2 * 12 + 3 * 24 + 4 * 24)));
        assert_eq!(of("ring:8"), Ways { distance: 128, paths: 8 * 8, hops: 8 * (2 * 6 + 2 * 4) });
        let spines = of("leaf-spine:leaves=2,hosts=2,spines=2,oversub=1");
        assert_eq!((spines.paths, spines.hops), (4 * (1 + 2 * 2), 4 * (2 + 4 * 4)));
    }

    /// Seventy pairs of switches one behind the other, each linked with both of the next: 2⁷⁰ ways.
    #[test]
    fn counts_saturate() {
        let rate = Capacity::from_bytes_per_sec(1).unwrap();
        let mut draft = TopologyDraft::default();
        ["a", "b"].into_iter().for_each(|id| draft.add_compute(id));
        let names = |stage: u32| [0, 1].map(|one| format!("s{stage}n{one}"));
        for stage in 0..70 {
            names(stage).into_iter().for_each(|id| draft.add_switch(id));
            let before = if stage == 0 { vec!["a".to_owned()] } else { names(stage - 1).to_vec() };
            for from in before {
                names(stage).into_iter().for_each(|to| draft.add_both(&from, &to, rate, Latency::default()));
            }
        }
        names(69).into_iter().for_each(|from| draft.add_both(&from, "b", rate, Latency::default()));
        let ways = Ways::of(&draft.build(&TopologyLimits::STANDARD).unwrap());
        // Both ranks' together are as many as there can be, which are divided by the two of them.
        let most = u64::MAX.div_ceil(2);
        assert_eq!((ways.distance, ways.paths, ways.hops), (2 * 71, most, most));
    }
}
