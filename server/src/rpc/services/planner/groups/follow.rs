//! `FollowGroups`: the groups of a job, planned together again whenever faults have changed their network.

use std::sync::Arc;
use std::time::Duration;

use canopy_proto::v1::plan_groups_event::Event;
use canopy_proto::v1::{GroupsSettled, PlanGroupsEvent, PlanGroupsRequest, TopologySource};
use tonic::metadata::MetadataMap;
use tonic::{Request, Status};

use super::asked::Asked;
use super::{Call, read};
use crate::clock;
use crate::rpc::services::planner::PlannerService;
use crate::rpc::services::planner::lasting::lasting;
use crate::rpc::services::planner::session::Session;
use crate::rpc::shared::events::EventStream;
use crate::rpc::shared::outgoing::{Ended, Outgoing};
use crate::rpc::shared::status::error_of;

/// The name of the method.
const METHOD: &str = "FollowGroups";
/// How often it is asked whether faults have changed anything.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Begins to plan; the stream goes on until its caller ends it or has gone.
pub(in crate::rpc::services::planner) fn follow_groups(
    service: &PlannerService,
    request: Request<PlanGroupsRequest>,
) -> Result<EventStream<PlanGroupsEvent>, Status> {
    let arrived = clock::now();
    let (headers, extensions, request) = request.into_parts();
    let asked = Arc::new(read(METHOD, request, arrived)?);
    let following = Following { service: service.clone(), headers, asked };
    lasting(METHOD, &service.following, (arrived, &extensions), |events| following.follow(events))
}

/// One stream.
struct Following {
    service: PlannerService,
    headers: MetadataMap,
    asked: Arc<Asked>,
}

impl Following {
    async fn follow(self, events: Outgoing<PlanGroupsEvent>) -> Result<(), Ended> {
        let mut last = None;
        let mut round = 0;
        loop {
            let changes = self.changes();
            let settled = match self.planned(&mut last, &events).await {
                Ok(is_new) => is_new.then_some(None),
                // What cannot be planned at first is wrong; later, faults have made it so.
                Err(Ended::Failed(status)) if round > 0 => {
                    last = None;
                    Some(Some(error_of(&status)))
                }
                Err(ended) => return Err(ended),
            };
            if let Some(error) = settled {
                let settled = Event::Settled(GroupsSettled { round, error });
                events.send(PlanGroupsEvent { event: Some(settled) }).await?;
                round += 1;
            }
            while self.changes() == changes {
                tokio::select! {
                    () = tokio::time::sleep(LOOK_EVERY) => {}
                    () = events.closed() => return Ok(()),
                }
            }
        }
    }

    /// How often known faults have changed.
    fn changes(&self) -> u64 {
        self.service.resolver().replanner.fault_logs().changes()
    }

    /// Plans on the network as it is now, unless it is that of the last round; says whether it has planned.
    async fn planned(
        &self,
        last: &mut Option<Option<TopologySource>>,
        events: &Outgoing<PlanGroupsEvent>,
    ) -> Result<bool, Ended> {
        let session = Session::begun(&self.service, self.headers.clone(), clock::now(), self.asked.priority);
        let call = Call { session, asked: Arc::clone(&self.asked) };
        let network = call.network().await?;
        if last.as_ref().is_some_and(|last| last.as_ref() == network.source()) {
            return Ok(false);
        }
        *last = Some(network.source().cloned());
        call.round(network, events).await?;
        Ok(true)
    }
}
