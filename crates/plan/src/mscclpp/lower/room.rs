//! What the runtime has no room for, whatever the arrangement: found before blocks are written and numbered.

use std::collections::{BTreeMap, BTreeSet};

use super::atoms::{Atoms, Group, Hop};
use super::draft::{Draft, Room};
use super::{ExecutionLowerError, LANES, PIECES};
use crate::mscclpp::profile::ExecutorProfile;

/// What one rank does at least with the trees that share some chunks.
#[derive(Default)]
struct Least {
    operations: usize,
    peers: BTreeSet<(bool, u32)>,
}

/// Most pieces in which plans may fit, whose chunks are whole in these atoms; 1: none but whole ones.
///
/// Pieces follow one another within a block. So a block must have room for all that a rank does with all pieces of trees
/// that share chunks, and for all whom it writes to; and all blocks of a rank, one for each lane, for all that it does.
/// Waiting is not counted. O(hops log hops).
pub(super) fn pieces_max(atoms: &Atoms, is_port: impl Fn(u32, u32) -> bool, room: Room) -> u32 {
    let lanes = LANES.iter().copied().max().unwrap_or(1);
    let fitting = |operations: usize, most: usize| most.checked_div(operations).unwrap_or(usize::MAX);
    let mut pieces_max = usize::MAX;
    let mut by_rank: BTreeMap<u32, usize> = BTreeMap::new();
    for group in &atoms.groups {
        // What switches do alone is not in one lane.
        let all = group.pieces.iter().flat_map(|piece| piece.up.iter().chain(&piece.down));
        let is_apart =
            all.clone().all(|atom| atom.sends.len() == atom.stores.iter().map(|&(_, count)| count).sum::<usize>());
        for (rank, least) in least_of(group, atoms, &is_port) {
            *by_rank.entry(rank).or_default() += least.operations;
            if is_apart {
                continue;
            }
            pieces_max = pieces_max.min(fitting(least.operations, room.operations));
            let ports = least.peers.iter().filter(|(is_port, _)| *is_port).count();
            if ports.max(least.peers.len() - ports) > room.channels {
                return 1;
            }
        }
    }
    for operations in by_rank.into_values() {
        pieces_max = pieces_max.min(fitting(operations, room.operations * lanes));
    }
    let most = PIECES.iter().copied().max().unwrap_or(1);
    u32::try_from(pieces_max).unwrap_or(most).clamp(1, most)
}

/// By rank.
fn least_of(group: &Group, atoms: &Atoms, is_port: impl Fn(u32, u32) -> bool) -> BTreeMap<u32, Least> {
    let mut by_rank: BTreeMap<u32, Least> = BTreeMap::new();
    for atom in group.pieces.iter().flat_map(|piece| piece.up.iter().chain(&piece.down)) {
        let least = by_rank.entry(atom.rank).or_default();
        // A store is followed by a meeting of threads and a signal.
        least.operations += atom.sums.len() + 3 * atom.stores.len();
        let plain = atom.sends.iter().filter_map(|&hop| atoms.hops.get(hop)).filter(|hop| !hop.is_stored);
        let (ports, memory): (Vec<&Hop>, Vec<&Hop>) = plain.partition(|hop| is_port(hop.from, hop.to));
        least.operations += ports.len().div_ceil(8);
        if !memory.is_empty() {
            // The last sum may write, too; then threads meet, and one signals.
            least.operations += 2 + usize::from(atom.sums.is_empty());
        }
        least.peers.extend(ports.iter().map(|hop| (true, hop.to)).chain(memory.iter().map(|hop| (false, hop.to))));
    }
    by_rank
}

/// The limit on blocks, where drafts exceed it at some rank: numbering them would take longer than all that came before.
pub(super) fn too_many_blocks(lanes: &[BTreeMap<u32, Draft>], profile: ExecutorProfile) -> Option<ExecutionLowerError> {
    let mut by_rank: BTreeMap<u32, usize> = BTreeMap::new();
    for (&rank, draft) in lanes.iter().flatten() {
        *by_rank.entry(rank).or_default() += draft.blocks.len();
    }
    let limit = profile.limits().blocks_resident;
    // The first of those that need most.
    let (&rank, &need) = by_rank.iter().rev().max_by_key(|(_, blocks)| **blocks)?;
    (need > limit as usize).then_some(ExecutionLowerError::OverLimit {
        profile,
        what: "blocks at once",
        limit: limit.into(),
        need: need as u64,
        rank: Some(rank),
        remedy: "plan with fewer trees or chunks",
    })
}
