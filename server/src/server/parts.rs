//! What a server opens before it serves.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use canopy_database::{Address, Database, DatabaseError};
use parking_lot::Mutex;
use tokio::task::spawn_blocking;

use super::StartError;
use super::upkeep::tell_of;
use crate::access::Access;
use crate::clock;
use crate::jobs::computing::Computing;
use crate::jobs::journal::Journal;
use crate::jobs::planner::Planner;
use crate::jobs::queue::{Queue, QueueLimits};
use crate::jobs::refusals::Refusals;
use crate::jobs::reproducers::Reproducers;
use crate::jobs::slices::Questions;
use crate::jobs::table::JobTable;
use crate::jobs::workers::{BillOf, Jobs};
use crate::metrics::Metrics;
use crate::ops::audit::{AuditLog, AuditOptions};
use crate::ops::config::{Lifetime, Options, ServerRole, WhenAway};
use crate::ops::observed::ObservedPlanner;
use crate::quota::Accounts;
use crate::store::{Opened, Others, RecordOptions, Records, Space, Store, StoreError, open_shared_store, open_store};

/// Opens the store, and has the clock go by that of the servers that share it, if it is shared.
pub(super) async fn open(options: &Options) -> Result<(Opened, Option<Others>), StartError> {
    let data_dir = options.data_dir.clone();
    let (database, connections) = (options.database.clone(), options.database_connections.get());
    let open = move || match database {
        Some(address) => {
            let (opened, others) = open_shared_store(&data_dir, &connect(address, connections)?)?;
            Ok((opened, Some(others)))
        }
        None => Ok((open_store(&data_dir)?, None)),
    };
    let (opened, others) = aside::<_, StoreError>(open).await?;
    tell_of(&opened);
    if let Some(others) = others.clone() {
        clock::share(move || others.now_ms());
    }
    Ok((opened, others))
}

/// Gets ready to connect to the database that servers share.
pub(crate) fn connect(address: Address, connections: usize) -> Result<Database, StoreError> {
    let refused = |error: DatabaseError| StoreError::Database { reason: error.to_string() };
    Database::new(&canopy_database::Options { address, connections }).map_err(refused)
}

/// What the workers share: the queue beside the table of all servers, or with a journal of its own.
pub(super) async fn jobs_of(
    options: &Options,
    opened: &Opened,
    others: Option<&Others>,
    (plans, planner): (Arc<dyn Store>, Arc<dyn Planner>),
    (accounts, access): (&Accounts, &Access),
    metrics: &Metrics,
) -> Result<Arc<Jobs>, StartError> {
    let limits = QueueLimits {
        length_max: options.queue_length_max.get(),
        bytes_max: options.queue_bytes_max,
        memory_bytes_max: options.job_memory_bytes_max,
    };
    let record_options = RecordOptions { bytes_max: options.store_bytes_max, ..RecordOptions::STANDARD };
    let is_daemon = options.lifetime == Lifetime::Daemon;
    let table = join_others(options, others).await?;
    let journal = || Arc::new(Journal::new(Arc::clone(opened.space(Space::Jobs))));
    let journal = (is_daemon && table.is_none()).then(journal);
    let queue = match &table {
        Some(table) => Queue::beside(limits, Arc::clone(table)),
        None => Queue::new(limits, journal.clone()),
    };
    Ok(Arc::new(Jobs {
        computing: Computing::new(queue.clone(), is_daemon),
        queue,
        planner: Arc::new(ObservedPlanner::new(planner, metrics.clone())),
        records: Records::with_pins(plans, Arc::clone(&opened.pins), record_options),
        refusals: Refusals::new(options.refusals),
        journal,
        table,
        computes_alone: options.database_when_away == WhenAway::Compute && options.role != ServerRole::Api,
        steps_back: is_daemon,
        bill_of: bill_of(accounts.clone(), access.clone()),
        accounts: accounts.clone(),
        reproducers: Some(open_reproducers(options).await?),
        metrics: metrics.clone(),
        synthesis_count: AtomicU64::new(0),
        large_recalls: Mutex::new(()),
        questions: Questions::default(),
    }))
}

/// Takes part in the jobs of all servers, if others share the store.
async fn join_others(options: &Options, others: Option<&Others>) -> Result<Option<Arc<JobTable>>, StartError> {
    let Some(others) = others.cloned() else { return Ok(None) };
    let (shown, lifetime) = ((name_of_this(), options.role.name().to_owned()), options.refusals.lifetime);
    aside(move || JobTable::open(&others, shown, lifetime)).await.map(|table| Some(Arc::new(table)))
}

/// The name of this server among others, for people.
fn name_of_this() -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("{host}:{}", std::process::id())
}

/// Finds accounts by the rules as they are then.
fn bill_of(accounts: Accounts, access: Access) -> BillOf {
    Box::new(move |identity, tenant| accounts.of(identity, tenant, access.rules().quotas()))
}

/// Learns what is stored, and takes up what an earlier process left unfinished.
pub(super) async fn warm_up(jobs: &Arc<Jobs>) {
    let jobs = Arc::clone(jobs);
    if let Err(error) = spawn_blocking(move || jobs.warm_up()).await {
        // An engine may panic on damaged files; what it can read of them is served all the same.
        tracing::error!(%error, "the store could not be read");
    }
}

/// Does what waits for disks on a thread that may wait.
pub(super) async fn aside<T, E>(work: impl FnOnce() -> Result<T, E> + Send + 'static) -> Result<T, StartError>
where
    T: Send + 'static,
    E: Send + 'static,
    StartError: From<E>,
{
    let done = spawn_blocking(work).await.map_err(|error| StartError::Threads(io::Error::other(error)))?;
    Ok(done?)
}

/// Finds out what is kept of plans that were refused.
async fn open_reproducers(options: &Options) -> Result<Arc<Reproducers>, StartError> {
    let (data_dir, limits) = (options.data_dir.clone(), options.limits);
    aside(move || Ok::<_, StoreError>(Arc::new(Reproducers::of(&data_dir, limits)))).await
}

/// Opens the audit log, if there is to be one.
pub(super) async fn open_audit(
    options: Option<AuditOptions>,
    metrics: Metrics,
) -> Result<Option<AuditLog>, StartError> {
    let Some(options) = options else { return Ok(None) };
    let folder = options.folder.display().to_string();
    aside(move || AuditLog::open(&options, metrics).map_err(|source| StartError::Audit { folder, source }))
        .await
        .map(Some)
}
