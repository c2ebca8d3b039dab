//! The topology that faults are about: read here, so that names are understood before anything is sent.

use canopy_client::RequestId;
use canopy_faults::{Directory, Event, Loss, MeaningError};
use canopy_proto::v1::{DocumentFormat, PutTopologyRequest, ReportFaultsReply, ReportFaultsRequest, TopologySource};
use canopy_topology::Topology;

use super::wire;
use crate::clock::Deadline;
use crate::commands::operate::CommonArgs;
use crate::commands::topology::download;
use crate::connection::ask;
use crate::exit::{Failure, words};
use crate::input::{self, Source};
use crate::request;

/// T as it is sent, and as it is understood.
#[derive(Debug)]
pub(super) struct Network {
    pub(super) source: TopologySource,
    pub(super) topology: Topology,
}

impl Network {
    /// Reads T, from the server if that keeps it.
    pub(super) async fn read(text: &str, common: &CommonArgs) -> Result<Self, Failure> {
        let found = input::source(text)?;
        let topology = match &found {
            Source::Stored => {
                let (_, document) = download(&common.server, common.deadline, text, DocumentFormat::Json).await?;
                input::document(text, &document, Deadline::after(Some(common.deadline)))?
            }
            Source::Document(_) | Source::Expression => {
                input::topology_until(text, Deadline::after(Some(common.deadline)))?
            }
        };
        Ok(Self { source: request::on_the_wire(text, found), topology })
    }

    /// The id under which the server keeps it; it does from now on if it did not.
    pub(super) async fn id(&self, common: &CommonArgs) -> Result<String, Failure> {
        use canopy_proto::v1::topology_source::Source as Wire;
        if let Some(Wire::Id(id)) = &self.source.source {
            return Ok(id.clone());
        }
        let request =
            PutTopologyRequest { topology: Some(self.source.clone()), request_id: RequestId::random().to_string() };
        let reply = ask(&common.server, Some(common.deadline), async |connection, left| {
            connection.shared().put_topology(request.clone(), left).await
        })
        .await?;
        Ok(reply.topology.unwrap_or_default().id)
    }

    /// Losses by the names that the network knows their elements by.
    pub(super) fn named(&self, losses: &[Loss]) -> Result<Vec<Loss>, Failure> {
        let directory = Directory::new(&self.topology);
        let refused = |loss: &Loss, error: MeaningError| Failure::input(format!("{loss}: {}", words(&error)));
        losses.iter().map(|loss| directory.canonical_loss(loss).map_err(|error| refused(loss, error))).collect()
    }

    /// Reports events, and hands over the answer that has an outcome for each of them.
    pub(super) async fn report(&self, events: &[Event], common: &CommonArgs) -> Result<ReportFaultsReply, Failure> {
        let events: Vec<_> = events.iter().map(wire::event).collect();
        let request = ReportFaultsRequest { topology: Some(self.source.clone()), events };
        let reply = ask(&common.server, Some(common.deadline), async |connection, left| {
            connection.shared().report_faults(request.clone(), left).await
        })
        .await?;
        match reply.outcomes.len() == request.events.len() {
            true => Ok(reply),
            false => Err(Failure::fault("the server does not answer for every event")),
        }
    }
}
