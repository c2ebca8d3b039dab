//! What a certificate marks: nodes of its sets, and the links that cross between them.

use canopy_schedule::{Certificate, CutDirection};
use canopy_topology::{LinkIndex, NodeIndex, Topology};

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
    /// Nodes on the smaller side of a cut, sets of a partition that has some of several ranks, links that are counted.
    pub(super) fn of(topology: &Topology, certificate: Option<&Certificate>) -> Self {
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
                let fills = inside.iter().map(|&here| (here == is_inside).then_some(0)).collect();
                let counted = counted(topology, |from, to| match direction {
                    CutDirection::Out => inside[from] && !inside[to],
                    CutDirection::In => !inside[from] && inside[to],
                });
                let verb = if leaves { "leave" } else { "enter" };
                let words = format!(
                    "the bottleneck: {} GB/s {verb} the {}",
                    gigabytes(capacity(topology, &counted)),
                    count(ranks.min(outside), "marked rank")
                );
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
            Some(Certificate::LpDual { lengths }) => {
                let counted: Vec<bool> = lengths.iter().map(|&length| length > 0).collect();
                let links = counted.iter().filter(|counted| **counted).count();
                let words = format!("the bottleneck: {} with a length", count(links, "link"));
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

/// By link: whether it is counted, by the positions of its ends.
fn counted(topology: &Topology, is_counted: impl Fn(usize, usize) -> bool) -> Vec<bool> {
    topology.links().iter().map(|link| is_counted(link.from.index(), link.to.index())).collect()
}

fn capacity(topology: &Topology, counted: &[bool]) -> u128 {
    let links = topology.links().iter().zip(counted).filter(|(_, counted)| **counted);
    links.map(|(link, _)| u128::from(link.capacity.bytes_per_sec())).sum()
}
