//! Algorithm 1: bisection for 1/x* and its recovery as a fraction.

use std::error::Error;

use canopy_optimize::{FlowNetwork, Never};

use super::Edges;

/// 1/x* in lowest terms, in reciprocal units of capacity.
pub(super) fn bisect(
    edges: &Edges,
    node_count: u32,
    rank_count: u32,
    flows: &mut u64,
) -> Result<(i64, i64), Box<dyn Error>> {
    let entering =
        |rank: u32| edges.iter().filter(|((_, to), _)| *to == rank).map(|(_, capacity)| capacity).sum::<i64>();
    let least = (0..rank_count).map(entering).min().ok_or("no ranks")?;
    let others = i64::from(rank_count) - 1;
    // Both ends over `least · 2^steps`: they start at others/least and others.
    let (mut low, mut high, mut denominator) = (others, others * least, least);
    // Until high − low < 1/least².
    while i128::from(high - low) * i128::from(least) * i128::from(least) >= i128::from(denominator) {
        let middle = low + high;
        (low, high) = (low.checked_mul(2).ok_or("overflow")?, high.checked_mul(2).ok_or("overflow")?);
        denominator = denominator.checked_mul(2).ok_or("overflow")?;
        if is_reached(edges, node_count, rank_count, (middle, denominator), flows)? {
            high = middle;
        } else {
            low = middle;
        }
    }
    Ok(simplest_between((low, denominator), (high, denominator)))
}

/// Whether every rank can be reached by all shares at this rate: one flow per rank.
fn is_reached(
    edges: &Edges,
    node_count: u32,
    rank_count: u32,
    (numerator, denominator): (i64, i64),
    flows: &mut u64,
) -> Result<bool, Box<dyn Error>> {
    let mut network = FlowNetwork::<i64>::new(node_count + 1);
    for (&(from, to), &capacity) in edges {
        network.add_arc(from, to, capacity.checked_mul(numerator).ok_or("overflow")?);
    }
    for rank in 0..rank_count {
        network.add_arc(node_count, rank, denominator);
    }
    let wanted = denominator.checked_mul(rank_count.into()).ok_or("overflow")?;
    for rank in 0..rank_count {
        *flows += 1;
        network.reset();
        if network.max_flow(node_count, rank, wanted, &Never)? < wanted {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The fraction of least denominator in a closed interval, by continued fractions.
fn simplest_between((a, b): (i64, i64), (c, d): (i64, i64)) -> (i64, i64) {
    let whole = a / b;
    if a % b == 0 {
        return (whole, 1);
    }
    if whole < c / d {
        return (whole + 1, 1);
    }
    // Both lie in the same unit: the simplest is that of their reciprocal rests, turned around.
    let (p, q) = simplest_between((d, c - whole * d), (b, a - whole * b));
    (whole * p + q, p)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_simplest_fraction_is_found() {
        assert_eq!(simplest_between((3, 65), (3, 65)), (3, 65));
        assert_eq!(simplest_between((31, 100), (33, 100)), (5, 16));
        assert_eq!(simplest_between((9, 10), (11, 10)), (1, 1));
        assert_eq!(simplest_between((2, 1), (5, 2)), (2, 1));
    }
}
