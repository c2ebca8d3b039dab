//! The symbolic state of one piece: who holds whose contribution.

use canopy_topology::Rank;

use super::Promise;
use crate::check::error::MeaningError;
use crate::forest::Action;

/// Where a symbolic step takes place.
pub(super) struct At {
    pub(super) transfer: u32,
    pub(super) from: Rank,
    pub(super) to: Rank,
    pub(super) chunk: u64,
}

/// For each rank, the set of contributions in its place for the piece at hand.
///
/// Where each chunk has one origin, that is one bit: there or not.
pub(super) struct Contributions {
    words: Vec<u64>,
    /// Words per rank.
    width: usize,
    /// All there is to hold, one rank's worth.
    everything: Vec<u64>,
    /// Ranks whose places may not be as they are before every collective.
    touched: Vec<Rank>,
}

impl Contributions {
    pub(super) fn new(promise: &Promise<'_>) -> Self {
        let bits = if promise.sums() { promise.rank_count() } else { 1 };
        let mut everything = vec![0; bits.div_ceil(64) as usize];
        (0..bits).for_each(|bit| insert(&mut everything, bit));
        let width = everything.len();
        let words = vec![0; width * promise.rank_count() as usize];
        let touched = (0..promise.rank_count()).map(Rank::new).collect();
        Self { words, width, everything, touched }
    }

    /// The start of the collective, for a piece of this share. O(places touched since the last start).
    pub(super) fn reset(&mut self, promise: &Promise<'_>, share: Rank) {
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

    pub(super) fn apply(
        &mut self,
        promise: &Promise<'_>,
        share: Rank,
        action: Action,
        at: &At,
    ) -> Result<(), MeaningError> {
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
    pub(super) fn require(&self, promise: &Promise<'_>, share: Rank, chunk: u64) -> Result<(), MeaningError> {
        for rank in promise.receivers(share, chunk) {
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
