//! Sums of ranks' contributions to one chunk, each stored once.

use std::collections::HashMap;
use std::rc::Rc;

/// A stored sum; equal sums have equal numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Symbol(u32);

/// What is in memory that nothing has written.
pub(crate) const NOTHING: Symbol = Symbol(0);

/// Most sums of two or more contributions, and most 64-bit words of all of them together.
const SUMS_MAX: usize = 1 << 22;
const WORDS_MAX: usize = 1 << 24;

/// Why two sums cannot be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SumFault {
    #[error("adds the contribution of rank {rank} to chunk {chunk} a second time")]
    Twice { rank: u32, chunk: u32 },
    #[error("adds chunk {first} to chunk {second}")]
    Mixed { first: u32, second: u32 },
    #[error("forms more distinct sums than the proof can follow")]
    TooMany,
}

/// All sums met so far: each a chunk number and a set of ranks, as bits.
///
/// Symbol `1 + rank · chunk_count + chunk` is the contribution of one rank and stands in no table; larger ones are
/// sums in the order they were met. The map only answers whether a sum is known; its order is never seen.
pub(crate) struct Symbols {
    rank_count: u32,
    chunk_count: u32,
    sums: Vec<(u32, Rc<[u64]>)>,
    known: HashMap<(u32, Rc<[u64]>), Symbol>,
}

impl Symbols {
    /// Symbols for so many ranks and chunks; the caller has checked that their product is below 2³¹.
    pub(crate) fn new(rank_count: u32, chunk_count: u32) -> Self {
        Self { rank_count, chunk_count, sums: Vec::new(), known: HashMap::new() }
    }

    /// What one rank gives to a chunk.
    pub(crate) fn contribution(&self, rank: u32, chunk: u32) -> Symbol {
        Symbol(1 + rank * self.chunk_count + chunk)
    }

    /// Symbols below this are contributions.
    fn first_sum(&self) -> u32 {
        1 + self.rank_count * self.chunk_count
    }

    /// What all ranks give to a chunk.
    pub(crate) fn total(&mut self, chunk: u32) -> Symbol {
        let mut ranks = vec![0_u64; self.words()];
        for rank in 0..self.rank_count {
            set(&mut ranks, rank);
        }
        self.intern(chunk, ranks)
    }

    /// The sum of two; neither may be [`NOTHING`].
    pub(crate) fn sum(&mut self, first: Symbol, second: Symbol) -> Result<Symbol, SumFault> {
        let ((first_chunk, mut ranks), (second_chunk, others)) = (self.parts(first), self.parts(second));
        if first_chunk != second_chunk {
            return Err(SumFault::Mixed { first: first_chunk, second: second_chunk });
        }
        for (base, (word, other)) in (0_u32..).step_by(64).zip(ranks.iter_mut().zip(&others)) {
            let common = *word & other;
            if common != 0 {
                return Err(SumFault::Twice { rank: base + common.trailing_zeros(), chunk: first_chunk });
            }
            *word |= other;
        }
        if self.sums.len() >= SUMS_MAX || self.sums.len() * self.words() >= WORDS_MAX {
            return Err(SumFault::TooMany);
        }
        Ok(self.intern(first_chunk, ranks))
    }

    fn words(&self) -> usize {
        self.rank_count.div_ceil(64) as usize
    }

    /// Chunk and ranks of a symbol.
    fn parts(&self, symbol: Symbol) -> (u32, Vec<u64>) {
        if let Some(index) = symbol.0.checked_sub(self.first_sum()) {
            let (chunk, ranks) = &self.sums[index as usize];
            return (*chunk, ranks.to_vec());
        }
        let number = symbol.0 - 1;
        let mut ranks = vec![0; self.words()];
        set(&mut ranks, number / self.chunk_count);
        (number % self.chunk_count, ranks)
    }

    fn intern(&mut self, chunk: u32, ranks: Vec<u64>) -> Symbol {
        let key = (chunk, Rc::from(ranks));
        if let Some(&symbol) = self.known.get(&key) {
            return symbol;
        }
        let index = u32::try_from(self.sums.len()).expect("the number of sums is bounded");
        let symbol = Symbol(self.first_sum() + index);
        self.sums.push(key.clone());
        self.known.insert(key, symbol);
        symbol
    }

    /// The chunk of a symbol other than [`NOTHING`].
    pub(crate) fn chunk(&self, symbol: Symbol) -> u32 {
        match symbol.0.checked_sub(self.first_sum()) {
            Some(index) => self.sums[index as usize].0,
            None => (symbol.0 - 1) % self.chunk_count,
        }
    }

    /// The symbol in words, for messages.
    pub(crate) fn describe(&self, symbol: Symbol) -> String {
        if symbol == NOTHING {
            return "nothing".to_owned();
        }
        let (chunk, ranks) = self.parts(symbol);
        let is_member = |rank: &u32| ranks[*rank as usize / 64] >> (rank % 64) & 1 == 1;
        let members: Vec<String> = (0..self.rank_count).filter(is_member).map(|rank| rank.to_string()).collect();
        match members.len() {
            1 => format!("chunk {chunk} of rank {}", members[0]),
            count if count <= 8 => format!("the sum of chunk {chunk} of ranks {}", members.join(", ")),
            count => format!("the sum of chunk {chunk} of {count} ranks"),
        }
    }
}

fn set(ranks: &mut [u64], rank: u32) {
    ranks[rank as usize / 64] |= 1 << (rank % 64);
}
