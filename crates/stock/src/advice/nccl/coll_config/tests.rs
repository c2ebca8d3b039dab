//! Selections as NCCL reads them.

use crate::nccl::Machine;

use super::*;
use crate::advice::nccl::TUNED;

/// What NCCL 2.31 can select for general kernels.
const NAMES: [&str; 11] = [
    "TREE_LL",
    "TREE_LL128",
    "TREE_SIMPLE",
    "RING_LL",
    "RING_LL128",
    "RING_SIMPLE",
    "COLLNET_DIRECT_SIMPLE",
    "COLLNET_CHAIN_SIMPLE",
    "NVLS_SIMPLE",
    "NVLSTREE_SIMPLE",
    "PAT_SIMPLE",
];

/// Names that a selection leaves: terms at `,`, factors at `+`, `^` for not; each word is a prefix.
fn selected(selection: &str) -> Vec<&'static str> {
    let has = |name: &str, factor: &str| match factor.strip_prefix('^') {
        Some(word) => !name.starts_with(word),
        None => name.starts_with(factor),
    };
    let of_term = |name: &str| selection.split(',').any(|term| term.split('+').all(|factor| has(name, factor)));
    NAMES.into_iter().filter(|name| of_term(name)).collect()
}

#[test]
fn a_selection_leaves_one_algorithm_with_one_protocol() {
    for algorithm in Algorithm::ALL {
        let all = [Protocol::LowLatency, Protocol::LowLatency128, Protocol::Simple];
        let is_plain = matches!(algorithm, Algorithm::Ring | Algorithm::Tree);
        for protocol in all.into_iter().filter(|&protocol| is_plain || protocol == Protocol::Simple) {
            let expected = format!("{}_{}", algorithm.name(), protocol.name()).to_ascii_uppercase();
            let expected = expected.replace("COLLNETDIRECT", "COLLNET_DIRECT").replace("COLLNETCHAIN", "COLLNET_CHAIN");
            assert_eq!(selected(&selection(algorithm, protocol)), [expected]);
        }
    }
}

/// Each size of each collective has one row for each communicator, and it is what is chosen there.
#[test]
fn every_call_has_one_row() {
    for (machine, nodes) in [(Machine::DGX_H100, 4), (Machine::DGX_A100, 2)] {
        let whole = Stock::nccl(Version::Nccl2_31, machine, nodes);
        let communicators = [whole.on(1), whole];
        let configs = coll_configs(&TUNED, &communicators);
        let bounds = configs.iter().flat_map(|config| [config.first_bytes, config.last_bytes.unwrap_or(u64::MAX)]);
        let sizes: Vec<u64> = bounds.flat_map(|size| [size.saturating_sub(1), size, size.saturating_add(1)]).collect();
        for (stock, kind) in communicators.iter().flat_map(|stock| TUNED.map(|kind| (stock, kind))) {
            for &size in &sizes {
                let matching = configs.iter().filter(|config| {
                    config.collective == tuner_word(kind).unwrap()
                        && (config.ranks, config.nodes) == (stock.ranks(), stock.nodes())
                        && config.first_bytes <= size
                        && config.last_bytes.is_none_or(|last| size <= last)
                });
                let found: Vec<&str> = matching.map(|config| config.selection.as_str()).collect();
                let choices = stock.choices(kind);
                let choice = choices.iter().find(|choice| (choice.first..=choice.last).contains(&size)).unwrap();
                assert_eq!(found, [selection(choice.algorithm, choice.protocol)], "{kind} {size}");
            }
        }
        assert!(configs.iter().all(|config| config.force == 0 && (2..=64).contains(&config.max_ctas)));
        let json: serde_json::Value = serde_json::from_str(&coll_config_json(&configs, Version::Nccl2_31)).unwrap();
        assert_eq!(json["library"], "NCCL 2.31");
        assert_eq!(json["rules"].as_array().map(Vec::len), Some(configs.len()));
        assert_eq!(json["rules"][0]["forceAlgSelection"], 0);
    }
}
