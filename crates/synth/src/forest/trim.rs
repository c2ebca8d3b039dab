//! Shaves surplus capacity off the boundaries of clusters, until each is entered by just the trees from outside.
//!
//! A set T is *tight* if `in(T) = D(V∖T)`. Around a tight set every foreign tree enters exactly once, and the inside and
//! the outside become problems of their own: the condition holds for the network if and only if it holds with T
//! contracted, and with all but T contracted. (Where X crosses T: if X∩T holds a terminal, then since in() is submodular
//! and demands add up, `d(X) + d(T) ≥ d(X∩T) + d(X∪T)` for `d(X) = in(X) − D(V∖X)`; if it holds switches only, then since
//! every node is balanced, `d(X) + d(T) ≥ d(X∖T) + d(T∖X)`. Either way both sets on the right are cuts of one of the two.)
//!
//! Capacity only shrinks, the same amount in both directions of a link, so that balanced nodes stay balanced, and every
//! packing of the trimmed network is one of the network itself.

mod shift;

use std::collections::BTreeMap;
use std::ops::Range;

use canopy_optimize::FlowUnit;

use crate::error::SynthesisError;
use crate::forest::clusters::Cluster;
use crate::forest::condition::Condition;
use crate::forest::network::Network;
use crate::forest::pattern::quotas;

/// Tests that may fail before all clusters left are given up.
const FAILURES_MAX: usize = 12;

/// Clusters whose boundary is tight, in a network whose capacities make them so.
pub(super) struct Tight<C> {
    /// By link of the network.
    pub(super) capacities: Vec<C>,
    /// Children before parents, as they were found; children are tight ones.
    pub(super) clusters: Vec<Cluster>,
}

/// Trims the clusters, outermost first, and gives up those that can not be made tight without loss.
///
/// All of one level are trimmed together, then tested once; where that fails, those of one size and surplus at a time. What
/// links between clusters leave of a surplus moves to where it can be cut (`shift`).
///
/// * **In.** A network that meets the condition, with as much into as out of every node. **Out.** One that still does.
/// * **Errors.** Stopped. **Cost.** One test per level, if that succeeds; else one per kind of cluster, twelve of which
///   may fail.
pub(super) fn trim<C: FlowUnit>(
    network: &Network<'_>,
    capacities: &[C],
    clusters: Vec<Cluster>,
    condition: &mut Condition<'_, C>,
) -> Result<Tight<C>, SynthesisError> {
    let mut trimmer = Trimmer::new(network, capacities, &clusters, condition);
    let mut parents = vec![None; clusters.len()];
    for (parent, cluster) in clusters.iter().enumerate() {
        cluster.children.iter().for_each(|&child| parents[child] = Some(parent));
    }
    let mut level: Vec<usize> = (0..clusters.len()).filter(|&cluster| parents[cluster].is_none()).collect();
    let mut is_tight = vec![false; clusters.len()];
    while !level.is_empty() {
        trimmer.trim_level(&level, &mut is_tight)?;
        for &cluster in &level {
            if is_tight[cluster] {
                let nodes = &clusters[cluster].nodes;
                nodes.iter().for_each(|&node| trimmer.around[node as usize] = Some(cluster));
            }
        }
        level = level.iter().flat_map(|&cluster| clusters[cluster].children.iter().copied()).collect();
    }
    let capacities = trimmer.capacities;
    Ok(Tight { capacities, clusters: keep(&clusters, &is_tight) })
}

/// The clusters that are tight, with those of the others nested in what is around them.
fn keep(clusters: &[Cluster], is_tight: &[bool]) -> Vec<Cluster> {
    let mut kept: Vec<Cluster> = Vec::new();
    // Of each cluster: itself if it is kept, else what is kept of its children.
    let mut left: Vec<Vec<usize>> = Vec::new();
    for (cluster, &is_tight) in clusters.iter().zip(is_tight) {
        let children: Vec<usize> = cluster.children.iter().flat_map(|&child| left[child].iter().copied()).collect();
        if is_tight {
            left.push(vec![kept.len()]);
            kept.push(Cluster { children, ..cluster.clone() });
        } else {
            left.push(children);
        }
    }
    kept
}

/// The links between two nodes, both ways.
struct Pair {
    ends: (u32, u32),
    up: Range<usize>,
    down: Range<usize>,
}

struct Trimmer<'a, 'c, 's, C> {
    clusters: &'a [Cluster],
    condition: &'c mut Condition<'s, C>,
    rank_count: u32,
    capacities: Vec<C>,
    pairs: Vec<Pair>,
    /// By node: pairs it is an end of.
    pairs_of: Vec<Vec<usize>>,
    /// By node: the innermost cluster found tight so far.
    around: Vec<Option<usize>>,
    /// By node: the cluster of the level at hand that it is in.
    in_level: Vec<Option<usize>>,
}

impl<'a, 'c, 's, C: FlowUnit> Trimmer<'a, 'c, 's, C> {
    fn new(
        network: &Network<'_>,
        capacities: &[C],
        clusters: &'a [Cluster],
        condition: &'c mut Condition<'s, C>,
    ) -> Self {
        let mut pairs: BTreeMap<(u32, u32), Pair> = BTreeMap::new();
        for (link, way) in network.links.iter().enumerate() {
            let ends = (way.from.min(way.to), way.from.max(way.to));
            let pair = pairs.entry(ends).or_insert(Pair { ends, up: 0..0, down: 0..0 });
            // Links are sorted by both ends: those of one direction follow each other.
            let side = if way.from < way.to { &mut pair.up } else { &mut pair.down };
            *side = if side.start == side.end { link..link + 1 } else { side.start..link + 1 };
        }
        let pairs: Vec<Pair> = pairs.into_values().collect();
        let mut pairs_of = vec![Vec::new(); network.node_count as usize];
        for (position, pair) in pairs.iter().enumerate() {
            pairs_of[pair.ends.0 as usize].push(position);
            pairs_of[pair.ends.1 as usize].push(position);
        }
        let (around, in_level) = (vec![None; pairs_of.len()], vec![None; pairs_of.len()]);
        let rank_count = network.terminal_count;
        Self { clusters, condition, rank_count, capacities: capacities.to_vec(), pairs, pairs_of, around, in_level }
    }

    fn trim_level(&mut self, level: &[usize], is_tight: &mut [bool]) -> Result<(), SynthesisError> {
        let mut kinds: BTreeMap<(usize, Option<C>), Vec<usize>> = BTreeMap::new();
        self.in_level.fill(None);
        for &cluster in level {
            let nodes = &self.clusters[cluster].nodes;
            nodes.iter().for_each(|&node| self.in_level[node as usize] = Some(cluster));
            let kind = (self.clusters[cluster].rank_count, self.surplus(cluster));
            kinds.entry(kind).or_default().push(cluster);
        }
        if self.try_all(level)? {
            level.iter().for_each(|&cluster| is_tight[cluster] = true);
            return Ok(());
        }
        let mut failures = 0;
        for ((_, surplus), members) in kinds {
            if surplus.is_none() || failures >= FAILURES_MAX {
                continue;
            }
            if self.try_all(&members)? {
                members.iter().for_each(|&cluster| is_tight[cluster] = true);
            } else {
                failures += 1;
            }
        }
        Ok(())
    }

    /// Trims these clusters and tests the network; leaves it as it was if that fails.
    fn try_all(&mut self, members: &[usize]) -> Result<bool, SynthesisError> {
        let before = self.capacities.clone();
        for &cluster in members {
            self.condition.ask()?;
            self.trim_one(cluster);
        }
        let done = self.shift_surplus(members, &before)?;
        let changed = self.capacities != before;
        if done && (!changed || self.condition.violation()?.is_none()) {
            return Ok(true);
        }
        for pair in 0..self.pairs.len() {
            let Pair { up, down, .. } = &self.pairs[pair];
            for link in up.clone().chain(down.clone()) {
                self.capacities[link] = before[link];
            }
            self.tell(pair);
        }
        Ok(false)
    }

    /// `in(T) − D(V∖T)`; `None` if it is negative.
    fn surplus(&self, cluster: usize) -> Option<C> {
        let nodes = &self.clusters[cluster].nodes;
        let mut entering = C::ZERO;
        for &node in nodes {
            for &pair in &self.pairs_of[node as usize] {
                if let Some((inward, _)) = self.crossing(pair, node, nodes) {
                    entering += self.sum(&inward);
                }
            }
        }
        let inside = nodes.iter().fold(C::ZERO, |sum, &node| sum + self.condition.demand(node));
        let needed = self.condition.demand_total() - inside;
        (entering >= needed).then(|| entering - needed)
    }

    /// The links of a pair into and out of a set that holds `node`, one of its ends; `None` if it holds both.
    fn crossing(&self, pair: usize, node: u32, set: &[u32]) -> Option<(Range<usize>, Range<usize>)> {
        let Pair { ends, up, down } = &self.pairs[pair];
        let other = if ends.0 == node { ends.1 } else { ends.0 };
        if set.binary_search(&other).is_ok() {
            return None;
        }
        Some(if ends.1 == node { (up.clone(), down.clone()) } else { (down.clone(), up.clone()) })
    }

    fn sum(&self, links: &Range<usize>) -> C {
        self.capacities[links.clone()].iter().fold(C::ZERO, |sum, &capacity| sum + capacity)
    }

    /// Takes the surplus of one cluster off its boundary, in proportion to what links, the ranks at their ends and the
    /// clusters on the other side can do without; leaves alone what leads out of a cluster around it that is tight already.
    /// Takes less where there is not enough to take.
    fn trim_one(&mut self, cluster: usize) {
        let Some(surplus) = self.surplus(cluster).filter(|&surplus| surplus > C::ZERO) else { return };
        let nodes = &self.clusters[cluster].nodes;
        let mut boundary: Vec<(usize, C)> = Vec::new();
        let mut shared: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut slack: BTreeMap<u32, C> = BTreeMap::new();
        for &node in nodes {
            for &pair in &self.pairs_of[node as usize] {
                let (low, high) = self.pairs[pair].ends;
                let is_inside = self.around[low as usize] == self.around[high as usize];
                if let Some((inward, outward)) = self.crossing(pair, node, nodes).filter(|_| is_inside) {
                    let mut room = self.sum(&inward).min(self.sum(&outward));
                    for rank in [low, high].into_iter().filter(|&rank| rank < self.rank_count) {
                        let slack = slack.entry(rank).or_insert_with(|| self.slack(rank));
                        room = room.min(*slack);
                    }
                    for rank in [low, high] {
                        slack.entry(rank).and_modify(|slack| *slack -= room);
                    }
                    if let Some(other) = self.in_level[if low == node { high } else { low } as usize] {
                        shared.entry(other).or_default().push(boundary.len());
                    }
                    boundary.push((pair, room));
                }
            }
        }
        for (other, links) in shared {
            let room: Vec<C> = links.iter().map(|&link| boundary[link].1).collect();
            let sum = room.iter().fold(C::ZERO, |sum, &room| sum + room);
            let parts = quotas(&room, self.surplus(other).unwrap_or(C::ZERO).min(sum));
            links.iter().zip(parts).for_each(|(&link, part)| boundary[link].1 = part);
        }
        let room: Vec<C> = boundary.iter().map(|&(_, room)| room).collect();
        let most = room.iter().fold(C::ZERO, |sum, &room| sum + room);
        for (&(pair, _), part) in boundary.iter().zip(quotas(&room, surplus.min(most))) {
            self.take(pair, part);
        }
    }

    /// Lowers both directions of a pair by as much, which both have.
    fn take(&mut self, pair: usize, amount: C) {
        let Pair { up, down, .. } = &self.pairs[pair];
        for links in [up.clone(), down.clone()] {
            let mut missing = amount;
            // Slow links last, so that they go first.
            for link in links.rev() {
                let taken = self.capacities[link].min(missing);
                self.capacities[link] -= taken;
                missing -= taken;
            }
        }
        self.tell(pair);
    }

    /// What a rank could do without: of a rank that needs all that enters it, no link can be trimmed.
    fn slack(&self, rank: u32) -> C {
        let entering = self.pairs_of[rank as usize].iter().filter_map(|&pair| self.crossing(pair, rank, &[rank]));
        let entering = entering.fold(C::ZERO, |sum, (inward, _)| sum + self.sum(&inward));
        let needed = self.condition.demand_total() - self.condition.demand(rank);
        if entering > needed { entering - needed } else { C::ZERO }
    }

    /// Lets the condition know what a pair has.
    fn tell(&mut self, pair: usize) {
        let Pair { ends: (low, high), up, down } = &self.pairs[pair];
        for (from, to, links) in [(*low, *high, up), (*high, *low, down)] {
            if links.start < links.end {
                let capacity = self.sum(links);
                let edge = self.condition.edge_or_new(from, to);
                self.condition.set(edge, capacity);
            }
        }
    }
}
