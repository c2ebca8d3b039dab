//! Where each rank has each chunk, level after level.

use std::collections::{BTreeMap, HashMap};

use canopy_schedule::{CollectiveKind, TransferGraph};

use super::chunks::Chunks;
use super::scratch::Scratch;
use super::{LowerError, Stop};
use crate::msccl::Buffer;
use crate::oneccl::memory::Memory;
use crate::oneccl::program::Program;

/// A chunk of a rank's buffers.
pub(super) type Cell = (Buffer, u32);

/// A chunk on its way.
pub(super) struct Arrival {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) chunk: u64,
    /// Where its sender has it.
    pub(super) source: Cell,
    pub(super) is_reduction: bool,
    pub(super) transfer: usize,
}

/// Where a chunk goes, and what is done then.
pub(super) struct Destination {
    /// Where it is received.
    pub(super) cell: Cell,
    /// What is done in the same step: source and destination.
    pub(super) reduce: Option<(Cell, Cell)>,
    /// What is copied from there later.
    pub(super) copy: Option<LaterCopy>,
}

/// A copy at the end of the step of a level.
pub(super) struct LaterCopy {
    pub(super) source: Cell,
    pub(super) destination: Cell,
    pub(super) level: u32,
}

pub(super) struct Places<'c> {
    chunks: &'c Chunks,
    memories: Vec<Memory>,
    is_displacing: bool,
    /// Where each rank has chunks, other than those of its input that nothing was added to. Only asked, never listed.
    places: Vec<HashMap<u64, Cell>>,
    /// Level of the last transfer that sends a chunk from a rank. Only asked, never listed.
    last_sent: Vec<HashMap<u64, u32>>,
    scratch: Vec<Scratch>,
    /// Chunks of scratch that are read for the last time in a level.
    last_read: BTreeMap<u32, Vec<(u32, u32)>>,
}

impl<'c> Places<'c> {
    pub(super) fn new(
        program: &Program,
        chunks: &'c Chunks,
        graph: &TransferGraph,
        levels: &[u32],
        stop: Stop<'_>,
    ) -> Result<Self, LowerError> {
        let ranks = program.ranks.len();
        let mut last_sent: Vec<HashMap<u64, u32>> = vec![HashMap::new(); ranks];
        for batch in &graph.batches {
            if stop() {
                return Err(LowerError::Stopped);
            }
            for (index, transfer) in batch.transfers.clone().zip(graph.transfers_of(batch)) {
                for chunk in chunks.of(batch) {
                    let last = last_sent[transfer.from.index()].entry(chunk).or_default();
                    *last = (*last).max(levels[index as usize]);
                }
            }
        }
        Ok(Self {
            chunks,
            memories: program.ranks.iter().map(|rank| Memory::new(program, rank)).collect(),
            is_displacing: program.in_place && program.collective.kind() == CollectiveKind::AllToAll,
            places: vec![HashMap::new(); ranks],
            last_sent,
            scratch: (0..ranks).map(|_| Scratch::default()).collect(),
            last_read: BTreeMap::new(),
        })
    }

    /// Frees the scratch that only earlier levels read.
    pub(super) fn begin(&mut self, level: u32) {
        let later = self.last_read.split_off(&level);
        for (rank, chunk) in std::mem::replace(&mut self.last_read, later).into_values().flatten() {
            self.scratch[rank as usize].give(chunk);
        }
    }

    /// Where a rank has a chunk, if it has it.
    pub(super) fn source(&self, rank: u32, chunk: u64) -> Option<Cell> {
        let moved = self.places[rank as usize].get(&chunk).copied();
        moved.or_else(|| self.chunks.input(rank, chunk).map(|offset| (Buffer::Input, offset)))
    }

    /// Finds a place for what arrives in a level.
    pub(super) fn receive(&mut self, arrival: &Arrival, level: u32) -> Result<Destination, LowerError> {
        let Arrival { to, chunk, is_reduction, transfer, .. } = *arrival;
        let promised = self.chunks.output(to, chunk).map(|offset| (Buffer::Output, offset));
        if !is_reduction {
            if let Some(leaves) = self.leaves(to, chunk).filter(|&leaves| leaves >= level) {
                let target = promised.expect("only what is promised displaces");
                let cell = self.scratch_until(to, leaves.max(self.last_sent(to, chunk).unwrap_or(leaves)));
                self.places[to as usize].insert(chunk, cell);
                let copy = LaterCopy { source: cell, destination: target, level: leaves };
                return Ok(Destination { cell, reduce: None, copy: Some(copy) });
            }
            let cell = promised.unwrap_or_else(|| self.transit(to, chunk, level));
            self.places[to as usize].insert(chunk, cell);
            return Ok(Destination { cell, reduce: None, copy: None });
        }
        let what = "adds to a chunk that its receiver does not have";
        let own = self.source(to, chunk).ok_or(LowerError::Malformed { transfer, what })?;
        if self.memories[to as usize].is_free(own.0) {
            let cell = self.scratch_until(to, level);
            return Ok(Destination { cell, reduce: Some((cell, own)), copy: None });
        }
        // The first sum of the rank's own contribution, which stays as it is, and of another's.
        let cell = promised.unwrap_or_else(|| self.transit(to, chunk, level));
        self.places[to as usize].insert(chunk, cell);
        Ok(Destination { cell, reduce: Some((own, cell)), copy: None })
    }

    /// Level of the last transfer of what a rank sends from where a chunk goes.
    fn leaves(&self, rank: u32, chunk: u64) -> Option<u32> {
        let displaced = self.chunks.displaced(rank, chunk).filter(|_| self.is_displacing)?;
        self.last_sent(rank, displaced)
    }

    fn last_sent(&self, rank: u32, chunk: u64) -> Option<u32> {
        self.last_sent[rank as usize].get(&chunk).copied()
    }

    /// Scratch for a chunk that a rank only passes on. What it never passes on stays there: somebody may add to it.
    fn transit(&mut self, rank: u32, chunk: u64, level: u32) -> Cell {
        match self.last_sent(rank, chunk).filter(|&last| last >= level) {
            Some(last) => self.scratch_until(rank, last),
            None => (Buffer::Scratch, self.scratch[rank as usize].take()),
        }
    }

    /// Scratch that is free again after a level.
    fn scratch_until(&mut self, rank: u32, level: u32) -> Cell {
        let chunk = self.scratch[rank as usize].take();
        self.last_read.entry(level).or_default().push((rank, chunk));
        (Buffer::Scratch, chunk)
    }

    /// Chunks of scratch of each rank.
    pub(super) fn scratch_counts(&self) -> Vec<u32> {
        self.scratch.iter().map(|scratch| scratch.count).collect()
    }
}
