//! The greatest common rate of a job's groups on a network.

use canopy_groups::{
    Group, GroupKind, GroupOptimum, GroupOptions, GroupProblem, GroupShares, GroupsError, group_optimum, group_shares,
};
use canopy_optimize::{Arc, Digraph, Never, Stop};
use canopy_schedule::{Collective, CollectiveKind, JointTask, length_bound};
use canopy_topology::{NodeIndex, NodeKind, Rank, Ratio, Topology, Transit};
use num_bigint::BigInt;
use num_integer::Integer as _;
use num_rational::BigRational;
use num_traits::Zero as _;

use crate::job::{Job, JobGroup};

/// Why there is no common rate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum RatesError {
    #[error("the layout has {layout} ranks, and the network has {network}; change one of them")]
    Ranks { layout: u32, network: u32 },
    #[error(
        "switch {id} copies or sums, and the joint optimum of several groups is known for switches that only forward; \
         describe the network without that"
    )]
    Switch { id: String },
    #[error("group {name}: no way leads from {from} to {to}; let other ranks forward, or mend the network")]
    NoWay { name: String, from: String, to: String },
    #[error(transparent)]
    Groups(GroupsError),
    #[error("stopped before a result was found")]
    Stopped,
    #[error("the lengths of links prove {proven} where {claimed} was found; this is a bug in canopy")]
    Broken { claimed: String, proven: String },
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
    /// What each group gets of each link.
    pub(crate) shares: GroupShares,
    pub(crate) problem: GroupProblem,
    /// What ranks do for groups that they are not in.
    pub(crate) transit: Transit,
}

/// How long somebody waits.
#[derive(Clone, Copy)]
pub struct Patience<'a> {
    /// Whether the best so far is enough.
    pub enough: &'a dyn Stop,
    /// Whether there is no use in any answer.
    pub stop: &'a dyn Stop,
}

impl Patience<'static> {
    /// As long as it takes.
    pub const ENDLESS: Self = Self { enough: &Never, stop: &Never };
}

/// The groups of a job, or some of them, as a problem of numbers. Sizes are divided by what they have in common.
pub(crate) struct Posed<'a> {
    topology: &'a Topology,
    groups: Vec<&'a JobGroup>,
    pub(crate) problem: GroupProblem,
    /// What one unit of size stands for, in bytes.
    pub(crate) unit_bytes: u64,
}

impl<'a> Posed<'a> {
    pub(crate) fn of(
        topology: &'a Topology,
        groups: impl IntoIterator<Item = &'a JobGroup>,
        transit: Transit,
    ) -> Result<Self, RatesError> {
        let groups: Vec<&JobGroup> = groups.into_iter().collect();
        let arcs = topology.links().iter().map(|link| Arc {
            from: link.from.number(),
            to: link.to.number(),
            capacity: link.capacity.bytes_per_sec(),
        });
        let graph = Digraph { node_count: node_count(topology), arcs: arcs.collect() };
        let forwards = |kind: &NodeKind| *kind != NodeKind::Compute || transit == Transit::Forward;
        let relays = topology.nodes().iter().map(|node| forwards(&node.kind)).collect();
        let unit_bytes = groups.iter().fold(0, |unit: u64, group| unit.gcd(&group.size_bytes.get())).max(1);
        let posed = groups.iter().map(|group| Group {
            kind: kind(group.collective),
            members: group.ranks.iter().map(|rank| rank.number()).collect(),
            size: group.size_bytes.get() / unit_bytes,
        });
        let problem = GroupProblem::new(&graph, relays, posed.collect()).map_err(RatesError::Groups)?;
        Ok(Self { topology, groups, problem, unit_bytes })
    }

    /// The best rate, and what each group gets of each link for it.
    pub(crate) fn solved(&self, patience: Patience<'_>) -> Result<(GroupOptimum, GroupShares), RatesError> {
        let optimum = group_optimum(&self.problem, GroupOptions::STANDARD, patience.enough);
        let optimum = optimum.map_err(|error| self.refusal(error))?;
        let shares = group_shares(&self.problem, &optimum, patience.stop).map_err(|error| self.refusal(error))?;
        Ok((optimum, shares))
    }

    /// The error in the names of the network and the job.
    pub(crate) fn refusal(&self, error: GroupsError) -> RatesError {
        let id = |node: u32| self.topology.node(NodeIndex::new(node)).id.clone();
        match error {
            GroupsError::NoWay { group, from, to } => RatesError::NoWay {
                name: self.groups.get(group).map(|group| group.name.clone()).unwrap_or_default(),
                from: id(from),
                to: id(to),
            },
            GroupsError::Stopped => RatesError::Stopped,
            error => RatesError::Groups(error),
        }
    }
}

fn node_count(topology: &Topology) -> u32 {
    u32::try_from(topology.nodes().len()).expect("limits keep node counts within u32")
}

fn kind(collective: Collective) -> GroupKind {
    let root = collective.root().map_or(0, Rank::number);
    match collective.kind() {
        CollectiveKind::Allreduce => GroupKind::AllReduce,
        CollectiveKind::Allgather => GroupKind::AllGather,
        CollectiveKind::ReduceScatter => GroupKind::ReduceScatter,
        CollectiveKind::Broadcast => GroupKind::Broadcast(root),
        CollectiveKind::Reduce => GroupKind::Reduce(root),
        CollectiveKind::Scatter => GroupKind::Scatter(root),
        CollectiveKind::Gather => GroupKind::Gather(root),
        CollectiveKind::AllToAll => GroupKind::AllToAll,
    }
}

/// Computes the greatest common rate of all groups of a job, and what each gets of every link.
///
/// What is found is added up again from the lengths of links alone, by code of its own.
///
/// * **In.** `transit`: what ranks do for groups that they are not in. `patience`: when the best so far is taken, and
///   when there is no use in any answer.
/// * **Errors.** [`RatesError`].
/// * **Cost.** That of [`group_optimum`] and [`group_shares`].
pub fn job_rates(
    topology: &Topology,
    job: &Job,
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
    let (optimum, shares) = posed.solved(patience)?;
    let Posed { problem, unit_bytes, .. } = posed;
    let length = |link| problem.arc_of(link).and_then(|arc| optimum.lengths.get(arc as usize)).copied().unwrap_or(0);
    let lengths: Vec<u128> = (0..topology.links().len()).map(length).collect();
    let claimed = time(&optimum.bound, unit_bytes);
    require_proof(topology, job, (&lengths, &claimed), transit, patience.stop)?;
    Ok(JobRates {
        seconds: time(&optimum.rate, unit_bytes),
        seconds_min: claimed,
        lengths,
        classes: optimum.classes,
        shares,
        problem,
        transit,
    })
}

/// The time in seconds for a rate of groups whose sizes are so many bytes for each unit.
pub(crate) fn time(rate: &BigRational, unit_bytes: u64) -> Ratio {
    let time = if rate.is_zero() { BigRational::zero() } else { rate.recip() * BigInt::from(unit_bytes) };
    in_seconds(&time)
}

pub(crate) fn in_seconds(time: &BigRational) -> Ratio {
    Ratio::new(time.numer().magnitude().clone(), time.denom().magnitude().clone())
        .expect("no fraction has a zero below")
}

/// Adds up what the lengths prove; it must be what was found.
fn require_proof(
    topology: &Topology,
    job: &Job,
    (lengths, claimed): (&[u128], &Ratio),
    transit: Transit,
    stop: &dyn Stop,
) -> Result<(), RatesError> {
    let members: Vec<Vec<NodeIndex>> =
        job.groups.iter().map(|group| group.ranks.iter().map(|rank| NodeIndex::new(rank.number())).collect()).collect();
    let tasks = job.groups.iter().zip(&members).map(|(group, members)| JointTask {
        members,
        collective: group.collective,
        size_bytes: group.size_bytes,
    });
    let tasks: Vec<JointTask<'_>> = tasks.collect();
    let found = length_bound(topology, &tasks, lengths, transit, &|| stop.is_requested());
    match found {
        None if stop.is_requested() => Err(RatesError::Stopped),
        Some(proven) if proven == *claimed => Ok(()),
        found => Err(RatesError::Broken {
            claimed: claimed.to_string(),
            proven: found.map_or_else(|| "nothing".to_owned(), |proven| proven.to_string()),
        }),
    }
}
