//! Changes leave trees as they must be, and reach what single moves do not.

use canopy_optimize::{Fraction, Never};
use canopy_schedule::RouteInterner;
use canopy_topology::{LinkIndex, Topology, TopologyLimits, generate};
use proptest::prelude::*;

use super::distances::Distances;
use super::editing::Editing;
use super::hanging::{Hanging, Hop, links};
use super::packing::Packing;
use super::prices::Prices;
use super::relief::{Depth, Relief};
use crate::progress::Silent;

const NETWORKS: [&str; 6] = [
    "dgx-a100:boxes=3,gpus=4,degrade=b0g3-ib*1/2",
    "mi250:boxes=2,gpus=8",
    "leaf-spine:leaves=4,hosts=3,spines=2,oversub=2",
    "torus:4x5",
    "random-regular:n=14,d=3,seed=2",
    "random-euler:n=9,switches=3,seed=4",
];

fn topology(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap()
}

/// Farthest rank, in hops.
fn radius(topology: &Topology) -> u32 {
    let farthest =
        |root: u32| (0..topology.rank_count()).filter_map(|to| Distances::from(topology, root, |_| 0).to(to)).max();
    (0..topology.rank_count()).filter_map(farthest).max().unwrap()
}

/// Star-like trees of all ranks with their loads, and a relief.
struct Trees<'a> {
    topology: &'a Topology,
    trees: Vec<Hanging>,
    routes: RouteInterner,
    prices: Prices,
    relief: Relief<'a>,
    depth_max: u32,
}

impl<'a> Trees<'a> {
    fn flattest(topology: &'a Topology, depth_max: u32) -> Self {
        let (mut trees, mut routes, mut prices) = (Vec::new(), RouteInterner::default(), Prices::new(topology));
        prices.set(1, 16);
        for root in 0..topology.rank_count() {
            let distances = Distances::from(topology, root, |link| prices.of(link));
            let alone = Hop { depth: 0, from: root, route: None };
            let mut tree = Hanging::new(root, 1, vec![alone; topology.rank_count() as usize]);
            let mut edit = Editing { tree: &mut tree, routes: &mut routes, prices: &mut prices };
            for rank in (0..topology.rank_count()).filter(|&rank| rank != root) {
                let (from, links) = distances.last_hop(topology, rank).unwrap();
                edit.hang(rank as usize, from, &links);
            }
            tree.count_depths();
            trees.push(tree);
        }
        let relief = Relief::new(topology, depth_max, u64::MAX);
        Self { topology, trees, routes, prices, relief, depth_max }
    }

    /// Looks at all ranks as long as any moves, some times.
    fn relieve(&mut self, steepness: u128, depth: Depth) {
        let allowed = vec![0; self.topology.links().len()];
        for _ in 0..8 {
            self.prices.set(1, steepness);
            let pass = self.relief.pass(&mut self.trees, &mut self.routes, &mut self.prices, (&allowed, depth), &Never);
            self.check();
            if pass.unwrap().moved == 0 {
                break;
            }
        }
    }

    /// Every rank hangs below the root by a route from where it hangs, no deeper than may be, and loads are those of
    /// all routes.
    fn check(&self) {
        let mut loads = vec![0; self.topology.links().len()];
        for tree in &self.trees {
            for (rank, hop) in (0_u32..).zip(&tree.hops) {
                let links = links(&self.routes, hop);
                links.iter().for_each(|link| loads[link.index()] += tree.weight);
                let mut at = hop.from;
                for &link in links {
                    assert_eq!(self.topology.link(link).from.number(), at);
                    at = self.topology.link(link).to.number();
                    assert_eq!(at == rank, at < self.topology.rank_count(), "a hop passes no rank");
                }
                let above = &tree.hops[hop.from as usize];
                assert_eq!(hop.depth, if rank == tree.root { 0 } else { above.depth + 1 });
                assert!(at == rank && hop.depth <= self.depth_max);
            }
        }
        let known: Vec<u64> = (0..).map(LinkIndex::new).take(loads.len()).map(|link| self.prices.load(link)).collect();
        assert_eq!(known, loads);
    }

    fn time(&self) -> Fraction {
        self.prices.time(self.topology, 1)
    }
}

#[test]
fn changes_leave_trees_whole() {
    for expression in NETWORKS {
        let topology = topology(expression);
        for depth_max in radius(&topology)..radius(&topology) + 3 {
            for bias in [0, 16, 64] {
                let mut trees = Trees::flattest(&topology, depth_max);
                trees.check();
                let before = trees.time();
                trees.relief.bias = bias;
                for (steepness, depth) in [(12, Depth::Ranks), (48, Depth::Branches), (192, Depth::Branches)] {
                    trees.relieve(steepness, depth);
                }
                assert!(trees.time() <= before, "{expression} in {depth_max} hops");
            }
        }
    }
}

/// GPU 3 has half a NIC: its data has to leave its box over others as well, and then reaches each rank of a box on
/// its own, instead of one that hands it on: several ranks must change place at once.
#[test]
fn branches_and_promotions_reach_what_single_moves_do_not() {
    let topology = topology("dgx-a100:boxes=4,degrade=b0g3-ib*1/2");
    let reached = [Depth::Ranks, Depth::Branches].map(|depth| {
        let mut trees = Trees::flattest(&topology, 2);
        for steepness in [24, 96, 192] {
            trees.relieve(steepness, depth);
        }
        trees.time()
    });
    assert!(reached[1] < reached[0], "{reached:?}");
}

/// What takes too long ends with the trees that are there.
#[test]
fn no_work_left_is_no_change() {
    let topology = topology("mi250:boxes=2,gpus=8");
    let mut trees = Trees::flattest(&topology, 4);
    trees.relief = Relief::new(&topology, 4, 0);
    trees.relieve(48, Depth::Branches);
    assert!(trees.relief.is_over());
    assert!(trees.trees.iter().all(|tree| tree.hops.iter().all(|hop| hop.depth <= radius(&topology))));
}

/// Weights that do not divide evenly, and more parts than there are trees.
#[test]
fn roots_keep_their_weights_when_trees_are_divided() {
    let topology = topology("ring:4");
    let weighted = vec![(0, 3), (2, 1), (3, 5)];
    let enough = Fraction::new(1, 1 << 62).unwrap();
    let mut packing = Packing::new(&topology, weighted.clone(), 3, enough, &Never).unwrap();
    packing.start(1, &Silent).unwrap();
    for (count, parts) in [(1, 2), (1, 8), (2, 8), (4, 8)] {
        assert!(packing.divide(count, parts));
        let packed = packing.relieve(count).unwrap();
        for &(root, weight) in &weighted {
            let of_root: Vec<u64> =
                packed.trees.iter().filter(|tree| tree.root == root).map(|tree| tree.weight).collect();
            assert_eq!(of_root.iter().sum::<u64>(), count * weight);
            assert_eq!(of_root.len() as u64, parts.min(count * weight));
            assert!(of_root.iter().max().unwrap() - of_root.iter().min().unwrap() <= 1);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Depths and heights against their definition, on any tree.
    #[test]
    fn depths_and_heights_are_counted_right(
        picks in prop::collection::vec(any::<prop::sample::Index>(), 0..24),
        root in any::<prop::sample::Index>(),
    ) {
        let count = picks.len() + 1;
        let root = root.index(count);
        let number = |position: usize| u32::try_from((root + position) % count).unwrap();
        let mut routes = RouteInterner::default();
        let route = routes.intern(&[]);
        let mut hops = vec![Hop { depth: 7, from: number(0), route: None }; count];
        for (position, pick) in (1..).zip(&picks) {
            hops[number(position) as usize] = Hop { depth: 9, from: number(pick.index(position)), route: Some(route) };
        }
        let tree = Hanging::new(number(0), 1, hops);
        let mut heights = vec![0; count];
        tree.count_heights(&mut heights);
        for (rank, &height) in heights.iter().enumerate() {
            let above = |at: usize| tree.hops[at].route.map(|_| tree.hops[at].from as usize);
            let path = |rank: usize| std::iter::successors(Some(rank), |&at| above(at));
            prop_assert_eq!(tree.hops[rank].depth as usize, path(rank).count() - 1);
            let below: Vec<usize> = (0..count).filter(|&other| path(other).any(|at| at == rank)).collect();
            let deepest = below.iter().map(|&other| tree.hops[other].depth).max().unwrap();
            prop_assert_eq!(height, deepest - tree.hops[rank].depth);
            prop_assert!((0..count).all(|other| tree.is_below(other, rank) == below.contains(&other)));
        }
    }
}
