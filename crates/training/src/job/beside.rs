//! What jobs that run already leave of a network.

use std::collections::BTreeMap;

use canopy_topology::{Capacity, Ratio, Topology, TopologyError, Transit};
use num_rational::BigRational;
use num_traits::ToPrimitive as _;

use crate::groups::Patience;
use crate::job::classes::Job;
use crate::job::posed::{RatesError, fraction};
use crate::job::rates::job_rates;

/// A job that runs already, and goes on as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningJob {
    /// Its groups, on ranks of the network.
    pub job: Job,
    /// What ranks do for groups that they are not in.
    pub transit: Transit,
    /// In which time all its groups end, each for its size: no less than they need together.
    pub seconds: Ratio,
}

/// Why there is nothing beside a running job.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum BesideError {
    #[error(transparent)]
    Rates(#[from] RatesError),
    #[error("its groups take {least} s together at least, and {stated} s are stated; state no less")]
    TooFast { least: Box<Ratio>, stated: Box<Ratio> },
    #[error("the links that it leaves do not make a network: {0}")]
    Topology(TopologyError),
}

/// The network without what a running job uses of it: its groups keep their plans, each in its share of the links of
/// their joint optimum, for as much of the time as they need to end when they do.
///
/// * **Out.** The same nodes, and links of what is left of their rates, whole bytes per second; without those of which
///   nothing is. Of parallel links, those of least latency are used first, as in [`crate::job::JobRates::share_of`].
/// * **Errors.** [`BesideError`]. **Cost.** That of [`job_rates`], and O(links of all shares).
pub fn left_beside(topology: &Topology, running: &RunningJob, patience: Patience<'_>) -> Result<Topology, BesideError> {
    let rates = job_rates(topology, &running.job, running.transit, patience)?;
    if rates.seconds > running.seconds {
        let (least, stated) = (Box::new(rates.seconds), Box::new(running.seconds.clone()));
        return Err(BesideError::TooFast { least, stated });
    }
    let part = fraction(&rates.seconds) / fraction(&running.seconds);
    let mut used: BTreeMap<(u32, u32), BigRational> = BTreeMap::new();
    for (ends, share) in (0..running.job.groups.len()).flat_map(|group| rates.by_ends(group)) {
        *used.entry(ends).or_default() += share * &part;
    }
    without(topology, used).map_err(BesideError::Topology)
}

/// The network with so much less on the links between two nodes.
fn without(topology: &Topology, used: BTreeMap<(u32, u32), BigRational>) -> Result<Topology, TopologyError> {
    let whole = |used: BigRational| used.ceil().to_integer().to_u64().unwrap_or(u64::MAX);
    let mut taken: BTreeMap<(u32, u32), u64> = used.into_iter().map(|(ends, used)| (ends, whole(used))).collect();
    // Parallel links come in order of their latency.
    topology.remeasured(|link| {
        let capacity = link.capacity.bytes_per_sec();
        let used = taken.entry((link.from.number(), link.to.number())).or_default();
        let here = capacity.min(*used);
        *used -= here;
        (Capacity::from_bytes_per_sec(capacity - here), link.latency)
    })
}
