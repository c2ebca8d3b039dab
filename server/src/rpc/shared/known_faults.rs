//! Faults that the server knows, put into requests on their way in: from there on a request says all that it is planned for, and its key,
//! the cache, repairs and provisional plans are those of any request that names the faults itself.

use std::sync::Arc;

use canopy_faults::{Directory, Loss};
use canopy_planner::seen_by;
use canopy_proto::v1::topology_source::Source;
use canopy_proto::v1::{FaultPolicy, PlanSpec, Punctured, TopologySource, Warning};
use canopy_topology::{Rank, TopologyLimits, Transit, participants};
use canopy_wire as wire;
use tonic::{Code, Status};

use crate::failure::{CallFailure, PlanFailure};
use crate::replan::{Audience, Base, Network, Placed, Replanner};
use crate::rpc::shared::sources::see_base;

/// Longest message of a refusal: its status travels in headers.
const MESSAGE_CHARACTERS_MAX: usize = 1500;

/// Known faults that were added to a request, often none.
#[derive(Clone, Debug, Default)]
pub(crate) struct AppliedFaults {
    /// Their number, and the first ones; `None` if there are none.
    words: Option<Arc<str>>,
    /// Why there may be others that another server has acknowledged.
    trouble: Option<Arc<str>>,
}

impl AppliedFaults {
    fn of(losses: &[Loss], replanner: &Replanner) -> Self {
        let words = (!losses.is_empty()).then(|| wire::in_words(losses).into());
        Self { words, trouble: replanner.unlearned().map(Arc::from) }
    }

    /// The warnings of a reply.
    pub(in crate::rpc) fn warnings(&self) -> impl Iterator<Item = Warning> {
        let applied = self.words.iter().map(|words| ("FAULTS_APPLIED", format!("planned around {words}")));
        let outdated = self.trouble.iter().map(|trouble| {
            let text = format!("faults that were just reported to other servers may be missing: {trouble}");
            ("FAULTS_OUTDATED", text)
        });
        applied.chain(outdated).map(|(code, text)| Warning { code: code.to_owned(), text })
    }

    /// The refusal with one more remedy, since the faults may be its cause.
    pub(in crate::rpc) fn explain(&self, status: &Status) -> Status {
        let Some(words) = self.words.as_ref().filter(|_| status.code() == Code::FailedPrecondition) else {
            return status.clone();
        };
        let joint = if status.message().contains("; ") { ", or" } else { ";" };
        let way_out = format!("{joint} ignore {words} (FAULT_POLICY_IGNORE)");
        let room = MESSAGE_CHARACTERS_MAX.saturating_sub(way_out.chars().count());
        let message: String = status.message().chars().take(room).chain(way_out.chars()).collect();
        let details = status.details().to_vec().into();
        Status::with_details_and_metadata(status.code(), message, details, status.metadata().clone())
    }
}

/// Makes a request name the faults that are known of its network, unless it says that they are to be ignored. What is wrong with
/// its topology is left for others to refuse.
pub(in crate::rpc) fn apply(
    replanner: &Replanner,
    request: &mut PlanSpec,
    limits: &TopologyLimits,
) -> Result<AppliedFaults, CallFailure> {
    let policy = wire::fault_policy(request.fault_policy).map_err(PlanFailure::Request)?;
    if policy == FaultPolicy::Ignore {
        return Ok(AppliedFaults::default());
    }
    let losses = known(replanner, request, limits)?;
    if !losses.is_empty() {
        if request.joint.is_some() {
            return Err(CallFailure::JointFaults { faults: wire::in_words(&losses) });
        }
        request.topology = Some(punctured(request.topology.take(), &losses));
    }
    Ok(AppliedFaults::of(&losses, replanner))
}

/// What counts as broken or slow of the network of a request, as far as its ranks see it. Nothing if its topology cannot
/// be read.
fn known(replanner: &Replanner, request: &PlanSpec, limits: &TopologyLimits) -> Result<Vec<Loss>, CallFailure> {
    if !replanner.fault_logs().any_counts() {
        return Ok(Vec::new());
    }
    let source = match request.topology.as_ref().and_then(|topology| topology.source.as_ref()) {
        Some(Source::Punctured(punctured)) => punctured.base.as_deref(),
        _ => request.topology.as_ref(),
    };
    let (key, base) = match see_base(replanner.bases(), source, limits) {
        Ok(found) => found,
        Err(CallFailure::Plan(_) | CallFailure::TopologyUnknown { .. } | CallFailure::NameMalformed { .. }) => {
            return Ok(Vec::new());
        }
        Err(failure) => return Err(failure),
    };
    let network = Network::new(
        key,
        Arc::clone(&base),
        canopy_wire::placed(request).map(Placed::new).as_ref(),
        Audience::of_call(),
    );
    let count = network.count(replanner.fault_logs());
    Ok(seen(&base, request, &count.losses))
}

/// The losses of what the ranks of a request see of its network.
fn seen(base: &Base, request: &PlanSpec, losses: &[Loss]) -> Vec<Loss> {
    let all = || losses.to_vec();
    let is_forwarded = request.transit == i32::from(canopy_proto::v1::GroupTransit::Forward);
    if losses.is_empty() || is_forwarded || (request.ranks.is_empty() && request.placement.is_none()) {
        return all();
    }
    // What cannot be is refused where it is planned for.
    let Ok(slots) = request.placement.as_ref().map(wire::slots).transpose() else { return all() };
    let listed: Vec<Rank> = request.ranks.iter().copied().map(Rank::new).collect();
    let listed = Some(listed.as_slice()).filter(|listed| !listed.is_empty());
    let Ok(seated) = participants(base.topology(), listed, slots.as_deref()) else { return all() };
    let Some(members) = seated.members else { return all() };
    let Ok(part) = base.topology().group(&members, Transit::Unused) else { return all() };
    let directory = Directory::new(base.topology());
    let is_seen = |loss: &&Loss| {
        let faults = directory.resolve(std::slice::from_ref(*loss));
        faults.is_ok_and(|faults| !seen_by(&part, &faults).is_empty())
    };
    losses.iter().filter(is_seen).cloned().collect()
}

/// What losses leave of a network, beside the faults that its source names already.
fn punctured(source: Option<TopologySource>, losses: &[Loss]) -> TopologySource {
    let mut punctured = match source {
        Some(TopologySource { source: Some(Source::Punctured(punctured)) }) => *punctured,
        source => Punctured { base: source.map(Box::new), ..Punctured::default() },
    };
    punctured.faults.extend(losses.iter().map(wire::loss_on_the_wire));
    TopologySource { source: Some(Source::Punctured(Box::new(punctured))) }
}
