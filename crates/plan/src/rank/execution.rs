//! The MSCCL++ execution plan of one rank.
//!
//! Blocks write into each other's memory, so both ends must know the block, the channel and the place of each message.
//! All follow from the rule: rounds, which are distances along digits, are divided among *lanes* alike at all ranks,
//! and a lane is one block at each. Two ranks have a channel for each lane in which they meet. Copies go where they
//! belong in the output; contributions to sums wait in slots of scratch that the rule alone gives them.
//!
//! Blocks of a rank meet when a stage ends: in a stage, no lane needs what another one brings. Sums of what comes over
//! the network are made between stages, by blocks of their own.

mod block;
mod lanes;
mod places;
mod rounds;
mod runs;
mod slots;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use canopy_schedule::{Action, CollectiveKind};

use self::block::{Block, Write, kind};
use self::places::{Places, Spot, Sum};
use self::rounds::{Broken, Message, Round, RoundStep, Seat};
use self::runs::{Run, runs, waves};
use self::slots::Slots;
use super::request::{RankFileError, RankRequest};
use crate::msccl::Buffer;
use crate::mscclpp::{
    ExecutionLowerError, ExecutionPlan, ExecutionRank, ExecutorProfile, RankChannels, RemoteBuffer, collective_word,
    message_chunks,
};
use crate::need::Certainty;

pub use text::write_execution_slice;

/// Most chunks of a buffer: what 32 bits of offset can tell apart at 16 bytes each.
const CHUNKS_MAX: u32 = 1 << 28;

/// Most blocks that divide the sums of a stage.
const SUMMING_MAX: u32 = 4;

/// How to make the plan of a rank. All ranks need the same options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutionSliceOptions {
    /// Label in the file.
    pub name: String,
    /// Input and output share memory.
    pub in_place: bool,
    /// Largest message in bytes, inclusive.
    pub bytes_max: u64,
    /// The version of the runtime.
    pub profile: ExecutorProfile,
    /// Blocks that exchange side by side, if there are as many rounds. More move more at a time; fewer are set up
    /// sooner.
    pub blocks_min: u32,
}

/// The plan of one rank, and what its loader reads of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutionSlice {
    /// The plan, with this rank alone.
    pub plan: ExecutionPlan,
    /// Ranks of the machine.
    pub rank_count: u32,
    /// Ranks that this one exchanges with.
    pub stubs: BTreeMap<u32, RankStub>,
}

/// What the loader of one rank reads of another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankStub {
    /// Its channels to this rank: how many there are of each type.
    pub channels: Vec<RankChannels>,
    /// This rank's buffers that it writes to, in its order.
    pub remote_buffers: Vec<RemoteBuffer>,
}

/// The plan of one rank. [`write_execution_slice`] writes it.
///
/// The entries of all ranks, each from its own slice, are the whole plan.
///
/// * **Errors.** [`RankFileError`], with [`ExecutionLowerError`] for limits of the runtime: what is needed, and how
///   much there is.
/// * **Cost.** O(N + exceptions + Σ digits · places), times the logarithm of moves.
pub fn lower_execution_slice(
    request: &RankRequest<'_>,
    options: &ExecutionSliceOptions,
) -> Result<ExecutionSlice, RankFileError> {
    if request.rank_count < 2 {
        return Err(ExecutionLowerError::TooFewRanks { found: request.rank_count }.into());
    }
    let (program, chunks) = request.program(CHUNKS_MAX)?;
    let RankRequest { stages, collective, rank_count, rank } = *request;
    let broken = |_: Broken| RankFileError::Broken { rank };
    let seating = stages.grid.seating(rank_count).map_err(canopy_schedule::ProgramError::from)?;
    let seat = seating.seat_of(rank).ok_or(RankFileError::Broken { rank })?;
    let (of_box, place) = (seat / stages.grid.places, seat % stages.grid.places);
    let slots = Slots::new(stages, &seating);
    let seat = Seat { stages, seating: &seating, slots: &slots, of_box, place };
    let kind = collective.kind();
    let inside = stages.inside_of(of_box).ok_or(RankFileError::Broken { rank })?;
    let share = chunks / rank_count;
    let own = rank * share..(rank + 1) * share;
    let places = Places::of_input(kind, options.in_place, (own.clone(), chunks), slots.inside(inside, place).1);
    let limits = options.profile.limits();
    let (lanes, lane_count) = lanes::lanes(stages, options.blocks_min, limits);
    let mut writer = Writer { options, own, places, blocks: Vec::new(), sums: Vec::new(), met: 0 };
    let phases =
        program.phases.iter().map(|phase| seat.rounds(phase)).collect::<Result<Vec<_>, _>>().map_err(broken)?;
    writer.open(&phases, &lanes, lane_count);
    for (position, ((phase, rounds), lanes)) in program.phases.iter().zip(&phases).zip(&lanes).enumerate() {
        match phase.action {
            Action::Copy => writer.copy(rounds, lanes, position == 0 && !options.in_place),
            Action::Reduce => writer.reduce(rounds, lanes),
        }
    }
    let scratch = if kind == CollectiveKind::Allgather { 0 } else { writer.places.scratch };
    let needs_sums = kind == CollectiveKind::ReduceScatter && !options.in_place;
    let scratch_max =
        if kind == CollectiveKind::Allgather { 0 } else { slots.end_max(stages, needs_sums, chunks).max(scratch) };
    let stubs = stubs(rank, &phases, &program.phases, writer.blocks.iter().flatten());
    let own = Own { rank, kind, chunks, share, scratch, options };
    let entry = own.entry(writer.finish())?;
    let of_box = seating.ranks_in(of_box..of_box + 1);
    let plan = own.head(entry, of_box, scratch_max)?;
    Ok(ExecutionSlice { plan, rank_count, stubs })
}

/// What a rank reads of those that it exchanges with.
fn stubs<'a>(
    rank: u32,
    phases: &[Vec<Round>],
    of_program: &[canopy_schedule::ProgramPhase],
    blocks: impl Iterator<Item = &'a Block>,
) -> BTreeMap<u32, RankStub> {
    let mut counts: BTreeMap<u32, (bool, usize)> = BTreeMap::new();
    for block in blocks {
        for (is_port, peers) in [false, true].into_iter().zip(block.peers()) {
            peers.iter().for_each(|&peer| counts.entry(peer).or_insert((is_port, 0)).1 += 1);
        }
    }
    let mut written: BTreeSet<(u32, Buffer)> = BTreeSet::new();
    for (rounds, phase) in phases.iter().zip(of_program) {
        let buffer = if phase.action == Action::Copy { Buffer::Output } else { Buffer::Scratch };
        let messages = rounds.iter().flat_map(|round| &round.steps).flat_map(|step| &step.receives);
        written.extend(messages.map(|message| (message.peer, buffer)));
    }
    let stub = |(peer, (is_port, count)): (u32, (bool, usize))| {
        let channels = vec![RankChannels::Peers { is_port, peers: vec![rank; count] }];
        let buffers = written.range((peer, Buffer::Input)..=(peer, Buffer::Scratch));
        let remote_buffers = buffers.map(|&(_, buffer)| RemoteBuffer { rank, buffer, access: vec![kind(is_port)] });
        (peer, RankStub { channels, remote_buffers: remote_buffers.collect() })
    };
    counts.into_iter().map(stub).collect()
}

/// Blocks as rounds are written to them.
struct Writer<'a> {
    options: &'a ExecutionSliceOptions,
    own: Range<u32>,
    places: Places,
    /// By lane; none where the rank has nothing to do.
    blocks: Vec<Option<Block>>,
    /// Blocks that only sum up.
    sums: Vec<Block>,
    /// How often all blocks have met.
    met: usize,
}

impl Writer<'_> {
    /// Opens the blocks of all lanes in which the rank has peers, one at least.
    fn open(&mut self, phases: &[Vec<Round>], lanes: &[Vec<usize>], lane_count: usize) {
        let mut peers: Vec<[BTreeSet<u32>; 2]> = vec![[const { BTreeSet::new() }; 2]; lane_count];
        for (round, &lane) in phases.iter().flatten().zip(lanes.iter().flatten()) {
            for step in &round.steps {
                let messages = step.sends.iter().chain(&step.receives).map(|message| message.peer);
                if let Some(peers) = peers.get_mut(lane) {
                    peers[usize::from(step.is_port)].extend(messages);
                }
            }
        }
        let block = |peers: [BTreeSet<u32>; 2]| peers.iter().any(|of| !of.is_empty()).then(|| Block::new(peers));
        self.blocks = peers.into_iter().map(block).collect();
    }

    /// The block of a lane, after all blocks have met as often as it is time for.
    fn block(&mut self, lane: usize) -> Option<&mut Block> {
        let block = self.blocks.get_mut(lane)?.as_mut()?;
        block.meet(self.met);
        Some(block)
    }

    /// Everything goes to the output. Where the own share is still in the input, it is spread from there, and copied.
    fn copy(&mut self, rounds: &[Round], lanes: &[usize], is_in_input: bool) {
        let own = self.own.clone();
        if is_in_input && let Some(block) = self.blocks.iter_mut().flatten().next() {
            let count = own.end - own.start;
            let from = Spot { buffer: Buffer::Input, index: 0, count };
            block.copy(from, Spot { buffer: Buffer::Output, index: own.start, count });
        }
        let mut last = None;
        for Run { stage, lane, rounds } in runs(rounds, lanes) {
            self.met += usize::from(last.is_some_and(|last| last != stage));
            last = Some(stage);
            let Some(block) = self.block(lane) else { continue };
            let source = |chunks: &Range<u32>| {
                let (buffer, first) = match is_in_input && stage.is_none() && own.contains(&chunks.start) {
                    true => (Buffer::Input, own.start),
                    false => (Buffer::Output, 0),
                };
                vec![Spot { buffer, index: chunks.start - first, count: chunks.end - chunks.start }]
            };
            let is_flat = rounds.iter().all(Round::is_flat);
            // What a stage sends is there when it begins, and what others of the box forward is not sent on in it.
            for wave in waves(rounds) {
                block.port_put(&wave.iter().map(|message| writes(message, Action::Copy, source)).collect::<Vec<_>>());
            }
            for step in rounds.iter().flat_map(|round| &round.steps) {
                if !step.is_port {
                    send(block, step, Action::Copy, source);
                }
                if step.is_port || !is_flat {
                    receive(block, step);
                }
            }
            let steps = rounds.iter().flat_map(|round| &round.steps);
            steps.filter(|step| is_flat && !step.is_port).for_each(|step| receive(block, step));
        }
        self.met += 1;
    }

    /// What comes from the box is added at once, what comes over the network when its stage ends.
    fn reduce(&mut self, rounds: &[Round], lanes: &[usize]) {
        let limits = self.options.profile.limits();
        let mut waiting: Vec<(Range<u32>, u32)> = Vec::new();
        let mut last = None;
        for Run { stage, lane, rounds } in runs(rounds, lanes) {
            if last.is_some_and(|last| last != stage) {
                self.settle(&std::mem::take(&mut waiting));
            }
            last = Some(stage);
            let Self { places, blocks, met, .. } = self;
            let Some(block) = blocks.get_mut(lane).and_then(Option::as_mut) else { continue };
            block.meet(*met);
            let steps = || rounds.iter().flat_map(|round| &round.steps);
            let is_flat = rounds.iter().all(Round::is_flat);
            // What the box gets in a stage is there when it begins, and what comes over the network is added later.
            for step in steps().filter(|step| is_flat && !step.is_port) {
                send(block, step, Action::Reduce, |chunks| places.of(chunks));
            }
            for step in steps() {
                if step.is_port || !is_flat {
                    send(block, step, Action::Reduce, |chunks| places.of(chunks));
                }
                let parts = step.receives.iter().flat_map(|message| &message.parts);
                let parts = parts.map(|part| (part.chunks.clone(), part.slot));
                if step.is_port {
                    waiting.extend(parts);
                } else {
                    let contributions: Vec<_> = parts.collect();
                    receive(block, step);
                    block.sum(&places.add(&contributions), limits);
                }
            }
            steps().filter(|step| step.is_port).for_each(|step| receive(block, step));
        }
        self.settle(&waiting);
    }

    /// Blocks meet, some of them sum up what came over the network, and they meet again.
    fn settle(&mut self, waiting: &[(Range<u32>, u32)]) {
        self.met += 1;
        if waiting.is_empty() {
            return;
        }
        let (limits, met) = (self.options.profile.limits(), self.met);
        let summing = self.options.blocks_min.clamp(1, SUMMING_MAX);
        let mut of_blocks: Vec<Vec<Sum>> = (0..summing).map(|_| Vec::new()).collect();
        for sum in self.places.add(waiting) {
            for (number, of_block) in (0..summing).zip(&mut of_blocks) {
                of_block.extend(sum.part(number, summing));
            }
        }
        for sums in of_blocks.iter().flat_map(|sums| sums.chunks(block::sums_at_once(sums, limits))) {
            let mut block = Block::default();
            block.meet(met);
            block.sum(sums, limits);
            self.sums.push(block);
        }
        self.met += 1;
    }

    /// All blocks, after their last meeting.
    fn finish(self) -> Vec<Block> {
        let last = self.met.saturating_sub(1);
        let mut blocks: Vec<Block> = self.blocks.into_iter().flatten().chain(self.sums).collect();
        for block in &mut blocks {
            block.meet(last);
            block.acknowledge();
        }
        blocks
    }
}

/// The writes of a message.
fn writes(message: &Message, action: Action, source: impl Fn(&Range<u32>) -> Vec<Spot>) -> Vec<Write> {
    let mut writes = Vec::with_capacity(message.parts.len());
    for part in &message.parts {
        let mut to = match action {
            Action::Copy => (Buffer::Output, part.chunks.start),
            Action::Reduce => (Buffer::Scratch, part.slot),
        };
        for from in source(&part.chunks) {
            writes.push(Write { peer: message.peer, from, to });
            to.1 = to.1.saturating_add(from.count);
        }
    }
    writes
}

/// Sends all messages of a step.
fn send(block: &mut Block, step: &RoundStep, action: Action, source: impl Fn(&Range<u32>) -> Vec<Spot>) {
    if step.sends.is_empty() {
        return;
    }
    let by_peer: Vec<Vec<Write>> = step.sends.iter().map(|message| writes(message, action, &source)).collect();
    if step.is_port {
        block.port_put(&by_peer);
    } else {
        let peers: Vec<u32> = step.sends.iter().map(|message| message.peer).collect();
        block.put(&by_peer.concat(), &peers);
    }
}

/// Waits for all messages of a step.
fn receive(block: &mut Block, step: &RoundStep) {
    let peers: Vec<u32> = step.receives.iter().map(|message| message.peer).collect();
    block.wait(step.is_port, &peers);
}

/// The entry of the rank, and what the file says of itself.
struct Own<'a> {
    rank: u32,
    kind: CollectiveKind,
    chunks: u32,
    share: u32,
    scratch: u64,
    options: &'a ExecutionSliceOptions,
}

impl Own<'_> {
    fn over(&self, what: &'static str, limit: u64, need: u64, remedy: &'static str) -> ExecutionLowerError {
        ExecutionLowerError::OverLimit {
            profile: self.options.profile,
            what,
            limit,
            need,
            rank: Some(self.rank),
            certainty: Certainty::Found,
            remedy,
        }
    }

    fn entry(&self, blocks: Vec<Block>) -> Result<ExecutionRank, ExecutionLowerError> {
        let limits = self.options.profile.limits();
        let remotes: BTreeSet<_> = blocks.iter().flat_map(Block::remotes).collect();
        let most = |of: &dyn Fn(&Block) -> usize| blocks.iter().map(of).max().unwrap_or(0);
        let operations = most(&Block::len);
        let channels = most(&|block| block.peers().iter().map(BTreeSet::len).max().unwrap_or(0));
        let remotes_of_block = most(&|block| {
            let all: BTreeSet<_> = block.remotes().collect();
            let memory = all.iter().filter(|(.., of)| *of == kind(false)).count();
            memory.max(all.len() - memory)
        });
        let stages = "plan with more stages";
        let degree = "spread in boxes along trees of lower degree";
        let checks = [
            ("blocks at once", limits.blocks_resident, blocks.len(), stages),
            ("remote buffers of a rank", limits.index + 1, remotes.len(), stages),
            ("operations in a block", limits.operations_per_block, operations, stages),
            ("channels in a block", limits.channels_per_block, channels, degree),
            ("remote buffers in a block", limits.remotes_per_block, remotes_of_block, degree),
        ];
        if let Some((what, limit, need, remedy)) = checks.into_iter().find(|&(_, limit, need, _)| need > limit as usize)
        {
            return Err(self.over(what, limit.into(), need as u64, remedy));
        }
        let numbers: BTreeMap<(u32, Buffer), u32> =
            remotes.iter().zip(0..).map(|(&(peer, buffer, _), number)| ((peer, buffer), number)).collect();
        let mut lists = [Vec::new(), Vec::new()];
        let mut listed = Vec::with_capacity(blocks.len());
        let count = u32::try_from(blocks.len()).unwrap_or(u32::MAX);
        for (id, block) in (0..).zip(&blocks) {
            let first = [lists[0].len(), lists[1].len()].map(|first| u32::try_from(first).unwrap_or(u32::MAX));
            listed.push(block.numbered(id, first, &numbers, count));
            for (list, peers) in lists.iter_mut().zip(block.peers()) {
                list.extend(peers.iter().copied());
            }
        }
        let channels = [false, true].into_iter().zip(lists).filter(|(_, peers)| !peers.is_empty());
        let (input_chunks, output_chunks) = self.buffers();
        let limit = u64::from(CHUNKS_MAX);
        let scratch_chunks = u32::try_from(self.scratch).ok().filter(|&scratch| scratch <= CHUNKS_MAX);
        let over = || self.over("chunks of scratch", limit, self.scratch, "plan with fewer chunks");
        Ok(ExecutionRank {
            id: self.rank,
            input_chunks,
            output_chunks,
            scratch_chunks: scratch_chunks.ok_or_else(over)?,
            channels: channels.map(|(is_port, peers)| RankChannels::Peers { is_port, peers }).collect(),
            remote_buffers: remotes
                .into_iter()
                .map(|(rank, buffer, access)| RemoteBuffer { rank, buffer, access: vec![access] })
                .collect(),
            semaphores: Vec::new(),
            blocks: listed,
        })
    }

    const fn buffers(&self) -> (u32, u32) {
        match self.kind {
            CollectiveKind::Allgather => (self.share, self.chunks),
            CollectiveKind::ReduceScatter => (self.chunks, self.share),
            _ => (self.chunks, self.chunks),
        }
    }

    /// The plan of the rank's entry, for messages as large as offsets allow at all ranks.
    fn head(&self, entry: ExecutionRank, of_box: u32, scratch_max: u64) -> Result<ExecutionPlan, ExecutionLowerError> {
        let profile = self.options.profile;
        let ports = entry.channels.iter().filter_map(|channels| match channels {
            RankChannels::Peers { is_port: true, peers } => Some(peers),
            _ => None,
        });
        // The runtime divides ranks by those of its own box, and compares.
        if let Some(&peer) = ports.flatten().find(|&&peer| peer / of_box.max(1) == self.rank / of_box.max(1)) {
            return Err(ExecutionLowerError::Domains { profile, rank: self.rank, peer, of_box });
        }
        let mut plan = ExecutionPlan {
            name: self.options.name.clone(),
            collective: collective_word(self.kind).to_owned(),
            is_ll: false,
            in_place: self.options.in_place,
            reuse_resources: false,
            double_scratch: false,
            alignment_bytes: 16,
            threads_per_block: profile.limits().threads_per_block,
            bytes_min: 0,
            bytes_max: 0,
            ranks: vec![entry],
        };
        let chunks_max = u64::from(self.chunks).max(scratch_max).max(1);
        let offsets = profile.limits().offset_bytes;
        let chunk_bytes = offsets / chunks_max / plan.alignment_bytes * plan.alignment_bytes;
        if chunk_bytes == 0 {
            let need = chunks_max.saturating_mul(plan.alignment_bytes);
            return Err(self.over("bytes in a buffer", offsets, need, "plan with fewer chunks"));
        }
        let bytes_max = chunk_bytes.saturating_mul(message_chunks(&plan).into()).min(self.options.bytes_max);
        plan.bytes_max = profile.bytes_max_attribute(bytes_max);
        Ok(plan)
    }
}
