//! Loads that the routings put on links, by published values and by hand.

use canopy_optimize::{Fraction, Never};
use canopy_schedule::{Collective, CollectiveKind, Shape, check, compile};
use canopy_topology::{Capacity, Latency, Topology, TopologyDraft, TopologyLimits, generate};

use crate::algorithm::{Algorithm, SynthesisRequest};
use crate::error::SynthesisError;
use crate::load::seconds_per_byte;
use crate::progress::Silent;
use crate::synthesize::synthesize;

fn all_to_all(topology: &Topology) -> Collective {
    Collective::new(CollectiveKind::AllToAll, None, topology.rank_count()).unwrap()
}

fn planned(topology: &Topology, algorithm: Algorithm) -> Result<Shape, SynthesisError> {
    let request = SynthesisRequest::new(all_to_all(topology), algorithm);
    let schedule = synthesize(topology, &request, &Never, &Silent)?;
    assert_eq!(schedule.algorithm, algorithm.name());
    let graph = compile(topology, &schedule).unwrap();
    check(topology, &graph).unwrap();
    Ok(schedule.shape)
}

/// Blocks over the busiest link of 1 B/s, and chunks of each block: what the checker accepts.
#[track_caller]
fn load(expression: &str, algorithm: Algorithm) -> (Fraction, u64) {
    let colon = if expression.contains([':', '(']) { "," } else { ":" };
    let topology = generate(&format!("{expression}{colon}bw=1B/s"), &TopologyLimits::STANDARD).unwrap();
    let shape = planned(&topology, algorithm).unwrap();
    (seconds_per_byte(&topology, &shape), shape.chunks_per_share())
}

fn whole(load: u128) -> Fraction {
    Fraction::new(load, 1).unwrap()
}

/// The reference states 10 or 11 for the 3×3×3 torus, whose optimum is 9, 33 or 34 for GenKautz(40,4), and 14 to 17 for the torus
/// without three cables or nodes, all by the order of nodes; ties as they are broken here reach the optimum of the whole torus.
#[test]
fn shortest_paths_one_source_after_the_other() {
    for (expression, expected) in [
        ("torus:3x3x3", 9),
        ("genkautz:n=40,d=4", 33),
        ("torus:3x3x3,down=121-122+011-211+210-220", 15),
        ("torus:3x3x3,down=021-221+201-211+021-022", 16),
        ("torus:3x3x3,down=200-201+102-112+111-121", 16),
        ("torus:3x3x3,nodes-down=100+122+211", 14),
        ("torus:3x3x3,nodes-down=101+121+002", 14),
        ("torus:3x3x3,nodes-down=211+220+212", 14),
        ("ring:5", 3),
        ("complete:6", 1),
    ] {
        assert_eq!(load(expression, Algorithm::Sssp), (whole(expected), 1), "{expression}");
    }
}

/// Of two ways of two links each, one twice as fast takes twice as many routes: sources 0 to 5 send to 6 over switches.
#[test]
fn weights_count_capacities() {
    let mut draft = TopologyDraft::default();
    (0..7).for_each(|rank| draft.add_compute(format!("r{rank}")));
    ["hub", "fast", "slow"].into_iter().for_each(|id| draft.add_switch(id));
    let rate = |rate| Capacity::from_bytes_per_sec(rate).unwrap();
    (0..6).for_each(|rank| draft.add_both(&format!("r{rank}"), "hub", rate(100), Latency::default()));
    for (way, capacity) in [("fast", 2), ("slow", 1)] {
        draft.add_link("hub", way, rate(capacity), Latency::default());
        draft.add_link(way, "r6", rate(100), Latency::default());
    }
    draft.add_link("r6", "hub", rate(100), Latency::default());
    let topology = draft.build(&TopologyLimits::STANDARD).unwrap();
    let shape = planned(&topology, Algorithm::Sssp).unwrap();
    assert_eq!(seconds_per_byte(&topology, &shape), whole(2));
}

#[test]
fn other_collectives_are_refused() {
    let topology = generate("ring:4", &TopologyLimits::STANDARD).unwrap();
    for algorithm in [Algorithm::Sssp] {
        let collective = Collective::new(CollectiveKind::Allgather, None, 4).unwrap();
        let error = synthesize(&topology, &SynthesisRequest::new(collective, algorithm), &Never, &Silent).unwrap_err();
        let expected = format!(
            "{algorithm} does not plan allgather; it plans all-to-all, and direct and ring plan all collectives"
        );
        assert_eq!(error.to_string(), expected);
    }
}
