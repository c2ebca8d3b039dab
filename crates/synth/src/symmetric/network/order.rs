//! The numbers of boxes: those of a pod follow each other, and pods of a pod do.

use std::collections::BTreeMap;

/// Most empty boxes, for each so many boxes and beyond some few.
const EMPTY_PER: usize = 256;
const EMPTY_FEW: usize = 8;

/// Boxes in the order of their numbers.
pub(super) struct Order {
    /// The boxes; `None` where a number is free.
    pub(super) boxes: Vec<Option<usize>>,
    /// Sets of each set by level, the outermost first; at last boxes of a pod.
    pub(super) levels: Vec<u32>,
}

impl Order {
    /// By the sets of boxes, the smallest first, if sets of a level have as many members, or a few boxes less where
    /// numbers may stay free; else by the smallest alone, or by none.
    pub(super) fn of(boxes: usize, sets: &[Vec<usize>], may_be_free: bool) -> Option<Self> {
        let free = if may_be_free { boxes / EMPTY_PER + EMPTY_FEW } else { 0 };
        let inner = sets.get(..1).unwrap_or_default();
        [sets, inner, &[]].into_iter().find_map(|sets| Self::by(boxes, sets, free))
    }

    fn by(boxes: usize, sets: &[Vec<usize>], free: usize) -> Option<Self> {
        // By box: its set of each level, then itself.
        let path = |of_box: usize| sets.iter().rev().map(move |of| of[of_box]).chain([of_box]);
        let depth = sets.len() + 1;
        let mut members: Vec<BTreeMap<Vec<usize>, Vec<usize>>> = vec![BTreeMap::new(); depth];
        let mut sorted: Vec<Vec<usize>> = (0..boxes).map(|of_box| path(of_box).collect()).collect();
        sorted.sort_unstable();
        for path in &sorted {
            for level in 0..depth {
                let members = members[level].entry(path[..level].to_vec()).or_default();
                if members.last() != Some(&path[level]) {
                    members.push(path[level]);
                }
            }
        }
        let most = |of: &BTreeMap<Vec<usize>, Vec<usize>>| of.values().map(Vec::len).max();
        let sizes: Vec<usize> = members.iter().map(most).collect::<Option<_>>()?;
        let count = sizes.iter().try_fold(1_usize, |count, &size| count.checked_mul(size))?;
        if count - boxes.min(count) > free {
            return None;
        }
        let mut order = vec![None; count];
        for path in &sorted {
            let position = |level: usize| members[level].get(&path[..level])?.binary_search(&path[level]).ok();
            let number = (0..depth).try_fold(0, |number, level| Some(number * sizes[level] + position(level)?))?;
            order[number] = path.last().copied();
        }
        let levels = sizes.into_iter().map(u32::try_from).collect::<Result<_, _>>().ok()?;
        Some(Self { boxes: order, levels })
    }
}

#[cfg(test)]
mod tests {
    use super::Order;

    #[test]
    fn sets_follow_each_other_and_may_miss_a_box() {
        // Two groups of two pods of two boxes, mixed.
        let pods = vec![0, 1, 2, 3, 3, 2, 1, 0];
        let groups = vec![0, 1, 1, 0, 0, 1, 1, 0];
        let order = Order::of(8, &[pods.clone(), groups.clone()], false).unwrap();
        let boxes: Vec<usize> = order.boxes.iter().copied().flatten().collect();
        assert_eq!((boxes, order.levels), (vec![0, 7, 3, 4, 1, 6, 2, 5], vec![2, 2, 2]));
        let fewer = [pods[..7].to_vec(), groups[..7].to_vec()];
        let order = Order::of(7, &fewer, true).unwrap();
        assert_eq!(order.boxes, [Some(0), None, Some(3), Some(4), Some(1), Some(6), Some(2), Some(5)]);
        let order = Order::of(7, &fewer, false).unwrap();
        assert_eq!((order.boxes.len(), order.levels), (7, vec![7]));
    }
}
