//! Bounds re-derived from certificates: one example per row of the table, refusals by name, and soundness: whatever
//! the judge accepts, no certificate that is accepted says less.

use canopy_schedule::{
    Blocks, Certificate, CertificateError, Collective, CollectiveKind, CutDirection, Shares, SharesError,
    certified_bound, check, compile,
};
use canopy_topology::{Attributes, NodeIndex, NodeKind, Rank, Rate, Topology, TopologyDraft, TopologyLimits};

use crate::forests::{CAPACITY, Random, complete_with_switch, one_way_ring, path_3, random_schedule, star, topology};
use crate::shapes::any_shape;

fn cut(direction: CutDirection, nodes: &[u32]) -> Certificate {
    Certificate::Cut { direction, nodes: nodes.iter().copied().map(NodeIndex::new).collect() }
}

fn partition(sets: &[&[u32]]) -> Certificate {
    let indices = |nodes: &&[u32]| nodes.iter().copied().map(NodeIndex::new).collect();
    Certificate::Partition { sets: sets.iter().map(indices).collect() }
}

fn bound(topology: &Topology, kind: CollectiveKind, certificate: &Certificate) -> Result<Rate, CertificateError> {
    certified_bound(topology, Collective::new(kind, None, topology.rank_count()).unwrap(), &Shares::Equal, certificate)
}

/// Capacities added up by hand.
#[test]
fn each_row_of_the_table() {
    use CollectiveKind::{Allgather, Allreduce, Broadcast, Gather, Reduce, ReduceScatter, Scatter};
    use CutDirection::{In, Out};
    // Ranks 0 to 3 around switch 4, and two more one-way links.
    let network = topology(
        4,
        1,
        &[
            ("r0", "s0"),
            ("s0", "r0"),
            ("r1", "s0"),
            ("s0", "r1"),
            ("r2", "s0"),
            ("s0", "r2"),
            ("r3", "s0"),
            ("s0", "r3"),
            ("r0", "r3"),
            ("r1", "r2"),
        ],
    );
    // Ranks 0, 1 and 2 and the switch: only links with rank 3 count, one in by the switch, two out.
    let most = [0, 1, 2, 4];
    for (kind, certificate, numerator, denominator) in [
        (Allgather, cut(Out, &most), 4 * 2, 3_u64),
        (ReduceScatter, cut(In, &most), 4, 3),
        (Broadcast, cut(Out, &most), 2, 1),
        (Reduce, cut(In, &most), 1, 1),
        (Scatter, cut(Out, &most), 4 * 2, 1),
        (Gather, cut(In, &most), 4, 1),
        (Allreduce, cut(Out, &most), 2, 1),
        (Allreduce, cut(In, &most), 1, 1),
        // The same from the other side.
        (Allgather, cut(In, &[3]), 4 * 2, 3),
        (ReduceScatter, cut(Out, &[3]), 4, 3),
        (Broadcast, cut(In, &[3]), 2, 1),
        (Reduce, cut(Out, &[3]), 1, 1),
        (Scatter, cut(In, &[3]), 4 * 2, 1),
        (Gather, cut(Out, &[3]), 4, 1),
        (Allreduce, cut(In, &[3]), 2, 1),
        // Rank 0 has two links out, rank 1 two, ranks 2 and 3 one each: 6 / (2·3), with the switch left out.
        (Allreduce, partition(&[&[0], &[1], &[2], &[3]]), 6, 6),
        // {0, 3} and {1, 2, switch}: two out of the first, two out of the second.
        (Allreduce, partition(&[&[0, 3], &[1, 2, 4]]), 2 + 2, 2),
    ] {
        let expected = Rate::new(numerator * CAPACITY, denominator).unwrap();
        assert_eq!(bound(&network, kind, &certificate), Ok(expected), "{kind} {certificate:?}");
    }
}

/// Zhao 2026 §4.4 on a ring of five: a single rank's only link must carry its share past four others.
#[test]
fn one_way_ring_of_five() {
    let topology = one_way_ring(5);
    let expected = Rate::new(5 * CAPACITY, 4_u32).unwrap();
    assert_eq!(bound(&topology, CollectiveKind::Allgather, &cut(CutDirection::Out, &[1, 2, 3, 4])), Ok(expected));
}

/// The path a–b–c: singletons prove 4/(2·2) = 1, which its allreduce reaches.
#[test]
fn path_allreduce_is_bounded_by_one() {
    let certificate = partition(&[&[0], &[1], &[2]]);
    assert_eq!(bound(&path_3(), CollectiveKind::Allreduce, &certificate), Ok(Rate::new(CAPACITY, 1_u32).unwrap()));
}

/// A set that nothing leaves proves that nothing can be done.
#[test]
fn unreachable_ranks_have_a_bound_of_zero() {
    let one_way = topology(2, 0, &[("r0", "r1")]);
    assert_eq!(bound(&one_way, CollectiveKind::Allgather, &cut(CutDirection::Out, &[1])), Ok(Rate::zero()));
}

/// Sums beyond 64 bits are exact: 16 links of nearly 2⁶⁴ and 17 ranks.
#[test]
fn great_capacities_are_exact() {
    let mut draft = TopologyDraft::default();
    (0..17).for_each(|rank| draft.add_compute(format!("r{rank}")));
    let capacity = canopy_topology::Capacity::from_bytes_per_sec(u64::MAX).unwrap();
    (1..17).for_each(|rank| draft.add_link("r0", format!("r{rank}"), capacity, canopy_topology::Latency::default()));
    let topology = draft.build(&TopologyLimits::STANDARD).unwrap();
    let expected = Rate::new(u128::from(u64::MAX) * 16 * 17, 1_u32).unwrap();
    assert_eq!(bound(&topology, CollectiveKind::Allgather, &cut(CutDirection::Out, &[0])), Ok(expected));
}

#[test]
fn malformed_cuts_are_refused() {
    use CutDirection::{In, Out};
    let topology = star(3);
    let place = || "the cut".to_owned();
    let wrong = |collective| CertificateError::WrongWay { collective, root: 0 };
    for (kind, certificate, expected) in [
        (CollectiveKind::Allgather, cut(Out, &[]), CertificateError::NoRankInside),
        (CollectiveKind::Allgather, cut(Out, &[3]), CertificateError::NoRankInside),
        (CollectiveKind::Allgather, cut(Out, &[0, 1, 2]), CertificateError::NoRankOutside),
        (CollectiveKind::Allgather, cut(In, &[3]), CertificateError::NoRankInside),
        (CollectiveKind::Broadcast, cut(Out, &[1]), wrong(CollectiveKind::Broadcast)),
        (CollectiveKind::Scatter, cut(In, &[0]), wrong(CollectiveKind::Scatter)),
        (CollectiveKind::Reduce, cut(Out, &[0]), wrong(CollectiveKind::Reduce)),
        (CollectiveKind::Gather, cut(In, &[1]), wrong(CollectiveKind::Gather)),
        (CollectiveKind::Scatter, cut(Out, &[0, 1, 2, 3]), CertificateError::NoRankOutside),
        (
            CollectiveKind::Allgather,
            cut(Out, &[0, 4]),
            CertificateError::UnknownNode { place: place(), node: 4, node_count: 4 },
        ),
        (
            CollectiveKind::Allgather,
            cut(Out, &[u32::MAX]),
            CertificateError::UnknownNode { place: place(), node: u32::MAX, node_count: 4 },
        ),
        (CollectiveKind::Allgather, cut(Out, &[1, 0]), CertificateError::Unsorted { place: place(), node: 1, next: 0 }),
        (CollectiveKind::Allgather, cut(Out, &[1, 1]), CertificateError::Unsorted { place: place(), node: 1, next: 1 }),
        (
            CollectiveKind::AllToAll,
            cut(Out, &[0]),
            CertificateError::NotApplicable { kind: "cut", collective: CollectiveKind::AllToAll },
        ),
    ] {
        assert_eq!(bound(&topology, kind, &certificate), Err(expected), "{kind} {certificate:?}");
    }
}

#[test]
fn malformed_partitions_are_refused() {
    let topology = star(3);
    let place = || "sets[1]".to_owned();
    for (certificate, expected) in [
        (partition(&[]), CertificateError::TooFewSets { found: 0 }),
        (partition(&[&[0, 1, 2]]), CertificateError::TooFewSets { found: 1 }),
        (partition(&[&[0, 1, 2], &[3]]), CertificateError::NoRankInSet { set: 1 }),
        (partition(&[&[0, 1, 2], &[]]), CertificateError::NoRankInSet { set: 1 }),
        (partition(&[&[0], &[2]]), CertificateError::RankMissing { rank: 1 }),
        (partition(&[&[0, 1], &[1, 2]]), CertificateError::Overlap { node: 1, first: 0, second: 1 }),
        (partition(&[&[0, 1, 3], &[2, 3]]), CertificateError::Overlap { node: 3, first: 0, second: 1 }),
        (partition(&[&[0], &[2, 1]]), CertificateError::Unsorted { place: place(), node: 2, next: 1 }),
        (partition(&[&[0, 1], &[2, 9]]), CertificateError::UnknownNode { place: place(), node: 9, node_count: 4 }),
    ] {
        assert_eq!(bound(&topology, CollectiveKind::Allreduce, &certificate), Err(expected), "{certificate:?}");
    }
    for collective in CollectiveKind::ALL.into_iter().filter(|&kind| kind != CollectiveKind::Allreduce) {
        let expected = CertificateError::NotApplicable { kind: "partition", collective };
        assert_eq!(bound(&topology, collective, &partition(&[&[0], &[1], &[2]])), Err(expected));
    }
}

/// A switch that can multicast or reduce may beat a partition that does not hold it, never a cut.
#[test]
fn capable_switches_are_in_partitions() {
    for (multicast, aggregate) in [(true, false), (false, true)] {
        let mut draft = TopologyDraft::default();
        draft.add_compute("a");
        draft.add_compute("b");
        draft.add_node("nv", NodeKind::Switch { multicast, aggregate }, Attributes::default());
        let capacity = canopy_topology::Capacity::from_bytes_per_sec(CAPACITY).unwrap();
        draft.add_both("a", "nv", capacity, canopy_topology::Latency::default());
        draft.add_both("b", "nv", capacity, canopy_topology::Latency::default());
        let topology = draft.build(&TopologyLimits::STANDARD).unwrap();
        let refused = bound(&topology, CollectiveKind::Allreduce, &partition(&[&[0], &[1]]));
        assert_eq!(refused, Err(CertificateError::CapableMissing { id: "nv".to_owned() }));
        let accepted = bound(&topology, CollectiveKind::Allreduce, &partition(&[&[0, 2], &[1]]));
        assert_eq!(accepted, Ok(Rate::new(CAPACITY, 1_u32).unwrap()));
        let accepted = bound(&topology, CollectiveKind::Allreduce, &cut(CutDirection::In, &[0]));
        assert_eq!(accepted, Ok(Rate::new(CAPACITY, 1_u32).unwrap()));
    }
}

#[test]
fn the_root_must_be_a_rank_of_this_topology() {
    let collective = Collective::new(CollectiveKind::Broadcast, Some(Rank::new(4)), 5).unwrap();
    let refused = certified_bound(&star(3), collective, &Shares::Equal, &cut(CutDirection::Out, &[0]));
    assert_eq!(refused, Err(CertificateError::UnknownRoot { root: 4, rank_count: 3 }));
}

/// Four ranks that send 5 to a switch, which sends 20 to each.
fn slow_up(switch: NodeKind) -> Topology {
    let mut draft = TopologyDraft::default();
    (0..4).for_each(|rank| draft.add_compute(format!("r{rank}")));
    draft.add_node("s", switch, Attributes::default());
    for rank in 0..4 {
        for (from, to, capacity) in [(format!("r{rank}"), "s".to_owned(), 5), ("s".to_owned(), format!("r{rank}"), 20)]
        {
            let capacity = canopy_topology::Capacity::from_bytes_per_sec(capacity).unwrap();
            draft.add_link(from, to, capacity, canopy_topology::Latency::default());
        }
    }
    draft.build(&TopologyLimits::STANDARD).unwrap()
}

/// What enters the switch limits what leaves it.
#[test]
fn sums_know_that_a_switch_passes_on_what_it_takes_in() {
    use CutDirection::{In, Out};
    let topology = slow_up(NodeKind::PLAIN_SWITCH);
    let around = |direction| (0..4).map(|rank| (1, cut(direction, &[rank]))).collect::<Vec<_>>();
    let sum = |terms, potential| Certificate::Sum { terms, potentials: vec![(NodeIndex::new(4), potential)] };
    for (kind, certificate, numerator, denominator) in [
        // Three shares must enter each rank over a link of 20, one of which leaves each over a link of 5.
        (CollectiveKind::Allgather, cut(In, &[0]), 4 * 20_u32, 3_u32),
        (CollectiveKind::Allgather, sum(around(In), 1), 4 * 20, 12),
        // A fall counts for nothing, a greater rise for more.
        (CollectiveKind::Allgather, sum(around(In), -1), 4 * 160, 12),
        (CollectiveKind::Allgather, sum(around(In), 2), 4 * 40, 12),
        // What leaves the ranks fits through the switch.
        (CollectiveKind::ReduceScatter, sum(around(Out), 0), 4 * 20, 12),
        (CollectiveKind::Allreduce, sum(around(In), 1), 20, 4),
        (
            CollectiveKind::Allreduce,
            sum(vec![(3, partition(&[&[0], &[1], &[2], &[3]])), (1, cut(In, &[0]))], 1),
            80,
            19,
        ),
    ] {
        let expected = Rate::new(numerator, denominator).unwrap();
        assert_eq!(bound(&topology, kind, &certificate), Ok(expected), "{kind} {certificate:?}");
    }
}

#[test]
fn malformed_sums_are_refused() {
    use CutDirection::In;
    let topology = slow_up(NodeKind::PLAIN_SWITCH);
    let around = || (0..4).map(|rank| (1, cut(In, &[rank]))).collect::<Vec<_>>();
    let of = |terms: Vec<(u64, Certificate)>, potentials: &[(u32, i64)]| Certificate::Sum {
        terms,
        potentials: potentials.iter().map(|&(node, potential)| (NodeIndex::new(node), potential)).collect(),
    };
    let place = || "potentials".to_owned();
    for (kind, certificate, expected) in [
        (CollectiveKind::Allgather, of(Vec::new(), &[]), CertificateError::EmptySum),
        (CollectiveKind::Allgather, of(vec![(0, cut(In, &[0]))], &[]), CertificateError::EmptySum),
        (CollectiveKind::Allgather, of(around(), &[(0, 1)]), CertificateError::PotentialMisplaced { node: 0 }),
        (
            CollectiveKind::Allgather,
            of(around(), &[(5, 1)]),
            CertificateError::UnknownNode { place: place(), node: 5, node_count: 5 },
        ),
        (
            CollectiveKind::Allgather,
            of(around(), &[(4, 1), (4, 1)]),
            CertificateError::Unsorted { place: place(), node: 4, next: 4 },
        ),
        (
            CollectiveKind::Allgather,
            of(vec![(1, of(around(), &[]))], &[]),
            CertificateError::NotSummable { kind: "sum" },
        ),
        (
            CollectiveKind::Allreduce,
            of(vec![(1, partition(&[&[0], &[1], &[2], &[3]])); 65], &[]),
            CertificateError::TooManyTerms { found: 65, limit: 64, what: "partitions" },
        ),
        (
            CollectiveKind::Allgather,
            of(vec![(1, cut(In, &[0])); 64 + 16 * 5 + 1], &[]),
            CertificateError::TooManyTerms { found: 145, limit: 144, what: "terms" },
        ),
        (
            CollectiveKind::Allgather,
            of(vec![(1, lp_dual(&[1]))], &[]),
            CertificateError::NotSummable { kind: "lp-dual" },
        ),
        (CollectiveKind::Allgather, of(vec![(1, cut(In, &[]))], &[]), CertificateError::NoRankInside),
        (
            CollectiveKind::AllToAll,
            of(around(), &[]),
            CertificateError::NotApplicable { kind: "cut", collective: CollectiveKind::AllToAll },
        ),
    ] {
        assert_eq!(bound(&topology, kind, &certificate), Err(expected), "{kind} {certificate:?}");
    }
    // One that multicasts sends out more than enters it.
    let able = slow_up(NodeKind::Switch { multicast: true, aggregate: false });
    let refused = bound(&able, CollectiveKind::Allgather, &of(around(), &[(4, 1)]));
    assert_eq!(refused, Err(CertificateError::PotentialMisplaced { node: 4 }));
}

/// Every set of nodes, and every way to put the nodes into three sets (a fourth is left out).
fn all_certificates(node_count: u32) -> Vec<Certificate> {
    let chosen = |digit: &dyn Fn(u32) -> u32, set: u32| -> Vec<NodeIndex> {
        (0..node_count).filter(|&node| digit(node) == set).map(NodeIndex::new).collect()
    };
    let mut certificates = Vec::new();
    for code in 0..2_u32.pow(node_count) {
        let nodes = chosen(&|node| code >> node & 1, 1);
        certificates.extend(
            [CutDirection::Out, CutDirection::In].map(|direction| Certificate::Cut { direction, nodes: nodes.clone() }),
        );
    }
    for code in 0..4_u32.pow(node_count) {
        let sets = (0..3).map(|set| chosen(&|node| code >> (2 * node) & 3, set));
        certificates.push(Certificate::Partition { sets: sets.filter(|set| !set.is_empty()).collect() });
    }
    certificates
}

/// No accepted schedule is faster than any accepted certificate allows.
#[test]
fn certificates_bound_every_schedule() {
    let mut random = Random(11);
    let mut accepted = 0;
    for ranks in [2, 3, 4] {
        let topology = complete_with_switch(ranks);
        let mut certificates = all_certificates(ranks + 1);
        // Sums of some of them, with potentials of the switch.
        for _ in 0..400 {
            let mut chosen = || certificates[random.below(certificates.len())].clone();
            let chosen = [chosen(), chosen(), chosen()];
            let terms = chosen.into_iter().map(|one| (random.below(4) as u64, one)).collect();
            let potential = random.below(7) as i64 - 3;
            certificates.push(Certificate::Sum { terms, potentials: vec![(NodeIndex::new(ranks), potential)] });
        }
        for kind in CollectiveKind::ALL.into_iter().filter(|&kind| kind != CollectiveKind::AllToAll) {
            let mut schedules: Vec<_> = (0..12).map(|_| random_schedule(&topology, kind, &mut random)).collect();
            for schedule in schedules.drain(..) {
                let algbw = check(&topology, &compile(&topology, &schedule).unwrap()).unwrap().algbw;
                for certificate in &certificates {
                    if let Ok(bound) = certified_bound(&topology, schedule.collective, &schedule.shares, certificate) {
                        assert!(algbw <= bound, "{algbw} > {bound}: {certificate:?}");
                        accepted += 1;
                    }
                }
            }
        }
    }
    assert!(accepted > 3_000, "{accepted}");
}

fn lp_dual(lengths: &[u64]) -> Certificate {
    Certificate::LpDual { lengths: lengths.to_vec() }
}

/// On the path r0 – r1 – r2 with links r0 → r1, r1 → r0, r1 → r2, r2 → r1, all of one capacity.
#[test]
fn lengths_bound_all_to_all() {
    let path = path_3();
    let all_to_all = |lengths: &[u64]| bound(&path, CollectiveKind::AllToAll, &lp_dual(lengths));
    let rate = |numerator: u64, denominator: u64| Ok(Rate::new(numerator * CAPACITY, denominator).unwrap());
    // Distances 1 + 2 + 1 + 1 + 2 + 1 for four links: 3·4/8. Only proportions matter.
    assert_eq!(all_to_all(&[1, 1, 1, 1]), rate(3, 2));
    assert_eq!(all_to_all(&[7, 7, 7, 7]), rate(3, 2));
    assert_eq!(all_to_all(&[u64::MAX; 4]), rate(3, 2));
    // The one link out of r0: two blocks of a buffer of three pass it.
    assert_eq!(all_to_all(&[5, 0, 0, 0]), rate(3, 2));
    assert_eq!(all_to_all(&[1, 2, 0, 0]), rate(9, 6));
    assert_eq!(all_to_all(&[0; 4]), Err(CertificateError::NoDistance));
    assert_eq!(all_to_all(&[1; 3]), Err(CertificateError::LengthCount { found: 3, expected: 4 }));
    let one_way = topology(3, 0, &[("r0", "r1"), ("r1", "r2"), ("r1", "r0")]);
    let unreachable = bound(&one_way, CollectiveKind::AllToAll, &lp_dual(&[1; 3]));
    assert_eq!(unreachable, Err(CertificateError::Unreachable { from: 2, to: 0 }));
    for collective in CollectiveKind::ALL.into_iter().filter(|&kind| kind != CollectiveKind::AllToAll) {
        let expected = CertificateError::NotApplicable { kind: "lp-dual", collective };
        assert_eq!(bound(&path, collective, &lp_dual(&[1; 4])), Err(expected));
    }
}

/// The bound of blocks on the same path, by hand: `W/N · Σ c·ℓ / Σ w·dist`.
#[test]
fn lengths_bound_blocks_of_different_sizes() {
    let path = path_3();
    let collective = Collective::new(CollectiveKind::AllToAll, None, 3).unwrap();
    let bound = |weights: &[u64], lengths: &[u64]| {
        let shares = Shares::Blocks(Blocks::new(3, weights.to_vec()).unwrap());
        certified_bound(&path, collective, &shares, &lp_dual(lengths))
    };
    let rate = |numerator: u64, denominator: u64| Ok(Rate::new(numerator * CAPACITY, denominator).unwrap());
    // Blocks of equal sizes, the diagonal included, are those of the plain all-to-all, whatever the unit.
    assert_eq!(bound(&[4; 9], &[1; 4]), rate(3, 2));
    // One block of 5, from one end to the other, is a flow of one link: the mean of 5, 0 and 0 in the time of 5.
    assert_eq!(bound(&[0, 0, 5, 0, 0, 0, 0, 0, 0], &[1, 0, 0, 0]), rate(1, 3));
    // What a rank has for itself counts as size but takes no link.
    assert_eq!(bound(&[7, 0, 5, 0, 0, 0, 0, 0, 0], &[1, 0, 0, 0]), rate(12, 15));
    // A scatter from r0, 2 to r1 and 3 to r2: its cut, over three ranks.
    assert_eq!(bound(&[0, 2, 3, 0, 0, 0, 0, 0, 0], &[1, 0, 0, 0]), rate(5, 15));
    // A gather to r1: 2 over one link, 3 over the other, which binds.
    assert_eq!(bound(&[0, 2, 0, 0, 0, 0, 0, 3, 0], &[0, 0, 0, 1]), rate(5, 9));
    assert_eq!(bound(&[0, 2, 0, 0, 0, 0, 0, 3, 0], &[0, 1, 0, 0]), Err(CertificateError::NoDistance));
    // Only pairs that exchange something have to reach each other.
    let one_way = topology(3, 0, &[("r0", "r1"), ("r1", "r2"), ("r1", "r0")]);
    let of = |weights: &[u64]| {
        let shares = Shares::Blocks(Blocks::new(3, weights.to_vec()).unwrap());
        certified_bound(&one_way, collective, &shares, &lp_dual(&[1; 3]))
    };
    assert_eq!(of(&[0, 0, 1, 1, 0, 1, 0, 0, 0]), rate(3 * 3, 3 * 4));
    assert_eq!(of(&[0, 0, 0, 0, 0, 0, 1, 0, 0]), Err(CertificateError::Unreachable { from: 2, to: 0 }));
    let other = Shares::Blocks(Blocks::new(2, vec![1; 4]).unwrap());
    let count = SharesError::BlockCount { found: 4, rank_count: 3, expected: 9 };
    let refused = certified_bound(&path, collective, &other, &lp_dual(&[1; 4]));
    assert_eq!(refused, Err(CertificateError::Shares(count)));
    let allgather = Collective::new(CollectiveKind::Allgather, None, 2).unwrap();
    let refused = certified_bound(&path, allgather, &other, &cut(CutDirection::Out, &[0]));
    let collective = CollectiveKind::Allgather;
    assert_eq!(refused, Err(CertificateError::Shares(SharesError::BlocksNotApplicable { collective })));
}

/// No all-to-all is faster than any lengths allow.
#[test]
fn random_lengths_bound_every_all_to_all() {
    let mut random = Random(12);
    for ranks in [2, 3, 5] {
        let topology = complete_with_switch(ranks);
        for _ in 0..40 {
            let schedule = any_shape(&topology, CollectiveKind::AllToAll, &mut random);
            let algbw = check(&topology, &compile(&topology, &schedule).unwrap()).unwrap().algbw;
            let lengths: Vec<u64> = topology.links().iter().map(|_| random.below(4) as u64).collect();
            match certified_bound(&topology, schedule.collective, &schedule.shares, &lp_dual(&lengths)) {
                Ok(bound) => assert!(algbw <= bound, "{algbw} > {bound}: {lengths:?}"),
                Err(error) => assert_eq!(error, CertificateError::NoDistance),
            }
        }
    }
}

/// With weights, cuts count weight instead of ranks.
#[test]
fn cuts_count_weights() {
    use CollectiveKind::{AllToAll, Allgather, Gather, ReduceScatter, Scatter};
    let path = path_3();
    let weighted = |kind, weights: &[u64], certificate: &Certificate| {
        let collective = Collective::new(kind, None, 3).unwrap();
        certified_bound(&path, collective, &Shares::Weighted(weights.to_vec()), certificate)
    };
    let rate = |numerator: u64, denominator: u64| Ok(Rate::new(numerator * CAPACITY, denominator).unwrap());
    let (out, into) = (cut(CutDirection::Out, &[0]), cut(CutDirection::In, &[0]));
    assert_eq!(weighted(Allgather, &[2, 1, 4], &out), rate(7, 2));
    assert_eq!(weighted(ReduceScatter, &[2, 1, 4], &into), rate(7, 2));
    assert_eq!(weighted(Scatter, &[2, 1, 4], &out), rate(7, 5));
    assert_eq!(weighted(Gather, &[2, 1, 4], &into), rate(7, 5));
    assert_eq!(weighted(Allgather, &[2, 1, 4], &into), rate(7, 5));
    assert_eq!(weighted(ReduceScatter, &[2, 1, 4], &out), rate(7, 5));
    assert_eq!(weighted(Allgather, &[2, 0, 0], &into), Err(CertificateError::NoShare));
    assert_eq!(weighted(Allgather, &[0, 1, 4], &out), Err(CertificateError::NoShare));
    assert_eq!(weighted(Scatter, &[3, 0, 0], &out), Err(CertificateError::NoShare));
    let refused = CertificateError::Shares(SharesError::NotApplicable { collective: AllToAll });
    assert_eq!(weighted(AllToAll, &[1, 1, 1], &lp_dual(&[1; 4])), Err(refused));
}
