//! Lower bounds on the time of schedules.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::levels::{Levels, NONE};
use crate::network::{TimedLink, TimedNetwork};
use crate::task::CopyTask;

/// Stands for no time at all.
const NEVER: u64 = u64::MAX;
/// Ranks up to which all distances are computed, whatever that takes.
const NODES_MAX: u32 = 1 << 14;
/// Owners that show how far others can be at most.
const LANDMARKS_MAX: u32 = 16;
/// Owners that are looked at in networks of more nodes than `EXACT_NODES_MAX`: what they show is a bound all the same.
const LOOKS_MAX: u32 = 48;
const EXACT_NODES_MAX: u32 = 256;

/// Ticks that every schedule of a task takes at least; none where some member cannot be reached.
///
/// The greatest of four: the distance from an owner to a member; for each member, and for each cluster of nodes that
/// faster links join, how long its incoming links take to bring what it lacks when each begins as soon as anything can be at
/// its sender; and for each member of a cluster how long they take to bring what comes from outside, which links within begin
/// no sooner than the first of it is there.
///
/// * **Cost.** O(nodes · links · log nodes) at most for the distances, less where they are plainly short, or nodes many: then the
///   greatest of some is taken.
pub fn lower_bound(network: &TimedNetwork, task: &CopyTask) -> Option<u64> {
    let mut owners = task.owners().to_vec();
    owners.dedup();
    let first = distances(network, &owners, latency);
    let members = || (0..network.node_count()).filter(|&node| task.is_member(node));
    if !owners.is_empty() && members().any(|node| first[node as usize] == NEVER) {
        return None;
    }
    let own = task.first_chunks();
    let owned = |node: u32| u64::from(own[node as usize + 1] - own[node as usize]);
    let chunks = u64::from(task.chunk_count());
    let entry = |link: u32| {
        let link = network.link(link);
        (first[link.from as usize].saturating_add(link.latency), link.occupancy)
    };
    let mut best = 0;
    for node in members() {
        let links: Vec<(u64, u64)> = network.incoming(node).iter().map(|&link| entry(link)).collect();
        best = best.max(time_to_bring(&links, chunks - owned(node))?);
    }
    let levels = Levels::of(network);
    for cluster_of in &levels.clusters {
        let mut clusters = vec![Cluster::default(); levels.level_of.len()];
        for node in (0..network.node_count()).filter(|&node| cluster_of[node as usize] != NONE) {
            let cluster = cluster_of[node as usize];
            let Cluster { inside, has_member, links } = &mut clusters[cluster as usize];
            *inside += owned(node);
            *has_member |= task.is_member(node);
            let entering = network.incoming(node).iter();
            let entering = entering.filter(|&&link| cluster_of[network.link(link).from as usize] != cluster);
            links.extend(entering.map(|&link| entry(link)));
        }
        for Cluster { inside, links, .. } in clusters.iter().filter(|cluster| cluster.has_member) {
            best = best.max(time_to_bring(links, chunks - inside)?);
        }
        for node in members().filter(|&node| cluster_of[node as usize] != NONE) {
            let cluster = cluster_of[node as usize];
            let Cluster { inside, links, .. } = &clusters[cluster as usize];
            let Some(first_there) = links.iter().map(|&(first, _)| first).min() else { continue };
            let links = network.incoming(node).iter().map(|&link| {
                let TimedLink { from, latency, occupancy, .. } = network.link(link);
                let is_within = cluster_of[from as usize] == cluster;
                (if is_within { first_there.saturating_add(latency) } else { entry(link).0 }, occupancy)
            });
            best = best.max(time_to_bring(&links.collect::<Vec<_>>(), chunks - inside)?);
        }
    }
    Some(best.max(greatest_distance(network, task, &owners, best)?))
}

/// What a cluster has, and what leads there.
#[derive(Clone, Default)]
struct Cluster {
    /// Chunks that its nodes own.
    inside: u64,
    has_member: bool,
    links: Vec<(u64, u64)>,
}

/// What a chunk takes on a link.
const fn latency(link: &TimedLink) -> u64 {
    link.latency
}

/// When links, each given by when its first chunk can arrive and how long it takes for each other, have brought so many.
pub(crate) fn time_to_bring(links: &[(u64, u64)], chunks: u64) -> Option<u64> {
    if chunks == 0 {
        return Some(0);
    }
    let by = |time: u64| -> u128 {
        let each = links.iter().filter(|&&(first, _)| first <= time);
        each.map(|&(first, occupancy)| u128::from((time - first) / occupancy) + 1).sum()
    };
    let (mut below, mut enough) = (0, 1);
    while by(enough) < u128::from(chunks) {
        below = enough;
        enough = enough.checked_mul(2)?;
    }
    while below + 1 < enough {
        let middle = below + (enough - below) / 2;
        if by(middle) < u128::from(chunks) { below = middle } else { enough = middle }
    }
    Some(enough)
}

/// The longest of the shortest ways from an owner to a member, or any less than `known` where all are shown to be no longer than that; of
/// large networks the longest from those that may be farthest.
///
/// No way is longer than one by another owner: each owner that is looked at shows how far others can be at most, and those that
/// cannot be farther than what is known need no look.
fn greatest_distance(network: &TimedNetwork, task: &CopyTask, owners: &[u32], known: u64) -> Option<u64> {
    let members = || (0..network.node_count()).filter(|&node| task.is_member(node));
    if members().next().is_none() {
        return Some(0);
    }
    let transposed = network.transposed();
    let looks_max = if network.node_count() > EXACT_NODES_MAX { LOOKS_MAX } else { u32::MAX };
    let mut at_most = vec![NEVER; owners.len()];
    let mut greatest = 0;
    for looks in 0_u32.. {
        // The farthest by what is known of all, in which what is looked at is as far as it is.
        let next = (0..owners.len()).max_by_key(|&place| (at_most[place], Reverse(place)));
        let Some(next) = next.filter(|&next| at_most[next] > greatest.max(known)) else { break };
        // Of whom nothing is known, it is not even known that all can be reached.
        if looks >= looks_max && at_most[next] != NEVER {
            break;
        }
        let owner = owners[next];
        let there = distances(network, &[owner], latency);
        let farthest = members().map(|node| there[node as usize]).max()?;
        if farthest == NEVER {
            return None;
        }
        greatest = greatest.max(farthest);
        at_most[next] = farthest;
        if network.node_count() > NODES_MAX {
            break;
        }
        if looks < LANDMARKS_MAX {
            let back = distances(&transposed, &[owner], latency);
            for (&owner, at_most) in owners.iter().zip(&mut at_most) {
                *at_most = (*at_most).min(back[owner as usize].saturating_add(farthest));
            }
        }
    }
    Some(greatest)
}

/// By node, the shortest time from any of these, where links take these times.
pub(crate) fn distances(network: &TimedNetwork, sources: &[u32], time: impl Fn(&TimedLink) -> u64) -> Vec<u64> {
    let mut distances = vec![NEVER; network.node_count() as usize];
    let mut queue: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
    for &source in sources {
        distances[source as usize] = 0;
        queue.push(Reverse((0, source)));
    }
    while let Some(Reverse((distance, node))) = queue.pop() {
        if distance > distances[node as usize] {
            continue;
        }
        for &link in network.outgoing(node) {
            let link = network.link(link);
            let found = distance.saturating_add(time(&link));
            if found < distances[link.to as usize] {
                distances[link.to as usize] = found;
                queue.push(Reverse((found, link.to)));
            }
        }
    }
    distances
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NODES: u32 = 40;

    fn networks() -> impl Strategy<Value = TimedNetwork> {
        let link = (0..NODES, 1..NODES, 1..9_u64).prop_map(|(from, apart, latency)| TimedLink {
            from,
            to: (from + apart) % NODES,
            latency,
            occupancy: 1,
        });
        prop::collection::vec(link, 40..160).prop_map(|links| TimedNetwork::new(NODES, links).unwrap())
    }

    proptest! {
        /// Those that need no look are no farther than others, or than what is known.
        #[test]
        fn the_greatest_distance_is_that_of_all_owners(network in networks(), known in 0..30_u64) {
            let task = CopyTask::allgather(NODES, 1).unwrap();
            let all = task.owners().iter().flat_map(|&owner| distances(&network, &[owner], latency)).max();
            let all = all.filter(|&all| all != NEVER);
            let found = greatest_distance(&network, &task, task.owners(), known);
            prop_assert_eq!(found.map(|found| found.max(known)), all.map(|all| all.max(known)));
        }
    }

    /// Of many nodes only some are looked at; that somebody cannot be reached is found all the same.
    #[test]
    fn of_large_networks_some_distances_are_enough() {
        let ring = |nodes: u32, links: u32| {
            let link = |from: u32| TimedLink { from, to: (from + 1) % nodes, latency: 2, occupancy: 1 };
            TimedNetwork::new(nodes, (0..links).map(link).collect()).unwrap()
        };
        let task = CopyTask::allgather(400, 1).unwrap();
        assert_eq!(greatest_distance(&ring(400, 400), &task, task.owners(), 0), Some(798));
        assert_eq!(greatest_distance(&ring(400, 399), &task, task.owners(), 0), None);
        assert_eq!(lower_bound(&ring(400, 399), &task), None);
    }
}
