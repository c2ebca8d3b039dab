//! Advice instead of files, for a runtime that cannot load external plans: the table that `canopy tools advise` writes for the same
//! communicators, by the library's own formulas.

use canopy_bundle::{ByteRange, Runtime};
use canopy_proto::v1;
use canopy_schedule::CollectiveKind;
use canopy_stock::advice::{nccl_csv, rccl_csv, tuner_word};
use canopy_stock::nccl::{Choice, Stock, Version};
use canopy_wire::Code;

use super::item::Item;
use super::network::Party;
use super::{env, refusal};

/// Writes the table of a tuner, says what it has for the sizes asked for, and what it is not.
pub(super) fn advise(parties: &[Party], sizes: ByteRange, mut items: Vec<Item>, reply: &mut v1::PlanBundleResponse) {
    let text =
        "NCCL cannot load external plans; this is advice for its tuner: what its own formulas choose on this network";
    reply.warnings.retain(|warning| warning.code == "AMBIGUOUS_BUNDLE");
    reply.warnings.push(v1::Warning { code: "RUNTIME_WILL_IGNORE".to_owned(), text: text.to_owned() });
    let mut collectives: Vec<CollectiveKind> = Vec::new();
    let mut communicators: Vec<Stock> = Vec::new();
    for item in &mut items {
        if tuner_word(item.kind).is_none() {
            let text = format!("NCCL does not ask its tuner about {}", item.kind);
            item.reply.error = Some(refusal(Code::FailedPrecondition, "FORMAT_UNSUPPORTED_BY_RUNTIME", text));
            continue;
        }
        let Some(party) = parties.get(item.party).filter(|_| item.is_own()) else { continue };
        if !collectives.contains(&item.kind) {
            collectives.push(item.kind);
        }
        if !communicators.contains(&party.nccl) {
            communicators.push(party.nccl);
        }
        item.reply.advice = ranges(&party.nccl, item.kind, sizes);
    }
    let is_rccl = communicators.iter().any(|stock| stock.version() == Version::Rccl2_21);
    let table = if is_rccl { rccl_csv } else { nccl_csv };
    reply.tuner_csv = table(&collectives, &communicators);
    reply.env = env(Runtime::Nccl, &[]);
    reply.items = items.into_iter().map(|item| item.reply).collect();
}

/// What is chosen for sizes in a range, with the times of its ends by formulas.
fn ranges(stock: &Stock, kind: CollectiveKind, sizes: ByteRange) -> Vec<v1::BundleAdvice> {
    let mut found: Vec<v1::BundleAdvice> = Vec::new();
    for Choice { first, last, algorithm, protocol } in stock.choices(kind) {
        let (first, last) = (first.max(sizes.first()), last.min(sizes.last()));
        if first > last {
            continue;
        }
        let time = |size_bytes: u64| {
            let time_ps = stock.time_ps(kind, algorithm, protocol, size_bytes)?;
            Some(v1::PredictedTime { size_bytes, time_ps: u64::try_from(time_ps).unwrap_or(u64::MAX) })
        };
        let times: Vec<v1::PredictedTime> = [first, last].into_iter().filter_map(time).collect();
        match found.last_mut() {
            // Protocols are not told apart here.
            Some(before) if before.algorithm == algorithm.name() => {
                before.size_bytes_end = last.saturating_add(1);
                before.times.extend(times.into_iter().skip(1));
            }
            _ => found.push(v1::BundleAdvice {
                size_bytes_min: first,
                size_bytes_end: last.saturating_add(1),
                algorithm: algorithm.name().to_owned(),
                times,
            }),
        }
    }
    found
}
