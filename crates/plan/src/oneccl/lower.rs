//! Lowers a transfer graph to a program of steps.
//!
//! A transfer's step is its level: the longest chain of transfers that it waits for. So what it sends is final before
//! the step begins, and what arrives in a step is used in later ones. Sends are from rank to rank; how the network
//! carries them is its own business.

mod chunks;
mod places;
mod scratch;
mod steps;

use canopy_schedule::{Action, CollectiveKind, Shares, TransferGraph};
use canopy_topology::Topology;

use chunks::Chunks;
use places::{Arrival, Places};
use steps::Steps;

use super::parse::is_label;
use super::program::{Program, RankProgram};
use crate::msccl::forwarder_on_routes;
use crate::oneccl::memory::expected_chunks;
use crate::proof::Stop;

/// Most chunks of all transfers together: each is placed by itself, which takes some 100 bytes.
const MOVES_MAX: u64 = 1 << 23;

/// How to lower.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LowerOptions {
    /// Label of the plan: 1 to 63 letters, digits, `_`, `-` and `.`.
    pub name: String,
    /// Whether input and output share memory.
    pub in_place: bool,
    /// Largest message in bytes, inclusive; `None` for no limit.
    pub bytes_max: Option<u64>,
    /// Parallel copies, 1 to 64.
    pub instances: u32,
}

/// Why a transfer graph cannot be lowered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum LowerError {
    #[error("a oneCCL plan cannot express shares of unequal size; remove the shares or choose json")]
    Shares,
    #[error("a oneCCL plan is for 2 to 65535 ranks, not {found}; split the ranks into groups")]
    Ranks { found: u32 },
    #[error("a transfer graph without chunks moves no data; use at least one chunk per share")]
    NoChunks,
    #[error("`{name}` is not a valid name for a oneCCL plan; use 1 to 63 letters, digits, `_`, `-` and `.`")]
    Name { name: String },
    #[error("{found} instances are not supported; use 1 to 64")]
    Instances { found: u32 },
    #[error("a largest message of {found} bytes is not supported; use 1 to 9223372036854775807")]
    BytesMax { found: u64 },
    #[error("the plan needs {need} {what}, over the limit of {limit}; plan for fewer ranks, or with fewer chunks")]
    OverLimit { what: &'static str, need: u64, limit: u64 },
    #[error(
        "rank {rank} is on machine `{node}`, which a oneCCL plan cannot name: use 1 to 255 bytes without white space and \
         commas, or leave out the placement"
    )]
    Machine { rank: usize, node: String },
    #[error(
        "the devices of the ranks take {found} characters in a oneCCL plan, over the limit of {limit}; use shorter names of \
         machines, or leave out the placement"
    )]
    RankMap { found: usize, limit: usize },
    #[error("oneCCL runs only on ranks, but the plan's routes pass through `{id}`; leave it unused, or make it a rank")]
    Forwarder { id: String },
    #[error("transfer {transfer} of the graph {what}; check the plan first")]
    Malformed { transfer: usize, what: &'static str },
    #[error("stopped as requested; ask again for the program")]
    Stopped,
}

/// Refuses transfers over routes that pass compute devices which are no ranks: nothing would forward there.
///
/// # Errors
/// [`LowerError::Forwarder`] with the first such device. O(carriers + links of routes).
pub fn require_own_routes(topology: &Topology, graph: &TransferGraph) -> Result<(), LowerError> {
    forwarder_on_routes(topology, graph).map_or(Ok(()), |id| Err(LowerError::Forwarder { id: id.to_owned() }))
}

/// Lowers a checked transfer graph.
///
/// Chunks of a file are as large as all parts of shares that the graph moves allow. Messages of a step between the same
/// ranks are one where their chunks lie in a row on both sides.
///
/// * **Errors.** Shares of different sizes, an option that is unusable, more than a file can say, or `stop`, asked for
///   every few transfers, returned true. A graph that [`check`](canopy_schedule::check) refuses may be refused here too,
///   or give a program that [`prove`](super::prove) refuses.
/// * **Cost.** O((transfers + dependencies) + m log m) for m chunks moved.
pub fn lower(graph: &TransferGraph, options: &LowerOptions, stop: Stop<'_>) -> Result<Program, LowerError> {
    check_request(graph, options)?;
    let chunks = Chunks::new(graph)?;
    let mut program = Program {
        name: options.name.clone(),
        collective: graph.collective,
        rank_count: graph.rank_count,
        chunk_count: chunks.count(),
        in_place: options.in_place,
        instances: options.instances,
        bytes_min: 0,
        bytes_max: options.bytes_max,
        meta: Vec::new(),
        routes: Vec::new(),
        ranks: Vec::new(),
    };
    for rank in 0..graph.rank_count {
        let (input_chunks, output_chunks) = expected_chunks(&program, rank);
        program.ranks.push(RankProgram { rank, input_chunks, output_chunks, scratch_chunks: 0, steps: Vec::new() });
    }
    let levels = levels(graph, stop)?;
    let mut order: Vec<usize> = (0..levels.len()).collect();
    order.sort_by_key(|&transfer| levels[transfer]);
    let actions = actions(graph)?;
    let mut places = Places::new(&program, &chunks, graph, &levels, stop)?;
    let mut steps = Steps::new(&program, &chunks);
    for of_level in order.chunk_by(|&first, &second| levels[first] == levels[second]) {
        let Some(&first) = of_level.first() else { continue };
        if stop() {
            return Err(LowerError::Stopped);
        }
        let level = levels[first];
        places.begin(level);
        // All sources before any arrival: what arrives in a step is not sent in it.
        let mut arrivals = Vec::new();
        for &transfer in of_level {
            let (from, to) = (graph.transfers[transfer].from.number(), graph.transfers[transfer].to.number());
            let (batch, is_reduction) = (actions[transfer], graph.batches[actions[transfer]].action == Action::Reduce);
            for chunk in chunks.of(&graph.batches[batch]) {
                let source = places
                    .source(from, chunk)
                    .ok_or(LowerError::Malformed { transfer, what: "sends a chunk that its sender does not have" })?;
                arrivals.push(Arrival { from, to, chunk, source, is_reduction, transfer });
            }
        }
        arrivals.sort_by_key(|arrival| (arrival.from, arrival.to, arrival.source, arrival.transfer));
        for arrival in &arrivals {
            let destination = places.receive(arrival, level)?;
            steps.add(level, arrival, destination);
        }
    }
    let scratch = places.scratch_counts();
    for ((rank, own), scratch_chunks) in program.ranks.iter_mut().zip(steps.finish()).zip(scratch) {
        (rank.steps, rank.scratch_chunks) = (own, scratch_chunks);
    }
    Ok(program)
}

fn check_request(graph: &TransferGraph, options: &LowerOptions) -> Result<(), LowerError> {
    if graph.shares != Shares::Equal && graph.collective.kind() != CollectiveKind::Allreduce {
        return Err(LowerError::Shares);
    }
    if !(2..=65535).contains(&graph.rank_count) {
        return Err(LowerError::Ranks { found: graph.rank_count });
    }
    check_options(options)
}

/// Refuses options that the format cannot express.
pub(crate) fn check_options(options: &LowerOptions) -> Result<(), LowerError> {
    if !is_label(&options.name) {
        return Err(LowerError::Name { name: options.name.chars().take(80).collect() });
    }
    if !(1..=64).contains(&options.instances) {
        return Err(LowerError::Instances { found: options.instances });
    }
    match options.bytes_max {
        Some(found) if found == 0 || i64::try_from(found).is_err() => Err(LowerError::BytesMax { found }),
        _ => Ok(()),
    }
}

/// How many transfers one after the other each waits for.
fn levels(graph: &TransferGraph, stop: Stop<'_>) -> Result<Vec<u32>, LowerError> {
    let mut levels: Vec<u32> = Vec::with_capacity(graph.transfers.len());
    for (transfer, own) in graph.transfers.iter().enumerate() {
        if transfer.is_multiple_of(1024) && stop() {
            return Err(LowerError::Stopped);
        }
        if own.from.number() >= graph.rank_count || own.to.number() >= graph.rank_count || own.from == own.to {
            return Err(LowerError::Malformed { transfer, what: "is not from one rank to another" });
        }
        let mut level = 0;
        for &before in graph.dependencies_of(own) {
            let what = "waits for a later one";
            let before = levels.get(before as usize).ok_or(LowerError::Malformed { transfer, what })?;
            level = level.max(before + 1);
        }
        levels.push(level);
    }
    Ok(levels)
}

/// The batch of each transfer.
fn actions(graph: &TransferGraph) -> Result<Vec<usize>, LowerError> {
    let mut batches = vec![usize::MAX; graph.transfers.len()];
    for (index, batch) in graph.batches.iter().enumerate() {
        let own = batch.transfers.start as usize..batch.transfers.end as usize;
        let what = "does not exist, but a batch has it";
        let slots = batches.get_mut(own.clone()).ok_or(LowerError::Malformed { transfer: own.start, what })?;
        slots.fill(index);
    }
    match batches.iter().position(|&batch| batch == usize::MAX) {
        Some(transfer) => Err(LowerError::Malformed { transfer, what: "belongs to no batch" }),
        None => Ok(batches),
    }
}
