//! Whose plan is made anew when: in the order of priority, not more often than once in a window for each, nor more than so many in a
//! second for all.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, VecDeque};

use canopy_wire::Priority;

/// Whose plan: the number of a lease, and which of its plans.
pub(super) type HeldPlan = (u64, u32);

/// Limits on what is begun. Times in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    /// Shortest time between two beginnings of one held plan.
    pub(super) window_ms: u64,
    /// Most beginnings in a second.
    pub(super) per_second: usize,
}

/// Seats that want a plan, and when they had their last. It has no clock.
#[derive(Debug)]
pub(super) struct ReplanQueue {
    pace: Pace,
    /// Of each held plan that waits: when it may begin at the earliest, and how it stands in line.
    entries: HashMap<HeldPlan, (u64, Priority)>,
    /// Those that may not begin yet, by when they may.
    early: BTreeSet<(u64, HeldPlan)>,
    /// Those that may, the first in line first.
    ready: BTreeSet<(Reverse<Priority>, u64, HeldPlan)>,
    /// When held plans last began, within a window from now.
    begun: HashMap<HeldPlan, u64>,
    /// When anything began within the last second, oldest first.
    recent: VecDeque<u64>,
}

impl ReplanQueue {
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

    /// Puts a held plan in line, not to begin before `not_before_ms`, unless it is there.
    pub(super) fn enter(&mut self, held_plan: HeldPlan, priority: Priority, not_before_ms: u64) {
        if self.entries.contains_key(&held_plan) {
            return;
        }
        let window_ends = self.begun.get(&held_plan).map_or(0, |begun| begun.saturating_add(self.pace.window_ms));
        let from_ms = not_before_ms.max(window_ends);
        self.entries.insert(held_plan, (from_ms, priority));
        self.early.insert((from_ms, held_plan));
    }

    /// Takes a held plan out of line.
    pub(super) fn strike(&mut self, held_plan: HeldPlan) {
        if let Some((from_ms, priority)) = self.entries.remove(&held_plan) {
            self.early.remove(&(from_ms, held_plan));
            self.ready.remove(&(Reverse(priority), from_ms, held_plan));
        }
    }

    /// The next held plan that may begin now; it begins.
    pub(super) fn next(&mut self, now_ms: u64) -> Option<HeldPlan> {
        while let Some(&(from_ms, held_plan)) = self.early.first().filter(|(from_ms, _)| *from_ms <= now_ms) {
            self.early.remove(&(from_ms, held_plan));
            if let Some(&(_, priority)) = self.entries.get(&held_plan) {
                self.ready.insert((Reverse(priority), from_ms, held_plan));
            }
        }
        while self.recent.front().is_some_and(|begun| begun.saturating_add(1000) <= now_ms) {
            self.recent.pop_front();
        }
        if self.recent.len() >= self.pace.per_second {
            return None;
        }
        let (_, _, held_plan) = self.ready.pop_first()?;
        self.entries.remove(&held_plan);
        self.recent.push_back(now_ms);
        let window_ms = self.pace.window_ms;
        if self.begun.len() > 2 * self.entries.len() + 1024 {
            self.begun.retain(|_, begun| begun.saturating_add(window_ms) > now_ms);
        }
        self.begun.insert(held_plan, now_ms);
        Some(held_plan)
    }

    /// When [`ReplanQueue::next`] may have something that it has not now; none: not by waiting.
    pub(super) fn next_wake(&self, now_ms: u64) -> Option<u64> {
        let early = self.early.first().map(|(from_ms, _)| *from_ms);
        let full = (!self.ready.is_empty()).then(|| match self.recent.front() {
            Some(oldest) if self.recent.len() >= self.pace.per_second => oldest.saturating_add(1000),
            _ => now_ms,
        });
        early.into_iter().chain(full).min()
    }

    /// Those in line.
    pub(super) fn held_plans(&self) -> impl Iterator<Item = &HeldPlan> {
        self.entries.keys()
    }

    /// Whether a held plan is in line.
    pub(super) fn contains(&self, held_plan: HeldPlan) -> bool {
        self.entries.contains_key(&held_plan)
    }

    /// Number of held plans in line.
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
        let mut replan_queue = ReplanQueue::new(PACE);
        replan_queue.enter((1, 0), Priority::Prefetch, 0);
        replan_queue.enter((2, 0), Priority::Repair, 0);
        replan_queue.enter((3, 0), Priority::JobStart, 500);
        assert_eq!(
            (replan_queue.next(100), replan_queue.next(100), replan_queue.next(100)),
            (Some((2, 0)), Some((1, 0)), None)
        );
        assert_eq!(
            (replan_queue.next(600), replan_queue.next_wake(600)),
            (None, Some(1100)),
            "two have begun in this second"
        );
        replan_queue.enter((2, 0), Priority::Repair, 0);
        assert_eq!((replan_queue.next(1100), replan_queue.next(2000)), (Some((3, 0)), None));
        assert_eq!(
            (replan_queue.next_wake(2000), replan_queue.next(5099), replan_queue.next(5100)),
            (Some(5100), None, Some((2, 0)))
        );
        assert_eq!((replan_queue.len(), replan_queue.next_wake(9000)), (0, None));
    }

    #[test]
    fn who_is_struck_does_not_begin() {
        let mut replan_queue = ReplanQueue::new(PACE);
        for time in [0, 9] {
            replan_queue.enter((1, 0), Priority::Repair, time);
            replan_queue.next_wake(0);
            replan_queue.strike((1, 0));
        }
        assert_eq!((replan_queue.next(100), replan_queue.len(), replan_queue.next_wake(100)), (None, 0, None));
    }

    proptest! {
        /// Whatever comes when: no held plan begins twice within a window, no second has more than its share, and all begin in the end.
        #[test]
        fn the_pace_is_kept(arrivals in prop::collection::vec((0_u64..20_000, 0_u64..4, 0_usize..4), 0..60)) {
            let mut replan_queue = ReplanQueue::new(PACE);
            let (mut begun, mut now, mut arrivals) = (Vec::new(), 0, arrivals);
            arrivals.sort_unstable();
            for (time, lease, priority) in arrivals {
                while let Some(wake) = replan_queue.next_wake(now).filter(|wake| *wake <= time) {
                    now = wake.max(now);
                    begun.extend(replan_queue.next(now).map(|held_plan| (now, held_plan)));
                }
                now = time;
                replan_queue.enter((lease, 0), Priority::ALL[priority], time);
            }
            while let Some(wake) = replan_queue.next_wake(now) {
                now = wake.max(now);
                begun.extend(replan_queue.next(now).map(|held_plan| (now, held_plan)));
            }
            prop_assert_eq!(replan_queue.len(), 0);
            for (position, (time, held_plan)) in begun.iter().enumerate() {
                let earlier = &begun[..position];
                prop_assert!(earlier.iter().all(|(before, other)| other != held_plan || before + PACE.window_ms <= *time));
                let within = earlier.iter().filter(|(before, _)| before + 1000 > *time).count();
                prop_assert!(within < PACE.per_second);
            }
        }
    }
}
