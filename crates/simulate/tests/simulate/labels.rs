//! Names of ranks say nothing: networks of a family, given link by link under any names, cost what the family's cost.

use canopy_schedule::{CollectiveKind, check, compile};
use canopy_simulate::{Sharing, SimulateOptions};
use canopy_synth::{Algorithm, Never, Silent, SynthesisRequest, synthesize};
use canopy_topology::{NodeIndex, Rate, Topology, TopologyDraft, TopologyLimits, generate};

use crate::networks::{collective, options, run_in_steps};

/// The same links between ranks under other names and in another order.
fn shuffled(topology: &Topology, seed: u64) -> Topology {
    let mut state = seed;
    let mut below = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % bound
    };
    let mut ranks: Vec<u32> = (0..topology.rank_count()).collect();
    let mut links: Vec<_> = topology.links().iter().collect();
    for end in (1..ranks.len()).rev() {
        ranks.swap(end, below(end + 1));
    }
    for end in (1..links.len()).rev() {
        links.swap(end, below(end + 1));
    }
    let name = |node: NodeIndex| format!("host{:03}", ranks[node.index()]);
    let mut draft = TopologyDraft::default();
    (0..topology.rank_count()).for_each(|rank| draft.add_compute(format!("host{rank:03}")));
    for link in links {
        draft.add_link(name(link.from), name(link.to), link.capacity, link.latency);
    }
    draft.build(&TopologyLimits::STANDARD).unwrap()
}

/// Rate of the checker, number of steps, and time of a message with barriers on fair links and first come, first served.
fn cost(topology: &Topology, kind: CollectiveKind, algorithm: Algorithm) -> (Rate, Option<u32>, [u64; 2]) {
    let request = SynthesisRequest::new(collective(topology, kind), algorithm);
    let schedule = synthesize(topology, &request, &Never, &Silent).unwrap();
    let verdict = check(topology, &compile(topology, &schedule).unwrap()).unwrap();
    // Whole bytes of 20 or 30 shares in 2, 11 or fewer parts.
    let size = 5_544_000;
    let time = |sharing| {
        let options = SimulateOptions { sharing, ..options(size) };
        run_in_steps(topology, &schedule, &options).time_ps
    };
    let times = match verdict.steps {
        Some(_) => [Sharing::Fair, Sharing::Fifo].map(time),
        None => [0; 2],
    };
    (verdict.algbw, verdict.steps.map(|steps| steps.count), times)
}

#[track_caller]
fn check_family(expression: &str, algorithms: &[Algorithm]) {
    let topology = generate(&format!("{expression},bw=12.5GB/s"), &TopologyLimits::STANDARD).unwrap();
    for (seed, kind) in (1..).zip(CollectiveKind::ALL) {
        let other = shuffled(&topology, seed);
        assert_ne!(topology.links(), other.links());
        for &algorithm in algorithms {
            let name = format!("{kind} by {algorithm} on {expression}");
            assert_eq!(cost(&other, kind, algorithm), cost(&topology, kind, algorithm), "{name}");
        }
    }
}

#[test]
fn kautz_networks_under_any_names() {
    check_family("kautz:d=4,n=2", &[Algorithm::Kautz, Algorithm::KautzM, Algorithm::Multitree, Algorithm::Auto]);
}

#[test]
fn grids_under_any_names() {
    check_family("dfc2:5x6", &[Algorithm::Dfc2, Algorithm::Dfc2Do, Algorithm::Multitree, Algorithm::Auto]);
}
