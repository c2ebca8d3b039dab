//! Proof that dependencies order whatever must be ordered, within one piece of the vector.
//!
//! Each transfer reads a place (its sender's) and writes one (its receiver's). Two transfers that touch the same place
//! must be ordered, unless both read or both reduce: sums come out the same in any order.

use std::ops::Range;

use canopy_topology::Rank;

use crate::forest::Action;
use crate::transfer::{Transfer, TransferGraph};

/// Two transfers that touch the same place in no fixed order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clash {
    pub(super) first: u32,
    pub(super) second: u32,
    pub(super) rank: Rank,
}

/// What a transfer does to a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Read,
    Reduce,
    Copy,
}

/// The accesses to one place so far, by index, in runs of accesses that need no order among themselves.
///
/// It is enough to order each run after the one before it: order is transitive, and neighbouring runs always clash.
#[derive(Debug)]
struct Place {
    piece: u32,
    access: Access,
    before: Vec<u32>,
    run: Vec<u32>,
    /// Dependencies that are known to put a transfer after all of `before`.
    sufficient: Option<Range<u32>>,
}

/// Orders the accesses of one piece at a time.
pub(super) struct Order<'a> {
    graph: &'a TransferGraph,
    piece: u32,
    places: Vec<Place>,
    direct: Direct,
    closure: Closure,
    search: Search,
}

impl<'a> Order<'a> {
    pub(super) fn new(graph: &'a TransferGraph) -> Self {
        let blank = || Place { piece: 0, access: Access::Read, before: Vec::new(), run: Vec::new(), sufficient: None };
        Self {
            graph,
            piece: 0,
            places: (0..graph.rank_count).map(|_| blank()).collect(),
            direct: Direct::default(),
            closure: Closure::default(),
            search: Search::default(),
        }
    }

    /// Begins a piece, moved by these batches.
    pub(super) fn reset(&mut self, batches: &[u32]) {
        self.piece += 1;
        self.closure.forget(batches);
    }

    /// Adds the next transfer by index; refuses it if it clashes with one before.
    pub(super) fn add(&mut self, index: u32, transfer: &Transfer, action: Action) -> Result<(), Clash> {
        let write = match action {
            Action::Copy => Access::Copy,
            Action::Reduce => Access::Reduce,
        };
        self.access(index, transfer, transfer.from, Access::Read)?;
        self.access(index, transfer, transfer.to, write)
    }

    fn access(&mut self, index: u32, transfer: &Transfer, rank: Rank, access: Access) -> Result<(), Clash> {
        let place = &mut self.places[rank.index()];
        if place.piece != self.piece {
            place.piece = self.piece;
            place.before.clear();
            place.run.clear();
            place.sufficient = None;
        } else if place.access != access || access == Access::Copy {
            std::mem::swap(&mut place.before, &mut place.run);
            place.run.clear();
            place.sufficient = None;
        }
        place.access = access;
        place.run.push(index);
        if place.before.is_empty() || place.sufficient.as_ref() == Some(&transfer.dependencies) {
            return Ok(());
        }
        self.direct.set(self.graph, transfer);
        for &first in &place.before {
            let ordered = self.direct.holds(first)
                || self.closure.orders(self.graph, first, index)
                || self.search.reaches(self.graph, first, transfer);
            if !ordered {
                return Err(Clash { first, second: index, rank });
            }
        }
        place.sufficient = Some(transfer.dependencies.clone());
        Ok(())
    }
}

/// The direct dependencies of one transfer, sorted.
#[derive(Default)]
struct Direct {
    sorted: Vec<u32>,
    /// The range of dependencies that these are.
    range: Option<Range<u32>>,
}

impl Direct {
    fn set(&mut self, graph: &TransferGraph, transfer: &Transfer) {
        if self.range.as_ref() == Some(&transfer.dependencies) {
            return;
        }
        self.sorted.clear();
        self.sorted.extend_from_slice(graph.dependencies_of(transfer));
        self.sorted.sort_unstable();
        self.range = Some(transfer.dependencies.clone());
    }

    fn holds(&self, transfer: u32) -> bool {
        self.sorted.binary_search(&transfer).is_ok()
    }
}

/// The transitive dependencies among the transfers of one piece, as a bit matrix made when first asked for.
///
/// It sees only chains of transfers that all move the piece, which is what compiled forests have.
#[derive(Default)]
struct Closure {
    batches: Vec<u32>,
    /// First transfer and first seat of each batch, once the matrix is made. A seat is a row and a column.
    seats: Option<Vec<(Range<u32>, u32)>>,
    width: usize,
    rows: Vec<u64>,
}

impl Closure {
    fn forget(&mut self, batches: &[u32]) {
        self.seats = None;
        self.batches.clear();
        self.batches.extend_from_slice(batches);
    }

    fn orders(&mut self, graph: &TransferGraph, first: u32, second: u32) -> bool {
        if self.seats.is_none() {
            self.fill(graph);
        }
        let (Some(first), Some(second)) = (self.seat(first), self.seat(second)) else {
            return false;
        };
        self.rows[second as usize * self.width + first as usize / 64] >> (first % 64) & 1 == 1
    }

    fn seat(&self, transfer: u32) -> Option<u32> {
        let seats = self.seats.as_deref().unwrap_or_default();
        let (batch, seat) = seats[..seats.partition_point(|(batch, _)| batch.start <= transfer)].last()?;
        batch.contains(&transfer).then(|| seat + (transfer - batch.start))
    }

    fn fill(&mut self, graph: &TransferGraph) {
        let mut seat_count = 0_u32;
        let mut seats = Vec::with_capacity(self.batches.len());
        for &batch in &self.batches {
            let transfers = graph.batches[batch as usize].transfers.clone();
            let length = transfers.end - transfers.start;
            seats.push((transfers, seat_count));
            seat_count += length;
        }
        // A matrix of a piece moved by very many transfers could outgrow memory; the search serves it instead.
        if u64::from(seat_count) > 4 * u64::from(graph.rank_count) {
            seats.clear();
            seat_count = 0;
        }
        self.width = seat_count.div_ceil(64) as usize;
        self.rows.clear();
        self.rows.resize(seat_count as usize * self.width, 0);
        let transfers: Vec<u32> = seats.iter().flat_map(|(transfers, _)| transfers.clone()).collect();
        self.seats = Some(seats);
        let mut before: Option<&Transfer> = None;
        for (seat, &transfer) in transfers.iter().enumerate() {
            let transfer = &graph.transfers[transfer as usize];
            let row = seat * self.width;
            if before.is_some_and(|before| before.dependencies == transfer.dependencies) {
                self.rows.copy_within(row - self.width..row, row);
            } else {
                self.fill_row(graph, row, transfer);
            }
            before = Some(transfer);
        }
    }

    /// Dependencies point backwards, so their rows are complete.
    fn fill_row(&mut self, graph: &TransferGraph, row: usize, transfer: &Transfer) {
        for &dependency in graph.dependencies_of(transfer) {
            let Some(seat) = self.seat(dependency) else { continue };
            let other = seat as usize * self.width;
            for word in 0..self.width {
                self.rows[row + word] |= self.rows[other + word];
            }
            self.rows[row + seat as usize / 64] |= 1 << (seat % 64);
        }
    }
}

/// Depth-first search over all dependencies: exact, for chains that leave the piece. O(transfers + dependencies).
#[derive(Default)]
struct Search {
    stamp: u64,
    stamps: Vec<u64>,
    stack: Vec<u32>,
}

impl Search {
    fn reaches(&mut self, graph: &TransferGraph, first: u32, second: &Transfer) -> bool {
        self.stamps.resize(graph.transfers.len(), 0);
        self.stamp += 1;
        self.stack.clear();
        self.stack.extend(graph.dependencies_of(second));
        while let Some(transfer) = self.stack.pop() {
            if transfer == first {
                return true;
            }
            let stamp = &mut self.stamps[transfer as usize];
            // Dependencies point backwards: nothing before `first` leads to it.
            if transfer > first && *stamp != self.stamp {
                *stamp = self.stamp;
                self.stack.extend(graph.dependencies_of(&graph.transfers[transfer as usize]));
            }
        }
        false
    }
}
