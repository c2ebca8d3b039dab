//! A connection to a server, and the call that streams a plan.

use std::time::Duration;

use canopy_proto::v1::analysis_client::AnalysisClient;
use canopy_proto::v1::faults_client::FaultsClient;
use canopy_proto::v1::leases_client::LeasesClient;
use canopy_proto::v1::networks_client::NetworksClient;
use canopy_proto::v1::operations_client::OperationsClient;
use canopy_proto::v1::plan_event::Event;
use canopy_proto::v1::planner_client::PlannerClient;
use canopy_proto::v1::plans_client::PlansClient;
use canopy_proto::v1::server_client::ServerClient;
use canopy_proto::v1::{Accepted, PlanRequest, PlanResponse, Progress};
use tonic::Streaming;
use tonic::transport::{Channel, Endpoint};

use crate::address::ServerAddress;
use crate::assembly::Assembly;
use crate::credentials::{Credentials, Token};
use crate::error::{ClientError, from_status};
use crate::tenant::Tenant;

/// Longest wait for a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// Idle time before a keep-alive ping, and the time that the server has to answer it.
const KEEP_ALIVE: Duration = Duration::from_secs(20);
/// Extra time after the deadline for the server's own answer.
const DEADLINE_GRACE: Duration = Duration::from_millis(100);

/// Observes a [`Client::plan`] call. Content is checked before it arrives here.
pub trait PlanReceiver: Send {
    /// The request is valid, and its job waits or runs.
    fn accepted(&mut self, _accepted: &Accepted) {}

    /// Progress of the job.
    fn progress(&mut self, _progress: &Progress) {}

    /// A checked plan, better than those before it, while the requested one is still being made.
    fn candidate(&mut self, _reply: &PlanResponse) {}

    /// Receives the plan, before the content of its files.
    ///
    /// # Errors
    /// An error ends the call.
    fn plan(&mut self, reply: &PlanResponse) -> std::io::Result<()>;

    /// Receives the next bytes of the file at this index of `Plan.artifacts`. Files arrive one after another.
    ///
    /// Each piece matches its digest, but the whole file is verified only when [`Client::plan`] returns without an
    /// error. Until then, keep the file from its users.
    ///
    /// # Errors
    /// An error ends the call.
    fn content(&mut self, file: usize, data: &[u8]) -> std::io::Result<()>;
}

/// A connection to a server. Cheap to clone; clones share the connection.
#[derive(Clone, Debug)]
pub struct Client {
    pub(crate) planner: PlannerClient<Channel>,
    pub(crate) plans: PlansClient<Channel>,
    pub(crate) analysis: AnalysisClient<Channel>,
    pub(crate) networks: NetworksClient<Channel>,
    pub(crate) operations: OperationsClient<Channel>,
    pub(crate) server: ServerClient<Channel>,
    pub(crate) faults: FaultsClient<Channel>,
    pub(crate) leases: LeasesClient<Channel>,
    pub(crate) tenant: Option<Tenant>,
    pub(crate) token: Option<Token>,
}

impl Client {
    /// Connects, in at most five seconds.
    ///
    /// # Errors
    /// [`ClientError::Unreachable`] if no server answers at the address; [`ClientError::PathNotText`].
    pub async fn connect(address: &ServerAddress) -> Result<Self, ClientError> {
        Self::connect_with(address, &Credentials::default()).await
    }

    /// The same, showing credentials: `https://` addresses speak TLS.
    ///
    /// # Errors
    /// As [`Client::connect`]; [`ClientError::PlainToken`] if a token would go over a network as plain text.
    pub async fn connect_with(address: &ServerAddress, credentials: &Credentials) -> Result<Self, ClientError> {
        if credentials.token.is_some() && !address.keeps_secrets() {
            return Err(ClientError::PlainToken { address: address.clone() });
        }
        let unreachable = |cause| ClientError::Unreachable { address: address.clone(), cause };
        let uri = address.uri().ok_or_else(|| ClientError::PathNotText { address: address.clone() })?;
        let endpoint = Endpoint::from_shared(uri)
            .map_err(unreachable)?
            .user_agent(concat!("canopy/", env!("CARGO_PKG_VERSION")))
            .map_err(unreachable)?
            .connect_timeout(CONNECT_LIMIT)
            .http2_keep_alive_interval(KEEP_ALIVE)
            .keep_alive_timeout(KEEP_ALIVE);
        let endpoint = match address.has_tls() {
            true => endpoint.tls_config(credentials.tls()).map_err(unreachable)?,
            false => endpoint,
        };
        let channel = endpoint.connect().await.map_err(unreachable)?;
        Ok(Self {
            planner: PlannerClient::new(channel.clone()),
            plans: PlansClient::new(channel.clone()),
            analysis: AnalysisClient::new(channel.clone()),
            networks: NetworksClient::new(channel.clone()),
            operations: OperationsClient::new(channel.clone()),
            server: ServerClient::new(channel.clone()),
            faults: FaultsClient::new(channel.clone()),
            leases: LeasesClient::new(channel),
            tenant: None,
            token: credentials.token.clone(),
        })
    }

    /// A client whose calls belong to this tenant, or to none.
    #[must_use]
    pub fn of_tenant(self, tenant: Option<Tenant>) -> Self {
        Self { tenant, ..self }
    }

    /// Requests a plan and receives it to the last byte of its files. Dropping the future cancels the call.
    ///
    /// `deadline` is sent to the server and also applies here, with 100 ms more for the server's answer; `None` leaves
    /// it to the server's default. It covers the time to the plan, not the transfer of its files.
    ///
    /// # Errors
    /// See [`ClientError`]. After an error, discard the files.
    pub async fn plan(
        &mut self,
        request: PlanRequest,
        deadline: Option<Duration>,
        receiver: &mut dyn PlanReceiver,
    ) -> Result<PlanResponse, ClientError> {
        let request = self.limited(request, deadline);
        let to_the_plan = async {
            let response = self.planner.stream_plan(request).await.map_err(|status| from_status(&status, deadline))?;
            let mut events = Events { stream: response.into_inner(), sequence_next: 0, deadline };
            let reply = follow(&mut events, receiver).await?;
            Ok((events, reply))
        };
        let (mut events, reply) = within(deadline, to_the_plan).await?;
        let artifacts = reply.plan.as_ref().map(|plan| plan.artifacts.as_slice()).unwrap_or_default();
        receiver.plan(&reply).map_err(ClientError::Write)?;
        let mut assembly = Assembly::new(artifacts);
        while let Some(event) = events.next().await? {
            let Event::Content(piece) = event else {
                return Err(ClientError::Protocol { what: "something other than content follows the plan" });
            };
            assembly.accept(&piece)?;
            receiver.content(piece.artifact as usize, &piece.data).map_err(ClientError::Write)?;
        }
        assembly.finish()?;
        Ok(reply)
    }
}

/// Reads events up to the plan.
async fn follow(events: &mut Events, receiver: &mut dyn PlanReceiver) -> Result<PlanResponse, ClientError> {
    while let Some(event) = events.next().await? {
        match event {
            Event::Accepted(accepted) => receiver.accepted(&accepted),
            Event::Progress(progress) => receiver.progress(&progress),
            Event::Candidate(reply) => receiver.candidate(&reply),
            Event::Final(reply) if reply.plan.is_some() => return Ok(reply),
            Event::Final(_) => return Err(ClientError::Protocol { what: "the final event holds no plan" }),
            Event::Content(_) => return Err(ClientError::Protocol { what: "content comes before the plan" }),
        }
    }
    Err(ClientError::Protocol { what: "the stream ended without a plan" })
}

/// The events of one call, checked for gaps.
struct Events {
    stream: Streaming<canopy_proto::v1::PlanEvent>,
    sequence_next: u64,
    deadline: Option<Duration>,
}

impl Events {
    /// The next event of a kind that this client knows; `None` at the end of the stream.
    async fn next(&mut self) -> Result<Option<Event>, ClientError> {
        loop {
            let message = self.stream.message().await.map_err(|status| from_status(&status, self.deadline))?;
            let Some(message) = message else { return Ok(None) };
            if message.sequence != self.sequence_next {
                return Err(ClientError::Protocol { what: "an event is missing from the stream" });
            }
            self.sequence_next += 1;
            if message.event.is_some() {
                return Ok(message.event);
            }
        }
    }
}

/// Waits for some work, but not much longer than its deadline.
pub(crate) async fn within<T>(
    deadline: Option<Duration>,
    work: impl Future<Output = Result<T, ClientError>>,
) -> Result<T, ClientError> {
    match deadline.and_then(|limit| Some((limit, limit.checked_add(DEADLINE_GRACE)?))) {
        Some((limit, wait_max)) => {
            tokio::time::timeout(wait_max, work).await.unwrap_or(Err(ClientError::Deadline { limit }))
        }
        None => work.await,
    }
}
