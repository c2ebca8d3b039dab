//! Messages on several paths: by rule, by search, and against every other division.

use canopy_optimize::{Arc, Digraph, Never};
use num_bigint::BigInt;
use num_rational::BigRational;
use proptest::prelude::*;

use super::kautz::{KautzPair, KautzPairError, KautzPaths, kautz_paths};
use super::*;
use crate::Family;
use crate::multiport::tests::graph;

fn ratio(top: u64, bottom: u64) -> BigRational {
    BigRational::new(BigInt::from(top), BigInt::from(bottom))
}

/// K(d, 2) with links of 1 µs and 10 Gbyte/s.
fn kautz(d: u32) -> Digraph {
    let graph = graph(Family::Kautz { d: d.into(), n: 2 });
    let arcs = graph.edges().map(|(from, to)| Arc { from, to, capacity: 10_000_000_000 });
    Digraph { node_count: graph.order(), arcs: arcs.collect() }
}

const LATENCY_NS: u64 = 1000;

fn problem<'a>(graph: &'a Digraph, latencies_ns: &'a [u64], (from, to): (u32, u32), size: u64) -> MultiPathProblem<'a> {
    let forwarding = Forwarding::Whole;
    MultiPathProblem { graph, latencies_ns, from, to, size_bytes: size, paths_max: 64, forwarding }
}

/// Nodes of a path of links.
fn nodes(graph: &Digraph, arcs: &[u32]) -> Vec<u32> {
    let first = graph.arcs[arcs[0] as usize].from;
    std::iter::once(first).chain(arcs.iter().map(|&arc| graph.arcs[arc as usize].to)).collect()
}

/// Section 3.3: how many pairs are of which type, by how many paths of which lengths, without a node in common.
#[test]
fn types_of_pairs() {
    for d in 2..=8 {
        let graph = kautz(d);
        let mut counts = [0; 3];
        for to in 1..graph.node_count {
            let KautzPaths { pair, paths } = kautz_paths(d, 0, to).unwrap();
            let links: Vec<usize> = paths.iter().map(|path| path.len() - 1).collect();
            let (first, count, place) = match pair {
                KautzPair::Far => (2, d, 0),
                KautzPair::Back => (1, d, 1),
                KautzPair::Near => (1, d - 1, 2),
            };
            counts[place] += 1;
            assert_eq!((links[0], links.len()), (first, count as usize), "{d}: {pair:?}");
            assert!(links[1..].iter().all(|&length| length == 3));
            let mut inner: Vec<u32> = paths.iter().flat_map(|path| &path[1..path.len() - 1]).copied().collect();
            for path in &paths {
                assert_eq!((path[0], path[path.len() - 1]), (0, to));
                let is_link = |pair: &[u32]| graph.arcs.iter().any(|arc| [arc.from, arc.to] == [pair[0], pair[1]]);
                assert!(path.windows(2).all(is_link), "{d}: {path:?}");
            }
            inner.sort_unstable();
            assert!(inner.windows(2).all(|pair| pair[0] != pair[1]) && !inner.contains(&0) && !inner.contains(&to));
        }
        assert_eq!(counts, [d * d - 1, 1, d - 1], "{d}");
    }
}

/// The search finds paths as short as the rule's, and for pairs of type 3 one more, of four links.
#[test]
fn the_search_finds_the_paths_of_the_rule() {
    for d in 2..=6 {
        let graph = kautz(d);
        for (from, to) in [(0, 1), (1, 0), (d, 0), (0, d), (0, d + 1), (3, 5)].into_iter().filter(|(a, b)| a != b) {
            let rule = kautz_paths(d, from, to).unwrap();
            let latencies = vec![0; graph.arcs.len()];
            let found = multi_path(&problem(&graph, &latencies, (from, to), 1 << 40), &Never).unwrap();
            let mut links: Vec<usize> = rule.paths.iter().map(|path| path.len() - 1).collect();
            links.extend((rule.pair == KautzPair::Near).then_some(4));
            let lengths: Vec<usize> = found.parts.iter().map(|part| part.arcs.len()).collect();
            assert_eq!((lengths, found.disjoint), (links, d as usize), "{d}: {from} to {to}");
            assert_eq!(nodes(&graph, &found.single), rule.paths[0]);
        }
    }
}

/// Times of all pairs with node 0: of single paths, and of equal parts on the rule's paths, all waiting for the longest.
fn sums(d: u32, size: u64) -> (BigRational, BigRational) {
    let hop = Hop { latency_ns: LATENCY_NS, bytes_per_sec: 10_000_000_000 };
    let line = |links: usize| Line::new(std::iter::repeat_n(hop, links), Forwarding::Whole);
    let mut sums = (ratio(0, 1), ratio(0, 1));
    for to in 1..d * (d + 1) {
        let KautzPaths { paths, .. } = kautz_paths(d, 0, to).unwrap();
        sums.0 += line(paths[0].len() - 1).time(&ratio(size, 1));
        let lines: Vec<Line> = paths.iter().map(|path| line(path.len() - 1)).collect();
        let even = even_time(&lines, size).unwrap();
        // As printed, the single path of type 3 and d = 2 is waited for as if it had three links.
        let synchronous = line(3).time(&ratio(size, paths.len() as u64));
        assert!(even == synchronous || (d == 2 && paths.len() == 1), "{d}: to {to}");
        sums.1 += synchronous;
    }
    (sums.0, sums.1)
}

/// Formulas (3.7), (3.8) and (3.9) for d = 2 to 8, of the last value K7, and the size from which several paths are faster.
#[test]
fn averages_are_those_of_the_formulas() {
    let (alpha, beta) = (ratio(LATENCY_NS, 1), ratio(1, 10));
    for d in 2..=8_u32 {
        let wide = u64::from(d);
        let pairs = ratio(wide * (wide + 1), 1);
        let single_hops = ratio(2 * wide * wide + wide - 2, wide * (wide + 1));
        for size in [1, 1000, 1 << 20] {
            let size_times_beta = ratio(size, 1) * &beta;
            let (single, several) = sums(d, size);
            assert_eq!(single / &pairs, &single_hops * (&alpha + &size_times_beta), "(3.7) for {d}");
            let starts = ratio(3, 1) * (ratio(1, 1) - ratio(1, wide * (wide + 1)));
            assert_eq!(several / &pairs, starts * &alpha + ratio(3, wide) * size_times_beta, "(3.8) for {d}");
        }
        // (3.9): what the latencies add is less than a thousandth for the greatest message.
        let (single, several) = sums(d, 1 << 40);
        let (limit, found) = (ratio(2 * wide * wide + wide - 2, 3 * (wide + 1)), single / several);
        let off = if found > limit { &found - &limit } else { &limit - &found };
        assert!(off < ratio(1, 1000), "(3.9) for {d}");
        // Several paths are as fast as one at (α/β)(d² + 2d − 1)/(2d² − 2d − 5), for d = 2 never.
        let size = 10_000 * (wide * wide + 2 * wide - 1);
        match 2 * wide * (wide - 1) {
            ..5 => {
                let (single, several) = sums(d, u64::MAX);
                assert!(single < several);
            }
            bottom if size.is_multiple_of(bottom - 5) => {
                let (single, several) = sums(d, size / (bottom - 5));
                assert_eq!(single, several, "break-even for {d}");
            }
            bottom => {
                let around = [0, 1].map(|more| sums(d, size / (bottom - 5) + more));
                assert!(around[0].0 < around[0].1 && around[1].0 > around[1].1, "break-even for {d}");
            }
        }
    }
    // Value K7.
    let k7 = [3_u64, 4, 8].map(|d| (2 * d * d + d - 2, 3 * (d + 1)));
    assert_eq!(k7.map(|(top, bottom)| (top * 10_000 + bottom / 2) / bottom), [15_833, 22_667, 49_630]);
}

/// Type 1 of K(4, 2): one path of 2 links and three of 3. With α = 1 µs and β = 0.1 ns the parts of 1 MB end together at
/// (M + Σ α/β)/Σ 1/(hβ) = (10⁶ + 4·10⁴)/(1/2 + 3/3)·0.1 ns.
#[test]
fn parts_of_different_size_end_together() {
    let graph = kautz(4);
    let latencies = vec![LATENCY_NS; graph.arcs.len()];
    let to = (1..graph.node_count).find(|&to| kautz_paths(4, 0, to).unwrap().pair == KautzPair::Far).unwrap();
    let found = multi_path(&problem(&graph, &latencies, (0, to), 1_000_000), &Never).unwrap();
    assert_eq!(found.time_ns, ratio(104_000 * 2, 3));
    assert_eq!(found.even_time_ns, ratio(3 * (1000 + 25_000), 1));
    assert_eq!(found.single_time_ns, ratio(2 * (1000 + 100_000), 1));
    assert!(found.parts.iter().all(|part| part.line.time(&part.share) == found.time_ns));
    let bytes: Vec<u64> = found.parts.iter().map(|part| part.bytes).collect();
    assert_eq!((bytes.iter().sum::<u64>(), bytes[0]), (1_000_000, 336_667));
    // A few bytes are not worth a second path.
    let small = multi_path(&problem(&graph, &latencies, (0, to), 64), &Never).unwrap();
    assert_eq!((small.parts.len(), small.parts[0].arcs.len()), (1, 2));
    // As it comes in, a part takes α for each link and mβ once.
    let through =
        MultiPathProblem { forwarding: Forwarding::Through, ..problem(&graph, &latencies, (0, to), 1_000_000) };
    let found = multi_path(&through, &Never).unwrap();
    assert_eq!(found.time_ns, ratio(100_000 + 2000 + 3 * 3000, 4));
}

/// A slow direct link beside a fast detour: alone, the detour is faster for much and the link for little.
#[test]
fn links_that_are_not_alike() {
    let arc = |from, to, capacity| Arc { from, to, capacity };
    let graph = Digraph {
        node_count: 3,
        arcs: vec![arc(0, 2, 1_000_000_000), arc(0, 1, 50_000_000_000), arc(1, 2, 50_000_000_000)],
    };
    let latencies = [100, 1000, 1000];
    let much = multi_path(&problem(&graph, &latencies, (0, 2), 1_000_000), &Never).unwrap();
    assert_eq!((much.single.as_slice(), much.single_time_ns.clone()), ([1, 2].as_slice(), ratio(42_000, 1)));
    assert_eq!(much.parts.len(), 2);
    assert!(much.whole_time_ns < much.single_time_ns);
    let little = multi_path(&problem(&graph, &latencies, (0, 2), 100), &Never).unwrap();
    assert_eq!((little.parts.len(), little.single.as_slice(), little.time_ns), (1, [0].as_slice(), ratio(200, 1)));
}

#[test]
fn what_is_no_problem_is_refused() {
    let mut graph = kautz(2);
    let plain = problem(&graph, &[], (0, 3), 8);
    let refused = |problem: MultiPathProblem<'_>| multi_path(&problem, &Never).unwrap_err();
    assert_eq!(refused(MultiPathProblem { to: 6, ..plain }), MultiPathError::Node { node: 6, count: 6 });
    assert_eq!(refused(MultiPathProblem { to: 0, ..plain }), MultiPathError::Same { node: 0 });
    assert_eq!(refused(MultiPathProblem { size_bytes: 0, ..plain }), MultiPathError::Empty);
    for found in [0, PATHS_MAX + 1] {
        assert_eq!(refused(MultiPathProblem { paths_max: found, ..plain }), MultiPathError::Count { found });
    }
    let uneven = Arc { from: 0, to: 0, capacity: 0 };
    let chain: Vec<Arc> =
        (0..17).map(|node| Arc { from: node, to: node + 1, capacity: 1 << node }).chain([uneven]).collect();
    let chain = Digraph { node_count: 18, arcs: chain };
    assert_eq!(refused(problem(&chain, &[], (0, 17), 8)), MultiPathError::Rates);
    assert!(multi_path(&problem(&chain, &[], (0, 16), 8), &Never).is_ok());
    assert!(matches!(multi_path(&plain, &|| true), Err(MultiPathError::Stopped(_))));
    let huge = multi_path(&MultiPathProblem { size_bytes: u64::MAX, ..plain }, &Never).unwrap();
    assert_eq!(huge.parts.iter().map(|part| u128::from(part.bytes)).sum::<u128>(), u64::MAX.into());
    graph.arcs.retain(|arc| arc.to != 3);
    assert_eq!(refused(problem(&graph, &[], (0, 3), 8)), MultiPathError::Unreachable { from: 0, to: 3 });
    assert_eq!(kautz_paths(1, 0, 1), Err(KautzPairError::Degree { degree: 1 }));
    assert_eq!(kautz_paths(2, 0, 6), Err(KautzPairError::Node { node: 6, degree: 2, order: 6 }));
    assert_eq!(kautz_paths(2, 5, 5), Err(KautzPairError::Same { node: 5 }));
}

fn lines() -> impl Strategy<Value = Vec<Line>> {
    let line = (0_u64..6, 1_u64..5)
        .prop_map(|(start, per_byte)| Line { start: ratio(start, 1), per_byte: ratio(per_byte, 1) });
    proptest::collection::vec(line, 1..4)
}

/// The time of every division of so many bytes among the lines, and the least of them.
fn least(lines: &[Line], bytes: u64) -> Option<BigRational> {
    let (first, rest) = lines.split_first()?;
    if rest.is_empty() {
        return Some(if bytes == 0 { ratio(0, 1) } else { first.time(&ratio(bytes, 1)) });
    }
    let with = |own: u64| {
        let own_time = if own == 0 { ratio(0, 1) } else { first.time(&ratio(own, 1)) };
        least(rest, bytes - own).map(|rest| rest.max(own_time))
    };
    (0..=bytes).filter_map(with).min()
}

proptest! {
    /// No division into whole bytes is faster, and none at all is faster than the one whose parts end together.
    #[test]
    fn no_other_division_is_faster(lines in lines(), size in 1_u64..14) {
        let divided = split(&lines, size).unwrap();
        prop_assert_eq!(divided.bytes.iter().sum::<u64>(), size);
        prop_assert_eq!(divided.shares.iter().sum::<BigRational>(), ratio(size, 1));
        for (line, share) in lines.iter().zip(&divided.shares) {
            let is_idle = *share == ratio(0, 1);
            let is_right = if is_idle { line.start >= divided.time_ns } else { line.time(share) == divided.time_ns };
            prop_assert!(is_right, "{line:?} with {share}");
        }
        prop_assert_eq!(least(&lines, size), Some(divided.whole_time_ns.clone()));
        prop_assert!(divided.time_ns <= divided.whole_time_ns);
        prop_assert!(divided.time_ns <= even_time(&lines, size).unwrap());
    }

    /// Paths lead from end to end, share no link, and carry the message; they are no slower than one path and than equal parts.
    #[test]
    fn paths_are_disjoint_and_carry_the_message(
        ends in proptest::collection::vec((0_u32..7, 0_u32..7, 1_u64..5, 0_u64..3), 1..30),
        size in 1_u64..1_000_000,
        through: bool,
    ) {
        let arcs = ends.iter().map(|&(from, to, capacity, _)| Arc { from, to, capacity: capacity * 1_000_000_000 });
        let graph = Digraph { node_count: 7, arcs: arcs.collect() };
        let latencies: Vec<u64> = ends.iter().map(|&(.., latency)| latency * 1000).collect();
        let forwarding = if through { Forwarding::Through } else { Forwarding::Whole };
        let problem = MultiPathProblem { forwarding, ..problem(&graph, &latencies, (0, 6), size) };
        let found = match multi_path(&problem, &Never) {
            Ok(found) => found,
            Err(error) => {
                prop_assert_eq!(error, MultiPathError::Unreachable { from: 0, to: 6 });
                return Ok(());
            }
        };
        let mut used: Vec<u32> = Vec::new();
        for part in &found.parts {
            prop_assert_eq!((nodes(&graph, &part.arcs)[0], nodes(&graph, &part.arcs)[part.arcs.len()]), (0, 6));
            prop_assert!(part.arcs.windows(2).all(|pair| graph.arcs[pair[0] as usize].to == graph.arcs[pair[1] as usize].from));
            prop_assert!(part.bytes > 0);
            used.extend(&part.arcs);
        }
        used.sort_unstable();
        prop_assert!(used.windows(2).all(|pair| pair[0] != pair[1]));
        prop_assert_eq!(found.parts.iter().map(|part| part.bytes).sum::<u64>(), size);
        prop_assert!(found.whole_time_ns <= found.single_time_ns && found.time_ns <= found.even_time_ns);
        prop_assert!(found.parts.len() <= found.disjoint);
    }
}
