//! What a certificate marks: nodes of its sets, and the links that cross between them.

use std::collections::BTreeSet;

use canopy_schedule::{Certificate, CutDirection, Schedule, Shares};
use canopy_topology::{Link, LinkIndex, NodeIndex, Topology};

use crate::wires::{Wire, gigabytes};
use crate::words::count;

/// Fills of marked nodes; the first is that of a cut.
const FILLS: [&str; 6] = ["#ffdf80", "#b8e0b0", "#f4c2d7", "#c9c2f0", "#b5e3e3", "#e8cfae"];

/// The marks of a certificate.
pub(super) struct Marked {
    /// By node: which fill.
    fills: Vec<Option<usize>>,
    /// By link: whether it is counted.
    counted: Vec<bool>,
    /// What the legend says.
    pub(super) words: Option<String>,
}

impl Marked {
    /// Nodes on the smaller side of a cut and of all cuts that bind alike, sets of a partition that has some of several
    /// ranks, links that are counted.
    pub(super) fn of(topology: &Topology, certificate: Option<&Certificate>, schedule: Option<&Schedule>) -> Self {
        let nodes = topology.nodes().len();
        let none = Self { fills: vec![None; nodes], counted: vec![false; topology.links().len()], words: None };
        match certificate {
            None => none,
            Some(Certificate::Cut { direction, nodes: set }) => {
                let mut inside = vec![false; nodes];
                set.iter().for_each(|node| inside[node.index()] = true);
                let ranks = topology.ranks().filter(|rank| inside[rank.index()]).count();
                let outside = topology.rank_count() as usize - ranks;
                // The side that is marked, and which way the counted links lead from there.
                let is_inside = ranks <= outside;
                let leaves = is_inside == (*direction == CutDirection::Out);
                let side: Vec<bool> = inside.iter().map(|&here| here == is_inside).collect();
                let sets = Sets::alike(topology, schedule, &side, leaves);
                let fills = sets.of.iter().map(|set| set.map(|_| 0)).collect();
                let counted = counted(topology, |from, to| {
                    sets.of[from] != sets.of[to] && sets.of[if leaves { from } else { to }].is_some()
                });
                let verb = if leaves { "leave" } else { "enter" };
                let rate = gigabytes(sets.capacity);
                let words = match (sets.count, ranks.min(outside)) {
                    (1, 1) => format!("the bottleneck: {rate} GB/s {verb} the marked rank"),
                    (1, ranks) => format!("the bottleneck: {rate} GB/s {verb} the {ranks} marked ranks"),
                    (sets, 1) => format!("the bottlenecks: {rate} GB/s {verb} each of the {sets} marked ranks"),
                    (sets, ranks) => {
                        format!("the bottlenecks: {rate} GB/s {verb} each of {sets} marked sets of {ranks} ranks")
                    }
                };
                Self { fills, counted, words: Some(words) }
            }
            Some(Certificate::Partition { sets }) => {
                let mut set_of: Vec<Option<usize>> = vec![None; nodes];
                for (number, set) in sets.iter().enumerate() {
                    set.iter().for_each(|node| set_of[node.index()] = Some(number));
                }
                let counted = counted(topology, |from, to| set_of[from].is_some() && set_of[from] != set_of[to]);
                let words = format!(
                    "the bottleneck: {} GB/s leave {}",
                    gigabytes(capacity(topology, &counted)),
                    count(sets.len(), "set")
                );
                // Sets of one rank each need no fill to be told apart.
                let single = sets.iter().all(|set| set.len() == 1);
                let fill = |set: &Option<usize>| set.filter(|_| !single).map(|set| set % FILLS.len());
                let (fills, words) = match single {
                    true => (vec![None; nodes], format!("{words}, each rank by itself")),
                    false => (set_of.iter().map(fill).collect(), format!("{words}, by colour")),
                };
                Self { fills, counted, words: Some(words) }
            }
            Some(Certificate::Sum { terms, .. }) => {
                let marks = |(_, term): &(u64, Certificate)| Self::of(topology, Some(term), None).counted;
                let mut counted = none.counted.clone();
                for term in terms.iter().map(marks) {
                    counted.iter_mut().zip(term).for_each(|(all, one)| *all |= one);
                }
                let words = format!("the bottleneck: the boundaries of {} together", count(terms.len(), "set"));
                Self { counted, words: Some(words), ..none }
            }
            Some(Certificate::LpDual { lengths }) => {
                let counted: Vec<bool> = lengths.iter().map(|&length| length > 0).collect();
                let links = counted.iter().filter(|counted| **counted).count();
                let words = count(links, "bottleneck link");
                Self { counted, words: Some(words), ..none }
            }
        }
    }

    /// Colour of a node.
    pub(super) fn fill(&self, node: NodeIndex) -> &'static str {
        self.fills.get(node.index()).copied().flatten().and_then(|fill| FILLS.get(fill)).copied().unwrap_or("white")
    }

    /// Colour of the first mark; none where no node has one.
    pub(super) fn first_fill(&self) -> &'static str {
        if self.fills.iter().any(Option::is_some) { FILLS[0] } else { "none" }
    }

    /// Whether a wire has a link that counts, where marking them tells anything.
    pub(super) fn crosses(&self, wire: &Wire) -> bool {
        let counts = |link: &LinkIndex| self.counted.get(link.index()).copied().unwrap_or(false);
        self.is_telling() && wire.lanes.iter().flat_map(|lane| &lane.links).any(counts)
    }

    /// Whether less than half of the links count: a mark on everything marks nothing.
    pub(super) fn is_telling(&self) -> bool {
        let counted = self.counted.iter().filter(|counted| **counted).count();
        counted > 0 && 2 * counted < self.counted.len()
    }
}

/// Sets of nodes that a cut separates.
struct Sets {
    /// By node: its set.
    of: Vec<Option<usize>>,
    count: usize,
    /// Of the links that are counted of one of them, in bytes per second.
    capacity: u128,
}

impl Sets {
    /// The set on one side of a cut, and every other set that binds as much: with as many ranks, shares, nodes and
    /// capacity. Sought among the parts into which the network falls without links like those of the cut. O(links log
    /// links).
    fn alike(topology: &Topology, schedule: Option<&Schedule>, side: &[bool], leaves: bool) -> Self {
        let found = match side.iter().filter(|&&here| here).count() {
            1 => Some((0..side.len()).collect()),
            _ => [false, true]
                .into_iter()
                .map(|by_degree| parts(topology, side, by_degree))
                .find(|parts| is_one(parts, side)),
        };
        let found = found.filter(|_| schedule.is_some());
        let is_part = found.is_some();
        let parts = found.unwrap_or_else(|| side.iter().map(|&here| usize::from(here)).collect());
        let mut measures = vec![Measure::default(); side.len().max(2)];
        for (node, &part) in (0_u32..).map(NodeIndex::new).zip(&parts) {
            measures[part].nodes += 1;
            let Some(rank) = topology.rank_of(node) else { continue };
            measures[part].ranks += 1;
            let Some(schedule) = schedule else { continue };
            measures[part].has_root |= schedule.collective.root() == Some(rank);
            match &schedule.shares {
                Shares::Equal => {}
                Shares::Weighted(_) => measures[part].shares += u128::from(schedule.shares.weight(rank)),
                // Blocks between the sets tell them apart, so that none is like another.
                Shares::Blocks(_) => measures[part].own = Some(part),
            }
        }
        for link in topology.links() {
            let [from, to] = [link.from, link.to].map(|node| parts[node.index()]);
            if from != to {
                measures[if leaves { from } else { to }].capacity += u128::from(link.capacity.bytes_per_sec());
            }
        }
        let first = side.iter().position(|&here| here).map_or(0, |node| parts[node]);
        let is_alike = |part: &usize| *part == first || is_part && measures[*part] == measures[first];
        let of: Vec<Option<usize>> = parts.iter().copied().map(|part| Some(part).filter(is_alike)).collect();
        let count = of.iter().flatten().collect::<BTreeSet<_>>().len();
        Self { of, count, capacity: measures[first].capacity }
    }
}

/// What decides how much a set binds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Measure {
    nodes: usize,
    ranks: usize,
    has_root: bool,
    shares: u128,
    /// Of the links that leave it, or that enter it.
    capacity: u128,
    /// Its own number where no other can be like it.
    own: Option<usize>,
}

/// Whether one of the parts is the marked side.
fn is_one(parts: &[usize], side: &[bool]) -> bool {
    let marked: BTreeSet<usize> = parts.iter().zip(side).filter(|(_, here)| **here).map(|(&part, _)| part).collect();
    marked.len() == 1 && parts.iter().zip(side).all(|(part, &here)| marked.contains(part) == here)
}

/// By node: its part of the network without the links that are like one between the two sides. Links are alike by their
/// capacity and the kinds of their ends, and where asked by the degrees of these.
fn parts(topology: &Topology, side: &[bool], by_degree: bool) -> Vec<usize> {
    let mut degrees = vec![0_usize; side.len()];
    for link in topology.links() {
        degrees[link.from.index()] += 1;
        degrees[link.to.index()] += 1;
    }
    let end = |node: NodeIndex| (topology.rank_of(node).is_some(), if by_degree { degrees[node.index()] } else { 0 });
    let kind = |link: &Link| {
        let (a, b) = (end(link.from), end(link.to));
        (link.capacity.bytes_per_sec(), a.min(b), a.max(b))
    };
    let crosses = |link: &&Link| side[link.from.index()] != side[link.to.index()];
    let cut: BTreeSet<_> = topology.links().iter().filter(crosses).map(kind).collect();
    let mut near: Vec<Vec<usize>> = vec![Vec::new(); side.len()];
    for link in topology.links().iter().filter(|link| !cut.contains(&kind(link))) {
        near[link.from.index()].push(link.to.index());
        near[link.to.index()].push(link.from.index());
    }
    let mut parts = vec![usize::MAX; side.len()];
    for start in 0..side.len() {
        let mut stack = vec![start];
        while let Some(node) = stack.pop() {
            if parts[node] == usize::MAX {
                parts[node] = start;
                stack.extend(&near[node]);
            }
        }
    }
    parts
}

/// By link: whether it is counted, by the positions of its ends.
fn counted(topology: &Topology, is_counted: impl Fn(usize, usize) -> bool) -> Vec<bool> {
    topology.links().iter().map(|link| is_counted(link.from.index(), link.to.index())).collect()
}

fn capacity(topology: &Topology, counted: &[bool]) -> u128 {
    let links = topology.links().iter().zip(counted).filter(|(_, counted)| **counted);
    links.map(|(link, _)| u128::from(link.capacity.bytes_per_sec())).sum()
}
