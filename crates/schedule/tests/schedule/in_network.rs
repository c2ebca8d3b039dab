//! What switches that multicast or aggregate save: by hand, and chunk by chunk on random forests.

use canopy_schedule::{
    Action, Carrier, Collective, CollectiveKind, Forest, Hop, InNetwork, Phase, RouteInterner, Schedule, Shape, Shares,
    TransferGraph, Tree, check, compile,
};
use canopy_topology::{NodeIndex, NodeKind, Rank, Rate, Ratio, Topology, TopologyDraft, TopologyLimits};
use proptest::prelude::*;

use crate::forests::{Builder, CAPACITY, Random, complete_with_switch, link, random_schedule, star, topology};

/// The same network, with switches of these names that do both.
pub(crate) fn capable(plain: &Topology, names: &[&str]) -> Topology {
    let mut draft = TopologyDraft::default();
    for node in plain.nodes() {
        let kind = match node.kind {
            NodeKind::Switch { .. } if names.contains(&node.id.as_str()) => {
                NodeKind::Switch { multicast: true, aggregate: true }
            }
            kind => kind,
        };
        draft.add_node(node.id.clone(), kind, node.attributes.clone());
    }
    for link in plain.links() {
        let id = |node: NodeIndex| plain.node(node).id.clone();
        draft.add_link(id(link.from), id(link.to), link.capacity, link.latency);
    }
    draft.build(&TopologyLimits::STANDARD).unwrap()
}

fn weigh(topology: &Topology, graph: &TransferGraph) -> Option<InNetwork> {
    check(topology, graph).unwrap().in_network
}

fn expected(without: u64, with: u64, algbw: Rate) -> Option<InNetwork> {
    let whole = |count: u64| Ratio::new(count, 1_u32).unwrap();
    Some(InNetwork { traffic_without: whole(without), traffic: whole(with), algbw })
}

/// Each share leaves its rank once instead of four times, or is taken in once as a sum.
#[test]
fn a_star_needs_one_copy_per_share() {
    for (kind, action) in [(CollectiveKind::Allgather, Action::Copy), (CollectiveKind::ReduceScatter, Action::Reduce)] {
        let plain = star(5);
        let mut builder = Builder::new(&plain, kind, None, 3).phase(action);
        for root in 0..5 {
            let others = (0..5).filter(|&rank| rank != root);
            let hops = others.map(|rank| if action == Action::Copy { (root, rank) } else { (rank, root) });
            builder = builder.tree(root, 3, &hops.collect::<Vec<_>>());
        }
        let graph = compile(&plain, &builder.schedule()).unwrap();
        assert_eq!(weigh(&plain, &graph), None, "a plain switch saves nothing");
        // Every rank still takes in, or hands out, the shares of four others.
        let algbw = Rate::new(5 * CAPACITY, 4_u32).unwrap();
        assert_eq!(weigh(&capable(&plain, &["s0"]), &graph), expected(8, 5, algbw));
    }
}

/// The root of a broadcast is relieved of all but one copy, and so everything is four times as fast.
#[test]
fn a_broadcast_is_as_fast_as_one_copy() {
    let plain = star(5);
    let builder = Builder::new(&plain, CollectiveKind::Broadcast, Some(0), 1).phase(Action::Copy);
    let graph = compile(&plain, &builder.tree(0, 1, &[(0, 1), (0, 2), (0, 3), (0, 4)]).schedule()).unwrap();
    let able = capable(&plain, &["s0"]);
    assert_eq!(check(&able, &graph).unwrap().algbw, Rate::new(CAPACITY, 4_u32).unwrap(), "stated without");
    assert_eq!(weigh(&able, &graph), expected(8, 5, Rate::new(CAPACITY, 1_u32).unwrap()));
}

/// `r0 → s0 → s1 → {r1, r2}`: what s1 copies passes both links before it once, what s0 copies only the first.
#[test]
fn copies_are_made_where_a_switch_can() {
    let links = [("r0", "s0"), ("s0", "s1"), ("s1", "r1"), ("s1", "r2")];
    let plain = topology(3, 2, &links);
    let mut routes = RouteInterner::default();
    let mut carriers = Vec::new();
    let hops = ["r1", "r2"].map(|to| {
        let ways = [("r0", "s0"), ("s0", "s1"), ("s1", to)];
        let route = routes.intern(&ways.map(|(from, to)| link(&plain, from, to)));
        carriers.push(Carrier { route, chunk_count: 1 });
        let to = plain.rank_of(plain.find_node(to).unwrap()).unwrap();
        Hop { from: Rank::new(0), to, carriers: to.number() - 1..to.number() }
    });
    let trees = vec![Tree { root: Rank::new(0), multiplicity: 1, hops: 0..2 }];
    let phases = vec![Phase { action: Action::Copy, trees }];
    let forest = Forest { chunks_per_share: 1, routes: routes.finish(), carriers, hops: hops.to_vec(), phases };
    let collective = Collective::new(CollectiveKind::Broadcast, None, 3).unwrap();
    let (algorithm, shares, shape) = ("by-hand".to_owned(), Shares::Equal, Shape::Forest(forest));
    let graph = compile(&plain, &Schedule { collective, algorithm, shares, shape }).unwrap();
    let whole = Rate::new(CAPACITY, 1_u32).unwrap();
    let half = Rate::new(CAPACITY, 2_u32).unwrap();
    for (names, traffic, algbw) in [(vec!["s1"], 4, &whole), (vec!["s0"], 5, &half), (vec!["s0", "s1"], 4, &whole)] {
        assert_eq!(weigh(&capable(&plain, &names), &graph), expected(6, traffic, algbw.clone()), "{names:?}");
    }
}

/// From rank to rank, always over the switch: once it has seen a chunk, it needs no other to bring it.
#[test]
fn a_chain_over_one_switch_is_a_star() {
    let plain = star(5);
    let able = capable(&plain, &["s0"]);
    let chain = [(0, 1), (1, 2), (2, 3), (3, 4)];
    let up = [(4, 3), (3, 2), (2, 1), (1, 0)];
    for (kind, action, hops) in
        [(CollectiveKind::Broadcast, Action::Copy, chain), (CollectiveKind::Reduce, Action::Reduce, up)]
    {
        let builder = Builder::new(&plain, kind, Some(0), 1).phase(action);
        let graph = compile(&plain, &builder.tree(0, 1, &hops).schedule()).unwrap();
        assert_eq!(weigh(&able, &graph), expected(8, 5, Rate::new(CAPACITY, 1_u32).unwrap()), "{kind}");
    }
}

/// An allreduce in which every rank sends and takes in the whole vector once.
#[test]
fn both_phases_of_an_allreduce_are_pruned() {
    let plain = star(3);
    let mut builder = Builder::new(&plain, CollectiveKind::Allreduce, None, 1).phase(Action::Reduce);
    for root in 0..3 {
        builder = builder.tree(root, 1, &[((root + 1) % 3, (root + 2) % 3), ((root + 2) % 3, root)]);
    }
    builder = builder.phase(Action::Copy);
    for root in 0..3 {
        builder = builder.tree(root, 1, &[(root, (root + 1) % 3), ((root + 1) % 3, (root + 2) % 3)]);
    }
    let graph = compile(&plain, &builder.schedule()).unwrap();
    // Of each share, up: two parts leave their ranks and one sum arrives; down: one copy leaves and two arrive.
    assert_eq!(weigh(&capable(&plain, &["s0"]), &graph), expected(8, 6, Rate::new(CAPACITY, 1_u32).unwrap()));
}

/// What waits for something else than the tree brings may have to stay behind it.
#[test]
fn trees_that_others_hold_up_are_not_pruned() {
    let plain = star(3);
    let builder = Builder::new(&plain, CollectiveKind::Broadcast, Some(0), 1).phase(Action::Copy);
    let mut graph = compile(&plain, &builder.tree(0, 1, &[(0, 1), (0, 2)]).schedule()).unwrap();
    let able = capable(&plain, &["s0"]);
    assert_eq!(weigh(&able, &graph), expected(4, 3, Rate::new(CAPACITY, 1_u32).unwrap()));
    graph.dependencies = vec![0];
    graph.transfers[1].dependencies = 0..1;
    assert_eq!(weigh(&able, &graph), expected(4, 4, Rate::new(CAPACITY, 2_u32).unwrap()));
}

/// Crossings of links on [`complete_with_switch`], one chunk after the other. A hop is a direct link or two over the
/// switch, of which all hops of a tree share the half before the switch (or after it, on the way to the root).
fn crossings(forest: &Forest) -> u128 {
    let mut count = 0;
    for tree in forest.phases.iter().flat_map(|phase| &phase.trees) {
        for chunk in 0..tree.multiplicity {
            let mut is_shared = false;
            for hop in forest.hops_of(tree) {
                let mut end = 0;
                let carrier = forest.carriers_of(hop).iter().find(|carrier| {
                    end += carrier.chunk_count;
                    chunk < end
                });
                let links = forest.routes.get(carrier.unwrap().route).unwrap();
                count += match links.len() {
                    1 => 1,
                    _ => 1 + u128::from(!std::mem::replace(&mut is_shared, true)),
                };
            }
        }
    }
    count
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn savings_are_those_of_single_chunks(ranks in 2..9_u32, kind in prop::sample::select(CollectiveKind::ALL[..7].to_vec()), seed: u64) {
        let plain = complete_with_switch(ranks);
        let schedule: Schedule = random_schedule(&plain, kind, &mut Random(seed));
        let graph = compile(&plain, &schedule).unwrap();
        let verdict = check(&capable(&plain, &["s0"]), &graph).unwrap();
        let Shape::Forest(forest) = &schedule.shape else { panic!("not a forest") };
        let size = graph.chunk_count().unwrap();
        let found = verdict.in_network.unwrap();
        prop_assert_eq!(&found.traffic, &Ratio::new(crossings(forest), size).unwrap());
        prop_assert!(found.traffic <= found.traffic_without && found.algbw >= verdict.algbw);
        // Whatever switches do, the schedule is judged by what it needs of plain ones.
        let on_plain = check(&plain, &graph).unwrap();
        prop_assert_eq!((on_plain.algbw, on_plain.busiest_link, on_plain.in_network), (verdict.algbw, verdict.busiest_link, None));
    }
}
