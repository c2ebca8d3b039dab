//! What a slow link may bring where faster links reach the same nodes.

use crate::bits::BitRows;
use crate::levels::{Levels, NONE};
use crate::network::TimedNetwork;

/// Rates are counted in chunks per so many ticks.
const SCALE: u128 = 1 << 64;

/// Rules for links of which some are faster than others.
///
/// 1. A link that enters a cluster of faster links brings it what nobody there has or is sent, so that the cut carries no chunk
///    twice: the faster links within do the rest.
/// 2. Where it has nothing of that kind it may bring copies, if its receiver would wait for them longer and the cut is done
///    before the faster links are.
/// 3. Any other link prefers what no faster link into its receiver could bring, and does not begin what would arrive last.
///
/// Each keeps a faster link at work that reaches the receiver, so everything still arrives.
pub(super) struct SlowLinks {
    levels: Levels,
    /// By cluster, what its nodes have or are sent.
    known: BitRows,
    /// By cluster, how many chunks these are.
    known_count: Vec<u32>,
    /// By cluster, chunks that the links into it carry in [`SCALE`] ticks.
    entering: Vec<u128>,
    chunks: u32,
    latency: Vec<u64>,
    /// By link, how many chunks the faster links into its receiver bring while it brings one.
    faster_bring: Vec<u64>,
    /// By link, where the faster links into its receiver come from.
    faster_from: Vec<Vec<u32>>,
}

impl SlowLinks {
    /// None where all links take the same time.
    pub(super) fn of(network: &TimedNetwork, chunks: u32) -> Option<Self> {
        let links = network.links();
        if links.windows(2).all(|pair| pair[0].occupancy == pair[1].occupancy) {
            return None;
        }
        let levels = Levels::of(network);
        let mut entering = vec![0; levels.level_of.len()];
        for cluster_of in &levels.clusters {
            for link in links {
                let (from, to) = (cluster_of[link.from as usize], cluster_of[link.to as usize]);
                if from != to && to != NONE {
                    entering[to as usize] += SCALE / u128::from(link.occupancy);
                }
            }
        }
        let (mut faster_bring, mut faster_from) = (Vec::new(), Vec::new());
        for link in links {
            let others = network.incoming(link.to).iter().map(|&other| network.link(other));
            let faster = others.filter(|other| other.occupancy < link.occupancy);
            let in_time = |spare: u64, occupancy: u64| spare / occupancy + 1;
            faster_bring.push(
                faster
                    .clone()
                    .map(|other| {
                        link.latency.checked_sub(other.latency).map_or(0, |spare| in_time(spare, other.occupancy))
                    })
                    .sum(),
            );
            let mut from: Vec<u32> = faster.map(|other| other.from).collect();
            from.sort_unstable();
            from.dedup();
            faster_from.push(from);
        }
        Some(Self {
            known: BitRows::new(entering.len(), chunks),
            known_count: vec![0; entering.len()],
            latency: links.iter().map(|link| link.latency).collect(),
            levels,
            entering,
            chunks,
            faster_bring,
            faster_from,
        })
    }

    /// A chunk is at a node, or comes there.
    pub(super) fn enter(&mut self, node: u32, chunk: u32) {
        for cluster_of in &self.levels.clusters {
            let cluster = cluster_of[node as usize];
            if cluster != NONE && self.known.insert(cluster, chunk) {
                self.known_count[cluster as usize] += 1;
            }
        }
    }

    /// Leaves in a row what a link should bring; the cluster for which it is new, if that is why.
    pub(super) fn restrict(&self, link: u32, lacking: u32, got: &BitRows, row: &mut [u64]) -> Option<u32> {
        if row.iter().all(|&word| word == 0) {
            return None;
        }
        let cluster = self.levels.entered[link as usize];
        let brings_last = u64::from(lacking) <= self.faster_bring[link as usize];
        if cluster != NONE {
            let known = self.known.row(cluster);
            if row.iter().zip(known).any(|(row, known)| row & !known != 0) {
                self.drop_known(cluster, row);
                return Some(cluster);
            }
            if brings_last || !self.cut_is_done_first(link, cluster, lacking) {
                row.fill(0);
            }
            return None;
        }
        let faster = &self.faster_from[link as usize];
        if faster.is_empty() {
            return None;
        }
        let covered = |word: usize| faster.iter().fold(0, |all, &node| all | got.row(node)[word]);
        if (0..row.len()).any(|word| row[word] & !covered(word) != 0) {
            row.iter_mut().enumerate().for_each(|(word, row)| *row &= !covered(word));
        } else if brings_last {
            row.fill(0);
        }
        None
    }

    /// Drops what the nodes of a cluster have or are sent.
    pub(super) fn drop_known(&self, cluster: u32, row: &mut [u64]) {
        row.iter_mut().zip(self.known.row(cluster)).for_each(|(row, known)| *row &= !known);
    }

    /// Whether all that is new to a cluster gets there before the faster links into a node have brought what it lacks.
    fn cut_is_done_first(&self, link: u32, cluster: u32, lacking: u32) -> bool {
        let (latency, brings) = (u128::from(self.latency[link as usize]), u128::from(self.faster_bring[link as usize]));
        if brings == 0 {
            return true;
        }
        let outside = u128::from(self.chunks - self.known_count[cluster as usize]);
        let cut = outside * SCALE / self.entering[cluster as usize].max(1);
        (cut + latency) * brings < u128::from(lacking) * latency
    }
}
