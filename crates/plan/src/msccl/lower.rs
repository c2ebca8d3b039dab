//! Lowers a transfer graph to thread blocks, steps and queues.
//!
//! All transfers of all batches are put in one order, and every thread block of every rank handles its part of them in
//! that order. This alone excludes deadlock, for any message size and any queue capacity: take the first transfer that
//! is not finished. What its sender needs came with earlier ones; all steps before its steps in their blocks belong to
//! earlier ones, so they are finished, too; and what is in its queue was sent before it and has been received. So one of
//! its steps can run. A step that receives and forwards takes the place of its receive; `fuse` says when that is safe.
//!
//! There are two such orders. *Tree by tree* lets a rank forward in the step that receives: it suits runtimes with fused
//! operations and costs a start-up delay of one tree depth, not bandwidth. *Wave after wave* lets transfers of one
//! connection be joined where their chunks are neighbours: it suits schedules in steps, and runtimes without fused
//! operations, for which a forward is two steps anyway.
//!
//! | module | decides |
//! |---|---|
//! | `message` | where chunks lie in the buffers, and how many there are |
//! | `moves` | the order, and which move is the last to need its chunks |
//! | `placement` | where each move reads and writes; joins neighbours |
//! | `channels`, `blocks` | which block of which channel serves which connection |
//! | `fuse`, `scratch`, `emit` | the steps, their waits, and scratch |
//! | `mirror` | what steps do not use, as the other end has it |
//! | `numbering` | numbers of blocks that a runtime can name |
//! | `instances` | how the plan is repeated to fill channels |
//! | `arrange` | which order, and how many channels |
//! | `fit`, `least` | whether a program fits the runtime, and whether any could |

mod arrange;
mod blocks;
mod channels;
mod emit;
mod fit;
mod fuse;
mod instances;
mod least;
mod message;
mod mirror;
mod moves;
mod numbering;
mod placement;
mod ranges;
mod remedies;
mod scratch;
mod transit;

use std::cell::OnceCell;
use std::num::NonZeroU32;

use canopy_schedule::{CollectiveKind, TransferGraph};

use self::arrange::{Arranged, Lowering};
pub use self::instances::Instances;
use self::message::Message;
use self::moves::Trees;
use super::profile::Profile;
use super::program::{Program, Protocol};

pub(crate) use self::ranges::Ranges;
pub use self::transit::{forwarder_on_routes, require_own_routes};
use crate::need::Certainty;
use crate::proof::Stop;

/// What a program is lowered for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LowerOptions {
    /// Input and output share memory.
    pub in_place: bool,
    /// Largest message in bytes, inclusive. Larger ones are left to other algorithms.
    pub bytes_max: u64,
    /// The runtime.
    pub profile: Profile,
    /// Label in the file: 1 to 63 letters, digits, `_`, `-` and `.`.
    pub name: String,
    /// How often the plan is repeated, each time for another part of every share and on channels of its own.
    pub instances: Instances,
}

/// A program, and what was chosen for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lowered {
    /// The program.
    pub program: Program,
    /// Instances of the plan in it: those asked for, or those found to fit.
    pub instances: NonZeroU32,
}

impl Lowered {
    /// The same for messages from this size on alone, in bytes, so that another program may serve smaller ones. 0: any.
    ///
    /// # Errors
    /// The program is not used for any message so large.
    pub fn beginning_at(mut self, bytes_min: u64, profile: Profile) -> Result<Self, LowerError> {
        match profile.bytes_max_of(self.program.bytes_max) {
            Some(bytes_max) if bytes_min > bytes_max => Err(LowerError::BytesMin { bytes_min, bytes_max }),
            _ => {
                self.program.bytes_min = Some(bytes_min);
                Ok(self)
            }
        }
    }
}

/// Why a plan cannot be lowered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum LowerError {
    #[error("files for {profile} cannot express {collective}; choose another profile or format")]
    Unsupported { profile: Profile, collective: CollectiveKind },
    #[error(
        "an MSCCL file cannot name the root of a {collective}, which is always rank 0, not {root}; renumber the ranks"
    )]
    Root { collective: CollectiveKind, root: u32 },
    #[error("files for {profile} divide a message equally and cannot express shares of unequal size; choose json")]
    Shares { profile: Profile },
    #[error(
        "{profile} runs only on ranks, but the plan's routes pass through `{id}`; leave it unused, or make it a rank"
    )]
    Forwarder { profile: Profile, id: String },
    #[error("`{name}` is not a valid name for an MSCCL file; use 1 to 63 letters, digits, `_`, `-` and `.`")]
    Name { name: String },
    #[error("a largest message of {bytes_max} bytes is not supported; use 1 to 9223372036854775806")]
    BytesMax { bytes_max: u64 },
    #[error("the {profile} profile allows {limit} {what}, but {} {need}; {remedy}", certainty.needs(*rank))]
    OverLimit {
        profile: Profile,
        /// The limit, in words.
        what: &'static str,
        limit: u64,
        /// What the plan needs, as far as the certainty says.
        need: u64,
        /// The rank with the greatest need; `None` if the whole plan is over the limit.
        rank: Option<u32>,
        certainty: Certainty,
        remedy: &'static str,
    },
    #[error(
        "the program works up to {bytes_max} bytes and cannot start at {bytes_min}; use a smaller first size or a \
         larger last size"
    )]
    BytesMin {
        bytes_min: u64,
        /// Inclusive: the requested size, or the largest whose rounds the runtime can count.
        bytes_max: u64,
    },
    #[error("a transfer graph of {found} ranks moves no data; use at least two ranks")]
    TooFewRanks { found: u32 },
    #[error("a transfer graph without chunks moves no data; use at least one chunk per share")]
    NoChunks,
    #[error("batch {batch} of the transfer graph {what}; check the plan first")]
    Malformed { batch: usize, what: &'static str },
    #[error("rank {rank} sends chunk {chunk} of the transfer graph before it has it; check the plan first")]
    NotHeld { rank: u32, chunk: u64 },
    #[error("rank {rank} never sends chunk {chunk} of the transfer graph, but needs its place; check the plan first")]
    NotSent { rank: u32, chunk: u64 },
    #[error("stopped as requested; ask again for the program")]
    Stopped,
}

/// Asks once in 256 rounds of a loop, some microseconds each.
fn check_stop(stop: Stop<'_>, round: usize) -> Result<(), LowerError> {
    if round.is_multiple_of(256) && stop() { Err(LowerError::Stopped) } else { Ok(()) }
}

/// Lowers a checked transfer graph to the fewest channels that fit the runtime.
///
/// The routes of the graph do not matter: a file says who sends to whom, and the network decides how. Nor do its
/// dependencies: waits follow from the chunks that steps touch. The program is made for any queue capacity; its `maxBytes`
/// is the largest message asked for, or the largest whose rounds the runtime can count.
///
/// * **Errors.** The collective, its root or its shares cannot be said in a file, an option is unusable, `stop`
///   returned true, or the plan in as many instances as asked for is larger than a limit of the runtime, which is named
///   with what the plan needs. A graph that [`check`](canopy_schedule::check) refuses may be refused here too, or give a
///   program that [`prove`](super::prove) refuses.
/// * **Cost.** O(steps log steps) per arrangement tried: two orders, each with at most as many numbers of channels as
///   the runtime has, all of that for each number of instances tried: one, or the logarithm of the channels for
///   [`Instances::Auto`]. `stop` is asked about every millisecond.
pub fn lower(graph: &TransferGraph, options: &LowerOptions, stop: Stop<'_>) -> Result<Lowered, LowerError> {
    check_request(graph, options)?;
    let plan = Message::new(graph, options)?;
    let trees = Trees::read(graph, &plan, stop)?;
    let least = OnceCell::new();
    let lower_times = |instances: NonZeroU32| {
        let message = plan.times(instances.get(), options.profile)?;
        Lowering { plan: &plan, message: &message, trees: &trees, least: &least, options, stop }.best()
    };
    if let Instances::Exactly(instances) = options.instances {
        let Arranged { program, .. } = lower_times(instances)?;
        return Ok(Lowered { program, instances });
    }
    let alone = lower_times(NonZeroU32::MIN)?;
    let most = Lowering { plan: &plan, message: &plan, trees: &trees, least: &least, options, stop }.room()?;
    let resident = u64::from(options.profile.limits().blocks_resident);
    let more = instances::greatest(most, |instances| {
        let Some(instances) = NonZeroU32::new(instances) else { return Ok(None) };
        match lower_times(instances) {
            Ok(arranged) if arranged.blocks() <= resident => Ok(Some((arranged.program, instances))),
            Ok(_) | Err(LowerError::OverLimit { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    })?;
    let (program, instances) = more.map_or((alone.program, NonZeroU32::MIN), |(_, made)| made);
    Ok(Lowered { program, instances })
}

fn check_request(graph: &TransferGraph, options: &LowerOptions) -> Result<(), LowerError> {
    let (collective, profile) = (graph.collective.kind(), options.profile);
    if profile.spell(collective).is_none() {
        return Err(LowerError::Unsupported { profile, collective });
    }
    if graph.rank_count < 2 {
        return Err(LowerError::TooFewRanks { found: graph.rank_count });
    }
    if graph.chunks_per_share == 0 || graph.batches.is_empty() {
        return Err(LowerError::NoChunks);
    }
    if let Some(root) = graph.collective.root().filter(|root| root.number() > 0) {
        return Err(LowerError::Root { collective, root: root.number() });
    }
    if !profile.accepts_name(&options.name) {
        return Err(LowerError::Name { name: options.name.chars().take(80).collect() });
    }
    match profile.bytes_max_attribute(options.bytes_max) {
        Some(_) => Ok(()),
        None => Err(LowerError::BytesMax { bytes_max: options.bytes_max }),
    }
}

/// Simple, which reaches the bandwidth of the network, but where the runtime cannot run it.
///
/// msccl-executor plans the network's part of a broadcast or reduce with 1 slot per transfer, of which Simple uses 4.
fn protocol(profile: Profile, kind: CollectiveKind) -> Protocol {
    match (profile, kind) {
        (Profile::MscclExecutor, CollectiveKind::Broadcast | CollectiveKind::Reduce) => Protocol::Ll128,
        _ => Protocol::Simple,
    }
}

#[cfg(test)]
mod tests;
