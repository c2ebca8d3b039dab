//! How many messages must follow one another in any plan.

use std::collections::VecDeque;

use canopy_schedule::{Collective, CollectiveKind};
use canopy_topology::Topology;

/// Messages, one after the other, that the farthest rank waits for, whatever the plan.
///
/// A message passes switches and compute nodes without a rank at once, but every rank on the way stores it first. So
/// data needs at least as many messages as there are ranks on the shortest way, its end included: from the root, to the
/// root, or between the two ranks that are farthest apart. Each takes an α.
///
/// * **In.** All ranks have something for each other, as where shares are equal. **Cost.** O(ranks · links), of one root
///   O(links).
pub(super) fn messages_min(topology: &Topology, collective: Collective) -> u32 {
    let is_gathered = matches!(collective.kind(), CollectiveKind::Gather | CollectiveKind::Reduce);
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); topology.nodes().len()];
    for link in topology.links() {
        let (from, to) = (link.from.number() as usize, link.to.number() as usize);
        let (from, to) = if is_gathered { (to, from) } else { (from, to) };
        if let Some(next) = next.get_mut(from) {
            next.push(to);
        }
    }
    let ranks = topology.rank_count() as usize;
    match collective.root() {
        Some(root) => farthest(&next, ranks, root.number() as usize),
        None => (0..ranks).map(|root| farthest(&next, ranks, root)).max().unwrap_or(0),
    }
}

/// Messages to the rank that is farthest from a root. Nodes before `ranks` have one.
fn farthest(next: &[Vec<usize>], ranks: usize, root: usize) -> u32 {
    let mut distances: Vec<Option<u32>> = vec![None; next.len()];
    // Nearest first: what is as near as its predecessor goes to the front.
    let mut open = VecDeque::from([(root, 0)]);
    while let Some((node, distance)) = open.pop_front() {
        let Some(unknown) = distances.get_mut(node).filter(|known| known.is_none()) else { continue };
        *unknown = Some(distance);
        for &to in next.get(node).map_or(&[][..], Vec::as_slice) {
            match to < ranks {
                true => open.push_back((to, distance + 1)),
                false => open.push_front((to, distance)),
            }
        }
    }
    distances.into_iter().take(ranks).flatten().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use canopy_topology::{Rank, TopologyLimits, generate};

    use super::*;

    #[test]
    fn switches_are_passed_at_once_and_ranks_one_by_one() {
        let of = |network: &str, kind: CollectiveKind| {
            let topology = generate(network, &TopologyLimits::STANDARD).unwrap();
            let root = kind.has_root().then(|| Rank::new(0));
            messages_min(&topology, Collective::new(kind, root, topology.rank_count()).unwrap())
        };
        assert_eq!(of("torus:4x4", CollectiveKind::Allgather), 4);
        assert_eq!(of("mesh:1x5", CollectiveKind::Broadcast), 4);
        assert_eq!(of("mesh:3x3", CollectiveKind::AllToAll), 4);
        assert_eq!(of("dgx-a100:boxes=2", CollectiveKind::Allreduce), 1);
        // One way round.
        assert_eq!(of("uniring:n=5,d=1", CollectiveKind::Broadcast), 4);
        assert_eq!(of("uniring:n=5,d=1", CollectiveKind::Gather), 4);
    }
}
