//! The size of a graph before it is built.

/// Numbers of nodes and edges. All arithmetic on them saturates: what does not fit 128 bits is over every limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Number of nodes.
    pub order: u128,
    /// Number of edges, parallel ones and those from a node to itself included.
    pub edges: u128,
}

/// Size limits of a graph, both inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Most nodes.
    pub order_max: u32,
    /// Most edges, parallel ones and those from a node to itself included.
    pub edges_max: u32,
}

/// A graph would exceed its [`Limit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the graph would have {found} {what}, over the limit of {limit}; ask for a smaller one or raise the limit")]
pub struct TooLarge {
    /// `nodes` or `links`.
    pub what: &'static str,
    /// The number found; `u128::MAX` for anything larger.
    pub found: u128,
    /// The limit.
    pub limit: u32,
}

impl Size {
    /// Refuses sizes over the limit.
    ///
    /// # Errors
    /// [`TooLarge`] names the first limit exceeded.
    pub fn check(self, limit: Limit) -> Result<(), TooLarge> {
        for (what, found, limit) in [("nodes", self.order, limit.order_max), ("links", self.edges, limit.edges_max)] {
            if found > u128::from(limit) {
                return Err(TooLarge { what, found, limit });
            }
        }
        Ok(())
    }

    /// The size of a graph of so many nodes with `degree` edges from each.
    pub(crate) fn regular(order: u128, degree: u128) -> Self {
        Self { order, edges: order.saturating_mul(degree) }
    }
}

/// `base` to the power of `exponent`, saturating; `0⁰ = 1`. O(log exponent).
pub(crate) fn saturating_power(base: u64, exponent: u64) -> u128 {
    match (base, u32::try_from(exponent)) {
        (0, _) => u128::from(exponent == 0),
        (1, _) => 1,
        (_, Ok(exponent)) => u128::from(base).saturating_pow(exponent),
        (_, Err(_)) => u128::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_saturate() {
        assert_eq!(saturating_power(3, 4), 81);
        assert_eq!((saturating_power(0, 0), saturating_power(0, 5)), (1, 0));
        assert_eq!((saturating_power(1, u64::MAX), saturating_power(7, 0)), (1, 1));
        assert_eq!((saturating_power(2, 127), saturating_power(2, 128)), (1 << 127, u128::MAX));
        assert_eq!(saturating_power(2, u64::MAX), u128::MAX);
    }

    #[test]
    fn limits_are_inclusive_and_named() {
        let limit = Limit { order_max: 4, edges_max: 8 };
        assert_eq!(Size::regular(4, 2).check(limit), Ok(()));
        assert_eq!(Size::regular(5, 1).check(limit).unwrap_err().what, "nodes");
        let error = Size::regular(4, u128::MAX).check(limit).unwrap_err();
        assert_eq!((error.what, error.found), ("links", u128::MAX));
    }
}
