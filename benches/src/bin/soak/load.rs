//! The mixed load: which loops there are, and on which connections.

mod jobs;
mod operators;
mod plans;

use std::sync::Arc;
use std::time::Duration;

use canopy_benches::Random;
use canopy_client::Client;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::Failure;
use super::caller::Caller;
use super::ledger::Ledger;
use super::server::Server;
use super::watches::{Watch, Witness};

pub(crate) use jobs::{Known, Leases};
pub(crate) use plans::{Counts, Operations};

/// Connections that ask for cached plans, and loops on each.
const CONNECTIONS: usize = 4;
const LOOPS: usize = 4;
/// Loops that ask for new plans.
const NEW: usize = 2;
/// Loops that start jobs in the background.
const PREFETCHES: usize = 2;
/// Loops that leave early.
const IMPATIENT: usize = 2;
/// Leases that are held to the end, on both leased networks.
const HELD: usize = 8;
/// Loops with leases for a moment.
const PASSING: usize = 2;
/// Jobs that watches which resume follow; empty for all jobs.
pub(crate) const RESUMED: [&str; 3] = ["", "held-0", "held-1"];
/// How long such a watch stays at most.
const PATIENCE: Duration = Duration::from_secs(4);

/// A running load, and what it notes.
pub(super) struct Load {
    loops: JoinSet<()>,
    watches: JoinSet<()>,
    over: watch::Sender<bool>,
    pub(super) ledger: Arc<Ledger>,
    pub(super) leases: Arc<Leases>,
    pub(super) operations: Arc<Operations>,
    /// The watch that stays open.
    pub(super) stayed: Witness,
    /// Those of [`RESUMED`].
    pub(super) resumed: Vec<Witness>,
}

/// Makes callers with random numbers of their own.
struct Callers {
    seed: u64,
    count: u64,
    ledger: Arc<Ledger>,
    over: watch::Receiver<bool>,
}

impl Callers {
    fn on(&mut self, client: &Client) -> Caller {
        self.count += 1;
        Caller {
            client: client.clone(),
            // Far apart for neighbouring seeds.
            random: Random::new(self.seed.wrapping_mul(0x1_0000_0001).wrapping_add(self.count)),
            ledger: Arc::clone(&self.ledger),
            over: self.over.clone(),
        }
    }
}

impl Load {
    /// Begins with the watches, so that they see every event.
    pub(super) async fn start(server: &Server, seed: u64, large: &str) -> Result<Self, Failure> {
        let (over, receiver) = watch::channel(false);
        let mut load = Self {
            loops: JoinSet::new(),
            watches: JoinSet::new(),
            over,
            ledger: Arc::default(),
            leases: Arc::default(),
            operations: Arc::default(),
            stayed: Witness::default(),
            resumed: RESUMED.iter().map(|_| Witness::default()).collect(),
        };
        let mut callers = Callers { seed, count: 0, ledger: Arc::clone(&load.ledger), over: receiver };
        let watching = server.connect().await?;
        let all = Watch { job: String::new(), patience: None, witness: Arc::clone(&load.stayed) };
        load.watches.spawn(all.follow(callers.on(&watching)));
        for (job, witness) in RESUMED.iter().zip(&load.resumed) {
            let watch = Watch { job: (*job).to_owned(), patience: Some(PATIENCE), witness: Arc::clone(witness) };
            load.watches.spawn(watch.follow(callers.on(&watching)));
        }
        // A watch without a token begins when the server has it.
        while load.ledger.all().values().map(|tally| tally.answered).sum::<u64>() < 1 + RESUMED.len() as u64 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        load.spawn_plans(server, &mut callers, large).await?;
        load.spawn_others(server, &mut callers).await?;
        Ok(load)
    }

    async fn spawn_plans(&mut self, server: &Server, callers: &mut Callers, large: &str) -> Result<(), Failure> {
        for _ in 0..CONNECTIONS {
            let client = server.connect().await?;
            for _ in 0..LOOPS {
                self.loops.spawn(plans::cached_plans(callers.on(&client)));
            }
        }
        let client = server.connect().await?;
        for _ in 0..NEW {
            self.loops.spawn(plans::new_plans(callers.on(&client)));
        }
        for _ in 0..PREFETCHES {
            let operations = Arc::clone(&self.operations);
            let caller = callers.on(&client);
            self.loops.spawn(async move { plans::prefetches(caller, &operations).await });
        }
        for _ in 0..IMPATIENT {
            // HTTP/2 ends a connection with many calls that were left before the server saw them.
            self.loops.spawn(plans::impatient(callers.on(&server.connect().await?)));
        }
        self.loops.spawn(plans::recalls(callers.on(&server.connect().await?), large.to_owned()));
        Ok(())
    }

    async fn spawn_others(&mut self, server: &Server, callers: &mut Callers) -> Result<(), Failure> {
        let client = server.connect().await?;
        for number in 0..HELD {
            self.loops.spawn(jobs::holder(callers.on(&client), number, Arc::clone(&self.leases)));
        }
        for number in 0..PASSING {
            self.loops.spawn(jobs::passing(callers.on(&client), number, Arc::clone(&self.leases)));
        }
        for network in 0..super::requests::LEASED.len() {
            self.loops.spawn(jobs::faulty(callers.on(&client), network, Arc::clone(&self.leases)));
        }
        let client = server.connect().await?;
        self.loops.spawn(operators::keeper(callers.on(&client)));
        self.loops.spawn(operators::topologies(callers.on(&client)));
        self.loops.spawn(operators::reloads(callers.on(&client), server.pid()));
        let (address, admin) = (server.server_address()?, server.admin());
        self.loops.spawn(operators::observer(callers.on(&client), address, admin));
        Ok(())
    }

    /// Ends the load; the number of loops that had not ended after some time.
    pub(super) async fn stop(&mut self, most: Duration) -> usize {
        self.over.send_replace(true);
        let ending = async { while self.loops.join_next().await.is_some() {} };
        // Those that are stuck are counted.
        let _all_or_not = tokio::time::timeout(most, ending).await;
        self.loops.len()
    }

    /// Ends the watches.
    pub(super) async fn leave_watches(&mut self) {
        self.watches.shutdown().await;
    }
}
