//! A plan with all its numbers resolved: who signals whom, and which cells each operation reads and writes.
//!
//! The proof and the emulator both start from here, and from here on share nothing.

mod effects;
mod scale;

use std::collections::BTreeMap;

use self::scale::Part;
pub(super) use self::scale::{Scale, scales};
use super::contract::{Contract, Memory};
use super::program::{ChannelType, ExecutionBlock, ExecutionOp, ExecutionPlan, ExecutionRank, OpName, RankChannels};
use crate::msccl::{Findings, Place};

/// Most cells of all ranks together: the proof keeps some 100 bytes for each.
pub(super) const CELLS_MAX: u64 = 1 << 24;

/// Cells of one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) rank: u32,
    pub(super) first: u64,
    pub(super) count: u64,
    pub(super) is_packet: bool,
}

/// Cells of those spans that hold packets, with their ranks.
pub(super) fn packets<'a>(spans: impl Iterator<Item = &'a Span>) -> impl Iterator<Item = (u32, u64)> {
    let packets = spans.filter(|span| span.is_packet);
    packets.flat_map(|span| (span.first..span.first + span.count).map(|cell| (span.rank, cell)))
}

/// Every target becomes the sum of all sources, cell by cell; all are of one length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Effect {
    pub(super) sources: Vec<Span>,
    pub(super) targets: Vec<Span>,
}

/// How an operation takes part in the order of things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// All threads of the block meet.
    Sync,
    /// All blocks of a barrier meet; its number.
    Barrier(usize),
    /// Signals on its lines.
    Signal { is_relaxed: bool },
    /// Waits on its lines.
    Wait { is_relaxed: bool },
    /// Takes from semaphores.
    Acquire,
    /// Gives to semaphores.
    Release,
    /// Moves data at once.
    Data,
    /// Hands data to the proxies of its lines.
    Port { signals: bool, flushes: bool },
}

/// An operation.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) role: Role,
    pub(super) lines: Vec<usize>,
    pub(super) semaphores: Vec<usize>,
    pub(super) effects: Vec<Effect>,
}

/// A block with its operations.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) rank: u32,
    pub(super) id: u32,
    pub(super) events: Vec<Event>,
    /// By event: the position of its operation, those that repeat others counted once.
    steps: Vec<u32>,
}

impl Block {
    pub(super) fn place(&self, step: usize) -> Place {
        Place::step(self.rank, self.id, self.steps.get(step).copied().unwrap_or(u32::MAX))
    }
}

/// One direction of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Line {
    pub(super) from: u32,
    pub(super) to: u32,
    pub(super) is_port: bool,
    /// Number among the channels of this type between the two.
    number: u32,
}

/// A meeting of blocks of one rank.
#[derive(Clone, Debug)]
pub(super) struct Barrier {
    pub(super) rank: u32,
    pub(super) id: u32,
    /// Blocks that are stated to meet.
    pub(super) stated: u32,
    /// Blocks that do.
    pub(super) blocks: Vec<usize>,
}

/// Everything resolved.
pub(super) struct Machine {
    pub(super) blocks: Vec<Block>,
    pub(super) lines: Vec<Line>,
    pub(super) barriers: Vec<Barrier>,
    /// Initial values of all ranks' semaphores, one rank after the other.
    pub(super) semaphores: Vec<u32>,
    pub(super) memories: Vec<Memory>,
    /// Cells of a chunk.
    pub(super) grain: u64,
    scale: Scale,
    /// Writes of packets need no leave of the owner: launches alternate between two halves of scratch.
    pub(super) has_two_halves: bool,
}

impl Machine {
    /// Resolves a plan whose numbers were checked, for messages of one size. None if something was found that cannot be
    /// followed.
    pub(super) fn new(
        plan: &ExecutionPlan,
        contract: &Contract,
        scale: &Scale,
        findings: &mut Findings<'_>,
    ) -> Option<Self> {
        let Scale { grain, scratch_grain, .. } = *scale;
        let memory = |rank: &ExecutionRank| contract.memory(rank, grain, scratch_grain);
        let memories: Vec<Memory> = plan.ranks.iter().map(memory).collect();
        let cells = memories.iter().fold(0_u64, |sum, memory| sum.saturating_add(memory.cells()));
        if cells > CELLS_MAX {
            let message = format!(
                "the buffers have {cells} parts of chunks, more than the proof can follow; plan for fewer chunks"
            );
            findings.problem(Place::FILE, message);
            return None;
        }
        let mut machine = Self {
            blocks: Vec::new(),
            lines: Vec::new(),
            barriers: Vec::new(),
            semaphores: Vec::new(),
            memories,
            grain,
            scale: *scale,
            has_two_halves: plan.double_scratch,
        };
        let mut builder = Builder {
            plan,
            contract,
            machine: &mut machine,
            lines: BTreeMap::new(),
            barriers: BTreeMap::new(),
            peers: [const { Vec::new() }; 2],
        };
        let mut is_sound = true;
        for rank in &plan.ranks {
            is_sound &= builder.rank(rank, findings);
            if findings.must_stop(rank.blocks.iter().map(|block| block.operations.len() as u64).sum()) {
                return None;
            }
        }
        is_sound.then_some(machine)
    }
}

struct Builder<'a> {
    plan: &'a ExecutionPlan,
    contract: &'a Contract,
    machine: &'a mut Machine,
    lines: BTreeMap<Line, usize>,
    /// By rank and number.
    barriers: BTreeMap<(u32, u32), usize>,
    /// Of the rank that is resolved, over memory channels and over port channels: the peer of each channel, and its number
    /// among those to this peer.
    peers: [Vec<(u32, u32)>; 2],
}

/// The peer of each channel of a type that a rank lists, and its number among those to this peer.
fn numbered_peers(rank: &ExecutionRank, is_port: bool) -> Vec<(u32, u32)> {
    let mut counts: BTreeMap<u32, u32> = BTreeMap::new();
    let listed = rank.channels.iter().filter_map(|entry| match entry {
        RankChannels::Peers { is_port: port, peers } if *port == is_port => Some(peers),
        _ => None,
    });
    let numbered = listed.flatten().map(|&peer| {
        let count = counts.entry(peer).or_default();
        *count += 1;
        (peer, *count - 1)
    });
    numbered.collect()
}

impl Builder<'_> {
    fn rank(&mut self, rank: &ExecutionRank, findings: &mut Findings<'_>) -> bool {
        self.peers = [false, true].map(|is_port| numbered_peers(rank, is_port));
        let first_semaphore = self.machine.semaphores.len();
        self.machine.semaphores.extend(&rank.semaphores);
        for block in &rank.blocks {
            let number = self.machine.blocks.len();
            let (mut events, mut steps) = (Vec::with_capacity(block.operations.len()), Vec::new());
            for (step, operation) in (0_u32..).zip(&block.operations) {
                let repeated = operation.repeated();
                let parts: Vec<Option<Part>> = match repeated {
                    None => vec![None],
                    Some(pipeline) => self.machine.scale.parts(pipeline).map(Some).collect(),
                };
                let operations = repeated.map_or(std::slice::from_ref(operation), |pipeline| &pipeline.operations);
                for (part, operation) in parts.iter().flat_map(|part| operations.iter().map(move |next| (part, next))) {
                    match self.event(rank, block, operation, *part, number, first_semaphore) {
                        Ok(event) => {
                            events.push(event);
                            steps.push(step);
                        }
                        Err(message) => {
                            let message = format!("{}: {message}", operation.name.name());
                            findings.problem(Place::step(rank.id, block.id, step), message);
                            return false;
                        }
                    }
                }
                if findings.must_stop(parts.len() as u64) {
                    return false;
                }
            }
            self.machine.blocks.push(Block { rank: rank.id, id: block.id, events, steps });
        }
        true
    }

    fn event(
        &mut self,
        rank: &ExecutionRank,
        block: &ExecutionBlock,
        operation: &ExecutionOp,
        part: Option<Part>,
        number: usize,
        first_semaphore: usize,
    ) -> Result<Event, String> {
        if part.is_some() && operation.name.uses_packets() {
            return Err("packets cannot be part of a pipeline: each repetition would move all of them".to_owned());
        }
        let is_port = operation.channel_type == Some(ChannelType::Port);
        let role = match operation.name {
            OpName::Nop => Role::Sync,
            OpName::Barrier => Role::Barrier(self.barrier(rank.id, operation, number)?),
            OpName::Signal => Role::Signal { is_relaxed: false },
            OpName::RelaxedSignal => Role::Signal { is_relaxed: true },
            OpName::Wait => Role::Wait { is_relaxed: false },
            OpName::RelaxedWait => Role::Wait { is_relaxed: true },
            OpName::SemaphoreAcquire => Role::Acquire,
            OpName::SemaphoreRelease => Role::Release,
            OpName::Put if is_port => Role::Port { signals: false, flushes: false },
            OpName::ReadPutPackets if is_port => Role::Port { signals: false, flushes: false },
            OpName::PutSignal if is_port => Role::Port { signals: true, flushes: false },
            OpName::PutSignalFlush if is_port => Role::Port { signals: true, flushes: true },
            OpName::Pipeline => {
                return Err("the kernel knows no pipeline in a pipeline; unroll it".to_owned());
            }
            OpName::Flush => return Err(super::loader::FLUSH.to_owned()),
            _ => Role::Data,
        };
        let has_lines = matches!(role, Role::Signal { .. } | Role::Wait { .. } | Role::Port { .. });
        let lines = if has_lines { self.lines_of(rank, block, operation, role)? } else { Vec::new() };
        let semaphores: Vec<usize> = operation.semaphores.iter().map(|&id| first_semaphore + id as usize).collect();
        let is_semaphore = matches!(role, Role::Acquire | Role::Release);
        if is_semaphore && semaphores.is_empty() {
            return Err("names no semaphore".to_owned());
        }
        let moves = matches!(role, Role::Data | Role::Port { .. });
        let effects = if moves {
            effects::effects(self.plan, self.contract, rank, block, operation, part, self.machine)?
        } else {
            Vec::new()
        };
        if matches!(role, Role::Port { .. }) {
            if lines.len() != effects.len() {
                return Err(format!("{} channels for {} puts; give each its own", lines.len(), effects.len()));
            }
            for (&line, effect) in lines.iter().zip(&effects) {
                let to = self.machine.lines.get(line).map(|line| line.to);
                if effect.targets.iter().any(|target| Some(target.rank) != to) {
                    return Err("a channel leads to a rank other than that of the written buffer".to_owned());
                }
            }
        }
        Ok(Event { role, lines, semaphores: if is_semaphore { semaphores } else { Vec::new() }, effects })
    }

    fn barrier(&mut self, rank: u32, operation: &ExecutionOp, block: usize) -> Result<usize, String> {
        let (id, stated) = operation.barrier.ok_or("names no barrier")?;
        let barriers = &mut self.machine.barriers;
        let number = *self.barriers.entry((rank, id)).or_insert_with(|| {
            barriers.push(Barrier { rank, id, stated, blocks: Vec::new() });
            barriers.len() - 1
        });
        let barrier = &mut barriers[number];
        if barrier.stated != stated {
            return Err(format!("{stated} blocks meet at barrier {id}, but elsewhere {}", barrier.stated));
        }
        if barrier.blocks.last() != Some(&block) {
            barrier.blocks.push(block);
        }
        Ok(number)
    }

    fn lines_of(
        &mut self,
        rank: &ExecutionRank,
        block: &ExecutionBlock,
        operation: &ExecutionOp,
        role: Role,
    ) -> Result<Vec<usize>, String> {
        let kind = operation.channel_type.filter(|kind| *kind != ChannelType::Switch);
        let kind = kind.ok_or("needs channels of type memory or port")?;
        let is_relaxed = matches!(role, Role::Signal { is_relaxed: true } | Role::Wait { is_relaxed: true });
        let is_port = kind == ChannelType::Port;
        if is_relaxed && is_port {
            return Err("needs memory channels".to_owned());
        }
        if operation.channels.is_empty() {
            return Err("names no channel".to_owned());
        }
        let mut lines = Vec::with_capacity(operation.channels.len());
        for &channel in &operation.channels {
            let id = block.channels_of(kind).nth(channel as usize);
            let id = id.ok_or("uses a channel that the block does not list")?;
            let peer = self.peers[usize::from(is_port)].get(id as usize);
            let &(peer, number) = peer.ok_or("uses a channel that the rank does not list")?;
            let (from, to) = if matches!(role, Role::Wait { .. }) { (peer, rank.id) } else { (rank.id, peer) };
            let line = Line { from, to, is_port, number };
            let known = &mut self.machine.lines;
            let number = *self.lines.entry(line).or_insert_with(|| {
                known.push(line);
                known.len() - 1
            });
            if lines.contains(&number) {
                return Err("names a channel twice".to_owned());
            }
            lines.push(number);
        }
        Ok(lines)
    }
}
