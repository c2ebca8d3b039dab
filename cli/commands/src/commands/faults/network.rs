//! What faults are about: a topology is read here, so that names are understood before anything is sent; names of a job's network
//! and of machines are for the server to understand.

use canopy_client::RequestId;
use canopy_faults::{Directory, Event, Loss, MeaningError, TargetError};
use canopy_proto::v1::{DocumentFormat, PutTopologyRequest, ReportFaultsRequest, ReportFaultsResponse, TopologySource};
use canopy_topology::{Topology, families, same_word};

use crate::clock::Deadline;
use crate::commands::operate::{CommonArgs, ask};
use crate::commands::topology::download;
use crate::exit::{Failure, words};
use crate::fault_messages;
use crate::input::{self, Source};
use crate::request;

/// T as it is sent, and as it is understood.
#[derive(Debug)]
pub(super) struct Network {
    pub(super) source: TopologySource,
    pub(super) topology: Topology,
}

impl Network {
    /// Reads T, from the server if that keeps it; `needs_server` if what is said of it is for a server.
    pub(super) async fn read(text: &str, common: &CommonArgs, needs_server: bool) -> Result<Self, Failure> {
        let found = input::source(text)?;
        if needs_server && !matches!(found, Source::Here(_)) {
            common.server.require_server().await?;
        }
        let topology = match &found {
            Source::Stored | Source::Cluster(_) => {
                let (_, document) = download(&common.server, common.deadline, text, DocumentFormat::Json).await?;
                input::document(text, document, Deadline::after(Some(common.deadline)))?
            }
            Source::Here(here) => input::read(text, here, Deadline::after(Some(common.deadline)))?,
        };
        Ok(Self { source: request::on_the_wire(text, &found), topology })
    }

    /// The id under which the server keeps it, or the cluster that it is a part of; it is kept from now on if it was not.
    pub(super) async fn id(&self, common: &CommonArgs) -> Result<String, Failure> {
        use canopy_proto::v1::topology_source::Source as Wire;
        if let Some(Wire::Name(id)) = &self.source.source {
            return Ok(id.clone());
        }
        if let Some(Wire::Cluster(part)) = &self.source.source {
            return Ok(part.cluster.clone());
        }
        let request =
            PutTopologyRequest { topology: Some(self.source.clone()), request_id: RequestId::random().to_string() };
        let reply = ask(common, async |client, left| client.put_topology(request.clone(), left).await).await?;
        Ok(reply.topology.unwrap_or_default().name)
    }

    /// Losses by the names that the network knows their elements by.
    pub(super) fn named(&self, losses: &[Loss]) -> Result<Vec<Loss>, Failure> {
        let directory = Directory::new(&self.topology);
        let refused = |loss: &Loss, error: MeaningError| Failure::input(format!("{loss}: {}", words(&error)));
        losses.iter().map(|loss| directory.canonical_loss(loss).map_err(|error| refused(loss, error))).collect()
    }

    /// Reports events, and hands over the answer that has an outcome for each of them.
    pub(super) async fn report(&self, events: &[Event], common: &CommonArgs) -> Result<ReportFaultsResponse, Failure> {
        let topology = Some(self.source.clone());
        send(ReportFaultsRequest { topology, ..ReportFaultsRequest::default() }, events, common).await
    }
}

/// What faults are said of.
#[derive(Debug)]
pub(super) enum Subject {
    /// A topology.
    Topology(Network),
    /// The networks that a job's leases are on.
    Job(String),
    /// Machines, by their names.
    Machines,
}

impl Subject {
    /// Reads names given on a command line, T first where there is one, and the job where one is given.
    pub(super) async fn read(
        names: &[String],
        job: Option<&str>,
        common: &CommonArgs,
    ) -> Result<(Self, Vec<Loss>), Failure> {
        let (topology, faults) = match names.split_first() {
            Some((first, faults)) if job.is_none() && !is_fault(first) => (Some(first), faults),
            _ => (None, names),
        };
        if let Some(text) = topology.filter(|text| is_device(text)) {
            let found = text.split_once('*').map_or(text.as_str(), |(device, _)| device).to_owned();
            return Err(Failure::input(format!("{text}: {}", TargetError::NoKind { found })));
        }
        let refused = |text: &String, error: TargetError| Failure::input(format!("{text}: {error}"));
        let loss = |text: &String| text.parse().map_err(|error| refused(text, error));
        let losses = faults.iter().map(loss).collect::<Result<Vec<Loss>, Failure>>()?;
        match (topology, job) {
            (Some(topology), _) => {
                let network = Network::read(topology, common, true).await?;
                let losses = network.named(&losses)?;
                Ok((Self::Topology(network), losses))
            }
            (None, Some(job)) => Ok((Self::Job(job.to_owned()), losses)),
            (None, None) => Ok((Self::Machines, losses)),
        }
    }

    /// Reports events, and hands over the answer that has an outcome for each of them.
    pub(super) async fn report(&self, events: &[Event], common: &CommonArgs) -> Result<ReportFaultsResponse, Failure> {
        match self {
            Self::Topology(network) => network.report(events, common).await,
            Self::Job(job) => {
                send(ReportFaultsRequest { job: job.clone(), ..ReportFaultsRequest::default() }, events, common).await
            }
            Self::Machines => send(ReportFaultsRequest::default(), events, common).await,
        }
    }

    /// The id of the topology, which the server keeps from now on, and the job; empty where there is none.
    pub(super) async fn on_the_wire(&self, common: &CommonArgs) -> Result<(String, String), Failure> {
        Ok(match self {
            Self::Topology(network) => (network.id(common).await?, String::new()),
            Self::Job(job) => (String::new(), job.clone()),
            Self::Machines => (String::new(), String::new()),
        })
    }

    /// In a word; `topology` is what the server calls it, where it is one.
    pub(super) fn words(&self, topology: &str) -> String {
        match self {
            Self::Topology(_) => topology.to_owned(),
            Self::Job(job) => format!("job {job}"),
            Self::Machines => "machines".to_owned(),
        }
    }
}

/// Whether a text begins as names of faults do, and names of topologies do not.
fn is_fault(text: &str) -> bool {
    const KINDS: [&str; 8] = ["link", "nic", "gpu", "host", "node", "switch", "feature", "plane"];
    text.split_once(':').is_some_and(|(word, _)| KINDS.contains(&word))
}

/// Whether a text names a device of a machine, as in `gpu05:1`, and no network: expressions begin with the name of a family.
fn is_device(text: &str) -> bool {
    let (device, _) = text.split_once('*').unwrap_or((text, ""));
    match device.split_once(':') {
        Some((host, index)) => {
            let is_number = !index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit());
            let is_family = families().any(|family| same_word(family.name, host));
            is_number && !is_family && !std::path::Path::new(text).exists()
        }
        None => false,
    }
}

/// Sends a report.
async fn send(
    request: ReportFaultsRequest,
    events: &[Event],
    common: &CommonArgs,
) -> Result<ReportFaultsResponse, Failure> {
    let request = ReportFaultsRequest { events: events.iter().map(fault_messages::event).collect(), ..request };
    let reply = ask(common, async |client, left| client.report_faults(request.clone(), left).await).await?;
    match reply.outcomes.len() == request.events.len() {
        true => Ok(reply),
        false => Err(Failure::fault("the server does not answer for every event")),
    }
}
