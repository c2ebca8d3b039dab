//! The directions at one rank of a torus, and how long the lines through it are.

use super::HEADINGS_MAX;

/// Neighbours by rank, sorted.
pub(super) struct Neighbours {
    starts: Vec<usize>,
    all: Vec<u32>,
}

impl Neighbours {
    /// Ranks with links both ways, from links sorted by their ends.
    pub(super) fn of(rank_count: usize, links: &[(u32, u32)]) -> Self {
        let mut starts = vec![0; rank_count + 1];
        let mut all = Vec::with_capacity(links.len());
        for &(from, to) in links {
            if all.len() > starts[from as usize] && all.last() == Some(&to) && starts[from as usize + 1] == all.len() {
                continue;
            }
            if links.binary_search(&(to, from)).is_ok() {
                all.push(to);
            }
            starts[from as usize + 1] = all.len();
        }
        // Ranks without links.
        for at in 1..starts.len() {
            starts[at] = starts[at].max(starts[at - 1]);
        }
        Self { starts, all }
    }

    pub(super) fn around(&self, rank: u32) -> &[u32] {
        &self.all[self.starts[rank as usize]..self.starts[rank as usize + 1]]
    }

    fn is_linked(&self, one: u32, other: u32) -> bool {
        self.around(one).contains(&other)
    }

    /// The one neighbour that two ranks have besides another rank; whether there is at most one.
    fn corner(&self, one: u32, other: u32, besides: u32) -> Result<Option<u32>, ()> {
        let mut common =
            self.around(one).iter().copied().filter(|&rank| rank != besides && self.is_linked(rank, other));
        let corner = common.next();
        if common.next().is_some() { Err(()) } else { Ok(corner) }
    }
}

/// What is known at one rank: the neighbours along each dimension, one or two, and the side.
pub(super) struct Start {
    pub(super) rank: u32,
    pub(super) dimensions: Vec<Line>,
}

/// The line of one dimension.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    /// The neighbour with the next greater number of all, cyclically.
    pub(super) up: u32,
    /// The other one, if the side is not 2.
    pub(super) down: Option<u32>,
    pub(super) side: u32,
}

impl Start {
    /// Reads the lines through a rank. `None`: it is not a rank of an intact torus as far as lines reach.
    pub(super) fn at(neighbours: &Neighbours, rank: u32, rank_count: u32) -> Option<Self> {
        let around = neighbours.around(rank);
        if around.is_empty() || around.len() > HEADINGS_MAX {
            return None;
        }
        let ahead = |other: u32| if other > rank { other - rank } else { other + (rank_count - rank) };
        let mut dimensions: Vec<Line> = Vec::new();
        for &one in around {
            let mut opposite = Vec::new();
            for &other in around.iter().filter(|&&other| other != one) {
                if neighbours.corner(one, other, rank).ok()?.is_none() {
                    opposite.push(other);
                }
            }
            match opposite.as_slice() {
                [] => dimensions.push(Line { up: one, down: None, side: 2 }),
                &[other] if ahead(one) < ahead(other) => {
                    dimensions.push(Line { up: one, down: Some(other), side: 0 });
                }
                [_] => {}
                _ => return None,
            }
        }
        join(neighbours, rank, &mut dimensions);
        // Numbers of ranks grow fastest along the last dimension.
        dimensions.sort_unstable_by_key(|line| std::cmp::Reverse(ahead(line.up)));
        let found: usize = dimensions.iter().map(|line| 1 + usize::from(line.down.is_some())).sum();
        if found != around.len() {
            return None;
        }
        let mut start = Self { rank, dimensions };
        for dimension in 0..start.dimensions.len() {
            if start.dimensions[dimension].down.is_some() {
                start.dimensions[dimension].side = start.side(neighbours, dimension, rank_count)?;
            }
        }
        Some(start)
    }

    /// Walks straight on until the line comes back.
    fn side(&self, neighbours: &Neighbours, dimension: usize, rank_count: u32) -> Option<u32> {
        let mut walker = Walker::at(self);
        for side in 1..=rank_count {
            walker.step(neighbours, dimension)?;
            if walker.rank == self.rank {
                return Some(side);
            }
        }
        None
    }
}

/// Joins two sides of 2 whose four ranks have numbers like those of a ring: as a side of 4 they are the same network,
/// and its ranks need no list.
fn join(neighbours: &Neighbours, rank: u32, dimensions: &mut Vec<Line>) {
    let is_ring = |up: u32, down: u32| {
        let Ok(Some(opposite)) = neighbours.corner(up, down, rank) else { return false };
        let mut ring = [rank, up, opposite, down];
        let least = (0..4).min_by_key(|&at| ring[at]).unwrap_or(0);
        ring.rotate_left(least);
        ring[1] > ring[0] && ring.windows(2).all(|pair| pair[1].checked_sub(pair[0]) == Some(ring[1] - ring[0]))
    };
    let ups: Vec<u32> = dimensions.iter().filter(|line| line.down.is_none()).map(|line| line.up).collect();
    for (up, down) in ups.iter().flat_map(|&up| ups.iter().map(move |&down| (up, down))) {
        let of = |rank: u32| move |line: &Line| line.up == rank && line.down.is_none();
        let (first, second) = (dimensions.iter().position(of(up)), dimensions.iter().position(of(down)));
        if let (Some(first), Some(_)) = (first, second)
            && up != down
            && is_ring(up, down)
        {
            dimensions[first].down = Some(down);
            dimensions.retain(|line| !of(down)(line));
        }
    }
}

/// Somebody who keeps all directions in mind while walking.
#[derive(Clone)]
pub(super) struct Walker {
    pub(super) rank: u32,
    /// By dimension: the neighbours ahead and behind, one and the same on a side of 2.
    beside: Vec<[u32; 2]>,
}

impl Walker {
    pub(super) fn at(start: &Start) -> Self {
        let beside = start.dimensions.iter().map(|line| [line.up, line.down.unwrap_or(line.up)]);
        Self { rank: start.rank, beside: beside.collect() }
    }

    /// Goes one step ahead. `None`: links are missing, or it is no torus here.
    pub(super) fn step(&mut self, neighbours: &Neighbours, dimension: usize) -> Option<()> {
        let (before, at) = (self.rank, self.beside[dimension][0]);
        for (_, beside) in self.beside.iter_mut().enumerate().filter(|&(other, _)| other != dimension) {
            for rank in beside {
                *rank = neighbours.corner(at, *rank, before).ok()??;
            }
        }
        let is_straight = |next: &u32| {
            *next != before
                && self.beside.iter().enumerate().all(|(other, beside)| other == dimension || !beside.contains(next))
        };
        let mut straight = neighbours.around(at).iter().copied().filter(is_straight);
        let next = if self.beside[dimension][0] == self.beside[dimension][1] { Some(before) } else { straight.next() };
        let next = next.filter(|_| straight.next().is_none())?;
        self.beside[dimension] = [next, before];
        self.rank = at;
        Some(())
    }
}
