//! The greatest common rate of a job's groups on a network.

use canopy_topology::{NodeKind, Ratio, Topology, Transit};

use crate::groups::{GroupProblem, GroupShares, Patience};
use crate::job::classes::Job;
use crate::job::levels::{JobLevel, level_of};
use crate::job::posed::{Posed, RatesError, time};
use crate::job::proof::Proofs;

/// What the groups of a job are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objective {
    /// One common rate for their sizes: all take equally long.
    Common,
    /// The common rate, and more where there is more: no group can be faster unless one that is no faster slows down.
    Levels,
}

/// What the groups of a job reach at once.
#[derive(Clone, Debug)]
pub struct JobRates {
    /// All groups together take this long, each for its size: in seconds.
    pub seconds: Ratio,
    /// What they take at least, by `lengths`; the same where the optimum is proven.
    pub seconds_min: Ratio,
    /// By link of the network, a length: added up again, they prove `seconds_min`.
    pub lengths: Vec<u128>,
    /// The program's rows and demands after symmetries.
    pub classes: (usize, usize),
    /// Groups by how long they take, slowest first: what the first one takes is `seconds`. Empty for
    /// [`Objective::Common`].
    pub levels: Vec<JobLevel>,
    /// By group, what it takes for its size, in seconds.
    pub group_seconds: Vec<Ratio>,
    /// What each group gets of each link.
    pub(crate) shares: GroupShares,
    pub(crate) problem: GroupProblem,
    /// What ranks do for groups that they are not in.
    pub(crate) transit: Transit,
}

/// Computes the greatest common rate of all groups of a job, and what each gets of every link.
///
/// As [`job_rates_for`] with [`Objective::Common`].
///
/// # Errors
/// [`RatesError`].
pub fn job_rates(
    topology: &Topology,
    job: &Job,
    transit: Transit,
    patience: Patience<'_>,
) -> Result<JobRates, RatesError> {
    job_rates_for(topology, job, Objective::Common, transit, patience)
}

/// Computes what the groups of a job reach at once, and what each gets of every link.
///
/// What is found is added up again from the lengths of links alone, by code of its own.
///
/// * **In.** `transit`: what ranks do for groups that they are not in. `patience`: when the best so far is taken, and
///   when there is no use in any answer.
/// * **Errors.** [`RatesError`].
/// * **Cost.** That of [`crate::groups::group_optimum`] or [`crate::groups::group_levels`], and of
///   [`crate::groups::group_shares`].
pub fn job_rates_for(
    topology: &Topology,
    job: &Job,
    objective: Objective,
    transit: Transit,
    patience: Patience<'_>,
) -> Result<JobRates, RatesError> {
    if job.rank_count != topology.rank_count() {
        return Err(RatesError::Ranks { layout: job.rank_count, network: topology.rank_count() });
    }
    let is_more =
        |kind: &NodeKind| matches!(kind, NodeKind::Switch { multicast, aggregate } if *multicast || *aggregate);
    if let Some(node) = topology.nodes().iter().find(|node| is_more(&node.kind)) {
        return Err(RatesError::Switch { id: node.id.clone() });
    }
    let posed = Posed::of(topology, &job.groups, transit)?;
    let proofs = Proofs::new(topology, job, transit, patience);
    match objective {
        Objective::Common => {
            let (optimum, shares) = posed.solved(patience)?;
            let groups = (0..job.groups.len()).collect();
            let all = level_of(&posed, (&optimum.rate, &optimum.bound), &optimum.lengths, groups);
            proofs.require(std::slice::from_ref(&all))?;
            let JobLevel { seconds, seconds_min, lengths, groups } = all;
            let group_seconds = vec![seconds.clone(); groups.len()];
            let (classes, problem, levels) = (optimum.classes, posed.problem, Vec::new());
            Ok(JobRates { seconds, seconds_min, lengths, classes, levels, group_seconds, shares, problem, transit })
        }
        Objective::Levels => {
            let (found, shares) = posed.solved_by_levels(patience)?;
            let levels: Vec<JobLevel> = found
                .levels
                .iter()
                .chain(&found.open)
                .map(|level| level_of(&posed, (&level.rate, &level.bound), &level.lengths, level.groups.clone()))
                .collect();
            proofs.require(&levels)?;
            let rates = found.rates.iter().zip(&job.groups);
            let group_seconds = rates.map(|(rate, group)| time(rate, group.size_bytes.get())).collect();
            let JobLevel { seconds, seconds_min, lengths, .. } = levels.first().cloned().ok_or(RatesError::Stopped)?;
            let (classes, problem) = (found.classes, posed.problem);
            Ok(JobRates { seconds, seconds_min, lengths, classes, levels, group_seconds, shares, problem, transit })
        }
    }
}
