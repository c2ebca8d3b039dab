//! The network of one group's shares: in it alone, the group reaches its part of the joint rate.

use std::collections::BTreeMap;

use canopy_optimize::{Arc, Digraph, Never, lower};
use canopy_topology::{
    Capacity, DraftLink, DraftNode, LinkIndex, NodeIndex, NodeKind, Rank, Topology, TopologyDraft, TopologyError,
    TopologyLimits, Transit,
};
use num_bigint::BigInt;
use num_integer::Integer as _;
use num_rational::BigRational;
use num_traits::{ToPrimitive as _, Zero as _};

use crate::job::classes::Job;
use crate::job::rates::JobRates;

/// Rates are kept in proportion by whole multiples of one that has this many bytes per second at least: what is lost by
/// rounding it is a millionth.
const UNIT_BYTES_MIN: u64 = 1_000_000;

/// The network of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// Its ranks are those of the group, in their order; all other nodes that it uses forward only.
    pub topology: Topology,
}

/// Why there is no network of a group.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum ShareError {
    #[error("the job has no group {group}; there are {count}, numbered from 0")]
    NoSuchGroup { group: usize, count: usize },
    #[error("group {name} would get less than a byte per second of a link; let the sizes of groups differ less")]
    Thin { name: String },
    #[error("group {name}: {source}")]
    Topology { name: String, source: TopologyError },
}

impl JobRates {
    /// The network of a group.
    ///
    /// Rates are whole bytes per second, in the exact proportion of the shares where these have a common measure of
    /// 1 MB/s or more; so the group loses up to a millionth of its rate. Others are rounded down, and then lowered until
    /// all nodes that are not members pass on as much as they get, as the shares do.
    ///
    /// # Errors
    /// [`ShareError`].
    ///
    /// # Cost
    /// O(links · parallel links + nodes), and a flow of some bytes for each node that rounding unbalances.
    pub fn share_of(&self, topology: &Topology, job: &Job, group: usize) -> Result<Share, ShareError> {
        let asked = job.groups.get(group);
        let asked = asked.ok_or(ShareError::NoSuchGroup { group, count: job.groups.len() })?;
        let name = || asked.name.clone();
        let capacities = self.capacities(group, &asked.ranks).ok_or_else(|| ShareError::Thin { name: name() })?;
        let mut draft = TopologyDraft { name: Some(name()), ..TopologyDraft::default() };
        let mut is_used = vec![false; topology.nodes().len()];
        capacities.keys().for_each(|&(from, to)| (is_used[from as usize], is_used[to as usize]) = (true, true));
        let mut position = vec![None; topology.nodes().len()];
        (0_u32..).zip(&asked.ranks).for_each(|(place, rank)| position[rank.index()] = Some(place));
        for (number, node) in topology.nodes().iter().enumerate() {
            let kind = match (node.kind, position[number]) {
                (kind, Some(_)) => kind,
                (_, None) if !is_used[number] => continue,
                (NodeKind::Compute, None) if self.transit == Transit::Forward => NodeKind::Forwarder,
                (kind, None) => kind,
            };
            let (id, attributes) = (node.id.clone(), node.attributes.clone());
            draft.nodes.push(DraftNode { id, kind, rank: position[number], attributes });
        }
        for ((from, to), capacity) in capacities {
            self.add(topology, (from, to), capacity, &mut draft);
        }
        let topology =
            draft.build(&TopologyLimits::UNLIMITED).map_err(|source| ShareError::Topology { name: name(), source })?;
        Ok(Share { topology })
    }

    /// By ends of links, what a group gets.
    pub(crate) fn by_ends(&self, group: usize) -> impl Iterator<Item = ((u32, u32), &BigRational)> {
        let arcs = &self.problem.graph().arcs;
        let place = move |node| self.shares.node_of(group, node);
        self.shares.of(group).iter().filter_map(move |(arc, share)| {
            let arc = arcs.get(*arc as usize)?;
            Some(((place(arc.from), place(arc.to)), share))
        })
    }

    /// By ends, whole bytes per second that are balanced wherever the shares are; `None` where one is less than 1.
    fn capacities(&self, group: usize, members: &[Rank]) -> Option<BTreeMap<(u32, u32), u64>> {
        let shares: Vec<((u32, u32), &BigRational)> = self.by_ends(group).collect();
        let common = shares.iter().fold(BigInt::from(1), |common, (_, share)| common.lcm(share.denom()));
        let parts: Vec<BigInt> = shares.iter().map(|(_, share)| share.numer() * (&common / share.denom())).collect();
        let measure = parts.iter().fold(BigInt::zero(), |measure, part| measure.gcd(part));
        let unit = BigRational::new(measure.clone(), common.clone()).to_integer();
        let keeps = unit >= BigInt::from(UNIT_BYTES_MIN);
        let whole = |part: &BigInt| if keeps { part / &measure * &unit } else { part / &common };
        let mut whole: Vec<u128> = parts.iter().map(|part| whole(part).to_u128()).collect::<Option<_>>()?;
        if !keeps {
            self.balance(&shares, members, &mut whole);
        }
        let positive = |whole: u128| u64::try_from(whole).ok().filter(|&capacity| capacity > 0);
        shares.iter().zip(whole).map(|(&(ends, _), whole)| Some((ends, positive(whole)?))).collect()
    }

    /// Lowers capacities by ends until all nodes that are not members pass on as much as they get.
    fn balance(&self, shares: &[((u32, u32), &BigRational)], members: &[Rank], capacities: &mut [u128]) {
        let node_count = self.problem.graph().node_count;
        let arcs = shares.iter().map(|&((from, to), _)| Arc { from, to, capacity: 0 });
        let graph = Digraph { node_count, arcs: arcs.collect() };
        let mut is_member = vec![false; node_count as usize];
        members.iter().for_each(|rank| is_member[rank.index()] = true);
        lower(&graph, &is_member, capacities, &Never).expect("nothing requests a stop");
    }

    /// Adds the links between two nodes, those of least latency first, as far as the share goes.
    fn add(&self, topology: &Topology, (from, to): (u32, u32), capacity: u64, draft: &mut TopologyDraft) {
        let (from, to) = (NodeIndex::new(from), NodeIndex::new(to));
        let mut left = capacity;
        let between = topology.links_from(from).filter(|&link: &LinkIndex| topology.link(link).to == to);
        for link in between.map(|link| topology.link(link)) {
            let taken = left.min(link.capacity.bytes_per_sec());
            if let Some(capacity) = Capacity::from_bytes_per_sec(taken) {
                let (from, to) = (topology.node(from).id.clone(), topology.node(to).id.clone());
                draft.links.push(DraftLink { from, to, capacity, latency: link.latency, count: 1 });
            }
            left -= taken;
        }
    }
}
