//! Why items have no file.

use canopy_bundle::Runtime;
use canopy_proto::v1;
use canopy_schedule::CollectiveKind;
use canopy_wire::Code;

use super::item::Item;
use super::network::Party;
use super::refusal;

pub(super) fn ambiguous(text: String) -> v1::ErrorStatus {
    refusal(Code::FailedPrecondition, "AMBIGUOUS_BUNDLE", text)
}

pub(super) fn broken(what: &str) -> v1::ErrorStatus {
    refusal(Code::Internal, "PLANNER_BROKEN", what.to_owned())
}

/// Why none of some communicators may have files where a runtime would run plans for one number of ranks on another.
pub(super) fn mixed_sizes(runtime: Runtime, parties: &[Party]) -> Option<v1::ErrorStatus> {
    let tells_ranks = runtime.rules().is_none_or(|rules| rules.tells_ranks);
    let first = parties.first().filter(|_| !tells_ranks)?.ranks;
    let other = parties.iter().map(|party| party.ranks).find(|&ranks| ranks != first)?;
    Some(ambiguous(format!(
        "{runtime} does not compare rank counts and would run plans for {first} ranks on {other}; request communicators of one size"
    )))
}

/// Why a collective has no files for a runtime, if that is so whatever the network is.
pub(super) fn unnamed(runtime: Runtime, kind: CollectiveKind) -> Option<v1::ErrorStatus> {
    let text = || {
        format!(
            "files for {runtime} cannot state that they are for {kind}, so it would choose none; use another profile"
        )
    };
    let refused = || refusal(Code::FailedPrecondition, "FORMAT_UNSUPPORTED_BY_RUNTIME", text());
    (!runtime.names(kind)).then(refused)
}

/// Gives items that share the files of a failed one its failure.
pub(super) fn inherit(items: &mut [Item]) {
    let failed: Vec<(String, i32, v1::ErrorStatus)> = items
        .iter()
        .filter(|item| item.reply.served_by.is_empty())
        .filter_map(|item| {
            let kind = item.reply.collective.as_ref()?.kind;
            Some((item.reply.communicator.clone(), kind, item.reply.error.clone()?))
        })
        .collect();
    for item in items.iter_mut().filter(|item| !item.reply.served_by.is_empty()) {
        let kind = item.reply.collective.as_ref().map(|collective| collective.kind);
        let found = failed.iter().find(|(name, failed, _)| *name == item.reply.served_by && Some(*failed) == kind);
        item.reply.error = found.map(|(_, _, error)| error.clone());
    }
}
