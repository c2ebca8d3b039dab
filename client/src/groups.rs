//! The groups of a job, planned together.

use std::time::Duration;

use canopy_proto::v1::plan_groups_event::Event;
use canopy_proto::v1::{
    ErrorStatus, GroupLengths, GroupLinkLength, GroupPlan, GroupRates, GroupsProgress, GroupsSettled, GroupsStage,
    PlanGroupsEvent, PlanGroupsRequest,
};
use tonic::Streaming;

use crate::client::{Client, within};
use crate::error::{ClientError, from_status};

/// What the groups of a job reach together, the proof, and a plan for each of them.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedGroups {
    /// Times.
    pub rates: GroupRates,
    /// By level, or for the common rate, links with a length; all others have length 0.
    pub lengths: Vec<Vec<GroupLinkLength>>,
    /// The network after faults, a topology file in canopy's JSON; empty if no files were requested.
    pub network: Vec<u8>,
    /// By group, its plan; empty if no files were requested.
    pub plans: Vec<GroupPlan>,
}

/// A round of [`GroupsStream`].
#[derive(Clone, Debug, PartialEq)]
pub struct GroupsRound {
    /// Its number, from 0 on.
    pub round: u64,
    /// What was planned, or why nothing can be on what faults have left.
    pub planned: Result<PlannedGroups, ErrorStatus>,
}

/// The groups of a job, planned together again whenever faults have changed their network.
#[derive(Debug)]
pub struct GroupsStream {
    events: Streaming<PlanGroupsEvent>,
    has_plans: bool,
}

impl Client {
    /// Has the groups of a job planned together; calls `progress` meanwhile. Files are described but not sent.
    ///
    /// `deadline` is as for [`Client::plan`], and covers all of it.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn plan_groups(
        &self,
        request: PlanGroupsRequest,
        deadline: Option<Duration>,
        mut progress: impl FnMut(&GroupsProgress),
    ) -> Result<PlannedGroups, ClientError> {
        let mut service = self.planner.clone();
        let has_plans = !request.outputs.is_empty();
        let request = self.limited(request, deadline);
        let planned = async {
            let failed = |status| from_status(&status, deadline);
            let mut events = service.plan_groups(request).await.map_err(failed)?.into_inner();
            let mut received = Received::default();
            while let Some(message) = events.message().await.map_err(failed)? {
                received.add(message, &mut progress)?;
            }
            received.whole(has_plans)
        };
        within(deadline, planned).await
    }

    /// Has the groups of a job planned together, and again whenever faults have changed their network.
    ///
    /// # Errors
    /// See [`ClientError`]; what is wrong with the request, the first round says.
    pub async fn follow_groups(&self, request: PlanGroupsRequest) -> Result<GroupsStream, ClientError> {
        let has_plans = !request.outputs.is_empty();
        let request = self.limited(request, None);
        let answer = self.planner.clone().follow_groups(request).await;
        let events = answer.map_err(|status| from_status(&status, None))?.into_inner();
        Ok(GroupsStream { events, has_plans })
    }
}

impl GroupsStream {
    /// The next round, once it has come to its end; calls `progress` meanwhile. `None` at the end of the stream.
    ///
    /// # Errors
    /// See [`ClientError`]. The stream has ended then.
    pub async fn next_round(
        &mut self,
        mut progress: impl FnMut(&GroupsProgress),
    ) -> Result<Option<GroupsRound>, ClientError> {
        let mut received = Received::default();
        while let Some(message) = self.events.message().await.map_err(|status| from_status(&status, None))? {
            match message.event {
                Some(Event::Settled(GroupsSettled { round, error: Some(error) })) => {
                    return Ok(Some(GroupsRound { round, planned: Err(error) }));
                }
                Some(Event::Settled(GroupsSettled { round, error: None })) => {
                    return Ok(Some(GroupsRound { round, planned: Ok(received.whole(self.has_plans)?) }));
                }
                _ => received.add(message, &mut progress)?,
            }
        }
        Ok(None)
    }
}

/// What has come so far.
#[derive(Default)]
struct Received {
    rates: Option<GroupRates>,
    lengths: Vec<Vec<GroupLinkLength>>,
    network: Vec<u8>,
    plans: Vec<GroupPlan>,
}

impl Received {
    fn add(&mut self, message: PlanGroupsEvent, progress: &mut impl FnMut(&GroupsProgress)) -> Result<(), ClientError> {
        match message.event {
            Some(Event::Progress(so_far)) => progress(&so_far),
            Some(Event::Rates(found)) => self.rates = Some(found),
            Some(Event::Lengths(more)) => add(&mut self.lengths, more)?,
            Some(Event::Network(more)) => self.network.extend_from_slice(&more.piece),
            Some(Event::Plan(plan)) => {
                self.plans.push(plan);
                progress(&so_far(self.rates.as_ref(), &self.plans));
            }
            // Of a later version.
            Some(Event::Settled(_)) | None => {}
        }
        Ok(())
    }

    fn whole(self, has_plans: bool) -> Result<PlannedGroups, ClientError> {
        let Self { rates, lengths, network, plans } = self;
        let rates = rates.ok_or(ClientError::Protocol { what: "the stream ended without rates" })?;
        if has_plans && plans.len() != group_count(&rates) {
            return Err(ClientError::Protocol { what: "the stream ended before all plans were sent" });
        }
        Ok(PlannedGroups { rates, lengths, network, plans })
    }
}

/// Adds lengths to those of their level. Levels come in order.
fn add(
    lengths: &mut Vec<Vec<GroupLinkLength>>,
    GroupLengths { links, level }: GroupLengths,
) -> Result<(), ClientError> {
    let level = level as usize;
    if level == lengths.len() {
        lengths.push(Vec::new());
    }
    let of_level =
        lengths.get_mut(level).ok_or(ClientError::Protocol { what: "the lengths of a level are missing" })?;
    of_level.extend(links);
    Ok(())
}

fn group_count(rates: &GroupRates) -> usize {
    rates.classes.iter().map(|class| class.groups as usize).sum()
}

fn so_far(rates: Option<&GroupRates>, plans: &[GroupPlan]) -> GroupsProgress {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let total = number(rates.map_or(0, group_count));
    GroupsProgress { stage: GroupsStage::Plan.into(), done: number(plans.len()), total }
}
