//! What no schedule can be faster than.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::levels::{Levels, NONE};
use crate::network::{TimedLink, TimedNetwork};
use crate::task::CopyTask;

/// Stands for no time at all.
const NEVER: u64 = u64::MAX;
/// Ranks up to which all distances are computed, whatever that takes.
const NODES_MAX: u32 = 1 << 14;

/// Ticks that every schedule of a task takes at least; none where some member cannot be reached.
///
/// The greatest of four: the distance from an owner to a member; for each member, and for each cluster of nodes that
/// faster links join, how long its incoming links take to bring what it lacks when each begins as soon as anything can be at
/// its sender; and for each member of a cluster how long they take to bring what comes from outside, which links within begin
/// no sooner than the first of it is there.
///
/// * **Cost.** O(nodes · links · log nodes) at most for the distances, less where they are plainly short.
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

/// The longest of the shortest ways from an owner to a member, unless a look shows it to be no longer than `known`.
fn greatest_distance(network: &TimedNetwork, task: &CopyTask, owners: &[u32], known: u64) -> Option<u64> {
    let members = || (0..network.node_count()).filter(|&node| task.is_member(node));
    let (Some(&owner), Some(_)) = (owners.first(), members().next()) else { return Some(0) };
    // Any way is no longer than one by the first owner.
    let there = distances(network, &[owner], latency);
    let back = distances(&network.transposed(), &[owner], latency);
    let farthest = members().map(|node| there[node as usize]).max()?;
    let from = owners.iter().map(|&owner| back[owner as usize]).max()?;
    let is_short = farthest.checked_add(from).is_some_and(|sum| sum <= known);
    if is_short || owners.len() == 1 || network.node_count() > NODES_MAX {
        return Some(farthest).filter(|&farthest| farthest != NEVER);
    }
    let mut greatest = 0;
    for &owner in owners {
        let distances = distances(network, &[owner], latency);
        greatest = greatest.max(members().map(|node| distances[node as usize]).max()?);
    }
    Some(greatest).filter(|&greatest| greatest != NEVER)
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
