//! Divides a message among paths on any network.

use std::collections::BTreeSet;

use canopy_optimize::{Digraph, PathGraph, Stop, Stopped};
use num_rational::BigRational;

use super::split::{Forwarding, Hop, Line, even_time, split};

/// Most paths for one message.
pub const PATHS_MAX: usize = 64;
/// Most different rates of links on one set of paths: exact sums of more become long numbers.
const RATES_MAX: usize = 16;
/// Length of the slowest link when paths are looked for; all others in proportion.
const LENGTH_MAX: u32 = 1 << 31;

/// A message from one node of a network to another.
#[derive(Clone, Copy, Debug)]
pub struct MultiPathProblem<'a> {
    /// The links, with capacities in bytes per second; capacity 0 means no link.
    pub graph: &'a Digraph,
    /// Latency of each link in nanoseconds, by link; 0 where none is given.
    pub latencies_ns: &'a [u64],
    /// The source.
    pub from: u32,
    /// The destination.
    pub to: u32,
    /// Size of the message.
    pub size_bytes: u64,
    /// Most paths, at most [`PATHS_MAX`].
    pub paths_max: usize,
    /// When nodes forward received data.
    pub forwarding: Forwarding,
}

/// A path and the part of the message that travels it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathPart {
    /// Its links, by index, in order.
    pub arcs: Vec<u32>,
    /// Its time by size.
    pub line: Line,
    /// Its part, so that all parts end at the same time.
    pub share: BigRational,
    /// Its part in whole bytes.
    pub bytes: u64,
}

/// Paths without a link in common, and the message divided among them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MultiPath {
    /// Paths with at least a byte, by number of links, then by links.
    pub parts: Vec<PathPart>,
    /// When all parts end. No other division among these paths is faster.
    pub time_ns: BigRational,
    /// The same for whole bytes.
    pub whole_time_ns: BigRational,
    /// The time of these paths if the message is divided equally.
    pub even_time_ns: BigRational,
    /// The fastest path found for the whole message.
    pub single: Vec<u32>,
    /// Its time.
    pub single_time_ns: BigRational,
    /// The number of link-disjoint paths, up to the limit.
    pub disjoint: usize,
}

/// Errors of dividing a message among paths.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum MultiPathError {
    #[error("node {node} is not one of the {count} nodes of the network")]
    Node { node: u32, count: u32 },
    #[error("source and destination are both node {node}; name two nodes")]
    Same { node: u32 },
    #[error("a message of 0 bytes needs no path; give at least 1 byte")]
    Empty,
    #[error("a message cannot be divided among {found} paths; allow 1 to {PATHS_MAX} paths")]
    Count { found: usize },
    #[error("the links of these paths have more than {RATES_MAX} different rates; allow fewer paths")]
    Rates,
    #[error("node {to} cannot be reached from node {from}; add links that lead there")]
    Unreachable { from: u32, to: u32 },
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// Divides a message among paths without a link in common so that it arrives soon.
///
/// Of each number of paths up to the greatest possible, sets of least total length are divided in the best way, lengths being
/// those of single links, the time of the whole message on a link, and that of a message divided among all links of the source;
/// the fastest is taken, of equal ones that with fewest paths. The division is the best one for its paths. Whether other paths
/// would be faster is not settled: the least sum of lengths need not be the greatest sum of their reciprocals.
///
/// * **Source.** Pham 2026, section 3.3, for K(d, 2), where the message is divided equally; here for any network, in parts that end at
///   the same time.
/// * **Errors.** [`MultiPathError`]. **Cost.** Three searches by Dijkstra for each number of paths, and their divisions.
pub fn multi_path(problem: &MultiPathProblem<'_>, stop: &dyn Stop) -> Result<MultiPath, MultiPathError> {
    let &MultiPathProblem { graph, from, to, size_bytes, paths_max, .. } = problem;
    for node in [from, to] {
        if node >= graph.node_count {
            return Err(MultiPathError::Node { node, count: graph.node_count });
        }
    }
    match () {
        () if from == to => return Err(MultiPathError::Same { node: from }),
        () if size_bytes == 0 => return Err(MultiPathError::Empty),
        () if !(1..=PATHS_MAX).contains(&paths_max) => return Err(MultiPathError::Count { found: paths_max }),
        () => {}
    }
    let paths = PathGraph::new(graph);
    let mut disjoint = 0;
    let mut single: Option<Found> = None;
    let mut best: Option<Found> = None;
    for lengths in problem.lengths() {
        let sets = paths.disjoint_sets((from, to), &lengths, paths_max, stop)?;
        disjoint = disjoint.max(sets.len());
        for set in sets {
            if stop.is_requested() {
                return Err(Stopped.into());
            }
            let is_single = set.len() == 1;
            let Some(found) = problem.divide(set) else { continue };
            if is_single && single.as_ref().is_none_or(|single| found.time < single.time) {
                single = Some(found.clone());
            }
            let order = |found: &Found| (found.time.clone(), found.set.len());
            if best.as_ref().is_none_or(|best| order(&found) < order(best)) {
                best = Some(found);
            }
        }
    }
    if disjoint == 0 {
        return Err(MultiPathError::Unreachable { from, to });
    }
    let (Some(single), Some(best)) = (single, best) else { return Err(MultiPathError::Rates) };
    problem.finish(best, single, disjoint).ok_or(MultiPathError::Rates)
}

/// Paths, and when the last whole byte arrives on them.
#[derive(Clone)]
struct Found {
    set: Vec<Vec<u32>>,
    time: BigRational,
}

impl MultiPathProblem<'_> {
    fn hop(&self, arc: u32) -> Hop {
        let latency_ns = self.latencies_ns.get(arc as usize).copied().unwrap_or(0);
        let bytes_per_sec = self.graph.arcs.get(arc as usize).map_or(0, |arc| arc.capacity);
        Hop { latency_ns, bytes_per_sec }
    }

    fn line(&self, path: &[u32]) -> Line {
        Line::new(path.iter().map(|&arc| self.hop(arc)), self.forwarding)
    }

    /// The time of a set of paths, without those on which nothing would travel; none of links of too many rates.
    fn divide(&self, set: Vec<Vec<u32>>) -> Option<Found> {
        let rates: BTreeSet<u64> = set.iter().flatten().map(|&arc| self.hop(arc).bytes_per_sec).collect();
        if rates.len() > RATES_MAX {
            return None;
        }
        let lines: Vec<Line> = set.iter().map(|path| self.line(path)).collect();
        let divided = split(&lines, self.size_bytes)?;
        let used = set.into_iter().zip(divided.bytes).filter(|(_, bytes)| *bytes > 0).map(|(path, _)| path);
        Some(Found { set: used.collect(), time: divided.whole_time_ns })
    }

    /// The best set of paths, in parts, beside the best single path.
    fn finish(&self, best: Found, single: Found, disjoint: usize) -> Option<MultiPath> {
        let lines: Vec<Line> = best.set.iter().map(|path| self.line(path)).collect();
        let even_time_ns = even_time(&lines, self.size_bytes)?;
        let divided = split(&lines, self.size_bytes)?;
        let parts = best.set.into_iter().zip(lines).zip(divided.shares.into_iter().zip(divided.bytes));
        let parts = parts.map(|((arcs, line), (share, bytes))| PathPart { arcs, line, share, bytes });
        let [single_path] = <[Vec<u32>; 1]>::try_from(single.set).unwrap_or_default();
        Some(MultiPath {
            parts: parts.collect(),
            time_ns: divided.time_ns,
            whole_time_ns: divided.whole_time_ns,
            even_time_ns,
            single: single_path,
            single_time_ns: single.time,
            disjoint,
        })
    }

    /// Lengths of links to look for paths by; no lengths are lengths of 1.
    fn lengths(&self) -> Vec<Vec<u32>> {
        let hops: Vec<Hop> = (0..).zip(&self.graph.arcs).map(|(arc, _)| self.hop(arc)).collect();
        let mut all = vec![Vec::new()];
        if hops.windows(2).all(|pair| pair[0] == pair[1]) {
            return all;
        }
        let leaving = self.graph.arcs.iter().filter(|arc| arc.from == self.from && arc.capacity > 0).count() as u64;
        for bytes in [self.size_bytes, self.size_bytes / leaving.max(1)] {
            // Picoseconds, rounded down: where a path is looked for, not what it costs.
            let time = |hop: &Hop| {
                let data = u128::from(bytes).saturating_mul(1_000_000_000_000) / u128::from(hop.bytes_per_sec.max(1));
                u128::from(hop.latency_ns).saturating_mul(1000).saturating_add(data).min(1 << 96)
            };
            let most = hops.iter().filter(|hop| hop.bytes_per_sec > 0).map(time).max().unwrap_or(0).max(1);
            let length = |hop: &Hop| {
                u32::try_from(time(hop).min(most) * u128::from(LENGTH_MAX) / most).unwrap_or(LENGTH_MAX).max(1)
            };
            all.push(hops.iter().map(length).collect());
        }
        all
    }
}
