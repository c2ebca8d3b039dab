//! A cycle through all ranks over neighbours only.

use std::cmp::Reverse;

use canopy_optimize::Stop;

use super::nearness::Neighbours;
use crate::error::SynthesisError;
use crate::reach::ask;

/// Neighbours looked at per search, on top of what a search without a wrong turn needs: some 20 ms.
const WORK_MAX: u64 = 1 << 20;

/// Work between two looks at whether to stop.
const ASK_INTERVAL: u64 = 1 << 14;

/// How ranks that are equally good to go to are told apart: one way leads where another is stuck.
#[derive(Clone, Copy, Debug)]
enum TieBreak {
    Lowest,
    Highest,
    /// By a number drawn from the rank's.
    Scattered(u32),
}

const TIE_BREAKS: [TieBreak; 6] = [
    TieBreak::Lowest,
    TieBreak::Highest,
    TieBreak::Scattered(1),
    TieBreak::Scattered(2),
    TieBreak::Scattered(3),
    TieBreak::Scattered(4),
];

/// A cycle that passes every rank once, from neighbour to neighbour; `None` if none was found, whether there is one or
/// not.
///
/// Only routes as wide as it takes for all ranks to reach each other are used. Depth first, to the neighbour over the
/// widest route, among these to the one with the fewest neighbours not yet visited (Warnsdorff's rule), with a bound on
/// the work. O(pairs of neighbours), times some constant.
pub(super) fn find_cycle(neighbours: &Neighbours, stop: &dyn Stop) -> Result<Option<Vec<u32>>, SynthesisError> {
    let Some(graph) = Graph::new(neighbours, stop)? else { return Ok(None) };
    for tie_break in TIE_BREAKS {
        if let Some(cycle) = Search::new(&graph, tie_break, stop).run()? {
            return Ok(Some(cycle));
        }
    }
    Ok(None)
}

/// Neighbours of each rank, and the ranks it is a neighbour of, over routes that are wide enough.
struct Graph<'a> {
    next: &'a [Vec<(u32, u64)>],
    before: Vec<Vec<(u32, u64)>>,
    width_min: u64,
}

impl<'a> Graph<'a> {
    /// The neighbours over the widest routes that connect all ranks; `None` if not even all routes do.
    fn new(neighbours: &'a Neighbours, stop: &dyn Stop) -> Result<Option<Self>, SynthesisError> {
        let next = neighbours.lists();
        let mut before = vec![Vec::new(); next.len()];
        for (rank, list) in (0_u32..).zip(next) {
            ask(stop)?;
            list.iter().for_each(|&(to, width)| before[to as usize].push((rank, width)));
        }
        let mut graph = Self { next, before, width_min: 0 };
        let mut widths: Vec<u64> = next.iter().flatten().map(|&(_, width)| width).collect();
        widths.sort_unstable();
        widths.dedup();
        // Widths below `connecting` connect, those from `failing` on do not.
        let (mut connecting, mut failing) = (0, widths.len());
        while connecting < failing {
            let middle = connecting.midpoint(failing);
            graph.width_min = widths[middle];
            if graph.is_connected(stop)? {
                connecting = middle + 1;
            } else {
                failing = middle;
            }
        }
        Ok(widths[..connecting].last().map(|&width_min| Self { width_min, ..graph }))
    }

    fn next(&self, rank: u32) -> impl Iterator<Item = (u32, u64)> {
        self.next[rank as usize].iter().copied().filter(|&(_, width)| width >= self.width_min)
    }

    fn before(&self, rank: u32) -> impl Iterator<Item = u32> {
        let wide = self.before[rank as usize].iter().filter(|&&(_, width)| width >= self.width_min);
        wide.map(|&(from, _)| from)
    }

    /// Whether rank 0 reaches every other and is reached by it.
    fn is_connected(&self, stop: &dyn Stop) -> Result<bool, SynthesisError> {
        Ok(self.reaches_all(|rank, found| found.extend(self.next(rank).map(|(to, _)| to)), stop)?
            && self.reaches_all(|rank, found| found.extend(self.before(rank)), stop)?)
    }

    /// Whether all are reached from rank 0 by the steps that `next` adds to its list.
    fn reaches_all(&self, next: impl Fn(u32, &mut Vec<u32>), stop: &dyn Stop) -> Result<bool, SynthesisError> {
        let mut seen = vec![false; self.next.len()];
        seen[0] = true;
        let (mut stack, mut found, mut left) = (vec![0], Vec::new(), self.next.len() - 1);
        while let Some(rank) = stack.pop() {
            ask(stop)?;
            next(rank, &mut found);
            for to in found.drain(..) {
                if !std::mem::replace(&mut seen[to as usize], true) {
                    left -= 1;
                    stack.push(to);
                }
            }
        }
        Ok(left == 0)
    }
}

struct Search<'a> {
    graph: &'a Graph<'a>,
    tie_break: TieBreak,
    stop: &'a dyn Stop,
    path: Vec<u32>,
    /// Where to go from each rank of the path, best last.
    choices: Vec<Vec<u32>>,
    is_on_path: Vec<bool>,
    /// By rank: neighbours not on the path.
    free: Vec<u32>,
    work_left: u64,
    asked_at: u64,
}

impl<'a> Search<'a> {
    fn new(graph: &'a Graph<'a>, tie_break: TieBreak, stop: &'a dyn Stop) -> Self {
        let count = graph.next.len();
        let size = |rank| u32::try_from(graph.next(rank).count()).expect("fewer neighbours than ranks");
        let free: Vec<u32> = (0_u32..).zip(graph.next).map(|(rank, _)| size(rank)).collect();
        let work_left = WORK_MAX + 2 * graph.next.iter().map(|list| list.len() as u64).sum::<u64>();
        Self {
            graph,
            tie_break,
            stop,
            path: Vec::with_capacity(count),
            choices: Vec::with_capacity(count),
            is_on_path: vec![false; count],
            free,
            work_left,
            asked_at: work_left,
        }
    }

    fn run(mut self) -> Result<Option<Vec<u32>>, SynthesisError> {
        self.enter(0);
        while let (Some(&last), Some(choices)) = (self.path.last(), self.choices.last_mut()) {
            if self.asked_at - self.work_left >= ASK_INTERVAL {
                ask(self.stop)?;
                self.asked_at = self.work_left;
            }
            if self.path.len() == self.graph.next.len() && self.graph.before(0).any(|from| from == last) {
                return Ok(Some(self.path));
            }
            match choices.pop() {
                _ if self.work_left == 0 => return Ok(None),
                Some(next) => self.enter(next),
                None => self.leave(),
            }
        }
        Ok(None)
    }

    fn enter(&mut self, rank: u32) {
        let graph = self.graph;
        let looked_at = graph.next[rank as usize].len() + graph.before[rank as usize].len();
        self.work_left = self.work_left.saturating_sub(looked_at as u64);
        self.path.push(rank);
        self.is_on_path[rank as usize] = true;
        graph.before(rank).for_each(|from| self.free[from as usize] -= 1);
        let mut choices: Vec<(u32, u64)> = graph.next(rank).filter(|&(to, _)| !self.is_on_path[to as usize]).collect();
        choices.sort_unstable_by_key(|&(to, width)| {
            Reverse((Reverse(width), self.free[to as usize], self.tie_break.key(to), to))
        });
        self.choices.push(choices.into_iter().map(|(to, _)| to).collect());
    }

    fn leave(&mut self) {
        self.choices.pop();
        let Some(rank) = self.path.pop() else { return };
        self.is_on_path[rank as usize] = false;
        self.graph.before(rank).for_each(|from| self.free[from as usize] += 1);
    }
}

impl TieBreak {
    const fn key(self, rank: u32) -> u32 {
        match self {
            Self::Lowest => rank,
            Self::Highest => u32::MAX - rank,
            // Knuth's multiplicative hashing.
            Self::Scattered(seed) => {
                (rank ^ seed.wrapping_mul(0x85eb_ca6b)).wrapping_mul(2_654_435_761).rotate_left(13)
            }
        }
    }
}
