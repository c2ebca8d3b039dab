//! What of a network is left, and what its parts are called there.

use std::collections::HashMap;

use canopy_schedule::{Collective, RouteTable, Shares};
use canopy_topology::{LinkIndex, NodeIndex, Rank, Topology};

use super::RepairError;

/// The names of a network's parts in what is left of it.
pub(super) struct Remainder<'a> {
    pub(super) base: &'a Topology,
    pub(super) left: &'a Topology,
    /// By rank of the base: its new number, if it is still there.
    pub(super) ranks: Vec<Option<Rank>>,
    /// By rank that is left: the old number.
    before: Vec<Rank>,
    /// By link of the base.
    links: Vec<Option<LinkIndex>>,
}

impl<'a> Remainder<'a> {
    /// Finds every node and link of `left` in `base`.
    ///
    /// * **Errors.** A node, a link or a capacity that was not there before; ranks in another order.
    /// * **Cost.** O(nodes + links · log links).
    pub(super) fn of(base: &'a Topology, left: &'a Topology) -> Result<Self, RepairError> {
        let indices = || (0_u32..).map(NodeIndex::new);
        let by_id: HashMap<&str, NodeIndex> =
            base.nodes().iter().zip(indices()).map(|(node, index)| (node.id.as_str(), index)).collect();
        let mut nodes = vec![None; base.nodes().len()];
        let mut before = Vec::with_capacity(left.rank_count() as usize);
        for (node, index) in left.nodes().iter().zip(indices()) {
            let foreign = |what: &str| RepairError::Foreign { what: format!("{what} `{}`", node.id) };
            let old = *by_id.get(node.id.as_str()).ok_or_else(|| foreign("node"))?;
            match (base.rank_of(old), left.rank_of(index)) {
                (Some(old), Some(_)) if before.last().is_none_or(|last| *last < old) => before.push(old),
                (None, None) => {}
                _ => return Err(foreign("the rank of node")),
            }
            nodes[old.index()] = Some(index);
        }
        let mut links = vec![None; base.links().len()];
        let key = |link: &canopy_topology::Link| (link.from, link.to, link.latency);
        let mut found = 0;
        for (link, place) in base.links().iter().zip(&mut links) {
            let (Some(from), Some(to)) = (nodes[link.from.index()], nodes[link.to.index()]) else { continue };
            let at = left.links().binary_search_by_key(&(from, to, link.latency), key);
            let Ok(at) = at else { continue };
            if left.links()[at].capacity > link.capacity {
                break;
            }
            *place = u32::try_from(at).ok().map(LinkIndex::new);
            found += 1;
        }
        if found < left.links().len() {
            let mut known = vec![false; left.links().len()];
            links.iter().flatten().for_each(|link| known[link.index()] = true);
            let lost = left.links().iter().zip(known).find(|(_, known)| !known).map(|(link, _)| link);
            let id = |node: NodeIndex| left.node(node).id.as_str();
            let what = lost.map(|link| format!("a link {} -> {} of this capacity", id(link.from), id(link.to)));
            return Err(RepairError::Foreign { what: what.unwrap_or_default() });
        }
        let ranks = base.ranks().map(|rank| nodes[rank.index()].and_then(|node| left.rank_of(node))).collect();
        Ok(Self { base, left, ranks, before, links })
    }

    /// What a rank is called now; `None` if it is gone or never was.
    pub(super) fn rank(&self, rank: Rank) -> Option<Rank> {
        self.ranks.get(rank.index()).copied().flatten()
    }

    /// The same collective, its root named anew.
    pub(super) fn collective(&self, collective: Collective) -> Result<Collective, RepairError> {
        let root = collective.root().map(|root| {
            let id = || self.base.nodes().get(root.index()).map_or_else(String::new, |node| node.id.clone());
            self.rank(root).ok_or_else(|| RepairError::RootGone { root: id() })
        });
        let renamed = Collective::new(collective.kind(), root.transpose()?, self.left.rank_count());
        renamed.map_err(|_| RepairError::Malformed { what: "its root is not a rank" })
    }

    /// Shares of the ranks that are left, in lowest terms, and what they were divided by.
    pub(super) fn shares(&self, collective: Collective, shares: &Shares) -> Result<(Shares, u64), RepairError> {
        let kept: Vec<u64> = match shares {
            Shares::Equal => return Ok((Shares::Equal, 1)),
            Shares::Weighted(_) => self.before.iter().map(|&rank| shares.weight(rank)).collect(),
            Shares::Blocks(_) => {
                let rows = self.before.iter();
                rows.flat_map(|&from| self.before.iter().map(move |&to| shares.block(from, to))).collect()
            }
        };
        let divisor = kept.iter().copied().fold(0, num_integer::gcd);
        if divisor == 0 {
            return Err(RepairError::NothingLeft);
        }
        Ok((Shares::in_proportion(collective, self.left.rank_count(), kept)?, divisor))
    }

    /// By route of the base: its links now; empty if one of them is gone. O(links of all routes).
    pub(super) fn routes(&self, routes: &RouteTable) -> Vec<Vec<LinkIndex>> {
        let now = |link: &LinkIndex| self.links.get(link.index()).copied().flatten();
        routes.iter().map(|links| links.iter().map(now).collect::<Option<Vec<_>>>().unwrap_or_default()).collect()
    }

    /// The id of a rank of the base.
    pub(super) fn id(&self, rank: Rank) -> String {
        self.base.nodes().get(rank.index()).map_or_else(|| format!("rank {}", rank.number()), |node| node.id.clone())
    }
}
