//! Coordinates of all ranks, from those around one of them.

use canopy_topology::Topology;

use super::grid::{Grid, Heading, straight};
use super::start::{Neighbours, Start};
use super::twisted::Twisted;
use super::{HEADINGS_MAX, Torus};

/// Ranks whose surroundings are tried.
const STARTS_MAX: u32 = 64;
/// Ranks from which all others are placed, if the first do not fit.
const PLACED_MAX: usize = 8;
/// Ranks that are placed where they may be elsewhere, too.
const GUESSES_MAX: usize = 64;
/// Marks a seat without a rank, and a rank without a seat.
const NOBODY: u32 = u32::MAX;

pub(super) fn find(topology: &Topology) -> Option<Torus> {
    let rank_count = topology.rank_count();
    if topology.nodes().len() != rank_count as usize || topology.links().len() > rank_count as usize * 64 {
        return None;
    }
    let links: Vec<(u32, u32)> = topology.links().iter().map(|link| (link.from.number(), link.to.number())).collect();
    let neighbours = Neighbours::of(rank_count as usize, &links);
    let most = (0..rank_count).map(|rank| neighbours.around(rank).len()).max()?;
    if most > HEADINGS_MAX {
        return None;
    }
    let whole = (0..rank_count).filter(|&rank| neighbours.around(rank).len() == most);
    let stride = (rank_count / STARTS_MAX).max(1) as usize;
    let some = whole.clone().take(4).chain(whole.step_by(stride)).take(STARTS_MAX as usize);
    let starts: Vec<Start> =
        some.filter_map(|rank| Start::at(&neighbours, rank, rank_count)).take(PLACED_MAX).collect();
    let placed = starts.iter().find_map(|start| {
        let placed = Placed::all(&neighbours, start, rank_count)?;
        torus(topology, &placed.grid, placed.seats, straight(&placed.grid.sides))
    });
    placed.or_else(|| {
        let twisted = Twisted::from(&neighbours, starts.first()?, rank_count)?;
        torus(topology, &Grid::new(&twisted.sides, &twisted.steps), twisted.seats, twisted.steps)
    })
}

/// The torus, if every link joins neighbours.
fn torus(topology: &Topology, grid: &Grid, seats: Vec<u32>, steps: Vec<Vec<u32>>) -> Option<Torus> {
    let mut rates = vec![[0_u64; 2]; steps.len()];
    for link in topology.links() {
        let [from, to] = [link.from, link.to].map(|node| seats[node.index()]);
        let heading = grid.headings[grid.around(from).iter().position(|&next| next == to)?];
        let rate = &mut rates[heading.dimension][usize::from(heading.is_up)];
        *rate = (*rate).max(link.capacity.bytes_per_sec());
    }
    let slower = |(dimension, &[down, up]): (usize, &[u64; 2])| {
        let is_two_way = grid.headings.contains(&Heading { dimension, is_up: false });
        if is_two_way { down.min(up) } else { up }
    };
    let rates = rates.iter().enumerate().map(slower).collect();
    Some(Torus { sides: grid.sides.clone(), steps, seats, rates })
}

/// Ranks on their way to seats.
struct Placed<'a> {
    neighbours: &'a Neighbours,
    grid: Grid,
    seats: Vec<u32>,
    ranks: Vec<u32>,
}

impl<'a> Placed<'a> {
    /// Places all ranks; the first one at 0.
    fn all(neighbours: &'a Neighbours, start: &Start, rank_count: u32) -> Option<Self> {
        let sides: Vec<u32> = start.dimensions.iter().map(|line| line.side).collect();
        let seat_count = sides.iter().try_fold(1_u32, |seats, &side| seats.checked_mul(side))?;
        let lost = seat_count.checked_sub(rank_count)?;
        if lost > rank_count / 4 {
            return None;
        }
        let (seats, ranks) = (vec![NOBODY; rank_count as usize], vec![NOBODY; seat_count as usize]);
        let mut placed = Self { neighbours, grid: Grid::new(&sides, &straight(&sides)), seats, ranks };
        let mut left = vec![start.rank];
        placed.put(start.rank, 0);
        for (at, heading) in placed.grid.headings.clone().into_iter().enumerate() {
            let line = start.dimensions[heading.dimension];
            let rank = if heading.is_up { line.up } else { line.down? };
            placed.put(rank, placed.grid.next(0, at));
            left.push(rank);
        }
        for guesses in 0.. {
            placed.spread(left);
            // Ranks that have lost so many links that they may be at several seats: any will do, if links agree.
            let Some(rank) = (0..rank_count).find(|&rank| placed.seats[rank as usize] == NOBODY) else { break };
            let rank = placed.undecided(rank).filter(|_| guesses < GUESSES_MAX)?;
            let seat = placed.candidates(rank).into_iter().flatten().next()?;
            placed.put(rank, seat);
            left = vec![rank];
        }
        let first = placed.seats[0];
        for seat in &mut placed.seats {
            *seat = placed.grid.seen_from(*seat, first);
        }
        Some(placed)
    }

    fn put(&mut self, rank: u32, seat: u32) {
        self.seats[rank as usize] = seat;
        self.ranks[seat as usize] = rank;
    }

    /// Places all ranks that follow from others, beginning next to these.
    fn spread(&mut self, mut left: Vec<u32>) {
        let mut at = 0;
        while let Some(&rank) = left.get(at) {
            at += 1;
            // A rank that is placed leaves less room for the neighbours of its neighbours, too.
            for &beside in self.neighbours.around(rank) {
                let around = self.neighbours.around(beside).iter().copied();
                let near = if self.seats[beside as usize] == NOBODY { 0 } else { usize::MAX };
                for next in std::iter::once(beside).chain(around.take(near)) {
                    if self.seats[next as usize] != NOBODY {
                        continue;
                    }
                    let mut candidates = self.candidates(next).into_iter().flatten();
                    if let Some(seat) = candidates.next().filter(|_| candidates.next().is_none()) {
                        self.put(next, seat);
                        left.push(next);
                    }
                }
            }
        }
    }

    /// The free seats that are next to those of all neighbours of a rank that have one.
    fn candidates(&self, rank: u32) -> [Option<u32>; HEADINGS_MAX] {
        let mut found = [None; HEADINGS_MAX];
        let seats = self.neighbours.around(rank).iter().map(|&other| self.seats[other as usize]);
        for (number, seat) in seats.filter(|&seat| seat != NOBODY).enumerate() {
            if number == 0 {
                let free = self.grid.around(seat).iter().filter(|&&next| self.ranks[next as usize] == NOBODY);
                found.iter_mut().zip(free).for_each(|(slot, &next)| *slot = Some(next));
                continue;
            }
            let around = self.grid.around(seat);
            found
                .iter_mut()
                .filter(|slot| slot.is_some_and(|next| !around.contains(&next)))
                .for_each(|slot| *slot = None);
        }
        found
    }

    /// A rank without a seat that has a neighbour with one, reached from another without.
    fn undecided(&self, rank: u32) -> Option<u32> {
        let mut seen = std::collections::BTreeSet::from([rank]);
        let mut left = vec![rank];
        while let Some(rank) = left.pop() {
            for &other in self.neighbours.around(rank) {
                if self.seats[other as usize] != NOBODY {
                    return Some(rank);
                }
                if seen.insert(other) {
                    left.push(other);
                }
            }
        }
        None
    }
}
