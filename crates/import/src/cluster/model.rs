//! A cluster of which parts are planned, whether it is put together or described as a whole.

use canopy_topology::{NodeKind, Topology, TopologyLimits};

use super::{Cluster, ComposeError, compose, machines_of, part_of};
use crate::report::Report;

/// A cluster of which parts are planned.
#[derive(Clone, Debug)]
pub enum ClusterModel {
    /// Machines and what joins them.
    Joined(Cluster),
    /// A whole network that names the machine of each rank.
    Whole(Topology),
}

/// How large a cluster is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterCounts {
    /// Machines.
    pub nodes: usize,
    /// Ranks on all of them.
    pub ranks: usize,
    /// Switches between them; of a whole network, those inside as well.
    pub switches: usize,
}

impl ClusterModel {
    /// Names of all machines, in their order.
    ///
    /// # Errors
    /// A rank of a whole network is on no machine.
    pub fn nodes(&self) -> Result<Vec<String>, ComposeError> {
        match self {
            Self::Joined(cluster) => Ok(cluster.nodes()),
            Self::Whole(topology) => machines_of(topology),
        }
    }

    /// How large it is, and how its files were read.
    ///
    /// # Errors
    /// A machine that no part could have, see [`Cluster::check`] and [`machines_of`].
    pub fn check(&self) -> Result<(ClusterCounts, Report), ComposeError> {
        let nodes = self.nodes()?.len();
        match self {
            Self::Joined(cluster) => {
                let (ranks, report) = cluster.check()?;
                Ok((ClusterCounts { nodes, ranks, switches: cluster.fabric.switches.len() }, report))
            }
            Self::Whole(topology) => {
                let is_switch = |kind: NodeKind| matches!(kind, NodeKind::Switch { .. });
                let switches = topology.nodes().iter().filter(|node| is_switch(node.kind)).count();
                let ranks = topology.rank_count() as usize;
                let understood = vec![format!("{nodes} machines, {ranks} ranks, {switches} switches")];
                Ok((ClusterCounts { nodes, ranks, switches }, Report { understood, ..Report::default() }))
            }
        }
    }

    /// The network among some machines, `nodes` in the order of their ranks: see [`compose`] and [`part_of`].
    ///
    /// # Errors
    /// As those.
    pub fn part(
        &self,
        nodes: &[String],
        limits: &TopologyLimits,
        stop: &dyn Fn() -> bool,
    ) -> Result<Topology, ComposeError> {
        match self {
            Self::Joined(cluster) => compose(cluster, nodes, limits, stop).map(|(topology, _)| topology),
            Self::Whole(topology) => part_of(topology, nodes),
        }
    }
}
