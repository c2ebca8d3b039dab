//! Sets of chunks, one for each node or cluster.

/// Bits in a word.
pub(crate) const WORD: usize = u64::BITS as usize;

/// Equally long rows of bits.
pub(crate) struct BitRows {
    words: usize,
    bits: Vec<u64>,
}

impl BitRows {
    /// So many rows of so many bits, none set.
    pub(crate) fn new(rows: usize, columns: u32) -> Self {
        let words = words_for(columns);
        Self { words, bits: vec![0; rows * words] }
    }

    pub(crate) fn row(&self, row: u32) -> &[u64] {
        let start = row as usize * self.words;
        &self.bits[start..start + self.words]
    }

    pub(crate) fn contains(&self, row: u32, column: u32) -> bool {
        let (word, bit) = place_of(column);
        self.bits[row as usize * self.words + word] & bit != 0
    }

    /// Sets a bit; whether it was not set before.
    pub(crate) fn insert(&mut self, row: u32, column: u32) -> bool {
        let (word, bit) = place_of(column);
        let entry = &mut self.bits[row as usize * self.words + word];
        let is_new = *entry & bit == 0;
        *entry |= bit;
        is_new
    }
}

/// Words that hold so many bits, at least one.
pub(crate) const fn words_for(columns: u32) -> usize {
    if columns == 0 { 1 } else { (columns as usize).div_ceil(WORD) }
}

/// Number of the word that holds a bit, and the bit in it.
pub(crate) const fn place_of(column: u32) -> (usize, u64) {
    (column as usize / WORD, 1 << (column as usize % WORD))
}

/// The positions of the bits of words that begin with this one, in order.
pub(crate) fn positions(words: &[u64], first_word: usize) -> impl Iterator<Item = u32> + '_ {
    words.iter().zip(first_word..).flat_map(|(&word, index)| {
        let mut left = word;
        std::iter::from_fn(move || {
            let lowest = (left != 0).then(|| left.trailing_zeros())?;
            left &= left - 1;
            Some(u32::try_from(index * WORD).expect("chunks are counted in u32") + lowest)
        })
    })
}

/// How many bits are set.
pub(crate) fn count(words: &[u64]) -> u32 {
    words.iter().map(|word| word.count_ones()).sum()
}
