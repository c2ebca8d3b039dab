//! Numbers blocks, channels, remote buffers and semaphores, and writes operations with them.

use std::collections::{BTreeMap, BTreeSet};

use super::atoms::{Atoms, Sum};
use super::draft::{Draft, DraftOp, Notice, Room};
use super::layout::{Layout, Spot, SpotCopy};
use super::room::{REMOTES, SPLIT};
use super::switches::{SwitchChannels, own_copies};
use super::{ExecutionLowerError, ExecutionLowerOptions, Stop, check_stop};
use crate::msccl::Buffer;
use crate::mscclpp::program::{
    ChannelType, ChunkRef, ExecutionBlock, ExecutionOp, ExecutionRank, OpName, RankChannels, RefPlace, RemoteBuffer,
};
use crate::need::Certainty;

/// What a person can do about a block with too many peers.
pub(super) const LESS_DEGREE: &str = "use trees of lower degree";

/// A block: rank, and number at the rank.
type End = (u32, u32);

/// A channel: whether it is a port, and its ends in order.
type Channel = (bool, End, End);

/// A block before its numbers.
struct Block {
    rank: u32,
    number: u32,
    ops: Vec<DraftOp>,
    /// The semaphore that it acquires first, and the one that it releases last.
    acquires: Option<u32>,
    releases: Option<u32>,
}

/// All blocks of a plan.
pub(super) struct Assembly<'a, P> {
    layout: &'a Layout,
    atoms: &'a Atoms,
    is_port: P,
    options: &'a ExecutionLowerOptions,
    blocks: Vec<Block>,
    /// By rank.
    semaphores: Vec<u32>,
    /// By rank: blocks that meet at the end.
    meeting: Vec<u32>,
    channels: BTreeMap<Notice, Channel>,
    switches: SwitchChannels<'a>,
}

impl<'a, P: Fn(u32, u32) -> bool> Assembly<'a, P> {
    /// Adds what ranks copy by themselves, and numbers the blocks.
    pub(super) fn new(
        layout: &'a Layout,
        atoms: &'a Atoms,
        mut lanes: Vec<BTreeMap<u32, Draft>>,
        is_port: P,
        options: &'a ExecutionLowerOptions,
    ) -> Self {
        let ranks = layout.ranks as usize;
        let mut assembly = Self {
            layout,
            atoms,
            is_port,
            options,
            blocks: Vec::new(),
            semaphores: vec![0; ranks],
            meeting: vec![0; ranks],
            channels: BTreeMap::new(),
            switches: SwitchChannels::new(atoms),
        };
        let room = Room { operations: options.profile.limits().operations_per_block as usize, channels: 0 };
        for rank in 0..layout.ranks {
            for own in own_copies(layout, atoms, rank) {
                if !lanes.iter().any(|lane| lane.contains_key(&rank))
                    && let Some(first) = lanes.first_mut()
                {
                    first.insert(rank, Draft::new(room));
                }
                let shortest = lanes.iter_mut().filter_map(|lane| lane.get_mut(&rank)).min_by_key(|draft| draft.len());
                if let Some(draft) = shortest {
                    draft.own_copy(own);
                }
            }
            if layout.landing() > 0 {
                assembly.meet_and_settle(rank, &mut lanes);
            }
            let mut number = 0;
            for draft in lanes.iter_mut().filter_map(|lane| lane.remove(&rank)) {
                assembly.number(rank, &mut number, draft);
            }
        }
        assembly.channels = assembly.connect();
        assembly
    }

    /// In all-to-all in place: once all blocks of a rank have met, what landed goes where it belongs.
    fn meet_and_settle(&mut self, rank: u32, lanes: &mut [BTreeMap<u32, Draft>]) {
        let (share, ranks) = (self.layout.share, self.layout.ranks);
        let mut drafts: Vec<&mut Draft> = lanes.iter_mut().filter_map(|lane| lane.get_mut(&rank)).collect();
        let count = u32::try_from(drafts.len()).expect("there are at most 32 lanes");
        self.meeting[rank as usize] = count;
        for (position, draft) in (0..count).zip(&mut drafts) {
            // Sources of neighbouring numbers are one copy, but for the rank's own block, which stays.
            let (first, end) = (ranks * position / count, ranks * (position + 1) / count);
            let parts = [first..end.min(rank).max(first), first.max(rank + 1).min(end)..end];
            let copies: Vec<_> = parts
                .into_iter()
                .filter(|part| !part.is_empty())
                .map(|part| {
                    let index = part.start * share;
                    let spot = |buffer| Spot { buffer, index };
                    SpotCopy {
                        from: spot(Buffer::Scratch),
                        to: spot(Buffer::Input),
                        count: (part.end - part.start) * share,
                    }
                })
                .collect();
            draft.barrier(&copies);
        }
    }

    fn number(&mut self, rank: u32, number: &mut u32, draft: Draft) {
        let count = draft.blocks.len();
        for (position, ops) in draft.blocks.into_iter().enumerate() {
            let semaphores = &mut self.semaphores[rank as usize];
            let acquires = (position > 0).then(|| *semaphores - 1);
            let releases = (position + 1 < count).then(|| {
                *semaphores += 1;
                *semaphores - 1
            });
            self.blocks.push(Block { rank, number: *number, ops, acquires, releases });
            *number += 1;
        }
    }

    /// The channel of every notice: one for each two blocks that have something to tell each other.
    fn connect(&self) -> BTreeMap<Notice, Channel> {
        let (mut sent, mut awaited) = (Vec::new(), Vec::new());
        for block in &self.blocks {
            let end = (block.rank, block.number);
            for op in &block.ops {
                match op {
                    DraftOp::Signal { notices, .. } => sent.extend(notices.iter().map(|&notice| (notice, end))),
                    DraftOp::PortPut(hops) => sent.extend(hops.iter().map(|&hop| (Notice::Hop(hop), end))),
                    DraftOp::Wait { notices, .. } => awaited.extend(notices.iter().map(|&notice| (notice, end))),
                    _ => {}
                }
            }
        }
        sent.sort_unstable();
        awaited.sort_unstable();
        let channel = |(notice, from): (Notice, End)| {
            let at = awaited.binary_search_by_key(&notice, |&(notice, _)| notice).ok()?;
            let &(_, to): &(Notice, End) = awaited.get(at)?;
            Some((notice, ((self.is_port)(from.0, to.0), from.min(to), from.max(to))))
        };
        sent.into_iter().filter_map(channel).collect()
    }

    /// The ranks of the plan, or the limit that it exceeds.
    pub(super) fn plan(
        self,
        stop: Stop<'_>,
    ) -> Result<Result<Vec<ExecutionRank>, ExecutionLowerError>, ExecutionLowerError> {
        if let Some(over) = self.too_many_channels() {
            return Ok(Err(over));
        }
        let (input_chunks, output_chunks) = self.layout.buffers();
        let mut ranks: Vec<ExecutionRank> = (0..self.layout.ranks)
            .zip(&self.atoms.scratch)
            .map(|(id, &scratch_chunks)| ExecutionRank {
                id,
                input_chunks,
                output_chunks,
                scratch_chunks,
                channels: Vec::new(),
                remote_buffers: Vec::new(),
                semaphores: vec![0; self.semaphores[id as usize] as usize],
                blocks: Vec::new(),
            })
            .collect();
        let numbers = self.number_channels(&mut ranks);
        for rank in &mut ranks {
            rank.channels.extend(self.switches.list(rank.id, (input_chunks, output_chunks)));
        }
        let remotes = self.number_remotes(&mut ranks);
        for (position, block) in self.blocks.iter().enumerate() {
            check_stop(stop, position)?;
            let written = self.block(block, &numbers, &remotes[block.rank as usize]);
            ranks[block.rank as usize].blocks.push(written);
        }
        Ok(match self.over_limit(&ranks) {
            Some(over) => Err(over),
            None => Ok(ranks),
        })
    }

    /// The limit on channels of one type, where a block needs more: told before anything is numbered.
    fn too_many_channels(&self) -> Option<ExecutionLowerError> {
        let mut channels: Vec<Channel> = self.channels.values().copied().collect();
        channels.sort_unstable();
        channels.dedup();
        let mut counts: BTreeMap<(End, bool), usize> = BTreeMap::new();
        for (is_port, low, high) in channels {
            for end in [low, high] {
                *counts.entry((end, is_port)).or_default() += 1;
            }
        }
        let profile = self.options.profile;
        let limit = profile.limits().channels_per_block;
        let over = counts.into_iter().find(|&(_, need)| need > limit as usize);
        over.map(|(((rank, _), _), need)| ExecutionLowerError::OverLimit {
            profile,
            what: "channels in a block",
            limit: limit.into(),
            need: need as u64,
            rank: Some(rank),
            certainty: Certainty::Found,
            remedy: LESS_DEGREE,
        })
    }

    /// Lists the channels of both ends in one order, so that the k-th between two ranks is the k-th at both.
    fn number_channels(&self, ranks: &mut [ExecutionRank]) -> BTreeMap<(End, Channel), u32> {
        let channels: BTreeSet<Channel> = self.channels.values().copied().collect();
        let mut numbers = BTreeMap::new();
        for is_port in [false, true] {
            let mut peers: Vec<Vec<u32>> = vec![Vec::new(); ranks.len()];
            for &channel in channels.iter().filter(|channel| channel.0 == is_port) {
                let (_, low, high) = channel;
                for (own, other) in [(low, high), (high, low)] {
                    let list = &mut peers[own.0 as usize];
                    numbers.insert((own, channel), u32::try_from(list.len()).unwrap_or(u32::MAX));
                    list.push(other.0);
                }
            }
            for (rank, peers) in ranks.iter_mut().zip(peers).filter(|(_, peers)| !peers.is_empty()) {
                rank.channels.push(RankChannels::Peers { is_port, peers });
            }
        }
        numbers
    }

    /// By rank: numbers of the buffers of others that it writes to.
    fn number_remotes(&self, ranks: &mut [ExecutionRank]) -> Vec<BTreeMap<(u32, Buffer), u32>> {
        let mut used: Vec<BTreeMap<(u32, Buffer), BTreeSet<ChannelType>>> = vec![BTreeMap::new(); ranks.len()];
        for hop in self.atoms.hops.iter().filter(|hop| !hop.is_stored) {
            let access = self.channel_type(hop.from, hop.to);
            used[hop.from as usize].entry((hop.to, hop.target.buffer)).or_default().insert(access);
        }
        let mut numbers = Vec::with_capacity(ranks.len());
        for (rank, used) in ranks.iter_mut().zip(used) {
            numbers.push((0..).zip(used.keys()).map(|(number, &key)| (key, number)).collect());
            let remote = |((rank, buffer), access): ((u32, Buffer), BTreeSet<ChannelType>)| RemoteBuffer {
                rank,
                buffer,
                access: access.into_iter().collect(),
            };
            rank.remote_buffers = used.into_iter().map(remote).collect();
        }
        numbers
    }

    fn channel_type(&self, a: u32, b: u32) -> ChannelType {
        if (self.is_port)(a, b) { ChannelType::Port } else { ChannelType::Memory }
    }

    fn block(
        &self,
        block: &Block,
        numbers: &BTreeMap<(End, Channel), u32>,
        remotes: &BTreeMap<(u32, Buffer), u32>,
    ) -> ExecutionBlock {
        let end = (block.rank, block.number);
        let mut channels: BTreeMap<ChannelType, BTreeSet<u32>> = BTreeMap::new();
        let mut buffers: BTreeMap<ChannelType, BTreeSet<u32>> = BTreeMap::new();
        for op in &block.ops {
            for channel in notices(op).into_iter().filter_map(|notice| self.channels.get(&notice)) {
                let kind = if channel.0 { ChannelType::Port } else { ChannelType::Memory };
                channels.entry(kind).or_default().extend(numbers.get(&(end, *channel)));
            }
            if let DraftOp::Store(store) = op {
                channels
                    .entry(ChannelType::Switch)
                    .or_default()
                    .extend(self.switches.used_by(&self.atoms.stores[*store]));
            }
            for hop in hops(op).iter().filter_map(|&hop| self.atoms.hops.get(hop)) {
                let kind = self.channel_type(hop.from, hop.to);
                buffers.entry(kind).or_default().extend(remotes.get(&(hop.to, hop.target.buffer)));
            }
        }
        let list = |sets: BTreeMap<ChannelType, BTreeSet<u32>>| -> Vec<(ChannelType, Vec<u32>)> {
            sets.into_iter().map(|(kind, ids)| (kind, ids.into_iter().collect())).collect()
        };
        let mut written = ExecutionBlock {
            id: block.number,
            channels: list(channels),
            remote_buffers: list(buffers),
            operations: Vec::new(),
        };
        let names = Names {
            assembly: self,
            end,
            numbers,
            remotes,
            channels: &written.channels,
            buffers: &written.remote_buffers,
        };
        written.operations = block.ops.iter().map(|op| names.operation(op, block)).collect();
        written
    }

    fn over_limit(&self, ranks: &[ExecutionRank]) -> Option<ExecutionLowerError> {
        let profile = self.options.profile;
        let limits = profile.limits();
        let (fewer, less_degree) = ("plan with fewer trees or chunks", LESS_DEGREE);
        let most = |lists: &[(ChannelType, Vec<u32>)]| lists.iter().map(|(_, ids)| ids.len()).max().unwrap_or(0);
        ranks.iter().find_map(|rank| {
            let of_rank = [
                ("blocks at once", limits.blocks_resident, rank.blocks.len(), fewer),
                (REMOTES, limits.index + 1, rank.remote_buffers.len(), SPLIT),
            ];
            let of_blocks = rank.blocks.iter().flat_map(|block| {
                [
                    ("operations in a block", limits.operations_per_block, block.operations.len(), fewer),
                    ("channels in a block", limits.channels_per_block, most(&block.channels), less_degree),
                    ("remote buffers in a block", limits.remotes_per_block, most(&block.remote_buffers), less_degree),
                ]
            });
            let over = of_rank.into_iter().chain(of_blocks).find(|&(_, limit, need, _)| need > limit as usize);
            over.map(|(what, limit, need, remedy)| ExecutionLowerError::OverLimit {
                profile,
                what,
                limit: limit.into(),
                need: need as u64,
                rank: Some(rank.id),
                certainty: Certainty::Found,
                remedy,
            })
        })
    }
}

/// Notices that an operation sends or waits for.
fn notices(op: &DraftOp) -> Vec<Notice> {
    match op {
        DraftOp::Signal { notices, .. } | DraftOp::Wait { notices, .. } => notices.clone(),
        DraftOp::PortPut(hops) => hops.iter().map(|&hop| Notice::Hop(hop)).collect(),
        _ => Vec::new(),
    }
}

/// Hops that an operation makes.
fn hops(op: &DraftOp) -> &[usize] {
    match op {
        DraftOp::Put(hops) | DraftOp::PortPut(hops) | DraftOp::Sum { sends: hops, .. } => hops,
        _ => &[],
    }
}

/// How a block calls channels and buffers.
struct Names<'a, P> {
    assembly: &'a Assembly<'a, P>,
    end: End,
    numbers: &'a BTreeMap<(End, Channel), u32>,
    remotes: &'a BTreeMap<(u32, Buffer), u32>,
    channels: &'a [(ChannelType, Vec<u32>)],
    buffers: &'a [(ChannelType, Vec<u32>)],
}

/// Position of a number in a block's list for a type.
fn position(lists: &[(ChannelType, Vec<u32>)], kind: ChannelType, number: u32) -> u32 {
    let list = lists.iter().find(|(of, _)| *of == kind).map_or(&[][..], |(_, ids)| ids);
    let position = list.iter().position(|&id| id == number).expect("the lists hold all that the block uses");
    u32::try_from(position).expect("lists are short")
}

impl<P: Fn(u32, u32) -> bool> Names<'_, P> {
    fn channel(&self, notice: Notice, kind: ChannelType) -> u32 {
        let channel = self.assembly.channels[&notice];
        position(self.channels, kind, self.numbers[&(self.end, channel)])
    }

    fn local(spot: Spot, size: u32) -> ChunkRef {
        ChunkRef { place: RefPlace::Local(spot.buffer), index: spot.index, size }
    }

    fn remote(&self, hop: usize) -> ChunkRef {
        let hop = &self.assembly.atoms.hops[hop];
        let kind = self.assembly.channel_type(hop.from, hop.to);
        let id = position(self.buffers, kind, self.remotes[&(hop.to, hop.target.buffer)]);
        ChunkRef { place: RefPlace::Remote(id), index: hop.target.index, size: hop.count }
    }

    fn operation(&self, op: &DraftOp, block: &Block) -> ExecutionOp {
        let semaphore =
            |name, id: Option<u32>| ExecutionOp { semaphores: id.into_iter().collect(), ..ExecutionOp::new(name) };
        match op {
            DraftOp::Nop => ExecutionOp::new(OpName::Nop),
            DraftOp::Acquire => semaphore(OpName::SemaphoreAcquire, block.acquires),
            DraftOp::Release => semaphore(OpName::SemaphoreRelease, block.releases),
            DraftOp::Barrier => {
                let blocks = self.assembly.meeting[block.rank as usize];
                ExecutionOp { barrier: Some((0, blocks)), ..ExecutionOp::new(OpName::Barrier) }
            }
            DraftOp::Signal { notices, is_port, is_relaxed } => {
                let name = if *is_relaxed { OpName::RelaxedSignal } else { OpName::Signal };
                self.notice(name, notices, *is_port)
            }
            DraftOp::Wait { notices, is_port, is_relaxed } => {
                let name = if *is_relaxed { OpName::RelaxedWait } else { OpName::Wait };
                self.notice(name, notices, *is_port)
            }
            DraftOp::Put(hops) => self.put(OpName::Put, ChannelType::Memory, hops),
            DraftOp::PortPut(hops) => {
                let notices = hops.iter().map(|&hop| self.channel(Notice::Hop(hop), ChannelType::Port));
                ExecutionOp { channels: notices.collect(), ..self.put(OpName::PutSignal, ChannelType::Port, hops) }
            }
            DraftOp::Store(store) => {
                let list = self.channels.iter().find(|(kind, _)| *kind == ChannelType::Switch);
                let list = list.map_or(&[][..], |(_, ids)| ids);
                self.assembly.switches.operation(&self.assembly.atoms.stores[*store], list)
            }
            DraftOp::Sum { sum: Sum { first, second, result, count }, sends } => {
                let mut targets = vec![Self::local(*result, *count)];
                targets.extend(sends.iter().map(|&hop| self.remote(hop)));
                ExecutionOp {
                    sources: vec![Self::local(*first, *count), Self::local(*second, *count)],
                    targets,
                    channel_type: (!sends.is_empty()).then_some(ChannelType::Memory),
                    reduce_op: Some("sum".to_owned()),
                    ..ExecutionOp::new(if sends.is_empty() { OpName::Reduce } else { OpName::ReduceSend })
                }
            }
            DraftOp::Copy { from, to, count } => ExecutionOp {
                sources: vec![Self::local(*from, *count)],
                targets: vec![Self::local(*to, *count)],
                ..ExecutionOp::new(OpName::Copy)
            },
        }
    }

    fn notice(&self, name: OpName, notices: &[Notice], is_port: bool) -> ExecutionOp {
        let kind = if is_port { ChannelType::Port } else { ChannelType::Memory };
        let channels = notices.iter().map(|&notice| self.channel(notice, kind)).collect();
        ExecutionOp { channels, channel_type: Some(kind), ..ExecutionOp::new(name) }
    }

    fn put(&self, name: OpName, kind: ChannelType, hops: &[usize]) -> ExecutionOp {
        let source = |&hop: &usize| {
            let hop = &self.assembly.atoms.hops[hop];
            Self::local(hop.source, hop.count)
        };
        ExecutionOp {
            sources: hops.iter().map(source).collect(),
            targets: hops.iter().map(|&hop| self.remote(hop)).collect(),
            channel_type: Some(kind),
            ..ExecutionOp::new(name)
        }
    }
}
