//! Exact rates of an all-to-all on circulants of two offsets.
//!
//! A route from node 0 to node t takes so many links of either offset, i·a + j·b ≡ t. Turned to every node and round, routes
//! to all t load all links of an offset alike, so that only the sums of |i| and of |j| count, and the rate is two links over
//! the larger sum. The least larger sum lies on the lower hull of all pairs of sums, where it crosses the diagonal.

use canopy_optimize::Fraction;
use num_integer::Integer;

/// Sums of |i| and of |j| over the routes to all nodes.
type Sums = (u64, u64);

/// What each node can send to each other one, in parts of the rate of a link, with one link of each offset and direction.
///
/// * **In.** Coprime offsets below n/2; n ≤ 2¹⁶. **None** if routes of more than twice the diameter could be better.
/// * **Proof.** No routes do better: with the hull's normal as lengths of links, two links of each offset over the sum of
///   the distances bounds the rate, by linear programming duality.
/// * **Cost.** O(n) for each of few corners of the hull.
pub(crate) fn two_offset_rate(nodes: u32, offsets: [u32; 2], diameter: u32) -> Option<Fraction> {
    let routes = Routes::new(nodes, offsets, 2 * diameter + 2);
    // Few links of the first offset, and few of the second: whatever else it takes.
    let many = u64::from(nodes) * u64::from(nodes);
    let (mut first, mut second) = (routes.cheapest((many, 1))?.0, routes.cheapest((1, many))?.0);
    // Even with the fewest links of one offset these are the more, so that the other does not matter. By as many as are
    // needed modulo what the other offset cannot change.
    for (most, least, other) in [(first.0, first.1, offsets[1]), (second.1, second.0, offsets[0])] {
        if most >= least {
            let fixed = u64::from(other.gcd(&nodes));
            let needed = u64::from(nodes) / fixed * (fixed * fixed / 4);
            return if most == needed { Fraction::new(2, most.into()) } else { None };
        }
    }
    // Between them the hull crosses the diagonal.
    for _ in 0..=2 * nodes {
        let weights = (first.1 - second.1, second.0 - first.0);
        let value = |sums: Sums| weights.0 * sums.0 + weights.1 * sums.1;
        let (found, dearest) = routes.cheapest(weights)?;
        if value(found) < value(first) {
            if found.0 < found.1 {
                first = found
            } else {
                second = found
            }
            continue;
        }
        // Routes left out have more links than any of these could pay for.
        let least = weights.0.min(weights.1);
        if least == 0 || dearest >= least * u64::from(routes.length_max + 1) {
            return None;
        }
        // On the diagonal between both, s·(weights) = value.
        let sum = u128::from(weights.0) + u128::from(weights.1);
        return Fraction::new(2 * sum, value(first).into());
    }
    None
}

/// All routes of up to so many links, by the node they lead to.
struct Routes {
    length_max: u32,
    /// Routes to node t: `starts[t]..starts[t + 1]`.
    starts: Vec<u32>,
    counts: Vec<(u32, u32)>,
}

impl Routes {
    fn new(nodes: u32, [a, b]: [u32; 2], length_max: u32) -> Self {
        let (n, a, b) = (i64::from(nodes), i64::from(a), i64::from(b));
        let most = i64::from(length_max);
        let all = (-most..=most).flat_map(move |i| {
            let left = most - i.abs();
            (-left..=left).map(move |j| ((i * a + j * b).rem_euclid(n), (i.unsigned_abs(), j.unsigned_abs())))
        });
        let mut starts = vec![0_u32; nodes as usize + 1];
        let place = |to: i64| usize::try_from(to).expect("a remainder is not negative");
        all.clone().for_each(|(to, _)| starts[place(to) + 1] += 1);
        for index in 1..starts.len() {
            starts[index] += starts[index - 1];
        }
        let mut free = starts.clone();
        let mut counts = vec![(0, 0); starts[nodes as usize] as usize];
        for (to, (i, j)) in all {
            let narrow = |count: u64| u32::try_from(count).expect("at most the greatest length");
            counts[free[place(to)] as usize] = (narrow(i), narrow(j));
            free[place(to)] += 1;
        }
        Self { length_max, starts, counts }
    }

    /// The cheapest routes to all nodes, with the cost of the dearest of them; none if there is a node without.
    fn cheapest(&self, weights: (u64, u64)) -> Option<(Sums, u64)> {
        let mut sums = (0, 0);
        let mut dearest = 0;
        for range in self.starts.windows(2) {
            let routes = &self.counts[range[0] as usize..range[1] as usize];
            let cost = |&(i, j): &(u32, u32)| weights.0 * u64::from(i) + weights.1 * u64::from(j);
            let best = routes.iter().min_by_key(|route| cost(route))?;
            dearest = dearest.max(cost(best));
            sums = (sums.0 + u64::from(best.0), sums.1 + u64::from(best.1));
        }
        Some((sums, dearest))
    }
}

#[cfg(test)]
mod tests {
    use canopy_direct::Family;

    use super::*;

    fn rate(n: u64) -> Option<Fraction> {
        let Family::Circulant { offsets, .. } = Family::least_circulant(n, 4).unwrap() else { unreachable!() };
        let offsets = [offsets[0], offsets[1]].map(|offset| u32::try_from(offset).unwrap());
        // The diameter is the first offset.
        two_offset_rate(u32::try_from(n).unwrap(), offsets, offsets[0])
    }

    /// Digest of the dissertation, section 11, by linear programming: C(16,{3,4}) has 1/8.
    #[test]
    fn published_rate() {
        assert_eq!(rate(16), Fraction::new(1, 8));
    }

    /// The bound by distances is one of the bounds that lengths of links give; equal lengths give it.
    #[test]
    fn never_above_the_bound_by_distances() {
        let mut exact = 0;
        for n in 7..200 {
            let Some(rate) = rate(n) else { continue };
            exact += 1;
            let m = (1..).find(|m| 2 * m * m + 2 * m + 1 >= n).unwrap();
            // Full layers of 4, 8, 12 …, the last one what is left.
            let within = |steps: u64| 2 * steps * steps + 2 * steps + 1;
            let sum: u64 = (1..=m).map(|step| step * (within(step).min(n) - within(step - 1))).sum();
            assert!(rate <= Fraction::new(4, sum.into()).unwrap(), "n = {n}: {rate}");
        }
        assert!(exact > 150, "{exact}");
    }
}
