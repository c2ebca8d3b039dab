//! Exact step loads of known graphs, the example of figure 3.5, a linear program and exhaustive search as references.

mod delays;
mod joint;

use good_lp::{Expression, ProblemVariables, Solution, SolverModel, Variable, constraint, microlp, variable};
use proptest::prelude::*;

use super::*;
use crate::stop::Never;

impl Arrivals<'_> {
    /// Whether a source's share can come over the in-link at a position.
    fn can_use(&self, source: u32, link: usize) -> bool {
        self.masks[source as usize * self.words + link / 64] >> (link % 64) & 1 == 1
    }
}

type Edges = Vec<(u32, u32)>;

fn digraph(node_count: u32, edges: impl IntoIterator<Item = (u32, u32)>) -> Digraph {
    let arcs = edges.into_iter().map(|(from, to)| Arc { from, to, capacity: 1 }).collect();
    Digraph { node_count, arcs }
}

fn bipartite(side: u32) -> (u32, Edges) {
    let edges = (0..side).flat_map(|a| (side..2 * side).flat_map(move |b| [(a, b), (b, a)]));
    (2 * side, edges.collect())
}

fn circulant(count: u32, offsets: &[u32]) -> (u32, Edges) {
    let edges = (0..count).flat_map(|v| offsets.iter().flat_map(move |o| [(v, (v + o) % count), ((v + o) % count, v)]));
    (count, edges.collect())
}

fn one_way_ring(degree: u32, count: u32) -> (u32, Edges) {
    (count, (0..count).flat_map(|v| (0..degree).map(move |_| (v, (v + 1) % count))).collect())
}

fn generalized_kautz(degree: u32, count: u32) -> (u32, Edges) {
    (
        count,
        (0..count)
            .flat_map(|x| (1..=degree).map(move |a| (x, (count * degree - degree * x + count - a) % count)))
            .collect(),
    )
}

fn de_bruijn(degree: u32, length: u32) -> (u32, Edges) {
    let count = degree.pow(length);
    (count, (0..count).flat_map(|x| (0..degree).map(move |a| (x, (degree * x + a) % count))).collect())
}

/// Sides of 2 are single pairs of links.
fn torus(sides: &[u32]) -> (u32, Edges) {
    let mut edges = Vec::new();
    let count = sides.iter().product();
    let mut stride = 1;
    for &side in sides {
        for node in 0..count {
            let at = node / stride % side;
            let next = node - at * stride + (at + 1) % side * stride;
            edges.push((node, next));
            if side > 2 {
                edges.push((next, node));
            }
        }
        stride *= side;
    }
    (count, edges)
}

fn line(times: u32, (mut count, mut edges): (u32, Edges)) -> (u32, Edges) {
    for _ in 0..times {
        let all = (0..).zip(&edges);
        let next = all.clone().flat_map(|(a, &(_, middle))| {
            all.clone().filter(move |&(_, &(from, _))| from == middle).map(move |(b, _)| (a, b))
        });
        (count, edges) = (u32::try_from(edges.len()).unwrap(), next.collect());
    }
    (count, edges)
}

fn fraction(text: &str) -> Fraction {
    let (top, bottom) = text.trim().split_once('/').unwrap_or((text.trim(), "1"));
    Fraction::new(top.parse().unwrap(), bottom.parse().unwrap()).unwrap()
}

fn all_loads(graph: &BfbGraph, chunks: Option<u64>) -> StepLoads {
    step_loads(graph, 0..graph.node_count(), chunks, &Never).unwrap()
}

/// Loads, and the bandwidth term with so many ports per node.
#[track_caller]
fn check(degree: u32, (count, edges): (u32, Edges), expected: &str, bandwidth: &str) {
    let graph = BfbGraph::with_equal_shares(&digraph(count, edges), &Never).unwrap();
    let loads = all_loads(&graph, None);
    assert_eq!(loads.loads, expected.split(',').map(fraction).collect::<Vec<_>>());
    let total = loads.total().unwrap();
    let term = ratio(total.numerator * u128::from(degree), total.denominator * u128::from(count));
    assert_eq!(term, fraction(bandwidth));
    let chunks = chunks_needed(&loads).unwrap();
    let whole = all_loads(&graph, Some(chunks));
    let scaled = loads.loads.iter().map(|load| ratio(load.numerator * u128::from(chunks), load.denominator));
    assert_eq!(whole.loads, scaled.collect::<Vec<_>>(), "whole chunks reach the exact loads");
    require_assignments(&graph, chunks, &whole);
}

/// Every share comes in whole, over links that it can use, none of which is overloaded.
fn require_assignments(graph: &BfbGraph, chunks: u64, loads: &StepLoads) {
    let mut arrivals = Arrivals::new(graph);
    for node in 0..graph.node_count() {
        arrivals.visit(node, &Never).unwrap();
        for step in 1..=arrivals.step_count() {
            let load = loads.loads.get(step as usize - 1).copied().unwrap_or(Fraction::ZERO);
            let pieces =
                arrivals.assign(step, chunks, load, &Never).unwrap().expect("no load is less than the optimum");
            let mut carried = vec![0; graph.in_links(node).len()];
            for piece in &pieces {
                assert!(arrivals.can_use(piece.source, piece.link as usize));
                carried[piece.link as usize] += piece.chunks.end - piece.chunks.start;
            }
            for (link, &carried) in graph.in_links(node).iter().zip(&carried) {
                assert!(Fraction::new(carried.into(), link.width.into()).unwrap() <= load);
            }
            let mut sources = arrivals.sources(step).to_vec();
            sources.sort_unstable();
            for source in sources {
                let own = pieces.iter().filter(|piece| piece.source == source);
                let end = own.fold(0, |end, piece| {
                    assert_eq!(piece.chunks.start, end);
                    piece.chunks.end
                });
                assert_eq!(end, graph.amount(source) * chunks);
            }
        }
    }
}

#[test]
fn exact_step_loads_of_known_graphs() {
    check(2, bipartite(2), "1, 1/2", "3/4");
    check(3, bipartite(3), "1, 2/3", "5/6");
    check(4, bipartite(4), "1, 3/4", "7/8");
    check(2, circulant(6, &[1]), "1, 1, 1/2", "5/6");
    check(2, one_way_ring(2, 4), "1/2, 1/2, 1/2", "3/4");
    check(4, circulant(12, &[2, 3]), "1, 7/4", "11/12");
    check(4, torus(&[4, 6]), "1, 7/4, 7/4, 1, 1/4", "23/24");
    check(5, torus(&[3, 3, 2]), "1, 8/5, 4/5", "17/18");
    check(3, torus(&[2, 2, 2]), "1, 1, 1/3", "7/8");
    check(4, generalized_kautz(4, 20), "1, 4", "1");
    check(2, generalized_kautz(2, 12), "1, 2, 4", "7/6");
    check(2, line(1, bipartite(2)), "1, 2, 1", "1");
    check(4, line(1, bipartite(4)), "1, 4, 3", "1");
    check(4, line(3, bipartite(4)), "1, 4, 16, 64, 48", "133/128");
    check(2, de_bruijn(2, 3), "1, 2, 4", "7/4");
}

#[test]
fn the_largest_generalized_kautz_graph_of_the_tables() {
    let (count, edges) = generalized_kautz(4, 1024);
    let graph = BfbGraph::with_equal_shares(&digraph(count, edges), &Never).unwrap();
    let loads = all_loads(&graph, None);
    assert_eq!(loads.loads, [1, 4, 16, 64, 256].map(|load| ratio(load, 1)));
    assert_eq!(loads.total(), Some(ratio(341, 1)));
}

/// Where a graph is not its own transpose, both collectives have loads of their own.
#[test]
fn a_reduce_scatter_may_cost_more_than_an_allgather() {
    let (count, edges) = generalized_kautz(4, 11);
    check(4, (count, edges.clone()), "1, 5/2", "14/11");
    check(4, (count, edges.into_iter().map(|(from, to)| (to, from)).collect()), "1, 3", "16/11");
}

/// Figure 3.5: node 0 has in-links from 1, 2, 3, over which the shares of 4 and 5 come.
#[test]
fn two_sources_that_share_the_middle_of_three_links() {
    let near = [(1, 0), (2, 0), (3, 0)];
    let loads = |far: &[(u32, u32)]| {
        let graph = BfbGraph::with_equal_shares(&digraph(6, near.iter().chain(far).copied()), &Never).unwrap();
        step_loads(&graph, [0], None, &Never).unwrap().loads
    };
    assert_eq!(loads(&[(4, 1), (4, 2), (5, 2), (5, 3)]), [ratio(1, 1), ratio(2, 3)]);
    assert_eq!(loads(&[(4, 1), (4, 2), (5, 2)]), [ratio(1, 1), ratio(1, 1)]);
}

/// Ratios of widths 3 and 1: two shares in four units; in halves, the narrow link takes 1/2 or nothing.
#[test]
fn wide_links_carry_more() {
    let arc = |from, to, capacity| Arc { from, to, capacity };
    let near = [arc(1, 0, 75), arc(2, 0, 25)];
    let far = [(3, 1), (3, 2), (4, 1), (4, 2)].map(|(from, to)| arc(from, to, 50));
    let graph = Digraph { node_count: 5, arcs: near.into_iter().chain(far).collect() };
    let graph = BfbGraph::with_equal_shares(&graph, &Never).unwrap();
    assert_eq!(graph.unit(), 25);
    let mut arrivals = Arrivals::new(&graph);
    arrivals.visit(0, &Never).unwrap();
    assert_eq!(arrivals.load(2, &Never), Ok(ratio(1, 2)));
    for (chunks, load) in [(1, ratio(2, 3)), (2, ratio(1, 1)), (4, ratio(2, 1))] {
        assert_eq!(arrivals.chunk_load(2, chunks, Fraction::ZERO, &Never), Ok(load), "{chunks} chunks");
        assert!(arrivals.assign(2, chunks, load, &Never).unwrap().is_some());
    }
}

/// A complete graph of more nodes than a word has bits, with a tail: sets of more than 64 in-links, found by flows.
#[test]
fn many_in_links() {
    let complete = (0..70).flat_map(|a| (0..70).filter(move |&b| a != b).map(move |b| (a, b)));
    let tail = [(70, 0), (70, 1), (0, 70)];
    let graph = BfbGraph::with_equal_shares(&digraph(71, complete.chain(tail)), &Never).unwrap();
    let mut arrivals = Arrivals::new(&graph);
    arrivals.visit(5, &Never).unwrap();
    assert_eq!(arrivals.step_count(), 2);
    assert_eq!(arrivals.sources(2), [70]);
    assert_eq!(arrivals.load(2, &Never), Ok(ratio(1, 2)));
    assert_eq!(arrivals.chunk_load(2, 3, Fraction::ZERO, &Never), Ok(ratio(2, 1)));
    assert_eq!(arrivals.loads(Some(2), &Never).unwrap().loads, [ratio(2, 1), ratio(1, 1)]);
    require_assignments(&graph, 6, &all_loads(&graph, Some(6)));
}

#[test]
fn what_cannot_be_spread_is_refused() {
    let path = digraph(3, [(0, 1), (1, 2)]);
    let graph = BfbGraph::with_equal_shares(&path, &Never).unwrap();
    assert_eq!(step_loads(&graph, 0..3, None, &Never), Err(BfbError::Unreachable { from: 1, node: 0 }));
    let from_the_start = BfbGraph::new(&path, &[1, 0, 0], &Never).unwrap();
    assert_eq!(all_loads(&from_the_start, None).loads, [ratio(1, 1), ratio(1, 1)]);
    assert_eq!(BfbGraph::new(&path, &[1], &Never).err(), Some(BfbError::WrongLength { found: 1, node_count: 3 }));
    let sum = 1 << 64;
    let amounts = [1 << 63, 1 << 63, 0];
    assert_eq!(BfbGraph::new(&path, &amounts, &Never).err(), Some(BfbError::TooLarge { what: "the amounts", sum }));
    let beyond = BfbGraph::with_equal_shares(&digraph(1, [(0, 1)]), &Never);
    assert!(matches!(beyond, Err(BfbError::Graph(_))));
    assert_eq!(BfbGraph::with_equal_shares(&path, &|| true).err(), Some(BfbError::Stopped(Stopped)));
}

/// Linear program (3.1) for what arrives at the node visited, in floating point and sharing nothing.
#[expect(clippy::cast_precision_loss, reason = "a program in floating point")]
fn program(arrivals: &Arrivals<'_>, graph: &BfbGraph, step: u32) -> f64 {
    let links = graph.in_links(arrivals.node());
    let mut variables = ProblemVariables::new();
    let most = variables.add(variable().min(0));
    let mut over: Vec<Expression> = vec![0.into(); links.len()];
    let mut whole: Vec<(Expression, u64)> = Vec::new();
    for &source in arrivals.sources(step) {
        let usable = (0..links.len()).filter(|&link| arrivals.can_use(source, link));
        let parts: Vec<(usize, Variable)> = usable.map(|link| (link, variables.add(variable().min(0)))).collect();
        parts.iter().for_each(|&(link, part)| over[link] += part);
        whole.push((parts.iter().map(|&(_, part)| part).sum(), graph.amount(source)));
    }
    let mut model = variables.minimise(most).using(microlp);
    for (over, link) in over.into_iter().zip(links) {
        model = model.with(constraint!(over <= link.width as f64 * most));
    }
    for (sum, amount) in whole {
        model = model.with(constraint!(sum == amount as f64));
    }
    model.solve().unwrap().value(most)
}

/// Least ratio of load to width over all divisions into whole chunks, by trying all: sets of loads that can come about.
fn exhaustive(arrivals: &Arrivals<'_>, graph: &BfbGraph, step: u32, chunks: u64) -> Fraction {
    let links = graph.in_links(arrivals.node());
    let mut reached = std::collections::BTreeSet::from([vec![0_u64; links.len()]]);
    for &source in arrivals.sources(step) {
        for _ in 0..graph.amount(source) * chunks {
            let usable = || (0..links.len()).filter(|&link| arrivals.can_use(source, link));
            reached = reached
                .into_iter()
                .flat_map(|loads| {
                    usable().map(move |link| {
                        let mut loads = loads.clone();
                        loads[link] += 1;
                        loads
                    })
                })
                .collect();
        }
    }
    let most =
        |loads: Vec<u64>| loads.iter().zip(links).map(|(&load, link)| ratio(load.into(), link.width.into())).max();
    reached.into_iter().filter_map(most).min().unwrap()
}

/// Strongly connected graphs: a ring and whatever comes on top, with capacities from 1 to 3.
fn graphs(nodes: u32, capacity_max: u64) -> impl Strategy<Value = Digraph> {
    (3..=nodes).prop_flat_map(move |count| {
        let arcs = prop::collection::vec((0..count, 0..count, 1..=capacity_max), 0..3 * count as usize);
        let ring = prop::collection::vec(1..=capacity_max, count as usize);
        (ring, arcs).prop_map(move |(ring, arcs)| {
            let ring = (0..count).zip(ring).map(|(v, capacity)| Arc { from: v, to: (v + 1) % count, capacity });
            let rest = arcs.into_iter().map(|(from, to, capacity)| Arc { from, to, capacity });
            Digraph { node_count: count, arcs: ring.chain(rest).collect() }
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// The exact maximum over sets is the optimum of the linear program, shares of any sizes; enumeration and flows agree.
    #[test]
    fn loads_are_the_optima_of_the_linear_program(graph in graphs(9, 3), amounts in prop::collection::vec(0..4_u64, 9)) {
        let amounts = &amounts[..graph.node_count as usize];
        let graph = BfbGraph::new(&graph, amounts, &Never).unwrap();
        let mut arrivals = Arrivals::new(&graph);
        for node in 0..graph.node_count() {
            arrivals.visit(node, &Never).unwrap();
            for step in 1..=arrivals.step_count() {
                let load = arrivals.load(step, &Never).unwrap();
                #[expect(clippy::cast_precision_loss, reason = "to compare with a floating-point optimum")]
                let value = load.numerator as f64 / load.denominator as f64;
                prop_assert!((value - program(&arrivals, &graph, step)).abs() < 1e-6, "{load}");
                prop_assert_eq!(arrivals.load_by_flows(step, &Never).unwrap(), load);
            }
        }
    }

    /// The optimum for whole chunks is that of trying all divisions, and is reached by the assignment.
    #[test]
    fn whole_chunks_reach_the_optimum_of_all_divisions(graph in graphs(5, 2), chunks in 1..=8_u64) {
        let graph = BfbGraph::with_equal_shares(&graph, &Never).unwrap();
        let mut arrivals = Arrivals::new(&graph);
        for node in 0..graph.node_count() {
            arrivals.visit(node, &Never).unwrap();
            for step in 1..=arrivals.step_count() {
                let load = arrivals.chunk_load(step, chunks, Fraction::ZERO, &Never).unwrap();
                prop_assert_eq!(load, exhaustive(&arrivals, &graph, step, chunks));
                prop_assert_eq!(arrivals.chunk_load_by_flows(step, chunks, Fraction::ZERO, &Never).unwrap(), load);
            }
        }
        require_assignments(&graph, chunks, &all_loads(&graph, Some(chunks)));
    }

    /// Loads in chunks are never less than the exact ones, and reach them with the number of chunks that these need.
    #[test]
    fn enough_chunks_reach_the_exact_loads(graph in graphs(9, 3)) {
        let graph = BfbGraph::with_equal_shares(&graph, &Never).unwrap();
        let exact = all_loads(&graph, None);
        let chunks = chunks_needed(&exact).unwrap();
        let whole = all_loads(&graph, Some(chunks));
        for (exact, whole) in exact.loads.iter().zip(&whole.loads) {
            prop_assert_eq!(*whole, ratio(exact.numerator * u128::from(chunks), exact.denominator));
        }
        require_assignments(&graph, chunks, &whole);
    }
}
