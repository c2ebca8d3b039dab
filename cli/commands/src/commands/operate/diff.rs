//! `canopy server plans diff`: in what two cached plans differ.

use canopy_proto::Exact as _;
use canopy_proto::v1::certificate::Kind;
use canopy_proto::v1::{Certificate, GetPlanRequest, Plan, Reach};
use canopy_wire::{format_of_wire, parts_of_wire};
use serde::Serialize;

use crate::exit::Failure;
use crate::form::FormSummary;
use crate::output::print_json;
use crate::placement;
use crate::request::collective_name;
use crate::runtime::format_name;
use crate::stdout::print;
use crate::stored_plan::plan_ids;
use crate::table::Table;

use super::{CommonArgs, ask};

/// Arguments of `diff`.
#[derive(Debug, clap::Args)]
pub(crate) struct DiffArgs {
    /// Plan, such as plans/0123abcd
    #[arg(value_name = "A")]
    a: String,
    /// Another plan
    #[arg(value_name = "B")]
    b: String,
    #[command(flatten)]
    common: CommonArgs,
}

/// JSON object of `diff`.
#[derive(Serialize)]
struct Compared {
    a: String,
    b: String,
    same: bool,
    differences: Vec<Difference>,
}

/// Something that two plans state differently; what only one of them has is empty in the other.
#[derive(Debug, PartialEq, Serialize)]
struct Difference {
    field: String,
    a: String,
    b: String,
}

/// Asks for both plans and compares what they state.
pub(super) async fn run(args: &DiffArgs) -> Result<(), Failure> {
    let names = [args.a.clone(), args.b.clone()];
    let names = plan_ids(&names, &args.common.server, Some(args.common.deadline)).await?;
    let [a, b] = ask(&args.common, async |client, left| {
        let get = async |position: usize| {
            let name = names.get(position).cloned().unwrap_or_default();
            client.get_plan(GetPlanRequest { name, placement: None }, left).await
        };
        Ok([get(0).await?, get(1).await?])
    })
    .await?;
    let differences = differences(&a, &b);
    let same = differences.is_empty();
    if args.common.json {
        return print_json("plans diff", &Compared { a: a.name, b: b.name, same, differences });
    }
    if same {
        return print("no differences");
    }
    let mut table = Table::new(&["FIELD", &a.name, &b.name]);
    differences.into_iter().for_each(|difference| table.row([difference.field, difference.a, difference.b]));
    print(&table.text())
}

/// Every field in which two plans differ, but for their ids and keys, and how long it took to make them.
fn differences(a: &Plan, b: &Plan) -> Vec<Difference> {
    let (a, b) = (facts(a), facts(b));
    let value = |facts: &[(String, String)], field: &str| {
        facts.iter().find(|(name, _)| name == field).map(|(_, value)| value.clone()).unwrap_or_default()
    };
    let only_in_b = b.iter().filter(|(field, _)| !a.iter().any(|(name, _)| name == field));
    let fields = a.iter().chain(only_in_b).map(|(field, _)| field);
    let compared = fields.map(|field| Difference { field: field.clone(), a: value(&a, field), b: value(&b, field) });
    compared.filter(|difference| difference.a != difference.b).collect()
}

/// What a plan states, in the order in which people ask.
fn facts(plan: &Plan) -> Vec<(String, String)> {
    let quality = plan.quality.clone().unwrap_or_default();
    let topology = plan.topology.clone().unwrap_or_default();
    let provenance = plan.provenance.clone().unwrap_or_default();
    let valid = plan.valid_for.unwrap_or_default();
    let collective = plan.collective.unwrap_or_default();
    let kind = collective_name(collective.kind()).unwrap_or("unknown");
    let reach = |of: fn(Reach) -> String| plan.reach.map(of).unwrap_or_default();
    let mut facts = vec![
        ("collective", kind.to_owned()),
        ("root", collective.root.map(|root| root.to_string()).unwrap_or_default()),
        ("topology.hash", topology.hash),
        ("topology.ranks", topology.ranks.to_string()),
        ("topology.nodes", topology.nodes.to_string()),
        ("topology.links", topology.links.to_string()),
        ("rank_map", plan.rank_map.as_ref().map(placement::in_words).unwrap_or_default()),
        ("shares", plan.shares.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")),
        ("algorithm", plan.algorithm.clone()),
        ("version", provenance.version),
        ("algorithm_requested", provenance.algorithm_requested),
        ("form", FormSummary::of(plan).map(|form| form.words()).unwrap_or_default()),
        ("algbw", quality.achieved.exact().to_owned()),
        ("bound", quality.bound.exact().to_owned()),
        ("tight", quality.tight.to_string()),
        ("optimality", quality.optimality.exact().to_owned()),
        ("certificate", quality.certificate.as_ref().map(certificate).unwrap_or_default()),
        ("chunks", plan.chunks_per_rank.to_string()),
        ("steps", plan.steps.to_string()),
        ("depth_mean", reach(|reach| reach.depth_mean.to_string())),
        ("hops_max", reach(|reach| reach.hops_max.to_string())),
        ("hops_mean", reach(|reach| reach.hops_mean.to_string())),
        ("trees", plan.trees.to_string()),
        ("checked", plan.checked.join(" ")),
        ("valid_for.size_bytes_min", valid.size_bytes_min.to_string()),
        ("valid_for.size_bytes_max", valid.size_bytes_max.to_string()),
        ("valid_for.in_place", valid.in_place.to_string()),
        ("valid_for.alignment_elements", valid.alignment_elements.to_string()),
    ]
    .into_iter()
    .map(|(field, value)| (field.to_owned(), value))
    .collect::<Vec<_>>();
    for artifact in &plan.artifacts {
        let mut name = format_name(artifact.format()).to_owned();
        if format_of_wire(artifact.format().into()).is_some_and(|format| format.profiles().len() > 1) {
            name += &format!(" {}", artifact.profile);
        }
        if let Some(instances @ 2..) = artifact.instances {
            name += &format!(" in {instances} instances");
        }
        facts.push((format!("files.{name}.bytes"), artifact.size_bytes.to_string()));
        facts.push((format!("files.{name}.sha256"), artifact.sha256.clone()));
    }
    facts
}

/// A certificate in some words: what adds up to what, over which ranks.
fn certificate(certificate: &Certificate) -> String {
    let ranks = |set: &canopy_proto::v1::NodeSet| set.ranks.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
    match &certificate.kind {
        Some(Kind::Cut(cut)) => {
            let set = cut.set.clone().unwrap_or_default();
            format!("cut {:?} of {} bytes/s, ranks {}", cut.direction(), cut.capacity, ranks(&set)).to_lowercase()
        }
        Some(Kind::Partition(partition)) => {
            let sets: Vec<String> = partition.sets.iter().map(ranks).collect();
            let sets = match parts_of_wire(partition) {
                None => format!("ranks {}", sets.join(" | ")),
                Some(parts) => format!("{} {}", partition.set_count, parts.name()),
            };
            format!("partition of {} bytes/s, {sets}", partition.capacity)
        }
        Some(Kind::Sum(sum)) => {
            format!(
                "sum of {} cuts, {} bytes/s for {} times the message",
                sum.terms.len(),
                sum.capacity,
                sum.data.exact()
            )
        }
        Some(Kind::LpDual(dual)) => {
            format!("lengths on {} links, volume {}, distance {}", dual.lengths.len(), dual.volume, dual.distance)
        }
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use canopy_proto::v1::{Artifact, Quality};

    use canopy_wire::fraction;

    use super::*;

    #[test]
    fn what_is_equal_is_left_out_and_what_only_one_has_is_shown() {
        let file =
            |sha256: &str| Artifact { format: 1, size_bytes: 5, sha256: sha256.to_owned(), ..Artifact::default() };
        let quality = |achieved: &str| Some(Quality { achieved: fraction(achieved), ..Quality::default() });
        let a =
            Plan { name: "plans/a".to_owned(), quality: quality("3"), artifacts: vec![file("x")], ..Plan::default() };
        let b = Plan { name: "plans/b".to_owned(), quality: quality("4"), ..Plan::default() };
        let difference = |field: &str, a: &str, b: &str| {
            let [field, a, b] = [field, a, b].map(str::to_owned);
            Difference { field, a, b }
        };
        assert_eq!(differences(&a, &a), []);
        let expected = [
            difference("algbw", "3", "4"),
            difference("files.json.bytes", "5", ""),
            difference("files.json.sha256", "x", ""),
        ];
        assert_eq!(differences(&a, &b), expected);
        assert_eq!(differences(&b, &a).len(), 3);
    }
}
