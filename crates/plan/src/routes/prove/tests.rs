//! A right program passes every check; each kind of damage is found by the check that is for it.

use std::sync::atomic::{AtomicU32, Ordering};

use canopy_topology::{TopologyLimits, generate};

use super::*;
use crate::routes::parse;
use crate::routes::program::{Port, QueuePair, Role};

fn ring() -> Program {
    parse(include_str!("../../../tests/route_files/all_to_all_ring3.xml")).unwrap()
}

/// The ring with a second way from rank 0 to rank 1, by a slower link beside the first, for half of the block.
fn doubled() -> Program {
    let mut program = ring();
    program.nodes[0].ports.push(Port { id: 1, to: 1, parallel: 1, rate: 3_000_000_000 });
    let rank = &mut program.ranks[0];
    rank.ports.push(1);
    let end = u32::try_from(rank.ports.len()).unwrap();
    rank.queue_pairs[0].chunk_count = 1;
    rank.queue_pairs.push(QueuePair {
        id: 2,
        destination: 1,
        layer: 0,
        ports: end - 1..end,
        input_first: 3,
        output_first: 1,
        chunk_count: 1,
    });
    program.routes_max = 2;
    program
}

/// A program as changed fails in this check, with these words.
#[track_caller]
fn damaged(mut program: Program, change: impl FnOnce(&mut Program), check: &str, words: &str) {
    change(&mut program);
    prove(&program).assert_refused(check, words);
}

#[test]
fn the_examples_are_right() {
    for program in [ring(), doubled()] {
        let proof = prove(&program);
        assert!(proof.is_ok(), "{:?}", proof.problems);
        let names: Vec<&str> = proof.checks.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["structure", "meaning", "deadlock", "load"]);
    }
}

#[test]
fn structure_is_checked() {
    let check = |change: fn(&mut Program), words| damaged(doubled(), change, "structure", words);
    check(|program| program.name = "a b".to_owned(), "the name is not");
    check(|program| (program.bytes_min, program.bytes_max) = (5, 4), "no message is from minbytes 5");
    check(|program| program.block_chunks = 0, "blockchunks is 0");
    check(|program| program.nodes.truncate(2), "there are 2 <node> for 3 ranks");
    check(|program| program.nodes[1].id = 2, "number nodes");
    check(|program| program.nodes[1].role = Role::Switch, "node 1 is a switch");
    check(|program| program.nodes[0].ports[1].id = 0, "ports are numbered");
    check(|program| program.nodes[0].ports[0].to = 3, "a port leads to another node");
    check(|program| program.nodes[0].ports[0].to = 0, "a port leads to another node");
    check(|program| program.nodes[0].ports[0].rate = 0, "a link has a rate");
    check(|program| program.nodes[0].ports[1].parallel = 0, "parallel ones numbered");
    check(|program| program.nodes[0].ports[0].to = 2, "in the order of the nodes");
    check(|program| program.ranks.truncate(2), "there are 2 <rank>");
    check(|program| program.ranks[1].rank = 0, "rank 0: is listed twice");
    check(|program| program.ranks[1].rank = 3, "rank 3: is not one of the ranks 0 to 2");
    check(
        |program| program.ranks[1].output_chunks = 4,
        "rank 1: i_chunks 6 and o_chunks 4 do not match all-to-all; both must be 6",
    );
    check(|program| program.layer_count = 1, "queue pair 1: layer is 1, and nlayers 1");
    check(|program| program.layer_count = 3, "nlayers is 3, but routes use 2");
    check(|program| program.routes_max = 1, "maxroutes is 1, but up to 2");
    check(|program| program.ranks[0].queue_pairs[2].id = 1, "two queue pairs have the id 1");
    check(|program| program.ranks[0].queue_pairs[2].id = 3, "queue pair 3 is not one of 0 to 2");
    check(
        |program| *program.ranks[0].ports.last_mut().unwrap() = 0,
        "queue pairs 0 and 2 take the same route to rank 1",
    );
    check(|program| program.ranks[0].queue_pairs[0].destination = 0, "dst is 0, which is not another rank");
    check(|program| program.ranks[0].queue_pairs[0].destination = 3, "dst is 3, which is not another rank");
    check(|program| program.ranks[0].queue_pairs[0].destination = 2, "ends at node 1, not at rank 2");
    check(|program| program.ranks[0].queue_pairs[0].chunk_count = 0, "it carries no chunks");
    check(|program| program.ranks[0].ports[0] = 2, "node 0 has no port 2");
    check(|program| program.ranks[0].queue_pairs[0].ports = 7..9, "ends at node 0, not at rank 1");
    let round = |program: &mut Program| {
        let rank = &mut program.ranks[0];
        rank.ports = vec![0, 0, 0, 0];
        rank.queue_pairs.truncate(1);
        rank.queue_pairs[0].ports = 0..4;
    };
    damaged(ring(), round, "structure", "its route reaches node 0 twice");
}

#[test]
fn chunks_are_followed() {
    let check = |change: fn(&mut QueuePair), words| {
        damaged(doubled(), |program| change(&mut program.ranks[0].queue_pairs[2]), "meaning", words);
    };
    check(|pair| pair.input_first = 4, "no queue pair carries chunk 3 of the input, since 2 starts with 4");
    check(|pair| pair.input_first = 2, "queue pair 2 starts with chunk 2 of the input instead of 3");
    check(|pair| pair.output_first = 2, "carries chunk 3 of the input to chunk 2 of the output instead of 1");
    check(|pair| pair.chunk_count = 2, "queue pair 2 carries chunks from 3 on, beyond the last, 3");
    let lost = |program: &mut Program| {
        program.ranks[1].queue_pairs.pop();
    };
    damaged(ring(), lost, "meaning", "rank 1: for rank 2: 2 of its 2 chunks are carried by no queue pair");
}

/// Only the root of a scatter sends, and each rank gets a share of a size of its own.
#[test]
fn shares_have_their_own_sizes() {
    let scatter = |outputs: [u32; 3]| {
        let text = include_str!("../../../tests/route_files/all_to_all_ring3.xml");
        let mut program = parse(&text.replace("coll=\"alltoall\"", "coll=\"scatter\" root=\"0\"")).unwrap();
        for (rank, output) in program.ranks.iter_mut().zip(outputs) {
            (rank.input_chunks, rank.output_chunks) = (0, output);
        }
        program.ranks[0].input_chunks = outputs.iter().sum();
        program.ranks.iter_mut().skip(1).for_each(|rank| rank.queue_pairs.clear());
        program.layer_count = 1;
        program.algbw =
            canopy_topology::Rate::new(6_000_000_000_u64 * u64::from(outputs.iter().sum::<u32>()), 4_u32).unwrap();
        program.ranks[0].queue_pairs[1].output_first = 0;
        program
    };
    assert_eq!(prove(&scatter([2, 2, 2])).problems, []);
    assert_eq!(prove(&scatter([2, 2, 2])).checks.len(), 4);
    damaged(
        scatter([2, 2, 3]),
        |_| {},
        "structure",
        "do not match scatter; o_chunks must be a multiple of 2, and i_chunks 0",
    );
    damaged(scatter([2, 2, 4]), |_| {}, "meaning", "for rank 2: 2 of its 4 chunks");
    damaged(scatter([2, 2, 0]), |_| {}, "meaning", "queue pair 1 carries 2 chunks, but its rank has none to send");
}

#[test]
fn routes_that_wait_for_each_other_are_found() {
    let same = |program: &mut Program| {
        program.ranks[2].queue_pairs[1].layer = 0;
        program.layer_count = 1;
    };
    let words = "in layer 0, 3 channels wait for each other in a cycle: n0 -> n1, n1 -> n2, n2 -> n0; put one";
    damaged(ring(), same, "deadlock", words);
}

#[test]
fn rates_are_derived_again() {
    let check = |change: fn(&mut Program), words| damaged(doubled(), change, "load", words);
    check(|program| program.algbw = canopy_topology::Rate::new(7_u32, 3_u32).unwrap(), "algbw is 7/3, but");
    check(|program| program.nodes[2].ports[0].rate /= 2, "the busiest link allows 3000000000 bytes/s");
}

#[test]
fn ports_are_those_of_the_network() {
    let problem = |program: &Program, expression: &str| {
        let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
        let proof = prove_on(program, &topology, &|| false).unwrap();
        assert_eq!(proof.checks, [("ports", proof.is_ok())]);
        proof.problems.first().map(|problem| problem.message.clone()).unwrap_or_default()
    };
    assert_eq!(problem(&ring(), "ring:3,dir=uni,bw=6GB/s"), "");
    for (expression, words) in [
        (
            "ring:3,dir=uni,bw=5GB/s",
            "port 0 of node 0 leads to node 1 at 6000000000 bytes/s, but in the network to node \
                                     1",
        ),
        ("ring:3,bw=6GB/s", "node 0 has 1 ports, but `0` in the network has 2"),
        ("ring:4", "is for 3 nodes with 3 ranks, but the network has 4 with 4"),
    ] {
        let found = problem(&ring(), expression);
        assert!(found.starts_with(words), "{found}");
    }
}

#[test]
fn work_can_be_stopped() {
    let asked = AtomicU32::new(0);
    for most in 0..4 {
        asked.store(0, Ordering::Relaxed);
        let stop = || asked.fetch_add(1, Ordering::Relaxed) >= most;
        assert_eq!(prove_until(&ring(), &stop), Err(Stopped), "{most}");
    }
}
