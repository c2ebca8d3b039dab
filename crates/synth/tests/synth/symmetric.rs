//! Networks of boxes, sound and with faults, named and shuffled: rates against bounds that are added up again.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it stands, helpers included")]

use canopy_schedule::{
    Certificate, Collective, CollectiveKind, Schedule, Shape, Shares, Verdict, certified_bound, check,
    check_stages_until, compile,
};
use canopy_synth::symmetric::{Planned, boxes, stages, stages_inside_first};
use canopy_topology::{NodeKind, Rate, Topology, TopologyDraft, TopologyLimits, generate};

const KINDS: [CollectiveKind; 3] =
    [CollectiveKind::Allgather, CollectiveKind::ReduceScatter, CollectiveKind::Allreduce];

fn network(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::UNLIMITED).unwrap()
}

/// The plan, what it reaches, and what nothing exceeds.
fn planned(topology: &Topology, kind: CollectiveKind, chunks_per_share: u64) -> (Planned, Verdict, Rate) {
    let found = boxes(topology).next().unwrap();
    let planned = stages(topology, &found, kind, chunks_per_share).unwrap();
    let collective = Collective::new(kind, None, topology.rank_count()).unwrap();
    let verdict = check_stages_until(topology, collective, &Shares::Equal, &planned.stages, &|| false).unwrap();
    let bound = certified_bound(topology, collective, &Shares::Equal, &planned.certificate).unwrap();
    assert!(verdict.algbw <= bound, "{} {bound}", verdict.algbw);
    (planned, verdict, bound)
}

/// The same network with ranks and switches in another order, under other names.
fn shuffled(topology: &Topology, seed: u64) -> Topology {
    let mut draws = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut order: Vec<(u64, usize)> = (0..topology.nodes().len())
        .map(|node| {
            draws ^= draws << 13;
            draws ^= draws >> 7;
            draws ^= draws << 17;
            (draws, node)
        })
        .collect();
    order.sort_unstable();
    let mut names = vec![String::new(); order.len()];
    let mut draft = TopologyDraft::default();
    for (number, &(_, node)) in order.iter().enumerate() {
        names[node] = format!("n{number:06}");
        match topology.nodes()[node].kind {
            NodeKind::Compute => draft.add_compute(names[node].clone()),
            _ => draft.add_switch(names[node].clone()),
        }
    }
    for link in topology.links() {
        draft.add_link(&names[link.from.index()], &names[link.to.index()], link.capacity, link.latency);
    }
    draft.build(&TopologyLimits::UNLIMITED).unwrap()
}

const SOUND: [(&str, &[u32]); 17] = [
    ("dgx-h100:boxes=16", &[16]),
    ("dgx-a100:boxes=96", &[96]),
    ("rail:boxes=300,gpus=8,nv=450GB/s,nic=50GB/s", &[15, 20]),
    ("leaf-spine:leaves=8,hosts=8,spines=4,oversub=2", &[8, 8]),
    ("leaf-spine:leaves=4,hosts=16,spines=8,oversub=8", &[4, 16]),
    ("pod:boxes=64,su=16,rails=8,oversub=2", &[4, 16]),
    ("pod:boxes=64,su=8,rails=8,oversub=8", &[8, 8]),
    ("dragonfly-router:p=2,a=4,h=2", &[9, 4, 2]),
    ("dragonfly-router:p=4,a=8,h=4", &[33, 8, 4]),
    ("dragonfly-router:p=1,a=6,h=3", &[19, 6]),
    ("dragonfly-router:p=4,a=8,h=4,global=6GB/s,local=10GB/s", &[33, 8, 4]),
    // Every two groups of two routers are linked as their routers are.
    ("dragonfly-router:p=2,a=2,h=2", &[10, 2]),
    ("fat-tree:k=4", &[4, 2, 2]),
    ("fat-tree:k=8", &[8, 4, 4]),
    ("fat-tree:k=12,oversub=5", &[12, 6, 6]),
    ("fat-tree:k=16,oversub=25,host-bw=100GB/s", &[16, 8, 8]),
    ("leaf-spine:leaves=9,hosts=6,spines=4,oversub=3,host-bw=60GB/s", &[9, 6]),
];

#[test]
fn sound_networks_of_boxes_are_planned_as_well_as_can_be() {
    for (expression, digits) in SOUND {
        let topology = network(expression);
        for kind in KINDS {
            let (planned, verdict, bound) = planned(&topology, kind, 1);
            assert_eq!(verdict.algbw, bound, "{expression} {kind:?}");
            assert_eq!(planned.stages.grid.digits, digits, "{expression}");
        }
    }
}

#[test]
fn the_order_and_the_names_of_nodes_do_not_matter() {
    for (seed, (expression, digits)) in (1..).zip(SOUND) {
        let topology = shuffled(&network(expression), seed);
        let (planned, verdict, bound) = planned(&topology, CollectiveKind::Allgather, 1);
        assert_eq!(verdict.algbw, bound, "{expression}");
        assert_eq!(planned.stages.grid.digits, digits, "{expression}");
    }
}

/// What the design promises of small machines, and of NIC faults with a number of chunks in which all divides.
#[test]
fn faults_cost_what_the_bound_says_and_little_more() {
    for (faults, chunks_per_share, least) in [
        ("nics:1", 1, 0.994),
        ("nics:1", 7, 1.0),
        ("nics:1@1/2", 15, 1.0),
        ("nics:4", 7, 0.999),
        ("gpus:1", 1, 0.994),
        ("nics:4+gpus:3", 1, 0.985),
        ("boxes:1", 1, 0.99),
        ("nics:20+gpus:20", 1, 0.97),
    ] {
        for machine in ["dgx-h100:boxes=128", "rail:boxes=128,gpus=8,nv=450GB/s,nic=50GB/s", "pod:boxes=128,su=128"] {
            for seed in 1..4 {
                let expression = format!("{machine},faults={faults}+seed:{seed}");
                let topology = network(&expression);
                for kind in [CollectiveKind::Allgather, CollectiveKind::ReduceScatter] {
                    let (_, verdict, bound) = planned(&topology, kind, chunks_per_share);
                    let ratio = verdict.algbw.ratio_to(&bound).unwrap().to_f64();
                    assert!(ratio >= least, "{expression} {kind:?}: {ratio}");
                }
            }
        }
    }
}

#[test]
fn two_stages_lose_little_to_faults_that_meet() {
    for seed in 1..6 {
        let expression = format!("dgx-h100:boxes=2048,faults=nics:4+gpus:3+seed:{seed}");
        let (planned, verdict, bound) = planned(&network(&expression), CollectiveKind::Allgather, 1);
        assert_eq!(planned.stages.grid.digits, [32, 64]);
        let ratio = verdict.algbw.ratio_to(&bound).unwrap().to_f64();
        assert!(ratio >= 0.995, "{expression}: {ratio}");
    }
}

/// Of the run of a box with a dead NIC others send a part, so that an allreduce hardly notices it.
#[test]
fn boxes_with_slow_nics_pass_on_less_in_an_allreduce() {
    for faults in ["nics:1", "nics:1@1/2", "gpus:1", "nics:4+gpus:3"] {
        let expression = format!("dgx-h100:boxes=2048,faults={faults}+seed:1");
        let (_, verdict, bound) = planned(&network(&expression), CollectiveKind::Allreduce, 1);
        let ratio = verdict.algbw.ratio_to(&bound).unwrap().to_f64();
        assert!(ratio >= 0.98, "{expression}: {ratio}");
    }
}

/// A message must enter each rank and leave it: less than what all ranks need together only where one is very slow.
#[test]
fn an_allreduce_is_bounded_by_a_very_slow_rank() {
    for (part, is_slow) in [("1/4", true), ("3/4", false)] {
        let topology = network(&format!("fat-tree:k=8,faults=nics:1@{part}+seed:1"));
        let (planned, verdict, bound) = planned(&topology, CollectiveKind::Allreduce, 1);
        assert_eq!(matches!(planned.certificate, Certificate::Cut { .. }), is_slow, "{part}");
        if is_slow {
            assert_eq!(bound, Rate::new(25_000_000_000_u64, 4_u32).unwrap());
        }
        assert!(verdict.algbw <= bound);
    }
}

/// A switch between boxes that adds up saves messages which a partition into boxes would count.
#[test]
fn switches_that_add_up_are_bounded_by_cuts() {
    for (features, is_cut) in [("sharp=true", true), ("nvls=true", false), ("nvls=true,sharp=true", true)] {
        let topology = network(&format!("dgx-h100:boxes=16,{features}"));
        let (planned, verdict, bound) = planned(&topology, CollectiveKind::Allreduce, 1);
        assert_eq!(matches!(planned.certificate, Certificate::Cut { .. }), is_cut, "{features}");
        let expected = if is_cut { (400_000_000_000_u64, 1_u32) } else { (16 * 400_000_000_000, 30) };
        assert_eq!(bound, Rate::new(expected.0, expected.1).unwrap(), "{features}");
        assert!(verdict.algbw <= bound, "{features}");
    }
}

/// Dead and slow switches and links of a fabric, and missing ranks, which leave seats free: against the bound, and tree by
/// tree where there are few ranks.
#[test]
fn faults_of_fabrics_leave_plans_near_the_bound() {
    for (expression, least) in [
        ("dragonfly-router:p=4,a=8,h=4,faults=links-outside:1+seed:1", 1.0),
        ("dragonfly-router:p=2,a=4,h=2,down=g0r0-g1r0+g0r1-g0r2,degrade=g3r1-g3r2*1/2", 1.0),
        ("dragonfly-router:p=4,a=8,h=4,faults=links:12@1/2+seed:1", 0.98),
        ("dragonfly-router:p=4,a=8,h=4,faults=gpus:3+seed:1", 0.98),
        ("fat-tree:k=16,faults=gpus:5+seed:1", 0.98),
        ("fat-tree:k=16,faults=switches:3+seed:3", 1.0),
        ("fat-tree:k=8,nodes-down=c0+c1+p2a1,down=p1e0-p1a0+p1e0-p1a1", 1.0),
        ("fat-tree:k=8,oversub=5,host-bw=60GB/s,nodes-down=c0+c1+p2a1,degrade=p1e0-p1a0*1/3", 0.8),
        ("fat-tree:k=8,faults=links-outside:20@1/2+seed:1", 0.98),
        ("leaf-spine:leaves=16,hosts=16,spines=8,oversub=2,nodes-down=spine3", 1.0),
        // Uplinks of a leaf carry as much as one rank: its cut is the bound.
        ("leaf-spine:leaves=16,hosts=16,spines=8,oversub=16,down=leaf0-spine0+leaf0-spine1", 0.97),
        ("leaf-spine:leaves=16,hosts=16,spines=8,oversub=16,nodes-down=spine3", 0.95),
    ] {
        let topology = network(expression);
        for kind in KINDS {
            let (planned, verdict, bound) = planned(&topology, kind, 1);
            let ratio = verdict.algbw.ratio_to(&bound).unwrap().to_f64();
            // An allreduce is measured by what all parts need together.
            let least = if kind == CollectiveKind::Allreduce { least - 0.3 } else { least };
            assert!(ratio >= least, "{expression} {kind:?}: {ratio}");
            let collective = Collective::new(kind, None, topology.rank_count()).unwrap();
            let shape = Shape::Stages(planned.stages);
            let schedule = Schedule { collective, algorithm: String::new(), shares: Shares::Equal, shape };
            let by_trees = check(&topology, &compile(&topology, &schedule).unwrap()).unwrap();
            assert_eq!((by_trees.algbw, by_trees.busiest_link), (verdict.algbw, verdict.busiest_link), "{expression}");
        }
    }
}

/// 523 is a prime number, 524 = 4 · 131, and 525 = 21 · 25.
#[test]
fn a_number_of_boxes_without_factors_is_planned_beside_empty_ones() {
    for kind in KINDS {
        let (planned, verdict, bound) = planned(&network("dgx-h100:boxes=523"), kind, 1);
        let boxes = if kind == CollectiveKind::Allreduce { 525 } else { 524 };
        assert_eq!(planned.stages.grid.digits.iter().product::<u32>(), boxes);
        let ratio = verdict.algbw.ratio_to(&bound).unwrap().to_f64();
        assert!(ratio >= 0.99, "{kind:?} {ratio}");
    }
    let faulty = network("rail:boxes=523,gpus=8,nv=450GB/s,nic=50GB/s,faults=nics:2+gpus:1+seed:1");
    let (_, verdict, bound) = planned(&faulty, CollectiveKind::Allgather, 1);
    assert!(verdict.algbw.ratio_to(&bound).unwrap().to_f64() >= 0.98);
}

#[test]
fn networks_without_boxes_have_no_answer() {
    for expression in ["ring:8", "torus:4x4", "hypercube:3", "dgx-h100:boxes=1"] {
        let network = network(expression);
        let found: Vec<_> = boxes(&network).collect();
        assert!(found.iter().all(|found| found.ranks.len() > 1), "{expression}");
        assert!(expression == "dgx-h100:boxes=1" || found.is_empty(), "{expression}");
    }
}

/// Boxes that are slow for what their NICs bring: what goes in the box first makes up for nearly all of it.
#[test]
fn fast_nics_and_slow_boxes_come_close_to_the_cut_around_a_rank() {
    for (expression, stated, plain_at_most, least) in [
        ("rail:boxes=128,gpus=8,nv=60GB/s,nic=50GB/s", Some(8), 0.63, 0.991),
        ("rail:boxes=128,gpus=8,nv=60GB/s,nic=50GB/s", None, 0.63, 0.998),
        ("rail:boxes=2,gpus=8,nv=60GB/s,nic=50GB/s", None, 0.86, 0.997),
        ("rail:boxes=300,gpus=4,nv=100GB/s,nic=50GB/s", None, 0.9, 0.997),
        ("pod:boxes=64,su=16,rails=8,oversub=2,nv=200GB/s,nic=100GB/s", None, 0.77, 0.997),
        ("rail:boxes=256,gpus=8,nv=60GB/s,nic=50GB/s,faults=gpus:2+seed:1", None, 0.62, 0.94),
    ] {
        let topology = network(expression);
        for kind in KINDS {
            let (_, plain, bound) = planned(&topology, kind, 1);
            let found = boxes(&topology).next().unwrap();
            let planned = stages_inside_first(&topology, &found, kind, stated).unwrap();
            let collective = Collective::new(kind, None, topology.rank_count()).unwrap();
            let verdict =
                check_stages_until(&topology, collective, &Shares::Equal, &planned.stages, &|| false).unwrap();
            let ratio = |of: &Verdict| of.algbw.ratio_to(&bound).unwrap().to_f64();
            assert!(ratio(&plain) <= plain_at_most, "{expression} {kind:?}: {}", ratio(&plain));
            assert!((least..=1.0).contains(&ratio(&verdict)), "{expression} {kind:?}: {}", ratio(&verdict));
        }
    }
    for expression in ["dgx-h100:boxes=16", "mi250:boxes=8", "rail:boxes=1,gpus=8,nv=60GB/s,nic=50GB/s"] {
        let topology = network(expression);
        let found: Vec<_> = boxes(&topology).collect();
        let more = |found| stages_inside_first(&topology, found, CollectiveKind::Allgather, None);
        assert!(found.first().and_then(more).is_none(), "{expression}");
    }
}

/// The bound is the cut around a rank: N − 1 shares over its NIC and its link in the box. Racks of 72 are slow for what
/// their NICs bring, though they are 18 times as fast.
#[test]
fn racks_come_close_to_the_cut_around_a_rank() {
    for (racks, kind) in [2_u64, 4, 8].into_iter().flat_map(|racks| KINDS.map(|kind| (racks, kind))) {
        let topology = network(&format!("gb200-nvl72:racks={racks}"));
        let found = boxes(&topology).next().unwrap();
        let planned = stages_inside_first(&topology, &found, kind, None).unwrap();
        let collective = Collective::new(kind, None, topology.rank_count()).unwrap();
        let bound = certified_bound(&topology, collective, &Shares::Equal, &planned.certificate).unwrap();
        let phases: u64 = if kind == CollectiveKind::Allreduce { 2 } else { 1 };
        let ranks = racks * 72;
        assert_eq!(bound, Rate::new(ranks * 950_000_000_000, (ranks - 1) * phases).unwrap());
        let verdict = check_stages_until(&topology, collective, &Shares::Equal, &planned.stages, &|| false).unwrap();
        let ratio = verdict.algbw.ratio_to(&bound).unwrap().to_f64();
        assert!((0.997..=1.0).contains(&ratio), "{racks} {kind:?}: {ratio} {:?}", planned.stages.inside_first);
    }
}
