//! Hand-made schedules are accepted, with the rates one computes by hand.

use canopy_schedule::{Action, CollectiveKind, LinkLoads, Schedule, TransferGraph, Verdict, check, compile};
use canopy_topology::{Capacity, Latency, Rate, Topology, TopologyDraft, TopologyLimits};

use crate::forests::{
    Builder, CAPACITY, Random, complete_with_switch, link, one_way_ring, path_3, random_schedule, star,
};

fn judge(topology: &Topology, schedule: &Schedule) -> (TransferGraph, Verdict) {
    let graph = compile(topology, schedule).unwrap();
    let verdict = check(topology, &graph).unwrap();
    (graph, verdict)
}

fn rate(numerator: u64, denominator: u64) -> Rate {
    Rate::new(numerator * CAPACITY, denominator).unwrap()
}

/// Every tree uses three of the four links, so every link carries three chunks of a vector of four.
#[test]
fn ring_allgather() {
    let topology = one_way_ring(4);
    let mut builder = Builder::new(&topology, CollectiveKind::Allgather, None, 1).phase(Action::Copy);
    for root in 0..4 {
        let hop = |step: u32| ((root + step) % 4, (root + step + 1) % 4);
        builder = builder.tree(root, 1, &[hop(0), hop(1), hop(2)]);
    }
    let (graph, verdict) = judge(&topology, &builder.schedule());
    assert_eq!(verdict.algbw, rate(4, 3));
    assert_eq!((verdict.tree_count, verdict.depth_max, verdict.depth_sum, verdict.batch_count), (4, 3, 12, 4));
    assert_eq!((verdict.links_max, verdict.links_sum), (3, 12));
    assert_eq!(verdict.checks, ["structure", "meaning", "load"]);
    assert_eq!(verdict.busiest_link, link(&topology, "r0", "r1"));
    assert_eq!(graph.dependencies_of(&graph.transfers[1]), [0]);
    assert_eq!(graph.dependencies_of(&graph.transfers[2]), [1]);
    assert!(graph.dependencies_of(&graph.transfers[3]).is_empty());
}

/// Each root sends its share to the others through the switch: N − 1 chunks out of and into every rank.
#[test]
fn star_allgather_and_its_mirror() {
    let topology = star(5);
    for (kind, action) in [(CollectiveKind::Allgather, Action::Copy), (CollectiveKind::ReduceScatter, Action::Reduce)] {
        let mut builder = Builder::new(&topology, kind, None, 3).phase(action);
        for root in 0..5 {
            let others = (0..5).filter(|&rank| rank != root);
            let hops = others.map(|rank| if action == Action::Copy { (root, rank) } else { (rank, root) });
            builder = builder.tree(root, 3, &hops.collect::<Vec<_>>());
        }
        let (_, verdict) = judge(&topology, &builder.schedule());
        assert_eq!(verdict.algbw, rate(5, 4));
        assert_eq!((verdict.tree_count, verdict.depth_max, verdict.depth_sum), (15, 1, 15));
        assert_eq!((verdict.links_max, verdict.links_sum), (2, 30), "a switch on the way makes two links of a hop");
    }
}

/// Path a–b–c: `b → c` carries the shares of a and b, so two chunks of three.
#[test]
fn path_allgather() {
    let topology = path_3();
    let builder = Builder::new(&topology, CollectiveKind::Allgather, None, 1).phase(Action::Copy);
    let builder = builder.tree(0, 1, &[(0, 1), (1, 2)]).tree(1, 1, &[(1, 0), (1, 2)]).tree(2, 1, &[(2, 1), (1, 0)]);
    let (graph, verdict) = judge(&topology, &builder.schedule());
    assert_eq!(verdict.algbw, rate(3, 2));
    assert_eq!(verdict.busiest_link, link(&topology, "r1", "r0"));
    assert_eq!((verdict.tree_count, verdict.depth_max, verdict.depth_sum), (3, 2, 5));
    // The other ways carry one chunk each: half of the time. Six chunks in all, for a vector of three.
    let loads = LinkLoads::of(&topology, &graph).unwrap();
    let ends = [("r0", "r1", 1, "1/2"), ("r1", "r0", 2, "1/1"), ("r1", "r2", 2, "1/1"), ("r2", "r1", 1, "1/2")];
    for (from, to, chunks, busy) in ends {
        let link = link(&topology, from, to);
        assert_eq!((loads.chunks(link), loads.busy(link).to_string().as_str()), (chunks, busy), "{from} {to}");
    }
    assert_eq!(loads.binding().collect::<Vec<_>>(), [link(&topology, "r1", "r0"), link(&topology, "r1", "r2")]);
    assert_eq!(loads.traffic().to_string(), "2/1");
}

/// Without a barrier the loads of both phases add up: each link of the path carries three chunks of three, whereas
/// either phase alone has a link with two. Hence 1, and not the 3/4 of one phase after the other.
#[test]
fn path_allreduce_overlaps_its_phases() {
    let topology = path_3();
    let builder = Builder::new(&topology, CollectiveKind::Allreduce, None, 1).phase(Action::Reduce);
    let builder = builder.tree(0, 1, &[(2, 1), (1, 0)]).tree(1, 1, &[(0, 1), (2, 1)]).tree(2, 1, &[(0, 1), (1, 2)]);
    let builder = builder.phase(Action::Copy);
    let builder = builder.tree(0, 1, &[(0, 1), (1, 2)]).tree(1, 1, &[(1, 0), (1, 2)]).tree(2, 1, &[(2, 1), (1, 0)]);
    let (graph, verdict) = judge(&topology, &builder.schedule());
    assert_eq!(verdict.algbw, rate(1, 1));
    assert_eq!((verdict.tree_count, verdict.depth_max, verdict.depth_sum, verdict.batch_count), (3, 4, 10, 6));
    let of = |transfer: usize| graph.dependencies_of(&graph.transfers[transfer]);
    assert_eq!((of(0), of(1)), (&[][..], &[0][..]), "in a reduce tree a rank waits for what it is to add");
    assert_eq!((of(8), of(9)), (&[2, 3][..], &[2, 3][..]), "the root copies once all has arrived");
    assert_eq!(graph.transfers[8].dependencies, graph.transfers[9].dependencies, "stored once");
}

/// Copy trees wait for exactly those reduce trees whose chunks they carry.
#[test]
fn copy_trees_wait_for_the_chunks_they_carry() {
    let topology = topology_of_two();
    let builder = Builder::new(&topology, CollectiveKind::Allreduce, None, 3).phase(Action::Reduce);
    let builder = builder.tree(0, 1, &[(1, 0)]).tree(0, 2, &[(1, 0)]).tree(1, 3, &[(0, 1)]);
    let builder = builder.phase(Action::Copy);
    let builder = builder.tree(0, 2, &[(0, 1)]).tree(0, 1, &[(0, 1)]).tree(1, 3, &[(1, 0)]);
    let (graph, verdict) = judge(&topology, &builder.schedule());
    let of = |transfer: usize| graph.dependencies_of(&graph.transfers[transfer]);
    assert_eq!((of(3), of(4), of(5)), (&[0, 1][..], &[1][..], &[2][..]));
    // Three chunks each way in either phase, of a vector of six.
    assert_eq!(verdict.algbw, rate(1, 1));
}

#[test]
fn rooted_collectives_on_a_path() {
    let topology = path_3();
    let schedule = |kind, action, trees: &[(u32, &[(u32, u32)])]| {
        let builder = Builder::new(&topology, kind, Some(0), 4).phase(action);
        trees.iter().fold(builder, |builder, &(root, hops)| builder.tree(root, 4, hops)).schedule()
    };
    let broadcast = schedule(CollectiveKind::Broadcast, Action::Copy, &[(0, &[(0, 1), (1, 2)])]);
    let reduce = schedule(CollectiveKind::Reduce, Action::Reduce, &[(0, &[(2, 1), (1, 0)])]);
    let gather = schedule(CollectiveKind::Gather, Action::Copy, &[(1, &[(1, 0)]), (2, &[(2, 1), (1, 0)])]);
    let scatter = schedule(CollectiveKind::Scatter, Action::Copy, &[(1, &[(0, 1)]), (2, &[(0, 1), (1, 2)])]);
    // The message passes each link once; two of the three shares pass the link at the root.
    for (schedule, expected, trees) in
        [(broadcast, rate(1, 1), 4), (reduce, rate(1, 1), 4), (gather, rate(3, 2), 8), (scatter, rate(3, 2), 8)]
    {
        let (_, verdict) = judge(&topology, &schedule);
        assert_eq!((verdict.algbw, verdict.tree_count, verdict.depth_max), (expected, trees, 2), "{schedule:?}");
    }
}

/// A hop may be divided among parallel links; here two of unequal capacity, so 5 chunks in the time of 2 on one.
#[test]
fn carriers_share_a_hop() {
    let mut draft = TopologyDraft::default();
    draft.add_compute("r0");
    draft.add_compute("r1");
    let capacity = |factor| Capacity::from_bytes_per_sec(factor * CAPACITY).unwrap();
    draft.add_link("r0", "r1", capacity(2), Latency::from_nanos(1));
    draft.add_link("r0", "r1", capacity(3), Latency::from_nanos(2));
    let topology = draft.build(&TopologyLimits::STANDARD).unwrap();
    let builder = Builder::new(&topology, CollectiveKind::Broadcast, Some(0), 5).phase(Action::Copy);
    let mut schedule = builder.tree(0, 5, &[(0, 1)]).schedule();
    let canopy_schedule::Shape::Forest(forest) = &mut schedule.shape else { panic!("not a forest") };
    let other = forest.routes.push(&[canopy_topology::LinkIndex::new(1)]);
    forest.carriers[0].chunk_count = 2;
    forest.carriers.push(canopy_schedule::Carrier { route: other, chunk_count: 3 });
    forest.hops[0].carriers.end = 2;
    let (_, verdict) = judge(&topology, &schedule);
    assert_eq!(verdict.algbw, rate(5, 1));
}

/// A load of nearly 2⁶⁴ chunks is exact: here (2⁶³ − 1) chunks per share of two ranks.
#[test]
fn greatest_vector_is_exact() {
    let topology = topology_of_two();
    let chunks = u64::MAX / 2;
    let builder = Builder::new(&topology, CollectiveKind::Allgather, None, chunks).phase(Action::Copy);
    let (_, verdict) = judge(&topology, &builder.tree(0, chunks, &[(0, 1)]).tree(1, chunks, &[(1, 0)]).schedule());
    assert_eq!((verdict.algbw, verdict.tree_count), (rate(2, 1), u64::MAX - 1));
}

/// An order may also be implied by transfers of other chunks.
#[test]
fn order_through_other_chunks_counts() {
    let topology = topology_of_two();
    let builder = Builder::new(&topology, CollectiveKind::Allreduce, None, 1).phase(Action::Reduce);
    let builder = builder.tree(0, 1, &[(1, 0)]).tree(1, 1, &[(0, 1)]).phase(Action::Copy);
    let (mut graph, _) = judge(&topology, &builder.tree(0, 1, &[(0, 1)]).tree(1, 1, &[(1, 0)]).schedule());
    // Transfer 2 copies chunk 0 back and waits for 0. Let 1, of the other chunk, wait for 0, and 2 for 1 only.
    graph.dependencies = vec![0, 1];
    graph.transfers[1].dependencies = 0..1;
    graph.transfers[2].dependencies = 1..2;
    graph.transfers[3].dependencies = 1..2;
    assert!(check(&topology, &graph).is_ok());
    graph.transfers[1].dependencies = 0..0;
    assert!(check(&topology, &graph).is_err());
}

/// Random trees with random routes: whatever the compiler makes of a sound forest, the judge accepts.
#[test]
fn random_forests_are_accepted() {
    let topology = complete_with_switch(6);
    let mut random = Random(7);
    for _ in 0..40 {
        for kind in CollectiveKind::ALL.into_iter().filter(|&kind| kind != CollectiveKind::AllToAll) {
            judge(&topology, &random_schedule(&topology, kind, &mut random));
        }
    }
}

fn topology_of_two() -> Topology {
    crate::forests::topology(2, 0, &[("r0", "r1"), ("r1", "r0")])
}

/// What the documentation of the graph states of its size.
#[test]
fn sizes_are_as_documented() {
    assert_eq!((size_of::<canopy_schedule::Transfer>(), size_of::<canopy_schedule::Batch>()), (24, 32));
    assert_eq!(size_of::<canopy_schedule::Carrier>(), 16);
}
