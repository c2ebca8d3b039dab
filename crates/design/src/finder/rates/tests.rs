//! Rates against each other: with and without symmetries, of line graphs as such and by their inner graphs.

use canopy_optimize::Never;

use super::*;

fn base(family: Family) -> Construction {
    Construction::Base(family)
}

fn kautz(n: u64, d: u64) -> Construction {
    base(Family::GenKautz { n, d })
}

fn circulant(n: u64, offsets: &[u64]) -> Construction {
    base(Family::Circulant { n, offsets: offsets.to_vec(), copies: 1 })
}

/// The optimum of a graph by itself.
fn optimum(graph: &Digraph) -> Measured {
    Rates::new(&Never).solved(graph.clone(), &Symmetry::none(graph)).unwrap().unwrap()
}

/// The limit by distances.
fn by_distances(graph: &Digraph) -> Fraction {
    canopy_direct::all_to_all_rate(graph, &Never).unwrap().rate
}

/// Numbers that look random.
fn drawn(state: &mut u32, below: u32) -> u32 {
    *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    (*state >> 16) % below
}

/// A ring of one direction, and more links that start and end at each node as often.
fn random_regular(order: u32, degree: u32, state: &mut u32) -> Digraph {
    let mut edges: Vec<(u32, u32)> = (0..order).map(|node| (node, (node + 1) % order)).collect();
    for _ in 1..degree {
        let mut heads: Vec<u32> = (0..order).collect();
        for count in (2..=order).rev() {
            heads.swap(count as usize - 1, drawn(state, count) as usize);
        }
        edges.extend((0..order).zip(heads));
    }
    Digraph::new(order, edges).unwrap()
}

/// On any line graph, what lengths of the inner graph prove holds, and is no worse than what distances prove.
#[test]
fn lengths_of_inner_graphs_bound_line_graphs() {
    let mut state = 7;
    for case in 0..24 {
        let inner = random_regular(3 + drawn(&mut state, 6), 2 + case % 2, &mut state);
        let (graph, lengths) = of_line(optimum(&inner)).unwrap();
        let bound = Rates::new(&Never).added_up(graph.clone(), lengths).unwrap().unwrap().limit;
        let least = optimum(&graph).limit;
        assert!(bound >= least, "{case}: {bound} {least}");
        let (_, ones) = of_line(Measured { lengths: vec![1; inner.edge_count() as usize], ..optimum(&inner) }).unwrap();
        let by_ones = Rates::new(&Never).added_up(graph.clone(), ones).unwrap().unwrap().limit;
        assert!(by_ones >= least && by_distances(&graph) >= least);
    }
}

/// Generalized Kautz graphs of d·n nodes are the line graphs of those of n nodes.
#[test]
fn kautz_graphs_are_line_graphs() {
    for (n, d) in [(8, 2), (12, 3), (40, 4), (48, 4), (64, 4)] {
        let inner = inner_of(&kautz(n, d)).unwrap();
        let graphs = [kautz(n, d).graph(LIMIT).unwrap(), line(&inner.graph(LIMIT).unwrap(), LIMIT).unwrap()];
        let [one, other] = graphs.map(|graph| optimum(&graph).limit);
        assert_eq!(one, other, "{n} {d}");
    }
    assert_eq!(inner_of(&kautz(30, 4)), None);
}

/// One node stands for all, or one copy for the others: the rate is that of the whole program.
#[test]
fn symmetries_keep_the_rate() {
    for (construction, sources) in [
        (circulant(17, &[1, 4, 6]), 1),
        (base(Family::TwistedTorus { extents: vec![6, 3] }), 1),
        (base(Family::Torus { extents: vec![3, 4] }), 1),
        (base(Family::Diamond).degree(2), 8),
        (kautz(10, 3), 10),
    ] {
        let graph = construction.graph(LIMIT).unwrap();
        let symmetry = Symmetry::of(&construction, &graph);
        assert_eq!(symmetry.sources.len(), sources, "{construction}");
        let one = Rates::new(&Never).solved(graph.clone(), &symmetry).unwrap().unwrap();
        let whole = optimum(&graph);
        assert_eq!(one.limit, whole.limit, "{construction}");
        assert!(one.is_reached, "{construction}");
    }
}

/// Exact rates stay; a bound becomes the optimum; products are as fast as their slowest factor.
#[test]
fn rates_are_refined() {
    let refined = |construction: &Construction| {
        let rate = by_distances(&construction.graph(LIMIT).unwrap());
        Rates::new(&Never).refined(construction, AllToAll { rate, proof: RateProof::Bound }).unwrap()
    };
    let fraction = |numerator, denominator| Fraction::new(numerator, denominator).unwrap();
    let diamond = AllToAll { rate: fraction(3, 20), proof: RateProof::Flow };
    assert_eq!(refined(&base(Family::Diamond)), diamond);
    let product = refined(&Construction::Product(vec![base(Family::Diamond), base(Family::UniRing { n: 3, d: 1 })]));
    assert_eq!(product, AllToAll { rate: fraction(1, 24), proof: RateProof::Factors });
    // Basu 2024: DeBruijn(4,2) reaches 0.132075.
    assert_eq!(refined(&base(Family::DeBruijn { d: 4, n: 2 })).rate, fraction(7, 53));
    let exact = AllToAll { rate: fraction(1, 1), proof: RateProof::Offsets };
    assert_eq!(Rates::new(&|| true).refined(&kautz(10, 3), exact), Ok(exact));
}

#[test]
fn rates_end_with_their_work_or_when_stopped() {
    let known = AllToAll { rate: Fraction::new(1, 1).unwrap(), proof: RateProof::Bound };
    let spent = &mut Rates { stop: &Never, work_left: 0 };
    assert_eq!(spent.refined(&kautz(10, 3), known), Ok(known));
    assert_eq!(spent.refined(&kautz(10, 3).line(1), known), Ok(known));
    assert_eq!(Rates::new(&|| true).refined(&kautz(10, 3), known), Err(Stopped));
}
