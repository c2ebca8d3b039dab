//! How long chunks are.

use super::memory::share_chunks;
use super::program::Program;

/// How many elements each chunk has.
///
/// Chunk `k` of the `C` chunks of a share, or of a message without shares, has the elements from `⌊k·N/C⌋` up to
/// `⌊(k+1)·N/C⌋` of the `N` that the share or message has. So `N` need not be a multiple of `C`, and chunks may be empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lengths {
    /// `N`.
    elements: u64,
    /// `C`, ≥ 1.
    chunks: u64,
}

impl Lengths {
    /// Lengths for so many elements per share, or per message where there are no shares.
    pub(crate) fn new(program: &Program, elements: u64) -> Self {
        Self { elements, chunks: u64::from(share_chunks(program)).max(1) }
    }

    /// Lengths of the same chunks for another number of elements.
    pub(crate) const fn for_elements(&self, elements: u64) -> Self {
        Self { elements, chunks: self.chunks }
    }

    /// Elements before a chunk of a buffer of shares.
    pub(crate) fn start(&self, offset: u64) -> u64 {
        let (share, chunk) = (offset / self.chunks, offset % self.chunks);
        let within = u128::from(chunk) * u128::from(self.elements) / u128::from(self.chunks);
        share * self.elements + u64::try_from(within).expect("a part of the elements")
    }

    /// Elements of the longest chunk, which every chunk of scratch has room for.
    pub(crate) const fn longest(&self) -> u64 {
        self.elements.div_ceil(self.chunks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_tile_every_share() {
        for (elements, chunks) in [(0, 3), (1, 3), (7, 3), (9, 3), (10, 4), (5, 8)] {
            let lengths = Lengths { elements, chunks };
            for share in 0..3 {
                let mut next = share * elements;
                for offset in share * chunks..(share + 1) * chunks {
                    assert_eq!(lengths.start(offset), next);
                    let length = lengths.start(offset + 1) - lengths.start(offset);
                    assert!(length <= lengths.longest());
                    next += length;
                }
                assert_eq!(next, (share + 1) * elements);
            }
        }
        let lengths = Lengths { elements: 10, chunks: 4 };
        assert_eq!((0..5).map(|chunk| lengths.start(chunk)).collect::<Vec<_>>(), [0, 2, 5, 7, 10]);
    }
}
