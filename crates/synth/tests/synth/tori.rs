//! Tori, healthy and with faults, in any numbering: plans against bounds that are added up again, and against their
//! trees.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it stands, helpers included")]

use canopy_schedule::{
    Collective, CollectiveKind, LinkLoads, Schedule, Seats, Shape, Shares, Verdict, certified_bound, check,
    check_orbits_until, compile,
};
use canopy_synth::symmetric::{PlannedOrbits, orbits, torus};
use canopy_topology::{LinkIndex, Rate, Ratio, Topology, TopologyDraft, TopologyLimits, generate};

const KINDS: [CollectiveKind; 3] =
    [CollectiveKind::Allgather, CollectiveKind::ReduceScatter, CollectiveKind::Allreduce];

fn network(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::UNLIMITED).unwrap()
}

/// The plan, what it reaches, and what nothing exceeds.
#[track_caller]
fn planned(topology: &Topology, kind: CollectiveKind) -> (PlannedOrbits, Verdict, Rate) {
    let planned = orbits(topology, &torus(topology).unwrap(), kind).unwrap();
    let collective = Collective::new(kind, None, topology.rank_count()).unwrap();
    let verdict = check_orbits_until(topology, collective, &Shares::Equal, &planned.orbits, &|| false).unwrap();
    let bound = certified_bound(topology, collective, &Shares::Equal, &planned.certificate).unwrap();
    assert!(verdict.algbw <= bound, "{} {bound}", verdict.algbw);
    (planned, verdict, bound)
}

/// Random numbers, the same on every machine.
struct Draws(u64);

impl Draws {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % limit
    }
}

/// The same network with ranks in another order, under other names.
fn shuffled(topology: &Topology, draws: &mut Draws) -> Topology {
    let mut order: Vec<usize> = (0..topology.nodes().len()).collect();
    (1..order.len()).for_each(|at| order.swap(at, draws.below(at + 1)));
    let mut names = vec![String::new(); order.len()];
    let mut draft = TopologyDraft::default();
    for (number, &node) in order.iter().enumerate() {
        names[node] = format!("n{number:06}");
        draft.add_compute(names[node].clone());
    }
    for link in topology.links() {
        draft.add_link(&names[link.from.index()], &names[link.to.index()], link.capacity, link.latency);
    }
    draft.build(&TopologyLimits::UNLIMITED).unwrap()
}

/// The trees of all ranks, judged one by one, load links as the rule says.
#[track_caller]
fn agree(topology: &Topology, kind: CollectiveKind, planned: &PlannedOrbits, verdict: &Verdict) {
    let collective = Collective::new(kind, None, topology.rank_count()).unwrap();
    let shape = Shape::Forest(planned.orbits.trees(topology).unwrap());
    let schedule = Schedule { collective, algorithm: "orbits".to_owned(), shares: Shares::Equal, shape };
    let graph = compile(topology, &schedule).unwrap();
    let all = check(topology, &graph).unwrap();
    assert_eq!((&verdict.algbw, verdict.busiest_link), (&all.algbw, all.busiest_link));
    let (by_trees, own) = (
        LinkLoads::of(topology, &graph).unwrap(),
        LinkLoads::of_orbits(topology, collective, &planned.orbits).unwrap(),
    );
    for link in (0..u32::try_from(topology.links().len()).unwrap()).map(LinkIndex::new) {
        assert_eq!(by_trees.chunks(link), own.chunks(link));
    }
}

#[test]
fn healthy_tori_are_planned_as_well_as_can_be() {
    for expression in [
        "torus:5",
        "torus:2x2",
        "torus:3x5",
        "torus:4x4",
        "torus:8x2",
        "torus:4x3x2",
        "torus:4x4x4",
        "torus:5x5x5",
        "torus:2x2x2x2",
        "torus:3x4x5x2",
        "torus:16x8",
        "torus:8x8x16",
    ] {
        let topology = network(expression);
        for kind in KINDS {
            let (planned, verdict, bound) = planned(&topology, kind);
            assert_eq!(verdict.algbw, bound, "{expression} {kind:?}");
            if topology.rank_count() < 200 {
                agree(&topology, kind, &planned, &verdict);
            }
        }
    }
}

#[test]
fn large_tori_take_few_trees() {
    for (expression, trees) in [("torus:32x32x16", 2), ("torus:16x16x16x8", 8), ("torus:64x256", 4)] {
        let (planned, verdict, bound) = planned(&network(expression), CollectiveKind::Allgather);
        assert_eq!((verdict.algbw, planned.orbits.chunks_per_share), (bound, trees), "{expression}");
        assert_eq!(planned.orbits.seats, Seats::InOrder { empty: Vec::new() });
    }
}

#[test]
fn the_order_and_the_names_of_ranks_do_not_matter() {
    let mut draws = Draws(9);
    for expression in ["torus:5", "torus:3x5", "torus:4x4", "torus:4x3x2", "torus:6x5x7", "torus:3x3x3x3", "torus:16x8"]
    {
        let plain = network(expression);
        for _ in 0..3 {
            let topology = shuffled(&plain, &mut draws);
            let (planned, verdict, bound) = planned(&topology, CollectiveKind::Allgather);
            assert_eq!(verdict.algbw, bound, "{expression}");
            if topology.rank_count() < 200 {
                agree(&topology, CollectiveKind::Allgather, &planned, &verdict);
            }
        }
    }
}

#[test]
fn other_networks_are_no_tori() {
    for expression in ["mesh:4x4", "dgx-h100:boxes=2", "dims:ring5+fc5", "dims:fc5", "dims:ring4+switch4"] {
        assert_eq!(torus(&network(expression)), None, "{expression}");
    }
}

/// Networks of twisted lines have symmetries that move each rank to each other all the same.
#[test]
fn twisted_tori_are_planned_as_well_as_can_be() {
    let mut draws = Draws(31);
    for expression in ["twisted-torus:8x4", "twisted-torus:12x6", "twisted-torus:4x4x8", "tpu-v5p:4x4x8,twist=true"] {
        let plain = network(expression);
        for topology in [shuffled(&plain, &mut draws), plain] {
            for kind in KINDS {
                let (planned, verdict, bound) = planned(&topology, kind);
                assert_eq!(verdict.algbw, bound, "{expression} {kind:?}");
                agree(&topology, kind, &planned, &verdict);
            }
            let found = torus(&topology).unwrap();
            assert!(found.steps.iter().any(|step| step.iter().sum::<u32>() != 1), "{found:?}");
        }
    }
}

/// Rates of dimensions: links are loaded in proportion to them, exactly where 8 trees do.
#[test]
fn dimensions_may_differ_in_rate() {
    for (expression, least) in [
        ("dims:ring8+ring8,bw=20GB/s+10GB/s", 1.0),
        ("dims:ring5+ring4+ring3,bw=30GB/s+20GB/s+10GB/s", 1.0),
        ("dims:ring8+ring2+ring8,bw=100GB/s+100GB/s+50GB/s", 1.0),
        ("dims:ring8+ring4+ring16,bw=100GB/s+50GB/s+30GB/s", 0.999),
        ("dims:ring16+ring2+ring8,bw=10GB/s+7GB/s+3GB/s", 0.999),
        // The seats of one slow line have no shortest path but along it: 7/2 against 63/22 for all.
        ("dims:ring8+ring8,bw=10GB/s+1GB/s", 0.81),
    ] {
        let topology = network(expression);
        for kind in KINDS {
            let (planned, verdict, bound) = planned(&topology, kind);
            let ratio = verdict.algbw.ratio_to(&bound).unwrap();
            assert!(if least < 1.0 { ratio.to_f64() > least } else { ratio.is_one() }, "{expression}: {ratio}");
            if topology.rank_count() < 130 {
                agree(&topology, kind, &planned, &verdict);
            }
        }
    }
    let steep = planned(&network("dims:ring8+ring8,bw=10GB/s+1GB/s"), CollectiveKind::Allgather);
    assert_eq!(steep.1.algbw.ratio_to(&steep.2), Ratio::new(9_u32, 11_u32));
}

/// What is lost beside a fault is shared by the other links into its neighbours.
#[test]
fn faults_cost_what_the_bound_says_and_little_more() {
    for (faults, least) in [("links:1", 0.995), ("gpus:1", 0.985), ("links:5+gpus:5", 0.99), ("links:10", 0.99)] {
        for seed in 1..6 {
            let topology = network(&format!("torus:8x8x16,faults={faults}+seed:{seed}"));
            for kind in [CollectiveKind::Allgather, CollectiveKind::ReduceScatter] {
                let (_, verdict, bound) = planned(&topology, kind);
                let ratio = verdict.algbw.ratio_to(&bound).unwrap().to_f64();
                assert!(ratio >= least, "{faults} {seed}: {ratio}");
            }
        }
    }
    for seed in 1..4 {
        let topology = network(&format!("torus:24x32,faults=links:4+gpus:3+seed:{seed}"));
        let (_, verdict, bound) = planned(&topology, CollectiveKind::Allgather);
        let ratio = verdict.algbw.ratio_to(&bound).unwrap().to_f64();
        assert!(ratio >= 0.9, "{seed}: {ratio}");
    }
}

/// Random tori with random rates and faults, in random order: the trees load links as the rule says, and where there is
/// no plan, faults are next to each other.
#[test]
fn random_tori_load_links_as_their_trees_do() {
    let mut draws = Draws(2024);
    let (mut made, mut patched, mut none) = (0, 0, 0);
    for _ in 0..200 {
        let dimensions = 2 + draws.below(3);
        let sides: Vec<usize> = (0..dimensions).map(|_| 2 + draws.below(5)).collect();
        let ranks: usize = sides.iter().product();
        if !(8..=160).contains(&ranks) {
            continue;
        }
        let rates: Vec<String> = sides.iter().map(|_| format!("{}GB/s", 1 + draws.below(3))).collect();
        let rings: Vec<String> = sides.iter().map(|side| format!("ring{side}")).collect();
        let faults = ["", ",faults=links:1", ",faults=gpus:1", ",faults=links:1+gpus:1", ",faults=links:3@1/2"];
        let faults = faults[draws.below(5)];
        let seed = if faults.is_empty() { String::new() } else { format!("+seed:{}", draws.below(1000)) };
        let expression = format!("dims:{},bw={}{faults}{seed}", rings.join("+"), rates.join("+"));
        let plain = network(&expression);
        let topology = if draws.below(2) == 0 { plain } else { shuffled(&plain, &mut draws) };
        let kind = KINDS[draws.below(3)];
        let Some(found) = torus(&topology) else {
            assert!(faults.contains("1") && ranks < 40, "{expression}");
            none += 1;
            continue;
        };
        let Some(_) = orbits(&topology, &found, kind) else {
            assert!(faults.contains('1') && ranks < 16, "{expression}");
            none += 1;
            continue;
        };
        let (planned, verdict, _) = planned(&topology, kind);
        agree(&topology, kind, &planned, &verdict);
        made += 1;
        patched += usize::from(!planned.orbits.patches.is_empty());
    }
    assert!(made > 80 && patched > 40 && none < made / 4, "{made} {patched} {none}");
}

/// Of a thousand ranks, with faults of both kinds, too.
#[test]
fn trees_of_a_larger_torus_load_links_as_the_rule_says() {
    let topology = network("torus:8x8x16,faults=links:5+gpus:5+seed:1");
    let (planned, verdict, _) = planned(&topology, CollectiveKind::Allgather);
    agree(&topology, CollectiveKind::Allgather, &planned, &verdict);
}

/// The same plan for the same network, whatever else ran before.
#[test]
fn plans_are_reproducible() {
    for expression in ["torus:6x5x4", "torus:8x8x16,faults=links:3+gpus:2+seed:3"] {
        let topology = network(expression);
        let plan = |kind| orbits(&topology, &torus(&topology).unwrap(), kind);
        for kind in KINDS {
            assert_eq!(plan(kind), plan(kind));
        }
        assert_eq!(plan(CollectiveKind::Broadcast), None);
        // Numbers as generators give them need no list of seats, also where ranks are lost.
        assert!(matches!(plan(KINDS[0]).unwrap().orbits.seats, Seats::InOrder { .. }), "{expression}");
    }
}
