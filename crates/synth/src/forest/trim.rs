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
mod slack;

use std::collections::BTreeMap;
use std::ops::Range;

use canopy_optimize::FlowUnit;

use crate::error::SynthesisError;
use crate::forest::clusters::Cluster;
use crate::forest::condition::Condition;
use crate::forest::network::Network;
use crate::forest::pattern::quotas;
use slack::{ScarceSet, Slacks};

/// Tests of a level that may fail before its clusters are given up.
const FAILURES_MAX: usize = 24;

/// Violated sets of a level that trimming heeds, before clusters that they cut are left out instead.
const KNOWN_SETS_MAX: usize = 12;

/// Clusters whose boundary is tight, in a network whose capacities make them so.
pub(super) struct Tight<C> {
    /// By link of the network.
    pub(super) capacities: Vec<C>,
    /// Children before parents, as they were found; children are tight ones.
    pub(super) clusters: Vec<Cluster>,
}

/// Trims the clusters, outermost first, and gives up those that can not be made tight without loss.
///
/// All of one level are trimmed together, then tested once. What links between clusters leave of a surplus moves to where it
/// can be cut (`shift`). Where the test fails, its violated set and all clusters inside are heeded next time (`slack`); where
/// that leaves clusters a surplus, they are left out, and the others are trimmed again.
///
/// * **In.** A network that meets the condition, with as much into as out of every node. **Out.** One that still does.
/// * **Errors.** Stopped. **Cost.** One test per level, if that succeeds; else one for each set heeded and each attempt with
///   fewer clusters, of which there are few.
pub(super) fn trim<C: FlowUnit>(
    network: &Network<'_>,
    capacities: &[C],
    clusters: Vec<Cluster>,
    condition: &mut Condition<'_, C>,
) -> Result<Tight<C>, SynthesisError> {
    let mut trimmer = Trimmer::new(network, capacities, &clusters, condition);
    let mut is_outermost = vec![true; clusters.len()];
    clusters.iter().flat_map(|cluster| &cluster.children).for_each(|&child| is_outermost[child] = false);
    let mut level: Vec<usize> = (0..clusters.len()).filter(|&cluster| is_outermost[cluster]).collect();
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

/// What came of trimming some clusters together.
enum Attempt {
    Tight,
    /// These have surplus that could not be cut, or too little.
    Left(Vec<usize>),
    /// Too little enters this set.
    Violated(Vec<bool>),
}

struct Trimmer<'a, 'c, 's, C> {
    clusters: &'a [Cluster],
    condition: &'c mut Condition<'s, C>,
    demand_total: C,
    capacities: Vec<C>,
    pairs: Vec<Pair>,
    /// By node: pairs it is an end of.
    pairs_of: Vec<Vec<usize>>,
    /// By node: the innermost cluster found tight so far.
    around: Vec<Option<usize>>,
    /// By node: the cluster of the level at hand that it is in.
    in_level: Vec<Option<usize>>,
    /// What ranks, clusters and sets found violated can do without.
    slacks: Slacks<C>,
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
        let slacks = Slacks::new(pairs.len());
        let capacities = capacities.to_vec();
        let demand_total = condition.demand_total();
        let mut trimmer =
            Self { clusters, condition, demand_total, capacities, pairs, pairs_of, around, in_level, slacks };
        for rank in 0..network.terminal_count {
            trimmer.heed(ScarceSet::Rank(rank), &|node| node == rank);
        }
        trimmer
    }

    fn trim_level(&mut self, level: &[usize], is_tight: &mut [bool]) -> Result<(), SynthesisError> {
        self.in_level.fill(None);
        let mut heeded = 0;
        for &cluster in level {
            let nodes = &self.clusters[cluster].nodes;
            nodes.iter().for_each(|&node| self.in_level[node as usize] = Some(cluster));
            self.heed_cluster(cluster);
        }
        let mut members = level.to_vec();
        members.retain(|&cluster| self.surplus(cluster).is_some());
        for _ in 0..FAILURES_MAX {
            if members.is_empty() {
                break;
            }
            match self.try_all(&members)? {
                Attempt::Tight => {
                    members.iter().for_each(|&cluster| is_tight[cluster] = true);
                    break;
                }
                Attempt::Left(with_surplus) => members.retain(|cluster| !with_surplus.contains(cluster)),
                Attempt::Violated(set) if heeded < KNOWN_SETS_MAX => {
                    (0..self.clusters.len()).for_each(|cluster| self.heed_cluster(cluster));
                    self.heed(ScarceSet::Found(self.slacks.found()), &|node| set[node as usize]);
                    heeded += 1;
                }
                Attempt::Violated(set) => {
                    let before = members.len();
                    members.retain(|&cluster| !self.is_cut(cluster, &set));
                    if members.len() == before {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// Keeps account of a cluster from now on, if it is not done yet.
    fn heed_cluster(&mut self, cluster: usize) {
        let set = ScarceSet::Cluster(cluster);
        if !self.slacks.knows(set) {
            let nodes = &self.clusters[cluster].nodes;
            self.heed(set, &|node| nodes.binary_search(&node).is_ok());
        }
    }

    /// Whether trimming this cluster can have taken anything from what enters a set.
    fn is_cut(&self, cluster: usize, set: &[bool]) -> bool {
        let nodes = &self.clusters[cluster].nodes;
        let pairs = nodes.iter().flat_map(|&node| self.pairs_of[node as usize].iter().map(move |&pair| (node, pair)));
        pairs.into_iter().any(|(node, pair)| {
            let (low, high) = self.pairs[pair].ends;
            set[low as usize] != set[high as usize] && self.crossing(pair, node, nodes).is_some()
        })
    }

    /// Trims these clusters and tests the network; leaves it as it was if that fails.
    fn try_all(&mut self, members: &[usize]) -> Result<Attempt, SynthesisError> {
        let (before, slacks) = (self.capacities.clone(), self.slacks.clone());
        for &cluster in members {
            self.condition.ask()?;
            self.trim_one(cluster);
        }
        self.shift_surplus(members, &before)?;
        let with_surplus: Vec<usize> =
            members.iter().copied().filter(|&cluster| self.surplus(cluster) != Some(C::ZERO)).collect();
        let attempt = match with_surplus.is_empty() {
            false => Attempt::Left(with_surplus),
            true if self.capacities == before => Attempt::Tight,
            true => self.condition.violation()?.map_or(Attempt::Tight, |violation| Attempt::Violated(violation.set)),
        };
        if !matches!(attempt, Attempt::Tight) {
            self.slacks = slacks;
            for pair in 0..self.pairs.len() {
                let Pair { up, down, .. } = &self.pairs[pair];
                for link in up.clone().chain(down.clone()) {
                    self.capacities[link] = before[link];
                }
                self.tell(pair);
            }
        }
        Ok(attempt)
    }

    /// `in(T) − D(V∖T)`; `None` if it is negative.
    fn surplus(&self, cluster: usize) -> Option<C> {
        Some(self.slacks.of(ScarceSet::Cluster(cluster))).filter(|&slack| slack >= C::ZERO)
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

    /// Takes the surplus of one cluster off its boundary, in proportion to what there is room for; less where there is not
    /// enough.
    fn trim_one(&mut self, cluster: usize) {
        let Some(surplus) = self.surplus(cluster).filter(|&surplus| surplus > C::ZERO) else { return };
        let rooms = self.rooms(cluster);
        let room: Vec<C> = rooms.iter().map(|&(_, room)| room).collect();
        let most = room.iter().fold(C::ZERO, |sum, &room| sum + room);
        for ((pair, _), part) in rooms.into_iter().zip(quotas(&room, surplus.min(most))) {
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
        self.slacks.lower(pair, amount);
        self.tell(pair);
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
