//! Memory: what waits and what runs together stays within it, and nothing waits for ever.

use super::*;

/// A queue for plans of so many bytes together.
fn queue(memory_bytes_max: u64) -> Queue {
    Queue::new(QueueLimits { length_max: 64, bytes_max: 1 << 20, memory_bytes_max }, None)
}

/// Puts a job into the second line whose plan takes so much.
fn line_up(queue: &Queue, text: &str, priority: Priority, memory_bytes: u64) -> (Subscription, Arc<Job>) {
    let subscription = submit_as(queue, text, Goal::Plan, Terms { priority, ..TERMS }).unwrap();
    let job = queue.next_to_read().unwrap();
    let mut read = read(&job);
    read.prepared.memory_bytes = memory_bytes;
    queue.promote(&job, read).unwrap();
    (subscription, job)
}

/// Whether a planning worker would get a job now.
fn may_begin(queue: &Queue) -> bool {
    let lines = queue.shared.lines.lock();
    let first = lines.planning.first(&lines.sought, &lines.turns, None);
    first.is_some_and(|job| queue.shared.limits.have_room(lines.planning_bytes, &job))
}

#[test]
fn jobs_run_together_only_as_far_as_there_is_memory() {
    let queue = queue(100);
    let _held = ["ring:3", "ring:4", "ring:5"].map(|text| line_up(&queue, text, Priority::Interactive, 50));
    let (first, second) = (queue.next_to_plan().unwrap(), queue.next_to_plan().unwrap());
    assert!(!may_begin(&queue));
    // A job that has ended may still have a worker whose memory is not free.
    queue.finish(&first, Err(Arc::new(PlanFailure::Stopped)));
    assert!(!may_begin(&queue));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| queue.next_to_plan().unwrap());
        queue.vacate(&first, Duration::ZERO);
        assert_eq!(waiting.join().unwrap().memory_bytes(), 50);
    });
    queue.vacate(&second, Duration::ZERO);
}

#[test]
fn small_jobs_do_not_pass_a_large_one() {
    let queue = queue(100);
    let _small = line_up(&queue, "ring:3", Priority::Interactive, 10);
    let running = queue.next_to_plan().unwrap();
    let large = line_up(&queue, "ring:4", Priority::Interactive, 100);
    let _others: Vec<_> =
        (5..30).map(|ranks| line_up(&queue, &format!("ring:{ranks}"), Priority::Interactive, 10)).collect();
    assert!(!may_begin(&queue), "others would fit beside the one that runs");
    queue.vacate(&running, Duration::ZERO);
    assert!(Arc::ptr_eq(&queue.next_to_plan().unwrap(), &large.1));
    assert!(!may_begin(&queue));
    queue.vacate(&large.1, Duration::ZERO);
    assert_eq!(queue.next_to_plan().unwrap().memory_bytes(), 10);
}

/// A worker that waits for memory is told when another job comes first, or the first one goes.
#[test]
fn a_waiting_worker_hears_of_every_change_of_the_line() {
    for leave in [true, false] {
        let queue = queue(100);
        let _running = line_up(&queue, "ring:3", Priority::Interactive, 60);
        queue.next_to_plan().unwrap();
        let (large, _) = line_up(&queue, "ring:4", Priority::Interactive, 60);
        let (small, job) = line_up(&queue, "ring:5", Priority::Interactive, 40);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| queue.next_to_plan().unwrap());
            if leave {
                drop(large);
            } else {
                submit_as(&queue, "ring:5", Goal::Plan, Terms { priority: Priority::Repair, detached: true, ..TERMS })
                    .unwrap();
            }
            assert!(Arc::ptr_eq(&waiting.join().unwrap(), &job), "{leave}");
        });
        drop(small);
    }
}

#[test]
fn a_repair_may_take_an_eighth_more() {
    let queue = queue(100);
    let _search = line_up(&queue, "ring:3", Priority::Interactive, 100);
    let search = queue.next_to_plan().unwrap();
    let (large, _) = line_up(&queue, "ring:4", Priority::Repair, 13);
    assert!(!may_begin(&queue));
    drop(large);
    let _other = line_up(&queue, "ring:5", Priority::JobStart, 1);
    assert!(!may_begin(&queue));
    let (_small, repair) = line_up(&queue, "ring:6", Priority::Repair, 12);
    assert!(Arc::ptr_eq(&queue.next_beside().unwrap(), &repair));
    assert!(!may_begin(&queue));
    queue.vacate(&repair, Duration::ZERO);
    queue.vacate(&search, Duration::ZERO);
    assert!(may_begin(&queue));
}

#[test]
fn what_never_fits_is_refused() {
    let queue = queue(100);
    assert!(queue.check_memory(100).is_ok());
    assert!(matches!(queue.check_memory(101), Err(PlanFailure::JobMemory { needed: 101, limit: 100 })));
}

/// A dozen bytes may ask for a million links.
#[test]
fn networks_that_have_been_read_count_against_the_budget_of_what_waits() {
    let queue = Queue::new(QueueLimits { bytes_max: 40_000, ..LIMITS }, None);
    let alone = submit(&queue, "complete:50").unwrap();
    let job = queue.next_to_read().unwrap();
    let network = read(&job);
    let weight = network.prepared.weight_bytes();
    assert!(weight > 50 * 49 * 24, "{weight}");
    queue.promote(&job, network).expect("one that is alone is within limits of its own");
    assert_eq!(queue.shared.lines.lock().held_bytes, weight + "complete:50".len());
    assert!(matches!(submit(&queue, "ring:4"), Err(PlanFailure::QueueBudget { .. })));
    drop(alone);
    let _held = (submit(&queue, "complete:29").unwrap(), submit(&queue, "complete:30").unwrap());
    let (first, second) = (queue.next_to_read().unwrap(), queue.next_to_read().unwrap());
    queue.promote(&first, read(&first)).unwrap();
    let refused = queue.promote(&second, read(&second)).unwrap_err();
    assert!(matches!(refused, PlanFailure::QueueBudget { limit: 40_000, .. }), "{refused}");
    queue.finish(&second, Err(Arc::new(refused)));
    queue.cancel(&first.operation()).unwrap();
    assert_eq!(queue.shared.lines.lock().held_bytes, 0);
}
