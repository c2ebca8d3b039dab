//! Cuts batches into pieces and puts them in the one order all thread blocks follow.

use canopy_schedule::{Action, Batch, TransferGraph};

use super::LowerError;
use crate::msccl::profile::Profile;

/// A range of chunks that moves along one tree, at most as many as one step moves.
pub(super) struct Piece {
    /// The tree, in [`Pieces::trees`].
    pub(super) tree: usize,
    /// First chunk in the numbering of the graph.
    pub(super) first: u32,
    pub(super) count: u32,
    /// How many pieces of the same root and action come before it.
    pub(super) turn: u32,
}

/// The tree of a batch: each rank's neighbours in it.
pub(super) struct Tree {
    pub(super) action: Action,
    pub(super) root: u32,
    /// Ranks from the root outwards.
    pub(super) outwards: Vec<u32>,
    /// The neighbour towards the root; the root is its own.
    pub(super) towards_root: Vec<u32>,
    /// The neighbours away from the root, in the order of the graph.
    pub(super) away: Vec<Vec<u32>>,
}

pub(super) struct Pieces {
    pub(super) trees: Vec<Tree>,
    /// In the order all blocks follow.
    pub(super) pieces: Vec<Piece>,
    /// Chunks of the whole vector.
    pub(super) chunk_count: u32,
}

impl Pieces {
    /// Cuts and orders: reductions before copies, so that a root has all of a sum before it hands it on; within
    /// each, by position in the share, so that all roots advance together.
    pub(super) fn new(graph: &TransferGraph, profile: Profile) -> Result<Self, LowerError> {
        let chunk_count = check_size(graph, profile)?;
        let mut trees = Vec::with_capacity(graph.batches.len());
        let mut keyed = Vec::new();
        for (index, batch) in graph.batches.iter().enumerate() {
            let malformed = |what| LowerError::Malformed { batch: index, what };
            trees.push(read_tree(graph, batch).map_err(malformed)?);
            let (mut first, end) = chunk_range(graph, batch, chunk_count).ok_or_else(|| malformed(OUT_OF_RANGE))?;
            while first < end {
                let count = (end - first).min(profile.limits().chunks_per_step);
                let within_share = u64::from(first) % graph.chunks_per_share.max(1);
                let phase = u8::from(batch.action == Action::Copy);
                keyed.push(((phase, within_share, batch.root), Piece { tree: index, first, count, turn: 0 }));
                first += count;
            }
        }
        keyed.sort_by_key(|(key, _)| *key);
        let mut pieces: Vec<Piece> = keyed.into_iter().map(|(_, piece)| piece).collect();
        let mut turns = vec![[0_u32; 2]; graph.rank_count as usize];
        for piece in &mut pieces {
            let tree = &trees[piece.tree];
            let turn = &mut turns[tree.root as usize][usize::from(tree.action == Action::Copy)];
            piece.turn = std::mem::replace(turn, *turn + 1);
        }
        Ok(Self { trees, pieces, chunk_count })
    }
}

const OUT_OF_RANGE: &str = "has chunks outside its root's share";

/// First chunk of a batch and the end of its range, if they lie in the share of its root.
fn chunk_range(graph: &TransferGraph, batch: &Batch, chunk_count: u32) -> Option<(u32, u32)> {
    let end = u32::try_from(batch.chunk_first.checked_add(batch.chunk_count)?).ok()?;
    let share_start = u64::from(batch.root.number()).checked_mul(graph.chunks_per_share)?;
    let share_end = share_start.checked_add(graph.chunks_per_share)?;
    let is_inside = batch.chunk_first >= share_start && u64::from(end) <= share_end && end <= chunk_count;
    Some((u32::try_from(batch.chunk_first).ok()?, end)).filter(|_| is_inside)
}

/// Number of chunks of the vector, where offsets can name them all.
fn check_size(graph: &TransferGraph, profile: Profile) -> Result<u32, LowerError> {
    let limits = profile.limits();
    let over = |what, limit: u32, need: u64, remedy| LowerError::OverLimit {
        profile,
        what,
        limit: u64::from(limit),
        need,
        rank: None,
        remedy,
    };
    if graph.rank_count > limits.children {
        let need = u64::from(graph.rank_count);
        return Err(over("ranks", limits.children, need, "split the ranks into groups with a file each"));
    }
    let need = graph.chunk_count().unwrap_or(u64::MAX);
    // The last step of up to 71 chunks starts before the last chunk; the exact check sees the written offsets.
    match u32::try_from(need).ok().filter(|&count| count <= limits.offset + limits.chunks_per_step) {
        Some(count) => Ok(count),
        None => Err(over("chunks as an offset", limits.offset, need - 1, super::fit::FEWER_CHUNKS)),
    }
}

/// Turns a batch's transfers into a tree over all ranks.
fn read_tree(graph: &TransferGraph, batch: &Batch) -> Result<Tree, &'static str> {
    let count = graph.rank_count as usize;
    let root = batch.root.number();
    if batch.root.index() >= count {
        return Err("has a root that is no rank");
    }
    let mut tree = Tree {
        action: batch.action,
        root,
        outwards: vec![root],
        towards_root: vec![u32::MAX; count],
        away: vec![Vec::new(); count],
    };
    tree.towards_root[root as usize] = root;
    for transfer in graph.transfers_of(batch) {
        let (near, far) = match batch.action {
            Action::Copy => (transfer.from, transfer.to),
            Action::Reduce => (transfer.to, transfer.from),
        };
        if near.index() >= count || far.index() >= count {
            return Err("names a rank that does not exist");
        }
        if std::mem::replace(&mut tree.towards_root[far.index()], near.number()) != u32::MAX {
            return Err("is no tree: a rank has two neighbours towards the root");
        }
        tree.away[near.index()].push(far.number());
    }
    let mut next = 0;
    while let Some(&rank) = tree.outwards.get(next) {
        tree.outwards.extend_from_slice(&tree.away[rank as usize]);
        next += 1;
    }
    if tree.outwards.len() == count { Ok(tree) } else { Err("is no tree that reaches every rank") }
}
