//! Summaries of plans: the fields for lists and filters, and their form on the wire.

use std::time::Duration;

use canopy_planner::PlanKey;
use canopy_proto::v1;
use canopy_proto::v1::CollectiveSpec;
use canopy_schedule::CollectiveKind;
use canopy_topology::Ratio;
use canopy_wire::fraction;
use canopy_wire::{collective_of_wire, timestamp};

use crate::clock;
use crate::failure::CallFailure;
use crate::rpc::shared::fields::{COLLECTIVES, Field, Kind};
use crate::rpc::shared::listing::{ListRequest, Listing};
use crate::store::{PlanSummary, Records};
use crate::tenant::Viewer;

/// Summaries read at once.
const BATCH: usize = 1000;

/// What plans are listed by.
pub(in crate::rpc) const FIELDS: &[Field<PlanSummary>] = &[
    Field { name: "name", kind: Kind::Id(|plan| plan.id.clone()) },
    // Its name on the command line.
    Field { name: "id", kind: Kind::Id(|plan| plan.id.clone()) },
    Field {
        name: "collective",
        kind: Kind::Word(COLLECTIVES, |plan| collective_of_wire(plan.collective.kind).map_or("", CollectiveKind::name)),
    },
    Field { name: "algorithm", kind: Kind::Text(|plan| plan.algorithm.clone()) },
    Field { name: "topology", kind: Kind::Text(|plan| plan.topology_hash.clone()) },
    Field { name: "network", kind: Kind::Text(|plan| plan.network.clone()) },
    Field { name: "without", kind: Kind::Text(|plan| plan.without.clone()) },
    Field { name: "ranks", kind: Kind::Number(|plan| plan.ranks.into()) },
    Field { name: "optimality", kind: Kind::Ratio(|plan| ratio(&plan.optimality)) },
    Field { name: "size_bytes", kind: Kind::Number(|plan| plan.size_bytes) },
    Field { name: "created", kind: Kind::Time(|plan| plan.created_ms) },
    Field { name: "last_used", kind: Kind::Time(|plan| plan.last_used_ms) },
    Field { name: "hits", kind: Kind::Number(|plan| plan.hits) },
    Field { name: "tenant", kind: Kind::Text(|plan| plan.tenant.clone()) },
    Field { name: "pinned", kind: Kind::Flag(|plan| plan.pinned) },
];

/// A summary on the wire.
pub(in crate::rpc) fn on_the_wire(records: &Records, summary: PlanSummary) -> Result<v1::PlanSummary, CallFailure> {
    let age = Duration::from_millis(clock::unix_ms().saturating_sub(summary.created_ms));
    Ok(v1::PlanSummary {
        superseded_by: records.successor(&summary)?.unwrap_or_default(),
        age: age.try_into().ok(),
        content_key: summary.key().to_string(),
        name: summary.id,
        collective: Some(CollectiveSpec { kind: summary.collective.kind, root: summary.collective.root }),
        algorithm: summary.algorithm,
        topology_hash: summary.topology_hash,
        ranks: summary.ranks,
        optimality: fraction(&summary.optimality),
        size_bytes: summary.size_bytes,
        create_time: Some(timestamp(summary.created_ms)),
        last_use_time: Some(timestamp(summary.last_used_ms)),
        hits: summary.hits,
        pinned: summary.pinned,
        tenant: summary.tenant,
        network: summary.network,
        without: summary.without,
        formats: summary.formats,
    })
}

/// achieved ÷ bound of a stored plan, which was written by this server's kind.
fn ratio(text: &str) -> Ratio {
    text.parse().or_else(|_| "0".parse()).expect("zero is a ratio")
}

/// The keys of all plans that a filter wants, in their order, and what they come to.
pub(in crate::rpc) fn chosen(
    records: &Records,
    viewer: &Viewer,
    filter: &str,
) -> Result<(Vec<PlanKey>, v1::ArchiveContents), CallFailure> {
    let filter = Listing::new(FIELDS, &ListRequest { filter, ..ListRequest::default() })?;
    let (mut keys, mut contents) = (Vec::new(), v1::ArchiveContents::default());
    for_each_seen(records, viewer, |summary| {
        if filter.accepts(&summary) {
            keys.push(summary.key());
            contents.plans += 1;
            contents.pinned_plans += u64::from(summary.pinned);
            contents.record_bytes += summary.size_bytes;
        }
        Ok(())
    })?;
    Ok((keys, contents))
}

/// Shows every summary that the caller sees to `take`, in order of the keys.
pub(in crate::rpc) fn for_each_seen(
    records: &Records,
    viewer: &Viewer,
    mut take: impl FnMut(PlanSummary) -> Result<(), CallFailure>,
) -> Result<(), CallFailure> {
    for_each(records, |summary| if viewer.sees(&summary.tenant) { take(summary) } else { Ok(()) })
}

/// Shows every summary to `take`, in order of the keys. What is removed meanwhile may or may not be shown.
pub(in crate::rpc) fn for_each(
    records: &Records,
    mut take: impl FnMut(PlanSummary) -> Result<(), CallFailure>,
) -> Result<(), CallFailure> {
    let mut after = None;
    loop {
        let batch = records.list(after, BATCH)?;
        let Some(last) = batch.last() else { return Ok(()) };
        after = Some(last.key());
        batch.into_iter().try_for_each(&mut take)?;
    }
}
