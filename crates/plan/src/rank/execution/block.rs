//! A thread block in the making: operations whose peers have no numbers yet.

use std::collections::{BTreeMap, BTreeSet};

use super::lanes::PER_OPERATION;
use super::places::{Spot, Sum};
use crate::msccl::Buffer;
use crate::mscclpp::{ChannelType, ChunkRef, ExecutionBlock, ExecutionOp, ExecutorLimits, OpName, RefPlace};

/// A write to another rank.
#[derive(Clone, Copy)]
pub(super) struct Write {
    pub(super) peer: u32,
    pub(super) from: Spot,
    pub(super) to: (Buffer, u32),
}

/// An operation before its channels are numbered.
enum Op {
    Nop,
    Barrier,
    Notice { name: OpName, kind: ChannelType, peers: Vec<u32> },
    Put { name: OpName, kind: ChannelType, writes: Vec<Write> },
    Sum { sources: Vec<Spot>, result: Spot },
    Copy { from: Spot, to: Spot },
}

/// What a block has done since its threads last met.
#[derive(Default)]
struct Since {
    waited: bool,
    moved: bool,
    written: bool,
    /// Whether it waits, the channel, and the thread that does it.
    used: Vec<(bool, ChannelType, u32, usize)>,
}

/// One block of a rank.
#[derive(Default)]
pub(super) struct Block {
    ops: Vec<Op>,
    since: Since,
    /// Meetings of all blocks of the rank so far.
    pub(super) met: usize,
    /// Peers over memory channels, and over port channels.
    peers: [BTreeSet<u32>; 2],
}

/// The type of a channel between ranks of one box, or of two.
pub(super) const fn kind(is_port: bool) -> ChannelType {
    if is_port { ChannelType::Port } else { ChannelType::Memory }
}

/// Contributions that an operation adds at once.
fn per_sum(limits: &ExecutorLimits) -> usize {
    (limits.references_per_operation as usize).saturating_sub(1).max(1)
}

/// How many of some sums a block has room for that does nothing else, one at least.
pub(super) fn sums_at_once(sums: &[Sum], limits: &ExecutorLimits) -> usize {
    let rounds = sums.iter().map(|sum| sum.slots.len().div_ceil(per_sum(limits))).max().unwrap_or(0);
    // Threads meet once in a round, and a quarter is for meetings of blocks.
    let room = limits.operations_per_block as usize * 3 / 4;
    (room / rounds.max(1)).saturating_sub(1).max(1)
}

impl Block {
    /// A block that tells all its peers that they may write, and waits for them to say the same.
    pub(super) fn new(peers: [BTreeSet<u32>; 2]) -> Self {
        let mut block = Self { peers, ..Self::default() };
        for (names, is_wait) in
            [([OpName::RelaxedSignal, OpName::Signal], false), ([OpName::RelaxedWait, OpName::Wait], true)]
        {
            for (name, is_port) in names.into_iter().zip([false, true]) {
                let peers: Vec<u32> = block.peers[usize::from(is_port)].iter().copied().collect();
                block.notice(name, is_port, &peers, is_wait);
            }
        }
        block
    }

    /// Peers over memory channels, and over port channels.
    pub(super) const fn peers(&self) -> &[BTreeSet<u32>; 2] {
        &self.peers
    }

    fn nop(&mut self) {
        self.ops.push(Op::Nop);
        self.since = Since::default();
    }

    /// Notes that threads use channels, each its own, and lets them meet first where another thread has used one.
    fn uses(&mut self, kind: ChannelType, peers: &[u32], is_wait: bool) {
        let is_other = |(thread, peer): (usize, &u32)| {
            let used = self.since.used.iter();
            used.filter(|used| (used.0, used.1, used.2) == (is_wait, kind, *peer)).any(|used| used.3 != thread)
        };
        if peers.iter().enumerate().any(is_other) {
            self.nop();
        }
        self.since.used.extend(peers.iter().enumerate().map(|(thread, &peer)| (is_wait, kind, peer, thread)));
    }

    fn notice(&mut self, name: OpName, is_port: bool, peers: &[u32], is_wait: bool) {
        for peers in peers.chunks(PER_OPERATION) {
            self.uses(kind(is_port), peers, is_wait);
            self.ops.push(Op::Notice { name, kind: kind(is_port), peers: peers.to_vec() });
        }
        self.since.waited |= is_wait && !peers.is_empty();
    }

    /// Waits for what peers tell.
    pub(super) fn wait(&mut self, is_port: bool, peers: &[u32]) {
        self.notice(OpName::Wait, is_port, peers, true);
    }

    /// Writes to ranks of the box, and tells them.
    pub(super) fn put(&mut self, writes: &[Write], peers: &[u32]) {
        if self.since.waited || self.since.written {
            self.nop();
        }
        // All sources of an operation are in one buffer.
        for buffer in [Buffer::Input, Buffer::Output, Buffer::Scratch] {
            let of_buffer: Vec<Write> = writes.iter().filter(|write| write.from.buffer == buffer).copied().collect();
            for writes in of_buffer.chunks(PER_OPERATION) {
                self.ops.push(Op::Put { name: OpName::Put, kind: ChannelType::Memory, writes: writes.to_vec() });
                self.since.moved = true;
            }
        }
        self.tell(false, peers);
    }

    /// Writes to ranks of other boxes, whose proxies tell them: the last write to each.
    pub(super) fn port_put(&mut self, by_peer: &[Vec<Write>]) {
        if self.since.waited || self.since.written {
            self.nop();
        }
        let most = by_peer.iter().map(Vec::len).max().unwrap_or(0);
        for left in (0..most).rev() {
            let name = if left == 0 { OpName::PutSignal } else { OpName::Put };
            let nth = |writes: &Vec<Write>| writes.iter().rev().nth(left).copied();
            let writes: Vec<Write> = by_peer.iter().filter_map(nth).collect();
            for writes in writes.chunks(PER_OPERATION) {
                let peers: Vec<u32> = writes.iter().map(|write| write.peer).collect();
                self.uses(ChannelType::Port, &peers, false);
                self.ops.push(Op::Put { name, kind: ChannelType::Port, writes: writes.to_vec() });
            }
        }
    }

    /// Tells peers something after all that was done.
    pub(super) fn tell(&mut self, is_port: bool, peers: &[u32]) {
        if peers.is_empty() {
            return;
        }
        if self.since.waited || self.since.moved || self.since.written {
            self.nop();
        }
        self.notice(OpName::Signal, is_port, peers, false);
    }

    /// Adds up, as many contributions at once as an operation takes.
    pub(super) fn sum(&mut self, sums: &[Sum], limits: &ExecutorLimits) {
        let at_once = per_sum(limits);
        let rounds = sums.iter().map(|sum| sum.slots.len().div_ceil(at_once)).max().unwrap_or(0);
        for round in 0..rounds {
            if self.since.waited || self.since.moved || self.since.written {
                self.nop();
            }
            for Sum { own, slots, result } in sums {
                let Some(slots) = slots.chunks(at_once).nth(round) else { continue };
                let first = if round == 0 { *own } else { *result };
                let waiting = slots.iter().map(|&index| Spot { buffer: Buffer::Scratch, index, count: own.count });
                let sources = std::iter::once(first).chain(waiting).collect();
                self.ops.push(Op::Sum { sources, result: *result });
            }
            (self.since.moved, self.since.written) = (true, true);
        }
    }

    /// A copy that nothing of this block depends on before blocks meet.
    pub(super) fn copy(&mut self, from: Spot, to: Spot) {
        self.ops.push(Op::Copy { from, to });
        self.since.moved = true;
    }

    /// Meets all blocks of the rank until they have met so often.
    pub(super) fn meet(&mut self, times: usize) {
        while self.met < times {
            self.ops.push(Op::Barrier);
            self.since = Since::default();
            self.met += 1;
        }
    }

    /// Tells those who wrote over port channels that all has arrived, and waits until they say the same: proxies read
    /// the rank's memory until then.
    pub(super) fn acknowledge(&mut self) {
        let peers: Vec<u32> = self.peers[1].iter().copied().collect();
        self.tell(true, &peers);
        self.wait(true, &peers);
    }

    pub(super) const fn len(&self) -> usize {
        self.ops.len()
    }

    /// Buffers of others that it writes to.
    pub(super) fn remotes(&self) -> impl Iterator<Item = (u32, Buffer, ChannelType)> {
        let of = |op: &Op| match op {
            Op::Put { kind, writes, .. } => {
                writes.iter().map(|write| (write.peer, write.to.0, *kind)).collect::<Vec<_>>()
            }
            _ => Vec::new(),
        };
        self.ops.iter().flat_map(of)
    }

    /// The block, given the rank's numbers of its first channels of both types and of remote buffers, and how many
    /// blocks meet.
    pub(super) fn numbered(
        &self,
        id: u32,
        first: [u32; 2],
        remotes: &BTreeMap<(u32, Buffer), u32>,
        blocks: u32,
    ) -> ExecutionBlock {
        let mut channels = Vec::new();
        for (is_port, (first, peers)) in [false, true].into_iter().zip(first.into_iter().zip(&self.peers)) {
            if !peers.is_empty() {
                channels.push((kind(is_port), (first..).take(peers.len()).collect()));
            }
        }
        let mut used: BTreeMap<ChannelType, BTreeSet<u32>> = BTreeMap::new();
        for (peer, buffer, kind) in self.remotes() {
            used.entry(kind).or_default().extend(remotes.get(&(peer, buffer)));
        }
        let remote_buffers: Vec<(ChannelType, Vec<u32>)> =
            used.into_iter().map(|(kind, ids)| (kind, ids.into_iter().collect())).collect();
        let names = Names { peers: &self.peers, remotes, listed: &remote_buffers, blocks };
        let operations = self.ops.iter().map(|op| names.operation(op)).collect();
        ExecutionBlock { id, channels, remote_buffers, operations }
    }
}

/// How a block calls channels and buffers.
struct Names<'a> {
    peers: &'a [BTreeSet<u32>; 2],
    remotes: &'a BTreeMap<(u32, Buffer), u32>,
    listed: &'a [(ChannelType, Vec<u32>)],
    blocks: u32,
}

fn position(of: Option<usize>) -> u32 {
    of.and_then(|position| u32::try_from(position).ok()).expect("a block lists all that it uses")
}

impl Names<'_> {
    fn channels(&self, kind: ChannelType, peers: impl Iterator<Item = u32>) -> Vec<u32> {
        let own = &self.peers[usize::from(kind == ChannelType::Port)];
        peers.map(|peer| position(own.iter().position(|&other| other == peer))).collect()
    }

    fn remote(&self, kind: ChannelType, write: &Write) -> ChunkRef {
        let ids = self.listed.iter().find(|(of, _)| *of == kind).map_or(&[][..], |(_, ids)| ids);
        let number = self.remotes.get(&(write.peer, write.to.0));
        let id = position(ids.iter().position(|id| Some(id) == number));
        ChunkRef { place: RefPlace::Remote(id), index: write.to.1, size: write.from.count }
    }

    fn operation(&self, op: &Op) -> ExecutionOp {
        let local = |spot: &Spot| ChunkRef { place: RefPlace::Local(spot.buffer), index: spot.index, size: spot.count };
        match op {
            Op::Nop => ExecutionOp::new(OpName::Nop),
            Op::Barrier => ExecutionOp { barrier: Some((0, self.blocks)), ..ExecutionOp::new(OpName::Barrier) },
            Op::Notice { name, kind, peers } => ExecutionOp {
                channels: self.channels(*kind, peers.iter().copied()),
                channel_type: Some(*kind),
                ..ExecutionOp::new(*name)
            },
            Op::Put { name, kind, writes } => {
                let channels = match kind {
                    ChannelType::Port => self.channels(*kind, writes.iter().map(|write| write.peer)),
                    _ => Vec::new(),
                };
                ExecutionOp {
                    sources: writes.iter().map(|write| local(&write.from)).collect(),
                    targets: writes.iter().map(|write| self.remote(*kind, write)).collect(),
                    channels,
                    channel_type: Some(*kind),
                    ..ExecutionOp::new(*name)
                }
            }
            Op::Sum { sources, result } => ExecutionOp {
                sources: sources.iter().map(local).collect(),
                targets: vec![local(result)],
                reduce_op: Some("sum".to_owned()),
                ..ExecutionOp::new(OpName::Reduce)
            },
            Op::Copy { from, to } => {
                ExecutionOp { sources: vec![local(from)], targets: vec![local(to)], ..ExecutionOp::new(OpName::Copy) }
            }
        }
    }
}
