//! Where the chunks of a collective lie in the buffers of its ranks.

use std::ops::Range;

use canopy_schedule::{CollectiveKind, Shares, TransferGraph};

use super::remedies::{FEWER_CHUNKS, FEWER_INSTANCES};
use super::{LowerError, LowerOptions};
use crate::batches;
use crate::msccl::profile::Profile;
use crate::msccl::program::Buffer;
use crate::need::Certainty;
use crate::promise::OwnCopy;

/// Where a range of chunks lies: chunk `c` is at offset `c + shift` of the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) buffer: Buffer,
    shift: i64,
}

impl Spot {
    /// The scratch of a rank, where every chunk has a place of its own until scratch is allotted.
    pub(super) const SCRATCH: Self = Self { buffer: Buffer::Scratch, shift: 0 };

    /// Offset of a chunk in the buffer.
    pub(super) fn offset(self, chunk: u32) -> u32 {
        u32::try_from(i64::from(chunk) + self.shift).expect("chunks lie inside the buffers made for them")
    }
}

/// The numbering of a graph's chunks and the buffers of a file for them.
///
/// The chunks of the graph are counted in units of the greatest common divisor of all its ranges, so that
/// `nchunksperloop` is as small as the plan allows: message sizes must be a multiple of it.
pub(super) struct Message {
    pub(super) kind: CollectiveKind,
    in_place: bool,
    pub(super) rank_count: u32,
    /// Chunks of one share, in all-to-all of one block; of the whole vector where shares differ.
    pub(super) share: u32,
    /// Chunks of the graph in one chunk of the file.
    pub(super) unit: u64,
    /// Chunks that are numbered.
    pub(super) total: u32,
    /// Instances of the plan; each has an equal part of every share, one after the other.
    pub(super) instances: u32,
}

impl Message {
    /// Numbers the chunks, where offsets can name them all.
    pub(super) fn new(graph: &TransferGraph, options: &LowerOptions) -> Result<Self, LowerError> {
        let kind = graph.collective.kind();
        // What an allreduce promises is the whole vector, wherever its parts are added up.
        if graph.shares != Shares::Equal && kind != CollectiveKind::Allreduce {
            return Err(LowerError::Shares { profile: options.profile });
        }
        let (unit, in_place) = (batches::unit(graph).max(1), options.in_place);
        let mut message = Self { kind, in_place, rank_count: graph.rank_count, share: 0, unit, total: 0, instances: 1 };
        let share = graph.chunks_per_share / unit;
        let longest = match kind {
            CollectiveKind::Broadcast | CollectiveKind::Reduce => Some(share),
            _ => u64::try_from(graph.shares.weight_total(graph.rank_count)).ok().and_then(|all| share.checked_mul(all)),
        };
        check_size(graph.rank_count, longest, options.profile, FEWER_CHUNKS)?;
        let narrow = |chunks: u64| u32::try_from(chunks).expect("1,024 ranks with vectors of 32,838 chunks");
        message.share = narrow(share);
        message.total = match kind {
            CollectiveKind::AllToAll => narrow(longest.unwrap_or(0) * u64::from(graph.rank_count)),
            _ => narrow(longest.unwrap_or(0)),
        };
        if graph.shares != Shares::Equal {
            message.share = message.total;
        }
        Ok(message)
    }

    /// The same with this many instances, each with as many chunks as this has.
    pub(super) fn times(&self, instances: u32, profile: Profile) -> Result<Self, LowerError> {
        let times = |chunks: u32| u64::from(chunks) * u64::from(instances);
        let longest = match self.kind {
            CollectiveKind::Broadcast | CollectiveKind::Reduce => times(self.share),
            _ => times(self.vector()),
        };
        if instances > 1 {
            check_size(self.rank_count, Some(longest), profile, FEWER_INSTANCES)?;
        }
        let narrow = |chunks: u64| u32::try_from(chunks).expect("1,024 ranks with vectors of 32,838 chunks");
        Ok(Self { share: narrow(times(self.share)), total: narrow(times(self.total)), instances, ..*self })
    }

    /// Number in the graph of a chunk of the file, or of the one it is a part of.
    pub(super) fn graph_chunk(&self, chunk: u32) -> u64 {
        let share = self.share / self.instances;
        (u64::from(self.share_of(chunk)) * u64::from(share) + u64::from(chunk % self.share % share)) * self.unit
    }

    /// `nchunksperloop`. The runtimes count one share of a gather or scatter as the message.
    pub(super) fn chunk_count(&self) -> u32 {
        match self.kind {
            CollectiveKind::Broadcast | CollectiveKind::Reduce | CollectiveKind::Gather | CollectiveKind::Scatter => {
                self.share
            }
            _ => self.vector(),
        }
    }

    /// Chunks of one share of every rank.
    fn vector(&self) -> u32 {
        if self.kind == CollectiveKind::Allreduce { self.total } else { self.share * self.rank_count }
    }

    /// `i_chunks` and `o_chunks`; a buffer that is not addressed has none.
    pub(super) fn buffers(&self, rank: u32) -> (u32, u32) {
        let (vector, share, is_root) = (self.vector(), self.share, rank == 0);
        match (self.kind, self.in_place) {
            (CollectiveKind::Allgather, false) => (share, vector),
            (CollectiveKind::Allgather, true) => (0, vector),
            (CollectiveKind::ReduceScatter, false) => (vector, share),
            (CollectiveKind::Broadcast | CollectiveKind::Reduce, false) => (share, share),
            (CollectiveKind::Broadcast, true) => (0, share),
            (CollectiveKind::Reduce, true) => (share, 0),
            (CollectiveKind::Gather, in_place) if is_root => (if in_place { 0 } else { share }, vector),
            (CollectiveKind::Gather, _) => (share, 0),
            (CollectiveKind::Scatter, in_place) if is_root => (vector, if in_place { 0 } else { share }),
            (CollectiveKind::Scatter, _) => (0, share),
            (CollectiveKind::Allreduce | CollectiveKind::AllToAll, false) => (vector, vector),
            (_, true) => (vector, 0),
        }
    }

    /// The chunks a rank holds at the start, and where.
    pub(super) fn start(&self, rank: u32) -> Option<(Range<u32>, Spot)> {
        let (share, vector, is_root) = (self.share, self.vector(), rank == 0);
        let own = rank * share..(rank + 1) * share;
        let at = |buffer, first: u32| Spot { buffer, shift: -i64::from(first) };
        match self.kind {
            CollectiveKind::Allgather if self.in_place => Some((own, at(Buffer::Output, 0))),
            CollectiveKind::Gather if self.in_place && is_root => Some((own, at(Buffer::Output, 0))),
            CollectiveKind::Allgather | CollectiveKind::Gather => Some((own.clone(), at(Buffer::Input, own.start))),
            CollectiveKind::Broadcast if !is_root => None,
            CollectiveKind::Broadcast if self.in_place => Some((0..share, at(Buffer::Output, 0))),
            CollectiveKind::Broadcast | CollectiveKind::Reduce => Some((0..share, at(Buffer::Input, 0))),
            CollectiveKind::Scatter if !is_root => None,
            CollectiveKind::AllToAll => {
                let first = rank * vector;
                Some((first..first + vector, at(Buffer::Input, first)))
            }
            CollectiveKind::ReduceScatter | CollectiveKind::Allreduce | CollectiveKind::Scatter => {
                Some((0..vector, at(Buffer::Input, 0)))
            }
        }
    }

    /// The share, in all-to-all the block, that a chunk belongs to.
    pub(super) fn share_of(&self, chunk: u32) -> u32 {
        chunk / self.share
    }

    /// Position of a chunk of a tree among those that go before and after it: in its share, in the tree where shares
    /// differ.
    pub(super) fn position(&self, tree: &Range<u32>, chunk: u32) -> u32 {
        let is_one = self.kind == CollectiveKind::Allreduce && self.share == self.total;
        if is_one { chunk - tree.start } else { chunk % self.share }
    }

    /// Where a chunk must end on a rank; none where the collective does not promise it there.
    pub(super) fn goal(&self, rank: u32, chunk: u32) -> Option<Spot> {
        let (share, is_root) = (self.share_of(chunk), rank == 0);
        let both = if self.in_place { Buffer::Input } else { Buffer::Output };
        let from_share = |buffer| Spot { buffer, shift: -i64::from(share * self.share) };
        let whole = |buffer| Spot { buffer, shift: 0 };
        match self.kind {
            CollectiveKind::Allgather | CollectiveKind::Broadcast => Some(whole(Buffer::Output)),
            CollectiveKind::Allreduce => Some(whole(both)),
            CollectiveKind::Gather => is_root.then_some(whole(Buffer::Output)),
            CollectiveKind::Reduce => is_root.then_some(whole(both)),
            CollectiveKind::ReduceScatter if share != rank => None,
            CollectiveKind::ReduceScatter if self.in_place => Some(whole(Buffer::Input)),
            CollectiveKind::ReduceScatter => Some(from_share(Buffer::Output)),
            // In place the root's own share stays where it is.
            CollectiveKind::Scatter if is_root && self.in_place => (share == 0).then_some(whole(Buffer::Input)),
            CollectiveKind::Scatter => (share == rank).then_some(from_share(Buffer::Output)),
            CollectiveKind::AllToAll => {
                let (source, destination) = (share / self.rank_count, share % self.rank_count);
                let shift = i64::from(source * self.share) - i64::from(share * self.share);
                (destination == rank).then_some(Spot { buffer: both, shift })
            }
        }
    }

    /// The chunks a rank is promised.
    pub(super) fn promised(&self, rank: u32) -> Vec<Range<u32>> {
        let own = rank * self.share..(rank + 1) * self.share;
        let all = 0..self.total;
        match self.kind {
            CollectiveKind::Allgather | CollectiveKind::Allreduce | CollectiveKind::Broadcast => vec![all],
            CollectiveKind::Gather | CollectiveKind::Reduce if rank == 0 => vec![all],
            CollectiveKind::Gather | CollectiveKind::Reduce => Vec::new(),
            CollectiveKind::ReduceScatter | CollectiveKind::Scatter => vec![own],
            CollectiveKind::AllToAll => {
                let blocks = (0..self.rank_count).map(|source| source * self.rank_count + rank);
                blocks.map(|block| block * self.share..(block + 1) * self.share).collect()
            }
        }
    }

    /// In all-to-all in place: the chunks a rank sends from where arriving ones must go. A rank's block for itself
    /// stays.
    pub(super) fn displaced(&self, rank: u32, arriving: &Range<u32>) -> Option<Range<u32>> {
        if self.kind != CollectiveKind::AllToAll || !self.in_place {
            return None;
        }
        let block = self.share_of(arriving.start);
        let (source, destination) = (block / self.rank_count, block % self.rank_count);
        let opposite = destination * self.rank_count + source;
        let within = arriving.start - block * self.share;
        let first = opposite * self.share + within;
        (destination == rank && source != rank).then_some(first..first + (arriving.end - arriving.start))
    }

    /// What a rank copies by itself. Nothing in place.
    pub(super) fn own_copy(&self, rank: u32) -> Option<OwnCopy> {
        OwnCopy::of(self.kind, 0, rank, self.share).filter(|_| !self.in_place)
    }
}

/// Refuses more ranks than a file lists and more chunks than offsets can name.
fn check_size(rank_count: u32, longest: Option<u64>, profile: Profile, remedy: &'static str) -> Result<(), LowerError> {
    let limits = profile.limits();
    let over = |what, limit: u32, need: u64, remedy| LowerError::OverLimit {
        profile,
        what,
        limit: u64::from(limit),
        need,
        rank: None,
        certainty: Certainty::Proven,
        remedy,
    };
    if rank_count > limits.children {
        let remedy = "split the ranks into groups with a file each";
        return Err(over("ranks", limits.children, rank_count.into(), remedy));
    }
    let need = longest.unwrap_or(u64::MAX);
    // The last step of up to 71 chunks starts before the last chunk; the exact check sees the written offsets.
    if need > u64::from(limits.offset + limits.chunks_per_step) {
        return Err(over("chunks as an offset", limits.offset, need - 1, remedy));
    }
    Ok(())
}
