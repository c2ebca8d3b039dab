mod slices;

use std::fs;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

use canopy_access::Quotas;
use canopy_planner::{Note, PlanError, Request as Order, RequestKey, ScheduleKey, TopologyInput, read_topology};
use canopy_schedule::CollectiveKind;
use canopy_synth::{Never, SynthesisError};
use canopy_topology::{Topology, TopologyLimits, generate};
use canopy_wire::Priority;
use serde_json::Value;
use tempfile::TempDir;

use super::*;
use crate::jobs::computing::Computing;
use crate::jobs::job::{JobState, Phase, Terms, Worker};
use crate::jobs::pipeline::Pipeline;
use crate::jobs::planner::{Prepared, Produced, Watch};
use crate::jobs::queue::{QueueLimits, Subscription};
use crate::jobs::refusals::RefusalOptions;
use crate::jobs::slices::Questions;
use crate::store::{MemoryStore, Store as _};

/// Plans like the real one, but does something else first.
pub(in crate::jobs) struct Staged<F>(pub(in crate::jobs) Pipeline, pub(in crate::jobs) F);

impl<F: Fn(&dyn Stop) + Send + Sync + 'static> Planner for Staged<F> {
    fn prepare(&self, order: &Order, stop: &dyn Stop) -> Result<Prepared, PlanFailure> {
        self.0.prepare(order, stop)
    }

    fn recall(
        &self,
        order: &Order,
        prepared: &Prepared,
        stop: &dyn Stop,
        watch: &dyn Watch,
    ) -> Result<Recall, PlanFailure> {
        self.0.recall(order, prepared, stop, watch)
    }

    fn is_known(&self, schedule: &ScheduleKey) -> bool {
        self.0.is_known(schedule)
    }

    fn produce(
        &self,
        order: &Order,
        prepared: &Prepared,
        stop: &dyn Stop,
        watch: &dyn Watch,
    ) -> Result<Produced, PlanFailure> {
        (self.1)(stop);
        self.0.produce(order, prepared, stop, watch)
    }
}

struct Shop {
    jobs: Arc<Jobs>,
    store: Arc<MemoryStore>,
    workers: Option<Workers>,
    folder: TempDir,
}

impl Shop {
    fn open(before_planning: impl Fn(&dyn Stop) + Send + Sync + 'static) -> Self {
        Self::with_planners(1, before_planning)
    }

    fn with_planners(planner_count: usize, before_planning: impl Fn(&dyn Stop) + Send + Sync + 'static) -> Self {
        Self::with(planner_count, Staged(Pipeline::new(TopologyLimits::STANDARD), before_planning))
    }

    fn with(planner_count: usize, planner: impl Planner) -> Self {
        let (store, folder) = (Arc::new(MemoryStore::default()), tempfile::tempdir().unwrap());
        let reproducers = Reproducers::of(folder.path(), TopologyLimits::STANDARD);
        let queue = Queue::new(QueueLimits { length_max: 16, bytes_max: 1 << 20, memory_bytes_max: u64::MAX }, None);
        let jobs = Arc::new(Jobs {
            computing: Computing::new(queue.clone(), false),
            queue,
            planner: Arc::new(planner),
            records: Records::new(Arc::clone(&store) as Arc<_>),
            refusals: Refusals::new(RefusalOptions::STANDARD),
            journal: None,
            table: None,
            computes_alone: false,
            steps_back: false,
            bill_of: Box::new(|identity, tenant| Accounts::default().of(identity, tenant, &Quotas::default())),
            accounts: Accounts::default(),
            reproducers: Some(Arc::new(reproducers)),
            metrics: Metrics::off(),
            synthesis_count: AtomicU64::new(0),
            large_recalls: Mutex::new(()),
            questions: Questions::default(),
        });
        let workers = Some(Workers::start(&jobs, planner_count).unwrap());
        Self { jobs, store, workers, folder }
    }

    fn submit(&self, expression: &str) -> Subscription {
        let order = Order { size_bytes_max: 1 << 20, ..Order::on(expression, CollectiveKind::Allgather) };
        let terms = Terms { priority: Priority::Interactive, detached: false, worker: Worker::Planner };
        self.jobs.queue.submit(RequestKey::of(&order), order, Goal::Plan, terms).unwrap()
    }

    fn wait(&self, expression: &str) -> Outcome {
        end(self.submit(expression))
    }

    fn synthesis_count(&self) -> u64 {
        self.jobs.synthesis_count.load(Ordering::Relaxed)
    }
}

impl Shop {
    /// Ends it, and returns what it kept for a person: each report, and the topology beside it.
    fn reproducers(mut self) -> Vec<(Value, Topology)> {
        self.jobs.queue.abort();
        self.workers.take().unwrap().join();
        let Ok(entries) = fs::read_dir(self.folder.path().join("reproducers")) else { return Vec::new() };
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        let is_report = |path: &&PathBuf| !path.to_string_lossy().ends_with(".topology.json");
        let read = |path: &PathBuf| {
            let report: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
            let content = fs::read(path.with_file_name(report["topology"].as_str().unwrap())).unwrap().into();
            let source = TopologyInput::Document { kind: None, content };
            (report, read_topology(&source, &TopologyLimits::STANDARD, &Never).unwrap().0)
        };
        paths.iter().filter(is_report).map(read).collect()
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        self.jobs.queue.abort();
        self.workers.take().into_iter().for_each(Workers::join);
    }
}

/// Waits for the end of a job.
pub(in crate::jobs) fn end(mut subscription: Subscription) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let done = subscription.state.wait_for(|state| matches!(state, JobState::Done(_)));
        let state = tokio::time::timeout(Duration::from_secs(20), done).await.expect("the job ends").unwrap().clone();
        match state {
            JobState::Done(outcome) => outcome,
            JobState::Working(_) => unreachable!("waited for the end"),
        }
    })
}

#[test]
fn a_plan_is_made_once_and_then_comes_from_the_store() {
    let shop = Shop::open(|_| {});
    let first = shop.wait("ring:4").unwrap();
    let second = shop.wait("ring:4").unwrap();
    assert_eq!((first.cache, second.cache), (Cache::Miss, Cache::Hit));
    assert_eq!(first.plan, second.plan);
    assert_eq!(shop.synthesis_count(), 1);
}

#[test]
fn a_damaged_record_is_made_again_and_never_served() {
    let shop = Shop::open(|_| {});
    let first = shop.wait("ring:4").unwrap();
    let key = PlanKey::from_bytes(hex(&first.plan.plan.content_key));
    let mut record = shop.store.get(&key).unwrap().unwrap();
    *record.last_mut().unwrap() ^= 1;
    shop.store.put(&key, &record, &[]).unwrap();
    let second = shop.wait("ring:4").unwrap();
    // Its schedule is known, so nothing has to be searched for.
    assert_eq!((second.cache, shop.synthesis_count()), (Cache::Hit, 1));
    assert_eq!(second.plan.plan.artifacts, first.plan.plan.artifacts);
    assert_eq!((shop.store.quarantined_count().unwrap(), shop.jobs.records.corruption_count()), (1, 1));
    assert_eq!(shop.wait("ring:4").unwrap().cache, Cache::Hit);
}

#[test]
fn networks_of_one_shape_share_a_search() {
    let (begun, has_begun) = mpsc::channel();
    let (open, is_open) = mpsc::channel();
    let is_open = Mutex::new(is_open);
    let shop = Shop::with_planners(3, move |_| {
        begun.send(()).unwrap();
        is_open.lock().recv().unwrap();
    });
    let first = shop.submit("torus:3x4");
    has_begun.recv().unwrap();
    let second = shop.submit("torus:4x3");
    while second.job().ties.lock().phase != Phase::Queued {
        thread::yield_now();
    }
    // Another shape does not wait, though a planner has nothing else to do than the second.
    let other = shop.submit("ring:5");
    has_begun.recv().unwrap();
    assert!(has_begun.recv_timeout(Duration::from_millis(50)).is_err(), "one search is enough");
    (0..3).for_each(|_| open.send(()).unwrap());
    assert_eq!(end(other).unwrap().cache, Cache::Miss);
    let (first, second) = (end(first).unwrap(), end(second).unwrap());
    assert_eq!((first.cache, second.cache, shop.synthesis_count()), (Cache::Miss, Cache::Hit, 2));
    assert_ne!(first.plan.plan.name, second.plan.plan.name);
    // From now on, nobody even waits for a planner.
    assert_eq!(shop.wait("torus:4x3").unwrap().cache, Cache::Hit);
}

fn hex(text: &str) -> [u8; 32] {
    std::array::from_fn(|position| u8::from_str_radix(&text[2 * position..2 * position + 2], 16).unwrap())
}

#[test]
fn a_panic_fails_its_job_alone() {
    let shop = Shop::open(|_| {
        if thread::current().name() == Some("canopy-planner-0") {
            static FIRST: AtomicBool = AtomicBool::new(true);
            assert!(!FIRST.swap(false, Ordering::Relaxed), "as planned");
        }
    });
    assert!(matches!(shop.wait("ring:4"), Err(failure) if matches!(*failure, PlanFailure::Panicked { .. })));
    assert!(shop.wait("ring:4").is_ok());
}

#[test]
fn a_bad_topology_is_refused_by_the_reader() {
    let shop = Shop::open(|_| {});
    assert!(
        matches!(shop.wait("nonsense:4"), Err(failure) if matches!(*failure, PlanFailure::Planning(PlanError::Expression(_))))
    );
    assert_eq!(shop.synthesis_count(), 0);
}

#[test]
fn a_stored_plan_does_not_wait_behind_a_synthesis() {
    let (started, has_started) = mpsc::sync_channel(1);
    let count = AtomicU64::new(0);
    let shop = Shop::open(move |stop| {
        // The only planning thread is busy with the second job until its waiter leaves.
        if count.fetch_add(1, Ordering::Relaxed) == 1 {
            started.send(()).unwrap();
            while !stop.is_requested() {
                thread::yield_now();
            }
        }
    });
    shop.wait("ring:4").unwrap();
    let busy = shop.submit("ring:5");
    has_started.recv().unwrap();
    assert_eq!(shop.wait("ring:4").unwrap().cache, Cache::Hit);
    drop(busy);
    assert!(shop.wait("ring:6").is_ok(), "the last waiter's leaving freed the thread");
}

/// Refuses its own plans of rings, breaks on meshes, panics once, and makes others with a rival that it refuses.
struct Refusing(Pipeline);

impl Planner for Refusing {
    fn prepare(&self, order: &Order, stop: &dyn Stop) -> Result<Prepared, PlanFailure> {
        self.0.prepare(order, stop)
    }

    fn produce(
        &self,
        order: &Order,
        prepared: &Prepared,
        stop: &dyn Stop,
        watch: &dyn Watch,
    ) -> Result<Produced, PlanFailure> {
        let TopologyInput::Expression(expression) = &order.topology else { unreachable!("all are expressions") };
        if expression.starts_with("ring") {
            return Err(PlanError::Rejected { check: "load", problem: "too slow".to_owned() }.into());
        }
        if expression.starts_with("mesh") {
            return Err(PlanError::Synthesis(SynthesisError::Broken { what: "no way".to_owned() }).into());
        }
        assert_ne!(expression, "torus:2x4", "as planned");
        for _ in 0..2 {
            let rejection =
                Rejection { algorithm: "tacos", reason: "meaning", problem: "a rank is left out".to_owned() };
            watch.note(Note::Rejected(&rejection));
        }
        self.0.produce(order, prepared, stop, watch)
    }
}

#[test]
fn what_is_refused_is_kept_with_the_network_that_was_asked_for() {
    let shop = Shop::with(1, Refusing(Pipeline::new(TopologyLimits::STANDARD)));
    for (expression, is_made) in [("ring:5", false), ("mesh:2x3", false), ("torus:2x4", false), ("torus:3x3", true)] {
        for _ in 0..2 {
            assert_eq!(shop.wait(expression).is_ok(), is_made, "{expression}");
        }
    }
    let text = |report: &Value, field| report[field].as_str().unwrap().to_owned();
    let kept = shop.reproducers();
    let mut brief: Vec<_> = kept.iter().map(|(report, topology)| (text(report, "reason"), topology.clone())).collect();
    brief.sort_by(|left, right| left.0.cmp(&right.0));
    let network = |expression| generate(expression, &TopologyLimits::STANDARD).unwrap();
    let expected = [("broken", "mesh:2x3"), ("load", "ring:5"), ("meaning", "torus:3x3"), ("panic", "torus:2x4")];
    assert_eq!(brief, expected.map(|(reason, expression)| (reason.to_owned(), network(expression))));
    for (report, _) in kept {
        let whose = if report["reason"] == "meaning" { "tacos" } else { "auto" };
        assert_eq!(
            (text(&report, "algorithm"), text(&report["request"], "collective")),
            (whose.into(), "allgather".into())
        );
    }
}

#[test]
fn a_folder_that_cannot_be_written_harms_no_job() {
    let shop = Shop::with(1, Refusing(Pipeline::new(TopologyLimits::STANDARD)));
    fs::write(shop.folder.path().join("reproducers"), "a file").unwrap();
    assert!(shop.wait("torus:3x3").is_ok());
    assert!(matches!(shop.wait("ring:5"), Err(failure) if failure.failed_check() == Some("load")));
    let jobs = Arc::clone(&shop.jobs);
    assert!(shop.reproducers().is_empty());
    // Of two rivals that are alike the first is not there, so both count.
    assert_eq!(jobs.reproducers.as_ref().unwrap().dropped_count(), 3);
}
