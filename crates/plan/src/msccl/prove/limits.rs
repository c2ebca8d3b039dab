//! The runtime's tables, and what is allowed but unwise.

use std::collections::BTreeMap;

use super::place::{Findings, Place};
use crate::msccl::profile::{Profile, ProfileLimits};
use crate::msccl::program::{Operation, Program, RankProgram, Step};

/// More bytes than an accelerator holds: 288 GiB is the most in 2026, and input, output and scratch share it.
const ACCELERATOR_BYTES_MAX: u64 = 288 << 30;

/// A prime factor of the chunk count beyond this makes few message sizes divisible.
const PRIME_WISE: u32 = 13;

pub(super) fn check(program: &Program, profile: Profile, findings: &mut Findings<'_>) {
    let limits = profile.limits();
    let needs_name = profile.limits().required.contains(&"name");
    if !profile.accepts_name(&program.name) && (needs_name || !program.name.is_empty()) {
        findings.problem(Place::FILE, "the name is not valid; use 1 to 63 letters, digits, `_`, `-` and `.`");
    }
    at_most(findings, Place::FILE, "nchannels", program.channel_count, limits.channels);
    at_most(findings, Place::FILE, "<gpu> elements", program.ranks.len(), limits.children);
    check_rounds(program, profile, findings);
    if let Some(prime) = largest_prime_factor(program.chunk_count).filter(|&prime| prime > PRIME_WISE) {
        let text = format!("nchunksperloop is a multiple of {prime}, so messages that are not use the stock algorithm");
        findings.warning(Place::FILE, text);
    }
    let used = program.ranks.iter().flat_map(|rank| &rank.thread_blocks).map(|block| block.channel).max();
    if used.is_some_and(|used| u64::from(used) + 1 < u64::from(program.channel_count)) {
        findings.warning(Place::FILE, format!("nchannels is {}, but some are unused", program.channel_count));
    }
    for rank in &program.ranks {
        check_rank(program, rank, profile, findings);
    }
}

fn at_most(findings: &mut Findings<'_>, place: Place, what: &str, found: impl TryInto<u64>, limit: u32) {
    let found = found.try_into().unwrap_or(u64::MAX);
    if found > u64::from(limit) {
        findings.problem(place, format!("{found} {what}, over the runtime's {limit}"));
    }
}

fn check_rounds(program: &Program, profile: Profile, findings: &mut Findings<'_>) {
    // A bound beyond all memory says that there is none: no message that large is ever called for.
    let Some(stated) = profile.bytes_max_of(program.bytes_max) else { return };
    let bytes = stated.min(ACCELERATOR_BYTES_MAX);
    let chunk_bytes = bytes.div_ceil(u64::from(program.chunk_count.max(1)));
    let rounds = chunk_bytes.div_ceil(profile.limits().queue(program.protocol).transfer_bytes);
    if rounds > profile.limits().rounds {
        let limit = profile.limits().rounds;
        let text = format!("a message of {bytes} bytes takes {rounds} rounds, over the {limit} that flags can count");
        findings.problem(Place::FILE, text);
    }
}

fn check_rank(program: &Program, rank: &RankProgram, profile: Profile, findings: &mut Findings<'_>) {
    let limits = profile.limits();
    let place = Place::rank(rank.rank);
    let blocks = rank.thread_blocks.len();
    let steps: usize = rank.thread_blocks.iter().map(|block| block.steps.len()).sum();
    at_most(findings, place, "thread blocks", blocks, limits.blocks_per_rank);
    at_most(findings, place, "XML nodes", 1 + program.ranks.len() + blocks + steps, limits.nodes);
    if blocks > limits.blocks_resident as usize && blocks <= limits.blocks_per_rank as usize {
        let wise = limits.blocks_resident;
        findings
            .warning(place, format!("{blocks} thread blocks, of which more than {wise} may not be resident at once"));
    }
    if rank.scratch_chunks > program.chunk_count {
        findings.warning(place, format!("scratch of {} chunks is larger than the message", rank.scratch_chunks));
    }
    let mut peers: BTreeMap<(u32, &str), u32> = BTreeMap::new();
    for block in &rank.thread_blocks {
        let place = Place::block(rank.rank, block.id);
        at_most(findings, place, "steps", block.steps.len(), limits.steps_per_block);
        for (direction, peer) in [("send", block.send), ("receive", block.receive)] {
            if peer.is_some() {
                *peers.entry((block.channel, direction)).or_default() += 1;
            }
        }
        for (position, step) in (0_u32..).zip(&block.steps) {
            check_step(step, profile, Place::step(rank.rank, block.id, position), findings);
        }
        check_fused_chains(&block.steps, limits, place, findings);
    }
    for ((channel, direction), count) in peers {
        let what = format!("blocks with a {direction} peer on channel {channel}");
        at_most(findings, place, &what, count, limits.peers_per_channel);
    }
}

fn check_step(step: &Step, profile: Profile, place: Place, findings: &mut Findings<'_>) {
    let limits = profile.limits();
    if !profile.allows(step.operation) {
        let allowed: Vec<&str> = limits.operations.iter().map(|operation| operation.name()).collect();
        let (name, allowed) = (step.operation.name(), allowed.join(", "));
        findings.problem(place, format!("{profile} has no operation `{name}`; use {allowed}"));
    }
    at_most(findings, place, "chunks in one step", step.chunk_count, limits.chunks_per_step);
    for offset in [step.source.offset, step.destination.offset].into_iter().flatten() {
        at_most(findings, place, "as a chunk offset", offset, limits.offset);
    }
    if let Some(block) = step.wait_block {
        at_most(findings, place, "as the block of a dependency", block, limits.dependency_block);
    }
}

/// Runs of `re` steps that the runtime turns into one operation: it compares neither their counts nor, after the
/// first chain of a block, their number.
fn check_fused_chains(steps: &[Step], limits: &ProfileLimits, place: Place, findings: &mut Findings<'_>) {
    let joins = |earlier: &Step, later: &Step| {
        earlier.operation == Operation::Reduce
            && later.operation == Operation::Reduce
            && earlier.destination == later.destination
            && earlier.source.buffer == later.source.buffer
            && later.wait_block.is_none()
            && !earlier.is_awaited
    };
    for chain in steps.chunk_by(joins) {
        if chain.iter().any(|step| step.chunk_count != chain[0].chunk_count) {
            findings
                .problem(place, "a chain of fused `re` steps has unequal cnt, and the runtime uses the last for all");
        }
        if chain.len() > limits.fused_reductions as usize {
            let limit = limits.fused_reductions;
            findings.warning(place, format!("{} `re` steps fuse into one; break the chain after {limit}", chain.len()));
        }
    }
}

fn largest_prime_factor(number: u32) -> Option<u32> {
    let (mut rest, mut largest, mut candidate) = (number, None, 2);
    while rest > 1 && u64::from(candidate) * u64::from(candidate) <= u64::from(rest) {
        while rest.is_multiple_of(candidate) {
            (rest, largest) = (rest / candidate, Some(candidate));
        }
        candidate += 1;
    }
    if rest > 1 { Some(rest) } else { largest }
}
