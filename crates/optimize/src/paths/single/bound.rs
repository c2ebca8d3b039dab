//! What prices of arcs prove of every choice of one path for each pair, exactly.

use super::Steps;
use crate::digraph::Digraph;
use crate::fraction::Fraction;

/// Bits of the greatest length that prices are rounded to; fewer where sums do not fit.
const BITS: [i32; 3] = [40, 24, 8];

/// No choice of one of its paths for each pair has a lesser greatest load, `pairs on an arc / capacity`.
///
/// By lengths ℓ of arcs every pair covers at least the length of its shortest path, so some arc has a load of at least
/// `Σ min ℓ(path) / Σ c·ℓ`, however pairs are divided among their paths; and loads of whole pairs are whole numbers over the
/// capacities. Prices of [`path_optimum`](crate::path_optimum) make the first of these the optimum of that program.
///
/// * **Source.** Weak duality of Basu 2024, equations (21)–(24).
/// * **In.** For each pair its paths, of arcs with capacity; by arc a price, whatever it is: it is rounded to whole numbers,
///   of which no float has a say. **Out.** Zero where sums go beyond 128 bits, or prices say nothing.
/// * **Cost.** O(length of all paths).
pub fn single_load_bound(graph: &Digraph, pairs: &[Vec<Vec<u32>>], prices: &[f64]) -> Fraction {
    let greatest = prices.iter().copied().filter(|price| price.is_finite()).fold(0.0, f64::max);
    let proven = BITS.into_iter().find_map(|bits| {
        let lengths: Vec<u64> = prices.iter().map(|&price| whole(price / greatest, bits)).collect();
        shared_load_bound(graph, pairs, &lengths)
    });
    proven.and_then(|load| Steps::of(graph).at_least(load)).unwrap_or(Fraction::ZERO)
}

/// `Σ min ℓ(path) / Σ c·ℓ`: of pairs that share their paths in any way. `None` where a sum does not fit or is zero.
fn shared_load_bound(graph: &Digraph, pairs: &[Vec<Vec<u32>>], lengths: &[u64]) -> Option<Fraction> {
    let volume = graph.arcs.iter().zip(lengths).try_fold(0_u128, |sum, (arc, &length)| {
        u128::from(arc.capacity).checked_mul(length.into()).and_then(|product| sum.checked_add(product))
    })?;
    // Fewer than 2³² arcs of less than 2⁴¹ each.
    let length_of = |path: &Vec<u32>| path.iter().map(|&arc| u128::from(lengths[arc as usize])).sum::<u128>();
    let distance = pairs.iter().try_fold(0_u128, |sum, paths| sum.checked_add(paths.iter().map(length_of).min()?))?;
    Fraction::new(distance, volume)
}

/// A part of 1 in so many bits; nothing negative, nothing that is no number.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, and 2⁴⁰ at most")]
fn whole(part: f64, bits: i32) -> u64 {
    (part.clamp(0.0, 1.0) * 2_f64.powi(bits)).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digraph::Arc;

    fn parallel(capacities: &[u64]) -> Digraph {
        let arc = |&capacity: &u64| Arc { from: 0, to: 1, capacity };
        Digraph { node_count: 2, arcs: capacities.iter().map(arc).collect() }
    }

    fn fraction(numerator: u128, denominator: u128) -> Fraction {
        Fraction::new(numerator, denominator).unwrap()
    }

    /// Five pairs on two arcs: shared 5/2 on each, whole 3.
    #[test]
    fn loads_of_whole_pairs_are_whole() {
        let pairs = vec![vec![vec![0], vec![1]]; 5];
        let graph = parallel(&[1, 1]);
        assert_eq!(shared_load_bound(&graph, &pairs, &[1, 1]), Some(fraction(5, 2)));
        assert_eq!(single_load_bound(&graph, &pairs, &[0.3, 0.3]), fraction(3, 1));
        // Prices that are off prove less, and never more; all on one arc prove nothing, as all may take the other.
        assert_eq!(single_load_bound(&graph, &pairs, &[0.1, 0.3]), fraction(2, 1));
        assert_eq!(single_load_bound(&graph, &pairs, &[0.3, 0.0]), Fraction::ZERO);
        // Shared 1 on arcs of 3 and 2, which three and two pairs have; 5/4 on arcs of 2 each, where the next load is 3/2.
        assert_eq!(single_load_bound(&parallel(&[3, 2]), &pairs, &[0.5, 0.5]), fraction(1, 1));
        assert_eq!(single_load_bound(&parallel(&[2, 2]), &pairs, &[1.0, 1.0]), fraction(3, 2));
    }

    #[test]
    fn what_is_no_price_counts_for_nothing() {
        let pairs = vec![vec![vec![0], vec![1]]; 4];
        let graph = parallel(&[1, 1]);
        for prices in [[f64::NAN, f64::NAN], [0.0, 0.0], [-1.0, f64::NEG_INFINITY]] {
            assert_eq!(single_load_bound(&graph, &pairs, &prices), Fraction::ZERO, "{prices:?}");
        }
        assert_eq!(single_load_bound(&graph, &pairs, &[f64::INFINITY, 1.0]), fraction(2, 1));
    }

    /// Products of 2⁶⁴ and 2⁴⁰ fit; their quotient is rounded up exactly.
    #[test]
    fn great_capacities_are_counted() {
        let pairs = vec![vec![vec![0], vec![1]]; 3];
        let graph = parallel(&[u64::MAX, u64::MAX]);
        assert_eq!(single_load_bound(&graph, &pairs, &[1.0, 1.0]), fraction(2, u64::MAX.into()));
    }
}
