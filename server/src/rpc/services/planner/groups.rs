//! `PlanGroups`: the groups of a job, planned together.
//!
//! | step | where |
//! |---|---|
//! | what is asked for | `canopy_wire`, `asked` |
//! | the network after faults, and the common rate of all groups | `solve` |
//! | what is said of it | `describe` |
//! | a plan for each group in its shares, by the calls that everybody makes | here |
//! | all of it again whenever faults have changed the network | `follow` |

mod asked;
mod describe;
mod follow;
mod solve;

use std::sync::Arc;
use std::time::Instant;

use canopy_proto::v1::plan_groups_event::Event;
use canopy_proto::v1::{GroupPlan, GroupsProgress, GroupsStage, PlanGroupsEvent, PlanGroupsRequest};
use futures_util::StreamExt as _;
use tonic::{Request, Status};

use self::asked::Asked;
pub(super) use self::follow::follow_groups;
use self::solve::{Network, Solved};
use super::PlannerService;
use super::session::Session;
use crate::clock;
use crate::failure::{CallFailure, PlanFailure};
use crate::jobs::computing::Seat;
use crate::rpc::shared::call_pool;
use crate::rpc::shared::events::EventStream;
use crate::rpc::shared::outgoing::{Ended, Outgoing, stream};
use crate::rpc::shared::status::{call_status, in_group};

/// The name of the method.
const METHOD: &str = "PlanGroups";
/// Plans of one call that are made at once.
const AT_ONCE: usize = 4;

/// Begins to plan; the stream ends with the plan of the last group.
pub(super) fn plan_groups(
    service: &PlannerService,
    request: Request<PlanGroupsRequest>,
) -> Result<EventStream<PlanGroupsEvent>, Status> {
    let arrived = clock::now();
    let (headers, _, request) = request.into_parts();
    let asked = read(METHOD, request, arrived)?;
    let deadline = service.deadlines().apply(&headers);
    let call = Call { session: Session::begun(service, headers, arrived, asked.priority), asked: Arc::new(asked) };
    let answer = async move |events: Outgoing<PlanGroupsEvent>| call.round(call.network().await?, &events).await;
    Ok(stream(METHOD, (arrived, deadline), answer))
}

/// The request of a call that arrived then, if its form is right.
fn read(method: &'static str, request: PlanGroupsRequest, arrived: Instant) -> Result<Asked, Status> {
    Asked::read(request).map_err(|error| {
        let failure = CallFailure::from(PlanFailure::Request(error));
        call_pool::log(method, arrived, Some(&failure));
        call_status(&failure)
    })
}

/// One call.
struct Call {
    session: Session,
    asked: Arc<Asked>,
}

impl Call {
    /// The network with the faults that are known now.
    async fn network(&self) -> Result<Network, CallFailure> {
        let (asked, service) = (Arc::clone(&self.asked), self.session.service.clone());
        self.session.compute(self.session.left(), move |seat| Network::read(&service, &asked, &|| seat.is_over())).await
    }

    /// Plans all groups on a network, and sends what comes of it.
    async fn round(&self, network: Network, events: &Outgoing<PlanGroupsEvent>) -> Result<(), Ended> {
        let send = async |event| events.send(PlanGroupsEvent { event: Some(event) }).await;
        let progress =
            |stage: GroupsStage, done, total| Event::Progress(GroupsProgress { stage: stage.into(), done, total });
        let total = u32::try_from(self.asked.stated.job.groups.len()).unwrap_or(u32::MAX);
        send(progress(GroupsStage::Solve, 0, total)).await?;
        let (asked, patience) = (Arc::clone(&self.asked), self.part(3));
        let solved = move |seat: &Seat| solve::solved(network, &asked, patience, seat);
        let solved = self.session.compute(self.session.left(), solved).await?;
        let solved = Arc::new(solved);
        let total = u32::try_from(solved.job.groups.len()).unwrap_or(u32::MAX);
        let others = if self.asked.compares {
            send(progress(GroupsStage::Compare, 0, total)).await?;
            let (solved, transit, patience) = (Arc::clone(&solved), self.asked.transit(), self.part(2));
            let compared = move |seat: &Seat| solved.compared(transit, patience, seat);
            Some(self.session.compute(self.session.left(), compared).await?)
        } else {
            None
        };
        send(Event::Rates(describe::rates(&solved, others.as_ref()))).await?;
        for lengths in describe::lengths(&solved) {
            send(Event::Lengths(lengths)).await?;
        }
        if self.asked.outputs.is_empty() {
            return Ok(());
        }
        for network in describe::network(&solved) {
            send(Event::Network(network)).await?;
        }
        send(progress(GroupsStage::Plan, 0, total)).await?;
        // In their order, whichever is made first.
        let plans = (0..solved.job.groups.len()).map(|group| self.plan(&solved, group));
        let mut plans = std::pin::pin!(futures_util::stream::iter(plans).buffered(AT_ONCE));
        while let Some(plan) = plans.next().await {
            send(Event::Plan(plan?)).await?;
        }
        Ok(())
    }

    /// When one of so many parts of the time that is left has passed. A third of all is for the search, as much for
    /// what it is compared with.
    fn part(&self, parts: u32) -> Instant {
        clock::now() + self.session.left() / parts
    }

    /// Has a group planned in its shares.
    async fn plan(&self, solved: &Arc<Solved>, group: usize) -> Result<GroupPlan, Ended> {
        let (share_of, asked) = (Arc::clone(solved), Arc::clone(&self.asked));
        let request = self.session.compute(self.session.left(), move |_| share_of.request(&asked, group)).await?;
        let name = solved.job.groups.get(group).map_or("", |group| &group.name);
        let reply = self.session.plan_or_status(request, self.session.left()).await;
        let reply = reply.map_err(|status| Ended::Failed(in_group(&status, name)))?;
        Ok(describe::plan(solved, group, reply))
    }
}
