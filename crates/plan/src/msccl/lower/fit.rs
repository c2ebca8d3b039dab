//! Whether a program fits the runtime's tables, and what may help where it does not.

use std::collections::BTreeMap;

use super::channels::Channels;
use super::remedies::{FEWER_CHUNKS, FEWER_INSTANCES, FEWER_PEERS, FEWER_RANKS};
use super::{LowerError, LowerOptions};
use crate::msccl::figures::{Figure, ProgramFigures};
use crate::msccl::profile::Profile;
use crate::msccl::program::Program;
use crate::need::Certainty;

/// A limit that an arrangement misses, or all do.
#[derive(Clone, Copy)]
pub(super) struct Missed {
    pub(super) over: Figure,
    pub(super) certainty: Certainty,
}

/// Largest message in bytes, up to the one asked for, whose chunks flags can count the rounds of.
pub(super) fn bytes_max(options: &LowerOptions, program: &Program) -> u64 {
    let limits = options.profile.limits();
    let round = limits.queue(program.protocol).transfer_bytes.saturating_mul(u64::from(program.chunk_count));
    options.bytes_max.min(round.saturating_mul(limits.rounds))
}

/// The limit on channels, where even one for each instance is too many.
pub(super) fn too_many(instances: u32, profile: Profile) -> Option<Figure> {
    let limit = profile.limits().channels;
    let over = Figure { name: "channels", need: instances.into(), limit: limit.into(), rank: None };
    (instances > limit).then_some(over)
}

/// The first limit that a program exceeds.
pub(super) fn overrun(figures: &ProgramFigures) -> Option<Figure> {
    figures.limited().into_iter().find(|figure| figure.need > figure.limit)
}

/// Uses more channels where that may help. False where nothing can be done.
pub(super) fn widen(channels: &mut Channels, program: &Program, figures: &ProgramFigures, over: &Figure) -> bool {
    let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let channels_max = narrow(figures.channels.limit);
    if *over == figures.peers {
        return channels.spread_peers(narrow(over.need), narrow(over.limit), channels_max);
    }
    if *over != figures.steps {
        return false;
    }
    let limit = narrow(figures.steps.limit);
    let mut is_wider = false;
    let blocks = program.ranks.iter().flat_map(|rank| rank.thread_blocks.iter().map(move |block| (rank.rank, block)));
    let mut long = BTreeMap::new();
    for (rank, block) in blocks {
        let steps = u32::try_from(block.steps.len()).unwrap_or(u32::MAX);
        for connection in [block.receive.map(|peer| (peer, rank)), block.send.map(|peer| (rank, peer))] {
            if let Some(connection) = connection.filter(|_| steps > limit) {
                let longest: &mut u32 = long.entry(connection).or_default();
                *longest = steps.max(*longest);
            }
        }
    }
    for (connection, steps) in long {
        is_wider = true;
        if !channels.divide(connection, steps, limit, channels_max) {
            return false;
        }
    }
    is_wider
}

/// The error for a limit that a plan of so many chunks per share, in so many instances, exceeds.
pub(super) fn error(profile: Profile, missed: &Missed, share: u32, instances: u32) -> LowerError {
    let Missed { over, certainty } = missed;
    let remedy = match over.name {
        _ if instances > 1 => FEWER_INSTANCES,
        "rounds over a chunk" => "lower the largest message",
        "thread blocks per rank" | "as the block of a dependency" | "peers per rank and channel" => FEWER_PEERS,
        _ if share == 1 => FEWER_RANKS,
        _ => FEWER_CHUNKS,
    };
    let Figure { name: what, limit, need, rank } = *over;
    LowerError::OverLimit { profile, what, limit, need, rank, certainty: *certainty, remedy }
}
