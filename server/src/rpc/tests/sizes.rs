//! Which plan `auto` takes for messages of which size.

use canopy_baselines::algorithms;
use canopy_import::FileKind;
use canopy_plan::{Format, Profile, Target, read_plan};
use canopy_schedule::compile;
use canopy_simulate::{SimulateOptions, simulate};
use canopy_topology::{Capacity, Latency, TopologyDraft, generate, to_yaml};
use proptest::prelude::*;

use super::*;

/// A plan for messages of a stated size.
struct Timed {
    algorithm: String,
    /// Its time at that size.
    time_ps: u64,
    /// What it says that it was not compared with.
    note: String,
}

/// A plan for messages of this size.
fn timed(topology: &TopologyInput, kind: CollectiveKind, size: u64, algorithm: Algorithm) -> Option<Timed> {
    timed_with(Order::ALPHA_NS_DEFAULT, (topology, kind, size), algorithm)
}

/// The same where each message takes so long.
fn timed_with(
    alpha_ns: u64,
    (topology, kind, size): (&TopologyInput, CollectiveKind, u64),
    algorithm: Algorithm,
) -> Option<Timed> {
    let states_default_size = size == Order::SIZE_BYTES_MAX_DEFAULT;
    let order = order(topology.clone(), kind, vec![Format::Json.usual()]);
    made(&Order { algorithm, size_bytes_max: size, states_default_size, alpha_ns, ..order })
}

fn made(order: &Order) -> Option<Timed> {
    let stored = produce(order, &Witness::default()).ok()?.plan;
    let file = read_plan(stored.plan.artifacts[0].content.as_deref()?, &TopologyLimits::STANDARD).unwrap();
    let graph = compile(&file.topology, &file.schedule).unwrap();
    let alpha = Latency::from_nanos(order.alpha_ns);
    let options = SimulateOptions { alpha, ..SimulateOptions::usual(order.size_bytes_max, 1_000_000_000) };
    let time_ps = simulate(&file.topology, &graph, &options, &|| false).unwrap().time_ps;
    let note = stored.warnings.iter().find(|warning| warning.code == "NOT_COMPARED");
    let note = note.map(|warning| warning.text.clone()).unwrap_or_default();
    Some(Timed { algorithm: stored.plan.algorithm, time_ps, note })
}

/// A plan for messages of this size, by name, and its time at that size; a gibibyte is not stated.
fn planned(topology: &TopologyInput, kind: CollectiveKind, size: u64, algorithm: Algorithm) -> Option<(String, u64)> {
    let order = Order { algorithm, size_bytes_max: size, ..order(topology.clone(), kind, vec![Format::Json.usual()]) };
    made(&order).map(|made| (made.algorithm, made.time_ps))
}

/// What `auto` takes is as fast as every algorithm that has a plan, needs no integer programs, and is not named in its
/// note.
#[track_caller]
fn check_fastest(topology: &TopologyInput, kind: CollectiveKind, size: u64) -> String {
    check_fastest_with(Order::ALPHA_NS_DEFAULT, topology, kind, size)
}

/// The same where each message takes so long.
#[track_caller]
fn check_fastest_with(alpha_ns: u64, topology: &TopologyInput, kind: CollectiveKind, size: u64) -> String {
    let timed = |algorithm| timed_with(alpha_ns, (topology, kind, size), algorithm);
    let Timed { algorithm: name, time_ps, note } = timed(Algorithm::Auto).unwrap();
    for other in algorithms() {
        // Proofs take their time on all but the smallest networks.
        let is_named = note.split([' ', ',']).any(|word| word == other.name()) || other.name().contains("ilp");
        let by_other = if is_named { None } else { timed(other) };
        if let Some(Timed { time_ps: by_other, .. }) = by_other {
            // Times are rounded to picoseconds message by message.
            let rounding = by_other / 1_000_000;
            assert!(
                time_ps <= by_other + rounding,
                "{topology:?}: {kind} of {size}: {name} {time_ps}, {other} {by_other}; {note}"
            );
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
    TopologyInput::Document { kind: Some(FileKind::Own(DocumentFormat::Yaml)), content: yaml.into() }
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

/// A ring that comes by the root several times has ways to it of less than half its length.
#[test]
fn rings_that_meet_a_rank_again_are_compared() {
    check_fastest(&expression("random-regular:n=8,d=3,seed=926"), CollectiveKind::Gather, 1 << 10);
}

/// A binomial tree of five ranks is two messages deep, though it has three steps.
#[test]
fn trees_that_are_not_full_are_compared() {
    check_fastest(&expression("random-euler:n=5,switches=1,seed=268"), CollectiveKind::Reduce, 1 << 10);
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

/// Time-stepped flows and integer programs would take minutes for 24 ranks: they are named, if they could be faster.
#[test]
fn what_takes_too_long_to_compare_is_named() {
    let plan = timed(&expression("random-regular:n=24,d=4,seed=1"), CollectiveKind::AllToAll, 1 << 20, Algorithm::Auto);
    let expected = "tacos-ilp, tsmcf, pmcf, pmcf-shortest, ilp-disjoint and ilp-shortest were not compared at 24 ranks \
                    and 1048576 bytes: that takes too long; set `algorithm` to try one";
    assert_eq!(plan.unwrap().note, expected);
}

/// Rates of many digits make messages of all sizes, too many to simulate: plans that are not far from the best rate are named.
#[test]
fn what_may_be_faster_is_named_where_the_plan_is_too_large() {
    let topology = of_family("fat-tree:k=4", None, (2, 6137));
    let order = order(topology, CollectiveKind::Allgather, vec![Format::Json.usual()]);
    let made = produce(&Order { states_default_size: true, ..order }, &Witness::default()).unwrap().plan;
    let note = made.warnings.iter().find(|warning| warning.code == "NOT_COMPARED").unwrap();
    assert!(made.plan.algorithm == "forest" && note.text.contains("stages"), "{note:?}");
}

/// Rates that differ by parts in 10^5 make paths of single routes faster by one part in 1,400 than the flow of the same rate.
#[test]
fn what_may_be_faster_by_little_is_named() {
    check_fastest(&of_family("fat-tree:k=4", None, (1, 4471)), CollectiveKind::AllToAll, 1 << 30);
}

/// Nothing is compared for large messages of no stated size.
#[test]
fn a_size_that_is_stated_is_compared_even_if_it_is_the_default() {
    let of = |states_default_size| {
        let order = order(expression("torus:4x4"), CollectiveKind::ReduceScatter, vec![Format::Json.usual()]);
        made(&Order { states_default_size, ..order }).unwrap()
    };
    let (stated, usual) = (of(true), of(false));
    assert_eq!((stated.algorithm.as_str(), usual.algorithm.as_str()), ("orbits", "forest"));
    assert!(stated.time_ps < usual.time_ps);
}

/// `CANOPY_CASES=400 cargo test -p canopy-server --lib sizes::auto` runs more than the usual few.
fn cases() -> u32 {
    std::env::var("CANOPY_CASES").ok().map_or(16, |text| text.parse().expect("CANOPY_CASES is a number"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    /// No algorithm that is named is faster than what `auto` takes, unless `auto` says that it was not compared.
    #[test]
    fn auto_is_never_beaten_by_a_name(
        (ranks, switches, seed) in (4_u32..11, 0_u32..3, 1_u32..1_000),
        is_regular: bool,
        kind in prop::sample::select(CollectiveKind::ALL.to_vec()),
        size in prop::sample::select(vec![1_u64 << 10, 1 << 16, 1 << 20, 1 << 23, 1 << 26, 1 << 30]),
    ) {
        let text = match is_regular {
            true => format!("random-regular:n={},d=3,seed={seed}", 2 * (ranks / 2) + 4),
            false => format!("random-euler:n={ranks},switches={switches},seed={seed}"),
        };
        check_fastest(&expression(&text), kind, size);
    }
}

/// Networks of every family that are small enough for all algorithms.
const FAMILIES: [&str; 20] = [
    "torus:3x3",
    "torus:2x3x2",
    "mesh:3x3",
    "ring:5,dir=uni",
    "hypercube:3",
    "complete:6",
    "bipartite:3x3",
    "kautz:d=2,n=2",
    "genkautz:n=9,d=2",
    "circulant:n=9,offsets=1+2",
    "debruijn:d=2,n=3",
    "jellyfish:n=8,d=3,seed=5",
    "dfc2:3x3",
    "dragonfly:3x4",
    "twisted-torus:4x2",
    "dgx-a100:boxes=2,gpus=4",
    "mi250:boxes=1",
    "rail:boxes=2,gpus=4",
    "fat-tree:k=4",
    "leaf-spine:leaves=2,hosts=3,spines=2",
];

/// A network of a family: with hosts if it may have any, some links slower in one direction, rates of many digits.
fn of_family(family: &str, host: Option<u64>, (slow, seed): (u64, u64)) -> TopologyInput {
    let with_host =
        host.and_then(|host| generate(&format!("{family},host={host}GB/s"), &TopologyLimits::STANDARD).ok());
    let plain = with_host.unwrap_or_else(|| generate(family, &TopologyLimits::STANDARD).unwrap());
    let mut draft = TopologyDraft::default();
    for node in plain.nodes() {
        draft.add_node(node.id.as_str(), node.kind, node.attributes.clone());
    }
    let count = plain.links().len() as u64;
    for (number, link) in (0..).zip(plain.links()) {
        let [from, to] = [link.from, link.to].map(|node| plain.node(node).id.clone());
        // A third of the networks keep their rates but for the slow links.
        let odd = if seed % 3 == 0 { 0 } else { (seed + 7 * number) * 0x9e37_79b9 % 10_000_019 };
        let divisor = if (number + seed) % count < slow { 2 + seed % 3 } else { 1 };
        let rate = (link.capacity.bytes_per_sec() + odd) / divisor;
        draft.add_link(from, to, Capacity::from_bytes_per_sec(rate).unwrap(), link.latency);
    }
    let content = to_yaml(&draft.build(&TopologyLimits::STANDARD).unwrap());
    TopologyInput::Document { kind: Some(FileKind::Own(DocumentFormat::Yaml)), content: content.into() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    /// The same on networks of every family, with hosts, one-way faults and odd rates.
    #[test]
    fn auto_is_never_beaten_on_families(
        family in prop::sample::select(FAMILIES.to_vec()),
        host in prop::option::of(20_u64..140),
        slow in 0_u64..4,
        seed in 0_u64..10_000,
        kind in prop::sample::select(CollectiveKind::ALL.to_vec()),
        size in prop::sample::select(vec![1_u64 << 10, 1 << 16, 1 << 20, 1 << 23, 1 << 26, 1 << 30]),
    ) {
        check_fastest(&of_family(family, host, (slow, seed)), kind, size);
    }
}

/// What a message takes decides, too: where it is little, the plan of the best rate is the fastest, where it is much, one of
/// fewer steps.
#[test]
fn plans_are_compared_with_what_a_message_takes() {
    let topology = TopologyInput::Expression("dgx-a100:boxes=2".to_owned());
    let named = |alpha_ns| check_fastest_with(alpha_ns, &topology, CollectiveKind::Allreduce, 4 << 20);
    let (little, much) = (named(0), named(200_000));
    assert_ne!(little, much);
}
