use std::num::{NonZeroU32, NonZeroU64};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use canopy_import::FileKind;
use canopy_plan::{Format, Instances, Profile, Target};
use canopy_planner::{
    Group, JointRequest as JointOrder, JointTask, Making, Request as Order, RequestKey, TopologyInput,
};
use canopy_schedule::{AllreduceForm, CollectiveKind};
use canopy_synth::{Never, RootPolicy, Stop as _, SumOptions, Tolerance, TreeLimits};
use canopy_topology::{Attributes, DocumentFormat, DraftNode, NodeKind, Slot, TopologyDraft, TopologyLimits, Transit};
use canopy_wire::reason_of;
use canopy_wire::{Priority, StoredPlan};

use super::*;
use crate::clock;
use crate::jobs::job::{Cache, Delivery, Goal, Outcome, Read, State, Terms, Timings, Worker};
use crate::jobs::pipeline::Pipeline;
use crate::jobs::planner::Planner as _;
use crate::jobs::queue::{Queue, QueueLimits, Subscription};
use crate::store::{Gated, MemoryStore};

mod crashes;
mod orders;

const LIMITS: QueueLimits = QueueLimits { length_max: 8, bytes_max: 1 << 20, memory_bytes_max: u64::MAX };

fn order(expression: &str) -> Order {
    Order { size_bytes_max: 1 << 20, ..Order::on(expression, CollectiveKind::Allgather) }
}

impl Journal {
    /// What the thread of the journal does, at a moment of the test's choice.
    fn write_back(&self) {
        let ends = mem::take(&mut self.noted.lock().ends);
        let failed = self.write(ends);
        self.noted.lock().ends.extend(failed);
    }
}

/// The record of a job.
fn written(number: u64, expression: &str) -> Vec<u8> {
    encode_record(&encode_entry(number, &order(expression), Priority::Prefetch, 0, None))
}

fn unfinished(journal: &Journal) -> Vec<Unfinished> {
    let mut found = Vec::new();
    journal.for_each_unfinished(|unfinished| found.push(unfinished)).unwrap();
    found
}

/// What a server has of a journal, without its threads.
struct Process {
    journal: Arc<Journal>,
    queue: Queue,
}

impl Process {
    fn start(store: &Arc<dyn Store>, limits: QueueLimits) -> Self {
        let journal = Arc::new(Journal::new(Arc::clone(store)));
        let queue = Queue::new(limits, Some(Arc::clone(&journal)));
        journal.for_each_unfinished(|unfinished| drop(queue.resume(unfinished, None))).unwrap();
        Self { journal, queue }
    }

    fn submit(&self, expression: &str, detached: bool) -> Subscription {
        let order = order(expression);
        let terms = Terms { priority: Priority::Interactive, detached, worker: Worker::Planner };
        self.queue.submit(RequestKey::of(&order), order, Goal::Plan, terms).unwrap()
    }

    /// What a reader does with a job whose plan is not there.
    fn read(&self) -> Arc<Job> {
        let job = self.queue.next_to_read().unwrap();
        self.journal.begin_reading(&job);
        let prepared = Pipeline::new(TopologyLimits::STANDARD).prepare(&job.order, &Never).unwrap();
        self.journal.end_reading(&job);
        // A disk that fails costs durability, not the job.
        let _written = self.journal.enter(&job);
        self.queue
            .promote(&job, Read { prepared, schedule: None, queue_ms: 0.0, canonical_ms: 0.0, queued: clock::now() })
            .unwrap();
        job
    }

    /// What a planning worker does first.
    fn begin(&self) -> Arc<Job> {
        let job = self.queue.next_to_plan().unwrap();
        self.journal.start(&job);
        job
    }

    fn state(&self, name: &str) -> Option<State> {
        Some(self.queue.operation(name)?.describe().state)
    }
}

fn delivery() -> Outcome {
    let mut plan = StoredPlan::default();
    plan.plan.name = "plans/x".to_owned();
    Ok(Delivery {
        plan: Arc::new(plan),
        cache: Cache::Miss,
        timings: Timings::default(),
        warnings: Vec::new(),
        puncture: None,
    })
}

/// The summary of a job whose request is not this test's business.
fn progress(starts: u32) -> Vec<u8> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let mut request = [0; 32];
    request[..8].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    encode_progress(starts, &RequestKey::from_bytes(request))
}

fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::default())
}

#[test]
fn what_kills_the_server_twice_while_it_is_read_is_abandoned() {
    // Whichever comes first: the reading, or the record that its caller waits for.
    for reads_first in [false, true] {
        let disk = memory();
        let process = Process::start(&disk, LIMITS);
        let job = Arc::clone(process.submit("ring:3", true).job());
        if reads_first {
            process.journal.begin_reading(&process.queue.next_to_read().unwrap());
            process.queue.write_down(&job).unwrap();
        } else {
            process.queue.write_down(&job).unwrap();
            process.journal.begin_reading(&process.queue.next_to_read().unwrap());
        }
        let name = job.operation();
        let process = Process::start(&disk, LIMITS);
        assert_eq!(process.state(&name), Some(State::Queued));
        process.journal.begin_reading(&process.queue.next_to_read().unwrap());
        let process = Process::start(&disk, LIMITS);
        assert_eq!(process.state(&name), Some(State::Failed), "it killed two servers");
    }
}

#[test]
fn what_was_read_well_is_not_held_against_a_job_that_waits_while_others_kill_the_server() {
    let disk = memory();
    let mut process = Process::start(&disk, LIMITS);
    let job = Arc::clone(process.submit("ring:3", true).job());
    process.queue.write_down(&job).unwrap();
    for _ in 0..4 {
        process.read();
        process.journal.write_back();
        process = Process::start(&disk, LIMITS);
        assert_eq!(process.state(&job.operation()), Some(State::Queued));
    }
}

#[test]
fn a_job_that_cannot_be_written_down_is_not_left_alone_and_does_not_turn_up_later() {
    let disk = memory();
    let is_sound = Arc::new(AtomicBool::new(false));
    let sound = Arc::clone(&is_sound);
    let process = Process::start(&Gated::over(&disk, move |_| sound.load(Ordering::Relaxed)), LIMITS);
    let subscription = process.submit("ring:3", true);
    let job = Arc::clone(subscription.job());
    assert!(process.queue.write_down(&job).is_err());
    drop(subscription);
    assert!(job.is_requested(), "nobody waits for it, and nobody was told that it goes on");
    is_sound.store(true, Ordering::Relaxed);
    process.journal.write_back();
    assert!(unfinished(&Journal::new(disk)).is_empty());
}

#[test]
fn a_damaged_entry_is_put_aside_and_the_others_are_taken_up() {
    let store = memory();
    let record = |number| written(number, "ring:4");
    store.put(&PlanKey::numbered(1), b"no record", &progress(0)).unwrap();
    store.put(&PlanKey::numbered(2), &record(2), b"no summary").unwrap();
    store.put(&PlanKey::numbered(3), &record(2), &progress(0)).unwrap();
    store.put(&PlanKey::numbered(4), &encode_record(b"no entry"), &[]).unwrap();
    store.put(&PlanKey::numbered(5), &record(5), &progress(1)).unwrap();
    let found = unfinished(&Journal::new(Arc::clone(&store)));
    let numbers: Vec<_> = found.iter().map(|unfinished| (unfinished.entry.number, unfinished.starts)).collect();
    assert_eq!(numbers, [(2, 0), (5, 1)]);
    assert_eq!(store.quarantined_count().unwrap(), 3);
}

#[test]
fn what_waits_and_what_runs_is_taken_up_under_its_old_name() {
    let store = memory();
    let first = Process::start(&store, LIMITS);
    let held: Vec<_> = ["ring:3", "ring:4", "ring:5"].map(|text| first.submit(text, false)).into_iter().collect();
    let names: Vec<String> = held.iter().map(|one| one.job().operation()).collect();
    let created = first.queue.operation(&names[0]).unwrap().describe().created_ms;
    first.read();
    first.read();
    let running = first.begin();
    assert_eq!(running.operation(), names[0]);
    // The process dies here: nothing is told, nothing is written.
    let second = Process::start(&store, LIMITS);
    assert_eq!(second.state(&names[0]), Some(State::Queued));
    assert_eq!(second.state(&names[1]), Some(State::Queued));
    assert_eq!(second.state(&names[2]), None, "nobody had read it");
    let operation = second.queue.operation(&names[0]).unwrap().describe();
    assert!(operation.detached && operation.waiters == 0 && operation.created_ms == created);
    assert!(second.submit("ring:4", false).joined, "whoever asks again finds it");
    assert!(second.submit("ring:6", true).job().number > running.number, "no two jobs have one name");
}

#[test]
fn what_has_ended_is_not_taken_up() {
    let store = memory();
    let process = Process::start(&store, LIMITS);
    let held: Vec<_> = ["ring:3", "ring:4", "ring:5", "ring:6"].map(|text| process.submit(text, false)).into();
    let jobs: Vec<_> = held.iter().map(|_| process.read()).collect();
    let made = process.begin();
    process.queue.finish(&made, delivery());
    process.queue.finish(&jobs[1], Err(Arc::new(PlanFailure::Panicked { request: jobs[1].key })));
    process.queue.cancel(&jobs[2].operation()).unwrap();
    assert_eq!(unfinished(&process.journal).len(), 4, "ends are written later");
    drop(held);
    process.journal.write_back();
    assert!(unfinished(&process.journal).is_empty());
    assert!(store.summaries(None, 9).unwrap().is_empty());
}

#[test]
fn a_drain_keeps_jobs_and_is_no_fault_of_theirs() {
    let store = memory();
    for _ in 0..5 {
        let process = Process::start(&store, LIMITS);
        if process.queue.waiting() == 0 {
            drop((process.submit("ring:3", true), process.submit("ring:4", true)));
        }
        process.read();
        process.read();
        let running = process.begin();
        process.queue.abort();
        process.queue.finish(&running, Err(Arc::new(PlanFailure::Stopped)));
        process.journal.write_back();
        let starts: Vec<_> = unfinished(&process.journal).iter().map(|unfinished| unfinished.starts).collect();
        assert_eq!(starts, [0, 0]);
    }
}

#[test]
fn a_drain_keeps_what_was_promised_even_if_nobody_has_read_it() {
    let store = memory();
    let process = Process::start(&store, LIMITS);
    let promised = process.submit("ring:3", true).job().operation();
    let asked = process.submit("ring:4", false);
    let read = process.queue.next_to_read().unwrap();
    assert_eq!(read.operation(), promised);
    let unread = process.submit("ring:5", true).job().operation();
    process.queue.abort();
    process.journal.enter(&read).unwrap();
    process.journal.write_back();
    let successor = Process::start(&store, LIMITS);
    for name in [&promised, &unread] {
        assert_eq!(successor.state(name), Some(State::Queued));
    }
    assert_eq!(successor.state(&asked.job().operation()), None, "whoever asked was told to ask again");
}

#[test]
fn a_job_that_ends_its_process_twice_is_dropped_and_shown_as_failed() {
    let store = memory();
    let mut name = String::new();
    for round in 0..STARTS_MAX {
        let process = Process::start(&store, LIMITS);
        if round == 0 {
            drop(process.submit("ring:3", true));
        }
        name = process.read().operation();
        process.begin();
    }
    let process = Process::start(&store, LIMITS);
    assert_eq!(process.queue.waiting(), 0);
    let operation = process.queue.operation(&name).unwrap().describe();
    let Some(Err(failure)) = operation.result else { panic!("{operation:?}") };
    let error = crate::rpc::shared::status::to_operation_error(&failure);
    assert_eq!(reason_of(&error), "JOB_ABANDONED");
    assert!(error.message.contains("2 times"), "{}", error.message);
    process.journal.write_back();
    assert!(unfinished(&process.journal).is_empty());
    assert!(!process.submit("ring:3", true).joined, "asking again begins anew");
}

#[test]
fn no_more_are_taken_up_than_may_wait() {
    let store = memory();
    for number in 1..=5 {
        let record = written(number, &format!("ring:{}", number + 2));
        store.put(&PlanKey::numbered(number), &record, &progress(0)).unwrap();
    }
    let process = Process::start(&store, QueueLimits { length_max: 3, ..LIMITS });
    assert_eq!(process.queue.waiting(), 3);
    process.journal.write_back();
    assert_eq!(unfinished(&process.journal).iter().map(|found| found.entry.number).collect::<Vec<_>>(), [1, 2, 3]);
}

/// The end of the first had not been written down when the second was asked for.
#[test]
fn of_two_entries_of_one_request_the_later_one_is_unfinished() {
    let store = memory();
    let first = Process::start(&store, LIMITS);
    let earlier = first.submit("ring:4", true).job().operation();
    first.read();
    first.queue.finish(&first.begin(), delivery());
    let later = first.submit("ring:4", true).job().operation();
    first.read();
    let second = Process::start(&store, LIMITS);
    assert_eq!((second.state(&earlier), second.state(&later)), (None, Some(State::Queued)));
    second.journal.write_back();
    assert_eq!(unfinished(&second.journal).len(), 1);
}

#[test]
fn two_entries_of_one_request_become_one_job_whatever_their_summaries_say() {
    let store = memory();
    for number in [1, 2] {
        let record = written(number, "ring:4");
        store.put(&PlanKey::numbered(number), &record, &progress(0)).unwrap();
    }
    let process = Process::start(&store, LIMITS);
    assert_eq!(process.queue.waiting(), 1);
    let job = process.read();
    process.queue.finish(&process.begin(), delivery());
    process.journal.write_back();
    assert!(unfinished(&process.journal).is_empty());
    assert_eq!(process.state(&job.operation()), Some(State::Succeeded));
}

#[test]
fn a_job_that_ends_while_it_is_written_down_leaves_nothing() {
    type Act = Box<dyn FnOnce() + Send>;
    for begun in [false, true] {
        let disk = memory();
        let before_the_next_write: Arc<Mutex<Option<Act>>> = Arc::default();
        let hasty = Arc::clone(&before_the_next_write);
        let gate = move |_| {
            let act = hasty.lock().take();
            act.into_iter().for_each(|act| act());
            true
        };
        let process = Process::start(&Gated::over(&disk, gate), LIMITS);
        let held = process.submit("ring:4", false);
        let (queue, journal, name) = (process.queue.clone(), Arc::clone(&process.journal), held.job().operation());
        let end = Box::new(move || {
            queue.cancel(&name).unwrap();
            journal.write_back();
        });
        if begun {
            process.read();
        }
        *before_the_next_write.lock() = Some(end);
        if begun {
            process.begin()
        } else {
            process.read()
        };
        process.journal.write_back();
        assert!(disk.keys(None, 9).unwrap().is_empty() && disk.summaries(None, 9).unwrap().is_empty(), "{begun}");
    }
}

/// A drain sets the jobs aside that wait for a worker and that nobody waits for; the next process takes them up.
#[test]
fn jobs_that_nobody_waits_for_are_left_to_the_next_process_before_they_begin() {
    let store = memory();
    let process = Process::start(&store, LIMITS);
    drop(process.submit("ring:4", true));
    let running = process.read();
    process.begin();
    let caller = process.submit("ring:5", true);
    process.read();
    drop(process.submit("ring:6", true));
    let waiting = process.read();
    drop(process.submit("ring:7", true));
    let unread = process.queue.operations().into_values().next_back().unwrap().name;
    process.queue.close();
    process.queue.set_aside();
    let ended = |name: &str| process.queue.operation(name).unwrap().describe().result.is_some();
    let names = [running.operation(), caller.job().operation(), waiting.operation(), unread.clone()];
    assert_eq!(names.each_ref().map(|name| ended(name)), [false, false, true, true]);
    process.queue.finish(&running, delivery());
    process.queue.finish(&process.begin(), delivery());
    assert!(ended(&names[1]), "it was next");
    process.journal.write_back();
    let found: Vec<(u64, u32)> = unfinished(&process.journal)
        .into_iter()
        .map(|unfinished| (unfinished.entry.number, unfinished.starts))
        .collect();
    assert_eq!(found, [(3, 0), (4, 0)]);
    let successor = Process::start(&store, LIMITS);
    assert_eq!(successor.state(&unread), Some(State::Queued));
}

/// Without a journal a job that is set aside would be lost.
#[test]
fn without_a_journal_nothing_is_set_aside() {
    let queue = Queue::new(LIMITS, None);
    let order = order("ring:4");
    let terms = Terms { priority: Priority::Prefetch, detached: true, worker: Worker::Planner };
    drop(queue.submit(RequestKey::of(&order), order, Goal::Plan, terms).unwrap());
    queue.close();
    queue.set_aside();
    assert_eq!(queue.waiting(), 1);
}
