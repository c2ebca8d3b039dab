//! The trees that an exchange in stages amounts to, written down: for programs that take trees, where there are few
//! ranks.

use std::collections::BTreeMap;

use canopy_topology::{Rank, Topology};

use super::boxes::{SeatError, Seating};
use super::pieces::{Exchange, Pieces};
use super::{BoxTree, Inside, Piece, Stages, Way, Ways};
use crate::forest::{Action, Carrier, Forest, Hop, Phase, Tree};
use crate::route::{RouteIndex, RouteInterner};

/// Most hops of all trees.
const HOPS_MAX: u64 = 1 << 25;

/// Why an exchange in stages is not written as trees.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum TreesError {
    #[error(transparent)]
    Seats(#[from] SeatError),
    #[error(
        "{hops} hops of trees are more than {HOPS_MAX}, the limit; use the program of a rank, which follows from the rule"
    )]
    TooManyHops { hops: u128 },
    #[error("rank {from} has no way to rank {to} over at most eight switches")]
    NoWay { from: u32, to: u32 },
    #[error("box {of_box} does not get all chunks at ranks that spread them; check the exchange first")]
    Broken { of_box: u32 },
}

/// A hop of a tree: its ranks, and the turn of its way.
type Step = (u32, u32, u64);

impl Stages {
    /// The trees of all chunks, those of a rank in the order of its chunks; equal ones in a row are one with a
    /// multiplicity.
    ///
    /// * **Errors.** [`TreesError`]. What the checker refuses may come out as wrong trees, or as
    ///   [`Broken`](TreesError::Broken).
    /// * **Cost.** O(N²·k) time and memory.
    pub fn trees(&self, topology: &Topology) -> Result<Forest, TreesError> {
        let rank_count = topology.rank_count();
        let hops = u128::from(rank_count).pow(2) * u128::from(self.chunks_per_share) * self.actions.len() as u128;
        if hops > u128::from(HOPS_MAX) {
            return Err(TreesError::TooManyHops { hops });
        }
        let seating = self.grid.seating(rank_count)?;
        let all = Expansion { stages: self, seating: &seating }.all()?;
        let mut writer = Writer {
            ways: Ways::of(topology),
            way: Way::new(),
            known: BTreeMap::new(),
            routes: RouteInterner::default(),
        };
        let (mut carriers, mut hops, mut phases) = (Vec::new(), Vec::new(), Vec::new());
        for &action in &self.actions {
            let mut trees: Vec<Tree> = Vec::new();
            for (root, of_root) in (0..).map(Rank::new).zip(&all) {
                for same in of_root.chunk_by(PartialEq::eq) {
                    let (start, multiplicity) = (position(hops.len()), same.len() as u64);
                    for route in writer.routes_of(&same[0], action)? {
                        let (route, from, to) = route;
                        let carrier = position(carriers.len());
                        carriers.push(Carrier { route, chunk_count: multiplicity });
                        hops.push(Hop { from: Rank::new(from), to: Rank::new(to), carriers: carrier..carrier + 1 });
                    }
                    trees.push(Tree { root, multiplicity, hops: start..position(hops.len()) });
                }
            }
            phases.push(Phase { action, trees });
        }
        let routes = writer.routes.finish();
        Ok(Forest { chunks_per_share: self.chunks_per_share, routes, carriers, hops, phases })
    }
}

/// An index in tables that have fewer than 2³² entries, as there are at most 2²⁵ hops.
fn position(index: usize) -> u32 {
    u32::try_from(index).expect("the number of hops was limited")
}

/// Where routes come from.
struct Writer {
    ways: Ways,
    way: Way,
    known: BTreeMap<(u32, u32, u64), RouteIndex>,
    routes: RouteInterner,
}

impl Writer {
    /// Routes of a tree with their ends, in the order of the data.
    fn routes_of(&mut self, tree: &[Step], action: Action) -> Result<Vec<(RouteIndex, u32, u32)>, TreesError> {
        let copy = action == Action::Copy;
        let mut routes = Vec::with_capacity(tree.len());
        for &(from, to, turn) in tree {
            let (from, to) = if copy { (from, to) } else { (to, from) };
            let route = match self.known.get(&(from, to, turn)) {
                Some(&known) => known,
                None => {
                    let way = self.ways.between(Rank::new(from), Rank::new(to), turn, &mut self.way);
                    way.ok_or(TreesError::NoWay { from, to })?;
                    *self.known.entry((from, to, turn)).or_insert(self.routes.intern(&self.way))
                }
            };
            routes.push((route, from, to));
        }
        if !copy {
            routes.reverse();
        }
        Ok(routes)
    }
}

/// The hops of all trees, found box by box.
struct Expansion<'a> {
    stages: &'a Stages,
    seating: &'a Seating,
}

impl Expansion<'_> {
    /// By rank, then by chunk of its share: hops, each after the one that brings its sender the chunk.
    fn all(&self) -> Result<Vec<Vec<Vec<Step>>>, TreesError> {
        let (grid, boxes) = (&self.stages.grid, self.seating.box_count());
        let k = usize::try_from(self.stages.chunks_per_share).unwrap_or(usize::MAX);
        let ranks = self.seating.ranks_in(0..boxes) as usize;
        let mut trees: Vec<Vec<Vec<Step>>> = vec![vec![Vec::new(); k]; ranks];
        // How much has entered at each place of each box: whose turn it is among the trees there.
        let mut entered = vec![0_u64; boxes as usize * self.seating.places() as usize];
        for of_box in 0..boxes {
            for (place, rank) in self.seating.live(of_box) {
                for tree in &mut trees[rank as usize] {
                    self.spread(of_box, place, &mut entered, tree)?;
                }
            }
        }
        let rules = Pieces::new(self.stages, self.seating);
        let mut pieces = Vec::new();
        for stage in 0..grid.digits.len() {
            for to in (0..boxes).filter(|&to| !self.seating.is_empty(to)) {
                for exchange in Exchange::into_box(grid, to).filter(|exchange| exchange.stage == stage) {
                    rules.put(exchange, &mut pieces);
                    self.take(exchange, &pieces, &mut entered, &mut trees)?;
                }
            }
        }
        Ok(trees)
    }

    /// A run enters a box: its first chunks at all places that may, the others in pieces.
    fn take(
        &self,
        exchange: Exchange,
        pieces: &[Piece],
        entered: &mut [u64],
        trees: &mut [Vec<Vec<Step>>],
    ) -> Result<(), TreesError> {
        let broken = TreesError::Broken { of_box: exchange.to };
        let single =
            |piece: &Piece| std::iter::repeat_n(*piece, usize::try_from(piece.chunk_count).unwrap_or(usize::MAX));
        let mut by_chunk = pieces.iter().flat_map(single);
        let mut inside_first = Pieces::new(self.stages, self.seating).inside_first(exchange);
        let turn = |sender, leaves| exchange.turn(&self.stages.grid, sender, leaves);
        for of_box in exchange.run(&self.stages.grid) {
            for (_, root) in self.seating.live(of_box) {
                for tree in &mut trees[root as usize] {
                    if inside_first > 0 {
                        inside_first -= 1;
                        for (place, at) in self.seating.live(exchange.to) {
                            let from = self.seating.rank(exchange.from, place).ok_or_else(|| broken.clone())?;
                            tree.push((from, at, turn(exchange.from, place)));
                        }
                        continue;
                    }
                    let piece = by_chunk.next().ok_or_else(|| broken.clone())?;
                    let ranks = self.seating.rank(piece.sender, piece.leaves);
                    let ranks = ranks.zip(self.seating.rank(exchange.to, piece.enters));
                    let (from, at) = ranks.ok_or_else(|| broken.clone())?;
                    tree.push((from, at, turn(piece.sender, piece.leaves)));
                    self.spread(exchange.to, piece.enters, entered, tree)?;
                }
            }
        }
        if by_chunk.next().is_some() { Err(broken) } else { Ok(()) }
    }

    /// A chunk that entered at a place is spread in its box.
    fn spread(&self, of_box: u32, place: u32, entered: &mut [u64], tree: &mut Vec<Step>) -> Result<(), TreesError> {
        let broken = TreesError::Broken { of_box };
        let count = &mut entered[of_box as usize * self.seating.places() as usize + place as usize];
        let number = *count;
        *count += 1;
        let rank = |place| self.seating.rank(of_box, place).ok_or_else(|| broken.clone());
        match self.stages.inside_of(of_box).ok_or_else(|| broken.clone())? {
            Inside::Star => {
                let from = rank(place)?;
                let others = self.seating.live(of_box).filter(|&(other, _)| other != place);
                tree.extend(others.map(|(_, to)| (from, to, 0)));
            }
            Inside::Trees(trees) => {
                for &(from, to) in &turn_of(trees, place, number).ok_or_else(|| broken.clone())?.hops {
                    tree.push((rank(from)?, rank(to)?, 0));
                }
            }
        }
        Ok(())
    }
}

/// The tree from a place whose turn it is for a chunk.
fn turn_of(trees: &[BoxTree], place: u32, number: u64) -> Option<&BoxTree> {
    let own = || trees.iter().filter(|tree| tree.root == place);
    let turn = own().try_fold(0_u64, |turn, tree| turn.checked_add(tree.multiplicity))?;
    let mut left = number.checked_rem(turn)?;
    own().find(|tree| match left.checked_sub(tree.multiplicity) {
        Some(rest) => {
            left = rest;
            false
        }
        None => true,
    })
}
