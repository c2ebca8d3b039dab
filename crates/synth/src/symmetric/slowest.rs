//! The part of a network that takes longest to get what it needs, whatever the plan: the proof of a bound.

use canopy_schedule::{Certificate, CollectiveKind, CutDirection, NOBODY};
use canopy_topology::{NodeIndex, Topology};

use crate::symmetric::network::BoxNetwork;

/// Sets of nodes that a bound may be about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Rank(u32),
    Box(u32),
    /// A set of boxes of a level.
    Area(usize, u32),
}

impl Part {
    /// Another part of the same kind.
    const fn numbered(self, number: u32) -> Self {
        match self {
            Self::Rank(_) => Self::Rank(number),
            Self::Box(_) => Self::Box(number),
            Self::Area(level, _) => Self::Area(level, number),
        }
    }
}

/// Shares that must enter (or leave) a part, and bytes per second that may.
#[derive(Clone, Copy, Debug, Default)]
struct Need {
    inside: u64,
    into: u128,
    out: u128,
}

/// The certificate of the slowest rank, box or set of boxes; for an allreduce the partition into parts of one kind that
/// proves most, or the cut around a part that is slower still.
///
/// An allgather brings a part with s of N ranks the other N − s shares, over the links that enter it; a reduce-scatter
/// takes as many sums out. An allreduce on p equal parts takes 2(p − 1) messages out of all, and one message into each
/// and out of each, see [`certified_bound`](canopy_schedule::certified_bound). Without boxes, ranks alone are looked at. O(nodes + links).
pub fn slowest(topology: &Topology, network: Option<&BoxNetwork>, kind: CollectiveKind) -> Certificate {
    let ranks = topology.rank_count();
    let boxes = network.map_or(0, |network| u32::try_from(network.ranks.len()).unwrap_or(u32::MAX));
    let areas = network.into_iter().flat_map(|network| network.areas.iter().enumerate());
    let count = |area: &[u32]| area.iter().filter(|&&number| number != NOBODY).max().map_or(0, |&last| last + 1);
    let areas = areas.map(|(level, area)| (count(area), Part::Area(level, 0)));
    let parts: Vec<(u32, Part)> =
        [(boxes, Part::Box(0))].into_iter().chain(areas).chain([(ranks, Part::Rank(0))]).collect();
    let network = Network { ranks, boxes: network };
    let mut slowest: Option<(Part, u64, u128)> = None;
    let mut narrowest: Option<(Part, u128, CutDirection)> = None;
    // Bytes per second that leave all parts of a kind, and how many parts there are beside one.
    let mut together: Option<(Part, u128, u128)> = None;
    for (count, part) in parts.into_iter().filter(|&(count, _)| count > 1) {
        let needs = needs(topology, &network, count as usize, part);
        let leaving: u128 = needs.iter().map(|need| need.out).sum();
        let others = needs.iter().map(|need| u128::from(need.inside > 0)).sum::<u128>().saturating_sub(1);
        let proves_more =
            |&(_, least, of): &(Part, u128, u128)| leaving.saturating_mul(of) < least.saturating_mul(others);
        let is_partition = kind == CollectiveKind::Allreduce && others > 0;
        if is_partition && together.as_ref().is_none_or(proves_more) && are_in_sets(topology, &network, part) {
            together = Some((part, leaving, others));
        }
        for (number, need) in (0..).zip(needs) {
            let rate = if kind == CollectiveKind::ReduceScatter { need.out } else { need.into };
            let outside = u64::from(ranks) - need.inside;
            let takes_longer = |&(_, shares, of): &(Part, u64, u128)| {
                u128::from(outside).saturating_mul(of) > u128::from(shares).saturating_mul(rate)
            };
            if need.inside == 0 || outside == 0 {
                continue;
            }
            if slowest.as_ref().is_none_or(takes_longer) {
                slowest = Some((part.numbered(number), outside, rate));
            }
            for (rate, direction) in [(need.into, CutDirection::In), (need.out, CutDirection::Out)] {
                if narrowest.as_ref().is_none_or(|(_, least, _)| rate < *least) {
                    narrowest = Some((part.numbered(number), rate, direction));
                }
            }
        }
    }
    let part = slowest.map_or(Part::Rank(0), |(part, _, _)| part);
    match (kind, narrowest, together) {
        (CollectiveKind::Allreduce, Some((part, rate, direction)), Some((_, leaving, others)))
            if rate.saturating_mul(2 * others) < leaving =>
        {
            cut(topology, &network, part, direction)
        }
        (CollectiveKind::Allreduce, _, Some((part, ..))) => partition(topology, &network, part),
        (CollectiveKind::Allreduce, Some((part, _, direction)), None) => cut(topology, &network, part, direction),
        (CollectiveKind::ReduceScatter, ..) => cut(topology, &network, part, CutDirection::Out),
        _ => cut(topology, &network, part, CutDirection::In),
    }
}

/// Where nodes are, as far as that is known.
struct Network<'a> {
    ranks: u32,
    boxes: Option<&'a BoxNetwork>,
}

/// What each part of one kind needs.
fn needs(topology: &Topology, network: &Network<'_>, count: usize, kind: Part) -> Vec<Need> {
    let mut needs = vec![Need::default(); count];
    for rank in topology.ranks() {
        if let Some(need) = number(network, kind, rank.node()).and_then(|number| needs.get_mut(number as usize)) {
            need.inside += 1;
        }
    }
    for link in topology.links() {
        let [from, to] = [link.from, link.to].map(|node| number(network, kind, node));
        if from == to {
            continue;
        }
        let rate = u128::from(link.capacity.bytes_per_sec());
        if let Some(need) = from.and_then(|from| needs.get_mut(from as usize)) {
            need.out += rate;
        }
        if let Some(need) = to.and_then(|to| needs.get_mut(to as usize)) {
            need.into += rate;
        }
    }
    needs
}

/// The number of the part of a kind that a node is in.
fn number(network: &Network<'_>, kind: Part, node: NodeIndex) -> Option<u32> {
    let number = match kind {
        Part::Rank(_) => return (node.number() < network.ranks).then(|| node.number()),
        Part::Box(_) => *network.boxes?.homes.get(node.index())?,
        Part::Area(level, _) => *network.boxes?.areas.get(level)?.get(node.index())?,
    };
    (number != NOBODY).then_some(number)
}

/// The cut around a part.
fn cut(topology: &Topology, network: &Network<'_>, part: Part, direction: CutDirection) -> Certificate {
    let (Part::Rank(own) | Part::Box(own) | Part::Area(_, own)) = part;
    let nodes = (0..u32::try_from(topology.nodes().len()).unwrap_or(u32::MAX)).map(NodeIndex::new);
    let inside = nodes.filter(|&node| number(network, part, node) == Some(own));
    Certificate::Cut { direction, nodes: inside.collect() }
}

/// Whether parts of a kind hold all that can add up or replicate what passes it: what does so between them saves messages
/// that a partition counts.
fn are_in_sets(topology: &Topology, network: &Network<'_>, kind: Part) -> bool {
    let ranks = topology.ranks().map(|rank| rank.node());
    ranks.chain(topology.capable_nodes()).all(|node| number(network, kind, node).is_some())
}

fn partition(topology: &Topology, network: &Network<'_>, kind: Part) -> Certificate {
    let mut sets: Vec<Vec<NodeIndex>> = Vec::new();
    for node in (0..u32::try_from(topology.nodes().len()).unwrap_or(u32::MAX)).map(NodeIndex::new) {
        if let Some(number) = number(network, kind, node) {
            let number = number as usize;
            if sets.len() <= number {
                sets.resize_with(number + 1, Vec::new);
            }
            sets[number].push(node);
        }
    }
    sets.retain(|set| !set.is_empty());
    // In the order of their first nodes.
    sets.sort_unstable();
    Certificate::Partition { sets }
}
