//! The groups of a job, planned together.

use std::time::Duration;

use canopy_proto::v1::plan_groups_event::Event;
use canopy_proto::v1::{
    GroupLengths, GroupLinkLength, GroupPlan, GroupRates, GroupsProgress, GroupsStage, PlanGroupsRequest,
};

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
            let (mut rates, mut lengths, mut network, mut plans) = (None, Vec::new(), Vec::new(), Vec::new());
            while let Some(message) = events.message().await.map_err(failed)? {
                match message.event {
                    Some(Event::Progress(so_far)) => progress(&so_far),
                    Some(Event::Rates(found)) => rates = Some(found),
                    Some(Event::Lengths(more)) => add(&mut lengths, more)?,
                    Some(Event::Network(more)) => network.extend_from_slice(&more.piece),
                    Some(Event::Plan(plan)) => {
                        plans.push(plan);
                        progress(&so_far(rates.as_ref(), &plans));
                    }
                    // Of a later version.
                    None => {}
                }
            }
            let rates = rates.ok_or(ClientError::Protocol { what: "the stream ended without rates" })?;
            if has_plans && plans.len() != group_count(&rates) {
                return Err(ClientError::Protocol { what: "the stream ended before all plans were sent" });
            }
            Ok(PlannedGroups { rates, lengths, network, plans })
        };
        within(deadline, planned).await
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
