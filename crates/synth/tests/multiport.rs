//! Collectives on Kautz networks and on grids with fully joined lines: judged, and as long as the tables of Pham 2026 say.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it stands, helpers included")]

use std::collections::BTreeMap;

use canopy_schedule::{Collective, CollectiveKind, Schedule, Shape, Shares, check, compile};
use canopy_synth::{Algorithm, Never, Silent, SynthesisError, SynthesisRequest, synthesize};
use canopy_topology::{Rank, Topology, TopologyLimits, generate};
use num_rational::Ratio;

fn network(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap_or_else(|error| panic!("{expression}: {error}"))
}

fn planned(topology: &Topology, kind: CollectiveKind, algorithm: Algorithm) -> Result<Schedule, SynthesisError> {
    let root = kind.has_root().then(|| Rank::new(topology.rank_count() / 2));
    let collective = Collective::new(kind, root, topology.rank_count()).unwrap();
    synthesize(topology, &SynthesisRequest::new(collective, algorithm), &Never, &Silent)
}

/// The longest message of each step, in shares, blocks or messages; the checker has accepted the schedule.
#[track_caller]
fn longest(topology: &Topology, kind: CollectiveKind, algorithm: Algorithm) -> Vec<Ratio<u64>> {
    let schedule = planned(topology, kind, algorithm).unwrap();
    let verdict = check(topology, &compile(topology, &schedule).unwrap()).unwrap();
    let Shape::Steps(steps) = &schedule.shape else { panic!("{algorithm} makes steps") };
    let mut carried: BTreeMap<u32, BTreeMap<u32, u64>> = BTreeMap::new();
    for send in &steps.sends {
        for carrier in steps.carriers_of(send) {
            let [link] = steps.routes.get(carrier.route).unwrap() else { panic!("a route of one link") };
            *carried.entry(send.step).or_default().entry(link.number()).or_default() += carrier.chunk_count;
        }
    }
    assert_eq!(verdict.steps.unwrap().count as usize, carried.len(), "{kind} by {algorithm}");
    let longest = carried.values().map(|links| links.values().copied().max().unwrap());
    longest.map(|chunks| Ratio::new(chunks, steps.chunks_per_share)).collect()
}

/// Number of steps, and their longest messages added up.
#[track_caller]
fn cost(topology: &Topology, kind: CollectiveKind, algorithm: Algorithm) -> (u64, Ratio<u64>) {
    let longest = longest(topology, kind, algorithm);
    (longest.len() as u64, longest.iter().sum())
}

const fn whole(steps: u64, blocks: u64) -> (u64, Ratio<u64>) {
    (steps, Ratio::new_raw(blocks, 1))
}

/// Table 3.2 in blocks, for d = 2 to 5 and 8; K1 is in it, and with α of 1 µs and blocks of 80 or 4 µs, K2 and K3.
#[test]
fn kautz_networks_cost_what_table_3_2_says() {
    use CollectiveKind::{AllToAll, Allgather, Allreduce, Broadcast, Gather, Reduce, ReduceScatter, Scatter};
    for d in [2, 3, 4, 5, 8] {
        let topology = network(&format!("kautz:d={d},n=2"));
        for (kind, combined, alone) in [
            (Broadcast, whole(2, 2), whole(2, 2)),
            (Reduce, whole(2, 2), whole(2, 2)),
            (Scatter, whole(2, d + 2), whole(2, d + 2)),
            (Gather, whole(2, d + 2), whole(2, d + 2)),
            (Allgather, whole(2, d + 1), whole(d + 1, d + 1)),
            (ReduceScatter, whole(2, d + 1), whole(d + 1, d + 1)),
            (Allreduce, whole(4, 2 * d + 2), whole(2 * d + 2, 2 * d + 2)),
            (AllToAll, whole(2, 2 * d + 1), whole(d + 1, 2 * d + 1)),
        ] {
            assert_eq!(cost(&topology, kind, Algorithm::Kautz), combined, "{kind}, d = {d}");
            assert_eq!(cost(&topology, kind, Algorithm::KautzM), alone, "{kind}, d = {d}");
            assert_eq!(cost(&topology, kind, Algorithm::Multitree), alone, "{kind}, d = {d}");
        }
        let messages = |kind| longest(&topology, kind, Algorithm::Kautz);
        let blocks = |counts: [u64; 2]| counts.map(Ratio::from_integer).to_vec();
        assert_eq!(messages(Allgather), blocks([1, d]));
        assert_eq!(messages(ReduceScatter), blocks([d, 1]));
        assert_eq!(messages(AllToAll), blocks([d + 1, d]));
    }
}

/// Longer words: equations 3.3 to 3.6.
#[test]
fn longer_words_take_a_step_for_each_letter() {
    let topology = network("kautz:d=2,n=3");
    assert_eq!(cost(&topology, CollectiveKind::Broadcast, Algorithm::Kautz), whole(3, 3));
    assert_eq!(cost(&topology, CollectiveKind::Allgather, Algorithm::Kautz), whole(3, 7));
    assert_eq!(cost(&topology, CollectiveKind::Allgather, Algorithm::KautzM), whole(7, 7));
    // Subtrees of the children at depth 1, 2 and 3: 7, 3 and 1 nodes.
    assert_eq!(cost(&topology, CollectiveKind::AllToAll, Algorithm::Kautz), whole(3, 7 + 2 * 3 + 4));
}

/// Tables 4.1 and 4.2 with the corrections of section 6 of the digest, and F3; sides from 2 to 8.
#[test]
fn grids_cost_what_table_4_2_says() {
    for (rows, columns) in (2_u64..=8).flat_map(|rows| (2..=8).map(move |columns| (rows, columns))) {
        let topology = network(&format!("dfc2:{rows}x{columns}"));
        let (long, short) = (rows.max(columns), rows.min(columns));
        let costs = |kind, algorithm| cost(&topology, kind, algorithm);
        let name = format!("{rows}x{columns}");
        assert_eq!(costs(CollectiveKind::AllToAll, Algorithm::Dfc2Do), whole(2, long + short), "{name}");
        assert_eq!(costs(CollectiveKind::AllToAll, Algorithm::Dfc2), whole(2, long), "{name}");
        let dimension_order = whole(2, 1 + short);
        for kind in [CollectiveKind::Allgather, CollectiveKind::ReduceScatter] {
            assert_eq!(costs(kind, Algorithm::Dfc2Do), dimension_order, "{kind}, {name}");
            // The first step has at least one share in parts, the second one those of a line.
            let balanced = Ratio::new(long + long * short, long + short);
            assert_eq!(costs(kind, Algorithm::Dfc2), (2, balanced), "{kind}, {name}");
            assert_eq!(costs(kind, Algorithm::Multitree), whole(1 + long / 2, 1 + long / 2), "{kind}, {name}");
        }
        let (_, copies) = costs(CollectiveKind::Allgather, Algorithm::Dfc2);
        assert_eq!(costs(CollectiveKind::Allreduce, Algorithm::Dfc2), (4, copies + 1 + short), "{name}");
        for kind in [CollectiveKind::Broadcast, CollectiveKind::Reduce] {
            assert_eq!(costs(kind, Algorithm::Dfc2Do), whole(2, 2), "{kind}, {name}");
            assert_eq!(costs(kind, Algorithm::Dfc2), whole(2, 1), "{kind}, {name}");
        }
        for kind in [CollectiveKind::Scatter, CollectiveKind::Gather] {
            assert_eq!(costs(kind, Algorithm::Dfc2Do), dimension_order, "{kind}, {name}");
            let balanced = Ratio::new(long * short + long, long + short);
            assert_eq!(costs(kind, Algorithm::Dfc2), (2, balanced), "{kind}, {name}");
        }
        // A step and a block more than table 4.2, as its own example of 6x6 has it.
        if rows == columns && rows % 2 == 0 {
            assert_eq!(costs(CollectiveKind::AllToAll, Algorithm::Multitree), whole(1 + long / 2, 1 + long), "{name}");
        }
    }
}

/// Section 4.5: in every step each dimension is used by one part.
#[test]
fn three_dimensions_are_used_at_once() {
    let topology = network("hamming:3x3x3");
    assert_eq!(cost(&topology, CollectiveKind::AllToAll, Algorithm::Dfc2Do), whole(3, 27));
    assert_eq!(cost(&topology, CollectiveKind::AllToAll, Algorithm::Dfc2), whole(3, 9));
    assert_eq!(cost(&topology, CollectiveKind::Allgather, Algorithm::Dfc2), (3, Ratio::new(13, 3)));
    for kind in CollectiveKind::ALL {
        for algorithm in [Algorithm::Dfc2, Algorithm::Dfc2Do, Algorithm::Multitree] {
            cost(&topology, kind, algorithm);
        }
    }
}

#[test]
fn multitree_plans_any_network_without_switches() {
    for expression in ["torus:3x4", "genkautz:n=10,d=4", "uniring:n=5,d=1", "mesh:3x2"] {
        let topology = network(expression);
        for kind in CollectiveKind::ALL {
            cost(&topology, kind, Algorithm::Multitree);
        }
        // A share at a time on a link.
        let (steps, shares) = cost(&topology, CollectiveKind::Allgather, Algorithm::Multitree);
        assert_eq!(Ratio::from_integer(steps), shares, "{expression}");
    }
}

/// Ranks with more and with nothing; blocks likewise.
#[test]
fn shares_of_any_sizes_are_planned() {
    let weights = vec![3, 0, 1, 1, 2, 5];
    for (expression, algorithms) in [
        ("kautz:d=2,n=2", [Algorithm::Kautz, Algorithm::KautzM, Algorithm::Multitree]),
        ("dfc2:2x3", [Algorithm::Dfc2, Algorithm::Dfc2Do, Algorithm::Multitree]),
    ] {
        let topology = network(expression);
        for algorithm in algorithms {
            for kind in [CollectiveKind::Allgather, CollectiveKind::Allreduce, CollectiveKind::Scatter] {
                let root = kind.has_root().then(|| Rank::new(1));
                let collective = Collective::new(kind, root, 6).unwrap();
                let shares = Shares::in_proportion(collective, 6, weights.clone()).unwrap();
                let request = SynthesisRequest { shares, ..SynthesisRequest::new(collective, algorithm) };
                let schedule = synthesize(&topology, &request, &Never, &Silent).unwrap();
                check(&topology, &compile(&topology, &schedule).unwrap()).unwrap();
            }
            let collective = Collective::new(CollectiveKind::AllToAll, None, 6).unwrap();
            let blocks = (0..36).map(|block| block % 5).collect();
            let shares = Shares::in_proportion(collective, 6, blocks).unwrap();
            let request = SynthesisRequest { shares, ..SynthesisRequest::new(collective, algorithm) };
            let schedule = synthesize(&topology, &request, &Never, &Silent).unwrap();
            check(&topology, &compile(&topology, &schedule).unwrap()).unwrap();
        }
    }
}

#[test]
fn other_networks_are_refused_with_a_reason() {
    let refused = |expression: &str, algorithm| {
        planned(&network(expression), CollectiveKind::Allgather, algorithm).unwrap_err().to_string()
    };
    assert_eq!(
        refused("dfc2:3x3", Algorithm::Kautz),
        "kautz plans Kautz networks, and this is none: 9 ranks that send to 4 others each are no Kautz network; it has \
         d^k + d^(k-1), for 4 5, 20, 80; use multitree, bfb or tacos"
    );
    let refusal = refused("dfc2:3x3,down=00-01", Algorithm::Dfc2);
    assert!(refusal.starts_with("dfc2 plans grids in which all ranks of every line are joined"), "{refusal}");
    let refusal = refused("dgx-a100:boxes=2", Algorithm::Multitree);
    assert!(refusal.starts_with("multitree plans networks whose ranks are linked with each other"), "{refusal}");
    let expected = SynthesisError::Stopped;
    let topology = network("dfc2:3x3");
    let collective = Collective::new(CollectiveKind::Allgather, None, 9).unwrap();
    let request = SynthesisRequest::new(collective, Algorithm::Dfc2);
    assert_eq!(synthesize(&topology, &request, &|| true, &Silent), Err(expected));
}
