//! Which of equally short and wide routes is taken: the one over the links that are least used.

use canopy_topology::{LinkIndex, NodeIndex, Topology};

use super::{Levels, Network};

/// Weights of chunks are told apart up to this sum of all; beyond, they are rounded. Far more than this makes no
/// difference between routes, and all that is added up here stays below 2⁶⁴.
const WEIGHT_TOTAL_MAX: u128 = 1 << 24;

/// Chunks that each link carries.
#[derive(Clone, Debug)]
pub(crate) struct Loads {
    chunks: Vec<u64>,
    /// Chunks that take a route together.
    batch: u64,
}

impl Loads {
    /// No link carries any; one chunk at a time takes a route.
    pub(crate) fn none(topology: &Topology) -> Self {
        Self { chunks: vec![0; topology.links().len()], batch: 1 }
    }

    /// From here on so many chunks at a time take a route, of so many in all.
    pub(crate) fn weigh(&mut self, weight: u64, weight_total: u128) {
        self.batch = Self::batch_of(weight, weight_total);
    }

    /// The size of a batch of such a weight, of so much in all.
    pub(crate) fn batch_of(weight: u64, weight_total: u128) -> u64 {
        let unit = weight_total.div_ceil(WEIGHT_TOTAL_MAX).max(1);
        u64::try_from(u128::from(weight).div_ceil(unit)).expect("no more than the weight")
    }

    /// A batch takes a route.
    pub(crate) fn add(&mut self, route: &[LinkIndex]) {
        route.iter().for_each(|link| self.chunks[link.index()] += self.batch);
    }

    /// A batch of this size takes a route no longer.
    pub(crate) fn remove(&mut self, route: &[LinkIndex]) {
        route.iter().for_each(|link| self.chunks[link.index()] -= self.batch);
    }

    /// The greatest load ÷ capacity of a link, as the two numbers; zero where there are no links. O(links).
    pub(crate) fn worst(&self, topology: &Topology) -> (u64, u64) {
        let loads = self.chunks.iter().zip(topology.links()).map(|(&load, link)| (load, link.capacity.bytes_per_sec()));
        loads.fold((0, 1), |worst, load| if is_less(worst, load) { load } else { worst })
    }

    /// Whether some link must carry as much for its capacity as the worst does, however routes of the same lengths are
    /// chosen: the loads add up to the same. O(links).
    pub(crate) fn are_level(&self, topology: &Topology) -> bool {
        let (load, capacity) = self.worst(topology);
        let loads: u128 = self.chunks.iter().map(|&load| u128::from(load)).sum();
        let capacities: u128 = topology.links().iter().map(|link| u128::from(link.capacity.bytes_per_sec())).sum();
        // Numbers too large to compare are not level: looking on costs time, nothing else.
        let sides = (loads.checked_mul(capacity.into()), capacities.checked_mul(load.into()));
        matches!(sides, (Some(average), Some(worst)) if average >= worst)
    }

    /// By how much Σ load²/capacity grows with one more batch on a link, for each of its chunks, scaled by 2⁶⁴ and rounded
    /// down: enough to tell any two links apart that differ by more than a rounding, and below 2¹⁰⁵, so that routes add up.
    fn growth(&self, network: &Network<'_>, link: LinkIndex) -> u128 {
        ((2 * u128::from(self.chunks[link.index()]) + u128::from(self.batch)) << 64) / u128::from(network.width(link))
    }
}

/// Whether one load ÷ capacity is less than another.
pub(crate) fn is_less(a: (u64, u64), b: (u64, u64)) -> bool {
    u128::from(a.0) * u128::from(b.1) < u128::from(b.0) * u128::from(a.1)
}

/// Which of equally good ways is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TieBreak {
    /// The first that is found.
    First,
    /// The last that is found.
    Last,
    /// Any, by a number: each search prefers other links.
    Mixed(u64),
}

/// Finds routes; keeps its tables from one search to the next.
#[derive(Clone, Debug)]
pub(crate) struct Chooser {
    /// Searches so far: marks of earlier ones are void.
    search: u64,
    tie_break: TieBreak,
    marks: Vec<Mark>,
    level: Vec<NodeIndex>,
    level_before: Vec<NodeIndex>,
}

/// The cheapest way found from a node to the target of a search.
#[derive(Clone, Copy, Debug)]
struct Mark {
    search: u64,
    cost: u128,
    /// First link of the way; none at the target.
    link: Option<LinkIndex>,
}

impl Chooser {
    /// With tables for this many nodes.
    pub(crate) fn new(topology: &Topology) -> Self {
        let mark = Mark { search: 0, cost: 0, link: None };
        Self {
            search: 0,
            tie_break: TieBreak::First,
            marks: vec![mark; topology.nodes().len()],
            level: Vec::new(),
            level_before: Vec::new(),
        }
    }

    /// From here on takes the other one of equally good ways: choosing again may then lead on from where it was stuck.
    pub(crate) fn change_tie_break(&mut self) {
        self.tie_break = if self.tie_break == TieBreak::First { TieBreak::Last } else { TieBreak::First };
    }

    /// From here on takes any of equally good ways, by `seed`: where always the first or the last leads nowhere, ways
    /// that differ from search to search may.
    pub(crate) fn mix_tie_breaks(&mut self, seed: u64) {
        self.tie_break = TieBreak::Mixed(seed);
    }

    /// Whether a way that begins with one link is taken rather than an equally good one that was found before.
    fn prefers(&self, link: LinkIndex, found: Option<LinkIndex>) -> bool {
        match self.tie_break {
            TieBreak::First => false,
            TieBreak::Last => true,
            TieBreak::Mixed(seed) => {
                let rank = |link: LinkIndex| mixed(seed ^ self.search.rotate_left(32) ^ u64::from(link.number()));
                found.is_some_and(|found| rank(link) < rank(found))
            }
        }
    }

    /// The last part of a shortest and widest route from the source of `levels` to `target`, from a node for which
    /// `starts` holds on, of least growth; links in the direction of the data. `None` if the target is out of reach or
    /// is the source.
    ///
    /// Walks back level by level over links that lie on such routes. Nodes at which `starts` holds are not walked past;
    /// the source must be one. O(links on such routes).
    pub(crate) fn choose(
        &mut self,
        network: &Network<'_>,
        levels: &Levels,
        loads: &Loads,
        target: NodeIndex,
        starts: impl Fn(NodeIndex) -> bool,
    ) -> Option<Vec<LinkIndex>> {
        levels.distance(target).filter(|&distance| distance > 0)?;
        let width = levels.width(target);
        self.search += 1;
        self.marks[target.index()] = Mark { search: self.search, cost: 0, link: None };
        self.level.clear();
        self.level.push(target);
        let mut best: Option<(u128, NodeIndex)> = None;
        while !self.level.is_empty() {
            self.level_before.clear();
            for &node in &self.level {
                let cost = self.marks[node.index()].cost;
                for link in levels.links_into(node) {
                    let tail = network.tail(link);
                    if levels.width(tail).min(network.width(link)) < width {
                        continue;
                    }
                    let cost = cost.saturating_add(loads.growth(network, link));
                    let known = self.marks[tail.index()];
                    let is_known = known.search == self.search;
                    if !is_known && !starts(tail) {
                        self.level_before.push(tail);
                    }
                    if !is_known || cost < known.cost || cost == known.cost && self.prefers(link, known.link) {
                        self.marks[tail.index()] = Mark { search: self.search, cost, link: Some(link) };
                        let is_better = |(least, node): (u128, NodeIndex)| {
                            cost < least || cost == least && self.prefers(link, self.marks[node.index()].link)
                        };
                        if starts(tail) && best.is_none_or(is_better) {
                            best = Some((cost, tail));
                        }
                    }
                }
            }
            std::mem::swap(&mut self.level, &mut self.level_before);
        }
        let (_, mut node) = best?;
        let mut route = Vec::new();
        while let Some(link) = self.marks[node.index()].link {
            route.push(link);
            node = network.head(link);
        }
        Some(route)
    }
}

/// The number with its bits mixed (Steele, Lea and Flood 2014, Figure 14: `mix64`): neighbours have nothing in common.
pub(super) fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
