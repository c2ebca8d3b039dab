//! Schedules are run on sets of chunks, and their loads added up here, by nothing that composes or predicts.

use canopy_optimize::Never;
use proptest::prelude::*;

use super::*;
use crate::bases::Bases;
use crate::cost::Exactness;
use crate::digraph::Digraph;
use crate::families::Family;
use crate::prediction::{Prediction, Side};

const LIMIT: Limit = Limit { order_max: 2048, edges_max: 1 << 14 };

impl Composed {
    /// All transfers, by step, then source. O(transfers · log transfers).
    fn written_out(&self) -> Vec<Transfer> {
        let mut all = Vec::new();
        self.each(&mut |transfer| all.push(transfer));
        all.sort_unstable_by_key(|transfer: &Transfer| {
            (transfer.step, transfer.source, transfer.edge, transfer.chunks.start)
        });
        all
    }
}

/// Runs all transfers of a composed allgather, step by step: each sender has what it sends before the step, no node gets
/// anything twice, and at the end all have everything. Returns what it costs.
#[track_caller]
fn run(composed: &Composed, graph: &Digraph, heading: Heading) -> Cost {
    let (order, chunks) = (composed.order() as usize, composed.chunks_per_share());
    let size = |chunks: u64| usize::try_from(chunks).unwrap();
    let edges: Vec<(u32, u32)> = graph.edges().collect();
    // By node, source and chunk: the step after which it is there.
    let mut there = vec![u32::MAX; order * order * size(chunks)];
    let at =
        |node: u32, source: u32, chunk: u64| (node as usize * order + source as usize) * size(chunks) + size(chunk);
    let transfers = composed.written_out();
    assert!(transfers.len() as u128 <= composed.transfers_max());
    let mut loads = std::collections::BTreeMap::new();
    for Transfer { step, source, edge, chunks } in &transfers {
        let (tail, head) = edges[*edge as usize];
        let (from, to) = if heading == Heading::Along { (tail, head) } else { (head, tail) };
        assert_eq!(composed.ends(*edge), (from, to));
        assert!(*step < composed.step_count() && chunks.start < chunks.end);
        for chunk in chunks.clone() {
            assert!(
                from == *source || there[at(from, *source, chunk)] < *step,
                "step {step}: {from} lacks {source}'s {chunk}"
            );
            assert!(to != *source && there[at(to, *source, chunk)] == u32::MAX, "{to} gets {source}'s {chunk} twice");
            there[at(to, *source, chunk)] = *step;
        }
        *loads.entry((*step, *edge)).or_insert(0_u64) += chunks.end - chunks.start;
    }
    let nodes = 0..composed.order();
    for (node, source) in nodes.clone().flat_map(|node| nodes.clone().map(move |source| (node, source))) {
        assert!(
            node == source || (0..chunks).all(|chunk| there[at(node, source, chunk)] != u32::MAX),
            "{node}, {source}"
        );
    }
    let steps = loads.keys().map(|(step, _)| step + 1).max().unwrap_or(0);
    let most = |step: u32| loads.iter().filter(|((at, _), _)| *at == step).map(|(_, load)| *load).max().unwrap_or(0);
    let sum: u64 = (0..steps).map(most).sum();
    let degree = edges.len() / order;
    let bandwidth = Fraction::new(u128::from(sum) * degree as u128, order as u128 * u128::from(chunks)).unwrap();
    Cost { steps, bandwidth }
}

/// Composes both collectives of a construction, and compares what they cost with what was predicted.
#[track_caller]
fn check(construction: &Construction) -> Prediction {
    let graph = construction.graph(LIMIT).unwrap();
    let predicted = construction.predict(&mut Bases::new(LIMIT), &Never).unwrap();
    assert_eq!((predicted.order, predicted.degree), (graph.order().into(), graph.edge_count() / graph.order()));
    for (heading, side) in [(Heading::Along, predicted.allgather), (Heading::Against, predicted.reduce_scatter)] {
        let composed = Composed::new(construction, heading, LIMIT, &Never).unwrap();
        let cost = run(&composed, &graph, heading);
        let Side { cost: stated, exactness, .. } = side;
        match exactness {
            Exactness::Exact => assert_eq!(cost, stated, "{construction} {heading:?}"),
            Exactness::AtMost => assert!(cost.is_within(&stated), "{construction} {heading:?}: {cost} over {stated}"),
        }
        let added_up = composed.cost().unwrap();
        assert!(
            cost.is_within(&added_up) && added_up.bandwidth == cost.bandwidth,
            "{construction}: {added_up}, {cost}"
        );
    }
    predicted
}

fn base(family: Family) -> Construction {
    Construction::Base(family)
}

fn uni_ring(n: u64, d: u64) -> Construction {
    base(Family::UniRing { n, d })
}

#[test]
fn stored_schedules_are_right() {
    for (d, n) in [(2, 3), (2, 4), (4, 2)] {
        check(&base(Family::ModifiedDeBruijn { d, n }));
    }
    check(&base(Family::Diamond));
    // A graph of the same size that is another one has none.
    assert!(crate::given::given(&Family::DeBruijn { d: 2, n: 3 }.graph(LIMIT).unwrap()).is_none());
}

#[test]
fn breadth_first_broadcasts_of_families() {
    for family in [
        Family::Complete { n: 2 },
        Family::Bipartite { left: 3, right: 3 },
        Family::BiRing { n: 6, d: 4 },
        Family::BiRing { n: 5, d: 6 },
        Family::GenKautz { n: 11, d: 4 },
        Family::GenKautz { n: 9, d: 2 },
        Family::Kautz { d: 2, n: 3 },
        Family::DeBruijn { d: 2, n: 3 },
        Family::DirectedCirculant { d: 3 },
        Family::Circulant { n: 13, offsets: vec![2, 3], copies: 2 },
    ] {
        check(&base(family));
    }
    check(&uni_ring(5, 3));
}

#[test]
fn line_graphs() {
    let bipartite = |d| base(Family::Bipartite { left: d, right: d });
    for construction in [
        bipartite(2).line(1),
        bipartite(2).line(3),
        bipartite(4).line(2),
        uni_ring(4, 1).line(u32::MAX),
        uni_ring(3, 2).line(2),
    ] {
        check(&construction);
    }
    check(&base(Family::Diamond).line(2));
    check(&base(Family::GenKautz { n: 11, d: 4 }).line(1));
    check(&base(Family::DeBruijn { d: 3, n: 2 }).line(1));
    check(&base(Family::ModifiedDeBruijn { d: 4, n: 2 }).line(2));
}

#[test]
fn degree_expansions() {
    check(&base(Family::Complete { n: 3 }).degree(2));
    check(&uni_ring(4, 1).degree(3));
    check(&uni_ring(3, 2).degree(2));
    check(&base(Family::Diamond).degree(2).line(1));
    check(&base(Family::GenKautz { n: 6, d: 2 }).degree(3).degree(2));
}

#[test]
fn powers_and_products() {
    for n in [2, 3] {
        check(&uni_ring(3, 1).power(n));
        check(&base(Family::Complete { n: 3 }).power(n).line(1));
    }
    check(&base(Family::Diamond).power(2).line(1));
    check(&base(Family::ModifiedDeBruijn { d: 2, n: 4 }).power(2));
    check(&base(Family::DeBruijn { d: 2, n: 2 }).power(3));
    let ring = |n| base(Family::BiRing { n, d: 2 });
    check(&Construction::Product(vec![ring(4), ring(6)]));
    check(&Construction::Product(vec![ring(8), uni_ring(4, 1).power(2)]));
    check(&Construction::Product(vec![uni_ring(4, 1).power(3), uni_ring(2, 1)]).line(1));
    check(&Construction::Product(vec![base(Family::Kautz { d: 2, n: 3 }), uni_ring(2, 1)]));
}

#[test]
fn both_ways() {
    let two = base(Family::Kautz { d: 2, n: 2 }).line(1);
    for construction in [
        uni_ring(5, 1),
        uni_ring(4, 2),
        base(Family::Kautz { d: 2, n: 3 }),
        base(Family::DeBruijn { d: 2, n: 3 }),
        base(Family::ModifiedDeBruijn { d: 2, n: 3 }),
        two,
        uni_ring(3, 2).line(1).degree(2),
        Construction::Product(vec![uni_ring(3, 1), uni_ring(4, 1)]),
        uni_ring(3, 1).power(2).bidirect(),
    ] {
        check(&construction.bidirect());
    }
}

#[test]
fn what_cannot_be_composed_is_refused() {
    let refused = |construction: &Construction| Composed::new(construction, Heading::Along, LIMIT, &Never).unwrap_err();
    let too_large = refused(&base(Family::Complete { n: 3 }).power(60)).to_string();
    assert!(too_large.contains("over the limit of 2048"), "{too_large}");
    assert!(refused(&base(Family::Complete { n: 3 }).line(30)).to_string().contains("over the limit"));
    assert!(
        refused(&base(Family::DeBruijn { d: 2, n: 3 }).degree(2)).to_string().contains("without edges from a node")
    );
    assert!(refused(&base(Family::Diamond).bidirect()).to_string().contains("none is known"));
    assert!(
        refused(&base(Family::Bipartite { left: 2, right: 3 })).to_string().contains("every node has the same number")
    );
}

/// A regular graph as a union of random permutations; parallel edges and edges from a node to itself as they come.
fn regular_graphs() -> impl Strategy<Value = Digraph> {
    (1_u32..=3, 2_u32..=6).prop_flat_map(|(degree, order)| {
        let permutation = Just((0..order).collect::<Vec<u32>>()).prop_shuffle();
        proptest::collection::vec(permutation, degree as usize).prop_filter_map("not connected", move |permutations| {
            let edges = permutations.iter().flat_map(|heads| (0..).zip(heads.iter().copied()));
            let graph = Digraph::new(order, edges).unwrap();
            crate::facts::diameter(&graph).map(|_| graph)
        })
    })
}

/// What a rule predicts against what its operator composes, in both directions.
fn compare(
    graph: &Digraph,
    predicted: &Prediction,
    expanded: &Digraph,
    expand: impl Fn(Level) -> Level,
) -> Result<(), TestCaseError> {
    for (heading, side) in [(Heading::Along, predicted.allgather), (Heading::Against, predicted.reduce_scatter)] {
        let composed = Composed { level: expand(Level::of_graph(graph, heading, &Never).unwrap()) };
        let cost = run(&composed, expanded, heading);
        match side.exactness {
            Exactness::Exact => prop_assert_eq!(cost, side.cost),
            Exactness::AtMost => prop_assert!(cost.is_within(&side.cost), "{} over {}", cost, side.cost),
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Predictions hold on random graphs; degree expansion and power keep optimal bandwidth, and the line graph keeps the least
    /// number of steps that any graph of its size and degree has.
    #[test]
    fn predictions_hold_on_random_graphs(graph in regular_graphs()) {
        let bases = Bases::new(LIMIT);
        let known = bases.evaluate(&graph, &Never).unwrap();
        compare(&graph, &known, &graph, |level| level)?;
        let is_moore = |of: &Prediction| crate::facts::moore_steps(of.order, of.degree.into()) == Some(of.allgather.cost.steps.into());

        let line = known.line(2).unwrap();
        let first = crate::expand::line(&graph, LIMIT).unwrap();
        let second = crate::expand::line(&first, LIMIT).unwrap();
        compare(&graph, &line, &second, |level| Level::line(&second, Level::line(&first, level).unwrap()).unwrap())?;
        if known.degree > 1 {
            prop_assert_eq!(is_moore(&known), is_moore(&line));
        }

        let power = known.power(2).unwrap();
        let squared = crate::expand::power(&graph, 2, LIMIT).unwrap();
        compare(&graph, &power, &squared, |level| Level::power(&squared, level, 2).unwrap())?;
        let is_optimal = |of: &Prediction| of.allgather.is_bandwidth_optimal(of.order);
        prop_assert_eq!(is_optimal(&known), is_optimal(&power));

        if known.has_loops {
            prop_assert_eq!(known.degree(2), Err(crate::prediction::RuleError::Loops));
        } else {
            let degree = known.degree(2).unwrap();
            let doubled = crate::expand::degree(&graph, 2, LIMIT).unwrap();
            compare(&graph, &degree, &doubled, |level| Level::degree(&doubled, level, 2).unwrap())?;
            prop_assert_eq!(is_optimal(&known), is_optimal(&degree));
            // Line graphs of expansions, which are exact by their own argument.
            let lined = degree.line(1).unwrap();
            let edges = crate::expand::line(&doubled, LIMIT).unwrap();
            compare(&graph, &lined, &edges, |level| Level::line(&edges, Level::degree(&doubled, level, 2).unwrap()).unwrap())?;
        }

        let lined = power.line(1).unwrap();
        let edges = crate::expand::line(&squared, LIMIT).unwrap();
        compare(&graph, &lined, &edges, |level| Level::line(&edges, Level::power(&squared, level, 2).unwrap()).unwrap())?;

        if let Some(nodes) = crate::reversal::reversal(&graph) {
            let both = known.bidirect().unwrap();
            let union = crate::expand::bidirect(&graph, LIMIT).unwrap();
            compare(&graph, &both, &union, |level| {
                let edges = crate::construction::turned_edges(&graph, &nodes);
                Level::bidirect(&union, level, nodes.clone(), edges).unwrap()
            })?;
        }
    }
}
