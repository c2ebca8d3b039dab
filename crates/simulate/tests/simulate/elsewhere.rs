//! Plans on other networks than they were made for.

use canopy_schedule::{CollectiveKind, TransferGraph, check};
use canopy_simulate::{ElsewhereError, elsewhere, simulate};
use canopy_synth::{Algorithm, Never, Silent, SynthesisRequest, synthesize};
use canopy_topology::{Topology, TopologyLimits, generate};

use crate::networks::{ALPHA_PS, BETA, CAPACITY, broadcast, checked, collective, network, options};

fn forest(expression: &str) -> (Topology, TransferGraph) {
    let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
    let request = SynthesisRequest::new(collective(&topology, CollectiveKind::Allgather), Algorithm::Forest);
    let schedule = synthesize(&topology, &request, &Never, &Silent).unwrap();
    let graph = checked(&topology, &schedule).0;
    (topology, graph)
}

#[test]
fn a_plan_on_its_own_network_is_the_same() {
    for expression in ["ring:8", "dgx-a100:boxes=2", "mi250:boxes=2"] {
        let (topology, graph) = forest(expression);
        assert_eq!(elsewhere(&graph, &topology, &topology), Ok(graph), "{expression}");
    }
}

/// A link at half its rate carries as much as before, so the rate of the whole is halved where that link was full.
#[test]
fn a_slower_link_slows_the_plan() {
    let (planned, graph) = forest("torus:3x3,bw=25GB/s");
    let slow = generate("torus:3x3,bw=25GB/s,degrade=00>01*1/2", &TopologyLimits::STANDARD).unwrap();
    let moved = elsewhere(&graph, &planned, &slow).unwrap();
    let [before, after] =
        [(&planned, &graph), (&slow, &moved)].map(|(topology, graph)| check(topology, graph).unwrap());
    assert!(after.algbw < before.algbw, "{} -> {}", before.algbw, after.algbw);
    let time = |topology, graph| simulate(topology, graph, &options(9_000_000), &|| false).unwrap().time_ps;
    assert!(time(&slow, &moved) > time(&planned, &graph));
}

/// Nodes in another order, a switch more, two links where there was one: the one of the plan's latency, or of the least.
#[test]
fn links_are_found_by_the_ids_of_their_ends() {
    let planned = network(2, 1, &[("0", "s0", CAPACITY, 500), ("s0", "1", CAPACITY, 500)]);
    let (graph, _) = checked(&planned, &broadcast(&planned, &[(0, 0, 1)]));
    let links = [
        ("0", "a0", CAPACITY, 1),
        ("0", "s0", CAPACITY / 4, 100),
        ("0", "s0", CAPACITY, 500),
        ("s0", "1", CAPACITY, 300),
        ("s0", "1", CAPACITY / 5, 700),
    ];
    let mut draft = canopy_topology::TopologyDraft::default();
    ["0", "1"].into_iter().for_each(|id| draft.add_compute(id));
    ["a0", "s0"].into_iter().for_each(|id| draft.add_switch(id));
    for (from, to, capacity, nanos) in links {
        let capacity = canopy_topology::Capacity::from_bytes_per_sec(capacity).unwrap();
        draft.add_link(from, to, capacity, canopy_topology::Latency::from_nanos(nanos));
    }
    let actual = draft.build(&TopologyLimits::STANDARD).unwrap();
    let moved = elsewhere(&graph, &planned, &actual).unwrap();
    let found = simulate(&actual, &moved, &options(1_000), &|| false).unwrap();
    assert_eq!(found.time_ps, ALPHA_PS + 800_000 + 1_000 * BETA);
}

#[test]
fn networks_that_lack_something_are_refused() {
    let (planned, graph) = forest("torus:3x3");
    let on = |expression: &str| {
        elsewhere(&graph, &planned, &generate(expression, &TopologyLimits::STANDARD).unwrap()).unwrap_err()
    };
    assert_eq!(on("torus:3x4"), ElsewhereError::RankCount { found: 12, expected: 9 });
    let (found, expected) = ("0".to_owned(), "00".to_owned());
    assert_eq!(on("ring:9"), ElsewhereError::Rank { rank: 0, found, expected });
    let (from, to) = ("00".to_owned(), "01".to_owned());
    assert_eq!(on("torus:3x3,down=00>01"), ElsewhereError::Link { from, to });
}
