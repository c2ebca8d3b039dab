//! Which plan `auto` takes for messages of which size.

use canopy_plan::{Format, Profile, Target, read_plan};
use canopy_schedule::compile;
use canopy_simulate::{SimulateOptions, simulate};
use canopy_topology::generate;

use super::*;

/// A plan for messages of this size, by name, and its time at that size.
fn planned(topology: &TopologyInput, kind: CollectiveKind, size: u64, algorithm: Algorithm) -> Option<(String, u64)> {
    let order = Order { algorithm, size_bytes_max: size, ..order(topology.clone(), kind, vec![Format::Json.usual()]) };
    let plan = produce(&order, &Witness::default()).ok()?.plan.plan;
    let file = read_plan(plan.artifacts[0].content.as_deref()?, &TopologyLimits::STANDARD).unwrap();
    let graph = compile(&file.topology, &file.schedule).unwrap();
    let options = SimulateOptions::usual(size, 1_000_000_000);
    let time = simulate(&file.topology, &graph, &options, &|| false).unwrap().time_ps;
    Some((plan.algorithm, time))
}

/// What `auto` takes is as fast as everything that needs no long search and has a plan.
#[track_caller]
fn check_fastest(topology: &TopologyInput, kind: CollectiveKind, size: u64) -> String {
    let (name, time) = planned(topology, kind, size, Algorithm::Auto).unwrap();
    let others = [
        Algorithm::Forest,
        Algorithm::Flow,
        Algorithm::Bfb,
        Algorithm::Tacos,
        Algorithm::Kautz,
        Algorithm::KautzM,
        Algorithm::Dfc2,
        Algorithm::Dfc2Do,
        Algorithm::Multitree,
        Algorithm::Direct,
        Algorithm::Pairwise,
        Algorithm::Bruck,
        Algorithm::RecursiveDoubling,
        Algorithm::Binomial,
        Algorithm::DoubleTree,
    ];
    for other in others {
        if let Some((_, by_other)) = planned(topology, kind, size, other) {
            assert!(time <= by_other, "{kind} of {size}: {name} {time}, {other} {by_other}");
        }
    }
    name
}

/// The same network under other names and with other ranks.
fn shuffled(text: &str, turn: u32) -> TopologyInput {
    let network = generate(text, &TopologyLimits::STANDARD).unwrap();
    let count = network.rank_count();
    let name = |node: u32| format!("m{:03}", (node * turn + 1) % count);
    let mut nodes: Vec<String> = (0..count).map(name).collect();
    nodes.sort();
    let nodes: Vec<String> = nodes.iter().map(|id| format!("{{id: {id}}}")).collect();
    let mut yaml = format!("canopy: 1\nnodes: [{}]\nlinks:\n", nodes.join(", "));
    for link in network.links() {
        let (from, to, rate) = (name(link.from.number()), name(link.to.number()), link.capacity.bytes_per_sec());
        yaml += &format!("- {{from: {from}, to: {to}, bandwidth: {rate}B/s}}\n");
    }
    TopologyInput::Document { format: DocumentFormat::Yaml, content: yaml.into() }
}

/// Messages combined in as few steps as the network is wide where latencies count, trees of the best rate where they do not.
#[test]
fn small_messages_go_the_way_of_the_networks_family() {
    let (allreduce, reduce_scatter) = (CollectiveKind::Allreduce, CollectiveKind::ReduceScatter);
    // Of a family's two, whichever is the faster by some picoseconds: as given, and shuffled.
    for (text, turn, kind, own) in
        [("kautz:d=3,n=2", 5, allreduce, ["kautz-m", "kautz"]), ("dfc2:4x4", 3, reduce_scatter, ["dfc2", "dfc2"])]
    {
        for (topology, own) in [expression(text), shuffled(text, turn)].iter().zip(own) {
            assert_eq!(check_fastest(topology, kind, 1 << 10), own, "{text}");
            let large = planned(topology, kind, 1 << 30, Algorithm::Auto).map(|(name, _)| name);
            assert_eq!(large.as_deref(), Some("forest"), "{text}");
        }
    }
}

/// Also of networks on which others take too long to compare with.
#[test]
fn large_networks_are_compared_with_their_family() {
    for (text, own) in [("kautz:d=12,n=2", "kautz"), ("dfc2:12x12", "dfc2")] {
        let made = |size, algorithm| planned(&expression(text), CollectiveKind::Broadcast, size, algorithm).unwrap();
        let (small, time) = made(1 << 10, Algorithm::Auto);
        assert_eq!(small, own, "{text}");
        // Fewer hops, each of an α.
        let (_, by_trees) = made(1 << 10, Algorithm::Forest);
        assert!(time + 900_000 < by_trees, "{text}: {time}, by trees {by_trees}");
        assert_eq!(made(1 << 30, Algorithm::Auto).0, "forest", "{text}");
    }
}

#[test]
fn every_collective_has_the_fastest_plan_at_its_size() {
    for text in ["kautz:d=2,n=2", "dfc2:2x3", "dgx-a100:boxes=2,gpus=2", "mesh:2x3"] {
        for kind in CollectiveKind::ALL {
            for size in [1 << 10, 1 << 14] {
                check_fastest(&expression(text), kind, size);
            }
        }
    }
}

#[test]
fn large_messages_get_the_best_rate_everywhere() {
    for (text, kind, name) in [
        ("ring:8", CollectiveKind::Allgather, "forest"),
        ("torus:3x3", CollectiveKind::Allreduce, "forest"),
        ("dgx-a100:boxes=2", CollectiveKind::Broadcast, "forest"),
        ("dfc2:3x3", CollectiveKind::AllToAll, "flow"),
        ("kautz:d=2,n=2", CollectiveKind::Scatter, "flow"),
    ] {
        assert_eq!(planned(&expression(text), kind, 1 << 30, Algorithm::Auto).unwrap().0, name, "{text} {kind}");
    }
}

/// The limit on chunks that flows keep to where a runtime's file is made is none of those that know no such limit.
#[test]
fn files_of_runtimes_get_short_routes_too() {
    let outputs = vec![Target::from(Profile::Msccl)];
    let order = order(expression("dgx-a100:boxes=2,gpus=4"), CollectiveKind::AllToAll, outputs);
    let small = Order { size_bytes_max: 1 << 10, ..order.clone() };
    let made = |order: &Order| produce(order, &Witness::default()).unwrap().plan.plan.algorithm;
    assert_eq!((made(&small), made(&order)), ("direct".to_owned(), "flow".to_owned()));
}
