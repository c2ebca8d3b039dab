//! Requests to synthesizers.

use std::num::NonZeroU64;

use canopy_direct::Construction;
use canopy_schedule::{Collective, Shares};
use canopy_topology::{ExpressionError, Rank, TopologyLimits, construction};

use super::Algorithm;
use crate::limits::TreeLimits;
use crate::sum_options::SumOptions;

/// A request to [`synthesize`](crate::synthesize()), besides the topology.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SynthesisRequest {
    /// The collective.
    pub collective: Collective,
    /// Sizes of the ranks' shares.
    pub shares: Shares,
    /// The algorithm.
    pub algorithm: Algorithm,
    /// Limits on its trees.
    pub limits: TreeLimits,
    /// Options of the sums of an allreduce.
    pub sums: SumOptions,
    /// Size of the messages in bytes, all shares together; for [`Algorithm::Bfb`] and those of schedules in time, which then weigh
    /// latencies against rates. None: latencies are left out of account.
    pub size_bytes: Option<NonZeroU64>,
    /// How the network is made of smaller ones; for [`Algorithm::Expansion`], [`canopy_baselines::DOR`], [`canopy_baselines::DIRECT_XY`]
    /// and [`canopy_baselines::RING_XY`].
    pub composition: Option<Composition>,
    /// Where the random choices of [`Algorithm::Tacos`] and [`canopy_baselines::TACOS_PUBLISHED`] begin; 0 elsewhere. Equal seeds give equal schedules.
    pub seed: u64,
}

/// How a network is made of smaller ones.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Composition {
    /// Its graph.
    pub construction: Construction,
    /// By node of the graph, its rank. None: they are numbered alike.
    pub ranks: Option<Vec<Rank>>,
}

impl Composition {
    /// The construction that a network's expression names, ranks numbered alike. `None`: it names no graph that is
    /// known here. O(length).
    ///
    /// # Errors
    /// The expression cannot be read, or its network is beyond the limits.
    pub fn stated(expression: &str, limits: &TopologyLimits) -> Result<Option<Self>, ExpressionError> {
        Ok(construction(expression, limits)?.map(|construction| Self { construction, ranks: None }))
    }
}

impl SynthesisRequest {
    /// Equal shares, and everything else left to the planner.
    pub const fn new(collective: Collective, algorithm: Algorithm) -> Self {
        let (shares, limits, sums) = (Shares::Equal, TreeLimits::NONE, SumOptions::AUTO);
        Self { collective, shares, algorithm, limits, sums, size_bytes: None, composition: None, seed: 0 }
    }
}
