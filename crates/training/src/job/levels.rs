//! Groups of a job that take equally long.

use canopy_topology::Ratio;
use num_rational::BigRational;

use crate::job::posed::{Posed, time};

/// Groups that take equally long for their sizes, where none can be faster beside slower ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobLevel {
    /// What each takes for its size, in seconds.
    pub seconds: Ratio,
    /// What they take at least, by `lengths`, while slower levels have their rates; the same where that is proven.
    pub seconds_min: Ratio,
    /// By link of the network, a length. With them, `seconds_min` is Σ size · cheapest schedule of this level and all
    /// faster ones ÷ (Σ capacity · length − Σ rate · cheapest schedule of all slower ones).
    pub lengths: Vec<u128>,
    /// The groups, rising.
    pub groups: Vec<usize>,
}

/// The level of groups with this rate and limit, and lengths by arc.
pub(crate) fn level_of(
    posed: &Posed<'_>,
    (rate, bound): (&BigRational, &BigRational),
    lengths: &[u128],
    groups: Vec<usize>,
) -> JobLevel {
    JobLevel {
        seconds: time(rate, posed.unit_bytes),
        seconds_min: time(bound, posed.unit_bytes),
        lengths: posed.by_link(lengths),
        groups,
    }
}
