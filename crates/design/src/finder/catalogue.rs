//! Networks that are not composed of others, with their known properties.
//!
//! Costs are those of breadth-first broadcasts, by theorem where one says that they are bandwidth-optimal; those of the
//! generalized Kautz graphs are counted, and those of stored schedules come with these.

use canopy_direct::{
    Bases, Construction, Cost, Digraph, Exactness, Family, Limit, Prediction, Side, distances_from, least_bandwidth,
};
use canopy_optimize::{Arc, BfbGraph, Fraction, Stop, step_loads};

use crate::finder::candidate::Candidate;
use crate::finder::circulants::{Narrow, narrow};
use crate::finder::histogram::Histogram;
use crate::finder::imase_itoh::imase_itoh;
use crate::finder::known::{AllToAll, Known, RateProof};
use crate::finder::offsets::two_offset_rate;

/// What a family's member is like, whatever its size.
#[derive(Clone, Copy)]
struct Kind {
    is_simple: bool,
    is_bidirectional: bool,
    /// Each node has links to two others at least.
    has_choice: bool,
    /// Shortest routes can load all links alike.
    is_loaded_alike: bool,
}

/// Simple, the same from every node, every link both ways.
const SYMMETRIC: Kind = Kind { is_simple: true, is_bidirectional: true, has_choice: true, is_loaded_alike: true };

/// Every simple network of the catalogue with so many nodes and ports whose breadth-first broadcast is bandwidth-optimal:
/// what products are made of.
pub(crate) fn factors(nodes: u32, degree: u32, stop: &dyn Stop) -> Vec<Candidate> {
    let (n, d) = (u64::from(nodes), u64::from(degree));
    let mut found = Vec::new();
    if nodes >= 2 && nodes == degree + 1 {
        // Every node is one link away.
        let kind = Kind { has_choice: n > 2, ..SYMMETRIC };
        let cycles = Histogram::of(2, n);
        found.push(optimal(Family::Complete { n }, nodes, degree, 1, n * (n - 1), cycles, None, kind));
    }
    if degree >= 2 && nodes == 2 * degree {
        let distance_sum = n * (d + 2 * (d - 1));
        found.push(both_ways(Family::Bipartite { left: d, right: d }, nodes, degree, 2, distance_sum, SYMMETRIC));
    }
    if degree == 1 && nodes >= 3 {
        found.push(uni_ring(nodes, 1));
    }
    if degree == 2 && nodes >= 4 {
        found.push(bi_ring(nodes, 2));
    }
    if degree >= 2 && nodes == degree + 2 {
        // The node before is two links away, and so is the way back over a link of offset 1.
        let kind = Kind { is_bidirectional: false, ..SYMMETRIC };
        let mut returns = Histogram::of(1, n * (d - 1));
        returns.add(2, n);
        let cycles = Histogram::of(2, n);
        found.push(optimal(
            Family::DirectedCirculant { d },
            nodes,
            degree,
            2,
            n * (d + 2),
            cycles,
            Some(returns),
            kind,
        ));
    }
    if degree == 4 && nodes > 6 {
        found.extend(least_circulant(nodes, 4));
    }
    if NARROW_DEGREES.contains(&degree) {
        found.extend(narrow_circulant(nodes, degree, 1, stop));
    }
    if degree == 4 && Family::DISTANCE_REGULAR_ORDERS.contains(&n) {
        found.extend(looked_at(Family::DistanceRegular { n }, nodes, degree, SYMMETRIC));
    }
    if (nodes, degree) == (8, 3) {
        let kind = Kind { is_loaded_alike: false, ..SYMMETRIC };
        found.extend(looked_at(Family::TwistedCube, nodes, degree, kind));
    }
    found.extend(twisted_torus(nodes, degree, stop));
    found
}

/// Networks of the catalogue that are no factors of products: with parallel links, with loops, or not bandwidth-optimal.
pub(crate) fn others(nodes: u32, degree: u32, bases: &mut Bases, stop: &dyn Stop) -> Vec<Candidate> {
    let mut found = Vec::new();
    found.extend(kautz(nodes, degree, stop));
    if degree >= 2 && nodes >= 2 {
        found.push(uni_ring(nodes, degree));
    }
    if degree >= 4 && degree.is_multiple_of(2) && nodes >= 3 {
        found.push(bi_ring(nodes, degree));
    }
    if degree > 4 && degree.is_multiple_of(4) && nodes > 6 {
        found.extend(least_circulant(nodes, degree));
    }
    if let Some(ports) = NARROW_DEGREES.into_iter().rev().find(|&ports| degree > ports && degree.is_multiple_of(ports))
    {
        found.extend(narrow_circulant(nodes, ports, degree / ports, stop));
    }
    let stored = match (nodes, degree) {
        (8, 2) => vec![Family::Diamond, Family::ModifiedDeBruijn { d: 2, n: 3 }],
        (16, 2) => vec![Family::ModifiedDeBruijn { d: 2, n: 4 }],
        (16, 4) => vec![Family::ModifiedDeBruijn { d: 4, n: 2 }],
        _ => Vec::new(),
    };
    found.extend(stored.into_iter().filter_map(|family| with_stored_schedule(family, bases, stop)));
    found
}

/// A network that reaches `(N−1)/N` by breadth-first broadcast, in as many steps as its diameter.
#[expect(clippy::too_many_arguments, reason = "each is another number of one record")]
fn optimal(
    family: Family,
    nodes: u32,
    degree: u32,
    diameter: u32,
    distance_sum: u64,
    cycles: Histogram,
    returns: Option<Histogram>,
    kind: Kind,
) -> Candidate {
    let bandwidth = least_bandwidth(nodes.into());
    let side = side(diameter, bandwidth, kind.is_simple, kind.has_choice);
    let prediction = Prediction {
        order: nodes.into(),
        degree,
        allgather: side,
        reduce_scatter: side,
        is_simple: kind.is_simple,
        has_loops: false,
        is_reverse_symmetric: true,
    };
    let links = u64::from(nodes) * u64::from(degree);
    let known = Known {
        prediction,
        diameter,
        distance_sum,
        cycles,
        loop_count: 0,
        all_to_all: AllToAll::by_distances(links, distance_sum, kind.is_loaded_alike),
        is_bidirectional: kind.is_bidirectional,
    };
    let construction = Construction::Base(family);
    match returns.or_else(|| kind.is_bidirectional.then(|| Histogram::of(1, links))) {
        Some(returns) => Candidate::with_returns(construction, known, returns),
        None => Candidate::new(construction, known),
    }
}

fn both_ways(family: Family, nodes: u32, degree: u32, diameter: u32, distance_sum: u64, kind: Kind) -> Candidate {
    optimal(family, nodes, degree, diameter, distance_sum, Histogram::of(2, nodes.into()), None, kind)
}

fn side(steps: u32, bandwidth: Fraction, is_optimal_by_bfb: bool, extends_exactly: bool) -> Side {
    Side { cost: Cost { steps, bandwidth }, exactness: Exactness::Exact, is_optimal_by_bfb, extends_exactly }
}

/// Around one way: node i is i links away, and the head of a link all but one.
fn uni_ring(nodes: u32, degree: u32) -> Candidate {
    let (n, d) = (u64::from(nodes), u64::from(degree));
    let kind = Kind { is_simple: degree == 1, is_bidirectional: nodes == 2, has_choice: false, is_loaded_alike: true };
    let (cycles, returns) = (Histogram::of(nodes, n), Histogram::of(nodes - 1, n * d));
    let family = Family::UniRing { n, d };
    optimal(family, nodes, degree, nodes - 1, n * (n * (n - 1) / 2), cycles, Some(returns), kind)
}

/// Around both ways: two nodes at every distance, but for one across from a node of an even number.
fn bi_ring(nodes: u32, degree: u32) -> Candidate {
    let n = u64::from(nodes);
    let kind = Kind { is_simple: degree == 2, ..SYMMETRIC };
    both_ways(Family::BiRing { n, d: degree.into() }, nodes, degree, nodes / 2, n * (n * n / 4), kind)
}

/// The circulant of two offsets with the least diameter: theorem 22, and theorem 18 for its bandwidth.
fn least_circulant(nodes: u32, degree: u32) -> Option<Candidate> {
    let family = Family::least_circulant(nodes.into(), degree.into()).ok()?;
    let Family::Circulant { offsets, .. } = &family else { return None };
    let offsets: [u64; 2] = offsets.as_slice().try_into().ok()?;
    let [a, b] = offsets.map(|offset| u32::try_from(offset).ok());
    let offsets = [a?, b?];
    let (diameter, from_one) = around_circulant(nodes as usize, &offsets.map(|offset| offset as usize));
    let kind = Kind { is_simple: degree == 4, is_loaded_alike: false, ..SYMMETRIC };
    let mut found = both_ways(family, nodes, degree, diameter, u64::from(nodes) * from_one, kind);
    if let Some(Fraction { numerator, denominator }) = two_offset_rate(nodes, offsets, diameter) {
        let rate = Fraction::new(numerator * u128::from(degree / 4), denominator)?;
        found.known.all_to_all = AllToAll { rate, proof: RateProof::Offsets };
    }
    Some(found)
}

/// Ports of circulants of more than two offsets.
const NARROW_DEGREES: [u32; 2] = [6, 8];

/// A circulant of three or four offsets whose broadcast was found bandwidth-optimal, each link so many times: loads of links
/// are as many times less.
fn narrow_circulant(nodes: u32, ports: u32, copies: u32, stop: &dyn Stop) -> Option<Candidate> {
    let n = u64::from(nodes);
    let Narrow { offsets, diameter, from_one, is_alike } = narrow(n, ports / 2, stop)?;
    let kind = Kind { is_simple: copies == 1, is_loaded_alike: is_alike, ..SYMMETRIC };
    let family = Family::Circulant { n, offsets, copies: copies.into() };
    Some(both_ways(family, nodes, ports * copies, diameter, n * from_one, kind))
}

/// The greatest distance from one node and the sum of all. O(nodes · offsets).
fn around_circulant(nodes: usize, offsets: &[usize]) -> (u32, u64) {
    let mut distances = vec![u32::MAX; nodes];
    distances[0] = 0;
    let mut queue = vec![0];
    let mut next = 0;
    let (mut greatest, mut sum) = (0, 0);
    while let Some(&node) = queue.get(next) {
        next += 1;
        greatest = distances[node];
        sum += u64::from(greatest);
        for offset in offsets.iter().flat_map(|&offset| [offset, nodes - offset]) {
            let head = (node + offset) % nodes;
            if distances[head] == u32::MAX {
                distances[head] = greatest + 1;
                queue.push(head);
            }
        }
    }
    (greatest, sum)
}

/// A small network that is known to be bandwidth-optimal: distance-regular ones by theorem 18.
fn looked_at(family: Family, nodes: u32, degree: u32, kind: Kind) -> Option<Candidate> {
    let graph = family.graph(LIMIT).ok()?;
    let (diameter, distance_sum) = distances(&graph)?;
    Some(both_ways(family, nodes, degree, diameter, distance_sum, kind))
}

/// Networks looked at themselves are small.
const LIMIT: Limit = Limit { order_max: 1 << 16, edges_max: 1 << 20 };

fn distances(graph: &Digraph) -> Option<(u32, u64)> {
    let (mut greatest, mut sum) = (0, 0);
    for source in 0..graph.order() {
        for distance in distances_from(graph, source) {
            greatest = greatest.max(distance?);
            sum += u64::from(distance?);
        }
    }
    Some((greatest, sum))
}

/// `2a×a` and `a×a×2a`, if the broadcast turns out bandwidth-optimal: nothing is proven of them all. They look the same
/// from every node, so that one is looked at.
fn twisted_torus(nodes: u32, degree: u32, stop: &dyn Stop) -> Option<Candidate> {
    let n = u64::from(nodes);
    let extents = match degree {
        4 => (2..=n).take_while(|a| 2 * a * a <= n).find(|a| 2 * a * a == n).map(|a| vec![2 * a, a]),
        6 => (2..=n).take_while(|a| 2 * a * a * a <= n).find(|a| 2 * a * a * a == n).map(|a| vec![a, a, 2 * a]),
        _ => None,
    };
    let family = Family::TwistedTorus { extents: extents? };
    let graph = family.graph(LIMIT).ok().filter(|graph| graph.edge_count() == nodes * degree)?;
    let arcs = graph.edges().map(|(from, to)| Arc { from, to, capacity: 1 }).collect();
    let whole = BfbGraph::with_equal_shares(&canopy_optimize::Digraph { node_count: nodes, arcs }, stop).ok()?;
    let loads = step_loads(&whole, 0..1, None, stop).ok()?;
    let total = loads.total()?;
    let unit = u128::from(nodes) * u128::from(whole.unit());
    let bandwidth = Fraction::new(total.numerator * u128::from(degree), total.denominator * unit)?;
    if bandwidth != least_bandwidth(n) {
        return None;
    }
    let distances: Option<Vec<u32>> = distances_from(&graph, 0).into_iter().collect();
    let distances = distances?;
    let kind = Kind { is_loaded_alike: false, ..SYMMETRIC };
    let from_one: u64 = distances.iter().map(|&distance| u64::from(distance)).sum();
    Some(both_ways(family, nodes, degree, *distances.iter().max()?, n * from_one, kind))
}

/// The generalized Kautz graph; under its own name where it is a Kautz graph, which turning all links round keeps.
///
/// De Bruijn graphs need not be looked at: theirs are the greatest loads that those of equal size and degree can have.
fn kautz(nodes: u32, degree: u32, stop: &dyn Stop) -> Option<Candidate> {
    if nodes == degree + 1 {
        return None;
    }
    let costs = imase_itoh(degree, nodes, stop)?;
    let (n, d) = (u64::from(nodes), u64::from(degree));
    let length = (1..64).find(|&length| d.saturating_pow(length - 1).saturating_mul(d + 1) >= n)?;
    let is_kautz = d.saturating_pow(length - 1).saturating_mul(d + 1) == n;
    let family = if is_kautz { Family::Kautz { d, n: length.into() } } else { Family::GenKautz { n, d } };
    let loop_count = costs.returns.count(0);
    let has_choice = degree > 2 || loop_count == 0;
    let counted = |loads: &[Fraction]| -> Option<Side> {
        let sum = loads.iter().try_fold(Fraction::ZERO, |sum, &load| sum.checked_add(load))?;
        let bandwidth = Fraction::new(sum.numerator * u128::from(degree), sum.denominator * u128::from(nodes))?;
        let is_optimal = loop_count == 0 && bandwidth == least_bandwidth(n);
        Some(side(u32::try_from(loads.len()).ok()?, bandwidth, is_optimal, has_choice))
    };
    let (allgather, reduce_scatter) = (counted(&costs.gather_loads)?, counted(&costs.scatter_loads)?);
    let prediction = Prediction {
        order: n,
        degree,
        allgather,
        reduce_scatter,
        is_simple: loop_count == 0,
        has_loops: loop_count > 0,
        is_reverse_symmetric: is_kautz,
    };
    let known = Known {
        prediction,
        diameter: allgather.cost.steps,
        distance_sum: costs.distance_sum,
        cycles: costs.cycles,
        loop_count,
        all_to_all: AllToAll::by_distances(n * d - loop_count, costs.distance_sum, false),
        is_bidirectional: false,
    };
    Some(Candidate::with_returns(Construction::Base(family), known, costs.returns))
}

/// One of the few networks with a stored schedule.
fn with_stored_schedule(family: Family, bases: &mut Bases, stop: &dyn Stop) -> Option<Candidate> {
    let prediction = bases.predict(&family, stop).ok()?;
    let graph = family.graph(LIMIT).ok()?;
    let (diameter, distance_sum) = distances(&graph)?;
    let (mut cycles, mut returns) = (Histogram::default(), Histogram::default());
    for node in 0..graph.order() {
        let back = |&head: &u32| distances_from(&graph, head)[node as usize];
        let lengths: Option<Vec<u32>> = graph.out(node).iter().map(back).collect();
        let lengths = lengths?;
        lengths.iter().for_each(|&length| returns.add(length, 1));
        cycles.add(1 + *lengths.iter().min()?, 1);
    }
    let links = u64::from(graph.edge_count());
    let construction = Construction::Base(family);
    let bound = AllToAll::by_distances(links - returns.count(0), distance_sum, false);
    let known = Known {
        prediction,
        diameter,
        distance_sum,
        cycles,
        loop_count: returns.count(0),
        all_to_all: bound.or_listed(&construction),
        is_bidirectional: false,
    };
    Some(Candidate::with_returns(construction, known, returns))
}
