//! Advice instead of files, for a runtime that cannot load external plans.

use canopy_advice::{Advice, nccl_algorithms, tuner_csv, tuner_word};
use canopy_bundle::{PlanRange, Runtime};
use canopy_nccl::{Machine, Stock, Version};
use canopy_proto::v1;
use tonic::Code;

use super::item::Item;
use super::network::Party;
use super::{env, refusal};

/// Turns what was compared into the configuration of a tuner, and says what that is not.
pub(super) fn advise(parties: &[Party], mut items: Vec<Item>, reply: &mut v1::PlanBundleReply) {
    let text = "NCCL cannot load external plans; this is advice for its tuner, from simulating close equivalents of its own algorithms on this network";
    reply.warnings.retain(|warning| warning.code == "AMBIGUOUS_BUNDLE");
    reply.warnings.push(v1::Warning { code: "RUNTIME_WILL_IGNORE".to_owned(), text: text.to_owned() });
    let mut rows = Vec::new();
    for item in &mut items {
        if tuner_word(item.kind).is_none() {
            let text = format!("NCCL does not ask its tuner about {}", item.kind);
            item.reply.error = Some(refusal(Code::FailedPrecondition, "FORMAT_UNSUPPORTED_BY_RUNTIME", text));
            continue;
        }
        let Some(ladder) = item.ladder() else { continue };
        let party = parties.get(item.party);
        let per_node = party.and_then(|party| party.ranks_per_box).filter(|&ranks| ranks > 0);
        let nodes = per_node.map(|ranks| item.reply.ranks / ranks);
        for PlanRange { candidate, range } in ladder.at(0).to_vec() {
            let Some(name) = item.candidates.get(candidate).map(|candidate| candidate.name) else { continue };
            let named = nccl_algorithms(item.kind).iter().find(|algorithm| algorithm.name() == name);
            let Some(&algorithm) = named else { continue };
            let times = item.compared.as_ref().map(|compared| compared.times_of(name, &item.candidates, range));
            let channels = party.map_or(2, |party| party.nccl.channels());
            rows.push(Advice {
                collective: item.kind,
                ranks: item.reply.ranks,
                nodes,
                first: range.first(),
                last: range.last(),
                algorithm,
                channels,
            });
            item.reply.advice.push(v1::BundleAdvice {
                size_bytes_min: range.first(),
                size_bytes_end: range.end(),
                algorithm: name.to_owned(),
                times: times.unwrap_or_default(),
            });
        }
    }
    let widest = parties.iter().map(|party| party.nccl).max_by_key(Stock::ranks);
    let stock = widest.unwrap_or_else(|| Stock::nccl(Version::default(), Machine::DGX_A100, 1));
    reply.tuner_csv = tuner_csv(&rows, &stock);
    reply.env = env(Runtime::Nccl, &[]);
    reply.items = items.into_iter().map(|item| item.reply).collect();
}
