//! Which bytes of a pair of boxes take which rail, once each rail has its share.

use crate::matrix::{Matrix, Sums};
use crate::route::{Loads, Part, Route};
use crate::tiers::Tiers;

/// Bytes of one pair of places in a pair of boxes over one rail.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) from: u16,
    pub(crate) to: u16,
    pub(crate) rail: u16,
    pub(crate) bytes: u64,
}

/// Pieces by pair of boxes, those of one sender and receiver one after another; and what all traffic loads.
pub(crate) struct Filled {
    pub(crate) pairs: Vec<Vec<Piece>>,
    pub(crate) loads: Loads,
}

impl Filled {
    /// The time of the busiest link, about.
    pub(crate) fn seconds(&self, tiers: &Tiers) -> f64 {
        let (rates, loads) = (tiers.rates(), &self.loads);
        let classes = [
            (&loads.inner_out, &rates.inner_out),
            (&loads.inner_in, &rates.inner_in),
            (&loads.outer_out, &rates.outer_out),
            (&loads.outer_in, &rates.outer_in),
        ];
        let links = classes.into_iter().flat_map(|(loads, rates)| loads.iter().zip(rates));
        // Dead links carry nothing.
        links.map(|(&load, &rate)| load as f64 / rate.max(1) as f64).fold(0.0, f64::max)
    }

    /// Appends the routes.
    pub(crate) fn add_to(&self, tiers: &Tiers, parts: &mut Vec<Part>) {
        let (size, boxes) = (tiers.box_size(), tiers.boxes());
        let name = |home: usize, place: u16| u32::try_from(home * size + usize::from(place)).unwrap_or(u32::MAX);
        for (pair, pieces) in self.pairs.iter().enumerate() {
            let (out, into) = (pair / boxes, pair % boxes);
            parts.extend(pieces.iter().map(|piece| Part {
                from: name(out, piece.from),
                to: name(into, piece.to),
                route: Route::Across { leaves: name(out, piece.rail), enters: name(into, piece.rail) },
                bytes: piece.bytes,
            }));
        }
    }
}

/// Fills the shares of rails. O(ranks²).
pub(crate) fn fill(tiers: &Tiers, matrix: &Matrix, sums: &Sums, shares: &[u64]) -> Filled {
    let (size, boxes) = (tiers.box_size(), tiers.boxes());
    let mut loads = Loads::none(tiers.ranks(), 0);
    loads.inner_out.copy_from_slice(&sums.inside_out);
    loads.inner_in.copy_from_slice(&sums.inside_in);
    let mut block = Block::new(size);
    let mut pairs = Vec::with_capacity(boxes * boxes);
    for (pair, shares) in shares.chunks(size).enumerate() {
        let (from, to) = (pair / boxes, pair % boxes);
        if sums.boxes[pair] == 0 {
            pairs.push(Vec::new());
            continue;
        }
        block.load(matrix, from, to, shares);
        let pieces = block.pieces();
        for piece in &pieces {
            let at = |home: usize, place: u16| home * size + usize::from(place);
            let (leaves, enters) = (at(from, piece.rail), at(to, piece.rail));
            loads.outer_out[leaves] += piece.bytes;
            loads.outer_in[enters] += piece.bytes;
            if piece.from != piece.rail {
                loads.inner_out[at(from, piece.from)] += piece.bytes;
                loads.inner_in[leaves] += piece.bytes;
            }
            if piece.to != piece.rail {
                loads.inner_out[enters] += piece.bytes;
                loads.inner_in[at(to, piece.to)] += piece.bytes;
            }
        }
        pairs.push(pieces);
    }
    Filled { pairs, loads }
}

/// The traffic of a pair of boxes that has no rail yet, and what is left of the rails.
struct Block {
    size: usize,
    /// By sender and receiver.
    bytes: Vec<u64>,
    /// What of that takes the rail of the sender, and that of the receiver.
    by_sender: Vec<u64>,
    by_receiver: Vec<u64>,
    rails: Vec<u64>,
}

impl Block {
    fn new(size: usize) -> Self {
        let zero = || vec![0; size * size];
        Self { size, bytes: zero(), by_sender: zero(), by_receiver: zero(), rails: vec![0; size] }
    }

    fn load(&mut self, matrix: &Matrix, from: usize, to: usize, shares: &[u64]) {
        let size = self.size;
        for (place, bytes) in self.bytes.chunks_mut(size).enumerate() {
            bytes.copy_from_slice(&matrix.row(from * size + place)[to * size..(to + 1) * size]);
        }
        self.rails.copy_from_slice(shares);
    }

    /// Divides the bytes: those between the same places take the rail there and pass no switch, others the rail of
    /// their sender or else of their receiver and pass one switch, and the rest passes both.
    fn pieces(&mut self) -> Vec<Piece> {
        let size = self.size;
        for place in 0..size {
            let at = place * size + place;
            self.by_sender[at] = take(&mut self.bytes[at], &mut self.rails[place]);
            self.by_receiver[at] = 0;
        }
        for (at, bytes) in self.bytes.iter_mut().enumerate() {
            if at / size != at % size {
                self.by_sender[at] = take(bytes, &mut self.rails[at / size]);
            }
        }
        for (at, bytes) in self.bytes.iter_mut().enumerate() {
            if at / size != at % size {
                self.by_receiver[at] = take(bytes, &mut self.rails[at % size]);
            }
        }
        let mut pieces = Vec::with_capacity(size * size + 2 * size);
        let mut rail = 0;
        let place = |place: usize| u16::try_from(place).unwrap_or(u16::MAX);
        for at in 0..size * size {
            let (from, to) = (place(at / size), place(at % size));
            for (rail, bytes) in [(from, self.by_sender[at]), (to, self.by_receiver[at])] {
                if bytes > 0 {
                    pieces.push(Piece { from, to, rail, bytes });
                }
            }
            while self.bytes[at] > 0 {
                while self.rails[rail] == 0 {
                    rail += 1;
                }
                let bytes = take(&mut self.bytes[at], &mut self.rails[rail]);
                pieces.push(Piece { from, to, rail: place(rail), bytes });
            }
        }
        pieces
    }
}

/// Takes as much as there is of both.
fn take(bytes: &mut u64, room: &mut u64) -> u64 {
    let taken = (*bytes).min(*room);
    *bytes -= taken;
    *room -= taken;
    taken
}
