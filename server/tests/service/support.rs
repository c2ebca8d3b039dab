//! What the tests of the service share: a server on sockets of its own, and a planner that waits for a sign.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use canopy_proto::v1::analysis_client::AnalysisClient;
use canopy_proto::v1::plan_event::Event;
use canopy_proto::v1::planner_client::PlannerClient;
use canopy_proto::v1::plans_client::PlansClient;
use canopy_proto::v1::{
    Collective, CollectiveSpec, OutputFormat, OutputSpec, PlanEvent, PlanRequest, PlanResponse, PlanSpec,
    TopologyDocument, TopologySource, topology_source::Source,
};
use canopy_server::{
    AccessOptions, DrainHandle, Lifetime, Options, Order, Pipeline, PlanFailure, Planner, Prepared, Produced, RunError,
    Server, StartError, Statistics, Watch,
};
use canopy_store::StoreError;
use canopy_synth::Stop;
use canopy_topology::TopologyLimits;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tonic::Status;
use tonic::transport::Channel;

use crate::bare::{Bare, answered, origin};

/// A server with a directory and a port of its own.
pub(crate) struct TestServer {
    pub(crate) statistics: Statistics,
    pub(crate) channel: Channel,
    pub(crate) directory: TempDir,
    address: SocketAddr,
    /// Address of the port for operators.
    pub(crate) admin: SocketAddr,
    pub(crate) drain: DrainHandle,
    stop: oneshot::Sender<()>,
    task: tokio::task::JoinHandle<Result<(), RunError>>,
}

pub(crate) fn options(directory: &TempDir) -> Options {
    Options {
        listen: Some("127.0.0.1:0".parse().unwrap()),
        admin_listen: Some("127.0.0.1:0".parse().unwrap()),
        tls: None,
        access: AccessOptions { rules: None, tokens: directory.path().join("tokens.json"), development: true },
        data_dir: directory.path().to_owned(),
        worker_count: NonZeroUsize::new(2).unwrap(),
        queue_length_max: NonZeroUsize::new(64).unwrap(),
        queue_bytes_max: 64 << 20,
        limits: TopologyLimits { nodes_max: 1000, links_max: 10_000, bytes_max: 1 << 20 },
        default_deadline: Duration::from_secs(30),
        max_deadline: Duration::from_secs(60),
        drain_timeout: Duration::from_secs(10),
        loopback_drain: true,
        lifetime: Lifetime::Daemon,
        ..Options::embedded(directory.path().to_owned())
    }
}

impl TestServer {
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| {}, Arc::new(Pipeline::new(options(&tempfile::tempdir().unwrap()).limits))).await
    }

    pub(crate) async fn start_with(change: impl FnOnce(&mut Options), planner: Arc<dyn Planner>) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), change, planner).await
    }

    pub(crate) async fn start_in(
        directory: TempDir,
        change: impl FnOnce(&mut Options),
        planner: Arc<dyn Planner>,
    ) -> Self {
        let mut options = options(&directory);
        change(&mut options);
        // Connections of a server that has ended hold its directory for a moment longer.
        let mut tries = 0;
        let server = loop {
            match Server::build_with(options.clone(), Arc::clone(&planner)).await {
                Err(StartError::Store(StoreError::InUse { .. })) if tries < 500 => tries += 1,
                built => break built.unwrap(),
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        let address = server.tcp_address().unwrap();
        let (statistics, drain) = (server.statistics(), server.drain_handle());
        let admin = server.admin_address().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let task = spawn(server.run(async {
            let _said = stopped.await;
        }));
        let channel = Channel::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap();
        Self { statistics, channel, directory, address, admin, drain, stop, task }
    }

    pub(crate) fn client(&self) -> PlannerClient<Channel> {
        PlannerClient::new(self.channel.clone()).max_decoding_message_size(64 << 20)
    }

    pub(crate) fn plans(&self) -> PlansClient<Channel> {
        PlansClient::new(self.channel.clone()).max_decoding_message_size(64 << 20)
    }

    pub(crate) fn analysis(&self) -> AnalysisClient<Channel> {
        AnalysisClient::new(self.channel.clone()).max_decoding_message_size(64 << 20)
    }

    /// A client that keeps no deadline itself: whoever states one to it waits for what the server says.
    pub(crate) async fn bare(&self) -> PlannerClient<Bare> {
        Bare::planner(self.address).await
    }

    /// The same for stored plans.
    pub(crate) async fn bare_plans(&self) -> PlansClient<Bare> {
        PlansClient::with_origin(Bare::connect(self.address).await, origin(self.address))
    }

    /// Ends the server in order and hands back its directory.
    pub(crate) async fn stop(self) -> TempDir {
        // One that was drained has ended by itself.
        let _said = self.stop.send(());
        drop(self.channel);
        self.task.await.unwrap().unwrap();
        self.directory
    }
}

#[expect(clippy::disallowed_methods, reason = "tests own their tasks")]
pub(crate) fn spawn<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> tokio::task::JoinHandle<T> {
    tokio::spawn(future)
}

/// A request for the json plan of an allgather on a generator expression.
pub(crate) fn request(expression: &str) -> PlanSpec {
    PlanSpec {
        topology: Some(TopologySource { source: Some(Source::Expression(expression.to_owned())) }),
        collective: Some(CollectiveSpec { kind: Collective::Allgather.into(), root: None }),
        ..PlanSpec::default()
    }
}

/// The same on the text of a topology file.
pub(crate) fn document_request(format: canopy_proto::v1::DocumentFormat, content: &str) -> PlanSpec {
    let document = TopologyDocument { format: format.into(), content: content.to_owned().into() };
    PlanSpec { topology: Some(TopologySource { source: Some(Source::Document(document)) }), ..request("") }
}

pub(crate) fn both_outputs() -> Vec<OutputSpec> {
    [OutputFormat::Json, OutputFormat::MscclXml]
        .into_iter()
        .map(|format| OutputSpec {
            format: format.into(),
            profile: None,
            instancing: None,
            plain_channels: false,
            max_layers: None,
        })
        .collect()
}

/// Works like the real planner: where it holds something back, once the gate is open or nobody waits.
pub(crate) struct GatedPlanner {
    inner: Pipeline,
    gate: Arc<Gate>,
    holds_back: fn(&Order) -> bool,
    held: Held,
}

/// What is held back of an order.
#[derive(PartialEq, Eq)]
enum Held {
    Reading,
    Planning,
}

/// Closed until it is opened; knows how many have come, and how many were told to go.
#[derive(Default)]
pub(crate) struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Default)]
struct GateState {
    open: bool,
    arrived: usize,
    stopped: usize,
}

impl Gate {
    pub(crate) fn open(&self) {
        self.state.lock().unwrap().open = true;
        self.changed.notify_all();
    }

    pub(crate) fn close(&self) {
        self.state.lock().unwrap().open = false;
    }

    /// Waits until so many planners have come, and so many were stopped.
    pub(crate) fn wait_for(&self, arrived: usize, stopped: usize) {
        let limit = Duration::from_secs(20);
        let state = self.state.lock().unwrap();
        let pending = |state: &mut GateState| state.arrived < arrived || state.stopped < stopped;
        let (_state, result) = self.changed.wait_timeout_while(state, limit, pending).unwrap();
        assert!(!result.timed_out(), "the planners came or went in time");
    }

    /// Waits until it is open, or nobody waits any more.
    pub(crate) fn pass(&self, stop: &dyn Stop) {
        let mut state = self.state.lock().unwrap();
        state.arrived += 1;
        self.changed.notify_all();
        while !state.open {
            if stop.is_requested() {
                state.stopped += 1;
                self.changed.notify_all();
                return;
            }
            state = self.changed.wait_timeout(state, Duration::from_millis(5)).unwrap().0;
        }
    }
}

impl GatedPlanner {
    /// Holds back everything.
    pub(crate) fn new() -> (Arc<Self>, Arc<Gate>) {
        Self::holding(|_| true)
    }

    /// Holds back some.
    pub(crate) fn holding(holds_back: fn(&Order) -> bool) -> (Arc<Self>, Arc<Gate>) {
        Self::made(holds_back, Held::Planning)
    }

    /// Holds back some before they are read.
    pub(crate) fn holding_unread(holds_back: fn(&Order) -> bool) -> (Arc<Self>, Arc<Gate>) {
        Self::made(holds_back, Held::Reading)
    }

    fn made(holds_back: fn(&Order) -> bool, held: Held) -> (Arc<Self>, Arc<Gate>) {
        let gate = Arc::new(Gate::default());
        let inner = Pipeline::new(TopologyLimits::STANDARD);
        (Arc::new(Self { inner, gate: Arc::clone(&gate), holds_back, held }), gate)
    }
}

impl Planner for GatedPlanner {
    fn prepare(&self, order: &Order, stop: &dyn Stop) -> Result<Prepared, PlanFailure> {
        if self.held == Held::Reading && (self.holds_back)(order) {
            self.gate.pass(stop);
        }
        self.inner.prepare(order, stop)
    }

    fn produce(
        &self,
        order: &Order,
        prepared: &Prepared,
        stop: &dyn Stop,
        watch: &dyn Watch,
    ) -> Result<Produced, PlanFailure> {
        if self.held == Held::Planning && (self.holds_back)(order) {
            watch.stage("trees", 1, 2);
            self.gate.pass(stop);
            if stop.is_requested() {
                return Err(PlanFailure::Stopped);
            }
        }
        self.inner.produce(order, prepared, stop, watch)
    }
}

/// A finished stream: its events, the header among them, and its files.
pub(crate) struct Streamed {
    pub(crate) events: Vec<PlanEvent>,
    pub(crate) header: PlanResponse,
    pub(crate) files: Vec<Vec<u8>>,
}

/// What a stream comes to; deadlines are kept by the server alone.
pub(crate) async fn stream(
    server: &TestServer,
    request: impl tonic::IntoRequest<PlanRequest>,
) -> Result<Streamed, Status> {
    answered(streamed(server.bare().await, request)).await
}

async fn streamed(
    mut client: PlannerClient<Bare>,
    request: impl tonic::IntoRequest<PlanRequest>,
) -> Result<Streamed, Status> {
    let mut incoming = client.stream_plan(request).await?.into_inner();
    let (mut events, mut header, mut files) = (Vec::new(), None, Vec::new());
    while let Some(event) = incoming.message().await? {
        events.push(event.clone());
        match event.event.unwrap() {
            Event::Final(reply) => {
                files = vec![Vec::new(); reply.plan.as_ref().unwrap().artifacts.len()];
                header = Some(reply);
            }
            Event::Content(piece) => {
                let file: &mut Vec<u8> = &mut files[piece.artifact as usize];
                assert_eq!(piece.offset, file.len() as u64, "pieces come in order");
                assert!(piece.data.len() <= 256 << 10);
                assert_eq!(piece.sha256, sha256(&piece.data));
                file.extend_from_slice(&piece.data);
            }
            Event::Accepted(_) | Event::Progress(_) | Event::Candidate(_) => {
                assert!(header.is_none(), "progress comes before the end");
            }
        }
    }
    Ok(Streamed { events, header: header.expect("a stream that ends well has a header"), files })
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
