//! Trees of a box in a row, and what holds from where to where in it.

use std::ops::Range;

/// Something that is the same for all trees in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span<T> {
    pub(super) at: Range<i64>,
    pub(super) of: T,
}

/// By box that trees come from, and by member of other boxes: what holds for which of them.
pub(super) type BySource<T> = Vec<Vec<Vec<Span<T>>>>;

/// Cuts a row of trees wherever anything changes: each part with its root.
pub(super) fn cut<T>(roots: &[(u32, i64)], spans: &[Vec<Span<T>>]) -> Vec<(u32, Range<i64>)> {
    let mut ends: Vec<i64> = spans.iter().flatten().flat_map(|span| [span.at.start, span.at.end]).collect();
    let mut first = 0;
    let mut of_roots = Vec::new();
    for &(root, count) in roots {
        ends.push(first + count);
        of_roots.push((root, first..first + count));
        first += count;
    }
    ends.sort_unstable();
    ends.dedup();
    let mut parts = Vec::new();
    for (root, at) in of_roots.into_iter().filter(|(_, at)| at.start < at.end) {
        let inner = ends.partition_point(|&end| end <= at.start)..ends.partition_point(|&end| end <= at.end);
        let mut start = at.start;
        for &end in &ends[inner] {
            parts.push((root, start..end));
            start = end;
        }
    }
    parts
}
