//! Judges imported plans by the request stored with them.
//!
//! A plan that is consistent with itself may still be filed under the key of a request that it does not answer. So the key is made
//! anew from the request in the record, and the plan compared with the network that this request is about.

use canopy_proto::Exact as _;
use canopy_wire::fraction;
use std::collections::{BTreeMap, VecDeque};

use canopy_plan::read_plan;
use canopy_planner::{PLANNER_CLASS, PlanKey, Request as Order, bound_with_nvls, bounded};
use canopy_proto::v1::certificate::Kind;
use canopy_proto::v1::{self, OutputFormat, Plan};
use canopy_schedule::{Certificate, CollectiveKind, CutDirection, Shares, certified_bound, links_used};
use canopy_service::asked::decode_order;
use canopy_synth::{Never, RootPolicy};
use canopy_topology::{NodeIndex, Rank, Rate, Topology, TopologyLimits, identity_hash};
use canopy_wire as wire;
use canopy_wire::{bits, collective_on_the_wire, slots_on_the_wire, topology_summary};

use crate::jobs::planner::{Planner, Prepared};

/// What is to be done about a plan that is in order as far as it goes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It answers the request whose key it has.
    Sound,
    /// It cannot be told which request it answers, or this server has no use for it.
    Unusable(String),
}

/// Whether a plan answers the request that it is kept with, and has the key of that request. `request` is what
/// [`request`](canopy_service::asked::request) made; `key` is where the plan is filed.
///
/// # Errors
/// What shows that it is not what it says, for people. O(size of the network and of the plan's `json` file).
pub(crate) fn judge_request(
    key: &PlanKey,
    plan: &Plan,
    request: &[u8],
    planner: &dyn Planner,
    limits: &TopologyLimits,
) -> Result<Verdict, String> {
    let provenance = plan.provenance.clone().unwrap_or_default();
    if provenance.planner_class != PLANNER_CLASS {
        let text = format!(
            "it was made by planner class {}, but this server has class {}",
            provenance.planner_class, PLANNER_CLASS
        );
        return Ok(Verdict::Unusable(text));
    }
    if request.is_empty() {
        return Ok(Verdict::Unusable("its request is not stored with it, so its key cannot be computed".to_owned()));
    }
    let Some(order) = decode_order(request) else {
        return Ok(Verdict::Unusable("this version does not know its kind of request".to_owned()));
    };
    let prepared = match planner.prepare(&order, &Never) {
        Ok(prepared) => prepared,
        Err(failure) => return Ok(Verdict::Unusable(format!("this server refuses its request: {failure}"))),
    };
    if prepared.key != *key || plan.name != key.plan_id() {
        return Err(format!("its key is not that of its request, {}", prepared.key));
    }
    let tenant = order.tenant.as_ref().map(|tenant| tenant.as_str()).unwrap_or_default();
    if provenance.tenant != tenant {
        return Err("its tenant differs from that of its request".to_owned());
    }
    answers(plan, &order, &prepared)?;
    judge_quality(plan, &prepared, limits)?;
    judge_with_switches(plan, &prepared)?;
    Ok(Verdict::Sound)
}

/// Whether what a plan says of itself is what was asked for.
fn answers(plan: &Plan, order: &Order, prepared: &Prepared) -> Result<(), String> {
    let network = topology_summary(&prepared.topology, &prepared.topology_key);
    let collective = v1::CollectiveSpec {
        kind: collective_on_the_wire(prepared.collective.kind()).into(),
        root: prepared.collective.root().map(Rank::number),
    };
    let valid_for = plan.valid_for.unwrap_or_default();
    let outputs = order.outputs.iter().map(|&output| wire::target_on_the_wire(output));
    let same_outputs = plan.artifacts.len() == order.outputs.len()
        && outputs.zip(&plan.artifacts).all(|(asked, artifact)| {
            asked.format() == artifact.format()
                && asked.profile.as_ref().is_none_or(|profile| *profile == artifact.profile)
        });
    let wrong = [
        ("topology", plan.topology.as_ref() != Some(&network)),
        ("collective", plan.collective != Some(collective)),
        ("shares", !has_shares_of(plan, order, prepared)),
        ("rank_map", plan.rank_map != prepared.rank_map.as_deref().map(slots_on_the_wire)),
        ("valid_for", valid_for.ranks != network.ranks || valid_for.in_place != order.in_place),
        ("artifacts", !same_outputs),
    ];
    match wrong.iter().find(|(_, is_wrong)| *is_wrong) {
        Some((field, _)) => Err(format!("its field `{field}` does not match its request")),
        None => Ok(()),
    }
}

/// Whether a plan has the shares of its request. If the roots of an allreduce are left to the planner, its plan states how much
/// each rank adds up, which is any part.
fn has_shares_of(plan: &Plan, order: &Order, prepared: &Prepared) -> bool {
    let is_allreduce = prepared.collective.kind() == CollectiveKind::Allreduce;
    if !is_allreduce || !order.shares.is_empty() || order.sums.roots == RootPolicy::Spread {
        return plan.shares == prepared.shares.weights();
    }
    let ranks = prepared.topology.rank_count();
    let found = Shares::in_proportion(prepared.collective, ranks, plan.shares.clone());
    plan.shares.is_empty() || found.is_ok_and(|shares| shares.weights() == plan.shares)
}

/// Whether the bound holds on the network of the request, and a `json` file is for that network.
fn judge_quality(plan: &Plan, prepared: &Prepared, limits: &TopologyLimits) -> Result<(), String> {
    let whole = plan.artifacts.iter().find(|artifact| artifact.format() == OutputFormat::Json);
    if let Some(artifact) = whole {
        let limits = TopologyLimits { bytes_max: usize::MAX, ..*limits };
        let content = artifact.content.as_deref().unwrap_or_default();
        let file = read_plan(content, &limits).map_err(|error| error.to_string())?;
        if identity_hash(&file.topology) != prepared.topology_key.identity {
            return Err("its JSON file is for a different network than its request".to_owned());
        }
        let used = bits(&links_used(&file.topology, &file.schedule));
        if !plan.links_used.is_empty() && plan.links_used != used {
            return Err("its stated links differ from those of its JSON file".to_owned());
        }
        // The bound in it has been proven together with its transfers.
        return Ok(());
    }
    let quality = plan.quality.as_ref().ok_or("it states no quality")?;
    let stated = quality.certificate.as_ref().and_then(|certificate| certificate.kind.as_ref());
    let certificate = certificate(&prepared.topology, stated.ok_or("it has no certificate")?)?;
    let bound = certified_bound(&prepared.topology, prepared.collective, &prepared.shares, &certificate);
    let bound = bound.map_err(|error| format!("its certificate is wrong: {error}"))?;
    let achieved: Rate = quality.achieved.read().ok_or("its rate is wrong")?;
    let optimality = achieved.ratio_to(&bound).ok_or("its bound is zero")?;
    if quality.bound != fraction(&bound) || achieved > bound || quality.optimality != fraction(&optimality) {
        return Err("its certificate does not prove its bound, or its rate exceeds the bound".to_owned());
    }
    Ok(())
}

/// Whether the bound that a plan states for switches that multicast and aggregate is that of its network. Plans of earlier
/// versions state none.
fn judge_with_switches(plan: &Plan, prepared: &Prepared) -> Result<(), String> {
    let stated = plan.quality.as_ref().map(|quality| quality.with_in_network.exact()).unwrap_or_default();
    if stated.is_empty() {
        return Ok(());
    }
    let plain = bounded(prepared, &Never).map_err(|error| error.to_string())?;
    let Prepared { topology, collective, shares, .. } = prepared;
    let found = bound_with_nvls(topology, *collective, shares, &plain, &Never).map_err(|error| error.to_string())?;
    match found {
        Some(found) if found.upper.to_string() == stated => Ok(()),
        _ => Err("its bound with switches that multicast and aggregate is not that of its network".to_owned()),
    }
}

/// Ids of the nodes that a certificate is about.
fn names(stated: &Kind) -> Box<dyn Iterator<Item = &String> + '_> {
    match stated {
        Kind::Cut(cut) => Box::new(cut.set.iter().flat_map(|set| &set.nodes)),
        Kind::Partition(partition) => Box::new(partition.sets.iter().flat_map(|set| &set.nodes)),
        Kind::Sum(sum) => {
            let of_terms = sum.terms.iter().filter_map(|term| term.certificate.as_ref()?.kind.as_ref());
            // A server makes no sum of sums.
            let of_terms = of_terms.filter(|term| !matches!(term, Kind::Sum(_))).flat_map(names);
            Box::new(of_terms.chain(sum.potentials.iter().map(|potential| &potential.node)))
        }
        Kind::LpDual(dual) => Box::new(dual.lengths.iter().flat_map(|length| [&length.from, &length.to])),
    }
}

/// A certificate as it was before it was put on the wire.
fn certificate(topology: &Topology, stated: &Kind) -> Result<Certificate, String> {
    let known = topology.find_nodes(names(stated).map(String::as_str));
    let node = |id: &String| -> Result<NodeIndex, String> {
        let found = known.get(id.as_str()).copied();
        found.ok_or_else(|| "its certificate names a node that its network does not have".to_owned())
    };
    let set = |set: &v1::NodeSet| -> Result<Vec<NodeIndex>, String> {
        let mut nodes = set.nodes.iter().map(node).collect::<Result<Vec<_>, _>>()?;
        nodes.sort_unstable();
        Ok(nodes)
    };
    match stated {
        Kind::Cut(cut) => {
            let direction = match cut.direction() {
                v1::CutDirection::Out => CutDirection::Out,
                v1::CutDirection::In => CutDirection::In,
                v1::CutDirection::Unspecified => return Err("its cut has no direction".to_owned()),
            };
            Ok(Certificate::Cut { direction, nodes: set(cut.set.as_ref().ok_or("its cut has no nodes")?)? })
        }
        Kind::Partition(partition) => {
            let sets = match wire::parts_of_wire(partition) {
                Some(parts) => parts.sets(topology),
                None => partition.sets.iter().map(set).collect::<Result<_, _>>()?,
            };
            Ok(Certificate::Partition { sets })
        }
        Kind::Sum(sum) => {
            let term = |term: &v1::SumTerm| {
                let kind = term.certificate.as_ref().and_then(|certificate| certificate.kind.as_ref());
                match kind {
                    Some(kind @ (Kind::Cut(_) | Kind::Partition(_))) => Ok((term.weight, certificate(topology, kind)?)),
                    _ => Err("its sum holds what is neither a cut nor a partition".to_owned()),
                }
            };
            let potential = |stated: &v1::NodePotential| Ok::<_, String>((node(&stated.node)?, stated.potential));
            let mut potentials = sum.potentials.iter().map(potential).collect::<Result<Vec<_>, _>>()?;
            potentials.sort_unstable();
            Ok(Certificate::Sum { terms: sum.terms.iter().map(term).collect::<Result<_, _>>()?, potentials })
        }
        Kind::LpDual(dual) => {
            let mut stated: BTreeMap<_, VecDeque<u64>> = BTreeMap::new();
            for length in &dual.lengths {
                stated.entry((node(&length.from)?, node(&length.to)?)).or_default().push_back(length.length);
            }
            // Parallel links follow one another, there as here.
            let mut length = |from, to| stated.get_mut(&(from, to)).and_then(VecDeque::pop_front).unwrap_or(0);
            Ok(Certificate::LpDual {
                lengths: topology.links().iter().map(|link| length(link.from, link.to)).collect(),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use canopy_schedule::{Collective, NamedParts};
    use canopy_topology::generate;

    use super::*;

    /// Sets that a network names by itself are not listed where there are more than a thousand.
    #[test]
    fn certificates_come_back_from_the_wire() {
        let many = generate("dgx-h100:boxes=1025", &TopologyLimits::STANDARD).unwrap();
        let few = generate("dgx-h100:boxes=3", &TopologyLimits::STANDARD).unwrap();
        let sent = |topology: &Topology, certificate: &Certificate| {
            let allreduce = Collective::new(CollectiveKind::Allreduce, None, topology.rank_count()).unwrap();
            wire::certificate(topology, allreduce, &Shares::Equal, certificate).kind.unwrap()
        };
        for (topology, are_listed) in [(&few, true), (&many, false)] {
            for parts in NamedParts::ALL {
                let partition = Certificate::Partition { sets: parts.sets(topology) };
                let stated = sent(topology, &partition);
                let Kind::Partition(listed) = &stated else { panic!("{stated:?}") };
                assert_eq!(
                    (listed.sets.len() == listed.set_count as usize, listed.sets.is_empty()),
                    (are_listed, !are_listed)
                );
                assert_eq!(certificate(topology, &stated).as_ref(), Ok(&partition));
            }
            let cut =
                Certificate::Cut { direction: CutDirection::In, nodes: vec![NodeIndex::new(0), NodeIndex::new(7)] };
            assert_eq!(certificate(topology, &sent(topology, &cut)).as_ref(), Ok(&cut));
            let switches = u32::try_from(topology.nodes().len()).unwrap() - 1;
            let potentials = vec![(NodeIndex::new(switches - 1), -2), (NodeIndex::new(switches), 3)];
            let sum = Certificate::Sum {
                terms: vec![(2, Certificate::Partition { sets: NamedParts::Ranks.sets(topology) }), (5, cut)],
                potentials,
            };
            assert_eq!(certificate(topology, &sent(topology, &sum)), Ok(sum));
        }
        // Sets of another kind are listed, however many they are.
        let mut sets = NamedParts::Ranks.sets(&many);
        let last = sets.pop().unwrap();
        sets[0].extend(last);
        let stated = sent(&many, &Certificate::Partition { sets: sets.clone() });
        assert_eq!(certificate(&many, &stated), Ok(Certificate::Partition { sets }));
    }
}
