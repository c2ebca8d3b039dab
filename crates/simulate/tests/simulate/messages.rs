//! The list of messages: what is on it is what a run sends, and running it by hand gives the same times.

use std::collections::BTreeMap;

use canopy_schedule::{CollectiveKind, TransferGraph};
use canopy_simulate::{Message, Pieces, SimulateError, SimulateOptions, messages, simulate};
use canopy_synth::{Algorithm, Never, Silent, SynthesisRequest, synthesize};
use canopy_topology::{Topology, TopologyLimits, generate};

use crate::networks::{ALPHA_PS, BETA, CAPACITY, broadcast, checked, collective, network, options};

fn forest(expression: &str, kind: CollectiveKind) -> (Topology, TransferGraph) {
    let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
    let request = SynthesisRequest::new(collective(&topology, kind), Algorithm::Forest);
    let schedule = synthesize(&topology, &request, &Never, &Silent).unwrap();
    let graph = checked(&topology, &schedule).0;
    (topology, graph)
}

/// When each message arrives where none shares a link at any time: α and the latencies of its route after its last byte.
fn alone(topology: &Topology, graph: &TransferGraph, list: &[Message]) -> Vec<u64> {
    let (mut left, mut arrived) = (Vec::new(), Vec::new());
    for message in list {
        let links = graph.routes.get(message.route).unwrap();
        let latency: u64 = links.iter().map(|&link| topology.link(link).latency.nanos() * 1_000).sum();
        let data = message.after.iter().map(|&before: &u32| arrived[before as usize]);
        let room = message.behind.map(|before| left[before as usize]);
        left.push(data.chain(room).max().unwrap_or(0) + ALPHA_PS + message.bytes * BETA);
        arrived.push(left.last().unwrap() + latency);
    }
    arrived
}

#[test]
fn a_chain_takes_as_long_by_its_messages() {
    let topology = network(4, 0, &[("0", "1", CAPACITY, 300), ("1", "2", CAPACITY, 7_000), ("2", "3", CAPACITY, 0)]);
    let (graph, _) = checked(&topology, &broadcast(&topology, &[(0, 0, 1), (1, 1, 2), (2, 2, 3)]));
    for pieces in [Pieces::Whole, Pieces::Count(5), Pieces::AtMost { bytes: 30_000 }] {
        let options = SimulateOptions { pieces, ..options(100_001) };
        let list = messages(&topology, &graph, &options).unwrap();
        let found = simulate(&topology, &graph, &options, &|| false).unwrap();
        assert_eq!(alone(&topology, &graph, &list).into_iter().max(), Some(found.time_ps), "{pieces:?}");
        assert_eq!(list.len() as u64, found.message_count);
    }
}

#[test]
fn messages_carry_what_the_links_of_a_run_carry() {
    for expression in ["ring:8", "dgx-a100:boxes=2", "torus:3x3"] {
        for kind in [CollectiveKind::Allgather, CollectiveKind::ReduceScatter, CollectiveKind::Allreduce] {
            let (topology, graph) = forest(expression, kind);
            let options = SimulateOptions { pieces: Pieces::AtMost { bytes: 10_000 }, ..options(1_000_003) };
            let list = messages(&topology, &graph, &options).unwrap();
            let found = simulate(&topology, &graph, &options, &|| false).unwrap();
            assert_eq!(list.len() as u64, found.message_count, "{expression} {kind}");
            let mut bytes = vec![0; topology.links().len()];
            for (number, message) in (0_u32..).zip(&list) {
                for link in graph.routes.get(message.route).unwrap() {
                    bytes[link.index()] += message.bytes;
                }
                // What it waits for is before it, at its sender or its receiver.
                for &before in message.after.iter().chain(&message.behind) {
                    let other = &list[before as usize];
                    assert!(before < number);
                    assert!([message.from, message.to].iter().any(|rank| [other.from, other.to].contains(rank)));
                }
            }
            assert!(bytes.iter().eq(found.links.iter().map(|link| &link.bytes)), "{expression} {kind}");
            // Pieces of one transfer on one route follow each other.
            let mut latest = BTreeMap::new();
            for (number, message) in (0..).zip(&list) {
                let before = latest.insert((message.transfer, message.route), number);
                assert_eq!(message.behind, before.filter(|_| message.piece > 0), "{expression} {kind}");
            }
        }
    }
}

/// Of steps, a message names what it has to let go first: the last pieces of the step before on its route.
#[test]
fn messages_of_steps_know_their_turn() {
    let topology = generate("dfc2:3x3", &TopologyLimits::STANDARD).unwrap();
    let request = SynthesisRequest::new(collective(&topology, CollectiveKind::Allreduce), Algorithm::Multitree);
    let (graph, _) = checked(&topology, &synthesize(&topology, &request, &Never, &Silent).unwrap());
    let list = messages(&topology, &graph, &SimulateOptions { pieces: Pieces::Count(3), ..options(1 << 20) }).unwrap();
    let step = |message: &Message| graph.steps[message.transfer as usize];
    let mut waiting = 0;
    for message in &list {
        let earlier = list.iter().filter(|other| other.route == message.route && step(other) < step(message));
        let latest = earlier.map(step).max();
        let expected = (0..).zip(&list).filter(|(_, other)| {
            other.route == message.route && Some(step(other)) == latest && other.piece == 2 && message.piece == 0
        });
        let expected: Vec<u32> = expected.map(|(number, _)| number).collect();
        assert_eq!(message.turn, expected);
        waiting += expected.len();
    }
    assert!(waiting > 0);
}

#[test]
fn too_many_messages_are_refused_before_they_are_listed() {
    let (topology, graph) = forest("ring:8", CollectiveKind::Allgather);
    let options = SimulateOptions { pieces: Pieces::AtMost { bytes: 1 }, work_max: 1_000, ..options(1 << 30) };
    let found = messages(&topology, &graph, &options);
    assert!(matches!(found, Err(SimulateError::TooLarge { limit: 1_000, .. })), "{found:?}");
    // The messages alone would do, but not what they wait for.
    let whole = SimulateOptions { pieces: Pieces::Whole, ..options };
    let count = messages(&topology, &graph, &SimulateOptions { work_max: 10_000, ..whole }).unwrap().len() as u64;
    let found = messages(&topology, &graph, &SimulateOptions { work_max: 3 * count, ..whole });
    assert_eq!(found, Err(SimulateError::TooLarge { messages: count, limit: 3 * count }));
}
