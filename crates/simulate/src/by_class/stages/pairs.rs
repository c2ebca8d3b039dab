//! What leaves a box in a step, beside what enters it.

/// Chunks that leave with chunks that enter: each is of one message, which the like of the box sends or receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    /// By position among what leaves, and among what enters.
    pub(super) send: Option<usize>,
    pub(super) receive: Option<usize>,
    pub(super) chunks: u64,
}

/// Pairs what leaves with what enters, given the rank and the chunks of each: at the same rank first, then in order;
/// what is over stays alone. O(sends · receives).
pub(super) fn pairs(sends: &[(usize, u64)], receives: &[(usize, u64)]) -> Vec<Pair> {
    let mut left: [Vec<u64>; 2] = [sends, receives].map(|moves| moves.iter().map(|&(_, chunks)| chunks).collect());
    let mut found = Vec::new();
    for is_same in [true, false] {
        for (send, &(from, _)) in sends.iter().enumerate() {
            for (receive, &(to, _)) in receives.iter().enumerate() {
                let chunks = left[0][send].min(left[1][receive]);
                if chunks > 0 && (from == to || !is_same) {
                    left[0][send] -= chunks;
                    left[1][receive] -= chunks;
                    found.push(Pair { send: Some(send), receive: Some(receive), chunks });
                }
            }
        }
    }
    let alone = |left: &[u64]| -> Vec<(usize, u64)> {
        left.iter().copied().enumerate().filter(|(_, chunks)| *chunks > 0).collect()
    };
    found.extend(alone(&left[0]).into_iter().map(|(send, chunks)| Pair { send: Some(send), receive: None, chunks }));
    let entering = alone(&left[1]).into_iter();
    found.extend(entering.map(|(receive, chunks)| Pair { send: None, receive: Some(receive), chunks }));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leaves_a_rank_goes_with_what_enters_there_first() {
        let pair = |send, receive, chunks| Pair { send, receive, chunks };
        assert_eq!(
            pairs(&[(0, 3), (1, 5)], &[(1, 4), (0, 3)]),
            [pair(Some(0), Some(1), 3), pair(Some(1), Some(0), 4), pair(Some(1), None, 1)]
        );
        assert_eq!(
            pairs(&[(0, 6)], &[(1, 4), (2, 3)]),
            [pair(Some(0), Some(0), 4), pair(Some(0), Some(1), 2), pair(None, Some(1), 1)]
        );
        assert_eq!(pairs(&[], &[]), []);
    }
}
