//! Searches end when nobody waits, take memory before they have it, and give all of it back.

use std::sync::atomic::{AtomicU64, Ordering};

use canopy_optimize::Stop;
use canopy_training::groups::{
    GroupKind, GroupOptions, GroupProblem, GroupsError, Patience, Room, group_levels, group_optimum, group_shares,
    ring_rate,
};

use crate::costs::lacking;
use crate::networks::{Network, group};
use crate::random::{Case, Random, cases};

const CASES: u32 = 60;

/// Requested after so many questions; counts those that follow.
struct After(u64, AtomicU64);

impl After {
    fn new(questions: u64) -> Self {
        Self(questions, AtomicU64::new(0))
    }

    /// Questions after the first that was answered with yes.
    fn late(&self) -> u64 {
        self.1.load(Ordering::Relaxed).saturating_sub(self.0 + 1)
    }
}

impl Stop for After {
    fn is_requested(&self) -> bool {
        self.1.fetch_add(1, Ordering::Relaxed) >= self.0
    }
}

/// Memory with a limit.
#[derive(Default)]
struct Limited {
    limit: u64,
    taken: AtomicU64,
    most: AtomicU64,
}

impl Limited {
    fn of(limit: u64) -> Self {
        Self { limit, ..Self::default() }
    }
}

impl Room for Limited {
    fn take(&self, bytes: u64) -> bool {
        let taken = self.taken.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if taken > self.limit {
            self.taken.fetch_sub(bytes, Ordering::Relaxed);
            return false;
        }
        self.most.fetch_max(taken, Ordering::Relaxed);
        true
    }

    fn give_back(&self, bytes: u64) {
        self.taken.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// What can be asked of a problem.
fn all(problem: &GroupProblem, patience: Patience<'_>) -> Result<(), GroupsError> {
    let optimum = group_optimum(problem, GroupOptions::STANDARD, patience)?;
    group_shares(problem, &optimum, patience)?;
    group_levels(problem, GroupOptions::STANDARD, usize::MAX, patience)?;
    ring_rate(problem, patience.stop)?;
    Ok(())
}

/// One question that is answered with yes is enough, whichever loop asks it; threads that run beside it ask once more.
#[test]
fn who_is_told_to_stop_stops() {
    let mut stopped = 0;
    for number in 0..u64::from(cases(CASES)) {
        let case = Case::numbered(number);
        if lacking(&case.network, &case.groups).is_some() {
            continue;
        }
        let problem = case.network.problem(case.groups.clone());
        let all_questions = After::new(u64::MAX);
        all(&problem, Patience { stop: &all_questions, ..Patience::ENDLESS }).unwrap();
        let questions = all_questions.1.into_inner();
        let mut random = Random(number);
        for _ in 0..6 {
            let stop = After::new(u64::from(random.below(u32::try_from(questions).unwrap())));
            let outcome = all(&problem, Patience { stop: &stop, ..Patience::ENDLESS });
            assert_eq!(outcome, Err(GroupsError::Stopped), "{problem:?}");
            // Commodities are priced side by side, and searches for symmetries answer before it is asked again.
            let beside = 64 + problem.groups().iter().map(|group| group.members.len() as u64).sum::<u64>();
            assert!(stop.late() <= beside, "{} more questions: {problem:?}", stop.late());
            stopped += 1;
        }
    }
    assert!(stopped > 100, "{stopped}");
}

/// With less than it says it needs there is no answer, with as much there is; nothing stays taken.
#[test]
fn memory_is_taken_before_it_is_there() {
    for number in 0..u64::from(cases(CASES)) {
        let case = Case::numbered(number);
        if lacking(&case.network, &case.groups).is_some() {
            continue;
        }
        let problem = case.network.problem(case.groups.clone());
        let ample = Limited::of(u64::MAX);
        all(&problem, Patience { room: &ample, ..Patience::ENDLESS }).unwrap();
        let most = ample.most.into_inner();
        assert_eq!(ample.taken.into_inner(), 0);
        for (limit, is_enough) in [(most, true), (most - 1, false), (most / 2, false), (0, false)] {
            let room = Limited::of(limit);
            let outcome = all(&problem, Patience { room: &room, ..Patience::ENDLESS });
            match outcome {
                Ok(()) => assert!(is_enough, "{limit} of {most}"),
                Err(GroupsError::NoRoom { needed }) => assert!(!is_enough && needed > limit, "{needed} of {limit}"),
                Err(error) => panic!("{error}: {problem:?}"),
            }
            assert_eq!(room.taken.into_inner(), 0);
        }
    }
}

/// A few words may ask for a network whose inverse no machine holds: it is refused before it is allocated.
#[test]
fn a_network_of_a_hundred_thousand_links_is_refused_at_once() {
    let count = 1_000;
    let mut network = Network::nodes(count);
    let mut random = Random(1);
    for node in 0..count {
        for step in 1..=100 {
            network.arc(node, (node + step) % count, 1 + u64::from(random.below(1_000)));
        }
    }
    let problem = network.problem(vec![group(GroupKind::AllGather, vec![0, 1], 1)]);
    let room = Limited::of(8 << 30);
    let refused = group_optimum(&problem, GroupOptions::STANDARD, Patience { room: &room, ..Patience::ENDLESS });
    match refused.unwrap_err() {
        GroupsError::NoRoom { needed } => assert!(needed > 80 * 100_000 * 100_000 / 10, "{needed}"),
        error => panic!("{error}"),
    }
    assert_eq!(room.taken.into_inner(), 0);
}
