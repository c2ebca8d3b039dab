//! Channels that wait for each other, layer by layer: messages may stop for ever exactly where these waits have a cycle
//! (Dally and Seitz 1987).

/// Which channel is waited for while which is held.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    /// Layer, held, awaited; sorted and without repetition up to `sorted`.
    waits: Vec<(u32, u32, u32)>,
    sorted: usize,
}

/// Waits that are noted before they are sorted.
const UNSORTED_MIN: usize = 1 << 16;

impl Waits {
    /// Notes a wait. Amortised O(log waits); memory for twice as many as are different.
    pub(crate) fn add(&mut self, layer: u32, held: u32, awaited: u32) {
        self.waits.push((layer, held, awaited));
        if self.waits.len() >= 2 * self.sorted + UNSORTED_MIN {
            self.sort();
        }
    }

    fn sort(&mut self) {
        self.waits.sort_unstable();
        self.waits.dedup();
        self.sorted = self.waits.len();
    }

    /// A layer with a cycle and the channels of that in order, each waiting for the next and the last for the first; none
    /// where nothing can wait for ever. O(waits · log waits).
    pub(crate) fn cycle(mut self) -> Option<(u32, Vec<u32>)> {
        self.sort();
        let of_layers = self.waits.chunk_by(|(first, ..), (second, ..)| first == second);
        of_layers.filter_map(|waits| Some((waits.first()?.0, cycle_in(waits)?))).next()
    }
}

/// A cycle of one layer, by depth-first search: where all that a channel waits for is done, so is the channel.
fn cycle_in(waits: &[(u32, u32, u32)]) -> Option<Vec<u32>> {
    let mut channels: Vec<u32> = waits.iter().map(|&(_, held, _)| held).collect();
    channels.dedup();
    let place = |channel: u32| channels.binary_search(&channel).ok();
    let start = |at: usize| waits.partition_point(|&(_, held, _)| held < channels[at]);
    // Of each channel: whether it is done, and the next of its waits to be looked at.
    let mut is_done = vec![false; channels.len()];
    let mut is_open = vec![false; channels.len()];
    let mut path: Vec<(usize, usize)> = Vec::new();
    for first in 0..channels.len() {
        if !is_done[first] {
            path.push((first, start(first)));
            is_open[first] = true;
        }
        while let Some((at, next)) = path.last_mut() {
            let wait = waits.get(*next).filter(|&&(_, held, _)| held == channels[*at]);
            let Some(&(.., awaited)) = wait else {
                (is_open[*at], is_done[*at]) = (false, true);
                path.pop();
                continue;
            };
            *next += 1;
            // What waits for nothing is done.
            let Some(awaited) = place(awaited).filter(|&awaited| !is_done[awaited]) else { continue };
            if is_open[awaited] {
                let begin = path.iter().position(|&(at, _)| at == awaited)?;
                return Some(path[begin..].iter().map(|&(at, _)| channels[at]).collect());
            }
            is_open[awaited] = true;
            path.push((awaited, start(awaited)));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn waits(all: &[(u32, u32, u32)]) -> Waits {
        let mut waits = Waits::default();
        all.iter().for_each(|&(layer, held, awaited)| waits.add(layer, held, awaited));
        waits
    }

    #[test]
    fn cycles_are_within_layers() {
        assert_eq!(waits(&[]).cycle(), None);
        assert_eq!(waits(&[(0, 1, 2), (1, 2, 1)]).cycle(), None);
        assert_eq!(waits(&[(0, 1, 2), (1, 2, 1), (1, 1, 7), (1, 7, 2)]).cycle(), Some((1, vec![1, 7, 2])));
        assert_eq!(waits(&[(3, 5, 5)]).cycle(), Some((3, vec![5])));
    }

    proptest! {
        /// A cycle is one, and where none is found the channels can be taken away one by one.
        #[test]
        fn a_cycle_is_found_exactly_where_one_is(all in proptest::collection::vec((0..2_u32, 0..8_u32, 0..8_u32), 0..20)) {
            match waits(&all).cycle() {
                Some((layer, cycle)) => {
                    for (at, &channel) in cycle.iter().enumerate() {
                        prop_assert!(all.contains(&(layer, channel, cycle[(at + 1) % cycle.len()])), "{cycle:?}");
                    }
                }
                None => {
                    let mut left: BTreeSet<(u32, u32, u32)> = all.into_iter().collect();
                    while let Some(&(layer, channel, _)) = left
                        .iter()
                        .find(|&&(layer, channel, _)| !left.iter().any(|&(other, _, to)| (other, to) == (layer, channel)))
                    {
                        left.retain(|&(other, held, _)| (other, held) != (layer, channel));
                    }
                    prop_assert!(left.is_empty(), "{left:?} was missed");
                }
            }
        }
    }
}
