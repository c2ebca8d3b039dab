//! What the runtime has no room for, whatever the arrangement: found before blocks are written and numbered.

use std::collections::{BTreeMap, BTreeSet};

use super::atoms::{Atoms, Group, Hop};
use super::draft::{Draft, Room};
use super::{ExecutionLowerError, LANES, PIECES};
use crate::mscclpp::profile::ExecutorProfile;
use crate::need::Certainty;

/// What one rank does at least with the trees that share some chunks.
#[derive(Default)]
struct Least {
    /// Without those that wait.
    operations: usize,
    /// All that arrives, of which one operation waits for eight at most.
    arrivals: usize,
    peers: BTreeSet<(bool, u32)>,
}

/// What a plan needs at least, however its trees are divided among lanes and blocks.
pub(super) struct Needs {
    /// Most pieces in which it may fit, whose chunks are whole in the atoms that were counted; 1: none but whole ones.
    pub(super) pieces_max: u32,
    /// The least number of blocks of the rank that needs most, and that rank.
    blocks: (usize, u32),
    /// Buffers of others that the rank writes to that writes to most, and that rank.
    remotes: (usize, u32),
}

impl Needs {
    /// Pieces follow one another within a block. So a block must have room for all that a rank does with all pieces of
    /// trees that share chunks, and for all whom it writes to; and all blocks of a rank, one for each lane, for all
    /// that it does. Whole chunks may be passed on from block to block. O(hops log hops).
    pub(super) fn of(atoms: &Atoms, is_port: impl Fn(u32, u32) -> bool, room: Room, profile: ExecutorProfile) -> Self {
        let lanes = LANES.iter().copied().max().unwrap_or(1);
        let fitting = |operations: usize, most: usize| most.checked_div(operations).unwrap_or(usize::MAX);
        let (mut pieces_max, mut has_many_peers) = (usize::MAX, false);
        let mut by_rank: BTreeMap<u32, Least> = BTreeMap::new();
        for group in &atoms.groups {
            // What switches do alone is not in one lane.
            let all = group.pieces.iter().flat_map(|piece| piece.up.iter().chain(&piece.down));
            let is_apart =
                all.clone().all(|atom| atom.sends.len() == atom.stores.iter().map(|&(_, count)| count).sum::<usize>());
            for (rank, least) in least_of(group, atoms, &is_port) {
                let (ports, memory) = least.peers_by_type();
                if !is_apart {
                    pieces_max = pieces_max.min(fitting(least.operations, room.operations));
                    has_many_peers |= ports.max(memory) > room.channels;
                }
                let all = by_rank.entry(rank).or_default();
                all.operations += least.operations;
                all.arrivals += least.arrivals;
                all.peers.extend(least.peers);
            }
        }
        for least in by_rank.values() {
            pieces_max = pieces_max.min(fitting(least.operations, room.operations * lanes));
        }
        let most = PIECES.iter().copied().max().unwrap_or(1);
        let pieces_max = u32::try_from(pieces_max).unwrap_or(most).clamp(1, most);
        // The first of those that need most.
        let blocks = by_rank.iter().rev().map(|(&rank, least)| (least.blocks(profile), rank));
        let blocks = blocks.max_by_key(|&(blocks, _)| blocks).unwrap_or((0, 0));
        Self { pieces_max: if has_many_peers { 1 } else { pieces_max }, blocks, remotes: most_remotes(atoms) }
    }

    /// The limit on blocks, or on buffers of others, where it is exceeded whatever the arrangement.
    pub(super) fn over_limit(&self, profile: ExecutorProfile) -> Option<ExecutionLowerError> {
        too_many(self.blocks, profile, Certainty::AtLeast).or_else(|| {
            let ((need, rank), limit) = (self.remotes, profile.limits().index + 1);
            (need > limit as usize).then_some(ExecutionLowerError::OverLimit {
                profile,
                what: REMOTES,
                limit: limit.into(),
                need: need as u64,
                rank: Some(rank),
                certainty: Certainty::AtLeast,
                remedy: SPLIT,
            })
        })
    }
}

/// What a rank has that writes to many others, and what a person can do about it.
pub(super) const REMOTES: &str = "remote buffers of a rank";
pub(super) const SPLIT: &str = "split the ranks into groups";

/// The buffers of others that a rank writes to, of the first that writes to most.
fn most_remotes(atoms: &Atoms) -> (usize, u32) {
    let plain = atoms.hops.iter().filter(|hop| !hop.is_stored);
    let mut remotes: Vec<_> = plain.map(|hop| (hop.from, hop.to, hop.target.buffer)).collect();
    remotes.sort_unstable();
    remotes.dedup();
    let of_ranks = remotes.chunk_by(|a, b| a.0 == b.0).filter_map(|all| Some((all.len(), all.first()?.0)));
    of_ranks.rev().max_by_key(|&(count, _)| count).unwrap_or((0, 0))
}

impl Least {
    /// Peers over port channels, and over memory channels.
    fn peers_by_type(&self) -> (usize, usize) {
        let ports = self.peers.iter().filter(|(is_port, _)| *is_port).count();
        (ports, self.peers.len() - ports)
    }

    /// Blocks that have room for the operations and a channel to every peer.
    fn blocks(&self, profile: ExecutorProfile) -> usize {
        let limits = profile.limits();
        let (ports, memory) = self.peers_by_type();
        let of_peers = ports.max(memory).div_ceil(limits.channels_per_block as usize);
        let operations = self.operations + self.arrivals.div_ceil(8);
        of_peers.max(operations.div_ceil(limits.operations_per_block as usize))
    }
}

/// By rank.
fn least_of(group: &Group, atoms: &Atoms, is_port: impl Fn(u32, u32) -> bool) -> BTreeMap<u32, Least> {
    let mut by_rank: BTreeMap<u32, Least> = BTreeMap::new();
    for atom in group.pieces.iter().flat_map(|piece| piece.up.iter().chain(&piece.down)) {
        for hop in atom.sends.iter().filter_map(|&hop| atoms.hops.get(hop)) {
            by_rank.entry(hop.to).or_default().arrivals += 1;
        }
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

/// Blocks of the lanes that were drafted, by rank: numbering more than a runtime has would take longer than all that
/// came before.
pub(super) struct Blocks {
    profile: ExecutorProfile,
    by_rank: BTreeMap<u32, usize>,
    lanes: usize,
}

impl Blocks {
    pub(super) const fn new(profile: ExecutorProfile) -> Self {
        Self { profile, by_rank: BTreeMap::new(), lanes: 0 }
    }

    /// Adds those of another lane.
    pub(super) fn add(&mut self, lane: &BTreeMap<u32, Draft>) {
        for (&rank, draft) in lane {
            *self.by_rank.entry(rank).or_default() += draft.blocks.len();
        }
        self.lanes += 1;
    }

    /// The limit on blocks, where some rank already exceeds it. Several lanes may not be all there are.
    pub(super) fn too_many(&self) -> Option<ExecutionLowerError> {
        // The first of those that need most.
        let (&rank, &need) = self.by_rank.iter().rev().max_by_key(|(_, blocks)| **blocks)?;
        too_many((need, rank), self.profile, if self.lanes > 1 { Certainty::AtLeast } else { Certainty::Found })
    }
}

/// The limit on blocks, where a rank needs more.
fn too_many((need, rank): (usize, u32), profile: ExecutorProfile, certainty: Certainty) -> Option<ExecutionLowerError> {
    let limit = profile.limits().blocks_resident;
    (need > limit as usize).then_some(ExecutionLowerError::OverLimit {
        profile,
        what: "blocks at once",
        limit: limit.into(),
        need: need as u64,
        rank: Some(rank),
        certainty,
        remedy: "plan with fewer trees or chunks",
    })
}
