//! Bounds for every network with given numbers of nodes and ports.

use canopy_direct::{least_bandwidth, moore_steps, moore_steps_undirected};
use canopy_optimize::Fraction;

use crate::finder::search::Links;

/// Lower bounds on cost, and the upper bound on the rate of an all-to-all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// T_L*: steps of an allgather or a reduce-scatter, by the Moore bound.
    pub steps: u32,
    /// T_B*: `(N−1)/N`.
    pub bandwidth: Fraction,
    /// Rate from every node to every other, in parts of the rate of a link.
    pub all_to_all: Fraction,
}

impl Bounds {
    /// For `nodes` ≥ 2 nodes of `degree` ≥ 1 ports; `None` where these cannot all be connected.
    ///
    /// The all-to-all moves every unit of data over as many links as it goes far, and at most dᵗ nodes, or d·(d−1)ᵗ⁻¹ where
    /// a link back leads nowhere new, are t links away. O(steps).
    pub fn of(nodes: u32, degree: u32, links: Links) -> Option<Self> {
        let (n, d) = (u64::from(nodes), u64::from(degree));
        let (steps, growth) = match links {
            Links::Any => (moore_steps(n, d)?, d),
            Links::Bidirectional => (moore_steps_undirected(n, d)?, d - 1),
        };
        let (mut left, mut layer, mut distance_sum) = (n - 1, d, 0);
        for step in 1..=steps {
            let here = layer.min(left);
            distance_sum += u128::from(step) * u128::from(here);
            left -= here;
            layer = layer.saturating_mul(growth);
        }
        Some(Self {
            steps: u32::try_from(steps).ok()?,
            bandwidth: least_bandwidth(n),
            all_to_all: Fraction::new(d.into(), distance_sum)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Table A.1, rows `bound`: 5.80e-2, 2.42e-2, 4.39e-3 and 8.57e-4.
    #[test]
    fn published_bounds() {
        let of = |nodes| Bounds::of(nodes, 4, Links::Any).unwrap();
        assert_eq!(of(32).all_to_all, Fraction::new(4, 69).unwrap());
        assert_eq!((of(32).steps, of(64).steps, of(256).steps, of(1024).steps), (3, 3, 4, 5));
        assert_eq!(of(1024).bandwidth, Fraction::new(1023, 1024).unwrap());
        let near = |nodes, printed: u128| {
            let Fraction { numerator, denominator } = of(nodes).all_to_all;
            assert_eq!((numerator * 2_000_000 / denominator).div_ceil(2), printed, "{nodes}");
        };
        near(64, 24_242);
        near(256, 4_386);
        near(1024, 857);
    }

    #[test]
    fn where_a_link_back_leads_nowhere_new() {
        // A ring: two more at every distance.
        let ring = Bounds::of(9, 2, Links::Bidirectional).unwrap();
        assert_eq!((ring.steps, ring.all_to_all), (4, Fraction::new(2, 20).unwrap()));
        assert_eq!(Bounds::of(3, 1, Links::Bidirectional), None);
        assert_eq!(Bounds::of(2, 1, Links::Bidirectional).unwrap().steps, 1);
    }
}
