//! What to set in `ncclCollConfig_t` of NCCL 2.31 for a single call, as JSON and as a C header.
//!
//! NCCL matches a selection by prefix: `RING_LL` also selects `RING_LL128`. So the other one is excluded. The selection is
//! advised without force: a call that cannot have it runs as NCCL itself chooses.

use std::fmt::Write as _;

use canopy_schedule::CollectiveKind;
use serde::Serialize;

use super::{channels_of, csv_word, tuner_word};
use crate::nccl::{Algorithm, Protocol, Stock, Version};

/// What to set for the calls of a range of sizes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CollConfig {
    /// NCCL's word for what is called.
    pub collective: &'static str,
    /// Ranks of the communicator.
    pub ranks: u64,
    /// Its machines.
    pub nodes: u32,
    /// Smallest message, in bytes of the whole.
    pub first_bytes: u64,
    /// Largest; all larger ones too, if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_bytes: Option<u64>,
    /// Value of `algSelection`.
    #[serde(rename = "algSelection")]
    pub selection: String,
    /// Value of `maxCTAs`.
    #[serde(rename = "maxCTAs")]
    pub max_ctas: u32,
    /// Value of `forceAlgSelection`.
    #[serde(rename = "forceAlgSelection")]
    pub force: u8,
}

#[derive(Serialize)]
struct Document<'a> {
    library: String,
    rules: &'a [CollConfig],
}

/// NCCL's name for an algorithm with a protocol, as a selection of nothing else.
fn selection(algorithm: Algorithm, protocol: Protocol) -> String {
    let algorithm = match algorithm {
        Algorithm::CollNetDirect | Algorithm::CollNetChain => csv_word(algorithm),
        other => other.name(),
    };
    let [algorithm, protocol] = [algorithm, protocol.name()].map(str::to_ascii_uppercase);
    match protocol.as_str() {
        "LL" => format!("{algorithm}_LL+^{algorithm}_LL128"),
        _ => format!("{algorithm}_{protocol}"),
    }
}

/// What is chosen for these collectives on each of the communicators, by formulas: for each of them every size, once.
pub fn coll_configs(collectives: &[CollectiveKind], communicators: &[Stock]) -> Vec<CollConfig> {
    let mut found = Vec::new();
    for stock in communicators {
        for &kind in collectives {
            let Some(collective) = tuner_word(kind) else { continue };
            found.extend(stock.choices(kind).into_iter().map(|choice| CollConfig {
                collective,
                ranks: stock.ranks(),
                nodes: stock.nodes(),
                first_bytes: choice.first,
                last_bytes: Some(choice.last).filter(|&last| last != u64::MAX),
                selection: selection(choice.algorithm, choice.protocol),
                max_ctas: channels_of(stock, choice.algorithm),
                force: 0,
            }));
        }
    }
    found
}

/// The table as JSON.
pub fn coll_config_json(configs: &[CollConfig], version: Version) -> String {
    let document = Document { library: version.to_string(), rules: configs };
    let mut text = serde_json::to_string_pretty(&document).expect("numbers and text can be written");
    text.push('\n');
    text
}

/// What stands before the table in the header.
const HEAD: &str = "\
#ifndef CANOPY_COLL_ADVICE_H
#define CANOPY_COLL_ADVICE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct canopy_coll_advice {
    const char *collective;
    int ranks;
    int nodes;
    uint64_t first_bytes;
    uint64_t last_bytes;
    const char *alg_selection;
    int max_ctas;
};

/*
 * The row of a call, or NULL. `bytes` are those of the whole message: of an allgather what each rank receives, of a
 * reduce-scatter what each rank sends.
 *
 *     ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;
 *     const struct canopy_coll_advice *advice = canopy_coll_advice(\"allreduce\", ranks, nodes, bytes);
 *     if (advice != NULL) {
 *         config.algSelection = advice->alg_selection;
 *         config.forceAlgSelection = 0;
 *         config.maxCTAs = advice->max_ctas;
 *     }
 */
static inline const struct canopy_coll_advice *canopy_coll_advice(const char *collective, int ranks, int nodes,
                                                                  uint64_t bytes) {
    static const struct canopy_coll_advice table[] = {
";

/// What stands behind it.
const TAIL: &str = "    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        const struct canopy_coll_advice *row = &table[i];
        if (row->ranks == ranks && row->nodes == nodes && row->first_bytes <= bytes && bytes <= row->last_bytes &&
            strcmp(row->collective, collective) == 0) {
            return row;
        }
    }
    return NULL;
}

#endif
";

/// The table as a C header with a function that finds the row of a call; needs no header of NCCL.
pub fn coll_config_header(configs: &[CollConfig], version: Version) -> String {
    let mut text =
        format!("/* What to set in ncclCollConfig_t (NCCL 2.31) for a call, by the formulas of {version}. */\n{HEAD}");
    for CollConfig { collective, ranks, nodes, first_bytes, last_bytes, selection, max_ctas, .. } in configs {
        let last = last_bytes.map_or("UINT64_MAX".to_owned(), |last| format!("UINT64_C({last})"));
        let row = format!(
            "{{\"{collective}\", {ranks}, {nodes}, UINT64_C({first_bytes}), {last}, \"{selection}\", {max_ctas}}}"
        );
        writeln!(text, "        {row},").expect("text takes all");
    }
    text + TAIL
}

#[cfg(test)]
mod tests;
