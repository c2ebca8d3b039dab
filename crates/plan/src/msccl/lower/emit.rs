//! Writes the steps of every rank, piece by piece.

mod rank;

use canopy_schedule::{Action, CollectiveKind, TransferGraph};

use self::rank::{At, RankDraft};
use super::pairing::thread_blocks;
use super::pieces::{Piece, Pieces, Tree};
use super::{Channels, LowerOptions};
use crate::msccl::program::{Buffer, Chunks, Operation, Program, Protocol};

pub(super) struct Emitter<'a> {
    graph: &'a TransferGraph,
    options: &'a LowerOptions,
    pieces: &'a Pieces,
    channels: Channels,
    ranks: Vec<RankDraft>,
}

/// A piece on its way: what every step of it shares.
struct Move<'a> {
    tree: &'a Tree,
    piece: &'a Piece,
    lane: u32,
}

impl<'a> Emitter<'a> {
    pub(super) fn new(
        graph: &'a TransferGraph,
        options: &'a LowerOptions,
        pieces: &'a Pieces,
        channels: Channels,
    ) -> Self {
        let blocks = thread_blocks(pieces, channels, graph.rank_count);
        let ranks = blocks.into_iter().map(RankDraft::new).collect();
        Self { graph, options, pieces, channels, ranks }
    }

    /// Lowers all pieces in order.
    pub(super) fn program(mut self) -> Program {
        for piece in &self.pieces.pieces {
            let tree = &self.pieces.trees[piece.tree];
            let moving = Move { tree, piece, lane: (piece.turn + tree.root) % self.channels.lanes };
            match tree.action {
                Action::Copy => tree.outwards.iter().for_each(|&rank| self.copy(&moving, rank)),
                Action::Reduce => tree.outwards.iter().rev().for_each(|&rank| self.reduce(&moving, rank)),
            }
        }
        self.copy_own_chunks();
        self.finish()
    }

    /// One rank's steps of a copied piece: a receive, and a send to each neighbour away from the root. One of the
    /// sends is fused with the receive where a block has both peers.
    fn copy(&mut self, moving: &Move<'_>, rank: u32) {
        let Move { tree, piece, .. } = moving;
        let place = self.copied_chunks(moving, rank);
        let away = &tree.away[rank as usize];
        if rank == tree.root {
            for &to in away {
                let block = self.sending_block(moving, rank, to);
                let sums = self.ranks[rank as usize].sums_in(piece.first, piece.count);
                self.ranks[rank as usize].push(block, Operation::Send, place, place, piece.count, &sums);
            }
            return;
        }
        let from = tree.towards_root[rank as usize];
        let block = self.receiving_block(moving, from, rank);
        let fused = away.iter().copied().find(|&to| self.sending_block(moving, rank, to) == block);
        let operation = if fused.is_some() { Operation::ReceiveCopySend } else { Operation::Receive };
        let received = self.ranks[rank as usize].push(block, operation, place, place, piece.count, &[]);
        for &to in away.iter().filter(|&&to| Some(to) != fused) {
            let block = self.sending_block(moving, rank, to);
            self.ranks[rank as usize].push(block, Operation::Send, place, place, piece.count, &[received]);
        }
    }

    /// One rank's steps of a reduced piece: neighbours away from the root are added one after the other, and the sum
    /// goes on towards the root, fused with the last addition where a block has both peers.
    fn reduce(&mut self, moving: &Move<'_>, rank: u32) {
        let Move { tree, piece, .. } = moving;
        let is_root = rank == tree.root;
        let near = tree.towards_root[rank as usize];
        let out = (!is_root).then(|| self.sending_block(moving, rank, near));
        let mut sources: Vec<usize> =
            tree.away[rank as usize].iter().map(|&from| self.receiving_block(moving, from, rank)).collect();
        let fused = out.and_then(|out| sources.iter().position(|&block| block == out));
        if let Some(fused) = fused {
            let last = sources.remove(fused);
            sources.push(last);
        }
        let own = Chunks { buffer: Buffer::Input, offset: Some(piece.first) };
        let is_stored = is_root || sources.len() > usize::from(fused.is_some());
        let sum = if is_stored { self.sum_chunks(moving, rank) } else { own };
        let (mut have, mut previous): (Chunks, Option<At>) = (own, None);
        for (position, &block) in sources.iter().enumerate() {
            let is_fused = fused.is_some() && position + 1 == sources.len();
            let waits = previous.as_slice();
            let (operation, target) = match is_fused {
                true => (Operation::ReceiveReduceSend, have),
                false => (Operation::ReceiveReduceCopy, sum),
            };
            previous = Some(self.ranks[rank as usize].push(block, operation, have, target, piece.count, waits));
            have = target;
        }
        match out {
            Some(out) if fused.is_none() => {
                self.ranks[rank as usize].push(out, Operation::Send, have, have, piece.count, previous.as_slice());
            }
            Some(_) => {}
            None => self.ranks[rank as usize].note_sum(piece.first, piece.count, previous),
        }
    }

    /// Where a rank keeps a copied piece.
    fn copied_chunks(&self, moving: &Move<'_>, rank: u32) -> Chunks {
        let (first, is_root) = (moving.piece.first, rank == moving.tree.root);
        let (buffer, offset) = match self.graph.collective.kind() {
            CollectiveKind::Allreduce if self.options.in_place => (Buffer::Input, first),
            CollectiveKind::Allgather if is_root && !self.options.in_place => {
                (Buffer::Input, first - self.share_start(rank))
            }
            CollectiveKind::Broadcast if is_root && !self.options.in_place => (Buffer::Input, first),
            _ => (Buffer::Output, first),
        };
        Chunks { buffer, offset: Some(offset) }
    }

    /// Where a rank keeps the running sum of a piece. Scratch is never used twice, so it needs no ordering.
    fn sum_chunks(&mut self, moving: &Move<'_>, rank: u32) -> Chunks {
        let (piece, is_root) = (moving.piece, rank == moving.tree.root);
        let is_allreduce = self.graph.collective.kind() == CollectiveKind::Allreduce;
        let (buffer, offset) = match self.options.in_place {
            true if is_root || is_allreduce => (Buffer::Input, piece.first),
            false if is_allreduce => (Buffer::Output, piece.first),
            false if is_root && self.graph.collective.kind() == CollectiveKind::ReduceScatter => {
                (Buffer::Output, piece.first - self.share_start(rank))
            }
            false if is_root => (Buffer::Output, piece.first),
            _ => (Buffer::Scratch, self.ranks[rank as usize].allocate_scratch(piece.count)),
        };
        Chunks { buffer, offset: Some(offset) }
    }

    fn share_start(&self, rank: u32) -> u32 {
        rank * (self.pieces.chunk_count / self.graph.rank_count)
    }

    fn sending_block(&self, moving: &Move<'_>, from: u32, to: u32) -> usize {
        let channel = self.channels.of_hop(moving.lane, from, to, self.graph.rank_count);
        self.ranks[from as usize].block_to(to, channel)
    }

    fn receiving_block(&self, moving: &Move<'_>, from: u32, to: u32) -> usize {
        let channel = self.channels.of_hop(moving.lane, from, to, self.graph.rank_count);
        self.ranks[to as usize].block_from(from, channel)
    }

    /// Out of place, what a rank starts with and must end with is copied by a block of its own, which nobody waits
    /// for: others read it from the input.
    fn copy_own_chunks(&mut self) {
        if self.options.in_place {
            return;
        }
        let share = self.pieces.chunk_count / self.graph.rank_count;
        let (ranks, count) = match self.graph.collective.kind() {
            CollectiveKind::Allgather => (self.graph.rank_count, share),
            CollectiveKind::Broadcast => (1, self.pieces.chunk_count),
            _ => return,
        };
        let most = self.options.profile.limits().chunks_per_step;
        for rank in 0..ranks {
            let target = if ranks > 1 { self.share_start(rank) } else { 0 };
            self.ranks[rank as usize].copy_locally(count, target, most);
        }
    }

    fn finish(self) -> Program {
        let kind = self.graph.collective.kind();
        let bytes_max = match self.options.profile.limits().bytes_max_is_exclusive {
            true => self.options.bytes_max + 1,
            false => self.options.bytes_max,
        };
        let (input, output) = self.buffer_sizes();
        let ranks = (0_u32..).zip(self.ranks).map(|(rank, draft)| draft.finish(rank, input, output));
        Program {
            name: self.options.name.clone(),
            protocol: Protocol::Simple,
            channel_count: self.channels.count(),
            chunk_count: self.pieces.chunk_count,
            rank_count: self.graph.rank_count,
            collective: kind,
            in_place: self.options.in_place,
            out_of_place: Some(!self.options.in_place),
            bytes_min: Some(0),
            bytes_max: Some(bytes_max),
            thread_count: None,
            ranks: ranks.collect(),
        }
    }

    /// `i_chunks` and `o_chunks`; in place everything is addressed through one buffer and the other has none.
    fn buffer_sizes(&self) -> (u32, u32) {
        let (whole, share) = (self.pieces.chunk_count, self.pieces.chunk_count / self.graph.rank_count);
        match (self.graph.collective.kind(), self.options.in_place) {
            (CollectiveKind::Allgather | CollectiveKind::Broadcast, true) => (0, whole),
            (_, true) => (whole, 0),
            (CollectiveKind::Allgather, false) => (share, whole),
            (CollectiveKind::ReduceScatter, false) => (whole, share),
            (_, false) => (whole, whole),
        }
    }
}
