//! Ranks, blocks, peers, channels, chunk counts and ranges.

use canopy_schedule::CollectiveKind;

use super::place::{Findings, Place};
use crate::msccl::profile::{ByteRange, PlacementRule, Profile};
use crate::msccl::program::{
    Chunks, Operation, Program, Purpose, RankProgram, Step, ThreadBlock, expected_chunks, has_buffer,
};

pub(super) fn check(program: &Program, profile: Profile, findings: &mut Findings<'_>) {
    check_head(program, profile, findings);
    let mut seen = vec![false; program.ranks.len()];
    for rank in &program.ranks {
        let place = Place::rank(rank.rank);
        match mark(&mut seen, rank.rank) {
            Some(false) => {}
            Some(true) => findings.problem(place, "is listed twice; give each rank one <gpu>"),
            None => findings.problem(place, format!("is not one of the ranks 0 to {}", program.ranks.len().max(1) - 1)),
        }
        check_rank(program, rank, findings);
    }
}

/// Marks an index; says whether it was marked before, and `None` outside the table.
fn mark(seen: &mut [bool], index: u32) -> Option<bool> {
    seen.get_mut(index as usize).map(|seen| std::mem::replace(seen, true))
}

fn check_head(program: &Program, profile: Profile, findings: &mut Findings<'_>) {
    let ranks = program.rank_count;
    let is_known = match program.purpose {
        Purpose::Collective(kind) => profile.spell(kind).is_some(),
        Purpose::Unjudged(word) => profile.limits().collectives_unjudged.contains(&word),
    };
    if !is_known {
        findings.problem(Place::FILE, format!("files for {profile} cannot express {}", program.purpose));
    }
    if ranks < 2 {
        findings.problem(Place::FILE, format!("ngpus is {ranks}; use at least 2"));
    }
    if program.ranks.len() != ranks as usize {
        findings.problem(Place::FILE, format!("ngpus is {ranks} but there are {} <gpu>", program.ranks.len()));
    }
    if program.channel_count == 0 || program.chunk_count == 0 {
        findings.problem(Place::FILE, "nchannels and nchunksperloop must be at least 1");
    }
    let has_shares = matches!(
        program.purpose.collective(),
        Some(CollectiveKind::Allgather | CollectiveKind::ReduceScatter | CollectiveKind::AllToAll)
    );
    if has_shares && ranks > 0 && !program.chunk_count.is_multiple_of(ranks) {
        let chunks = program.chunk_count;
        findings.problem(Place::FILE, format!("nchunksperloop {chunks} cannot be shared equally by {ranks} ranks"));
    }
    check_placement(program, profile, findings);
    check_bytes(program, profile, findings);
}

/// The calls that the file says it is for are what the runtime takes it to say.
fn check_placement(program: &Program, profile: Profile, findings: &mut Findings<'_>) {
    match (profile.limits().placement, program.in_place, program.out_of_place) {
        (PlacementRule::BothFlags, false, Some(false)) => {
            findings.problem(Place::FILE, "inplace and outofplace are both 0, so the file is for no call");
        }
        (PlacementRule::InPlaceEquals, in_place, Some(out_of_place)) if in_place == out_of_place => {
            let calls = if in_place { "in place" } else { "out of place" };
            let text = format!("{profile} ignores outofplace and uses inplace, so the file serves only calls {calls}");
            findings.warning(Place::FILE, text);
        }
        _ => {}
    }
}

fn check_bytes(program: &Program, profile: Profile, findings: &mut Findings<'_>) {
    let (bytes_min, bytes_max) = (program.bytes_min.unwrap_or(0), program.bytes_max.or(profile.bytes_max_default()));
    let Some(bytes_max) = bytes_max else {
        return findings
            .problem(Place::FILE, format!("maxBytes is missing, and {profile} rejects the file without it"));
    };
    if bytes_max == 0 && profile.limits().byte_range == ByteRange::Inclusive {
        findings.warning(Place::FILE, "maxBytes 0 admits no message on msccl and any message elsewhere; state a bound");
    } else if profile.bytes_max_inclusive(bytes_max).is_none_or(|most| bytes_min.max(1) > most) {
        findings.problem(Place::FILE, format!("no message is from minBytes {bytes_min} up to maxBytes {bytes_max}"));
    }
}

fn check_rank(program: &Program, rank: &RankProgram, findings: &mut Findings<'_>) {
    let place = Place::rank(rank.rank);
    let (input, output) = expected_chunks(program, rank);
    for (name, found, expected) in [("i_chunks", rank.input_chunks, input), ("o_chunks", rank.output_chunks, output)] {
        if found != expected && found != 0 {
            findings
                .problem(place, format!("{name} is {found}; use {expected} for this collective, or 0 where unused"));
        }
    }
    let mut seen = vec![false; rank.thread_blocks.len()];
    for block in &rank.thread_blocks {
        let place = Place::block(rank.rank, block.id);
        match mark(&mut seen, block.id) {
            Some(false) => {}
            Some(true) => findings.problem(place, "is listed twice; give each block its own id"),
            None => findings.problem(place, "leaves a gap; number blocks 0, 1, 2, … in each rank"),
        }
        check_block(program, rank, block, findings);
    }
}

fn check_block(program: &Program, rank: &RankProgram, block: &ThreadBlock, findings: &mut Findings<'_>) {
    let place = Place::block(rank.rank, block.id);
    for (name, peer) in [("send", block.send), ("recv", block.receive)] {
        let Some(peer) = peer else { continue };
        if peer >= program.rank_count || peer == rank.rank {
            findings.problem(place, format!("{name} peer {peer} is not another rank"));
        }
    }
    if block.channel >= program.channel_count {
        let (channel, channels) = (block.channel, program.channel_count);
        findings.problem(place, format!("channel {channel} is not below nchannels {channels}"));
    }
    for (position, step) in (0_u32..).zip(&block.steps) {
        let place = Place::step(rank.rank, block.id, position);
        if step.index != position {
            findings.problem(place, format!("s is {}, but the runtime counts by position; use {position}", step.index));
        }
        check_step(program, rank, block, step, place, findings);
    }
}

fn check_step(
    program: &Program,
    rank: &RankProgram,
    block: &ThreadBlock,
    step: &Step,
    place: Place,
    findings: &mut Findings<'_>,
) {
    let operation = step.operation;
    if operation.sends() && block.send.is_none() {
        findings.problem(place, format!("`{}` sends, but its block has no send peer", operation.name()));
    }
    if operation.receives() && block.receive.is_none() {
        findings.problem(place, format!("`{}` receives, but its block has no receive peer", operation.name()));
    }
    match (operation, step.chunk_count) {
        (Operation::Nop, 0) => return,
        // The runtimes read no count of a nop, and compilers write 1.
        (Operation::Nop, _) => return findings.warning(place, "a nop moves no data; its cnt counts for nothing"),
        (_, 0) => return findings.problem(place, "cnt is 0, but the step moves data; use at least 1"),
        _ => {}
    }
    for (is_used, chunks, side) in [
        (operation.reads_source(), step.source, "source"),
        (operation.writes_destination(), step.destination, "destination"),
    ] {
        if !is_used {
            continue;
        }
        check_range(rank, chunks, step.chunk_count, side, place, findings);
        if !has_buffer(program, rank.rank, chunks.buffer) {
            let (letter, purpose) = (chunks.buffer.letter(), program.purpose);
            findings.problem(place, format!("its {side} is `{letter}`, which only rank 0 has in a {purpose}"));
        }
    }
}

fn check_range(rank: &RankProgram, chunks: Chunks, count: u32, side: &str, place: Place, findings: &mut Findings<'_>) {
    let size = rank.chunks_of(chunks.buffer);
    let letter = chunks.buffer.letter();
    let Some(first) = chunks.offset else {
        return findings.problem(place, format!("its {side} is used but has offset -1"));
    };
    if u64::from(first) + u64::from(count) > u64::from(size) {
        let end = u64::from(first) + u64::from(count) - 1;
        findings
            .problem(place, format!("its {side} is chunks {first} to {end} of `{letter}`, which has {size} chunks"));
    }
}
