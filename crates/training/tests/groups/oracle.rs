//! One group of all ranks against values that programs without any code of canopy computed: `tests/oracle` at the root.

use std::fs;
use std::path::Path;

use canopy_training::groups::{GroupKind, GroupOptions, Patience, group_optimum};

use canopy_topology::{DocumentFormat, Topology, TopologyLimits, read_document};
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::Signed as _;
use serde_json::Value;

use crate::networks::{Network, group};

/// Networks, their names, and what is known of them.
fn networks() -> Vec<(String, Topology, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/oracle");
    let text = fs::read_to_string(folder.join("expected.json")).unwrap();
    let Value::Object(expected) = serde_json::from_str(&text).unwrap() else { panic!("an object of topologies") };
    let read = |(name, values): (String, Value)| {
        let bytes = fs::read(folder.join(&name).with_extension("yaml")).unwrap();
        let document = read_document(&bytes, Some(DocumentFormat::Yaml), &TopologyLimits::STANDARD).unwrap();
        (name, document.topology, values)
    };
    expected.into_iter().map(read).collect()
}

/// The proven rate of one group of all ranks in bytes per second.
fn rate(topology: &Topology, kind: GroupKind) -> BigRational {
    let mut network = Network::nodes(u32::try_from(topology.nodes().len()).unwrap());
    for link in topology.links() {
        network.arc(link.from.number(), link.to.number(), link.capacity.bytes_per_sec());
    }
    let ranks = topology.ranks().map(|rank| u32::try_from(rank.index()).unwrap());
    let problem = network.problem(vec![group(kind, ranks.collect(), 1)]);
    let optimum = group_optimum(&problem, GroupOptions::STANDARD, Patience::ENDLESS).unwrap();
    assert_eq!(optimum.rate, optimum.bound);
    optimum.rate
}

#[test]
fn rates_of_trees_and_ways_are_the_fractions_of_the_oracle() {
    let networks = networks();
    assert_eq!(networks.len(), 33);
    for (name, topology, expected) in networks {
        for (kind, key) in [
            (GroupKind::AllGather, "allgather"),
            (GroupKind::ReduceScatter, "reduce-scatter"),
            (GroupKind::Broadcast(0), "broadcast"),
            (GroupKind::Reduce(0), "reduce"),
            (GroupKind::Scatter(0), "scatter"),
            (GroupKind::Gather(0), "gather"),
        ] {
            let expected: BigRational = expected[key].as_str().unwrap().parse().unwrap();
            assert_eq!(rate(&topology, kind), expected, "{name}, {key}");
        }
    }
}

/// These are known in decimals, to a thousandth of a byte per second.
#[test]
fn rates_of_allreduce_and_all_to_all_are_the_decimals_of_the_oracle() {
    for (name, topology, expected) in networks() {
        for (kind, key) in [(GroupKind::AllReduce, "allreduce_lp"), (GroupKind::AllToAll, "all-to-all")] {
            let expected = BigRational::from_float(expected[key].as_f64().unwrap()).unwrap();
            let found = rate(&topology, kind);
            let allowed = BigRational::new(BigInt::from(1), BigInt::from(1000));
            assert!((&found - &expected).abs() <= allowed, "{name}, {key}: {found} instead of {expected}");
        }
    }
}
