//! Forests on every network of `tests/oracle` against values that programs without any code of canopy computed.

use std::fs;
use std::path::Path;

use canopy_schedule::{Collective, CollectiveKind, Shares};
use canopy_synth::{Never, bound};
use canopy_topology::{DocumentFormat, Rate, TopologyLimits, read_document};
use serde_json::Value;

use crate::forest::validator::plan;

#[test]
fn forests_reach_the_optimum_of_the_oracle() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/oracle");
    let text = fs::read_to_string(folder.join("expected.json")).unwrap();
    let Value::Object(expected) = serde_json::from_str(&text).unwrap() else { panic!("an object of topologies") };
    assert_eq!(expected.len(), 33);
    for (name, values) in expected {
        let bytes = fs::read(folder.join(&name).with_extension("yaml")).unwrap();
        let topology = read_document(&bytes, Some(DocumentFormat::Yaml), &TopologyLimits::STANDARD).unwrap().topology;
        let optimum = |kind: CollectiveKind| values[kind.name()].as_str().unwrap().parse::<Rate>().unwrap();
        use CollectiveKind::{Allgather, Allreduce, Broadcast, Reduce, ReduceScatter};
        for kind in [Allgather, ReduceScatter, Broadcast, Reduce] {
            assert_eq!(plan(&topology, kind).algbw, optimum(kind), "{name}, {kind}");
        }
        let both = plan(&topology, Allreduce).algbw;
        let collective = Collective::new(Allreduce, None, topology.rank_count()).unwrap();
        let bound = bound(&topology, collective, &Shares::Equal, &Never).unwrap().upper;
        let is_two_way = topology == topology.transposed();
        if is_two_way {
            assert_eq!(both, bound, "{name}: links are alike in both directions");
        }
        if values["eulerian"] == true {
            // Two phases at the rate of one: at least half of it, more where they load different links.
            let (numerator, denominator) = optimum(Allgather).parts();
            assert!(both >= Rate::new(numerator, denominator * 2_u32).unwrap(), "{name}: allreduce at {both}");
        }
        // The linear program is good to nine digits.
        let best = values["allreduce_lp"].as_f64().unwrap() / 1e9;
        let both = both.gigabytes_per_sec();
        assert!(both <= best * (1.0 + 1e-8), "{name}: {both} beats the optimum");
        // Links one way are divided by a linear program and rounded.
        let least = if is_two_way { 1.0 - 1e-8 } else { 0.999 };
        assert!(both >= best * least, "{name}: {both} misses the optimum {best}");
    }
}
