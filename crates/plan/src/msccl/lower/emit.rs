//! Writes the steps of every rank, move by move.

mod at;
mod clocks;
mod hazards;
mod rank;

use std::collections::BTreeMap;

use canopy_schedule::{Action, CollectiveKind};

use self::rank::{RankDraft, Work};
use super::blocks::Peers;
use super::channels::Channels;
use super::fuse::{Ends, Fusion, fuse};
use super::message::{Message, Spot};
use super::placement::Placed;
use super::scratch::Scratch;
use super::{LowerError, Stop, check_stop};
use crate::msccl::profile::Profile;
use crate::msccl::program::{Buffer, Chunks, Operation, RankProgram};
use crate::promise::OwnCopy;

/// What all steps are written from.
#[derive(Clone, Copy)]
pub(super) struct Emission<'a> {
    pub(super) message: &'a Message,
    pub(super) profile: Profile,
    pub(super) placed: &'a [Placed],
    pub(super) channels: &'a Channels,
    /// By rank.
    pub(super) peers: &'a [Vec<Peers>],
    /// Every batch of the graph reaches every rank, and waits that follow from that are left out; see
    /// [`Emitter::is_ordered`].
    pub(super) trees_span: bool,
}

/// The programs of all ranks, by rank.
pub(super) fn emit(emission: Emission<'_>, stop: Stop<'_>) -> Result<Vec<RankProgram>, LowerError> {
    let mut emitter = Emitter::new(emission);
    for index in 0..emission.placed.len() {
        check_stop(stop, index)?;
        emitter.send(index);
        emitter.receive(index);
        let moving = &emission.placed[index].moving;
        emitter.scratch[moving.from as usize].end(index);
        emitter.scratch[moving.to as usize].end(index);
    }
    Ok(emitter.finish())
}

struct Emitter<'a> {
    emission: Emission<'a>,
    ends: Vec<Ends>,
    fusion: Fusion,
    ranks: Vec<RankDraft>,
    scratch: Vec<Scratch>,
    /// Where a block receives what it adds in a second step, by rank and block: first cell, and cells needed.
    landings: BTreeMap<(u32, usize), (Option<u32>, u32)>,
}

impl<'a> Emitter<'a> {
    fn new(emission: Emission<'a>) -> Self {
        let Emission { message, placed, channels, peers, profile, .. } = emission;
        let ends: Vec<Ends> = peers.iter().map(|peers| Ends::new(peers)).collect();
        let fusion = fuse(placed, channels, &ends, profile);
        let scratch = Scratch::of_ranks(placed, &fusion, message.rank_count, message.chunk_count());
        let ranks = peers.iter().map(|peers| RankDraft::new(peers)).collect();
        let mut landings = BTreeMap::new();
        if !profile.allows(Operation::ReceiveReduceCopy) {
            for at in placed.iter().filter(|at| at.held == Some(at.target)) {
                let block = ends[at.moving.to as usize].block_from(at.moving.from, channels.of(&at.moving));
                let (_, cells): &mut (Option<u32>, u32) = landings.entry((at.moving.to, block)).or_default();
                *cells = at.moving.count().max(*cells);
            }
        }
        Self { emission, ends, fusion, ranks, scratch, landings }
    }

    /// The sender's step, unless it is part of an earlier one; then what can settle once the chunks have left.
    fn send(&mut self, index: usize) {
        let at = &self.emission.placed[index];
        let (rank, count) = (at.moving.from, at.moving.count());
        let block = self.ends[rank as usize].block_to(at.moving.to, self.emission.channels.of(&at.moving));
        if self.fusion.within[index].is_none() {
            let source = self.chunks(rank, at.source, at.moving.chunks.start, block);
            self.push(rank, Work { block, operation: Operation::Send, source, destination: source, count }, false);
        }
        for chunks in &at.settles {
            let goal = self.emission.message.goal(rank, chunks.start).expect("only promised chunks settle");
            let source = self.chunks(rank, Spot::SCRATCH, chunks.start, block);
            let destination = self.chunks(rank, goal, chunks.start, block);
            let count = chunks.end - chunks.start;
            self.push(rank, Work { block, operation: Operation::Copy, source, destination, count }, false);
        }
    }

    /// The receiver's steps.
    fn receive(&mut self, index: usize) {
        let at = &self.emission.placed[index];
        let (rank, first, count) = (at.moving.to, at.moving.chunks.start, at.moving.count());
        let block = self.ends[rank as usize].block_from(at.moving.from, self.emission.channels.of(&at.moving));
        let onward = self.fusion.onward[index].map(|(_, operation)| operation);
        let is_ordered = self.is_ordered(at.moving.action);
        let Some(held) = at.held else {
            let target = self.chunks(rank, at.target, first, block);
            let operation = onward.unwrap_or(Operation::Receive);
            let work = Work { block, operation, source: target, destination: target, count };
            return self.push(rank, work, is_ordered);
        };
        let source = self.chunks(rank, held, first, block);
        if onward == Some(Operation::ReceiveReduceSend) {
            let work = Work { block, operation: Operation::ReceiveReduceSend, source, destination: source, count };
            return self.push(rank, work, false);
        }
        let target = self.chunks(rank, at.target, first, block);
        if self.emission.profile.allows(Operation::ReceiveReduceCopy) {
            let operation = onward.unwrap_or(Operation::ReceiveReduceCopy);
            return self.push(rank, Work { block, operation, source, destination: target, count }, false);
        }
        // The sum grows where it is kept: what is already there lands elsewhere first, anything else right there.
        let landing = if held == at.target { self.landing(rank, block) } else { target };
        let receive = Work { block, operation: Operation::Receive, source: landing, destination: landing, count };
        self.push(rank, receive, false);
        let added = if held == at.target { landing } else { source };
        self.push(rank, Work { block, operation: Operation::Reduce, source: added, destination: target, count }, false);
    }

    /// Whether what an arriving copy replaces has been used long before, without any wait.
    ///
    /// In an allreduce along trees over all ranks a copied chunk holds the contribution of every rank, so whatever its
    /// receiver did to send its own has happened.
    fn is_ordered(&self, action: Action) -> bool {
        self.emission.trees_span && action == Action::Copy && self.emission.message.kind == CollectiveKind::Allreduce
    }

    fn push(&mut self, rank: u32, work: Work, is_ordered: bool) {
        self.ranks[rank as usize].push(work, is_ordered);
    }

    /// Where a chunk of a rank lies.
    fn chunks(&mut self, rank: u32, spot: Spot, chunk: u32, block: usize) -> Chunks {
        let offset = match spot.buffer {
            Buffer::Scratch => self.scratch[rank as usize].cell(chunk, block),
            _ => spot.offset(chunk),
        };
        Chunks { buffer: spot.buffer, offset: Some(offset) }
    }

    /// Scratch for what a block receives and adds in its next step.
    fn landing(&mut self, rank: u32, block: usize) -> Chunks {
        let (first, cells) = self.landings.get_mut(&(rank, block)).expect("counted before");
        let offset = *first.get_or_insert_with(|| self.scratch[rank as usize].take(*cells, block));
        Chunks { buffer: Buffer::Scratch, offset: Some(offset) }
    }

    fn finish(self) -> Vec<RankProgram> {
        let Emission { message, profile, .. } = self.emission;
        let mut programs = Vec::with_capacity(self.ranks.len());
        for (rank, (mut draft, scratch)) in (0_u32..).zip(self.ranks.into_iter().zip(self.scratch)) {
            if let Some(OwnCopy { source, target, count }) = message.own_copy(rank) {
                let part = count / message.instances;
                for instance in 0..message.instances {
                    let first = instance * part;
                    draft.copy_own(source + first, target + first, part, instance, profile.limits());
                }
            }
            programs.push(draft.finish(rank, message.buffers(rank), scratch.size()));
        }
        programs
    }
}
