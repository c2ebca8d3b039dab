//! Delays of links: program (A.12) over all subsets of links, exhaustive search for whole chunks, hand-made examples.

use super::*;

/// Node 0 with in-links from 1 and 2, of these widths, over which the shares of nodes 3 to 2 + `far` come.
fn two_links(widths: [u64; 2], far: u32) -> Digraph {
    let arc = |from, to, capacity| Arc { from, to, capacity };
    let near = [arc(1, 0, widths[0]), arc(2, 0, widths[1])];
    let rest = (3..3 + far).flat_map(|source| [arc(source, 1, widths[0]), arc(source, 2, widths[0])]);
    Digraph { node_count: 3 + far, arcs: near.into_iter().chain(rest).collect() }
}

/// By number of arcs: the first two have these delays.
fn first_two(graph: &Digraph, delays: [u64; 2]) -> Vec<u64> {
    let rest = graph.arcs.len() - 2;
    delays.into_iter().chain(std::iter::repeat_n(0, rest)).collect()
}

#[track_caller]
fn check_two(widths: [u64; 2], far: u32, delays: [u64; 2], per: u64, expected: &str) {
    let graph = two_links(widths, far);
    let delays = first_two(&graph, delays);
    let graph = BfbGraph::with_equal_shares(&graph, &Never).unwrap().with_delays(&delays, per).unwrap();
    let mut arrivals = Arrivals::new(&graph);
    arrivals.visit(0, &Never).unwrap();
    assert_eq!(arrivals.load(2, &Never), Ok(fraction(expected)));
}

#[test]
fn a_late_link_carries_less_or_nothing() {
    // Two shares: one each; with a delay of a half, 5/4 and 3/4; of one and a half, 7/4 and 1/4; of two or more, all on one.
    check_two([1, 1], 2, [0, 0], 1, "1");
    check_two([1, 1], 2, [0, 1], 2, "5/4");
    check_two([1, 1], 2, [0, 3], 2, "7/4");
    check_two([1, 1], 2, [0, 2], 1, "2");
    check_two([1, 1], 2, [0, 1000], 1, "2");
    // What both have adds to it; a wide link makes up for its delay.
    check_two([1, 1], 2, [3, 4], 2, "11/4");
    check_two([1, 3], 3, [0, 1], 3, "1");
}

/// Node 4 can only come over the late link: it stays, and what else arrives takes the other one.
#[test]
fn a_link_that_is_needed_stays_however_late() {
    let near = [(1, 0), (2, 0)];
    let far = [(3, 1), (3, 2), (4, 2)];
    let graph = digraph(5, near.into_iter().chain(far));
    let delayed = |delays: [u64; 5]| {
        let graph = BfbGraph::with_equal_shares(&graph, &Never).unwrap().with_delays(&delays, 1).unwrap();
        let mut arrivals = Arrivals::new(&graph);
        arrivals.visit(0, &Never).unwrap();
        let load = arrivals.load(2, &Never).unwrap();
        let pieces = arrivals.assign(2, 2, ratio(load.numerator * 2, load.denominator), &Never).unwrap().unwrap();
        (load, pieces.into_iter().map(|piece| (piece.source, piece.link)).collect::<Vec<_>>())
    };
    assert_eq!(delayed([0, 7, 0, 0, 0]), (ratio(8, 1), vec![(4, 1), (3, 0)]));
    assert_eq!(delayed([7, 0, 0, 0, 0]), (ratio(2, 1), vec![(4, 1), (3, 1)]));
}

#[test]
fn what_cannot_be_counted_is_refused() {
    let graph = || BfbGraph::with_equal_shares(&two_links([1, 3], 2), &Never).unwrap();
    assert_eq!(graph().with_delays(&[0; 3], 1).err(), Some(BfbError::TooFewDelays { found: 3, arc: 4 }));
    let per = 1 << 60;
    assert_eq!(graph().with_delays(&[1; 6], per).err(), Some(BfbError::InexactDelays { per }));
    assert!(graph().with_delays(&[1 << 40; 6], 1 << 20).is_ok());
}

/// Program (A.12) with some of the in-links, in floating point and sharing nothing; none where they do not reach all.
#[expect(clippy::cast_precision_loss, reason = "a program in floating point")]
fn program_with(arrivals: &Arrivals<'_>, graph: &BfbGraph, step: u32, used: usize, per: u64) -> Option<f64> {
    let links = graph.in_links(arrivals.node());
    let mut variables = ProblemVariables::new();
    let most = variables.add(variable().min(0));
    let mut over: Vec<Expression> = vec![0.into(); links.len()];
    let mut whole: Vec<(Expression, u64)> = Vec::new();
    for &source in arrivals.sources(step).iter().filter(|&&source| graph.amount(source) > 0) {
        let usable = (0..links.len()).filter(|&link| used >> link & 1 == 1 && arrivals.can_use(source, link));
        let parts: Vec<(usize, Variable)> = usable.map(|link| (link, variables.add(variable().min(0)))).collect();
        if parts.is_empty() {
            return None;
        }
        parts.iter().for_each(|&(link, part)| over[link] += part);
        whole.push((parts.iter().map(|&(_, part)| part).sum(), graph.amount(source)));
    }
    let mut model = variables.minimise(most).using(microlp);
    for (position, (over, link)) in over.into_iter().zip(links).enumerate() {
        if used >> position & 1 == 1 {
            model = model.with(constraint!(
                over + link.delay as f64 * link.width as f64 / per as f64 <= link.width as f64 * most
            ));
        }
    }
    for (sum, amount) in whole {
        model = model.with(constraint!(sum == amount as f64));
    }
    Some(model.solve().unwrap().value(most))
}

/// Least time over all divisions into whole chunks, by trying all.
fn exhaustive_delayed(arrivals: &Arrivals<'_>, graph: &BfbGraph, step: u32, chunks: u64, per: u64) -> Fraction {
    let links = graph.in_links(arrivals.node());
    let mut reached = std::collections::BTreeSet::from([vec![0_u64; links.len()]]);
    for &source in arrivals.sources(step) {
        for _ in 0..graph.amount(source) * chunks {
            let usable = || (0..links.len()).filter(|&link| arrivals.can_use(source, link));
            let put = |loads: Vec<u64>| {
                usable().map(move |link| {
                    let mut loads = loads.clone();
                    loads[link] += 1;
                    loads
                })
            };
            reached = reached.into_iter().flat_map(put).collect();
        }
    }
    let time = |(&load, link): (&u64, &InLink)| {
        let late = u128::from(link.delay * chunks * link.width);
        let numerator = late + u128::from(load * per);
        if load == 0 { Fraction::ZERO } else { ratio(numerator, u128::from(per * link.width)) }
    };
    let most = |loads: Vec<u64>| loads.iter().zip(links).map(time).max();
    reached.into_iter().filter_map(most).min().unwrap()
}

/// Steps of all nodes, with delays of so many parts for each arc.
fn delayed(graph: &Digraph, amounts: &[u64], delays: &[u64], per: u64) -> BfbGraph {
    let graph_of = BfbGraph::new(graph, &amounts[..graph.node_count as usize], &Never).unwrap();
    let delays: Vec<u64> = delays.iter().copied().cycle().take(graph.arcs.len()).collect();
    graph_of.with_delays(&delays, per).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The least over all subsets of links of program (A.12): what dropping links one by one can come to. Flows agree.
    #[test]
    fn times_are_the_optima_of_the_program_over_all_subsets(
        graph in graphs(7, 3),
        amounts in prop::collection::vec(0..4_u64, 7),
        delays in prop::collection::vec(0..7_u64, 5),
        per in 1..=3_u64,
    ) {
        let graph = delayed(&graph, &amounts, &delays, per);
        let mut arrivals = Arrivals::new(&graph);
        for node in 0..graph.node_count() {
            arrivals.visit(node, &Never).unwrap();
            let link_count = graph.in_links(node).len();
            if link_count > 5 {
                continue;
            }
            for step in 1..=arrivals.step_count() {
                let load = arrivals.load(step, &Never).unwrap();
                if load != Fraction::ZERO {
                    #[expect(clippy::cast_precision_loss, reason = "to compare with a floating-point optimum")]
                    let value = load.numerator as f64 / load.denominator as f64;
                    let programs = (1..1 << link_count).filter_map(|used| program_with(&arrivals, &graph, step, used, per));
                    let least = programs.fold(f64::INFINITY, f64::min);
                    prop_assert!((value - least).abs() < 1e-6, "{load} against {least}");
                }
                let pipes = arrivals.pipes(1).unwrap();
                prop_assert_eq!(arrivals.delayed_load_by_flows(step, &pipes, &Never).unwrap(), load);
            }
        }
    }

    /// The optimum for whole chunks is that of trying all divisions, and is reached by the assignment.
    #[test]
    fn whole_chunks_come_as_soon_as_by_any_division(
        graph in graphs(5, 2),
        delays in prop::collection::vec(0..7_u64, 5),
        per in 1..=3_u64,
        chunks in 1..=5_u64,
    ) {
        let graph = delayed(&graph, &[1; 5], &delays, per);
        let mut arrivals = Arrivals::new(&graph);
        for node in 0..graph.node_count() {
            arrivals.visit(node, &Never).unwrap();
            for step in 1..=arrivals.step_count() {
                let load = arrivals.chunk_load(step, chunks, Fraction::ZERO, &Never).unwrap();
                prop_assert_eq!(load, exhaustive_delayed(&arrivals, &graph, step, chunks, per));
                let pipes = arrivals.pipes(chunks).unwrap();
                let by_flows = arrivals.delayed_chunk_load_by_flows(step, chunks, Fraction::ZERO, &pipes, &Never);
                prop_assert_eq!(by_flows.unwrap(), load);
                let pieces = arrivals.assign(step, chunks, load, &Never).unwrap().expect("the least time has room");
                let mut carried = vec![0; graph.in_links(node).len()];
                for piece in pieces {
                    prop_assert!(arrivals.can_use(piece.source, piece.link as usize));
                    carried[piece.link as usize] += piece.chunks.end - piece.chunks.start;
                }
                for (&carried, link) in carried.iter().zip(graph.in_links(node)).filter(|&(&carried, _)| carried > 0) {
                    let time = ratio((link.delay * chunks * link.width + carried * per).into(), (per * link.width).into());
                    prop_assert!(time <= load, "{time} over {load}");
                }
            }
        }
    }

    /// Without differences it is what it is without delays, later by the delay.
    #[test]
    fn equal_delays_change_nothing(graph in graphs(9, 3), delay in 0..9_u64) {
        let (plain, late) = (delayed(&graph, &[1; 9], &[0], 1), delayed(&graph, &[1; 9], &[delay], 1));
        let without = BfbGraph::with_equal_shares(&graph, &Never).unwrap();
        let (plain, late, without) = (all_loads(&plain, None), all_loads(&late, None), all_loads(&without, None));
        prop_assert_eq!(&plain, &without);
        for (&load, later) in plain.loads.iter().zip(late.loads) {
            prop_assert_eq!(load.checked_add(ratio(delay.into(), 1)).unwrap(), later);
        }
    }
}
