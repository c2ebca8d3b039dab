//! What is to happen, by time, and within a picosecond in an order of its own.
//!
//! Symmetric schedules have few distinct times and very many events at each: these are listed by time, and put in order when their time
//! has come, which costs far less than one heap of all. Only what is added to the present time goes to a heap.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Events to come; none is ever added to the past.
#[derive(Debug)]
pub(crate) struct EventQueue<E> {
    later: BTreeMap<u64, Vec<E>>,
    /// The time that is gone through.
    now: Option<u64>,
    /// What was known of it when it came, the last first.
    present: Vec<E>,
    /// What was added since.
    added: BinaryHeap<Reverse<E>>,
}

impl<E: Ord> EventQueue<E> {
    pub(crate) const fn new() -> Self {
        Self { later: BTreeMap::new(), now: None, present: Vec::new(), added: BinaryHeap::new() }
    }

    /// O(log times), at the present time O(log events added to it).
    pub(crate) fn add(&mut self, time: u64, event: E) {
        if self.now == Some(time) {
            self.added.push(Reverse(event));
        } else {
            self.later.entry(time).or_default().push(event);
        }
    }

    /// When something happens next.
    pub(crate) fn next_time(&self) -> Option<u64> {
        let is_over = self.present.is_empty() && self.added.is_empty();
        if is_over { self.later.first_key_value().map(|(&time, _)| time) } else { self.now }
    }

    /// Takes the least event of a time, which is the next one or has nothing; O(log) of the events of this time, over all of them.
    pub(crate) fn take(&mut self, time: u64) -> Option<E> {
        if self.next_time() != Some(time) {
            return None;
        }
        if let Some(mut events) = self.later.remove(&time) {
            events.sort_unstable_by(|a, b| b.cmp(a));
            (self.now, self.present) = (Some(time), events);
        }
        let is_added_first = match (self.present.last(), self.added.peek()) {
            (Some(present), Some(Reverse(added))) => added < present,
            (present, _) => present.is_none(),
        };
        if is_added_first { self.added.pop().map(|Reverse(event)| event) } else { self.present.pop() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The order is that of one heap, whatever is added meanwhile to the present or the future.
    #[test]
    fn events_come_as_from_one_heap() {
        let (mut event_queue, mut heap) = (EventQueue::new(), BinaryHeap::new());
        let mut state = 7_u64;
        let mut chance = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for event in 0..50 {
            let time = chance(5);
            event_queue.add(time, event);
            heap.push(Reverse((time, event)));
        }
        let mut added = 50;
        while let Some(Reverse((time, event))) = heap.pop() {
            assert_eq!(event_queue.next_time(), Some(time));
            assert_eq!((event_queue.take(time), event_queue.take(time + 1_000)), (Some(event), None));
            for _ in 0..chance(4) {
                if added < 2_000 {
                    let (time, event) = (time + chance(3), chance(10_000));
                    event_queue.add(time, event);
                    heap.push(Reverse((time, event)));
                    added += 1;
                }
            }
        }
        assert_eq!(event_queue.next_time(), None);
    }
}
