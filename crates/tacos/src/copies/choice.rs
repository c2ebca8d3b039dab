//! Which of many chunks is taken: the extremes of two counts, found bit plane by bit plane for all chunks at once.

use super::Preference;
use crate::bits::{BitRows, WORD, place_of, words_for};
use crate::chance::Chance;
use crate::network::TimedNetwork;

/// Words that both counts are looked at in, at a time.
const WINDOW: usize = 8;
/// Planes of the count of nodes after a receiver.
const LACK_PLANES: usize = 6;
/// Most nodes after a receiver that are asked what they lack; of more, so many in a row.
const ASKED_MAX: usize = (1 << LACK_PLANES) - 1;

/// Candidates, or a plane of a count, in the words looked at.
type Words = [u64; WINDOW];

/// By chunk, how many nodes have it or are sent it: the digits of binary numbers, word by word.
pub(super) struct Holders {
    planes: usize,
    digits: Vec<u64>,
}

impl Holders {
    pub(super) fn new(chunks: u32, nodes: u32) -> Self {
        let planes = nodes.checked_ilog2().unwrap_or(0) as usize + 1;
        Self { planes, digits: vec![0; words_for(chunks) * planes] }
    }

    /// One more has a chunk.
    pub(super) fn add(&mut self, chunk: u32) {
        let (word, bit) = place_of(chunk);
        for digits in &mut self.digits[word * self.planes..(word + 1) * self.planes] {
            *digits ^= bit;
            if *digits & bit != 0 {
                return;
            }
        }
    }

    fn plane(&self, plane: usize, first_word: usize, words: usize) -> Words {
        let mut found = [0; WINDOW];
        for (index, found) in found.iter_mut().enumerate().take(words) {
            *found = self.digits[(first_word + index) * self.planes + plane];
        }
        found
    }
}

/// What is known around the node that chooses.
pub(super) struct Choice {
    preference: Preference,
    chunks: u32,
    /// By node, those that its links lead to, each once.
    after: Vec<Vec<u32>>,
    first_word: usize,
    lack: [Words; LACK_PLANES],
}

impl Choice {
    pub(super) fn new(network: &TimedNetwork, chunks: u32, preference: Preference) -> Self {
        let after = (0..network.node_count()).map(|node| {
            let mut after: Vec<u32> = network.outgoing(node).iter().map(|&link| network.link(link).to).collect();
            after.sort_unstable();
            after.dedup();
            after
        });
        Self { preference, chunks, after: after.collect(), first_word: 0, lack: [[0; WINDOW]; LACK_PLANES] }
    }

    /// Number of words looked at.
    fn width(&self) -> usize {
        words_for(self.chunks).min(WINDOW)
    }

    /// Counts what the nodes after one lack, in words at random.
    pub(super) fn look_around(&mut self, node: u32, got: &BitRows, chance: &mut Chance) {
        let spare = words_for(self.chunks) - self.width();
        let first = if spare == 0 { 0 } else { chance.below(u32::try_from(spare + 1).expect("fewer than chunks")) };
        self.look_at(node, first as usize, got, chance);
    }

    fn look_at(&mut self, node: u32, first_word: usize, got: &BitRows, chance: &mut Chance) {
        self.first_word = first_word;
        self.lack = [[0; WINDOW]; LACK_PLANES];
        let words = first_word..first_word + self.width();
        let after = &self.after[node as usize];
        let mut add = |node: u32| {
            for (index, &got) in got.row(node)[words.clone()].iter().enumerate() {
                let mut carry = !got;
                for plane in &mut self.lack {
                    (plane[index], carry) = (plane[index] ^ carry, plane[index] & carry);
                    if carry == 0 {
                        break;
                    }
                }
            }
        };
        if after.len() <= ASKED_MAX {
            after.iter().for_each(|&node| add(node));
        } else {
            let first = chance.below(u32::try_from(after.len()).expect("nodes are counted in u32")) as usize;
            after.iter().cycle().skip(first).take(ASKED_MAX).for_each(|&node| add(node));
        }
    }

    /// One of the chunks of a row, if it has any: by both counts in the words looked at, or in others where it has none there.
    pub(super) fn pick(
        &mut self,
        node: u32,
        row: &[u64],
        (got, holders): (&BitRows, &Holders),
        chance: &mut Chance,
    ) -> Option<u32> {
        let width = self.width();
        let is_empty = |first: usize| row[first..first + width].iter().all(|&word| word == 0);
        let seen = self.first_word;
        if is_empty(seen) {
            // The next candidates, around the end.
            let next = (seen + width..row.len()).chain(0..seen).find(|&word| row[word] != 0)?;
            self.look_at(node, next.min(row.len() - width), got, chance);
        }
        let mut left: Words = [0; WINDOW];
        left[..width].copy_from_slice(&row[self.first_word..self.first_word + width]);
        match self.preference {
            Preference::Neighbours => {
                self.narrow_to_lacked(&mut left);
                self.narrow_to_rare(&mut left, holders);
            }
            Preference::Holders => {
                self.narrow_to_rare(&mut left, holders);
                self.narrow_to_lacked(&mut left);
            }
        }
        let chunk = pick_any(&left, chance);
        let first = u32::try_from(self.first_word * WORD).expect("chunks are counted in u32");
        if self.first_word != seen {
            self.look_at(node, seen, got, chance);
        }
        Some(first + chunk)
    }

    /// Keeps what most nodes after this one lack.
    fn narrow_to_lacked(&self, left: &mut Words) {
        for plane in self.lack.iter().rev() {
            keep(left, |index| plane[index]);
        }
    }

    /// Keeps what fewest nodes have.
    fn narrow_to_rare(&self, left: &mut Words, holders: &Holders) {
        for plane in (0..holders.planes).rev() {
            let plane = holders.plane(plane, self.first_word, self.width());
            keep(left, |index| !plane[index]);
        }
    }
}

/// Keeps the candidates of a mask, unless it has none.
fn keep(left: &mut Words, mask: impl Fn(usize) -> u64) {
    let mut kept = *left;
    kept.iter_mut().enumerate().for_each(|(index, word)| *word &= mask(index));
    if kept.iter().any(|&word| word != 0) {
        *left = kept;
    }
}

/// The position of any of the bits, of which there are some.
fn pick_any(words: &Words, chance: &mut Chance) -> u32 {
    let count: u32 = words.iter().map(|word| word.count_ones()).sum();
    let mut skipped = chance.below(count);
    let mut first = 0;
    for &word in words {
        let here = word.count_ones();
        if skipped < here {
            let mut left = word;
            (0..skipped).for_each(|_| left &= left - 1);
            return first + left.trailing_zeros();
        }
        skipped -= here;
        first += u64::BITS;
    }
    unreachable!("a number below the count of bits")
}
