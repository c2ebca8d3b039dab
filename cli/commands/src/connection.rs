//! Finds a server to ask: the one that is named, else one on the user's data folder.

mod folder;
mod shown;

use std::path::{Path, PathBuf};
use std::time::Duration;

use canopy_client::{Client, ClientError, ErrorClass, Retries, RetryPolicy, ServerAddress, Tenant};

use crate::clock::{self, Deadline};
use crate::exit::{Failure, words};
use crate::messages::detail;
use crate::request;

use shown::ShownArgs;

use folder::Folder;
pub(crate) use folder::{PATIENCE, held};

/// Most servers on the data folder that may end under a request before it gives up.
const LOSSES_MAX: u32 = 8;

/// Whether another process runs a server on a data folder.
pub(crate) async fn is_served(folder: &Path) -> bool {
    Folder::at(folder).is_served().await
}

/// The data folder that is given, else the user's.
///
/// # Errors
/// No home directory is known.
fn data_folder(given: Option<&PathBuf>) -> Result<PathBuf, Failure> {
    match given.filter(|path| !path.as_os_str().is_empty()) {
        Some(path) => Ok(path.clone()),
        None => canopy_service::data_dir_default().map_err(|error| Failure::input(error.to_string())),
    }
}

/// Which server.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct ServerArgs {
    /// Server to ask: https://host:port, unix:/path or host:port; if not given, one on the data folder
    #[arg(long, value_name = "ADDR", env = "CANOPY_SERVER", hide_env_values = true)]
    server: Option<String>,
    /// Folder of plans, where no server is named [default: $XDG_DATA_HOME/canopy, else ~/.local/share/canopy]
    #[arg(long, value_name = "DIR", env = "CANOPY_DATA_DIR", hide_env_values = true)]
    data_dir: Option<PathBuf>,
    /// Use the data folder itself, even if CANOPY_SERVER names a server
    #[arg(long)]
    local: bool,
    /// Tenant that makes the request, for servers with tenants
    #[arg(long, value_name = "TENANT", env = "CANOPY_TENANT", hide_env_values = true)]
    tenant: Option<String>,
    #[command(flatten)]
    shown: ShownArgs,
}

impl ServerArgs {
    /// Address of the server that is named.
    fn address(&self) -> Option<&str> {
        self.server.as_deref().filter(|text| !text.is_empty() && !self.local)
    }

    /// The data folder, where no server is named. It keeps no tenants apart.
    ///
    /// # Errors
    /// No home directory is known, or the tenant has no valid name.
    pub(crate) fn folder(&self) -> Result<Option<PathBuf>, Failure> {
        self.tenant()?;
        self.address().is_none().then(|| data_folder(self.data_dir.as_ref())).transpose()
    }

    /// The tenant that makes the request, if one is named.
    fn tenant(&self) -> Result<Option<Tenant>, Failure> {
        let tenant = self.tenant.as_deref().filter(|text| !text.is_empty()).map(str::parse).transpose();
        tenant.map_err(|error: canopy_client::NotATenant| Failure::input(error.to_string()))
    }

    /// The server, for people.
    pub(crate) fn in_words(&self) -> String {
        self.address().unwrap_or("the data folder").to_owned()
    }

    /// Whether a server is named, which lives on when the command ends.
    pub(crate) fn names_one(&self) -> bool {
        self.address().is_some()
    }

    /// Makes sure that a server hears of what is said: one that is named, or one that runs on the data folder. One that ended
    /// with the command would keep it for itself. `--local` means the folder all the same.
    ///
    /// # Errors
    /// There is no such server.
    pub(crate) async fn require_server(&self) -> Result<(), Failure> {
        if self.names_one() || self.local || is_served(&data_folder(self.data_dir.as_ref())?).await {
            return Ok(());
        }
        // A program with a server in it says whether one may be run.
        if cfg!(not(feature = "embedded")) {
            return Err(Failure::NoServer);
        }
        let message = "there is no server: none is named, and none runs on the data folder";
        let help = "add `--server ADDR` or set CANOPY_SERVER; `--local` reads and changes the data folder itself";
        Err(Failure::new(ErrorClass::Busy, message).help(help))
    }
}

/// A server that is asked only where one is named.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct NamedServerArgs {
    /// Server to ask, which knows faults: https://host:port, unix:/path or host:port; without one, this program answers
    #[arg(long, value_name = "ADDR", env = "CANOPY_SERVER", hide_env_values = true)]
    server: Option<String>,
    /// Tenant that makes the request, for servers with tenants
    #[arg(long, value_name = "TENANT", env = "CANOPY_TENANT", hide_env_values = true)]
    tenant: Option<String>,
    #[command(flatten)]
    shown: ShownArgs,
}

impl NamedServerArgs {
    /// The server, where one is named.
    pub(crate) fn named(&self) -> Option<ServerArgs> {
        let (server, tenant, shown) = (self.server.clone(), self.tenant.clone(), self.shown.clone());
        let args = ServerArgs { server, data_dir: None, local: false, tenant, shown };
        args.names_one().then_some(args)
    }

    /// The server that is named, else one on the data folder, for what only a server has.
    pub(crate) fn or_folder(&self) -> ServerArgs {
        let data_dir = std::env::var_os("CANOPY_DATA_DIR").map(PathBuf::from);
        let server = self.server.clone();
        ServerArgs { server, data_dir, local: false, tenant: self.tenant.clone(), shown: self.shown.clone() }
    }
}

/// Ways to a server, tried one after another.
#[derive(Debug)]
pub(crate) struct Connections {
    way: Way,
    tenant: Option<Tenant>,
    losses: u32,
}

#[derive(Debug)]
enum Way {
    Named(ServerAddress, ShownArgs),
    Folder(Folder),
}

/// A connection, and what must live as long as it.
#[derive(Debug)]
pub(crate) struct Connection {
    client: Client,
    host: folder::Host,
}

impl Connections {
    /// Decides which server to ask, but asks none yet. An empty address names none.
    pub(crate) fn new(args: &ServerArgs) -> Result<Self, Failure> {
        let way = match args.address() {
            Some(text) => {
                let refuse = |error: canopy_client::AddressError| Failure::input(error.to_string());
                Way::Named(text.parse().map_err(refuse)?, args.shown.clone())
            }
            None => Way::Folder(Folder::at(&data_folder(args.data_dir.as_ref())?)),
        };
        Ok(Self { way, tenant: args.tenant()?, losses: 0 })
    }

    /// Whether there is a server to connect to.
    pub(crate) async fn have_server(&self) -> bool {
        match &self.way {
            Way::Named(..) => true,
            Way::Folder(folder) => folder.has_server().await,
        }
    }

    /// Connects, starting a server in this process if need be.
    pub(crate) async fn open(&self) -> Result<Connection, Failure> {
        match &self.way {
            Way::Named(address, shown) => {
                detail(|| format!("asking the server at {address}"));
                Ok(self.elsewhere(Client::connect_with(address, &shown.read()?).await?))
            }
            Way::Folder(folder) => {
                let (client, host) = folder.open().await?;
                Ok(Connection { client: client.of_tenant(self.tenant.clone()), host })
            }
        }
    }

    /// The same, again and again where a server that is named does not answer.
    pub(crate) async fn open_patiently(&self, retries: &mut Retries, end: Deadline) -> Result<Connection, Failure> {
        match &self.way {
            Way::Named(address, shown) => {
                // Read at each connection: a token that is mounted is renewed from time to time.
                let credentials = shown.read()?;
                let connect = async |_| Client::connect_with(address, &credentials).await;
                Ok(self.elsewhere(retries.run(end.remaining(), connect).await?))
            }
            Way::Folder(_) => self.open().await,
        }
    }

    /// A connection to a server that somebody else runs.
    fn elsewhere(&self, client: Client) -> Connection {
        Connection { client: client.of_tenant(self.tenant.clone()), host: folder::Host::Elsewhere }
    }

    /// Whether the call failed only because another process on the data folder took its server with it as it ended.
    pub(crate) fn may_try_another(&mut self, connection: &Connection, error: &ClientError) -> bool {
        let server_ended = match error {
            ClientError::Lost { .. } => true,
            ClientError::Refused(refusal) => {
                matches!(refusal.reason.as_deref(), Some("DRAINING" | "JOB_STOPPED"))
            }
            _ => false,
        };
        if !(server_ended && connection.is_joined()) {
            return false;
        }
        self.losses += 1;
        self.losses <= LOSSES_MAX
    }
}

/// Why calls came to no answer.
#[derive(Debug)]
pub(crate) enum CallError {
    /// The server refused, or did not answer.
    Server(ClientError),
    /// It went wrong on this machine.
    Here(Failure),
}

impl From<ClientError> for CallError {
    fn from(error: ClientError) -> Self {
        Self::Server(error)
    }
}

impl CallError {
    /// What the user is told, what the server said being put in these words.
    pub(crate) fn told(self, in_words: impl FnOnce(ClientError) -> ClientError) -> Failure {
        match self {
            Self::Server(error) => in_words(error).into(),
            Self::Here(failure) => failure,
        }
    }
}

/// A connection that stays open for calls, and the other ways to a server where it breaks.
#[derive(Debug)]
pub(crate) struct Session {
    connections: Connections,
    connection: Connection,
    retries: Retries,
}

impl Session {
    /// Connects.
    pub(crate) async fn open(args: &ServerArgs) -> Result<Self, Failure> {
        let connections = Connections::new(args)?;
        let connection = connections.open().await?;
        Ok(Self { connections, connection, retries: Retries::new(RetryPolicy::STANDARD, clock::jitter()) })
    }

    /// Makes some calls, all of them again where the server ends under them or is busy.
    ///
    /// `calls` is told what is left of the deadline; it must not matter that a part of it was done before.
    pub(crate) async fn ask<T, F>(&mut self, end: Deadline, mut calls: F) -> Result<T, CallError>
    where
        F: AsyncFnMut(&Connection, Option<Duration>) -> Result<T, CallError>,
    {
        loop {
            let error = match calls(&self.connection, end.remaining()).await {
                Err(CallError::Server(error)) => error,
                outcome => return outcome,
            };
            match self.pause_after(error, end)? {
                Some(pause) => tokio::time::sleep(pause).await,
                None => self.reconnect().await.map_err(CallError::Here)?,
            }
        }
    }

    /// How long to wait after this error before another try, which comes back where there is no use in one; none: the server
    /// has ended, and another one is there to connect to.
    pub(crate) fn pause_after(&mut self, error: ClientError, end: Deadline) -> Result<Option<Duration>, ClientError> {
        if self.connections.may_try_another(&self.connection, &error) {
            return Ok(None);
        }
        let pause = self.retries.pause_after(&error, end.remaining());
        if let Some(pause) = pause {
            detail(|| format!("trying again in {pause:?}: {}", words(&error)));
        }
        pause.map(Some).ok_or(error)
    }

    /// The last try brought something: what fails from here on is tried as often as at first.
    pub(crate) const fn forget_failures(&mut self) {
        self.retries.forget();
    }

    /// Takes another connection in place of the one there is.
    pub(crate) async fn reconnect(&mut self) -> Result<(), Failure> {
        self.connection = self.connections.open().await?;
        Ok(())
    }

    /// The connection, for calls that are made once.
    pub(crate) const fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Ends the server that this process runs, if it does.
    pub(crate) async fn close(self) {
        self.connection.close().await;
    }
}

/// Connects and makes some calls as in [`Session::ask`]. Opening a store counts towards the deadline.
pub(crate) async fn ask<T, F>(args: &ServerArgs, deadline: Option<Duration>, calls: F) -> Result<T, Failure>
where
    F: AsyncFn(&Connection, Option<Duration>) -> Result<T, ClientError>,
{
    ask_about(args, deadline, "T", calls).await
}

/// As [`ask`], with errors that call the network `topology`.
pub(crate) async fn ask_about<T, F>(
    args: &ServerArgs,
    deadline: Option<Duration>,
    topology: &str,
    calls: F,
) -> Result<T, Failure>
where
    F: AsyncFn(&Connection, Option<Duration>) -> Result<T, ClientError>,
{
    let end = Deadline::after(deadline);
    let mut session = Session::open(args).await?;
    let answer = session.ask(end, async |connection, left| Ok(calls(connection, left).await?)).await;
    session.close().await;
    answer.map_err(|error| error.told(|error| request::in_users_words(error, topology)))
}

impl Connection {
    /// The connection, where it is shared.
    pub(crate) const fn shared(&self) -> &Client {
        &self.client
    }

    /// Whether the server is one that this process runs, and which ends with it.
    pub(crate) fn is_own(&self) -> bool {
        self.host.is_here()
    }

    /// Ends the server that this process runs, if it does.
    pub(crate) async fn close(self) {
        drop(self.client);
        self.host.close().await;
    }

    /// Whether another process on the data folder runs the server.
    fn is_joined(&self) -> bool {
        self.host.is_joined()
    }
}
