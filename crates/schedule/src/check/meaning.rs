//! The second check: does the graph compute what the collective promises, whenever its dependencies are kept?
//!
//! The vector is cut at the ends of all batches and shares. In each piece all chunks fare alike, so one symbolic run
//! with a set of contributions per rank stands for all of them. The run follows the transfers by index; that every other
//! order the dependencies allow gives the same result is proved on the way, by [`super::order`].

use std::collections::BTreeSet;

use canopy_topology::Rank;

use super::error::MeaningError;
use super::order::Order;
use crate::collective::CollectiveKind;
use crate::schedule::Action;
use crate::transfer::TransferGraph;

/// Runs a well-formed graph symbolically, and proves that its dependencies suffice.
///
/// Every copy must bring something new and destroy nothing, every reduction must bring contributions that are not there
/// yet, and at the end each rank holds exactly what the collective promises it. A transfer whose chunks nobody needs
/// later passes: it costs load, which the third check counts, and harms no result.
///
/// O(transfers · N/64) for graphs compiled from forests, where a piece of the vector meets one tree per phase; in
/// general O(Σ over pieces of the transfers that move it, · N/64).
pub(super) fn check_meaning(graph: &TransferGraph) -> Result<(), MeaningError> {
    let promise = Promise::of(graph)?;
    let mut contributions = Contributions::new(&promise);
    let mut order = Order::new(graph);
    for piece in pieces(graph, &promise) {
        let share = promise.share_of(piece.chunk);
        contributions.reset(&promise, share);
        order.reset(&piece.batches);
        for &batch in &piece.batches {
            let batch = &graph.batches[batch as usize];
            for (index, transfer) in batch.transfers.clone().zip(graph.transfers_of(batch)) {
                let at = At { transfer: index, from: transfer.from, to: transfer.to, chunk: piece.chunk };
                contributions.apply(&promise, share, batch.action, &at)?;
                let ordered = order.add(index, transfer, batch.action);
                ordered.map_err(|clash| MeaningError::Unordered {
                    first: clash.first,
                    second: clash.second,
                    rank: clash.rank.number(),
                    chunk: piece.chunk,
                })?;
            }
        }
        contributions.require(&promise, share, piece.chunk)?;
    }
    Ok(())
}

/// What a collective gives and promises.
struct Promise {
    kind: CollectiveKind,
    root: Rank,
    rank_count: u32,
    chunks_per_share: u64,
    chunk_total: u64,
}

impl Promise {
    fn of(graph: &TransferGraph) -> Result<Self, MeaningError> {
        let kind = graph.collective.kind();
        let chunk_total = graph.chunk_count().filter(|_| kind != CollectiveKind::AllToAll);
        let chunk_total = chunk_total.ok_or(MeaningError::Unsupported { collective: kind })?;
        let root = graph.collective.root().unwrap_or(Rank::new(0));
        let (rank_count, chunks_per_share) = (graph.rank_count, graph.chunks_per_share);
        Ok(Self { kind, root, rank_count, chunks_per_share, chunk_total })
    }

    /// Whether every rank contributes to every chunk. Otherwise each chunk is one rank's.
    const fn sums(&self) -> bool {
        matches!(self.kind, CollectiveKind::ReduceScatter | CollectiveKind::Allreduce | CollectiveKind::Reduce)
    }

    /// The rank whose share a chunk belongs to; the root where the vector has no shares.
    fn share_of(&self, chunk: u64) -> Rank {
        match self.kind {
            CollectiveKind::Broadcast | CollectiveKind::Reduce => self.root,
            _ => Rank::new(u32::try_from(chunk / self.chunks_per_share).expect("a vector has one share per rank")),
        }
    }

    /// The only rank that holds a chunk of this share at the start, where there is only one.
    const fn origin(&self, share: Rank) -> Rank {
        match self.kind {
            CollectiveKind::Scatter => self.root,
            _ => share,
        }
    }

    /// The ranks that are promised the chunks of this share.
    fn receivers(&self, share: Rank) -> impl Iterator<Item = Rank> + use<> {
        let only = |rank: Rank| rank.number()..rank.number() + 1;
        let ranks = match self.kind {
            CollectiveKind::Allgather | CollectiveKind::Broadcast | CollectiveKind::Allreduce => 0..self.rank_count,
            CollectiveKind::Scatter | CollectiveKind::ReduceScatter => only(share),
            _ => only(self.root),
        };
        ranks.map(Rank::new)
    }
}

/// Neighbouring chunks that the same batches move.
struct Piece {
    /// The first of them.
    chunk: u64,
    /// The batches, in order.
    batches: Vec<u32>,
}

/// The vector in pieces, in order; each lies in one share.
fn pieces<'a>(graph: &'a TransferGraph, promise: &Promise) -> impl Iterator<Item = Piece> + use<'a> {
    let batch = |index: u32| &graph.batches[index as usize];
    let first = move |index: u32| batch(index).chunk_first;
    let end = move |index: u32| batch(index).chunk_first + batch(index).chunk_count;
    let all = 0..u32::try_from(graph.batches.len()).expect("each batch owns a transfer, and these are indexed by u32");
    let mut entering: Vec<u32> = all.clone().collect();
    entering.sort_by_key(|&index| first(index));
    let mut leaving: Vec<u32> = all.clone().collect();
    leaving.sort_by_key(|&index| end(index));
    let mut cuts: Vec<u64> = all.flat_map(|index| [first(index), end(index)]).collect();
    let shares = promise.chunk_total / promise.chunks_per_share;
    cuts.extend((0..shares).map(|share| share * promise.chunks_per_share));
    cuts.retain(|&cut| cut < promise.chunk_total);
    cuts.sort_unstable();
    cuts.dedup();
    let (mut entered, mut left, mut active) = (0, 0, BTreeSet::new());
    cuts.into_iter().map(move |chunk| {
        while let Some(&index) = entering.get(entered).filter(|&&index| first(index) <= chunk) {
            active.insert(index);
            entered += 1;
        }
        while let Some(index) = leaving.get(left).filter(|&&index| end(index) <= chunk) {
            active.remove(index);
            left += 1;
        }
        Piece { chunk, batches: active.iter().copied().collect() }
    })
}

/// Where a symbolic step takes place.
struct At {
    transfer: u32,
    from: Rank,
    to: Rank,
    chunk: u64,
}

/// For each rank, the set of contributions in its place for the piece at hand.
///
/// Where each chunk has one origin, that is one bit: there or not.
struct Contributions {
    words: Vec<u64>,
    /// Words per rank.
    width: usize,
    /// All there is to hold, one rank's worth.
    everything: Vec<u64>,
    /// Ranks whose places may not be as they are before every collective.
    touched: Vec<Rank>,
}

impl Contributions {
    fn new(promise: &Promise) -> Self {
        let bits = if promise.sums() { promise.rank_count } else { 1 };
        let mut everything = vec![0; bits.div_ceil(64) as usize];
        (0..bits).for_each(|bit| insert(&mut everything, bit));
        let width = everything.len();
        let words = vec![0; width * promise.rank_count as usize];
        let touched = (0..promise.rank_count).map(Rank::new).collect();
        Self { words, width, everything, touched }
    }

    /// The start of the collective, for a piece of this share. O(places touched since the last start).
    fn reset(&mut self, promise: &Promise, share: Rank) {
        let mut touched = std::mem::take(&mut self.touched);
        for rank in touched.drain(..) {
            let place = self.place_mut(rank);
            place.fill(0);
            if promise.sums() {
                insert(place, rank.number());
            }
        }
        self.touched = touched;
        if !promise.sums() {
            insert(self.place_mut(promise.origin(share)), 0);
            self.touched.push(promise.origin(share));
        }
    }

    fn apply(&mut self, promise: &Promise, share: Rank, action: Action, at: &At) -> Result<(), MeaningError> {
        let (sent, held) = (self.place(at.from), self.place(at.to));
        let (transfer, from, to, chunk) = (at.transfer, at.from.number(), at.to.number(), at.chunk);
        let contributor = |bit: u32| if promise.sums() { bit } else { promise.origin(share).number() };
        if is_empty(sent) {
            return Err(MeaningError::NothingToSend { transfer, from, to, chunk });
        }
        match action {
            Action::Copy if sent == held => return Err(MeaningError::Redundant { transfer, from, to, chunk }),
            Action::Copy => {
                if let Some(bit) = first_bit(held, sent, |held, sent| held & !sent) {
                    let contribution = contributor(bit);
                    return Err(MeaningError::Destroys { transfer, from, to, chunk, contribution });
                }
            }
            Action::Reduce if is_empty(held) => {
                return Err(MeaningError::NothingToReduceInto { transfer, from, to, chunk });
            }
            Action::Reduce => {
                if let Some(bit) = first_bit(held, sent, |held, sent| held & sent) {
                    let contribution = contributor(bit);
                    return Err(MeaningError::ReducedTwice { transfer, from, to, chunk, contribution });
                }
            }
        }
        // Either action leaves the union: a copy destroys nothing, a reduction adds to what is there.
        self.touched.push(at.to);
        let (from, to) = (at.from.index() * self.width, at.to.index() * self.width);
        for word in 0..self.width {
            self.words[to + word] |= self.words[from + word];
        }
        Ok(())
    }

    /// The end of the collective, for a piece of this share that starts at a chunk.
    fn require(&self, promise: &Promise, share: Rank, chunk: u64) -> Result<(), MeaningError> {
        for rank in promise.receivers(share) {
            if let Some(bit) = first_bit(&self.everything, self.place(rank), |all, held| all & !held) {
                let contribution = if promise.sums() { bit } else { promise.origin(share).number() };
                return Err(MeaningError::Missing { rank: rank.number(), chunk, contribution });
            }
        }
        Ok(())
    }

    fn place(&self, rank: Rank) -> &[u64] {
        &self.words[rank.index() * self.width..][..self.width]
    }

    fn place_mut(&mut self, rank: Rank) -> &mut [u64] {
        &mut self.words[rank.index() * self.width..][..self.width]
    }
}

fn insert(set: &mut [u64], bit: u32) {
    set[bit as usize / 64] |= 1 << (bit % 64);
}

fn is_empty(set: &[u64]) -> bool {
    set.iter().all(|&word| word == 0)
}

/// The smallest element of what `join` makes of two sets, word by word.
fn first_bit(a: &[u64], b: &[u64], join: impl Fn(u64, u64) -> u64) -> Option<u32> {
    let joined = a.iter().zip(b).map(|(&a, &b)| join(a, b));
    let mut words = (0_u32..).zip(joined);
    words.find(|&(_, word)| word != 0).map(|(index, word)| 64 * index + word.trailing_zeros())
}
