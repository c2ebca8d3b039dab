//! Lowers a transfer graph to thread blocks, steps and queues.
//!
//! Batches are cut into *pieces*, ranges of chunks that one step can move, and all pieces of all trees are put in one
//! order. Every thread block of every rank handles its pieces in that order, and a block has at most one data step
//! per piece. This alone excludes deadlock for any message size and any queue capacity: take the first piece that is
//! not finished. All its steps are next in their blocks, the queues it uses are empty, and its data flows along a
//! tree, so one of its steps can run. It may cost a start-up delay of one tree depth, not bandwidth.
//!
//! A rank needs one block per connection end. Receive and send peers share blocks where that fuses a receive with
//! the forward of the same data, and elsewhere too, because blocks are scarce.

mod emit;
mod fit;
mod pairing;
mod pieces;

use canopy_schedule::{CollectiveKind, TransferGraph};

use self::emit::Emitter;
use self::fit::Overrun;
use self::pieces::Pieces;
use super::profile::Profile;
use super::program::Program;

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
}

/// Why a plan cannot be lowered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum LowerError {
    #[error(
        "{collective} cannot be lowered to an MSCCL file, only allgather, reduce-scatter, allreduce, broadcast and reduce"
    )]
    Unsupported { collective: CollectiveKind },
    #[error(
        "an MSCCL file cannot name the root of a {collective}, which is always rank 0, not {root}; renumber the ranks"
    )]
    Root { collective: CollectiveKind, root: u32 },
    #[error("`{name}` cannot be the name of an MSCCL file; use 1 to 63 letters, digits, `_`, `-` and `.`")]
    Name { name: String },
    #[error("a largest message of {bytes_max} bytes cannot be stated; use 1 to 9223372036854775806")]
    BytesMax { bytes_max: u64 },
    #[error("the {profile} profile allows {limit} {what}, {} {need}; {remedy}", needs(*rank))]
    OverLimit {
        profile: Profile,
        /// The limit, in words.
        what: &'static str,
        limit: u64,
        need: u64,
        /// The rank that needs most; none where the whole plan does.
        rank: Option<u32>,
        remedy: &'static str,
    },
    #[error("a transfer graph of {found} ranks moves nothing; use at least two")]
    TooFewRanks { found: u32 },
    #[error("batch {batch} of the transfer graph {what}; check the plan first")]
    Malformed { batch: usize, what: &'static str },
}

fn needs(rank: Option<u32>) -> String {
    rank.map_or("the plan needs".to_owned(), |rank| format!("rank {rank} needs"))
}

/// Lowers a checked transfer graph to the smallest number of channels that fits the runtime.
///
/// The routes of the graph do not matter: a file says who sends to whom, and the network decides how.
///
/// # Errors
/// The collective or its root cannot be said in a file, an option is unusable, or the plan is larger than a limit of
/// the runtime, which is named with what the plan needs. A graph that [`check`](canopy_schedule::check) refuses may
/// be refused here too, or give a program that [`prove`](super::prove) refuses.
///
/// O(steps log steps) per number of channels tried, of which there are at most 32.
pub fn lower(graph: &TransferGraph, options: &LowerOptions) -> Result<Program, LowerError> {
    check_request(graph, options)?;
    let pieces = Pieces::new(graph, options.profile)?;
    let channels_max = options.profile.limits().channels;
    let (mut lanes, mut spread) = (1, 1);
    loop {
        let program = Emitter::new(graph, options, &pieces, Channels { lanes, spread }).program();
        let overrun = match fit::check(&program, options.profile) {
            Ok(()) => return Ok(program),
            Err(overrun) => overrun,
        };
        match overrun {
            Overrun::StepsOfBlock(_) if (lanes + 1) * spread <= channels_max => lanes += 1,
            Overrun::PeersOfChannel(_) if lanes * (spread + 1) <= channels_max => spread += 1,
            Overrun::StepsOfBlock(error) | Overrun::PeersOfChannel(error) | Overrun::Other(error) => return Err(error),
        }
    }
}

/// How hops are distributed over channels: pieces take turns over `lanes`, and each lane is `spread` channels wide,
/// which divide the connections of a rank.
#[derive(Clone, Copy)]
struct Channels {
    lanes: u32,
    spread: u32,
}

impl Channels {
    fn count(self) -> u32 {
        self.lanes * self.spread
    }

    /// Channel of a hop. Any rank has peers at distinct distances, so each of the `spread` channels gets at most its
    /// part of them, rounded up.
    fn of_hop(self, lane: u32, from: u32, to: u32, rank_count: u32) -> u32 {
        let distance = (to + rank_count - from) % rank_count;
        lane * self.spread + distance * self.spread / rank_count
    }
}

fn check_request(graph: &TransferGraph, options: &LowerOptions) -> Result<(), LowerError> {
    let collective = graph.collective.kind();
    let is_known = matches!(
        collective,
        CollectiveKind::Allgather
            | CollectiveKind::ReduceScatter
            | CollectiveKind::Allreduce
            | CollectiveKind::Broadcast
            | CollectiveKind::Reduce
    );
    if !is_known {
        return Err(LowerError::Unsupported { collective });
    }
    if graph.rank_count < 2 {
        return Err(LowerError::TooFewRanks { found: graph.rank_count });
    }
    if let Some(root) = graph.collective.root().filter(|root| root.number() > 0) {
        return Err(LowerError::Root { collective, root: root.number() });
    }
    if !options.profile.accepts_name(&options.name) {
        return Err(LowerError::Name { name: options.name.chars().take(80).collect() });
    }
    if options.bytes_max == 0 || options.bytes_max >= i64::MAX as u64 {
        return Err(LowerError::BytesMax { bytes_max: options.bytes_max });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
