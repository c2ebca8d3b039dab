//! When links were busy, part by part.

use std::num::NonZeroU32;

use canopy_schedule::CollectiveKind;
use canopy_simulate::{Pieces, Reached, SimulateOptions, busiest, busy_by_part, simulate_traced};
use canopy_synth::{Algorithm, Never, Silent, SynthesisRequest, synthesize};
use canopy_topology::{Rate, TopologyLimits, generate};

use crate::networks::{ALPHA_PS, BETA, CAPACITY, broadcast, checked, collective, network, options};

fn parts(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap()
}

/// Two hops one after the other, each of which takes α and 10⁶ ps for 1,000 bytes and more.
#[test]
fn a_chain_is_busy_in_turn() {
    let topology = network(3, 0, &[("0", "1", CAPACITY, 0), ("1", "2", CAPACITY, 0)]);
    let (graph, _) = checked(&topology, &broadcast(&topology, &[(0, 0, 1), (1, 1, 2)]));
    let options = options(ALPHA_PS / BETA);
    let (outcome, trace) = simulate_traced(&topology, &graph, &options, &|| false).unwrap();
    assert_eq!(outcome.time_ps, 4 * ALPHA_PS);
    let links = busiest(&outcome.links, 8);
    let busy = busy_by_part(&graph, (&outcome, &trace), &links, parts(4));
    assert_eq!(busy, [[0, ALPHA_PS, 0, 0], [0, 0, 0, ALPHA_PS]]);
    let bound = Rate::new(CAPACITY, 1_u32).unwrap();
    let kind = CollectiveKind::Broadcast;
    let reached = Reached::of((&topology, &graph), kind, &bound, &options, &outcome).unwrap().unwrap();
    assert_eq!((reached.limit_ps, reached.least_ps), (ALPHA_PS, Some(ALPHA_PS)));
    assert_eq!(reached.of_bound.unwrap().to_string(), "1/4");
    assert_eq!(reached.algbw, reached.busbw);
}

/// Parts add up to what the run itself says of each link, however many there are.
#[test]
fn parts_add_up_to_the_time_that_links_were_busy() {
    for expression in ["dgx-a100:boxes=2", "torus:3x3", "kautz:d=2,n=2"] {
        let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
        let request = SynthesisRequest::new(collective(&topology, CollectiveKind::Allgather), Algorithm::Auto);
        let schedule = synthesize(&topology, &request, &Never, &Silent).unwrap();
        let (graph, _) = checked(&topology, &schedule);
        let options = SimulateOptions { pieces: Pieces::AtMost { bytes: 10_000 }, ..options(1_000_001) };
        let (outcome, trace) = simulate_traced(&topology, &graph, &options, &|| false).unwrap();
        let links = busiest(&outcome.links, usize::MAX);
        for count in [1, 7, 64] {
            let busy = busy_by_part(&graph, (&outcome, &trace), &links, parts(count));
            for (link, busy) in links.iter().zip(&busy) {
                assert_eq!(busy.len(), count as usize);
                assert_eq!(busy.iter().sum::<u64>(), outcome.links[link.index()].busy_ps, "{expression}, {link:?}");
            }
        }
    }
}
