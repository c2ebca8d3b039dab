//! Boxes of a network of no family, by its links alone: whatever its rates, its damage and the insides of its boxes.
//!
//! Candidates are the components that remain if
//!
//! * only links to and between ranks count that have at least some rate: boxes are faster inside than outside, or
//! * switches with many ranks are left out: a fabric joins more ranks than a box has.
//!
//! Links between switches never count: a switch joins the ranks it has links to. Of all candidates those boxes are taken
//! which are hardest to enter, compared with the ranks outside of them. Nothing here need be right: boxes are a hint.

use std::collections::BTreeSet;

use canopy_topology::{Capacity, Link, Topology};

/// Fewer ranks than this are planned together, boxes or not.
const RANKS_MIN: usize = 64;

/// Candidates looked at, of either kind: O(links) each.
const CANDIDATES_MAX: usize = 24;

/// By rank, the number of its box; none for ranks in no box with others. `None` if there are no boxes to be seen.
///
/// O(links · α) per candidate, of which there are few.
pub(crate) fn linked_boxes(topology: &Topology) -> Option<Vec<Option<usize>>> {
    let ranks = topology.rank_count() as usize;
    if ranks < RANKS_MIN {
        return None;
    }
    let to_ranks: Vec<&Link> =
        topology.links().iter().filter(|link| link.from.index().min(link.to.index()) < ranks).collect();
    let mut attached = vec![0_usize; topology.nodes().len()];
    for link in to_ranks.iter().filter(|link| link.from.index() < ranks) {
        attached[link.to.index()] += 1;
    }
    let rates: BTreeSet<Capacity> = to_ranks.iter().map(|link| link.capacity).collect();
    let sizes: BTreeSet<usize> = attached[ranks..].iter().copied().filter(|&count| count > 0).collect();
    let by_rate = rates
        .iter()
        .rev()
        .take(CANDIDATES_MAX)
        .map(|&least| Candidate::new(topology, to_ranks.iter().copied().filter(|link| link.capacity >= least)));
    let by_size = sizes.iter().rev().take(CANDIDATES_MAX).map(|&size| {
        let is_kept = |node: usize| node < ranks || attached[node] < size;
        Candidate::new(
            topology,
            to_ranks.iter().copied().filter(|link| is_kept(link.from.index()) && is_kept(link.to.index())),
        )
    });
    let mut best: Option<Candidate> = None;
    for candidate in by_rate.chain(by_size).flatten() {
        if best.as_ref().is_none_or(|best| candidate.is_scarcer_than(best)) {
            best = Some(candidate);
        }
    }
    best.map(|best| best.boxes)
}

/// A way to divide the ranks among boxes.
struct Candidate {
    boxes: Vec<Option<usize>>,
    /// Of the box in the middle, by ranks: ranks outside, and what enters it.
    scarcity: (u128, u128),
    /// Ranks that are in boxes with others.
    in_boxes: usize,
    count: usize,
}

impl Candidate {
    /// The components of some of the links. `None` if most ranks are alone, or more than half of them together.
    fn new<'a>(topology: &Topology, links: impl Iterator<Item = &'a Link>) -> Option<Self> {
        let ranks = topology.rank_count() as usize;
        let mut components = Components::new(topology.nodes().len());
        links.for_each(|link| components.join(link.from.index(), link.to.index()));
        let component: Vec<usize> = (0..topology.nodes().len()).map(|node| components.of(node)).collect();
        let mut sizes = vec![0_usize; component.len()];
        component[..ranks].iter().for_each(|&of_rank| sizes[of_rank] += 1);
        let in_boxes: usize = sizes.iter().filter(|&&size| size > 1).sum();
        if 2 * in_boxes < ranks || sizes.iter().any(|&size| 2 * size > ranks) {
            return None;
        }
        let mut entering = vec![0_u128; component.len()];
        for link in topology.links() {
            let (from, to) = (component[link.from.index()], component[link.to.index()]);
            if from != to {
                entering[to] += u128::from(link.capacity.bytes_per_sec());
            }
        }
        let mut scarcities: Vec<(u128, u128, usize)> = (0..component.len())
            .filter(|&of_rank| sizes[of_rank] > 1)
            .map(|of_rank| ((ranks - sizes[of_rank]) as u128, entering[of_rank], sizes[of_rank]))
            .collect();
        scarcities.sort_by(|one, other| compared((one.0, one.1), (other.0, other.1)));
        let mut seen = 0;
        let middle = scarcities.iter().find(|(.., size)| {
            seen += size;
            2 * seen >= in_boxes
        })?;
        let mut numbers = vec![None; component.len()];
        let mut next = 0;
        let boxes = component[..ranks].iter().map(|&of_rank| {
            (sizes[of_rank] > 1).then(|| {
                *numbers[of_rank].get_or_insert_with(|| {
                    next += 1;
                    next - 1
                })
            })
        });
        let boxes = boxes.collect();
        Some(Self { boxes, scarcity: (middle.0, middle.1), in_boxes, count: next })
    }

    /// Whether its boxes are harder to enter, or as hard and have more of the ranks, or are more.
    fn is_scarcer_than(&self, other: &Self) -> bool {
        compared(self.scarcity, other.scarcity)
            .then(self.in_boxes.cmp(&other.in_boxes))
            .then(self.count.cmp(&other.count))
            .is_gt()
    }
}

/// Compares two fractions; nothing entering is the greatest scarcity.
fn compared(one: (u128, u128), other: (u128, u128)) -> std::cmp::Ordering {
    // Ranks are fewer than 2³², and what enters is a sum of fewer than 2³² numbers below 2⁶⁴.
    (one.0 * other.1).cmp(&(other.0 * one.1))
}

/// Sets of nodes that are joined.
struct Components {
    parents: Vec<usize>,
}

impl Components {
    fn new(count: usize) -> Self {
        Self { parents: (0..count).collect() }
    }

    fn of(&mut self, node: usize) -> usize {
        let mut root = node;
        while self.parents[root] != root {
            self.parents[root] = self.parents[self.parents[root]];
            root = self.parents[root];
        }
        root
    }

    /// The lower root stays, so that the result does not depend on the order.
    fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.of(one), self.of(other));
        self.parents[one.max(other)] = one.min(other);
    }
}
