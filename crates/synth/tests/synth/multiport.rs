//! Collectives on Kautz networks and on grids with fully joined lines: judged, and as long as the tables of Pham 2026 say.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it stands, helpers included")]

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use canopy_schedule::{Collective, CollectiveKind, Schedule, Shape, Shares, check, compile};
use canopy_synth::{Algorithm, Never, Silent, SynthesisError, SynthesisRequest, synthesize};
use canopy_topology::{Link, NodeIndex, Rank, Topology, TopologyLimits, generate};
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
///
/// What a link carries in a step stands in the order of chunks, and is of one tree where messages are not combined.
#[track_caller]
fn longest(topology: &Topology, kind: CollectiveKind, algorithm: Algorithm) -> Vec<Ratio<u64>> {
    let schedule = planned(topology, kind, algorithm).unwrap();
    let graph = compile(topology, &schedule).unwrap();
    let (verdict, layout) = (check(topology, &graph).unwrap(), graph.layout().unwrap());
    let Shape::Steps(steps) = &schedule.shape else { panic!("{algorithm} makes steps") };
    let is_alone = algorithm == Algorithm::KautzM || algorithm == Algorithm::Multitree;
    // By step and link: chunks, the last one of them, and whose share or blocks they are.
    let mut carried: BTreeMap<u32, BTreeMap<u32, (u64, u64, Rank)>> = BTreeMap::new();
    for send in &steps.sends {
        let [carrier] = steps.carriers_of(send) else { panic!("one carrier for each send") };
        let [link] = steps.routes.get(carrier.route).unwrap() else { panic!("a route of one link") };
        let tree = layout.share_of(send.chunks.start);
        let links = carried.entry(send.step).or_default();
        let (count, end, other) = links.entry(link.number()).or_insert((0, 0, tree));
        assert!(*end <= send.chunks.start, "{kind} by {algorithm}: chunks of link {link:?} in order");
        assert!(!is_alone || kind.has_root() || *other == tree, "{kind} by {algorithm}: two trees on link {link:?}");
        (*count, *end) = (*count + carrier.chunk_count, send.chunks.end);
    }
    assert_eq!(verdict.steps.unwrap().count as usize, carried.len(), "{kind} by {algorithm}");
    let longest = carried.values().map(|links| links.values().map(|&(count, ..)| count).max().unwrap());
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

/// Value K4: 30 links of trees on the 12 of K(2, 2) are three steps, of which the last one uses every other link.
#[test]
fn the_last_step_of_the_smallest_is_half_empty() {
    let schedule = planned(&network("kautz:d=2,n=2"), CollectiveKind::Allgather, Algorithm::KautzM).unwrap();
    let Shape::Steps(steps) = &schedule.shape else { panic!("steps") };
    let used: Vec<usize> = steps.sends.chunk_by(|a, b| a.step == b.step).map(<[_]>::len).collect();
    assert_eq!(used, [12, 12, 6]);
}

/// By depth from 1: the most ranks below one on the tree of shortest paths from a root, or to it, with itself.
fn below(topology: &Topology, root: Rank, is_backwards: bool) -> Vec<u64> {
    let ends = |link: &Link| if is_backwards { (link.to, link.from) } else { (link.from, link.to) };
    let mut parents: BTreeMap<NodeIndex, NodeIndex> = BTreeMap::from([(root.node(), root.node())]);
    let mut levels = vec![vec![root.node()]];
    while let Some(last) = levels.last().filter(|last| !last.is_empty()) {
        let mut next = Vec::new();
        for (from, to) in topology.links().iter().map(ends).filter(|(from, _)| last.contains(from)) {
            if let Entry::Vacant(place) = parents.entry(to) {
                place.insert(from);
                next.push(to);
            }
        }
        levels.push(next);
    }
    let mut sizes: BTreeMap<NodeIndex, u64> = BTreeMap::new();
    let mut largest = Vec::new();
    for level in levels[1..].iter().rev().filter(|level| !level.is_empty()) {
        for node in level {
            let size = sizes.entry(*node).or_default();
            *size += 1;
            let size = *size;
            *sizes.entry(parents[node]).or_default() += size;
        }
        largest.push(level.iter().map(|node| sizes[node]).max().unwrap());
    }
    largest.reverse();
    largest
}

/// Longer words, with d links for each rank: equations 3.3 to 3.6.
#[test]
fn longer_words_take_a_step_for_each_letter() {
    use CollectiveKind::{AllToAll, Allgather, Allreduce, Broadcast, Gather, Reduce, ReduceScatter, Scatter};
    for (d, k) in [(2_u64, 3_u32), (3, 3), (2, 4)] {
        let topology = network(&format!("kautz:d={d},n={k}"));
        let (steps, root) = (u64::from(k), Rank::new(topology.rank_count() / 2));
        let below_root = |is_backwards| below(&topology, root, is_backwards).iter().sum();
        // The roots differ in what is below their neighbours: the most is 1 + d + … + d^(k − depth).
        let most_below = (1..=k).map(|depth| (0..=k - depth).map(|level| d.pow(level)).sum::<u64>());
        let of_all = topology.ranks().map(|root| below(&topology, root, false));
        let of_all = of_all.reduce(|a, b| a.into_iter().zip(b).map(|(a, b)| a.max(b)).collect());
        assert!(most_below.clone().eq(of_all.unwrap()), "d = {d}, k = {k}");
        let gathered = (0..k).map(|level| d.pow(level)).sum();
        let exchanged = (0..k).zip(most_below).map(|(level, below)| d.pow(level) * below).sum();
        for (kind, combined) in [
            (Broadcast, whole(steps, steps)),
            (Reduce, whole(steps, steps)),
            (Scatter, whole(steps, below_root(false))),
            (Gather, whole(steps, below_root(true))),
            (Allgather, whole(steps, gathered)),
            (ReduceScatter, whole(steps, gathered)),
            (Allreduce, whole(2 * steps, 2 * gathered)),
            (AllToAll, whole(steps, exchanged)),
        ] {
            assert_eq!(cost(&topology, kind, Algorithm::Kautz), combined, "{kind}, d = {d}, k = {k}");
        }
        for kind in [Allgather, ReduceScatter] {
            assert_eq!(cost(&topology, kind, Algorithm::KautzM), whole(gathered, gathered), "{kind}, d = {d}, k = {k}");
        }
    }
}

/// Tables 4.1 and 4.2 with the corrections of section 6 of the digest, and F3; sides from 2 to 8.
#[test]
fn grids_cost_what_table_4_2_says() {
    for (rows, columns) in (2_u64..=8).flat_map(|rows| (2..=8).map(move |columns| (rows, columns))) {
        let topology = network(&format!("dfc2:{rows}x{columns}"));
        let (long, short) = (rows.max(columns), rows.min(columns));
        let costs = |kind, algorithm| cost(&topology, kind, algorithm);
        let name = format!("{rows}x{columns}");
        // Equation 4.4.
        let least = (rows * columns - 1).div_ceil(rows + columns - 2);
        assert_eq!(costs(CollectiveKind::AllToAll, Algorithm::Dfc2Do), whole(2, long + short), "{name}");
        assert_eq!(costs(CollectiveKind::AllToAll, Algorithm::Dfc2), whole(2, long), "{name}");
        let dimension_order = whole(2, 1 + short);
        for kind in [CollectiveKind::Allgather, CollectiveKind::ReduceScatter] {
            assert_eq!(costs(kind, Algorithm::Dfc2Do), dimension_order, "{kind}, {name}");
            // The first step has at least one share in parts, the second one those of a line.
            let balanced = Ratio::new(long + long * short, long + short);
            assert_eq!(costs(kind, Algorithm::Dfc2), (2, balanced), "{kind}, {name}");
            assert_eq!(costs(kind, Algorithm::Multitree), whole(least, least), "{kind}, {name}");
        }
        let (_, copies) = costs(CollectiveKind::Allgather, Algorithm::Dfc2);
        assert_eq!(costs(CollectiveKind::Allreduce, Algorithm::Dfc2), (4, copies + 1 + short), "{name}");
        assert_eq!(costs(CollectiveKind::Allreduce, Algorithm::Dfc2Do), whole(4, 2 + 2 * short), "{name}");
        assert_eq!(costs(CollectiveKind::Allreduce, Algorithm::Multitree), whole(2 * least, 2 * least), "{name}");
        for kind in [CollectiveKind::Broadcast, CollectiveKind::Reduce] {
            assert_eq!(costs(kind, Algorithm::Dfc2Do), whole(2, 2), "{kind}, {name}");
            assert_eq!(costs(kind, Algorithm::Dfc2), whole(2, 1), "{kind}, {name}");
            assert_eq!(costs(kind, Algorithm::Multitree), whole(2, 2), "{kind}, {name}");
        }
        for kind in [CollectiveKind::Scatter, CollectiveKind::Gather] {
            assert_eq!(costs(kind, Algorithm::Dfc2Do), dimension_order, "{kind}, {name}");
            let balanced = Ratio::new(long * short + long, long + short);
            assert_eq!(costs(kind, Algorithm::Dfc2), (2, balanced), "{kind}, {name}");
            assert_eq!(costs(kind, Algorithm::Multitree).0, 2, "{kind}, {name}");
        }
        let (steps, _) = costs(CollectiveKind::AllToAll, Algorithm::Multitree);
        assert_eq!(steps, least, "{name}");
        // A step and a block more than table 4.2, as its own example of 6x6 has it.
        if rows == columns && rows % 2 == 0 {
            assert_eq!(costs(CollectiveKind::AllToAll, Algorithm::Multitree), whole(1 + long / 2, 1 + long), "{name}");
        }
    }
}

/// Table 4.2 itself: m2/2 steps and m2 blocks, wherever equation 4.4 allows so few steps.
#[test]
fn multitree_costs_what_table_4_2_says_where_sides_differ_enough() {
    for (m2, m1) in [(12, 8), (10, 6), (8, 4), (16, 8)] {
        let topology = network(&format!("dfc2:{m2}x{m1}"));
        let least = (m2 * m1 - 1_u64).div_ceil(m2 + m1 - 2);
        let (steps, blocks) = cost(&topology, CollectiveKind::AllToAll, Algorithm::Multitree);
        assert_eq!(steps, least, "{m2}x{m1}");
        assert!(blocks <= Ratio::from_integer(m2), "{m2}x{m1}: {blocks}");
    }
    assert_eq!(cost(&network("dfc2:12x8"), CollectiveKind::AllToAll, Algorithm::Multitree), whole(6, 12));
}

/// What each link carries in a step is what it is times as wide as the narrowest one, at most.
#[test]
fn multitree_passes_switches_and_uses_wide_links_several_times() {
    for expression in [
        "dgx-a100:boxes=2",
        "mi250:boxes=2,gpus=8",
        "fat-tree:k=4",
        "leaf-spine:leaves=2,hosts=3,spines=2",
        "torus:3x3,host=75GB/s",
        "torus:3x4,degrade=00>01*1/3",
        "rail:boxes=2,gpus=4",
    ] {
        let topology = network(expression);
        let narrowest = topology.links().iter().map(|link| link.capacity.bytes_per_sec()).min().unwrap();
        for kind in CollectiveKind::ALL {
            let schedule = planned(&topology, kind, Algorithm::Multitree).unwrap();
            check(&topology, &compile(&topology, &schedule).unwrap()).unwrap();
            let Shape::Steps(steps) = &schedule.shape else { panic!("steps") };
            let is_single = !matches!(kind, CollectiveKind::Allgather | CollectiveKind::ReduceScatter);
            let mut carried: BTreeMap<(u32, u32), u64> = BTreeMap::new();
            for send in steps.sends.iter().filter(|_| !is_single) {
                for carrier in steps.carriers_of(send) {
                    for link in steps.routes.get(carrier.route).unwrap() {
                        *carried.entry((send.step, link.number())).or_default() += carrier.chunk_count;
                    }
                }
            }
            for ((step, link), count) in carried {
                let capacity = topology.links()[link as usize].capacity.bytes_per_sec();
                assert!(count <= capacity / narrowest, "{kind} on {expression}: link {link} in step {step}");
            }
        }
    }
}

/// Table 4.1 with x = 1/2, which is as good as any x between its and m1/(m1 + m2): in both steps every link along X carries
/// half of m2 blocks, and every link along Y half of m1, so that one dimension waits for half of the difference (4.7) twice.
#[test]
fn both_dimensions_carry_what_table_4_1_says() {
    for (m2, m1) in [(4_u64, 4_u64), (3, 4), (4, 6), (8, 2)] {
        let topology = network(&format!("dfc2:{m2}x{m1}"));
        let schedule = planned(&topology, CollectiveKind::AllToAll, Algorithm::Dfc2).unwrap();
        let Shape::Steps(steps) = &schedule.shape else { panic!("steps") };
        let mut carried: BTreeMap<(u32, u32, u32), u64> = BTreeMap::new();
        for send in &steps.sends {
            let chunks = send.chunks.end - send.chunks.start;
            *carried.entry((send.step, send.from.number(), send.to.number())).or_default() += chunks;
        }
        assert_eq!(carried.len() as u64, 2 * m1 * m2 * (m1 + m2 - 2));
        for ((step, from, to), chunks) in carried {
            let is_along_x = u64::from(from) / m1 == u64::from(to) / m1;
            let blocks = Ratio::new(if is_along_x { m2 } else { m1 }, 2);
            assert_eq!(Ratio::new(chunks, steps.chunks_per_share), blocks, "{m2}x{m1}, step {step}, {from} to {to}");
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

/// Unequal sides in more dimensions: a block passes a line of every dimension, and shares grow with every line.
#[test]
fn sides_of_more_dimensions_may_differ() {
    for (expression, sides) in [("hamming:2x3x4", vec![2, 3, 4]), ("hamming:3x2x4x2", vec![2, 2, 3, 4])] {
        let topology = network(expression);
        let (ranks, steps) = (sides.iter().product::<u64>(), sides.len() as u64);
        let blocks = sides.iter().map(|side| ranks / side).sum();
        let shares = (0..sides.len()).map(|count| sides[..count].iter().product::<u64>()).sum();
        let in_turn = |kind| match kind {
            CollectiveKind::AllToAll => whole(steps, blocks),
            CollectiveKind::Broadcast | CollectiveKind::Reduce => whole(steps, steps),
            CollectiveKind::Allreduce => whole(2 * steps, 2 * shares),
            _ => whole(steps, shares),
        };
        for kind in CollectiveKind::ALL {
            assert_eq!(cost(&topology, kind, Algorithm::Dfc2Do), in_turn(kind), "{kind} on {expression}");
            let (steps, at_once) = cost(&topology, kind, Algorithm::Dfc2);
            assert_eq!(steps, in_turn(kind).0, "{kind} on {expression}");
            assert!(at_once < in_turn(kind).1, "{kind} on {expression}: {at_once}");
            cost(&topology, kind, Algorithm::Multitree);
        }
    }
}

#[test]
fn multitree_plans_any_network_of_equal_links() {
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
        "kautz needs a Kautz network: 9 ranks of degree 4 are not one (5, 20, 80, … are); use multitree, bfb or tacos"
    );
    let refusal = refused("dfc2:3x3,down=00-01", Algorithm::Dfc2);
    assert!(refusal.starts_with("dfc2 needs a grid whose lines are fully connected"), "{refusal}");
    let refusal = refused("dgx-a100:boxes=2", Algorithm::Kautz);
    assert!(refusal.starts_with("kautz needs direct links between ranks"), "{refusal}");
    let expected = SynthesisError::Stopped;
    let topology = network("dfc2:3x3");
    let collective = Collective::new(CollectiveKind::Allgather, None, 9).unwrap();
    let request = SynthesisRequest::new(collective, Algorithm::Dfc2);
    assert_eq!(synthesize(&topology, &request, &|| true, &Silent), Err(expected));
}
