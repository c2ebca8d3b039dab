//! Clusters of nodes that faster links join.

use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};

use crate::network::TimedNetwork;

/// Stands for no cluster.
pub(crate) const NONE: u32 = u32::MAX;
/// Most levels: those with the widest gaps count.
const LEVELS_MAX: usize = 16;

/// Levels of speed: at each, the clusters in which any node reaches any other over links that are faster than the rest by a
/// quarter at least.
pub(crate) struct Levels {
    /// By level, the fastest links first, then by node: its cluster, numbered through all levels; [`NONE`] for a node by itself.
    pub(crate) clusters: Vec<Vec<u32>>,
    /// By level, the greatest occupancy of its links.
    pub(crate) limits: Vec<u64>,
    /// By cluster, its level.
    pub(crate) level_of: Vec<u32>,
    /// By link: the cluster that it enters at the highest level of nothing but faster links whose clusters it joins; [`NONE`] where
    /// there is no such level, or it enters a node by itself there.
    pub(crate) entered: Vec<u32>,
}

impl Levels {
    /// Levels of a network. O(levels · (nodes + links) + links · log links).
    pub(crate) fn of(network: &TimedNetwork) -> Self {
        let links = network.links();
        let mut levels =
            Self { clusters: Vec::new(), limits: Vec::new(), level_of: Vec::new(), entered: vec![NONE; links.len()] };
        for limit in limits(network) {
            let fast = links.iter().filter(|link| link.occupancy <= limit).map(|link| (link.from, link.to));
            let mut graph = DiGraph::<(), (), u32>::with_capacity(network.node_count() as usize, links.len());
            (0..network.node_count()).for_each(|_| {
                graph.add_node(());
            });
            fast.for_each(|(from, to)| {
                graph.add_edge(NodeIndex::from(from), NodeIndex::from(to), ());
            });
            let groups: Vec<_> = kosaraju_scc(&graph).into_iter().filter(|group| group.len() > 1).collect();
            if groups.is_empty() || groups[0].len() == network.node_count() as usize {
                continue;
            }
            let level = u32::try_from(levels.clusters.len()).expect("few levels");
            let mut cluster_of = vec![NONE; network.node_count() as usize];
            for group in groups {
                let number = u32::try_from(levels.level_of.len()).expect("fewer clusters than nodes, on few levels");
                levels.level_of.push(level);
                group.into_iter().for_each(|node| cluster_of[node.index()] = number);
            }
            for (link, entered) in links.iter().zip(&mut levels.entered) {
                let (from, to) = (cluster_of[link.from as usize], cluster_of[link.to as usize]);
                if link.occupancy > limit && (from != to || to == NONE) {
                    *entered = to;
                }
            }
            levels.clusters.push(cluster_of);
            levels.limits.push(limit);
        }
        levels
    }
}

/// Occupancies after which there is a gap: the next greater one is so by a quarter at least.
fn limits(network: &TimedNetwork) -> Vec<u64> {
    let mut costs: Vec<u64> = network.links().iter().map(|link| link.occupancy).collect();
    costs.sort_unstable();
    costs.dedup();
    let mut gaps: Vec<(u64, u64)> =
        costs.windows(2).filter(|pair| pair[1] * 4 >= pair[0] * 5).map(|pair| (pair[0], pair[1])).collect();
    if gaps.len() > LEVELS_MAX {
        let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
        gaps.sort_by(|a, b| product(b.1, a.0).cmp(&product(a.1, b.0)).then(a.cmp(b)));
        gaps.truncate(LEVELS_MAX);
        gaps.sort_unstable();
    }
    gaps.into_iter().map(|(below, _)| below).collect()
}
