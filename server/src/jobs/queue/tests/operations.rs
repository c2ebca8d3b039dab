//! Priorities, detached jobs, lookups, and what operators see and end.

use tokio::time;

use super::*;
use crate::jobs::job::State;
use crate::random::{Random, seeds};

fn terms(priority: Priority, detached: bool) -> Terms {
    Terms { priority, detached, worker: Worker::Planner }
}

/// A queue with room, and the expression of the next job that is read from it.
fn roomy() -> Queue {
    Queue::new(QueueLimits { length_max: 16, bytes_max: 1 << 20, memory_bytes_max: u64::MAX }, None)
}

fn expression(job: &Job) -> &str {
    match &job.order.topology {
        TopologyInput::Expression(text) => text,
        _ => panic!("these tests use expressions"),
    }
}

fn state(queue: &Queue, name: &str) -> Option<State> {
    Some(queue.operation(name)?.describe().state)
}

#[test]
fn the_highest_priority_goes_first_and_among_equals_the_first() {
    let queue = roomy();
    let wanted = [
        ("ring:3", Priority::Prefetch),
        ("ring:4", Priority::Interactive),
        ("ring:5", Priority::Repair),
        ("ring:6", Priority::JobStart),
        ("ring:7", Priority::Interactive),
    ];
    let held: Vec<_> = wanted
        .iter()
        .map(|(text, priority)| submit_as(&queue, text, Goal::Plan, terms(*priority, false)).unwrap())
        .collect();
    assert_eq!(held.iter().map(|one| one.position).collect::<Vec<_>>(), [0, 0, 0, 1, 3]);
    let read_first: Vec<_> = (0..5).map(|_| queue.next_to_read().unwrap()).collect();
    let order = ["ring:5", "ring:6", "ring:4", "ring:7", "ring:3"];
    assert_eq!(read_first.iter().map(|job| expression(job)).collect::<Vec<_>>(), order);
    // The second line has its own order, whatever order they come in.
    read_first.iter().rev().for_each(|job| queue.promote(job, read(job)).unwrap());
    let planned: Vec<_> = (0..5).map(|_| queue.next_to_plan().unwrap()).collect();
    assert_eq!(planned.iter().map(|job| expression(job)).collect::<Vec<_>>(), order);
}

#[test]
fn a_shared_job_has_the_highest_priority_asked_for_and_so_does_the_one_it_follows() {
    let queue = roomy();
    let low = terms(Priority::Prefetch, false);
    let _leading = submit_as(&queue, PAIR, Goal::Plan, low).unwrap();
    let _following = submit_as(&queue, SAME_PAIR, Goal::Plan, low).unwrap();
    let (leader, follower) = (queue.next_to_read().unwrap(), queue.next_to_read().unwrap());
    let _other = submit(&queue, "ring:4").unwrap();
    let other = queue.next_to_read().unwrap();
    queue.promote(&other, read(&other)).unwrap();
    queue.promote(&leader, read(&leader)).unwrap();
    queue.promote(&follower, read(&follower)).unwrap();
    let _hurry = submit_as(&queue, SAME_PAIR, Goal::Plan, terms(Priority::Repair, false)).unwrap();
    assert!(Arc::ptr_eq(&queue.next_to_plan().unwrap(), &leader));
}

#[test]
fn prefetching_leaves_half_of_the_queue_to_others() {
    let queue = Queue::new(QueueLimits { length_max: 4, bytes_max: 1 << 20, memory_bytes_max: u64::MAX }, None);
    let prefetch = |text| submit_as(&queue, text, Goal::Plan, terms(Priority::Prefetch, true));
    let _two = (prefetch("ring:3").unwrap(), prefetch("ring:4").unwrap());
    assert!(matches!(prefetch("ring:5"), Err(PlanFailure::QueueFull { waiting: 2, limit: 2 })));
    assert!(submit(&queue, "ring:5").is_ok());
}

#[test]
fn a_detached_job_outlives_its_callers_and_is_found_when_it_has_ended() {
    let queue = roomy();
    let detached = submit_as(&queue, "ring:4", Goal::Plan, terms(Priority::Prefetch, true)).unwrap();
    let name = detached.job().operation();
    drop(detached);
    assert_eq!((queue.waiting(), state(&queue, &name)), (1, Some(State::Queued)));
    let job = queue.next_to_read().unwrap();
    assert!(!job.is_requested());
    assert_eq!(state(&queue, &name), Some(State::Running));
    queue.finish(&job, Ok(delivery()));
    let operation = queue.operation(&name).unwrap().describe();
    assert!(operation.result.is_some() && operation.ended_ms.is_some());
    let Some(Ok(made)) = operation.result else { panic!("it has a plan") };
    assert_eq!(made.plan, delivery().plan.header_sent());
}

#[test]
fn one_detached_request_detaches_the_job_of_all() {
    let queue = roomy();
    let first = submit(&queue, "ring:4").unwrap();
    let second = submit_as(&queue, "ring:4", Goal::Plan, terms(Priority::Interactive, true)).unwrap();
    drop((first, second));
    assert_eq!(queue.waiting(), 1);
}

#[test]
fn an_operator_ends_a_job_those_who_follow_it_and_those_who_wait() {
    let queue = roomy();
    let first = submit(&queue, PAIR).unwrap();
    let second = submit(&queue, SAME_PAIR).unwrap();
    let (leader, follower) = (queue.next_to_read().unwrap(), queue.next_to_read().unwrap());
    queue.promote(&leader, read(&leader)).unwrap();
    queue.promote(&follower, read(&follower)).unwrap();
    let planned = queue.next_to_plan().unwrap();
    let ended = queue.cancel(&planned.operation()).unwrap();
    assert_eq!(ended.state, State::Cancelled);
    assert!(planned.is_requested());
    for subscription in [&first, &second] {
        let failure = outcome(subscription).unwrap().unwrap_err();
        assert!(matches!(*failure, PlanFailure::CancelledByOperator));
    }
    queue.finish(&planned, Ok(delivery()));
    assert_eq!(state(&queue, &planned.operation()), Some(State::Cancelled), "an end is the end");
    assert!(!submit(&queue, PAIR).unwrap().joined);
}

#[test]
fn ending_a_follower_leaves_its_leader_to_the_others() {
    let queue = roomy();
    let first = submit(&queue, PAIR).unwrap();
    let second = submit(&queue, SAME_PAIR).unwrap();
    let (leader, follower) = (queue.next_to_read().unwrap(), queue.next_to_read().unwrap());
    queue.promote(&leader, read(&leader)).unwrap();
    queue.promote(&follower, read(&follower)).unwrap();
    queue.cancel(&follower.operation()).unwrap();
    assert!(outcome(&second).is_some() && outcome(&first).is_none());
    assert!(!leader.is_requested());
    drop(first);
    assert!(leader.is_requested(), "nobody is left");
}

#[test]
fn lookups_have_a_line_of_their_own_length_and_share_with_each_other_only() {
    let queue = Queue::new(QueueLimits { length_max: 1, bytes_max: 1 << 20, memory_bytes_max: u64::MAX }, None);
    let _plan = submit(&queue, "ring:4").unwrap();
    let lookup = |text| submit_as(&queue, text, Goal::Lookup, terms(Priority::Repair, false));
    let first = lookup("ring:4").unwrap();
    assert!(!first.joined && lookup("ring:4").unwrap().joined);
    assert!(matches!(lookup("ring:5"), Err(PlanFailure::QueueFull { .. })));
    let job = queue.next_to_read().unwrap();
    assert_eq!((job.goal, queue.waiting()), (Goal::Lookup, 1));
    queue.finish(&job, Err(Arc::new(PlanFailure::NotCached)));
    assert!(lookup("ring:5").is_ok());
    assert!(queue.operation(&job.operation()).is_none(), "a lookup is no operation");
}

#[test]
fn the_history_is_bounded_and_forgets_the_oldest() {
    let queue = roomy();
    let names: Vec<String> = (0..history::LENGTH_MAX + 10)
        .map(|_| {
            let held = submit_as(&queue, "ring:4", Goal::Plan, terms(Priority::Interactive, true)).unwrap();
            queue.finish(&queue.next_to_read().unwrap(), Ok(delivery()));
            held.job().operation()
        })
        .collect();
    assert_eq!(queue.operations().len(), history::LENGTH_MAX);
    assert!(queue.operation(&names[9]).is_none() && queue.operation(&names[10]).is_some());
    assert!(queue.operation("operations/0000000000000000-1000").is_none(), "the digits must agree, too");
}

#[test]
fn counts_are_those_of_unfinished_jobs() {
    let queue = roomy();
    let _held = [
        submit(&queue, "ring:4").unwrap(),
        submit(&queue, "ring:5").unwrap(),
        submit_as(&queue, "ring:6", Goal::Plan, terms(Priority::Repair, false)).unwrap(),
    ];
    let repair = queue.next_to_read().unwrap();
    let counts = queue.counts();
    assert_eq!((counts.waiting, counts.running, queue.searches()), (2, 1, 0));
    assert_eq!(counts.priorities[0], (Priority::Repair, 0, 1));
    assert_eq!(counts.priorities[2], (Priority::Interactive, 2, 0));
    assert_eq!(counts.jobs.iter().map(|job| expression(job)).collect::<Vec<_>>(), ["ring:6", "ring:4", "ring:5"]);
    queue.finish(&repair, Ok(delivery()));
    assert_eq!(queue.counts().running, 0);
}

#[tokio::test(start_paused = true)]
async fn the_queue_is_idle_when_the_last_job_has_ended() {
    let queue = roomy();
    queue.idle().await;
    drop(submit_as(&queue, "ring:4", Goal::Plan, terms(Priority::Prefetch, true)).unwrap());
    let waited = time::timeout(Duration::from_secs(3600), queue.idle()).await;
    assert!(waited.is_err(), "a detached job is unfinished");
    queue.finish(&queue.next_to_read().unwrap(), Ok(delivery()));
    queue.idle().await;
    drop(submit(&queue, "ring:4").unwrap());
    queue.idle().await;
}

/// Any sequence of what callers, workers and operators do leaves the books in order. Deterministic: the seed is all.
#[test]
fn whatever_happens_the_books_are_in_order() {
    for seed in seeds(60) {
        let queue = Queue::new(QueueLimits { length_max: 6, bytes_max: 4000, memory_bytes_max: u64::MAX }, None);
        let texts = [PAIR, SAME_PAIR, "ring:3", "ring:4", "ring:5", "nonsense"];
        let mut random = Random(seed);
        let mut subscriptions = Vec::new();
        let (mut reading, mut planning) = (Vec::new(), Vec::new());
        for _ in 0..300 {
            match random.below(8) {
                0 | 1 => {
                    let (text, priority) = (texts[random.below(6)], Priority::ALL[random.below(4)]);
                    let goal = if random.below(4) == 0 { Goal::Lookup } else { Goal::Plan };
                    let detached = goal == Goal::Plan && random.below(3) == 0;
                    subscriptions.extend(submit_as(&queue, text, goal, terms(priority, detached)));
                }
                2 if !subscriptions.is_empty() => {
                    subscriptions.swap_remove(random.below(subscriptions.len()));
                }
                3 if !queue.shared.lines.lock().reading.is_empty() => reading.push(queue.next_to_read().unwrap()),
                4 if !queue.shared.lines.lock().planning.is_empty() => planning.push(queue.next_to_plan().unwrap()),
                5 if !reading.is_empty() => {
                    let job: Arc<Job> = reading.swap_remove(random.below(reading.len()));
                    match (job.goal, random.below(3)) {
                        (Goal::Plan, 1 | 2) if job.order != order("nonsense") => {
                            if let Err(failure) = queue.promote(&job, read(&job)) {
                                queue.finish(&job, Err(Arc::new(failure)));
                            }
                        }
                        _ => queue.finish(&job, Ok(delivery())),
                    }
                }
                6 if !planning.is_empty() => {
                    let job = planning.swap_remove(random.below(planning.len()));
                    // A worker that crashed, was stopped, or made it.
                    let failure = PlanFailure::Panicked { request: job.key };
                    let ends = [Ok(delivery()), Err(Arc::new(failure)), Err(Arc::new(PlanFailure::Stopped))];
                    queue.finish(&job, ends[random.below(3)].clone());
                }
                7 if random.below(4) == 0 => {
                    let names: Vec<String> = queue.operations().into_values().map(|found| found.name).collect();
                    if !names.is_empty() {
                        queue.cancel(&names[random.below(names.len())]).unwrap();
                    }
                }
                _ => {}
            }
            check_books(&queue, seed);
        }
        queue.abort();
        drop(subscriptions);
        let lines = queue.shared.lines.lock();
        assert_eq!((lines.waiting, lines.lookups, lines.held_bytes, lines.live.len()), (0, 0, 0, 0), "seed {seed}");
        assert!(lines.by_request.is_empty() && lines.by_plan.is_empty(), "seed {seed}");
    }
}

#[track_caller]
fn check_books(queue: &Queue, seed: u64) {
    let lines = queue.shared.lines.lock();
    let unfinished: Vec<_> = lines.by_request.values().collect();
    let plans = || unfinished.iter().filter(|job| job.goal == Goal::Plan);
    assert!(unfinished.iter().all(|job| !job.ties.lock().phase.is_end()), "seed {seed}");
    assert_eq!(plans().count(), lines.live.len(), "seed {seed}");
    assert_eq!(plans().filter(|job| job.ties.lock().phase.waits()).count(), lines.waiting, "seed {seed}");
    assert_eq!(unfinished.len() - plans().count(), lines.lookups, "seed {seed}");
    let held: usize = unfinished.iter().map(|job| job.ties.lock().held_bytes).sum();
    assert_eq!(held, lines.held_bytes, "seed {seed}");
    for job in unfinished {
        let ties = job.ties.lock();
        assert!(ties.waiters > 0 || ties.detached, "seed {seed}: somebody wants it");
        assert_eq!(ties.leader.is_some(), ties.phase == Phase::Following, "seed {seed}");
    }
}

#[test]
fn a_job_that_no_call_waits_for_is_planned_for_a_limited_time() {
    let queue = Queue::new(LIMITS, None);
    let detached = submit_as(&queue, "ring:3", Goal::Plan, terms(Priority::Interactive, true)).unwrap();
    let waited_for = submit_as(&queue, "ring:4", Goal::Plan, terms(Priority::Interactive, true)).unwrap();
    let mut begun = Vec::new();
    for _ in 0..2 {
        let job = queue.next_to_read().unwrap();
        queue.promote(&job, read(&job)).unwrap();
        begun.push(queue.next_to_plan().unwrap());
    }
    let job = Arc::clone(detached.job());
    drop(detached);
    assert!(queue.end_overlong(Duration::from_secs(60)).is_empty());
    assert_eq!(queue.end_overlong(Duration::ZERO), [job.operation()]);
    assert!(job.is_requested(), "its worker hears of it");
    assert!(matches!(job.state(), JobState::Done(Err(failure)) if matches!(*failure, PlanFailure::RunLimit { .. })));
    assert!(!waited_for.job().is_requested());
    begun.iter().for_each(|job| queue.vacate(job, Duration::ZERO));
}
