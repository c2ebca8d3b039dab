//! Processes that are killed again and again while faults, leases and plans change.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use canopy_proto::v1::faults_client::FaultsClient;
use canopy_proto::v1::leases_client::LeasesClient;
use canopy_proto::v1::replan_event::Event;
use canopy_proto::v1::{
    AcquireLeaseRequest, ClearFaultsRequest, DeviceTarget, Fault, FaultEvent, Lease, ListFaultsRequest,
    ListLeasesRequest, ReleaseLeaseRequest, RenewLeaseRequest, ReplanEvent, ReportFaultsRequest, ReportOutcome,
    WatchLeasesRequest, fault,
};
use tokio::task::JoinHandle;
use tonic::Status;
use tonic::transport::Channel;
use tonic_types::StatusExt as _;

use crate::support::{Process, request, spawn, stated};

/// Processes that are killed, unless `CANOPY_LIVES` says how many.
const LIVES: u64 = 6;
pub(crate) const NETWORK: &str = "ring:6";
const RANKS: u64 = 6;
/// Leases at once: few enough for one page.
const LEASES_MAX: usize = 30;
const PATIENCE: Duration = Duration::from_secs(60);

/// xorshift64*, so that a seed is a run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % limit
    }

    fn pick<'a, T>(&mut self, from: impl ExactSizeIterator<Item = &'a T>) -> Option<&'a T> {
        let mut from = from;
        let count = from.len() as u64;
        if count == 0 { None } else { from.nth(usize::try_from(self.below(count)).unwrap()) }
    }
}

/// What the servers have acknowledged. What was under way when one was killed may have been done or not.
#[derive(Clone, Default)]
pub(crate) struct Acknowledged {
    /// Leases by name, and the earliest time at which each may end.
    pub(crate) held: BTreeMap<String, i64>,
    /// Leases whose release is open.
    pub(crate) maybe_held: BTreeSet<String>,
    /// Leases that were let go: they never come back.
    released: BTreeSet<String>,
    /// GPUs that are broken, and those of which it is open.
    broken: BTreeSet<u64>,
    pub(crate) maybe_broken: BTreeSet<u64>,
    /// GPUs that were reported or cleared, if only for the trying.
    pub(crate) touched: BTreeSet<u64>,
    /// The topology, once a server has named it.
    topology: String,
    requests: u64,
}

impl Acknowledged {
    /// What was cleared may be listed for a while.
    pub(crate) fn clears_are_open(&mut self) {
        self.maybe_broken.extend((0..RANKS).filter(|gpu| !self.broken.contains(gpu)));
    }

    /// The last request was refused: it has changed nothing.
    pub(crate) fn takes_back(&mut self, before: Self) {
        let requests = self.requests;
        *self = Self { requests, ..before };
    }
}

/// All that was told, over the lives of all servers.
pub(crate) type Told = Arc<Mutex<Vec<ReplanEvent>>>;

pub(crate) struct Workspace {
    pub(crate) faults: FaultsClient<Channel>,
    pub(crate) leases: LeasesClient<Channel>,
}

impl Workspace {
    pub(crate) async fn at(process: &Process) -> Self {
        Self::over(process.channel().await)
    }

    pub(crate) fn over(channel: Channel) -> Self {
        Self { faults: FaultsClient::new(channel.clone()), leases: LeasesClient::new(channel) }
    }

    async fn list(&mut self) -> Vec<Lease> {
        let asked = ListLeasesRequest { page_size: 1000, ..ListLeasesRequest::default() };
        self.leases.list_leases(asked).await.unwrap().into_inner().leases
    }

    /// Does one thing, and notes what the server says of it.
    pub(crate) async fn act(&mut self, random: &mut Random, known: &mut Acknowledged) -> Result<(), Status> {
        known.requests += 1;
        match random.below(10) {
            0 | 1 if known.held.len() < LEASES_MAX => {
                let job = format!("job-{}", known.requests);
                let requests = vec![request(NETWORK)];
                let asked = AcquireLeaseRequest { job, specs: requests, ..AcquireLeaseRequest::default() };
                let lease = match self.leases.acquire_lease(asked).await {
                    // What is broken may leave nothing that a plan could be for.
                    Err(status) if status.message().contains("a lease is planned around") => return Ok(()),
                    answer => answer?.into_inner(),
                };
                known.topology.clone_from(&lease.topology);
                known.held.insert(lease.name.clone(), end_of(&lease));
            }
            2 => {
                let Some(name) = random.pick(known.held.keys()).cloned() else { return Ok(()) };
                // Later each time, up to a week.
                let seconds = (3600 + 60 * known.requests as i64).min(7 * 24 * 3600);
                let ttl = Some(prost_types::Duration { seconds, nanos: 0 });
                let asked = RenewLeaseRequest { name, ttl, request_id: String::new() };
                let lease = self.leases.renew_lease(asked).await?.into_inner();
                known.held.insert(lease.name.clone(), end_of(&lease));
            }
            0 | 1 | 3 => {
                let Some(name) = random.pick(known.held.keys()).cloned() else { return Ok(()) };
                known.held.remove(&name);
                known.maybe_held.insert(name.clone());
                let asked = ReleaseLeaseRequest { name: name.clone(), ..ReleaseLeaseRequest::default() };
                assert_eq!(self.leases.release_lease(asked).await?.into_inner().released, 1);
                known.maybe_held.remove(&name);
                known.released.insert(name);
            }
            4..=7 => {
                let gpu = random.below(RANKS);
                let event = lost_by_test(gpu, known.requests);
                let was_broken = known.broken.remove(&gpu);
                known.maybe_broken.insert(gpu);
                known.touched.insert(gpu);
                let topology = request(NETWORK).topology;
                let asked = ReportFaultsRequest { topology, events: vec![event], ..Default::default() };
                let reply = self.faults.report_faults(asked).await?.into_inner();
                known.topology.clone_from(&reply.topology);
                known.maybe_broken.remove(&gpu);
                // What is seen within the millisecond of a clear is older news than that.
                if was_broken || reply.outcomes[0].outcome() != ReportOutcome::Stale {
                    known.broken.insert(gpu);
                }
            }
            _ => {
                if known.topology.is_empty() {
                    return Ok(());
                }
                let some: Vec<u64> = known.broken.iter().copied().filter(|_| random.below(2) == 0).collect();
                let all = some.is_empty();
                let cleared = if all { std::mem::take(&mut known.broken) } else { some.iter().copied().collect() };
                known.broken.retain(|gpu| !cleared.contains(gpu));
                known.maybe_broken.extend(&cleared);
                known.touched.extend((0..RANKS).filter(|gpu| all || cleared.contains(gpu)));
                let faults = if all { Vec::new() } else { some.into_iter().map(lost).collect() };
                let topology = known.topology.clone();
                self.faults.clear_faults(ClearFaultsRequest { topology, faults, ..Default::default() }).await?;
                match all {
                    true => known.maybe_broken.clear(),
                    false => known.maybe_broken.retain(|gpu| !cleared.contains(gpu)),
                }
            }
        }
        Ok(())
    }

    /// Compares what a server knows with what its predecessors have acknowledged; what was open is settled.
    pub(crate) async fn check(&mut self, known: &mut Acknowledged, life: u64) {
        let leases: BTreeMap<String, Lease> =
            self.list().await.into_iter().map(|lease| (lease.name.clone(), lease)).collect();
        for (name, end) in &known.held {
            let lease = leases.get(name).unwrap_or_else(|| panic!("life {life}: {name} is lost"));
            assert!(end_of(lease) >= *end, "life {life}: {name} was renewed for longer");
        }
        for name in &known.released {
            assert!(!leases.contains_key(name), "life {life}: {name} is back");
        }
        known.maybe_held.clear();
        // One whose acquisition nobody heard of is held as well.
        known.held = leases.iter().map(|(name, lease)| (name.clone(), end_of(lease))).collect();
        let listed = self.faults.list_faults(ListFaultsRequest::default()).await.unwrap().into_inner().faults;
        let broken: BTreeSet<u64> =
            listed.iter().map(|fault| fault.text.strip_prefix("gpu:").unwrap().parse().unwrap()).collect();
        let open = |gpu: &&u64| !known.maybe_broken.contains(*gpu);
        assert_eq!(
            broken.iter().filter(open).collect::<Vec<_>>(),
            known.broken.iter().filter(open).collect::<Vec<_>>(),
            "life {life}, open are {:?}",
            known.maybe_broken
        );
        (known.broken, known.maybe_broken) = (broken, BTreeSet::new());
    }
}

fn end_of(lease: &Lease) -> i64 {
    lease.expire_time.unwrap().seconds
}

fn lost_by_test(gpu: u64, number: u64) -> FaultEvent {
    let (source, event_id) = ("test".to_owned(), number.to_string());
    FaultEvent { source, event_id, fault: Some(lost(gpu)), ..FaultEvent::default() }
}

pub(crate) fn lost(gpu: u64) -> Fault {
    let device = DeviceTarget { node: gpu.to_string(), ..DeviceTarget::default() };
    Fault { target: Some(fault::Target::Device(device)), remaining: None }
}

pub(crate) fn start(folder: Option<tempfile::TempDir>) -> Process {
    start_with(folder.unwrap_or_else(|| tempfile::tempdir().unwrap()))
}

pub(crate) fn start_with(folder: tempfile::TempDir) -> Process {
    Process::start_in(folder, |command, _| {
        command.args(["--replan-window", "20ms", "--fault-debounce", "50ms", "--plan-ahead=false"]);
    })
}

/// Follows what is told from where the last watch ended, until the server is gone.
pub(crate) async fn follow(process: &Process, told: &Told) -> JoinHandle<()> {
    let resume_token = told.lock().unwrap().last().map(|event| event.resume_token.clone()).unwrap_or_default();
    let asked = WatchLeasesRequest { resume_token, ..WatchLeasesRequest::default() };
    let mut events = Workspace::at(process).await.leases.watch_leases(asked).await.unwrap().into_inner();
    let told = Arc::clone(told);
    spawn(async move {
        while let Ok(Some(event)) = events.message().await {
            if !matches!(event.event, Some(Event::Idle(_) | Event::Started(_))) {
                told.lock().unwrap().push(event);
            }
        }
    })
}

/// Every event once, in order, and none that says of a lease what the one before said.
pub(crate) fn check_told(told: &[ReplanEvent]) {
    let mut last: BTreeMap<&str, &ReplanEvent> = BTreeMap::new();
    for (event, sequence) in told.iter().zip(1..) {
        assert_eq!(event.sequence, sequence, "none is missing, and none comes twice");
        if let Some(before) = last.insert(&event.lease, event) {
            let (faults, what) = (before.faults == event.faults, plan_of(before) == plan_of(event));
            assert!(!(faults && what), "said twice of {}: {before:?}, then {event:?}", event.lease);
        }
    }
}

/// The plan that an event is about, and whether a better one may follow; none: there is no plan.
fn plan_of(event: &ReplanEvent) -> Option<(&str, bool)> {
    match event.event.as_ref()? {
        Event::Superseded(superseded) => Some((&superseded.new_plan, superseded.is_final)),
        Event::Lost(_) | Event::Expired(_) | Event::Idle(_) | Event::Started(_) => None,
    }
}

/// Waits until nothing is planned any more, and all that became of the leases was told.
pub(crate) async fn settled(workspace: &mut Workspace, told: &Told) -> Vec<Lease> {
    let limit = tokio::time::Instant::now() + PATIENCE;
    loop {
        let leases = workspace.list().await;
        let is_busy = leases.iter().any(|lease| lease.plans[0].is_replanning);
        let heard = told.lock().unwrap().clone();
        let last: BTreeMap<&str, &ReplanEvent> = heard.iter().map(|event| (event.lease.as_str(), event)).collect();
        let agrees = |lease: &Lease| match last.get(lease.name.as_str()) {
            // It may have begun with a plan around what was broken.
            None => !lease.plans[0].current.is_empty(),
            Some(event) => plan_of(event).map_or("", |(plan, _)| plan) == lease.plans[0].current,
        };
        if !is_busy && leases.iter().all(agrees) {
            return leases;
        }
        assert!(tokio::time::Instant::now() < limit, "{leases:?}, {:?}", last.values().collect::<Vec<_>>());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Whenever a process is killed, all that it acknowledged is there in the next one, and whoever watches is told of every event once.
#[tokio::test(flavor = "multi_thread")]
async fn whatever_was_acknowledged_outlives_every_kill() {
    let (lives, seed) = (stated("CANOPY_LIVES").unwrap_or(LIVES), stated("CANOPY_SEED").unwrap_or(1));
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let (mut known, told) = (Acknowledged::default(), Told::default());
    let mut process = start(None);
    process.client().await.plan(request(NETWORK).into_plan()).await.unwrap();
    let mut watching = follow(&process, &told).await;
    // From here on there is a token to go on from.
    while told.lock().unwrap().is_empty() {
        Workspace::at(&process).await.act(&mut random, &mut known).await.unwrap();
    }
    for life in 0..lives {
        let mut workspace = Workspace::at(&process).await;
        workspace.check(&mut known, life).await;
        let lasts = Duration::from_millis(20 + random.below(400));
        let acting = async {
            loop {
                if let Err(status) = workspace.act(&mut random, &mut known).await {
                    let refusal = status.get_error_details().error_info().cloned();
                    return assert!(refusal.is_none(), "a server that lives refuses nothing: {status}");
                }
            }
        };
        let killing = async {
            tokio::time::sleep(lasts).await;
            process.signal("KILL");
        };
        tokio::join!(acting, killing);
        process = start(Some(process.crash()));
        watching.await.unwrap();
        watching = follow(&process, &told).await;
    }
    let mut workspace = Workspace::at(&process).await;
    workspace.check(&mut known, lives).await;
    settled(&mut workspace, &told).await;
    let topology = known.topology.clone();
    workspace.faults.clear_faults(ClearFaultsRequest { topology, ..ClearFaultsRequest::default() }).await.unwrap();
    let limit = tokio::time::Instant::now() + PATIENCE;
    while !settled(&mut workspace, &told).await.iter().all(|lease| lease.plans[0].current == lease.plans[0].original) {
        assert!(tokio::time::Instant::now() < limit, "not all went back");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let told = told.lock().unwrap();
    check_told(&told);
    assert!(known.requests > lives && !told.is_empty(), "{} requests, {} events", known.requests, told.len());
}
