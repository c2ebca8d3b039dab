//! Lowers a transfer graph to thread blocks that write into each other's memory.
//!
//! Data is always pushed: over memory channels inside a box, over port channels between boxes, into the receiver's output
//! where it must end there, else into scratch of its own. A rank tells those who will write to it that it has begun, and
//! ends only when everything that is written to it has arrived, so no access falls outside its owner's launch.
//!
//! Groups of trees that share no chunks need no order among them. They are divided among *lanes*, which run side by
//! side: at each rank a lane is one thread block, or several in a row that hand over by device semaphores where the
//! runtime has no room in one. Two blocks that signal each other have a channel of their own, so nothing else can take
//! its signals.
//!
//! | module | decides |
//! |---|---|
//! | `network` | what follows from the topology |
//! | `layout` | where chunks lie in the buffers, and how many there are |
//! | `trees` | the trees of the graph, in that numbering |
//! | `atoms` | what each rank does with each tree, and in which order |
//! | `switches` | what switches store at several ranks at once, or add up |
//! | `lanes`, `pairs`, `draft` | which block does it, with the waits and meetings of threads that the order needs |
//! | `room` | what has no room whatever the arrangement, before anything is numbered |
//! | `assemble` | numbers of channels, remote buffers and semaphores |

mod assemble;
mod atoms;
mod draft;
mod lanes;
mod layout;
mod network;
mod pairs;
mod room;
mod switches;
mod trees;

use canopy_schedule::TransferGraph;

use self::assemble::{Assembly, LESS_DEGREE};
use self::atoms::{Atom, Atoms};
use self::draft::Room;
use self::layout::Layout;
use self::network::{Mistaken, mistaken};
use self::pairs::Pairs;
use self::room::{Blocks, Needs};
use self::switches::through_switches;
use self::trees::{SwitchTrees, groups, read_trees};
use super::contract;
use super::loader::message_chunks;
use super::machine::CELLS_MAX;
use super::profile::ExecutorProfile;
use super::program::{ExecutionPlan, ExecutionRank};
use super::switches::SwitchDomain;
use crate::need::Certainty;
use crate::proof::Stop;

/// Lanes that are tried, the first that fits is taken. More move data side by side; fewer need fewer blocks.
const LANES: [usize; 6] = [32, 16, 8, 4, 2, 1];

/// Pieces of each chunk that are tried: the first that blocks have room for. A tree is as fast as its links only while
/// pieces follow one another along it.
const PIECES: [u32; 4] = [8, 4, 2, 1];

/// Least bytes of a piece of the largest message: shorter ones are not worth a signal each.
const PIECE_BYTES_MIN: u64 = 1 << 16;

/// What a plan is lowered for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutionLowerOptions {
    /// Input and output share memory.
    pub in_place: bool,
    /// Largest message in bytes, inclusive. Larger ones are left to other algorithms.
    pub bytes_max: u64,
    /// The version of the runtime.
    pub profile: ExecutorProfile,
    /// Label in the file.
    pub name: String,
    /// The box of each rank: ranks of one box reach each other's memory. Empty: all are in one.
    pub boxes: Vec<u32>,
    /// Ranks that a switch multicasts to or sums. Empty: every rank writes to every other rank itself.
    pub switches: Vec<SwitchDomain>,
}

/// Why a plan cannot be lowered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum ExecutionLowerError {
    #[error("files for {profile} have chunks of one size and cannot express shares of unequal size; choose json")]
    Shares { profile: ExecutorProfile },
    #[error(
        "{profile} runs only on ranks, but the plan's routes pass through `{id}`; leave it unused, or make it a rank"
    )]
    Forwarder { profile: ExecutorProfile, id: String },
    #[error("found the boxes of {found} ranks for a graph of {expected}; give one for each rank, or none")]
    Boxes { found: usize, expected: u32 },
    #[error("the {profile} profile allows {limit} {what}, but {} {need}; {remedy}", certainty.needs(*rank))]
    OverLimit {
        profile: ExecutorProfile,
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
        "{profile} takes ranks {rank} and {peer} for ranks of one box, because it counts {of_box} ranks at a time, but they are \
         in different boxes; give all boxes one number of consecutive ranks"
    )]
    Domains { profile: ExecutorProfile, rank: u32, peer: u32, of_box: u32 },
    #[error(
        "this plan for {profile} takes messages up to {bytes_max} bytes, not from {bytes_min} bytes on; use smaller \
         sizes or another format"
    )]
    BytesMin { profile: ExecutorProfile, bytes_min: u64, bytes_max: u64 },
    #[error(
        "{profile} measures a gather by the part of one rank and cannot start at a size of the whole message; plan for \
         all sizes, or use another format"
    )]
    Measure { profile: ExecutorProfile },
    #[error("a transfer graph of {found} ranks moves no data; use at least two ranks")]
    TooFewRanks { found: u32 },
    #[error("a transfer graph without chunks moves no data; use at least one chunk per share")]
    NoChunks,
    #[error("batch {batch} of the transfer graph {what}; check the plan first")]
    Malformed { batch: usize, what: &'static str },
    #[error("rank {rank} sends chunk {chunk} of the transfer graph before it has it; check the plan first")]
    NotHeld { rank: u32, chunk: u64 },
    #[error("stopped as requested; ask again for the plan")]
    Stopped,
}

/// Asks once in 256 rounds of a loop, some microseconds each.
fn check_stop(stop: Stop<'_>, round: usize) -> Result<(), ExecutionLowerError> {
    if round.is_multiple_of(256) && stop() { Err(ExecutionLowerError::Stopped) } else { Ok(()) }
}

/// Lowers a checked transfer graph.
///
/// The routes of the graph do not matter: a file says who writes to whom, and the network decides how. Any rank may be
/// the root. `max_message_size` is the largest message asked for, or the largest whose offsets fit 32 bits; the size of a
/// message must be a multiple of [`execution_alignment_bytes`].
///
/// * **Errors.** A limit of the runtime is exceeded in every arrangement, which is named with what is needed; shares of
///   different sizes; boxes that the runtime would divide otherwise; a graph that [`check`](canopy_schedule::check) refuses. `stop` returned true.
/// * **Cost.** O(transfers log transfers) per number of lanes tried, of which there are six, thrice at most.
pub fn lower_execution_plan(
    graph: &TransferGraph,
    options: &ExecutionLowerOptions,
    stop: Stop<'_>,
) -> Result<ExecutionPlan, ExecutionLowerError> {
    lower_in_pieces(graph, options, u32::MAX, stop)
}

/// The same with chunks in so many pieces at most: pieces of neighbouring chunks do not lie in their order.
pub(super) fn lower_in_pieces(
    graph: &TransferGraph,
    options: &ExecutionLowerOptions,
    pieces_max: u32,
    stop: Stop<'_>,
) -> Result<ExecutionPlan, ExecutionLowerError> {
    if graph.rank_count < 2 {
        return Err(ExecutionLowerError::TooFewRanks { found: graph.rank_count });
    }
    if graph.chunks_per_share == 0 || graph.batches.is_empty() {
        return Err(ExecutionLowerError::NoChunks);
    }
    if !options.boxes.is_empty() && options.boxes.len() != graph.rank_count as usize {
        return Err(ExecutionLowerError::Boxes { found: options.boxes.len(), expected: graph.rank_count });
    }
    let whole = Layout::new(graph, options)?;
    let trees = read_trees(graph, &whole, &options.switches, stop)?;
    let switched = through_switches(&trees, &whole, options);
    if !switched.groups.is_empty()
        && let Ok(ranks) = lower_trees(&switched, (&whole, pieces_max), options, stop)?
    {
        return finish(ranks, graph, options);
    }
    // Where a plan with switches has no room in the runtime, one without may have.
    match lower_trees(&SwitchTrees { trees, groups: Vec::new() }, (&whole, pieces_max), options, stop)? {
        Ok(ranks) => finish(ranks, graph, options),
        Err(missed) => Err(missed.unwrap_or(ExecutionLowerError::NoChunks)),
    }
}

/// The ranks of a plan in the most pieces and lanes that fit, else the limit that is exceeded, if that is what is wrong.
fn lower_trees(
    trees: &SwitchTrees,
    (whole, pieces_max): (&Layout, u32),
    options: &ExecutionLowerOptions,
    stop: Stop<'_>,
) -> Result<Result<Vec<ExecutionRank>, Option<ExecutionLowerError>>, ExecutionLowerError> {
    let mut missed = None;
    let uncut = Atoms::new(trees, whole, stop)?;
    let needs = Needs::of(&uncut, |a, b| is_port(options, a, b), room(options), options.profile);
    if let Some(over) = needs.over_limit(options.profile) {
        return Ok(Err(Some(over)));
    }
    let pieces_max = pieces_max.min(needs.pieces_max);
    for pieces in pieces(trees, whole, options).filter(|&pieces| pieces == 1 || pieces <= pieces_max) {
        let Some(layout) = whole.in_pieces(pieces) else { continue };
        let cut = if pieces == 1 { None } else { Some(Atoms::new(trees, &layout, stop)?) };
        let atoms = cut.as_ref().unwrap_or(&uncut);
        // What the proof cannot follow is not handed out: fewer pieces are better than none.
        if pieces > 1 && layout.cells(&atoms.scratch) > CELLS_MAX / 2 {
            continue;
        }
        match arrange(atoms, &layout, options, stop)? {
            Ok(ranks) => return Ok(Ok(ranks)),
            Err(over) => missed = over.or(missed),
        }
    }
    Ok(Err(missed))
}

/// Numbers of pieces that are worth a try. Where nothing is passed on, and no switch stores in several blocks at once, pieces
/// gain nothing.
fn pieces(trees: &SwitchTrees, layout: &Layout, options: &ExecutionLowerOptions) -> impl Iterator<Item = u32> {
    let trees = &trees.trees;
    let gains = trees.iter().any(|tree| tree.depth() > 1 || tree.is_stored()) || groups(trees).len() < trees.len();
    let (input, output) = layout.buffers();
    let chunk_bytes = options.bytes_max / u64::from(input.max(output)).max(1);
    let most = if gains { chunk_bytes / PIECE_BYTES_MIN } else { 1 };
    PIECES.into_iter().filter(move |&pieces| pieces == 1 || u64::from(pieces) <= most)
}

/// The ranks of a plan with the most lanes, and the most peers in each block, that fit. Several pieces must fit one block each; one is given as many as it
/// takes. Else the limit that is exceeded, if that is what is wrong.
fn arrange(
    atoms: &Atoms,
    layout: &Layout,
    options: &ExecutionLowerOptions,
    stop: Stop<'_>,
) -> Result<Result<Vec<ExecutionRank>, Option<ExecutionLowerError>>, ExecutionLowerError> {
    let arranging = Arranging { atoms, layout, options, stop };
    let mut pairs = Pairs::of(atoms);
    let mut missed = None;
    let room = room(options);
    let has_too_many_channels =
        |over: &ExecutionLowerError| matches!(over, ExecutionLowerError::OverLimit { remedy: LESS_DEGREE, .. });
    for lanes in LANES {
        let divided = lanes::divide(atoms, lanes);
        // Peers that divide their sides of a channel among more blocks than were left room for need blocks of fewer peers.
        for channels in [room.channels, room.channels * 2 / 3, room.channels / 3] {
            match arranging.lanes(&divided, &mut pairs, Room { channels, ..room })? {
                Tried::Fits(ranks) => return Ok(Ok(ranks)),
                // Fewer lanes are longer still.
                Tried::HandsOver => return Ok(Err(None)),
                Tried::Missed(over) => {
                    let is_last = !has_too_many_channels(&over);
                    missed = Some(over);
                    if is_last {
                        break;
                    }
                }
            }
        }
    }
    Ok(Err(missed))
}

/// Atoms that are to be divided among blocks.
struct Arranging<'a> {
    atoms: &'a Atoms,
    layout: &'a Layout,
    options: &'a ExecutionLowerOptions,
    stop: Stop<'a>,
}

/// What came of some lanes.
enum Tried {
    Fits(Vec<ExecutionRank>),
    /// There are several pieces, and some rank has not room for all in one block.
    HandsOver,
    Missed(ExecutionLowerError),
}

impl Arranging<'_> {
    /// The ranks of a plan in these lanes.
    fn lanes(&self, lanes: &[Vec<&Atom>], pairs: &mut Pairs, room: Room) -> Result<Tried, ExecutionLowerError> {
        let Self { atoms, layout, options, stop } = *self;
        let is_port = |a: u32, b: u32| is_port(options, a, b);
        let mut blocks = Blocks::new(options.profile);
        let mut drafts = Vec::with_capacity(lanes.len());
        for (number, lane) in lanes.iter().enumerate() {
            check_stop(stop, 0)?;
            let drafted = lanes::draft(number, lane, (atoms, pairs), is_port, room);
            if layout.pieces > 1 && drafted.values().any(|draft| draft.blocks.len() > 1) {
                return Ok(Tried::HandsOver);
            }
            blocks.add(&drafted);
            if let Some(over) = blocks.too_many() {
                return Ok(Tried::Missed(over));
            }
            drafts.push(drafted);
        }
        let planned = Assembly::new(layout, atoms, drafts, is_port, options).plan(stop)?;
        Ok(planned.map_or_else(Tried::Missed, Tried::Fits))
    }
}

/// Whether two ranks write to each other through proxies.
fn is_port(options: &ExecutionLowerOptions, a: u32, b: u32) -> bool {
    options.boxes.get(a as usize) != options.boxes.get(b as usize)
}

/// What a block is filled with.
const fn room(options: &ExecutionLowerOptions) -> Room {
    let limits = options.profile.limits();
    // Peers of a block may divide what it has one channel for among several blocks of theirs: leave some room.
    let channels = limits.channels_per_block as usize * 3 / 4;
    Room { operations: limits.operations_per_block as usize, channels }
}

/// Bytes of which the size of a message must be a multiple: every chunk is a whole number of aligned units.
pub fn execution_alignment_bytes(plan: &ExecutionPlan) -> u64 {
    plan.alignment_bytes.saturating_mul(message_chunks(plan).max(1).into())
}

fn finish(
    ranks: Vec<ExecutionRank>,
    graph: &TransferGraph,
    options: &ExecutionLowerOptions,
) -> Result<ExecutionPlan, ExecutionLowerError> {
    let profile = options.profile;
    if let Some(Mistaken { rank, peer, of_box }) = mistaken(&ranks, &options.boxes) {
        return Err(ExecutionLowerError::Domains { profile, rank, peer, of_box });
    }
    let mut plan = ExecutionPlan {
        name: options.name.clone(),
        collective: contract::word(graph.collective.kind()).to_owned(),
        is_ll: false,
        in_place: options.in_place,
        reuse_resources: false,
        double_scratch: false,
        alignment_bytes: 16,
        threads_per_block: profile.limits().threads_per_block,
        bytes_min: 0,
        bytes_max: 0,
        ranks,
    };
    let longest = |rank: &ExecutionRank| rank.input_chunks.max(rank.output_chunks).max(rank.scratch_chunks);
    let chunks_max = u64::from(plan.ranks.iter().map(longest).max().unwrap_or(1).max(1));
    let chunk_bytes = profile.limits().offset_bytes / chunks_max / plan.alignment_bytes * plan.alignment_bytes;
    let bytes_max = chunk_bytes.saturating_mul(message_chunks(&plan).into()).min(options.bytes_max);
    if chunk_bytes == 0 {
        return Err(ExecutionLowerError::OverLimit {
            profile,
            what: "bytes in a buffer",
            limit: profile.limits().offset_bytes,
            need: chunks_max * plan.alignment_bytes,
            rank: None,
            certainty: Certainty::Found,
            remedy: "plan with fewer trees or chunks",
        });
    }
    plan.bytes_max = profile.bytes_max_attribute(bytes_max);
    Ok(plan)
}
