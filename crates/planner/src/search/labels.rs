//! A request in canonical labels: what is found for it serves every other network of its shape. Schedules in time stay in the
//! caller's labels: they depend on the order of ranks and on the size of messages, and are kept for the network's own repair.

use std::sync::Arc;

use canopy_canonical::Normal;
use canopy_plan::{PlanFile, chain};
use canopy_schedule::{Bound, Collective, Schedule, Shares, relabelled, relabelled_certificate};
use canopy_synth::{Kept, Stop, SumOptions, TreeLimits};
use canopy_topology::{LinkIndex, NodeIndex, Rank};

use crate::error::PlanError;
use crate::key::ScheduleKey;
use crate::prepared::Prepared;
use crate::request::Request;
use crate::schedules::Schedules;
use crate::shapes::Shapes;

/// The labels in which the schedules of a request are kept, and the way between them and the caller's.
#[derive(Debug)]
pub(crate) struct Labels {
    pub(crate) normal: Arc<Normal>,
    pub(crate) collective: Collective,
    pub(crate) shares: Shares,
    kind: Kind,
    /// The way back: by node and link of the normal topology, those of the caller.
    nodes: Vec<NodeIndex>,
    links: Vec<LinkIndex>,
    /// By rank of the normal topology, that of the caller.
    ranks: Vec<Rank>,
}

/// Whose labels they are.
#[derive(Debug)]
enum Kind {
    /// Those of the shape; and the different weights of shares, rising.
    Canonical { sizes: Vec<u64> },
    /// The caller's.
    Own,
}

/// Most ranks of networks whose schedules are kept in the caller's labels: with so many each, these have a million sends.
const OWN_RANKS_MAX: u32 = 1024;

impl Labels {
    /// Finds the canonical request. None where it takes too much work, and for what is found without a search, or by the
    /// order of the ranks: that stays with the caller's. So do blocks of different sizes.
    pub(crate) fn of(
        shapes: &Shapes,
        request: &Request,
        prepared: &Prepared,
        stop: &dyn Stop,
    ) -> Result<Option<Self>, PlanError> {
        if request.algorithm.is_in_time() {
            return Ok((prepared.topology.rank_count() <= OWN_RANKS_MAX).then(|| Self::own(prepared)));
        }
        if request.algorithm.kept != Kept::ByShape {
            return Ok(None);
        }
        let Prepared { topology, collective, shares, .. } = prepared;
        let Some((roles, sizes)) = roles(*collective, shares, topology.rank_count()) else { return Ok(None) };
        let normal = shapes.normal_of(topology, &roles, stop).map_err(|_| PlanError::Stopped)?;
        let Some(normal) = normal else { return Ok(None) };
        let images = normal.ranks();
        let image = |rank: Rank| images.get(rank.index()).copied();
        let root = collective.root().and_then(image);
        let collective = Collective::new(collective.kind(), root, topology.rank_count())?;
        let shares = match shares {
            Shares::Equal => Shares::Equal,
            Shares::Weighted(weights) => {
                let mut moved = vec![0; weights.len()];
                for (rank, &weight) in images.iter().zip(weights) {
                    moved[rank.index()] = weight;
                }
                Shares::Weighted(moved)
            }
            Shares::Blocks(_) => return Ok(None),
        };
        let (nodes, links) = normal.inverse();
        let ranks = nodes.iter().take(images.len()).map(|node| Rank::new(node.number())).collect();
        Ok(Some(Self { normal, collective, shares, kind: Kind::Canonical { sizes }, nodes, links, ranks }))
    }

    /// The caller's own labels.
    fn own(prepared: &Prepared) -> Self {
        let Prepared { topology, topology_key, collective, shares, .. } = prepared;
        let nodes: Vec<NodeIndex> = (0..).take(topology.nodes().len()).map(NodeIndex::new).collect();
        let links: Vec<LinkIndex> = (0..).take(topology.links().len()).map(LinkIndex::new).collect();
        let normal = Normal {
            topology: topology.clone(),
            hash: topology_key.identity,
            nodes: nodes.clone(),
            links: links.clone(),
        };
        Self {
            normal: Arc::new(normal),
            collective: *collective,
            shares: shares.clone(),
            kind: Kind::Own,
            nodes,
            links,
            ranks: topology.ranks().collect(),
        }
    }

    /// Whether its labels may be others than the caller's.
    pub(crate) const fn is_renamed(&self) -> bool {
        matches!(self.kind, Kind::Canonical { .. })
    }

    /// Where the schedule within these limits is kept.
    pub(crate) fn key(&self, request: &Request, sums: SumOptions, limits: TreeLimits) -> ScheduleKey {
        let search = (request.algorithm, limits, sums);
        let (form, collective) = (&self.normal.hash, self.collective);
        let key = match &self.kind {
            Kind::Canonical { sizes } => ScheduleKey::of(form, collective.kind(), sizes, search),
            Kind::Own => {
                let more = (request.size_bytes_max, request.alpha_ns, request.seed);
                ScheduleKey::in_own_labels(form, collective, &self.shares, search, more)
            }
        };
        request.tenant.as_ref().map_or(key, |tenant| key.of_tenant(tenant))
    }

    /// The plan within these limits, if it is known, and says all that one that is searched for says: proofs of times are not kept.
    pub(super) fn answer(
        &self,
        schedules: &dyn Schedules,
        request: &Request,
        sums: SumOptions,
        limits: TreeLimits,
    ) -> Option<Arc<PlanFile>> {
        if request.algorithm.claim.is_some() { None } else { self.known(schedules, request, sums, limits) }
    }

    /// The plan within these limits, if it is known.
    pub(super) fn known(
        &self,
        schedules: &dyn Schedules,
        request: &Request,
        sums: SumOptions,
        limits: TreeLimits,
    ) -> Option<Arc<PlanFile>> {
        schedules.get(&self.key(request, sums, limits), &self.normal.topology)
    }

    /// A schedule of the normal topology in the caller's labels.
    pub(super) fn schedule(&self, schedule: &Schedule) -> Result<Schedule, PlanError> {
        let rejected = |problem| PlanError::Rejected { check: "structure", problem };
        relabelled(schedule, &self.ranks, &self.links).map_err(|error| rejected(chain(&error)))
    }

    /// A bound of the normal topology in the caller's labels.
    pub(super) fn bound(&self, bound: &Bound) -> Bound {
        let certificate = relabelled_certificate(&bound.certificate, &self.nodes, &self.links);
        Bound { upper: bound.upper.clone(), lower: bound.lower.clone(), certificate }
    }
}

/// What tells ranks apart beside their place in the network: by rank, its role; and the different weights, rising.
///
/// None for blocks of different sizes: what pairs of ranks have for each other is no role that a rank has by itself.
fn roles(collective: Collective, shares: &Shares, rank_count: u32) -> Option<(Vec<u32>, Vec<u64>)> {
    let (mut roles, sizes) = match shares {
        Shares::Equal => (vec![0; rank_count as usize], Vec::new()),
        Shares::Weighted(weights) => {
            let mut sizes = weights.clone();
            sizes.sort_unstable();
            sizes.dedup();
            let place = |weight: &u64| sizes.partition_point(|size| size < weight);
            let role = |weight| 2 * u32::try_from(place(weight)).expect("there are no more sizes than ranks");
            (weights.iter().map(role).collect(), sizes)
        }
        Shares::Blocks(_) => return None,
    };
    if let Some(role) = collective.root().and_then(|root| roles.get_mut(root.index())) {
        *role += 1;
    }
    if roles.iter().all(|&role| role == 0) {
        roles.clear();
    }
    Some((roles, sizes))
}

#[cfg(test)]
mod tests {
    use canopy_schedule::CollectiveKind;

    use super::*;

    #[test]
    fn ranks_differ_by_what_is_asked_of_them() {
        let allgather = Collective::new(CollectiveKind::Allgather, None, 3).unwrap();
        let scatter = Collective::new(CollectiveKind::Scatter, Some(Rank::new(1)), 3).unwrap();
        assert_eq!(roles(allgather, &Shares::Equal, 3), Some((vec![], vec![])));
        assert_eq!(roles(scatter, &Shares::Equal, 3), Some((vec![0, 1, 0], vec![])));
        let shares = Shares::Weighted(vec![5, 0, 5]);
        assert_eq!(roles(allgather, &shares, 3), Some((vec![2, 0, 2], vec![0, 5])));
        assert_eq!(roles(scatter, &shares, 3), Some((vec![2, 1, 2], vec![0, 5])));
    }
}
