//! Which cells an operation reads and writes.

use super::super::contract::Contract;
use super::super::program::{
    ChannelType, ChunkRef, ExecutionBlock, ExecutionOp, ExecutionPlan, ExecutionRank, OpName, RefPlace, SwitchGroup,
};
use super::{Effect, Machine, Part, Span};
use crate::msccl::Buffer;

/// Where a reference may lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Local,
    LocalPackets,
    Remote,
    RemotePackets,
    Switch,
    SwitchPackets,
}

/// The effects of an operation that moves data, or what is wrong with its references.
pub(super) fn effects(
    plan: &ExecutionPlan,
    contract: &Contract,
    rank: &ExecutionRank,
    block: &ExecutionBlock,
    operation: &ExecutionOp,
    part: Option<Part>,
    machine: &Machine,
) -> Result<Vec<Effect>, String> {
    use Kind::{Local, LocalPackets, Remote, RemotePackets, Switch, SwitchPackets};
    let resolver = Resolver { plan, contract, rank, block, operation, part, machine };
    let is_port = operation.channel_type == Some(ChannelType::Port);
    let is_put = matches!(operation.name, OpName::Put | OpName::PutSignal | OpName::PutSignalFlush);
    match operation.name {
        _ if !is_port || is_put || operation.name == OpName::ReadPutPackets => {}
        OpName::PutPackets => {
            return Err(
                "over port channels the kernel reads another buffer as the source; make packets with cpkt and \
                        forward them with rppkt"
                    .to_owned(),
            );
        }
        _ => return Err("the kernel does not support it over port channels; use memory channels".to_owned()),
    }
    resolver.whole_sources()?;
    match operation.name {
        OpName::Copy => resolver.pairs(Local, Local, Some(1)),
        OpName::Put | OpName::PutSignal | OpName::PutSignalFlush => resolver.pairs(Local, Remote, None),
        OpName::Get => {
            let is_even = |(source, target): (&ChunkRef, &ChunkRef)| source.index == target.index;
            if !operation.sources.iter().zip(&operation.targets).all(is_even) {
                return Err("the kernel swaps the offsets; give both references the same index".to_owned());
            }
            resolver.pairs(Remote, Local, None)
        }
        OpName::PutPackets => resolver.pairs(Local, RemotePackets, None),
        OpName::ReadPutPackets => resolver.pairs(LocalPackets, RemotePackets, None),
        OpName::CopyPackets => resolver.pairs(Local, LocalPackets, Some(1)),
        OpName::UnpackPackets => resolver.pairs(LocalPackets, Local, Some(1)),
        OpName::Reduce => resolver.sum(some(&[Local], Local), only(&[Local])),
        OpName::ReduceSend => resolver.sum(some(&[Local], Local), some(&[Local], Remote)),
        OpName::ReadReduce => resolver.sum(some(&[Local], Remote), only(&[Local])),
        OpName::ReadReduceSend => resolver.sum(some(&[Local], Remote), some(&[Local], Remote)),
        OpName::ReducePackets => resolver.sum(some(&[Local], LocalPackets), only(&[Local])),
        OpName::ReduceSendPackets => resolver.sum(some(&[Local], LocalPackets), some(&[Local], RemotePackets)),
        OpName::ReduceCopyPackets => resolver.sum(some(&[Local], LocalPackets), only(&[Local, LocalPackets])),
        OpName::ReduceCopySendPackets => {
            resolver.sum(some(&[Local], LocalPackets), some(&[Local, LocalPackets], RemotePackets))
        }
        OpName::GroupReduceStore => resolver.sum(only(&[Switch]), only(&[Switch])),
        OpName::GroupStore => resolver.sum(only(&[Local]), only(&[Switch])),
        OpName::GroupStorePackets => resolver.sum(only(&[LocalPackets]), only(&[SwitchPackets])),
        _ => Err("moves no data".to_owned()),
    }
}

/// The kinds of the sources, or the targets, of an operation.
struct References<'k> {
    /// Those of the first ones, each of which must be there.
    first: &'k [Kind],
    /// That of all behind them, of which there is at least one; none if there may be none.
    more: Option<Kind>,
}

const fn only(first: &[Kind]) -> References<'_> {
    References { first, more: None }
}

const fn some(first: &[Kind], more: Kind) -> References<'_> {
    References { first, more: Some(more) }
}

impl References<'_> {
    const fn fit(&self, count: usize) -> bool {
        match self.more {
            Some(_) => count > self.first.len(),
            None => count == self.first.len(),
        }
    }

    fn kind(&self, position: usize) -> Kind {
        self.first.get(position).copied().or(self.more).unwrap_or(Kind::Local)
    }
}

struct Resolver<'a> {
    plan: &'a ExecutionPlan,
    contract: &'a Contract,
    rank: &'a ExecutionRank,
    block: &'a ExecutionBlock,
    operation: &'a ExecutionOp,
    /// What is done of it, in a pipeline.
    part: Option<Part>,
    machine: &'a Machine,
}

impl Resolver<'_> {
    /// What the kernel takes from the first source alone, though a plan names more.
    ///
    /// Source: `handlePut`, `handlePutPackets`, `handleReadPutPackets` and `handleReduceSend` of the kernel.
    fn whole_sources(&self) -> Result<(), String> {
        let mut others = self.operation.sources.iter().skip(1);
        let Some(first) = self.operation.sources.first() else { return Ok(()) };
        let is_port = self.operation.channel_type == Some(ChannelType::Port);
        match self.operation.name {
            OpName::Put | OpName::PutSignal | OpName::PutSignalFlush | OpName::PutPackets
                if !is_port && others.any(|other| other.place != first.place) =>
            {
                Err("the kernel reads all sources from the buffer of the first; use one operation for each buffer"
                    .to_owned())
            }
            OpName::ReadPutPackets if others.any(|other| other != first) => {
                Err("newer kernels forward the first source to all; use one operation for each source".to_owned())
            }
            OpName::Reduce | OpName::ReduceSend
                if self.part.is_some()
                    && self.machine.scale.wraps()
                    && others.any(|other| other.place == RefPlace::Local(Buffer::Scratch)) =>
            {
                Err("the kernel goes beyond shared scratch in further sources; list scratch first".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Each source to the target at its position.
    fn pairs(&self, source: Kind, target: Kind, most: Option<usize>) -> Result<Vec<Effect>, String> {
        let (sources, targets) = (&self.operation.sources, &self.operation.targets);
        if sources.len() != targets.len() || sources.is_empty() {
            return Err(format!("{} sources and {} targets; give equal numbers", sources.len(), targets.len()));
        }
        if most.is_some_and(|most| sources.len() > most) {
            return Err("the kernel handles only the first pair; use one operation for each pair".to_owned());
        }
        let pair = |(from, to): (&ChunkRef, &ChunkRef)| {
            let effect = Effect { sources: self.spans(from, source)?, targets: self.spans(to, target)? };
            self.even(effect)
        };
        sources.iter().zip(targets).map(pair).collect()
    }

    /// All sources together to all targets.
    fn sum(&self, from: References<'_>, to: References<'_>) -> Result<Vec<Effect>, String> {
        let (sources, targets) = (&self.operation.sources, &self.operation.targets);
        if !from.fit(sources.len()) || !to.fit(targets.len()) {
            return Err(format!("{} sources and {} targets do not fit the operation", sources.len(), targets.len()));
        }
        let mut effect = Effect::default();
        for (position, reference) in sources.iter().enumerate() {
            effect.sources.extend(self.spans(reference, from.kind(position))?);
        }
        for (position, reference) in targets.iter().enumerate() {
            effect.targets.extend(self.spans(reference, to.kind(position))?);
        }
        Ok(vec![self.even(effect)?])
    }

    /// An effect whose spans are all of one length.
    fn even(&self, effect: Effect) -> Result<Effect, String> {
        let mut counts = effect.sources.iter().chain(&effect.targets).map(|span| span.count);
        let first = counts.next();
        if counts.any(|count| Some(count) != first) {
            Err("its references have different sizes".to_owned())
        } else {
            Ok(effect)
        }
    }

    /// The cells of a reference: of one rank, or of all members of a group.
    fn spans(&self, reference: &ChunkRef, kind: Kind) -> Result<Vec<Span>, String> {
        match (reference.place, kind) {
            (RefPlace::Local(buffer), Kind::Local) => Ok(vec![self.span(self.rank, buffer, reference, false)?]),
            (RefPlace::Local(buffer), Kind::LocalPackets) => Ok(vec![self.span(self.rank, buffer, reference, true)?]),
            (RefPlace::Remote(id), Kind::Remote | Kind::RemotePackets) => {
                let access = self.operation.channel_type.ok_or("accesses another rank without a channel_type")?;
                let number = self.block.remotes_of(access).nth(id as usize);
                let number = number.ok_or_else(|| format!("buffer_id {id} is not in the block's list"))?;
                let remote = self.rank.remote_buffers.get(number as usize);
                let remote = remote.ok_or_else(|| format!("remote buffer {number} is not in the rank's list"))?;
                let owner = self.plan.ranks.get(remote.rank as usize).ok_or("a remote buffer has no owner")?;
                Ok(vec![self.span(owner, remote.buffer, reference, kind == Kind::RemotePackets)?])
            }
            (RefPlace::Switch(id), Kind::Switch | Kind::SwitchPackets) => {
                let (buffer, group) = self.group(id)?;
                if u64::from(reference.index) + u64::from(reference.size) > u64::from(group.size) {
                    return Err(format!("chunks beyond the {} of the group", group.size));
                }
                let members = group.ranks.iter().filter_map(|&rank| self.plan.ranks.get(rank as usize));
                members.map(|member| self.span(member, buffer, reference, kind == Kind::SwitchPackets)).collect()
            }
            _ => Err("a reference is outside what the operation can reach".to_owned()),
        }
    }

    fn group(&self, id: u32) -> Result<(Buffer, &SwitchGroup), String> {
        let number = self.block.channels_of(ChannelType::Switch).nth(id as usize);
        let number = number.ok_or_else(|| format!("switch_channel_id {id} is not in the block's list"))?;
        let group = self.rank.switch_groups().nth(number as usize);
        group.ok_or_else(|| format!("switch channel {number} is not in the rank's list"))
    }

    /// The slice of a range of chunks that this block handles.
    fn span(&self, owner: &ExecutionRank, buffer: Buffer, at: &ChunkRef, is_packet: bool) -> Result<Span, String> {
        let chunks = match buffer {
            Buffer::Input => owner.input_chunks,
            Buffer::Output => owner.output_chunks,
            Buffer::Scratch => owner.scratch_chunks,
        };
        let letter = buffer.letter();
        if at.size == 0 {
            return Err("a reference has size 0; remove it".to_owned());
        }
        if u64::from(at.index) + u64::from(at.size) > u64::from(chunks) {
            let last = u64::from(at.index) + u64::from(at.size) - 1;
            return Err(format!("chunk {last} of {letter} of rank {}, which has {chunks}", owner.id));
        }
        if is_packet && buffer != Buffer::Scratch {
            return Err(format!("packets are in {letter}, but the kernel keeps them in scratch"));
        }
        if is_packet && !self.plan.is_ll {
            return Err("packets take twice the room of their data, which scratch has with protocol LL only".to_owned());
        }
        // Of plain data, only `getBuffer` adds the half's offset: for own memory, except where a proxy reads it.
        let is_own = matches!(at.place, RefPlace::Local(_));
        let has_halves = is_packet || (is_own && self.operation.channel_type != Some(ChannelType::Port));
        if self.plan.double_scratch && buffer == Buffer::Scratch && !has_halves {
            return Err(
                "launches alternate between two halves of scratch, but here the kernel always takes the first; \
                        set use_double_scratch_buffer to false"
                    .to_owned(),
            );
        }
        if !self.contract.has_buffer(owner.id, buffer) {
            return Err(format!("rank {} has no {letter} in this collective", owner.id));
        }
        let memory = self.machine.memories.get(owner.id as usize).ok_or("a rank without memory")?;
        let cells = u64::from(at.size) * self.machine.grain;
        let (position, count) = self.operation.slice.map_or((0, 1), |(a, b)| (u64::from(a), u64::from(b.max(1))));
        let (start, end) = (cells * position / count, cells * (position + 1) / count);
        let first = memory.cell(buffer, at.index.into());
        let wraps = self.machine.scale.wraps() && buffer == Buffer::Scratch;
        let Some(part) = self.part else {
            if wraps {
                return Err("shared scratch has no room for a chunk of larger messages; use a pipeline, or lower max_message_size".to_owned());
            }
            return Ok(Span { rank: owner.id, first: first + start, count: end - start, is_packet });
        };
        if u64::from(at.size) != u64::from(part.chunks) * count {
            let (found, chunks) = (at.size, part.chunks);
            return Err(format!(
                "a reference has {found} chunks, but {chunks} pass, so the kernel would skip some or go beyond"
            ));
        }
        if wraps && count > 1 {
            return Err("shared scratch has no room for a chunk to slice; lower max_message_size".to_owned());
        }
        let offset = if wraps { part.first % self.machine.scale.scratch_grain } else { part.first };
        Ok(Span { rank: owner.id, first: first + start + offset, count: part.count, is_packet })
    }
}
