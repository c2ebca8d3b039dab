//! Three servers on one database, which are killed, paused and cut off, as the database is.

mod away;
mod fresh;
mod listed;
mod names;
mod upgrade;
mod wire;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use canopy_prerequisites::{Commits, Postgres};
use canopy_proto::v1::operation::Result as Ended;
use canopy_proto::v1::operations_client::OperationsClient;
use canopy_proto::v1::planner_client::PlannerClient;
use canopy_proto::v1::{Operation, Plan, PlanResponse, PlanSpec, WaitOperationRequest};
use prost::Message as _;
use tempfile::TempDir;
use tokio::sync::RwLock;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use self::wire::Wire;
use crate::kills::{Acknowledged, Random, Told, Workspace, check_told, follow, settled};
use crate::support::{Process, canopyd, request, spawn, stated};

const REPLICAS: usize = 3;
/// How long servers are killed, unless `CANOPY_SECONDS` says it.
const SECONDS: u64 = 25;
/// Callers that ask for plans.
const CALLERS: u64 = 4;
/// Different plans that are asked for.
const PLANS: u64 = 60;
/// A server that was silent for longer than its lease.
const PAUSE: Duration = Duration::from_secs(17);
const PATIENCE: Duration = Duration::from_secs(90);

/// What a caller may be answered while servers are killed: it asks again.
fn may_be_asked_again(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::Unavailable | Code::Unknown | Code::Cancelled | Code::DeadlineExceeded | Code::Internal
    ) && !status.message().contains("bug")
}

/// The servers, their database, and where they are now.
struct Cluster {
    postgres: Postgres,
    address: String,
    wires: Vec<Wire>,
    replicas: Vec<Option<Process>>,
    /// Where those listen that are up.
    up: Arc<Mutex<BTreeMap<usize, String>>>,
    /// Since when those that are paused are.
    paused: BTreeMap<usize, Instant>,
}

impl Cluster {
    async fn start(commits: Commits) -> Option<Self> {
        Self::of(canopyd, commits).await
    }

    /// Servers of a program.
    async fn of(program: fn() -> Command, commits: Commits) -> Option<Self> {
        let postgres = Postgres::new(commits)?;
        let address = postgres.database();
        let mut wires = Vec::new();
        for _ in 0..REPLICAS {
            wires.push(Wire::to(Self::socket(&address)).await);
        }
        let (up, paused) = (Arc::default(), BTreeMap::new());
        let mut cluster = Self { postgres, address, wires, replicas: Vec::new(), up, paused };
        for number in 0..REPLICAS {
            let replica = cluster.launch(program(), number, tempfile::tempdir().unwrap());
            cluster.replicas.push(Some(replica));
        }
        Some(cluster)
    }

    fn socket(address: &str) -> PathBuf {
        let folder = address.split("host=").nth(1).unwrap().split('&').next().unwrap();
        PathBuf::from(folder).join(".s.PGSQL.5432")
    }

    fn name(&self) -> &str {
        self.address.split(['/', '?']).nth(3).unwrap()
    }

    fn query(&self, statement: &str) -> String {
        self.postgres.query(self.name(), statement)
    }

    fn launch(&self, program: Command, number: usize, folder: TempDir) -> Process {
        let url = format!("postgres://canopy@{}/{}", self.wires[number].address, self.name());
        let replica = Process::start_as(program, folder, |command, _| {
            command.args(["--database", &url, "--workers", "1", "--replan-window", "20ms"]);
            command.args([
                "--fault-debounce",
                "50ms",
                "--plan-ahead=false",
                "--drain-timeout",
                "1s",
                "--log",
                "off,canopy_server::process=info",
            ]);
        });
        self.up.lock().unwrap().insert(number, format!("http://{}", replica.address("tcp")));
        replica
    }

    fn replica(&self, number: usize) -> &Process {
        self.replicas[number].as_ref().unwrap()
    }

    /// Those that run and can reach the database.
    fn sound(&self) -> Vec<usize> {
        (0..REPLICAS).filter(|number| !self.paused.contains_key(number)).collect()
    }

    /// Waits until all that run say that they reach the database.
    async fn until_ready(&self) {
        let limit = Instant::now() + PATIENCE;
        for number in self.sound() {
            while !self.replica(number).page("/readyz").await.ends_with("\r\n\r\nready\n") {
                assert!(Instant::now() < limit, "replica {number} is not ready");
                sleep(Duration::from_millis(20)).await;
            }
        }
    }

    /// Does one bad thing, and undoes it but for a pause.
    async fn disturb(
        &mut self,
        random: &mut Random,
        told: &[Told],
        watching: &mut [Option<JoinHandle<()>>],
    ) -> &'static str {
        let sound = self.sound();
        let number = sound[usize::try_from(random.below(sound.len() as u64)).unwrap()];
        match random.below(if sound.len() == REPLICAS { 5 } else { 4 }) {
            0 | 1 => {
                self.up.lock().unwrap().remove(&number);
                let folder = self.replicas[number].take().unwrap().crash();
                watching[number].take().unwrap().await.unwrap();
                self.replicas[number] = Some(self.launch(canopyd(), number, folder));
                self.until_ready().await;
                watching[number] = Some(follow(self.replica(number), &told[number]).await);
                "kill"
            }
            2 => {
                self.postgres.kill();
                sleep(Duration::from_millis(random.below(1500))).await;
                self.postgres.begin();
                "database"
            }
            3 => {
                self.wires[number].cut();
                sleep(Duration::from_millis(500 + random.below(3000))).await;
                self.wires[number].mend();
                "cut"
            }
            _ => {
                self.up.lock().unwrap().remove(&number);
                self.replica(number).signal("STOP");
                self.paused.insert(number, Instant::now());
                "pause"
            }
        }
    }

    /// Lets those go on that have been paused for long enough, or all.
    fn wake(&mut self, all: bool) {
        let due = |since: &Instant| all || since.elapsed() > PAUSE;
        let woken: Vec<usize> = self.paused.iter().filter(|(_, since)| due(since)).map(|(number, _)| *number).collect();
        for number in woken {
            self.paused.remove(&number);
            self.replica(number).signal("CONT");
            let address = format!("http://{}", self.replica(number).address("tcp"));
            self.up.lock().unwrap().insert(number, address);
        }
    }
}

/// What callers share.
struct Load {
    up: Arc<Mutex<BTreeMap<usize, String>>>,
    is_over: AtomicBool,
    answered: AtomicU64,
    again: AtomicU64,
    /// What each plan is.
    plans: Mutex<BTreeMap<String, Vec<u8>>>,
    /// Which plan each request has.
    named: Mutex<BTreeMap<u64, String>>,
}

impl Load {
    fn on(cluster: &Cluster) -> Arc<Self> {
        Arc::new(Self {
            up: Arc::clone(&cluster.up),
            is_over: AtomicBool::new(false),
            answered: AtomicU64::new(0),
            again: AtomicU64::new(0),
            plans: Mutex::default(),
            named: Mutex::default(),
        })
    }

    fn callers(self: &Arc<Self>, seed: u64) -> Vec<JoinHandle<()>> {
        let call = |caller| {
            let (load, random) = (Arc::clone(self), Random(seed * 1000 + caller + 1));
            spawn(async move { load.ask(random).await })
        };
        (0..CALLERS).map(call).collect()
    }

    /// A server that is up, as far as is known.
    async fn channel(&self, random: &mut Random) -> Channel {
        loop {
            let addresses: Vec<String> = self.up.lock().unwrap().values().cloned().collect();
            let picked = usize::try_from(random.below(addresses.len().max(1) as u64)).unwrap();
            if let Some(address) = addresses.get(picked) {
                let endpoint = Endpoint::from_shared(address.clone()).unwrap();
                if let Ok(Ok(channel)) = timeout(Duration::from_secs(2), endpoint.connect()).await {
                    return channel;
                }
            }
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Asks one server after the other, until one answers.
    async fn until_answered<T, F: Future<Output = Result<T, Status>>>(
        &self,
        random: &mut Random,
        ask: impl Fn(Channel) -> F,
    ) -> T {
        let limit = Instant::now() + PATIENCE;
        loop {
            let channel = self.channel(random).await;
            match timeout(Duration::from_secs(10), ask(channel)).await {
                Ok(Ok(answer)) => return answer,
                Ok(Err(status)) => assert!(may_be_asked_again(&status), "{status:?}"),
                Err(_) => {}
            }
            self.again.fetch_add(1, Ordering::Relaxed);
            assert!(Instant::now() < limit, "a request is never answered");
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// The same name is the same plan, and the same request has the same name.
    fn note(&self, number: u64, plan: &Plan) {
        let sent = Plan { provenance: None, ..plan.clone() }.encode_to_vec();
        let mut plans = self.plans.lock().unwrap();
        assert_eq!(plans.entry(plan.name.clone()).or_insert_with(|| sent.clone()), &sent, "{} has changed", plan.name);
        let mut named = self.named.lock().unwrap();
        assert_eq!(named.entry(number).or_insert_with(|| plan.name.clone()), &plan.name, "request {number}");
        self.answered.fetch_add(1, Ordering::Relaxed);
    }

    /// Asks for plans until it is over: for some at one server, and for their end at another one.
    async fn ask(&self, mut random: Random) {
        while !self.is_over.load(Ordering::Relaxed) {
            let number = random.below(PLANS);
            let asked = wanted(number);
            if random.below(3) > 0 {
                let plan = |channel| plan(channel, asked.clone());
                let reply = self.until_answered(&mut random, plan).await;
                self.note(number, &reply.plan.unwrap());
                continue;
            }
            let operation = self.until_answered(&mut random, |channel| prefetch(channel, asked.clone())).await;
            let ended = self.until_answered(&mut random, |channel| end_of(channel, operation.name.clone())).await;
            match ended.result {
                Some(Ended::Response(reply)) => assert!(!reply.plan.unwrap().name.is_empty()),
                other => panic!("{}: {other:?}", operation.name),
            }
            self.answered.fetch_add(1, Ordering::Relaxed);
        }
    }
}

async fn plan(channel: Channel, asked: PlanSpec) -> Result<PlanResponse, Status> {
    Ok(PlannerClient::new(channel).plan(asked.into_plan()).await?.into_inner())
}

async fn prefetch(channel: Channel, asked: PlanSpec) -> Result<Operation, Status> {
    Ok(PlannerClient::new(channel).prefetch_plan(asked.into_prefetch()).await?.into_inner())
}

async fn end_of(channel: Channel, name: String) -> Result<Operation, Status> {
    let asked = WaitOperationRequest { name, timeout: None };
    let now = OperationsClient::new(channel).wait_operation(asked).await?.into_inner();
    if now.done { Ok(now) } else { Err(Status::unavailable("it goes on")) }
}

/// Small networks of many shapes, a few of which take a while.
fn wanted(number: u64) -> PlanSpec {
    let (columns, rows) = (2 + number % 6, 2 + number / 6);
    request(&match number % 10 {
        0 => format!("dgx-a100:boxes={}", 1 + number / 10),
        1 => "fat-tree:k=4,oversub=2".to_owned(),
        _ => format!("torus:{columns}x{rows}"),
    })
}

/// Changes leases and faults at one server after the other, and compares each with what the others have acknowledged.
async fn manage(cluster: Arc<RwLock<Cluster>>, load: Arc<Load>, mut random: Random) -> Acknowledged {
    let (mut known, mut rounds) = (Acknowledged::default(), 0);
    while !load.is_over.load(Ordering::Relaxed) {
        let channel = load.channel(&mut random).await;
        let mut workspace = Workspace::over(channel);
        let until = Instant::now() + Duration::from_millis(200 + random.below(800));
        while Instant::now() < until {
            // A server that is paused does what it has been asked when it goes on, so its answer is waited for.
            let acted = timeout(2 * PAUSE, workspace.act(&mut random, &mut known)).await;
            if !matches!(acted, Ok(Ok(()))) {
                break;
            }
        }
        // What was under way has been done or not; which of both is seen while nothing is killed.
        let cluster = cluster.read().await;
        cluster.until_ready().await;
        let sound = cluster.sound();
        let number = sound[usize::try_from(random.below(sound.len() as u64)).unwrap()];
        // What was cleared goes away when the server that ticks for all says so, which another one does once it is silent.
        known.clears_are_open();
        Workspace::at(cluster.replica(number)).await.check(&mut known, rounds).await;
        rounds += 1;
    }
    known
}

/// Whatever happens to servers and their database, every request is answered rightly, each plan is searched for once but for
/// redeliveries, and leases, faults and events are the same at all servers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_on_one_database_are_as_one_whatever_happens_to_them() {
    let (seconds, seed) = (stated("CANOPY_SECONDS").unwrap_or(SECONDS), stated("CANOPY_SEED").unwrap_or(1));
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let Some(cluster) = Cluster::start(Commits::Unsynced).await else { return };
    let told: Vec<Told> = (0..REPLICAS).map(|_| Told::default()).collect();
    let mut watching = Vec::new();
    for (number, told) in told.iter().enumerate() {
        watching.push(Some(follow(cluster.replica(number), told).await));
    }
    let load = Load::on(&cluster);
    let cluster = Arc::new(RwLock::new(cluster));
    let callers = load.callers(seed);
    let managing = spawn(manage(Arc::clone(&cluster), Arc::clone(&load), Random(seed * 1000 + 77)));
    // Until every watch has a token to go on from.
    let limit = Instant::now() + PATIENCE;
    while told.iter().any(|told| told.lock().unwrap().is_empty()) {
        assert!(Instant::now() < limit && !managing.is_finished(), "there are no events");
        sleep(Duration::from_millis(20)).await;
    }
    let (until, mut done) = (Instant::now() + Duration::from_secs(seconds), BTreeMap::<&str, u64>::new());
    while Instant::now() < until {
        sleep(Duration::from_millis(300 + random.below(1500))).await;
        let mut cluster = cluster.write().await;
        cluster.wake(false);
        let what = cluster.disturb(&mut random, &told, &mut watching).await;
        *done.entry(what).or_default() += 1;
        cluster.until_ready().await;
    }
    let mut cluster_now = cluster.write().await;
    while cluster_now.paused.values().any(|since| since.elapsed() <= PAUSE) {
        sleep(Duration::from_millis(100)).await;
    }
    cluster_now.wake(true);
    cluster_now.until_ready().await;
    drop(cluster_now);
    load.is_over.store(true, Ordering::Relaxed);
    for caller in callers {
        caller.await.unwrap();
    }
    managing.await.unwrap();
    let cluster = cluster.read().await;
    check_jobs(&cluster, &done).await;
    check_events(&cluster, &told).await;
    let counts = [&load.answered, &load.again].map(|count| count.load(Ordering::Relaxed));
    let events = told[0].lock().unwrap().len();
    eprintln!("{done:?}: {} requests answered, {} asked again, {events} events", counts[0], counts[1]);
    // Whoever wants what a paused server makes waits until that is taken for gone.
    assert!(counts[0] > 2 * seconds && events > 0, "{counts:?}");
}

/// Every job has ended, and no plan was searched for twice to its end.
async fn check_jobs(cluster: &Cluster, done: &BTreeMap<&str, u64>) {
    let limit = Instant::now() + PATIENCE;
    while cluster.query("select count(*) from canopy.jobs where state < 2") != "0" {
        assert!(
            Instant::now() < limit,
            "{}",
            cluster.query("select job, state, owner, starts from canopy.jobs where state < 2")
        );
        sleep(Duration::from_millis(50)).await;
    }
    let searched =
        "select key, class from canopy.jobs where state = 2 and substring(outcome from 35 for 2) = '\\x1001'::bytea";
    let keys = cluster.query(&format!("select count(*), count(distinct (key, class)) from ({searched}) searched"));
    let (all, distinct) = keys.split_once('|').unwrap();
    assert_eq!(all, distinct, "a plan was searched for twice");
    assert!(distinct.parse::<u64>().unwrap() > 5, "{distinct} searches");
    // But those of leases whose networks fall apart.
    let failed = "select starts, words from (select *, encode(outcome, 'escape') words from canopy.jobs) job
        where state = 3 and words not like '%TOPOLOGY_DISCONNECTED%' and words not like '%TOO_FEW_RANKS%'";
    assert_eq!(cluster.query(failed), "");
    let redelivered =
        cluster.query("select coalesce(sum(starts - 1), 0) from canopy.jobs where state = 2 and starts > 1");
    eprintln!("{distinct} plans searched for, {redelivered} redelivered after {done:?}");
}

/// All servers tell the same, each event once and in one order, and their leases agree with it.
async fn check_events(cluster: &Cluster, told: &[Told]) {
    for (number, told) in told.iter().enumerate() {
        settled(&mut Workspace::at(cluster.replica(number)).await, told).await;
    }
    let limit = Instant::now() + PATIENCE;
    let lengths = || told.iter().map(|told| told.lock().unwrap().len()).collect::<Vec<_>>();
    while lengths().iter().any(|length| *length != lengths()[0]) {
        assert!(Instant::now() < limit, "{:?} events", lengths());
        sleep(Duration::from_millis(50)).await;
    }
    let all: Vec<_> = told.iter().map(|told| told.lock().unwrap().clone()).collect();
    check_told(&all[0]);
    for other in &all[1..] {
        assert!(*other == all[0], "two servers tell different things");
    }
}
