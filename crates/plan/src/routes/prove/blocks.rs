//! Every chunk that a rank has for another is posted once, and goes to its place.

use std::ops::Range;

use canopy_schedule::CollectiveKind;
use canopy_topology::Rank;

use super::network::Network;
use crate::oneccl::{Findings, Place};
use crate::routes::program::{Program, QueuePair};

/// What one rank has for another: chunks in a row of the input, and where they go in the output.
struct Block {
    input: u64,
    output: u64,
    count: u64,
}

/// Where blocks lie in buffers.
struct Blocks<'p> {
    kind: CollectiveKind,
    root: Option<Rank>,
    block_chunks: u64,
    network: &'p Network<'p>,
    /// By rank: where its share begins in the buffer of the root.
    starts: Vec<u64>,
}

/// Compares what is posted with what each rank has for each other.
pub(super) fn check(program: &Program, network: &Network<'_>, findings: &mut Findings<'_>) {
    let blocks = Blocks::new(program, network);
    for rank in &network.ranks {
        let mut pairs: Vec<&QueuePair> = rank.queue_pairs.iter().collect();
        pairs.sort_by_key(|pair| (pair.destination, pair.input_first));
        let destinations = blocks.destinations(rank.rank, program.rank_count);
        if let Some(pair) = pairs.iter().find(|pair| !destinations.contains(&pair.destination)) {
            let text =
                format!("queue pair {} carries chunks to rank {}, which receives none", pair.id, pair.destination);
            findings.problem(Place::rank(rank.rank), text);
            continue;
        }
        let work = destinations.len() + pairs.len();
        let mut left = pairs.as_slice();
        for destination in destinations {
            let count = left.partition_point(|pair| pair.destination == destination);
            let (own, others) = left.split_at(count);
            left = others;
            if let Err(fault) = covers(own, &blocks.between(rank.rank, destination)) {
                findings.problem(Place::rank(rank.rank), format!("for rank {destination}: {fault}"));
                // The same is likely to be wrong for others.
                break;
            }
        }
        if findings.is_full() || findings.must_stop(work as u64) {
            return;
        }
    }
}

/// Whether queue pairs in the order of their chunks carry a block whole and once.
fn covers(pairs: &[&QueuePair], block: &Block) -> Result<(), String> {
    let mut done = 0;
    for pair in pairs {
        let (input, output, count) =
            (u64::from(pair.input_first), u64::from(pair.output_first), u64::from(pair.chunk_count));
        let id = pair.id;
        if block.count == 0 {
            return Err(format!("queue pair {id} carries {count} chunks, but its rank has none to send"));
        }
        let expected = block.input + done;
        if input > expected {
            return Err(format!("no queue pair carries chunk {expected} of the input, since {id} starts with {input}"));
        }
        if input < expected {
            return Err(format!("queue pair {id} starts with chunk {input} of the input instead of {expected}"));
        }
        if output != block.output + done {
            let right = block.output + done;
            return Err(format!(
                "queue pair {id} carries chunk {input} of the input to chunk {output} of the output instead of {right}"
            ));
        }
        done += count;
        if done > block.count {
            let end = block.input + block.count;
            return Err(format!("queue pair {id} carries chunks from {input} on, beyond the last, {}", end - 1));
        }
    }
    match done == block.count {
        true => Ok(()),
        false => Err(format!("{} of its {} chunks are carried by no queue pair", block.count - done, block.count)),
    }
}

impl<'p> Blocks<'p> {
    fn new(program: &Program, network: &'p Network<'p>) -> Self {
        let kind = program.collective.kind();
        let mut end = 0_u64;
        let starts = network.ranks.iter().map(|rank| {
            let start = end;
            end += u64::from(if kind == CollectiveKind::Gather { rank.input_chunks } else { rank.output_chunks });
            start
        });
        let starts = starts.collect();
        Self { kind, root: program.collective.root(), block_chunks: program.block_chunks.into(), network, starts }
    }

    /// The ranks that an existing rank may have something for.
    fn destinations(&self, source: u32, rank_count: u32) -> Range<u32> {
        let root = self.root.map_or(0, Rank::number);
        match self.kind {
            CollectiveKind::Gather => root..root + 1,
            CollectiveKind::Scatter if source != root => 0..0,
            _ => 0..rank_count,
        }
    }

    /// What one existing rank has for another.
    fn between(&self, source: u32, destination: u32) -> Block {
        let (from, to) = (source as usize, destination as usize);
        let is_root = |rank: u32| self.root == Some(Rank::new(rank));
        let none = Block { input: 0, output: 0, count: 0 };
        if source == destination {
            return none;
        }
        match self.kind {
            CollectiveKind::Gather if is_root(destination) => {
                Block { input: 0, output: self.starts[from], count: self.network.ranks[from].input_chunks.into() }
            }
            CollectiveKind::Scatter if is_root(source) => {
                Block { input: self.starts[to], output: 0, count: self.network.ranks[to].output_chunks.into() }
            }
            CollectiveKind::AllToAll => {
                let chunks = self.block_chunks;
                Block { input: u64::from(destination) * chunks, output: u64::from(source) * chunks, count: chunks }
            }
            _ => none,
        }
    }
}
