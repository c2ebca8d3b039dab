//! When links were busy in a run: the busiest of them, and how much of each part of the time.

use std::cmp::Reverse;
use std::num::NonZeroU32;

use canopy_schedule::TransferGraph;
use canopy_topology::LinkIndex;

use crate::outcome::{LinkUse, Outcome, Sent};

/// Spans of a link that are held before those that overlap are joined.
const SPANS_BEFORE_JOINING: usize = 4096;

/// The busiest links: by time, then by bytes, then in the network's order. Links that carried nothing are left out.
/// O(links · log links).
pub fn busiest(links: &[LinkUse], most: usize) -> Vec<LinkIndex> {
    let used = (0..).map(LinkIndex::new).zip(links).filter(|(_, found)| found.bytes > 0);
    let mut order: Vec<(Reverse<(u64, u64)>, LinkIndex)> =
        used.map(|(link, found)| (Reverse((found.busy_ps, found.bytes)), link)).collect();
    order.sort_unstable();
    order.truncate(most);
    order.into_iter().map(|(_, link)| link).collect()
}

/// Where part `part` of `parts` equal parts of a time of `end_ps` begins, in picoseconds: `⌊part·end/parts⌋`.
pub fn part_start_ps(end_ps: u64, part: u32, parts: NonZeroU32) -> u64 {
    let start = u128::from(end_ps) * u128::from(part) / u128::from(parts.get());
    u64::try_from(start).unwrap_or(u64::MAX)
}

/// For each of these links, and each of `parts` equal parts of the run's time: the picoseconds in which at least one message
/// was on it.
///
/// * **In.** A run with fair links, its trace, and the graph that it ran.
/// * **Out.** One list for each link, in their order. A list adds up to the link's [`busy_ps`](LinkUse::busy_ps).
/// * **Cost.** O(links of the messages' routes + spans · log spans). Memory for the links' spans, as far as they do not
///   overlap.
pub fn busy_by_part(
    graph: &TransferGraph,
    (outcome, trace): (&Outcome, &[Sent]),
    links: &[LinkIndex],
    parts: NonZeroU32,
) -> Vec<Vec<u64>> {
    let mut place_of = vec![None; outcome.links.len()];
    for (place, link) in links.iter().enumerate() {
        if let Some(known) = place_of.get_mut(link.index()) {
            *known = Some(place);
        }
    }
    let mut spans = vec![Spans::default(); links.len()];
    for sent in trace.iter().filter(|sent| sent.launched_ps < sent.left_ps) {
        for link in graph.routes.get(sent.route).unwrap_or_default() {
            let place = place_of.get(link.index()).copied().flatten();
            if let Some(spans) = place.and_then(|place| spans.get_mut(place)) {
                spans.add(sent.launched_ps, sent.left_ps);
            }
        }
    }
    spans.into_iter().map(|spans| spans.by_part(outcome.time_ps, parts)).collect()
}

/// When a link was busy, as spans from a time to another.
#[derive(Clone, Debug, Default)]
struct Spans {
    list: Vec<(u64, u64)>,
    /// Spans that did not overlap when they were last joined.
    joined: usize,
}

impl Spans {
    fn add(&mut self, start: u64, end: u64) {
        if self.list.len() >= SPANS_BEFORE_JOINING.max(self.joined.saturating_mul(2)) {
            self.join();
        }
        self.list.push((start, end));
    }

    /// Joins those that overlap or touch; the rest is in order then.
    fn join(&mut self) {
        self.list.sort_unstable();
        self.list.dedup_by(|next, before| {
            let overlaps = next.0 <= before.1;
            if overlaps {
                before.1 = before.1.max(next.1);
            }
            overlaps
        });
        self.joined = self.list.len();
    }

    /// How much of each part they cover.
    fn by_part(mut self, end_ps: u64, parts: NonZeroU32) -> Vec<u64> {
        self.join();
        let mut spans = self.list.into_iter().peekable();
        let covered = |part: u32| {
            let (from, to) = (part_start_ps(end_ps, part, parts), part_start_ps(end_ps, part + 1, parts));
            let mut busy = 0;
            while let Some(&(start, end)) = spans.peek() {
                busy += end.min(to).saturating_sub(start.max(from));
                if end > to {
                    break;
                }
                spans.next();
            }
            busy
        };
        (0..parts.get()).map(covered).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(count: u32) -> NonZeroU32 {
        NonZeroU32::new(count).unwrap()
    }

    fn spans(list: &[(u64, u64)]) -> Spans {
        let mut spans = Spans::default();
        list.iter().for_each(|&(start, end)| spans.add(start, end));
        spans
    }

    #[test]
    fn what_overlaps_counts_once() {
        let overlapping = [(4, 8), (0, 3), (2, 5), (9, 10)];
        assert_eq!(spans(&overlapping).by_part(10, parts(1)), [9]);
        assert_eq!(spans(&overlapping).by_part(10, parts(5)), [2, 2, 2, 2, 1]);
        assert_eq!(spans(&[]).by_part(10, parts(2)), [0, 0]);
    }

    #[test]
    fn parts_that_are_shorter_than_a_picosecond_lose_nothing() {
        let all = spans(&[(0, 3)]).by_part(3, parts(7));
        assert_eq!((all.len(), all.iter().sum::<u64>()), (7, 3));
        assert_eq!(part_start_ps(u64::MAX, 7, parts(7)), u64::MAX);
        assert_eq!(spans(&[]).by_part(0, parts(3)), [0, 0, 0]);
    }

    #[test]
    fn many_spans_are_joined_as_they_come() {
        let mut spans = Spans::default();
        (0..100_000).for_each(|start| spans.add(start, start + 1));
        assert!(spans.list.len() <= SPANS_BEFORE_JOINING, "{}", spans.list.len());
        assert_eq!(spans.by_part(100_000, parts(4)), [25_000; 4]);
    }

    #[test]
    fn the_busiest_links_come_first_and_idle_ones_never() {
        let link = |busy_ps, bytes| LinkUse { busy_ps, bytes };
        let links = [link(5, 1), link(0, 0), link(9, 1), link(5, 2), link(9, 1)];
        let numbers = |most| busiest(&links, most).into_iter().map(LinkIndex::number).collect::<Vec<_>>();
        assert_eq!(numbers(9), [2, 4, 3, 0]);
        assert_eq!(numbers(2), [2, 4]);
    }
}
