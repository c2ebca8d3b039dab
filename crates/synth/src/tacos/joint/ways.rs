//! Ways from each rank of a collective to those that it reaches with none of the collective's other ranks between.

use std::collections::BTreeMap;

use canopy_optimize::Stop;
use canopy_tacos::{Claim, TimedLink};
use canopy_topology::{LinkIndex, NodeIndex, Rank, Topology};

use super::ticks::Lasts;
use crate::error::SynthesisError;
use crate::reach::ask;

/// Most links of all ways of a collective.
const LINKS_MAX: usize = 1 << 20;

/// A shortest way between two ranks of a collective.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) from: Rank,
    pub(super) to: Rank,
    /// Its links in the network as the ranks see it.
    pub(super) route: Vec<LinkIndex>,
    /// The same links in the whole network.
    physical: Vec<LinkIndex>,
}

impl Way {
    /// What it is with chunks of the size of one of several collectives. All its links are taken as long as each takes.
    pub(super) fn timed(&self, lasts: &Lasts, collective: usize) -> (TimedLink, Vec<Claim>) {
        let claim = |&link: &LinkIndex| Claim { thing: link.number(), ticks: lasts.ticks(collective, link) };
        let claims: Vec<Claim> = self.physical.iter().map(claim).collect();
        let longest = claims.iter().map(|claim| claim.ticks).max().unwrap_or(1);
        let (from, to) = (self.from.number(), self.to.number());
        (TimedLink { from, to, latency: longest, occupancy: longest }, claims)
    }
}

/// For each rank, a shortest way to each other one that has no way as short past a third; nodes without a rank are passed, those
/// that fewest ways before have passed first.
///
/// # Errors
/// Stopped; more links than there is room for. O(ranks · (nodes + links)).
pub(super) fn ways(whole: &Topology, own: &Topology, stop: &dyn Stop) -> Result<Vec<Way>, SynthesisError> {
    let physical = physical_links(whole, own)?;
    let mut users = vec![0_u32; own.links().len()];
    let (mut ways, mut link_count) = (Vec::new(), 0);
    for from in own.ranks() {
        ask(stop)?;
        let search = Search::from(own, from.node(), &users);
        for to in own.ranks().filter(|&to| to != from) {
            let Some(route) = search.route(own, to.node()) else { continue };
            route.iter().for_each(|link| users[link.index()] += 1);
            link_count += route.len();
            if link_count > LINKS_MAX {
                return Err(SynthesisError::TooManyHops { needed: link_count as u64, limit: LINKS_MAX as u64 });
            }
            let there = route.iter().map(|link| physical[link.index()]).collect();
            ways.push(Way { from, to, route, physical: there });
        }
    }
    Ok(ways)
}

/// What is found from one rank.
struct Search {
    /// By node, the link that a shortest way comes by.
    before: Vec<Option<LinkIndex>>,
    /// By node, whether some shortest way passes a third rank.
    is_past_rank: Vec<bool>,
}

impl Search {
    fn from(own: &Topology, source: NodeIndex, users: &[u32]) -> Self {
        let count = own.nodes().len();
        let mut distance = vec![u32::MAX; count];
        let mut found = Self { before: vec![None; count], is_past_rank: vec![false; count] };
        distance[source.index()] = 0;
        let mut level = vec![source];
        let mut hops = 0;
        while !level.is_empty() {
            hops += 1;
            let mut next = Vec::new();
            for &node in &level {
                let is_past = found.is_past_rank[node.index()] || (own.rank_of(node).is_some() && node != source);
                for link in own.links_from(node) {
                    let to = own.link(link).to.index();
                    if distance[to] == u32::MAX {
                        distance[to] = hops;
                        next.push(own.link(link).to);
                    } else if distance[to] != hops {
                        continue;
                    }
                    found.is_past_rank[to] |= is_past;
                    let is_better = |best: LinkIndex| users[link.index()] < users[best.index()];
                    if found.before[to].is_none_or(is_better) {
                        found.before[to] = Some(link);
                    }
                }
            }
            level = next;
        }
        found
    }

    /// The way to a rank, none where there is none without passing a third.
    fn route(&self, own: &Topology, to: NodeIndex) -> Option<Vec<LinkIndex>> {
        if self.is_past_rank[to.index()] {
            return None;
        }
        let mut route = Vec::new();
        let mut node = to;
        while let Some(link) = self.before[node.index()] {
            route.push(link);
            node = own.link(link).from;
        }
        route.reverse();
        (!route.is_empty()).then_some(route)
    }
}

/// By link of a network of some ranks, the same in the whole one: that with the same ends and latency.
fn physical_links(whole: &Topology, own: &Topology) -> Result<Vec<LinkIndex>, SynthesisError> {
    let mut known = BTreeMap::new();
    for (index, link) in (0..).map(LinkIndex::new).zip(whole.links()) {
        known.insert((whole.node(link.from).id.as_str(), whole.node(link.to).id.as_str(), link.latency.nanos()), index);
    }
    let found = own.links().iter().map(|link| {
        known.get(&(own.node(link.from).id.as_str(), own.node(link.to).id.as_str(), link.latency.nanos())).copied()
    });
    let found: Option<Vec<LinkIndex>> = found.collect();
    found.ok_or_else(|| SynthesisError::Broken { what: "joint: a link of a group is not in the network".to_owned() })
}
