use std::time::Duration;

use canopy_import::FileKind;
use canopy_plan::{Format, Profile, Target};
use canopy_planner::{Making, TopologyInput};
use canopy_schedule::CollectiveKind;
use canopy_synth::{Algorithm, Never, Stop as _, SumOptions, TreeLimits};
use canopy_topology::{DocumentFormat, TopologyLimits};
use canopy_wire::{Priority, StoredPlan};

use super::*;
use crate::clock;
use crate::jobs::job::{Delivery, Timings};
use crate::jobs::pipeline::Pipeline;
use crate::jobs::planner::Planner as _;

const TERMS: Terms = Terms { priority: Priority::Interactive, detached: false, worker: Worker::Planner };
const LIMITS: QueueLimits = QueueLimits { length_max: 3, bytes_max: 1 << 20, memory_bytes_max: u64::MAX };

/// Two texts of one network; other texts are generator expressions.
const PAIR: &str = "{canopy: 1, nodes: [{id: a}, {id: b}], links: [{from: a, to: b, bandwidth: 1GB/s, both: true}]}";
const SAME_PAIR: &str =
    "{canopy: 1, nodes: [{id: a}, {id: b}], links: [{from: b, to: a, bandwidth: 1GB/s, both: true}]}";

fn order(text: &str) -> Order {
    Order {
        topology: match text.starts_with('{') {
            true => TopologyInput::Document {
                kind: Some(FileKind::Own(DocumentFormat::Yaml)),
                content: text.to_owned().into(),
            },
            false => TopologyInput::Expression(text.to_owned()),
        },
        faults: Vec::new(),
        kind: CollectiveKind::Allgather,
        root: None,
        shares: Vec::new(),
        group: None,
        placement: None,
        tenant: None,
        size_bytes_min: 0,
        size_bytes_max: 1 << 20,
        states_default_size: false,
        in_place: false,
        algorithm: Algorithm::Auto,
        limits: TreeLimits::NONE,
        sums: SumOptions::AUTO,
        seed: 0,
        alpha_ns: 1_000,
        making: Making::Searched,
        joint: None,
        outputs: vec![Format::Json.usual(), Target::from(Profile::Msccl)],
    }
}

impl Queue {
    /// The next job that a planner takes.
    pub(in crate::jobs) fn next_to_plan(&self) -> Option<Arc<Job>> {
        self.next_own(Lane::Planning)
    }

    /// The next job that is made beside searches.
    fn next_beside(&self) -> Option<Arc<Job>> {
        self.next_own(Lane::Beside)
    }

    fn next_own(&self, lane: Lane) -> Option<Arc<Job>> {
        self.next_task(lane).map(|task| match task {
            Task::Own(job) => job,
            Task::Shared(_) | Task::Slice(_) => panic!("jobs of this server alone were submitted"),
        })
    }
}

fn submit(queue: &Queue, text: &str) -> Result<Subscription, PlanFailure> {
    submit_as(queue, text, Goal::Plan, TERMS)
}

fn submit_as(queue: &Queue, text: &str, goal: Goal, terms: Terms) -> Result<Subscription, PlanFailure> {
    let order = order(text);
    queue.submit(RequestKey::of(&order), order, goal, terms)
}

fn read(job: &Job) -> Read {
    let prepared = Pipeline::new(TopologyLimits::STANDARD).prepare(&job.order, &Never).unwrap();
    Read { prepared, schedule: None, queue_ms: 1.0, canonical_ms: 2.0, queued: clock::now() }
}

fn delivery() -> Delivery {
    let mut plan = StoredPlan::default();
    plan.plan.name = "plans/x".to_owned();
    Delivery {
        plan: Arc::new(plan),
        cache: Cache::Miss,
        timings: Timings {
            planned: canopy_planner::Timings { synthesis_ms: 7.0, ..Default::default() },
            ..Timings::default()
        },
        warnings: Vec::new(),
        puncture: None,
    }
}

fn outcome(subscription: &Subscription) -> Option<Outcome> {
    match &*subscription.state.borrow() {
        JobState::Done(outcome) => Some(outcome.clone()),
        JobState::Working(_) => None,
    }
}

#[test]
fn equal_requests_share_one_job_and_all_get_its_end() {
    let queue = Queue::new(LIMITS, None);
    let first = submit(&queue, "ring:4").unwrap();
    let second = submit(&queue, "ring:4").unwrap();
    assert!(!first.joined && second.joined);
    assert_eq!(queue.waiting(), 1);
    let job = queue.next_to_read().unwrap();
    queue.finish(&job, Ok(delivery()));
    for subscription in [&first, &second] {
        assert_eq!(outcome(subscription).unwrap().unwrap().plan.plan.name, "plans/x");
    }
    assert!(!submit(&queue, "ring:4").unwrap().joined, "a job that has ended takes nobody in");
}

#[test]
fn a_full_queue_refuses_and_says_how_many_wait() {
    let queue = Queue::new(LIMITS, None);
    let _waiting: Vec<Subscription> =
        ["ring:3", "ring:4", "ring:5"].iter().map(|text| submit(&queue, text).unwrap()).collect();
    assert!(matches!(submit(&queue, "ring:6"), Err(PlanFailure::QueueFull { waiting: 3, limit: 3 })));
    assert!(submit(&queue, "ring:5").is_ok(), "joining takes no room");
    let job = queue.next_to_read().unwrap();
    assert!(submit(&queue, "ring:6").is_err(), "a job that is read waits still");
    queue.promote(&job, read(&job)).unwrap();
    assert!(submit(&queue, "ring:6").is_err(), "and so does one for a planning worker");
    let _planned = queue.next_to_plan().unwrap();
    assert!(submit(&queue, "ring:6").is_ok());
}

#[test]
fn requests_over_the_budget_of_bytes_are_refused_until_others_end() {
    let queue = Queue::new(QueueLimits { bytes_max: 1000, ..LIMITS }, None);
    let big = "r".repeat(600);
    let held = submit(&queue, &big).unwrap();
    let job = queue.next_to_read().unwrap();
    let also_big = "s".repeat(600);
    let refused = submit(&queue, &also_big);
    assert!(matches!(refused, Err(PlanFailure::QueueBudget { held: 600, found: 600, limit: 1000 })));
    queue.finish(&job, Ok(delivery()));
    drop(held);
    assert!(submit(&queue, &also_big).is_ok());
}

#[test]
fn a_job_nobody_waits_for_leaves_the_line() {
    let queue = Queue::new(LIMITS, None);
    let first = submit(&queue, "ring:4").unwrap();
    let second = submit(&queue, "ring:4").unwrap();
    drop(first);
    assert_eq!(queue.waiting(), 1, "one still waits");
    drop(second);
    assert_eq!(queue.waiting(), 0);
    queue.close();
    assert!(queue.next_to_read().is_none());
}

#[test]
fn the_last_waiter_stops_a_running_job_and_no_later_request_joins_it() {
    let queue = Queue::new(LIMITS, None);
    let first = submit(&queue, "ring:4").unwrap();
    let second = submit(&queue, "ring:4").unwrap();
    let job = queue.next_to_read().unwrap();
    drop(first);
    assert!(!job.is_requested());
    drop(second);
    assert!(job.is_requested());
    let third = submit(&queue, "ring:4").unwrap();
    assert!(!third.joined);
    queue.finish(&job, Err(Arc::new(PlanFailure::Stopped)));
    assert!(outcome(&third).is_none(), "the stopped job's end is not the new one's");
}

#[test]
fn a_request_that_needs_the_same_plan_follows_the_first() {
    let queue = Queue::new(LIMITS, None);
    let first = submit(&queue, PAIR).unwrap();
    let second = submit(&queue, SAME_PAIR).unwrap();
    assert!(!second.joined, "the texts differ");
    let leader = queue.next_to_read().unwrap();
    let follower = queue.next_to_read().unwrap();
    assert_eq!(read(&leader).prepared.key, read(&follower).prepared.key);
    queue.promote(&leader, read(&leader)).unwrap();
    queue.promote(&follower, read(&follower)).unwrap();
    assert_eq!(queue.waiting(), 1, "one plan to make");
    let planned = queue.next_to_plan().unwrap();
    planned.update(|status| status.stage = "trees".into());
    assert!(matches!(&*second.state.borrow(), JobState::Working(status) if status.stage == "trees"));
    queue.finish(&planned, Ok(delivery()));
    assert_eq!(outcome(&first).unwrap().unwrap().cache, Cache::Miss);
    let joined = outcome(&second).unwrap().unwrap();
    assert_eq!(
        (joined.cache, joined.timings.canonical_ms, joined.timings.planned.synthesis_ms),
        (Cache::Joined, 2.0, 7.0)
    );
}

#[test]
fn a_follower_keeps_its_leader_alive_until_it_leaves_too() {
    let queue = Queue::new(LIMITS, None);
    let first = submit(&queue, PAIR).unwrap();
    let second = submit(&queue, SAME_PAIR).unwrap();
    let (leader, follower) = (queue.next_to_read().unwrap(), queue.next_to_read().unwrap());
    queue.promote(&leader, read(&leader)).unwrap();
    queue.promote(&follower, read(&follower)).unwrap();
    drop(first);
    assert!(!leader.is_requested(), "the follower waits");
    drop(second);
    assert!(leader.is_requested() && follower.is_requested());
    assert_eq!(queue.waiting(), 0);
}

#[test]
fn a_job_cancelled_while_it_was_read_is_not_planned() {
    let queue = Queue::new(LIMITS, None);
    drop({
        let subscription = submit(&queue, "ring:4").unwrap();
        let _job = queue.next_to_read().unwrap();
        subscription
    });
    let subscription = submit(&queue, "ring:4").unwrap();
    let job = queue.next_to_read().unwrap();
    drop(subscription);
    queue.promote(&job, read(&job)).unwrap();
    assert_eq!(queue.waiting(), 0);
}

#[test]
fn a_closed_queue_takes_nothing_but_ends_what_it_has() {
    let queue = Queue::new(LIMITS, None);
    let _waiting = submit(&queue, "ring:4").unwrap();
    queue.close();
    assert!(matches!(submit(&queue, "ring:5"), Err(PlanFailure::Draining)));
    let job = queue.next_to_read().unwrap();
    assert!(queue.next_to_read().is_none());
    std::thread::scope(|scope| {
        let planner = scope.spawn(|| queue.next_to_plan().map(|job| job.key));
        // A planning worker may not leave while a job is being read: it would be stranded.
        queue.promote(&job, read(&job)).unwrap();
        assert_eq!(planner.join().unwrap(), Some(job.key));
    });
    assert!(queue.next_to_plan().is_none());
}

#[test]
fn planning_workers_leave_a_closed_queue_whose_last_job_was_given_up() {
    let queue = Queue::new(LIMITS, None);
    let subscription = submit(&queue, "ring:4").unwrap();
    let _read = queue.next_to_read().unwrap();
    queue.close();
    std::thread::scope(|scope| {
        let planner = scope.spawn(|| queue.next_to_plan().is_none());
        drop(subscription);
        assert!(planner.join().unwrap());
    });
}

#[test]
fn abort_ends_every_job_and_stops_the_running_ones() {
    let queue = Queue::new(LIMITS, None);
    let running = submit(&queue, "ring:4").unwrap();
    let job = queue.next_to_read().unwrap();
    let waiting = submit(&queue, "ring:5").unwrap();
    queue.abort();
    assert!(job.is_requested());
    for subscription in [&running, &waiting] {
        assert!(matches!(outcome(subscription).unwrap(), Err(failure) if matches!(*failure, PlanFailure::Draining)));
    }
    queue.finish(&job, Err(Arc::new(PlanFailure::Stopped)));
    assert!(
        matches!(outcome(&running).unwrap(), Err(failure) if matches!(*failure, PlanFailure::Draining)),
        "an end is the end"
    );
}

#[test]
fn threads_that_come_and_go_leave_nothing_behind() {
    let queue = Queue::new(QueueLimits { length_max: 64, bytes_max: 1 << 20, memory_bytes_max: u64::MAX }, None);
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            while let Some(job) = queue.next_to_read() {
                queue.finish(&job, Ok(delivery()));
            }
        });
        let callers: Vec<_> = (0..8)
            .map(|caller| {
                let queue = &queue;
                scope.spawn(move || {
                    for round in 0..200 {
                        let subscription = submit(queue, &format!("ring:{}", 3 + (round + caller) % 5)).unwrap();
                        let deadline = clock::now() + Duration::from_secs(10);
                        // Half of the callers leave at once, the others wait for the end.
                        while caller % 2 == 0 && outcome(&subscription).is_none() {
                            assert!(clock::now() < deadline, "a waiter was forgotten");
                            std::thread::yield_now();
                        }
                    }
                })
            })
            .collect();
        for caller in callers {
            caller.join().unwrap();
        }
        queue.close();
        worker.join().unwrap();
    });
    let lines = queue.shared.lines.lock();
    assert_eq!((lines.waiting, lines.by_request.len(), lines.by_plan.len(), lines.held_bytes), (0, 0, 0, 0));
}

mod memory;
mod operations;
mod turns;

/// A plan that stands in for another waits for its own worker, until somebody wants it for itself.
#[test]
fn whoever_wants_a_stand_in_for_itself_gets_a_planner() {
    let queue = Queue::new(LIMITS, None);
    let beside = Terms { worker: Worker::Beside, ..TERMS };
    let lined_up = |text: &str| {
        let waiting = submit_as(&queue, text, Goal::Plan, beside).unwrap();
        let job = queue.next_to_read().unwrap();
        queue.promote(&job, read(&job)).unwrap();
        (waiting, job)
    };
    let in_line = |queue: &Queue| {
        let lines = queue.shared.lines.lock();
        [&lines.planning, &lines.beside].map(|line| line.ahead_of("", Priority::Prefetch))
    };
    let (_first, job) = lined_up("ring:4");
    assert_eq!(in_line(&queue), [0, 1]);
    let again = submit_as(&queue, "ring:4", Goal::Plan, beside).unwrap();
    assert_eq!((again.joined, in_line(&queue)), (true, [0, 1]));
    let wanted = submit(&queue, "ring:4").unwrap();
    assert_eq!((wanted.joined, in_line(&queue)), (true, [1, 0]));
    assert!(Arc::ptr_eq(&queue.next_to_plan().unwrap(), &job));

    // The same through another text of the same network.
    let (_second, job) = lined_up(PAIR);
    let other = submit(&queue, SAME_PAIR).unwrap();
    let follower = queue.next_to_read().unwrap();
    queue.promote(&follower, read(&follower)).unwrap();
    assert_eq!(in_line(&queue), [1, 0]);
    drop(other);
    assert!(Arc::ptr_eq(&queue.next_to_plan().unwrap(), &job));
    let (_third, job) = lined_up("ring:5");
    assert!(Arc::ptr_eq(&queue.next_beside().unwrap(), &job));
}
