//! The groups of a job as a problem of numbers, and its answers in the job's own terms.

use canopy_optimize::{Arc, Digraph};
use canopy_schedule::{Collective, CollectiveKind};
use canopy_topology::{NodeIndex, NodeKind, Rank, Ratio, Topology, Transit};
use num_bigint::BigInt;
use num_integer::Integer as _;
use num_rational::BigRational;
use num_traits::Zero as _;

use crate::groups::{
    Group, GroupKind, GroupLevels, GroupOptimum, GroupOptions, GroupProblem, GroupShares, GroupsError, Patience,
    group_levels, group_optimum, group_shares, level_shares,
};
use crate::job::classes::JobGroup;

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
        let optimum = group_optimum(&self.problem, GroupOptions::STANDARD, patience);
        let optimum = optimum.map_err(|error| self.refusal(error))?;
        let shares = group_shares(&self.problem, &optimum, patience).map_err(|error| self.refusal(error))?;
        Ok((optimum, shares))
    }

    /// The rates of all groups, level by level, and what each group gets of each link for its own.
    pub(crate) fn solved_by_levels(&self, patience: Patience<'_>) -> Result<(GroupLevels, GroupShares), RatesError> {
        let levels = group_levels(&self.problem, GroupOptions::STANDARD, usize::MAX, patience);
        let levels = levels.map_err(|error| self.refusal(error))?;
        let shares = level_shares(&self.problem, &levels, patience).map_err(|error| self.refusal(error))?;
        Ok((levels, shares))
    }

    /// By link of the network, the length of its arc.
    pub(crate) fn by_link(&self, lengths: &[u128]) -> Vec<u128> {
        let length = |link| self.problem.arc_of(link).and_then(|arc| lengths.get(arc as usize)).copied().unwrap_or(0);
        (0..self.topology.links().len()).map(length).collect()
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

/// The time in seconds for a rate of groups whose sizes are so many bytes for each unit.
pub(crate) fn time(rate: &BigRational, unit_bytes: u64) -> Ratio {
    let time = if rate.is_zero() { BigRational::zero() } else { rate.recip() * BigInt::from(unit_bytes) };
    in_seconds(&time)
}

/// The same as a fraction.
pub(crate) fn fraction(ratio: &Ratio) -> BigRational {
    let (above, below) = ratio.parts();
    BigRational::new(above.clone().into(), below.clone().into())
}

pub(crate) fn in_seconds(time: &BigRational) -> Ratio {
    Ratio::new(time.numer().magnitude().clone(), time.denom().magnitude().clone())
        .expect("no fraction has a zero below")
}
