//! Cheapest routes over the whole network, for lengths of links in floats. It knows no traffic.

use crate::route::Hop;
use crate::tiers::{Fabric, Tiers};

/// The links of a network, numbered: four by rank, and those of pairs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Links<'a> {
    tiers: &'a Tiers,
}

impl<'a> Links<'a> {
    pub(crate) const fn new(tiers: &'a Tiers) -> Self {
        Self { tiers }
    }

    /// Rates in bytes per second, in the order of links.
    pub(crate) fn rates(self) -> Vec<f64> {
        let rates = self.tiers.rates();
        let all = [&rates.inner_out, &rates.inner_in, &rates.outer_out, &rates.outer_in];
        let by_rank = all.into_iter().flatten();
        by_rank.chain(self.tiers.pairs()).map(|&rate| rate as f64).collect()
    }

    /// Visits the links of a hop, and says where that leads.
    pub(crate) fn hop(self, at: usize, hop: Hop, mut visit: impl FnMut(usize)) -> usize {
        let (ranks, size) = (self.tiers.ranks(), self.tiers.box_size());
        match hop {
            Hop::Inside(next) => {
                let next = next as usize;
                visit(at);
                visit(ranks + next);
                if !self.tiers.pairs().is_empty() {
                    visit(4 * ranks + at * size + next % size);
                }
                next
            }
            Hop::Across(next) => {
                let next = next as usize;
                visit(2 * ranks + at);
                visit(3 * ranks + next);
                next
            }
        }
    }

    /// Visits the links of a route.
    pub(crate) fn route(self, from: usize, hops: &[Hop], mut visit: impl FnMut(usize)) {
        let mut at = from;
        for &hop in hops {
            at = self.hop(at, hop, &mut visit);
        }
    }
}

/// How the cheapest route between two ranks begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// It stays in the box.
    Inside,
    /// It arrives by this network of NICs.
    Hub(usize),
}

/// The way from one network of NICs to another: its length, and its first step.
#[derive(Clone, Copy, Debug)]
struct Change {
    length: f64,
    next: usize,
    enters: usize,
    leaves: usize,
}

/// Cheapest routes between all ranks.
pub(crate) struct Paths<'a> {
    tiers: &'a Tiers,
    size: usize,
    hubs: usize,
    lengths: Vec<f64>,
    /// Where links join pairs: by rank and place, the distance inside and the first rank on the way.
    inside: Vec<(f64, usize)>,
    /// By rank and network: the distance over ranks of the box, and whose NIC sends.
    leaves: Vec<(f64, usize)>,
    /// By rank and network: the distance over any ranks, and the network by which that begins.
    to_hub: Vec<(f64, usize)>,
    /// By rank and network: the distance from it over ranks of the box, and whose NIC receives.
    from_hub: Vec<(f64, usize)>,
    changes: Vec<Change>,
}

impl<'a> Paths<'a> {
    /// Looks for all routes. Infinite lengths are those of dead links.
    ///
    /// * **Cost.** O(ranks·(box size + rails²) + rails³), and O(ranks·box size²) where links join pairs.
    pub(crate) fn new(tiers: &'a Tiers, lengths: Vec<f64>) -> Self {
        let (ranks, size, hubs) = (tiers.ranks(), tiers.box_size(), tiers.hubs());
        let none = || vec![(f64::INFINITY, 0); ranks * hubs];
        let mut paths = Self {
            tiers,
            size,
            hubs,
            lengths,
            inside: Vec::new(),
            leaves: none(),
            to_hub: none(),
            from_hub: none(),
            changes: Vec::new(),
        };
        if !tiers.pairs().is_empty() {
            paths.join_pairs();
        }
        paths.look_inside();
        paths.look_between();
        for rank in 0..ranks {
            for hub in 0..hubs {
                let mut best = (paths.leaves[rank * hubs + hub].0, hub);
                for first in 0..hubs {
                    let way = paths.leaves[rank * hubs + first].0 + paths.changes[first * hubs + hub].length;
                    if way < best.0 {
                        best = (way, first);
                    }
                }
                paths.to_hub[rank * hubs + hub] = best;
            }
        }
        paths
    }

    /// What joins a rank with another one of its box; 0 with itself.
    fn inside(&self, from: usize, to: usize) -> f64 {
        if from == to {
            0.0
        } else if self.inside.is_empty() {
            self.lengths[from] + self.lengths[self.tiers.ranks() + to]
        } else {
            self.inside[from * self.size + to % self.size].0
        }
    }

    /// Distances over links of pairs (Floyd and Warshall).
    fn join_pairs(&mut self) {
        let (ranks, size) = (self.tiers.ranks(), self.size);
        let mut inside = vec![(0.0, 0); ranks * size];
        for (rank, ways) in inside.chunks_mut(size).enumerate() {
            let home = rank / size * size;
            for (place, way) in ways.iter_mut().enumerate().filter(|(place, _)| home + place != rank) {
                let ports = self.lengths[rank] + self.lengths[ranks + home + place];
                *way = (ports + self.lengths[4 * ranks + rank * size + place], home + place);
            }
        }
        for of_box in inside.chunks_mut(size * size) {
            for middle in 0..size {
                for from in 0..size {
                    let (first, next) = of_box[from * size + middle];
                    for to in 0..size {
                        let way = first + of_box[middle * size + to].0;
                        if way < of_box[from * size + to].0 {
                            of_box[from * size + to] = (way, next);
                        }
                    }
                }
            }
        }
        self.inside = inside;
    }

    /// Ways between ranks and NICs of their box.
    fn look_inside(&mut self) {
        let (ranks, size) = (self.tiers.ranks(), self.size);
        for rank in 0..ranks {
            let home = rank / size * size;
            for nic in home..home + size {
                let at = rank * self.hubs + self.tiers.hub(nic);
                let way = self.inside(rank, nic) + self.lengths[2 * ranks + nic];
                if way < self.leaves[at].0 {
                    self.leaves[at] = (way, nic);
                }
                let way = self.lengths[3 * ranks + nic] + self.inside(nic, rank);
                if way < self.from_hub[at].0 {
                    self.from_hub[at] = (way, nic);
                }
            }
        }
    }

    /// Ways from network to network over any boxes (Floyd and Warshall).
    fn look_between(&mut self) {
        let (ranks, hubs) = (self.tiers.ranks(), self.hubs);
        let none = Change { length: f64::INFINITY, next: 0, enters: 0, leaves: 0 };
        let mut changes = vec![none; hubs * hubs];
        if self.tiers.fabric() == Fabric::Rails {
            for enters in 0..ranks {
                let from = self.tiers.hub(enters);
                let into = self.lengths[3 * ranks + enters];
                for to in (0..hubs).filter(|to| *to != from) {
                    let (way, leaves) = self.leaves[enters * hubs + to];
                    let known = &mut changes[from * hubs + to];
                    if into + way < known.length {
                        *known = Change { length: into + way, next: to, enters, leaves };
                    }
                }
            }
        }
        for middle in 0..hubs {
            for from in 0..hubs {
                for to in (0..hubs).filter(|to| *to != from) {
                    let first = changes[from * hubs + middle];
                    let length = first.length + changes[middle * hubs + to].length;
                    if length < changes[from * hubs + to].length {
                        changes[from * hubs + to] = Change { length, ..first };
                    }
                }
            }
        }
        self.changes = changes;
    }

    /// About how many looks at a link it takes to find all routes.
    pub(crate) fn work(&self) -> usize {
        let pairs = if self.inside.is_empty() { 0 } else { self.size * self.size };
        self.tiers.ranks() * (self.size + self.hubs * self.hubs + pairs) + self.hubs * self.hubs * self.hubs
    }

    /// The distance between two ranks, and how to go; infinite if there is no way.
    pub(crate) fn distance(&self, from: usize, to: usize) -> (f64, Choice) {
        let mut best = (f64::INFINITY, Choice::Inside);
        if from / self.size == to / self.size {
            best.0 = self.inside(from, to);
        }
        let out = &self.to_hub[from * self.hubs..(from + 1) * self.hubs];
        let into = &self.from_hub[to * self.hubs..(to + 1) * self.hubs];
        for (hub, (out, into)) in out.iter().zip(into).enumerate() {
            let way = out.0 + into.0;
            if way < best.0 {
                best = (way, Choice::Hub(hub));
            }
        }
        best
    }

    /// The hops of a choice; `None` if rounding of equal lengths hides the way.
    pub(crate) fn hops(&self, from: usize, to: usize, choice: Choice) -> Option<Vec<Hop>> {
        let mut hops = Vec::with_capacity(3);
        let Choice::Hub(last) = choice else {
            self.go_inside(from, to, &mut hops)?;
            return Some(hops);
        };
        let mut hub = self.to_hub[from * self.hubs + last].1;
        let mut leaves = self.leaves[from * self.hubs + hub].1;
        self.go_inside(from, leaves, &mut hops)?;
        for _ in 0..self.hubs {
            if hub == last {
                break;
            }
            let change = self.changes[hub * self.hubs + last];
            go_across(leaves, change.enters, &mut hops);
            self.go_inside(change.enters, change.leaves, &mut hops)?;
            hub = change.next;
            leaves = change.leaves;
        }
        let enters = self.from_hub[to * self.hubs + last].1;
        go_across(leaves, enters, &mut hops);
        self.go_inside(enters, to, &mut hops)?;
        (hub == last).then_some(hops)
    }

    fn go_inside(&self, from: usize, to: usize, hops: &mut Vec<Hop>) -> Option<()> {
        let mut at = from;
        for _ in 0..self.size {
            if at == to {
                break;
            }
            at = if self.inside.is_empty() { to } else { self.inside[at * self.size + to % self.size].1 };
            hops.push(Hop::Inside(name(at)));
        }
        (at == to).then_some(())
    }
}

fn go_across(leaves: usize, enters: usize, hops: &mut Vec<Hop>) {
    if leaves != enters {
        hops.push(Hop::Across(name(enters)));
    }
}

fn name(rank: usize) -> u32 {
    u32::try_from(rank).unwrap_or(u32::MAX)
}
