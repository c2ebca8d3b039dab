//! Every collective by `direct` and `ring` on the networks of `tests/oracle`, directed ones, and random ones.

use std::fs;
use std::path::Path;

use canopy_schedule::CollectiveKind;
use canopy_synth::Algorithm;
use canopy_topology::{
    Capacity, DocumentFormat, Latency, Rate, Topology, TopologyDraft, TopologyLimits, read_document,
};
use proptest::prelude::*;
use serde_json::Value;

use crate::named::judge::plan;

/// Accepted, no better than the bound, and in all-to-all no better than the optimum that another program found.
#[test]
fn schedules_on_the_oracle_are_right() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/oracle");
    let text = fs::read_to_string(folder.join("expected.json")).unwrap();
    let Value::Object(expected) = serde_json::from_str(&text).unwrap() else { panic!("an object of topologies") };
    assert_eq!(expected.len(), 33);
    for (name, values) in expected {
        let bytes = fs::read(folder.join(&name).with_extension("yaml")).unwrap();
        let topology = read_document(&bytes, Some(DocumentFormat::Yaml), &TopologyLimits::STANDARD).unwrap().topology;
        for (kind, algorithm) in
            CollectiveKind::ALL.into_iter().flat_map(|kind| [(kind, Algorithm::Direct), (kind, Algorithm::Ring)])
        {
            for root in [0, topology.rank_count() - 1] {
                let algbw = plan(&topology, algorithm, kind, root).algbw;
                assert!(!algbw.is_zero());
                if kind == CollectiveKind::AllToAll {
                    // The linear program is good to nine digits.
                    let best = values[kind.name()].as_f64().unwrap() / 1e9;
                    assert!(algbw.gigabytes_per_sec() <= best * (1.0 + 1e-8), "{name}, {algorithm}: {algbw}");
                }
            }
        }
    }
}

/// Gather and scatter by flow reach the bound on every network, balanced or not, from every root.
#[test]
fn flows_on_the_oracle_are_optimal() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/oracle");
    let text = fs::read_to_string(folder.join("expected.json")).unwrap();
    let Value::Object(expected) = serde_json::from_str(&text).unwrap() else { panic!("an object of topologies") };
    for name in expected.keys() {
        let bytes = fs::read(folder.join(name).with_extension("yaml")).unwrap();
        let topology = read_document(&bytes, Some(DocumentFormat::Yaml), &TopologyLimits::STANDARD).unwrap().topology;
        for (kind, root) in [CollectiveKind::Gather, CollectiveKind::Scatter]
            .into_iter()
            .flat_map(|kind| (0..topology.rank_count()).map(move |root| (kind, root)))
        {
            let judged = plan(&topology, Algorithm::Auto, kind, root);
            assert_eq!(judged.algbw, judged.bound, "{name}, {kind} of root {root}");
            assert_eq!(judged.schedule.algorithm, "flow");
        }
    }
}

/// A star is as fast as its slowest spoke lets it be, and direct gets there: each spoke carries N−1 shares each way.
#[test]
fn direct_is_optimal_on_stars() {
    let spokes = [4_u64, 4, 7, 9, 5];
    let mut draft = TopologyDraft::default();
    draft.add_switch("s");
    for (spoke, capacity) in spokes.into_iter().enumerate() {
        draft.add_compute(format!("r{spoke}"));
        let capacity = Capacity::from_bytes_per_sec(capacity).unwrap();
        draft.add_both(&format!("r{spoke}"), "s", capacity, Latency::from_nanos(0));
    }
    let topology = draft.build(&TopologyLimits::STANDARD).unwrap();
    for kind in [CollectiveKind::Allgather, CollectiveKind::ReduceScatter] {
        let judged = plan(&topology, Algorithm::Direct, kind, 0);
        assert_eq!(judged.algbw, Rate::new(5_u32 * 4, 4_u32).unwrap(), "{kind}");
        assert_eq!(judged.bound, judged.algbw, "{kind}");
    }
}

/// Directed links without loops, `n` ranks first.
fn directed(ranks: u32, nodes: u32, links: impl IntoIterator<Item = (u32, u32, u64)>) -> Topology {
    let id = |node: u32| format!("n{node:02}");
    let mut draft = TopologyDraft::default();
    for node in 0..nodes {
        if node < ranks { draft.add_compute(id(node)) } else { draft.add_switch(id(node)) }
    }
    for (from, to, capacity) in links.into_iter().filter(|(from, to, _)| from != to) {
        let capacity = Capacity::from_bytes_per_sec(capacity).unwrap();
        draft.add_link(id(from), id(to), capacity, Latency::from_nanos(0));
    }
    draft.build(&TopologyLimits::STANDARD).unwrap()
}

/// Generalised Kautz graphs (Imase and Itoh): u → −d·u − a mod n for a = 1 … d.
#[test]
fn one_way_networks_have_rings() {
    for (ranks, degree) in [(6_u32, 2), (12, 2), (12, 3), (20, 4), (24, 2)] {
        let arc = |u: u32| (1..=degree).map(move |a| (u, (ranks * degree - degree * u + ranks - a) % ranks, 1));
        let topology = directed(ranks, ranks, (0..ranks).flat_map(arc));
        for kind in CollectiveKind::ALL {
            let direct = plan(&topology, Algorithm::Direct, kind, 1);
            let ring = plan(&topology, Algorithm::Ring, kind, 1);
            if kind == CollectiveKind::Allgather {
                // A cycle through all ranks: N−1 shares over each of its links.
                assert!(ring.algbw >= Rate::new(ranks, ranks - 1).unwrap(), "{ranks}, {degree}: {}", ring.algbw);
                assert!(direct.algbw > ring.algbw, "{ranks}, {degree}: {}", direct.algbw);
            }
        }
    }
}

/// A closed walk over all nodes, ranks and switches in any order, and any other links: ranks reach each other, and not
/// much more is sure.
fn connected() -> impl Strategy<Value = Topology> {
    (2_u32..8, 0_u32..5).prop_flat_map(|(ranks, switches)| {
        let nodes = ranks + switches;
        let tour = (Just((0..nodes).collect::<Vec<_>>()).prop_shuffle(), 1_u64..9);
        let links = proptest::collection::vec((0..nodes, 0..nodes, 1_u64..9), 0..16);
        (tour, links, any::<bool>()).prop_map(move |((tour, capacity), mut links, both_ways)| {
            let next = tour.iter().cycle().skip(1);
            links.extend(tour.iter().zip(next).map(|(&from, &to)| (from, to, capacity)));
            if both_ways {
                let back: Vec<_> = links.iter().map(|&(from, to, capacity)| (to, from, capacity)).collect();
                links.extend(back);
            }
            directed(ranks, nodes, links)
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// A flow fills a cut: nothing else limits what one rank sends to the others, or gets from them.
    #[test]
    fn flows_on_random_networks_are_optimal(topology in connected(), root in 0..8_u32) {
        for kind in [CollectiveKind::Gather, CollectiveKind::Scatter] {
            let judged = plan(&topology, Algorithm::Flow, kind, root % topology.rank_count());
            prop_assert_eq!(judged.algbw, judged.bound);
        }
    }

    /// Accepted by the checker and within the bound, for every collective and root.
    #[test]
    fn schedules_on_random_networks_are_right(topology in connected(), root in 0..8_u32) {
        let root = root % topology.rank_count();
        for kind in CollectiveKind::ALL {
            for algorithm in [Algorithm::Direct, Algorithm::Ring] {
                prop_assert!(!plan(&topology, algorithm, kind, root).algbw.is_zero());
            }
        }
    }

    /// Equal arguments give equal schedules.
    #[test]
    fn schedules_are_reproducible(topology in connected()) {
        for algorithm in [Algorithm::Direct, Algorithm::Ring] {
            let again = || plan(&topology, algorithm, CollectiveKind::AllToAll, 0).schedule;
            prop_assert_eq!(again(), again());
        }
    }
}
