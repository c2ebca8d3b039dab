//! Two servers on one database, each with its own queue and workers.

mod slices;

use std::sync::atomic::AtomicU64;
use std::sync::mpsc;

use canopy_access::Quotas;
use canopy_database::Who;
use canopy_planner::{Request as Order, RequestKey};
use canopy_prerequisites::{Commits, Postgres};
use canopy_schedule::CollectiveKind;
use canopy_synth::Stop;
use canopy_topology::TopologyLimits;
use canopy_wire::Priority;
use parking_lot::Mutex;
use tempfile::TempDir;

use super::*;
use crate::jobs::computing::Computing;
use crate::jobs::job::{Goal, State, Terms, Worker};
use crate::jobs::pipeline::Pipeline;
use crate::jobs::queue::{Queue, QueueLimits, Subscription};
use crate::jobs::refusals::{RefusalOptions, Refusals};
use crate::jobs::slices::Questions;
use crate::jobs::workers::Workers;
use crate::jobs::workers::tests::{Staged, end};
use crate::metrics::Metrics;
use crate::quota::Accounts;
use crate::store::shared::tests::Server;
use crate::store::{RecordOptions, Records, Space};

/// Is told whether to stop.
type Stage = Box<dyn Fn(&dyn Stop) + Send + Sync>;

/// A database, and what tells it from others at its server.
struct Place {
    postgres: &'static Postgres,
    address: String,
}

impl Place {
    fn new() -> Option<Self> {
        let postgres = Postgres::shared()?;
        Some(Self { postgres, address: postgres.database() })
    }

    fn query(&self, statement: &str) -> String {
        self.postgres.query(self.address.split(['/', '?']).nth(3).unwrap(), statement)
    }

    fn site(&self, planners: usize) -> Site {
        self.staged(planners, |_| {})
    }

    fn staged(&self, planners: usize, before_planning: impl Fn(&dyn Stop) + Send + Sync + 'static) -> Site {
        Site::new(&self.address, planners, Box::new(before_planning))
    }
}

/// One of the servers.
struct Site {
    jobs: Arc<Jobs>,
    workers: Option<Workers>,
    _server: Server,
    _folder: TempDir,
}

impl Site {
    fn new(address: &str, planners: usize, before_planning: Stage) -> Self {
        Self::of_class("class", address, planners, before_planning)
    }

    fn of_class(class: &str, address: &str, planners: usize, before_planning: Stage) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::new(folder.path(), address);
        let others = server.others();
        let lifetime = RefusalOptions::STANDARD.lifetime;
        let table =
            Arc::new(JobTable::join(&others, Who { class: class.to_owned(), ..Who::default() }, lifetime).unwrap());
        let limits = QueueLimits { length_max: 64, bytes_max: 1 << 20, memory_bytes_max: u64::MAX };
        let queue = Queue::beside(limits, Arc::clone(&table));
        let jobs = Arc::new(Jobs {
            computing: Computing::new(queue.clone(), false),
            queue,
            planner: Arc::new(Staged(Pipeline::new(TopologyLimits::STANDARD), before_planning)),
            records: Records::with_options(server.space(Space::Plans), RecordOptions::STANDARD),
            refusals: Refusals::new(RefusalOptions::STANDARD),
            journal: None,
            table: Some(table),
            computes_alone: false,
            steps_back: false,
            bill_of: Box::new(|identity, tenant| Accounts::default().of(identity, tenant, &Quotas::default())),
            accounts: Accounts::default(),
            reproducers: None,
            metrics: Metrics::off(),
            synthesis_count: AtomicU64::new(0),
            large_recalls: Mutex::new(()),
            questions: Questions::default(),
        });
        let workers = Some(Workers::start(&jobs, planners).unwrap());
        Self { jobs, workers, _server: server, _folder: folder }
    }

    fn submit(&self, expression: &str) -> Subscription {
        self.submit_with(expression, false)
    }

    fn submit_with(&self, expression: &str, detached: bool) -> Subscription {
        let order = Order { size_bytes_max: 1 << 20, ..Order::on(expression, CollectiveKind::Allgather) };
        let terms = Terms { priority: Priority::Interactive, detached, worker: Worker::Planner };
        self.jobs.queue.submit(RequestKey::of(&order), order, Goal::Plan, terms).unwrap()
    }

    fn synthesis_count(&self) -> u64 {
        self.jobs.synthesis_count.load(Ordering::Relaxed)
    }

    /// Ends it as a drain does.
    fn stop(&mut self) {
        self.jobs.queue.abort();
        self.workers.take().into_iter().for_each(Workers::join);
    }

    /// The operation of this name as this server knows it.
    fn operation(&self, name: &str) -> Option<crate::jobs::job::Operation> {
        match self.jobs.queue.operation(name) {
            Some(operation) => Some(operation.describe()),
            None => self.jobs.operation_elsewhere(name).unwrap(),
        }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Waits until something is so.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let until = clock::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(clock::now() < until, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A stage that is passed once something is sent, and says when somebody is before it; a stop request ends the wait.
fn gate() -> (impl Fn(&dyn Stop) + Send + Sync, mpsc::Receiver<()>, mpsc::Sender<()>) {
    let (says, said) = mpsc::channel();
    let (passes, passed) = mpsc::channel();
    let gate = Mutex::new((says, passed));
    let stage = move |stop: &dyn Stop| {
        let (says, passed) = &*gate.lock();
        let _heard = says.send(());
        while passed.try_recv().is_err() && !stop.is_requested() {
            thread::sleep(Duration::from_millis(2));
        }
    };
    (stage, said, passes)
}

const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn one_server_makes_what_callers_of_all_wait_for() {
    let Some(place) = Place::new() else { return };
    let (stage, begins, passes) = gate();
    let (front, worker) = (place.site(0), place.staged(1, stage));
    let asked = [front.submit("torus:3x3"), worker.submit("torus:3x3"), front.submit("dgx-a100:boxes=2")];
    begins.recv_timeout(PATIENCE).unwrap();
    // Who waits elsewhere sees it run.
    wait_until("it is seen to run", || {
        let states = [&asked[0], &asked[2]].map(|one| front.operation(&one.job().operation()).unwrap().state);
        states.contains(&State::Running)
    });
    for _ in 0..2 {
        passes.send(()).unwrap();
    }
    let [first, second, third] = asked.map(|one| end(one).unwrap());
    assert_eq!(first.plan, second.plan);
    assert_ne!(first.plan.plan.content_key, third.plan.plan.content_key);
    let mut caches = [first.cache, second.cache];
    caches.sort_by_key(|cache| *cache == Cache::Joined);
    assert_eq!((caches, third.cache), ([Cache::Miss, Cache::Joined], Cache::Miss));
    assert_eq!((front.synthesis_count(), worker.synthesis_count()), (0, 2));
    // From now on it is known at both.
    assert_eq!(end(front.submit("torus:3x3")).unwrap().cache, Cache::Hit);
}

#[test]
fn a_failure_is_told_in_full_elsewhere_and_not_tried_again() {
    let Some(place) = Place::new() else { return };
    let (front, worker) = (place.site(0), place.site(1));
    let order = || Order { size_bytes_max: 1 << 20, ..Order::on("dgx-a100:boxes=1", CollectiveKind::Allgather) };
    let order = || Order { algorithm: canopy_synth::Algorithm::Bfb, ..order() };
    let terms = Terms { priority: Priority::Interactive, detached: false, worker: Worker::Planner };
    let ask = |site: &Site| end(site.jobs.queue.submit(RequestKey::of(&order()), order(), Goal::Plan, terms).unwrap());
    let [there, here] = [&worker, &front].map(|site| ask(site).unwrap_err());
    assert_eq!(there.to_string(), here.to_string());
    assert_eq!(worker.synthesis_count(), 1);
}

#[test]
fn a_result_that_comes_too_late_is_refused_and_all_get_the_other_one() {
    let Some(place) = Place::new() else { return };
    let (stage, begins, passes) = gate();
    let (late, mut front) = (place.staged(1, stage), place.site(0));
    let waiting = [late.submit("torus:3x3"), front.submit("torus:3x3")];
    begins.recv_timeout(PATIENCE).unwrap();
    // Others take it for gone before it says again that it is there.
    place.query("update canopy.servers set until = now() - interval '1 s'");
    let other = place.site(1);
    wait_until("another server makes it", || other.synthesis_count() == 1);
    passes.send(()).unwrap();
    let plans = waiting.map(|one| end(one).unwrap().plan);
    assert_eq!(plans[0], plans[1]);
    wait_until("the late result is refused", || late.jobs.queue.making().is_empty());
    assert_eq!(place.query("select starts, state from canopy.jobs"), "2|2");
    front.stop();
}

#[test]
fn operations_are_seen_and_cancelled_from_every_server() {
    let Some(place) = Place::new() else { return };
    let (stage, begins, _passes) = gate();
    let (front, worker) = (place.site(0), place.staged(1, stage));
    let (first, joined) = (front.submit("torus:3x3"), worker.submit("torus:3x3"));
    begins.recv_timeout(PATIENCE).unwrap();
    let names = [&first, &joined].map(|one| one.job().operation());
    assert!(worker.jobs.queue.operation(&names[0]).is_none(), "it is another server's");
    wait_until("both wait", || worker.operation(&names[0]).is_some_and(|one| one.state == State::Running));
    assert_eq!(front.operation(&names[1]).unwrap().kind, CollectiveKind::Allgather);
    // One of those that wait ends alone, for whoever asks.
    let (of_first, of_joined) = if first.job().ties.lock().awaited.unwrap().is_first { (0, 1) } else { (1, 0) };
    assert!(front.jobs.cancel(&names[of_joined]).unwrap().is_some());
    let mut subscriptions = [Some(first), Some(joined)];
    let failure = end(subscriptions[of_joined].take().unwrap()).unwrap_err();
    assert!(failure.is_cancellation(), "{failure}");
    assert_eq!(place.query("select state from canopy.jobs"), "1");
    worker.jobs.cancel(&names[of_first]).unwrap();
    let failure = end(subscriptions[of_first].take().unwrap()).unwrap_err();
    assert_eq!(failure.to_string(), PlanFailure::CancelledByOperator.to_string());
    for (site, name) in [&front, &worker].into_iter().zip(&names) {
        wait_until("it is cancelled at each", || site.operation(name).is_some_and(|one| one.state == State::Cancelled));
    }
    wait_until("nobody makes it", || worker.jobs.queue.making().is_empty());
    let listed = front.jobs.operations_elsewhere(&std::collections::BTreeSet::new()).unwrap();
    assert_eq!(listed.len(), 2);
}

#[test]
fn what_goes_on_alone_survives_its_server_and_a_drain_gives_work_back() {
    let Some(place) = Place::new() else { return };
    let (stage, begins, _passes) = gate();
    let mut first = place.staged(1, stage);
    let alone = first.submit_with("torus:3x3", true);
    first.jobs.queue.write_down(alone.job()).unwrap();
    let name = alone.job().operation();
    begins.recv_timeout(PATIENCE).unwrap();
    drop(alone);
    first.stop();
    assert_eq!(place.query("select state, starts from canopy.jobs"), "0|0");
    let second = place.site(1);
    wait_until("it is made", || second.operation(&name).is_some_and(|one| one.state == State::Succeeded));
    let made = second.operation(&name).unwrap().result.unwrap().unwrap();
    assert!(!made.plan.is_empty());
    assert_eq!((second.synthesis_count(), made.cache), (1, Cache::Miss));
    // What was there at once is known elsewhere, too.
    let at_once = second.submit_with("torus:3x3", true);
    second.jobs.queue.write_down(at_once.job()).unwrap();
    let third = place.site(0);
    let known = third.operation(&at_once.job().operation()).unwrap();
    assert_eq!((known.state, known.result.unwrap().unwrap().cache), (State::Succeeded, Cache::Hit));
}

#[test]
fn who_leaves_ends_what_nobody_else_waits_for() {
    let Some(place) = Place::new() else { return };
    let (stage, begins, _passes) = gate();
    let (front, worker) = (place.site(0), place.staged(1, stage));
    let (one, other) = (front.submit("torus:3x3"), worker.submit("torus:3x3"));
    begins.recv_timeout(PATIENCE).unwrap();
    wait_until("both wait", || place.query("select count(*) from canopy.waiters") == "2");
    drop(one);
    wait_until("one has left", || place.query("select count(*) from canopy.waiters") == "1");
    assert_eq!(place.query("select is_unwanted from canopy.jobs"), "f");
    drop(other);
    wait_until("nobody makes it", || worker.jobs.queue.making().is_empty());
    assert_eq!(place.query("select state from canopy.jobs"), "4");
}

/// While a new version is brought in, servers of both make what their own callers ask for, and what is left of the old one is made
/// by the new one.
#[test]
fn two_versions_share_plans_but_no_jobs_until_one_is_gone() {
    let Some(place) = Place::new() else { return };
    let (stage, begins, passes) = gate();
    let mut old = Site::of_class("old", &place.address, 1, Box::new(stage));
    let new = Site::of_class("new", &place.address, 1, Box::new(|_| {}));
    let asked = old.submit("torus:3x3");
    begins.recv_timeout(PATIENCE).unwrap();
    // It has a job of its own, which waits for the search of the same schedule, and finds the plan.
    let same = new.submit("torus:3x3");
    wait_until("both have jobs", || place.query("select count(distinct class) from canopy.jobs") == "2");
    passes.send(()).unwrap();
    let plans = [asked, same].map(|one| end(one).unwrap().plan);
    assert_eq!(plans[0], plans[1]);
    assert_eq!((old.synthesis_count(), new.synthesis_count()), (1, 0));
    assert_eq!(end(new.submit("torus:3x5")).unwrap().cache, Cache::Miss, "what only its callers ask for, it makes");
    let alone = old.submit_with("torus:3x4", true);
    old.jobs.queue.write_down(alone.job()).unwrap();
    let name = alone.job().operation();
    begins.recv_timeout(PATIENCE).unwrap();
    drop(alone);
    assert_eq!(new.operation(&name).unwrap().state, State::Running);
    old.stop();
    wait_until("the new one makes it", || new.operation(&name).is_some_and(|one| one.state == State::Succeeded));
    assert_eq!(new.synthesis_count(), 2);
}

#[test]
fn a_plan_that_is_made_while_the_database_is_gone_is_stored_once_it_is_back() {
    let Some(postgres) = Postgres::new(Commits::Synced) else { return };
    let address = postgres.database();
    let (stage, begins, passes) = gate();
    let site = Site::new(&address, 1, Box::new(stage));
    let asked = site.submit("torus:3x3");
    begins.recv_timeout(PATIENCE).unwrap();
    postgres.kill();
    let refused = end(site.submit("torus:4x3")).unwrap_err();
    assert!(matches!(&*refused, PlanFailure::Jobs(StoreError::Away { .. })), "{refused}");
    let alone = site.submit_with("torus:4x4", true);
    let job = Arc::clone(alone.job());
    end(alone).unwrap_err();
    passes.send(()).unwrap();
    thread::sleep(Duration::from_millis(500));
    postgres.begin();
    let delivery = end(asked).unwrap();
    let untold = site.jobs.queue.write_down(&job).unwrap_err();
    assert!(matches!(untold, StoreError::Away { .. }), "the caller is to ask again: {untold}");
    assert!(site.jobs.operation_elsewhere(&job.operation()).unwrap().is_none(), "no operation has ended so");
    assert!(delivery.warnings.iter().all(|warning| warning.code != NOT_STORED));
    assert_eq!((delivery.cache, site.synthesis_count()), (Cache::Miss, 1));
    wait_until("new plans are made again", || {
        passes.send(()).unwrap();
        end(site.submit("torus:4x3")).is_ok()
    });
}
