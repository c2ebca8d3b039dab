//! Exact rates of an all-to-all that neither distances nor even routes show, each with a proof.
//!
//! * **Stored graphs.** A flow for each source that brings the rate to every other node within all capacities shows that it is
//!   reached; lengths of edges that no routes can undercut, `rate ≤ Σ ℓ / Σ dist_ℓ`, show that it is never exceeded. Both
//!   are solutions of the linear program of appendix A.1 and its dual in whole numbers, kept and added up in the tests.
//! * **Line graphs of K_{d,d}**, d ≥ 3, reach `edges / Σ distances`. From edge (a, b) to (c, e) the only shortest way leads
//!   over (b, c), or, where b and c are on one side, over any (b, m), (m, c). An edge of the line graph is a turn, of the d²·2d
//!   of which 2d² go straight back. If all m are alike, every other turn is in 5d − 1 routes and every one back in 4d − 3.
//!   Automorphisms of K_{d,d} exchange all turns back, and all others, so only the sums count: what is needed is to prefer
//!   m = a and m = e, which turn back, with a weight of `(3d + 2)/(2d²)` each on average instead of 1/d. Where a ≠ e both
//!   together have at most 1, where a = e it has 1 at most: `(d + 1)/(2d)` on average, enough from d = 3 on.

use canopy_optimize::Fraction;

use crate::construction::Construction;
use crate::families::Family;

/// The exact rate of an all-to-all of the constructions that are known: `diamond`, `dbjmod` and `line:1(bipartite:dxd)`, d ≥ 3.
pub fn proven_rate(construction: &Construction) -> Option<Fraction> {
    let (numerator, denominator) = match construction {
        Construction::Base(Family::Diamond) => (3, 20),
        Construction::Base(Family::ModifiedDeBruijn { d: 2, n: 3 }) => (1, 8),
        Construction::Base(Family::ModifiedDeBruijn { d: 2, n: 4 }) => (7, 149),
        Construction::Base(Family::ModifiedDeBruijn { d: 4, n: 2 }) => (4, 29),
        Construction::Line { n: 1, inner } => match **inner {
            Construction::Base(Family::Bipartite { left, right }) if left == right && left >= 3 => {
                let d = u128::from(left);
                // Each of the 2d² nodes has d edges, over the sum of all loads of one turn back and the others.
                let of_a_node = (d - 1).checked_mul(d.checked_mul(5)? - 1)?.checked_add(4 * d - 3)?;
                (d, of_a_node)
            }
            _ => return None,
        },
        _ => return None,
    };
    Fraction::new(numerator, denominator)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use canopy_optimize::Never;

    use super::*;
    use crate::digraph::Digraph;
    use crate::rate::all_to_all_rate;
    use crate::size::Limit;

    const LIMIT: Limit = Limit { order_max: 1 << 8, edges_max: 1 << 10 };

    /// Adds up a flow, by source and edge in parts of a whole, and lengths by edge; others are zero.
    #[track_caller]
    fn check_stored(family: Family, flows: &str, part: u64, lengths: &[(u32, u32, u64)]) {
        let graph = family.graph(LIMIT).unwrap();
        let rate = proven_rate(&Construction::Base(family)).unwrap();
        let mut loads = vec![0; graph.edge_count() as usize];
        assert_eq!(flows.lines().count(), graph.order() as usize);
        for (source, line) in (0..).zip(flows.lines()) {
            let flow: Vec<u64> = line.split(' ').map(|amount| amount.parse().unwrap()).collect();
            assert_eq!(flow.len(), loads.len());
            let mut gained = vec![0_i64; graph.order() as usize];
            for ((tail, head), &amount) in graph.edges().zip(&flow) {
                gained[head as usize] += amount.cast_signed();
                gained[tail as usize] -= amount.cast_signed();
            }
            let all_get = |node: u32| node == source || gained[node as usize] == part.cast_signed();
            assert!((0..graph.order()).all(all_get), "source {source}");
            loads.iter_mut().zip(flow).for_each(|(load, amount)| *load += amount);
        }
        let busiest = loads.into_iter().max().unwrap();
        assert_eq!(Fraction::new(part.into(), busiest.into()), Some(rate), "it is reached");

        let length =
            |edge: (u32, u32)| lengths.iter().find(|&&(tail, head, _)| (tail, head) == edge).map_or(0, |of| of.2);
        assert!(lengths.iter().all(|&(tail, head, _)| graph.out(tail).contains(&head)));
        let total: u64 = graph.edges().map(length).sum();
        let sum: u64 =
            (0..graph.order()).map(|source| distances(&graph, source, length).into_iter().sum::<u64>()).sum();
        assert_eq!(Fraction::new(total.into(), sum.into()), Some(rate), "it is never exceeded");
    }

    /// Distances by lengths, edges tried until nothing gets shorter.
    fn distances(graph: &Digraph, source: u32, length: impl Fn((u32, u32)) -> u64) -> Vec<u64> {
        let mut distances = vec![u64::MAX / 2; graph.order() as usize];
        distances[source as usize] = 0;
        loop {
            let before = distances.clone();
            for (tail, head) in graph.edges() {
                let over = distances[tail as usize] + length((tail, head));
                let known = &mut distances[head as usize];
                *known = over.min(*known);
            }
            if distances == before {
                return distances;
            }
        }
    }

    #[test]
    fn diamond_has_this_rate() {
        let lengths = [(2, 1, 1), (3, 1, 1), (5, 3, 1), (6, 2, 1), (6, 0, 2)];
        check_stored(Family::Diamond, include_str!("flows/diamond.txt"), 3, &lengths);
    }

    #[test]
    fn dbjmod_2_3_has_this_rate() {
        let lengths = [(6, 4, 1), (7, 0, 1)];
        check_stored(Family::ModifiedDeBruijn { d: 2, n: 3 }, include_str!("flows/dbjmod-2-3.txt"), 1, &lengths);
    }

    #[test]
    fn dbjmod_2_4_has_this_rate() {
        let lengths = [(1, 3, 1), (2, 4, 1), (5, 11, 1), (9, 3, 1), (10, 4, 1), (10, 15, 1), (13, 11, 1)];
        check_stored(Family::ModifiedDeBruijn { d: 2, n: 4 }, include_str!("flows/dbjmod-2-4.txt"), 7, &lengths);
    }

    #[test]
    fn dbjmod_4_2_has_this_rate() {
        let lengths = [
            (1, 15, 1),
            (3, 13, 1),
            (3, 14, 1),
            (3, 15, 1),
            (7, 12, 1),
            (7, 14, 1),
            (7, 15, 1),
            (8, 0, 1),
            (8, 1, 1),
            (9, 4, 1),
            (9, 5, 1),
            (9, 12, 1),
            (11, 12, 1),
            (11, 13, 1),
            (11, 15, 1),
            (11, 8, 1),
        ];
        check_stored(Family::ModifiedDeBruijn { d: 4, n: 2 }, include_str!("flows/dbjmod-4-2.txt"), 52, &lengths);
    }

    /// The routes of the proof, one by one.
    #[test]
    fn line_graphs_of_bipartite_graphs_load_all_turns_alike() {
        for d in 3..=6_u32 {
            let construction = Construction::Base(Family::Bipartite { left: d.into(), right: d.into() }).line(1);
            let bound = all_to_all_rate(&construction.graph(LIMIT).unwrap(), &Never).unwrap().rate;
            assert_eq!(proven_rate(&construction), Some(bound), "{d}");
            let loads = loads_of_turns(d);
            let each = Fraction::new(bound.denominator, bound.numerator).unwrap();
            assert_eq!(loads.len(), 2 * (d * d * d) as usize);
            assert!(loads.values().all(|&load| load == each), "{d}");
        }
        let two = Construction::Base(Family::Bipartite { left: 2, right: 2 }).line(1);
        assert_eq!(proven_rate(&two), None);
    }

    /// By turn (a, b, c), what the routes of the proof carry over it.
    fn loads_of_turns(d: u32) -> HashMap<(u32, u32, u32), Fraction> {
        let wide = u128::from(d);
        let fraction = |numerator, denominator| Fraction::new(numerator, denominator).unwrap();
        let (one, zero) = (fraction(1, 1), Fraction::ZERO);
        // On average; for each of two, and for one that is both.
        let average = fraction(3 * wide + 2, 2 * wide * wide);
        let of_two = average.min(fraction(1, 2));
        let rest = fraction((wide - 1) * of_two.numerator, of_two.denominator);
        let of_one = less(fraction(wide * average.numerator, average.denominator), rest);
        assert!(of_one <= one);
        let mut loads = HashMap::new();
        let mut pass = |walk: &[u32], part: Fraction| {
            for turn in walk.windows(3) {
                let load = loads.entry((turn[0], turn[1], turn[2])).or_insert(zero);
                *load = load.checked_add(part).unwrap();
            }
        };
        let other_side = |node: u32| if node < d { d..2 * d } else { 0..d };
        let edges = (0..2 * d).flat_map(|tail| other_side(tail).map(move |head| (tail, head)));
        for (a, b) in edges.clone() {
            for (c, e) in edges.clone().filter(|&edge| edge != (a, b)) {
                if b == c {
                    pass(&[a, b, e], one);
                } else if other_side(b).contains(&c) {
                    pass(&[a, b, c, e], one);
                } else {
                    let (preferred, left, others) = match a == e {
                        true => (of_one, less(one, of_one), wide - 1),
                        false => (of_two, less(less(one, of_two), of_two), wide - 2),
                    };
                    let other = fraction(left.numerator, left.denominator * others);
                    for middle in other_side(b) {
                        let part = if middle == a || middle == e { preferred } else { other };
                        pass(&[a, b, middle, c, e], part);
                    }
                }
            }
        }
        loads
    }

    fn less(from: Fraction, what: Fraction) -> Fraction {
        let top = from.numerator * what.denominator - what.numerator * from.denominator;
        Fraction::new(top, from.denominator * what.denominator).unwrap()
    }
}
