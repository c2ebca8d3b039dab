//! Bounds against values that programs without any code of canopy computed; see `tests/oracle` at the root.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use canopy_schedule::{Bound, Collective, CollectiveKind, Shares, certified_bound};
use canopy_synth::{Never, bound};
use canopy_topology::{DocumentFormat, Rate, Topology, TopologyLimits, read_document};
use serde_json::Value;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/oracle")
}

/// Every topology of the folder with its expected values.
fn cases() -> Vec<(String, Topology, Value)> {
    let text = fs::read_to_string(folder().join("expected.json")).unwrap();
    let Value::Object(expected) = serde_json::from_str(&text).unwrap() else { panic!("an object of topologies") };
    let read = |(name, values): (String, Value)| {
        let bytes = fs::read(folder().join(&name).with_extension("yaml")).unwrap();
        let document = read_document(&bytes, Some(DocumentFormat::Yaml), &TopologyLimits::STANDARD).unwrap();
        (name, document.topology, values)
    };
    expected.into_iter().map(read).collect()
}

/// The bound, after its certificate has been checked by the part of canopy that finds none.
fn certified(topology: &Topology, kind: CollectiveKind) -> Bound {
    let collective = Collective::new(kind, None, topology.rank_count()).unwrap();
    let bound = bound(topology, collective, &Shares::Equal, &Never).unwrap();
    assert_eq!(
        certified_bound(topology, collective, &Shares::Equal, &bound.certificate),
        Ok(bound.upper.clone()),
        "{kind}"
    );
    assert!(bound.lower <= bound.upper, "{kind}");
    bound
}

#[test]
fn exact_optima_equal_the_oracle() {
    let cases = cases();
    assert_eq!(cases.len(), 33);
    for (name, topology, expected) in cases {
        for kind in [
            CollectiveKind::Allgather,
            CollectiveKind::ReduceScatter,
            CollectiveKind::Broadcast,
            CollectiveKind::Reduce,
            CollectiveKind::Scatter,
            CollectiveKind::Gather,
        ] {
            let optimum: Rate = expected[kind.name()].as_str().unwrap().parse().unwrap();
            let bound = certified(&topology, kind);
            assert_eq!(bound.upper, optimum, "{name}, {kind}");
            assert!(bound.is_tight(), "{name}, {kind}: every file is Eulerian or has no switches");
        }
    }
}

/// All-to-all: the lengths prove what another linear program found, and a flow in whole chunks reaches it.
#[test]
fn all_to_all_bounds_meet_the_linear_program() {
    for (name, topology, expected) in cases() {
        let optimum = expected["all-to-all"].as_f64().unwrap() / 1e9;
        let bound = certified(&topology, CollectiveKind::AllToAll);
        let (lower, upper) = (bound.lower.gigabytes_per_sec(), bound.upper.gigabytes_per_sec());
        assert!((upper / optimum - 1.0).abs() <= 1e-6, "{name}: the bound is {upper}, the optimum {optimum}");
        assert!((lower / optimum - 1.0).abs() <= 2e-6, "{name}: {lower} is reached, the optimum is {optimum}");
    }
}

/// The linear program gives the true optimum, up to rounding: nothing may be below it. On the networks whose links
/// are alike in both directions the partition attains it, as the theorem says; on the other Eulerian ones it does, too.
#[test]
fn allreduce_bounds_meet_the_linear_program() {
    for (name, topology, expected) in cases() {
        let optimum = expected["allreduce_lp"].as_f64().unwrap() / 1e9;
        let bound = certified(&topology, CollectiveKind::Allreduce);
        let (lower, upper) = (bound.lower.gigabytes_per_sec(), bound.upper.gigabytes_per_sec());
        assert!(upper >= optimum * (1.0 - 1e-6), "{name}: the bound {upper} is below the optimum {optimum}");
        assert!(lower <= optimum * (1.0 + 1e-6), "{name}: {lower} can not be reached, the optimum is {optimum}");
        if expected["eulerian"].as_bool().unwrap() {
            assert!(upper <= optimum * (1.0 + 1e-6), "{name}: the bound {upper} misses the optimum {optimum}");
        }
        if !name.starts_with("directed") && !name.starts_with("euler") {
            assert!(bound.is_tight(), "{name}: links are alike in both directions");
        }
    }
}
