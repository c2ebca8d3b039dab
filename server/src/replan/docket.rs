//! Whose plan is made anew when: in the order of priority, not more often than once in a window for each, nor more than so many in a
//! second for all.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, VecDeque};

use canopy_wire::Priority;

/// Whose plan: the number of a lease, and which of its plans.
pub(super) type Seat = (u64, u32);

/// Limits on what is begun. Times in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    /// Shortest time between two beginnings of one seat.
    pub(super) window_ms: u64,
    /// Most beginnings in a second.
    pub(super) per_second: usize,
}

/// Seats that want a plan, and when they had their last. It has no clock.
#[derive(Debug)]
pub(super) struct Docket {
    pace: Pace,
    /// Of each seat that waits: when it may begin at the earliest, and how it stands in line.
    entries: HashMap<Seat, (u64, Priority)>,
    /// Those that may not begin yet, by when they may.
    early: BTreeSet<(u64, Seat)>,
    /// Those that may, the first in line first.
    ready: BTreeSet<(Reverse<Priority>, u64, Seat)>,
    /// When seats last began, within a window from now.
    begun: HashMap<Seat, u64>,
    /// When anything began within the last second, oldest first.
    recent: VecDeque<u64>,
}

impl Docket {
    pub(super) fn new(pace: Pace) -> Self {
        Self {
            pace,
            entries: HashMap::new(),
            early: BTreeSet::new(),
            ready: BTreeSet::new(),
            begun: HashMap::new(),
            recent: VecDeque::new(),
        }
    }

    /// Puts a seat in line, not to begin before `not_before_ms`, unless it is there.
    pub(super) fn enter(&mut self, seat: Seat, priority: Priority, not_before_ms: u64) {
        if self.entries.contains_key(&seat) {
            return;
        }
        let window_ends = self.begun.get(&seat).map_or(0, |begun| begun.saturating_add(self.pace.window_ms));
        let from_ms = not_before_ms.max(window_ends);
        self.entries.insert(seat, (from_ms, priority));
        self.early.insert((from_ms, seat));
    }

    /// Takes a seat out of line.
    pub(super) fn strike(&mut self, seat: Seat) {
        if let Some((from_ms, priority)) = self.entries.remove(&seat) {
            self.early.remove(&(from_ms, seat));
            self.ready.remove(&(Reverse(priority), from_ms, seat));
        }
    }

    /// The next seat that may begin now; it begins.
    pub(super) fn next(&mut self, now_ms: u64) -> Option<Seat> {
        while let Some(&(from_ms, seat)) = self.early.first().filter(|(from_ms, _)| *from_ms <= now_ms) {
            self.early.remove(&(from_ms, seat));
            if let Some(&(_, priority)) = self.entries.get(&seat) {
                self.ready.insert((Reverse(priority), from_ms, seat));
            }
        }
        while self.recent.front().is_some_and(|begun| begun.saturating_add(1000) <= now_ms) {
            self.recent.pop_front();
        }
        if self.recent.len() >= self.pace.per_second {
            return None;
        }
        let (_, _, seat) = self.ready.pop_first()?;
        self.entries.remove(&seat);
        self.recent.push_back(now_ms);
        let window_ms = self.pace.window_ms;
        if self.begun.len() > 2 * self.entries.len() + 1024 {
            self.begun.retain(|_, begun| begun.saturating_add(window_ms) > now_ms);
        }
        self.begun.insert(seat, now_ms);
        Some(seat)
    }

    /// When [`Docket::next`] may have something that it has not now; none: not by waiting.
    pub(super) fn next_wake(&self, now_ms: u64) -> Option<u64> {
        let early = self.early.first().map(|(from_ms, _)| *from_ms);
        let full = (!self.ready.is_empty()).then(|| match self.recent.front() {
            Some(oldest) if self.recent.len() >= self.pace.per_second => oldest.saturating_add(1000),
            _ => now_ms,
        });
        early.into_iter().chain(full).min()
    }

    /// Those in line.
    pub(super) fn seats(&self) -> impl Iterator<Item = &Seat> {
        self.entries.keys()
    }

    /// Whether a seat is in line.
    pub(super) fn contains(&self, seat: Seat) -> bool {
        self.entries.contains_key(&seat)
    }

    /// Number of seats in line.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PACE: Pace = Pace { window_ms: 5000, per_second: 2 };

    #[test]
    fn the_most_urgent_begins_first_and_nobody_too_often() {
        let mut docket = Docket::new(PACE);
        docket.enter((1, 0), Priority::Prefetch, 0);
        docket.enter((2, 0), Priority::Repair, 0);
        docket.enter((3, 0), Priority::JobStart, 500);
        assert_eq!((docket.next(100), docket.next(100), docket.next(100)), (Some((2, 0)), Some((1, 0)), None));
        assert_eq!((docket.next(600), docket.next_wake(600)), (None, Some(1100)), "two have begun in this second");
        docket.enter((2, 0), Priority::Repair, 0);
        assert_eq!((docket.next(1100), docket.next(2000)), (Some((3, 0)), None));
        assert_eq!((docket.next_wake(2000), docket.next(5099), docket.next(5100)), (Some(5100), None, Some((2, 0))));
        assert_eq!((docket.len(), docket.next_wake(9000)), (0, None));
    }

    #[test]
    fn who_is_struck_does_not_begin() {
        let mut docket = Docket::new(PACE);
        for time in [0, 9] {
            docket.enter((1, 0), Priority::Repair, time);
            docket.next_wake(0);
            docket.strike((1, 0));
        }
        assert_eq!((docket.next(100), docket.len(), docket.next_wake(100)), (None, 0, None));
    }

    proptest! {
        /// Whatever comes when: no seat begins twice within a window, no second has more than its share, and all begin in the end.
        #[test]
        fn the_pace_is_kept(arrivals in prop::collection::vec((0_u64..20_000, 0_u64..4, 0_usize..4), 0..60)) {
            let mut docket = Docket::new(PACE);
            let (mut begun, mut now, mut arrivals) = (Vec::new(), 0, arrivals);
            arrivals.sort_unstable();
            for (time, lease, priority) in arrivals {
                while let Some(wake) = docket.next_wake(now).filter(|wake| *wake <= time) {
                    now = wake.max(now);
                    begun.extend(docket.next(now).map(|seat| (now, seat)));
                }
                now = time;
                docket.enter((lease, 0), Priority::ALL[priority], time);
            }
            while let Some(wake) = docket.next_wake(now) {
                now = wake.max(now);
                begun.extend(docket.next(now).map(|seat| (now, seat)));
            }
            prop_assert_eq!(docket.len(), 0);
            for (position, (time, seat)) in begun.iter().enumerate() {
                let earlier = &begun[..position];
                prop_assert!(earlier.iter().all(|(before, other)| other != seat || before + PACE.window_ms <= *time));
                let within = earlier.iter().filter(|(before, _)| before + 1000 > *time).count();
                prop_assert!(within < PACE.per_second);
            }
        }
    }
}
