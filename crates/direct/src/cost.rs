//! Exact cost of a collective on a regular graph: steps, and data on the busiest links.

use std::fmt;

use canopy_optimize::Fraction;

/// Cost of one collective: the number of steps, and the bandwidth term.
///
/// With latency α per step, M bytes of data in all and B bytes per second leaving each node, it takes
/// `steps·α + bandwidth·M/B`.
///
/// * **Source.** The dissertation's section 3.2: T_L in units of α, T_B in units of M/B.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cost {
    /// T_L: number of steps.
    pub steps: u32,
    /// T_B: `d/N` times the sum over the steps of the shares on the busiest link.
    pub bandwidth: Fraction,
}

impl Cost {
    /// Whether this cost is at least as good in both respects.
    pub fn is_within(&self, other: &Self) -> bool {
        self.steps <= other.steps && self.bandwidth <= other.bandwidth
    }

    /// Both one after the other, as an allreduce is a reduce-scatter and an allgather; `None` where it does not fit.
    #[must_use]
    pub fn then(self, other: Self) -> Option<Self> {
        let bandwidth = self.bandwidth.checked_add(other.bandwidth)?;
        Some(Self { steps: self.steps.checked_add(other.steps)?, bandwidth })
    }
}

/// Prints as in `5 steps, 341/256 M/B`.
impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} steps, {} M/B", self.steps, self.bandwidth)
    }
}

/// Whether a prediction is exact or an upper bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Exactness {
    /// The schedule costs exactly this.
    Exact,
    /// The schedule costs at most this, in steps and in bandwidth.
    AtMost,
}

/// `(N − 1)/N`: no allgather or reduce-scatter among N ≥ 1 nodes has a smaller bandwidth term.
///
/// * **Source.** The dissertation's section 3.2: each node has to receive the shares of all others.
pub fn least_bandwidth(order: u64) -> Fraction {
    let order = u128::from(order.max(1));
    Fraction::new(order - 1, order).expect("there is at least one node")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fraction(numerator: u128, denominator: u128) -> Fraction {
        Fraction::new(numerator, denominator).unwrap()
    }

    #[test]
    fn costs_are_compared_in_both_respects() {
        let (quick, lean) =
            (Cost { steps: 2, bandwidth: fraction(1, 1) }, Cost { steps: 3, bandwidth: fraction(7, 8) });
        assert!(!quick.is_within(&lean) && !lean.is_within(&quick) && quick.is_within(&quick));
        assert_eq!(quick.then(lean), Some(Cost { steps: 5, bandwidth: fraction(15, 8) }));
        assert_eq!(least_bandwidth(8), fraction(7, 8));
        assert_eq!(lean.to_string(), "3 steps, 7/8 M/B");
    }
}
