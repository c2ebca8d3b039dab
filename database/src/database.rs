//! Connections to a database, and a runtime of their own for them.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{fmt, io};

use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime as PoolRuntime};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::watch;
use tokio_postgres::{AsyncMessage, Client, Config, NoTls};

use crate::address::{Address, Encryption, SCHEMA, reason_of};
use crate::error::DatabaseError;
use crate::tls;

/// Longest time that a server may take to answer the first message.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// Longest time without a sign of life on a connection with something under way.
const SILENCE_LIMIT: Duration = Duration::from_secs(15);
/// Longest time that a call waits for one of the connections.
const POOL_WAIT_LIMIT: Duration = Duration::from_secs(10);

/// What the database says of jobs is said here.
pub(crate) const JOBS_CHANNEL: &str = "canopy_jobs";

/// How a database is used.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where it is.
    pub address: Address,
    /// Most connections, beside the one that hears of changes.
    pub connections: usize,
}

/// Whether a database can be reached, as far as is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// The last attempt succeeded.
    There,
    /// It failed, for this reason.
    Away(String),
}

/// A database. Clones share its connections.
#[derive(Clone)]
pub struct Database {
    shared: Arc<Shared>,
}

struct Shared {
    address: Address,
    config: Config,
    pool: Pool,
    state: watch::Sender<State>,
    /// Is told whenever something has become of a job.
    job_news: watch::Sender<u64>,
    /// Whether the feed keeps trying to reach it. Calls then fail at once while it is away.
    is_watched: AtomicBool,
    runtime: Option<Runtime>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        // It may be dropped where nothing may block.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Database({})", self.shared.address)
    }
}

impl Database {
    /// Gets ready to connect; the first call does.
    ///
    /// # Errors
    /// The roots of certificates cannot be read, or the system refuses a thread.
    pub fn new(options: &Options) -> Result<Self, DatabaseError> {
        let address = options.address.clone();
        let mut config = address.config();
        let stated = config.get_options().unwrap_or_default();
        // To compile a short question takes many times longer than to answer it.
        config
            .options(format!("{stated} -c search_path={SCHEMA} -c statement_timeout=60s -c lock_timeout=20s -c client_min_messages=warning -c jit=off"))
            .application_name("canopyd")
            .tcp_user_timeout(SILENCE_LIMIT)
            .keepalives_idle(SILENCE_LIMIT);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_LIMIT);
        }
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = match address.encryption() {
            Encryption::Off => Manager::from_config(config.clone(), NoTls, recycling),
            Encryption::Verified { roots } => {
                Manager::from_config(config.clone(), tls::connector(roots.as_ref())?, recycling)
            }
        };
        let no_thread = |error: io::Error| DatabaseError::Refused { reason: error.to_string() };
        let pool = Pool::builder(manager).max_size(options.connections).runtime(PoolRuntime::Tokio1);
        let pool = pool.wait_timeout(Some(POOL_WAIT_LIMIT)).create_timeout(Some(CONNECT_LIMIT)).build();
        let pool = pool.map_err(|error| DatabaseError::Refused { reason: error.to_string() })?;
        let mut runtime = Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).thread_name("canopy-database").enable_all().build();
        let runtime = Some(runtime.map_err(no_thread)?);
        let (state, job_news) = (watch::Sender::new(State::There), watch::Sender::new(0));
        let is_watched = AtomicBool::new(false);
        Ok(Self { shared: Arc::new(Shared { address, config, pool, state, job_news, is_watched, runtime }) })
    }

    /// Where it is.
    pub fn address(&self) -> &Address {
        &self.shared.address
    }

    /// Whether it can be reached, as far as is known.
    pub fn state(&self) -> State {
        self.shared.state.borrow().clone()
    }

    /// Does something on one of the connections and waits for it. A connection that has broken without anybody's noticing
    /// is replaced once.
    pub(crate) fn call<T>(&self, work: impl AsyncFn(&Object) -> Result<T, DatabaseError>) -> Result<T, DatabaseError> {
        self.wait(async {
            let mut done = self.attempt(&work).await;
            if done.as_ref().is_err_and(DatabaseError::is_of_connection) && self.state() == State::There {
                done = self.attempt(&work).await;
            }
            done
        })
    }

    /// The same once: for what must not be done twice without a look in between.
    pub(crate) fn call_once<T>(
        &self,
        work: impl AsyncFn(&Object) -> Result<T, DatabaseError>,
    ) -> Result<T, DatabaseError> {
        self.wait(self.attempt(&work))
    }

    /// Does something on one of the connections, once.
    pub(crate) async fn attempt<T>(
        &self,
        work: &impl AsyncFn(&Object) -> Result<T, DatabaseError>,
    ) -> Result<T, DatabaseError> {
        if self.shared.is_watched.load(Ordering::Relaxed)
            && let State::Away(reason) = self.state()
        {
            return Err(DatabaseError::Away { reason });
        }
        let done = async {
            let client = self.shared.pool.get().await.map_err(|error| match error {
                PoolError::Backend(error) => self.not_connected(error.into()),
                error => DatabaseError::Away { reason: reason_of(&error) },
            })?;
            let answer = tokio::select! {
                biased;
                done = work(&client) => Some(done),
                () = self.until_away() => None,
            };
            answer.unwrap_or_else(|| {
                // It may never answer what it was asked, and be asked no more.
                drop(Object::take(client));
                Err(DatabaseError::Away { reason: "it does not answer".to_owned() })
            })
        };
        let done = done.await;
        self.note(&done);
        done
    }

    /// Waits until the feed finds that the database cannot be reached: it may never answer calls under way.
    pub(crate) async fn until_away(&self) {
        if !self.shared.is_watched.load(Ordering::Relaxed) {
            return std::future::pending().await;
        }
        let mut state = self.shared.state.subscribe();
        let _away = state.wait_for(|state| matches!(state, State::Away(_))).await.map(drop);
    }

    /// Is told whenever something has become of a job somewhere.
    pub(crate) fn job_news(&self) -> watch::Receiver<u64> {
        self.shared.job_news.subscribe()
    }

    /// What a connection that was refused means: at the start that something is stated wrongly, later that it may pass.
    pub(crate) fn not_connected(&self, error: DatabaseError) -> DatabaseError {
        match error {
            DatabaseError::Refused { reason } if self.shared.is_watched.load(Ordering::Relaxed) => {
                DatabaseError::Away { reason }
            }
            error => error,
        }
    }

    /// From now on the feed keeps trying to reach the database, and notes whether it can.
    pub(crate) fn begin_to_watch(&self) {
        self.shared.is_watched.store(true, Ordering::Relaxed);
    }

    /// Learns from a result whether the database can be reached.
    pub(crate) fn note<T>(&self, done: &Result<T, DatabaseError>) {
        let state = match done {
            Err(DatabaseError::Away { reason }) => State::Away(reason.clone()),
            Ok(_) | Err(_) => State::There,
        };
        self.shared.state.send_if_modified(|known| {
            let changes = std::mem::discriminant(known) != std::mem::discriminant(&state);
            if changes {
                if matches!(state, State::Away(_)) {
                    // Those that were there may lead nowhere.
                    self.shared.pool.retain(|_, _| false);
                }
                match &state {
                    State::There => tracing::warn!("the database can be reached again"),
                    State::Away(reason) => tracing::error!(reason, "the database cannot be reached; trying again"),
                }
                *known = state;
            }
            changes
        });
    }

    /// A connection by itself, and what drives it, until either is dropped.
    pub(crate) async fn connect(&self) -> Result<Connected, DatabaseError> {
        let config = &self.shared.config;
        match self.shared.address.encryption() {
            Encryption::Off => {
                let (client, connection) = config.connect(NoTls).await?;
                Ok(Connected::driving(client, connection, self.shared.job_news.clone()))
            }
            Encryption::Verified { roots } => {
                let (client, connection) = config.connect(tls::connector(roots.as_ref())?).await?;
                Ok(Connected::driving(client, connection, self.shared.job_news.clone()))
            }
        }
    }

    /// Waits for something on the runtime of the connections. Not to be called from the async runtime.
    pub(crate) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime().block_on(work)
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        self.shared.runtime.as_ref().expect("it goes when this is dropped")
    }
}

/// A connection by itself.
pub(crate) struct Connected {
    pub(crate) client: Client,
    /// Is told whenever the server says that something has changed; closed when the connection is.
    pub(crate) hints: watch::Receiver<u64>,
}

impl Connected {
    fn driving<S, T>(
        client: Client,
        mut connection: tokio_postgres::Connection<S, T>,
        of_jobs: watch::Sender<u64>,
    ) -> Self
    where
        S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
        T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    {
        let (told, hints) = watch::channel(0);
        // It ends with the connection, which ends with the client.
        Handle::current().spawn(async move {
            while let Some(Ok(message)) = std::future::poll_fn(|context| connection.poll_message(context)).await {
                match message {
                    AsyncMessage::Notification(of) if of.channel() == JOBS_CHANNEL => {
                        of_jobs.send_modify(|count| *count += 1)
                    }
                    AsyncMessage::Notification(_) => told.send_modify(|count| *count += 1),
                    _ => {}
                }
            }
        });
        Self { client, hints }
    }
}
