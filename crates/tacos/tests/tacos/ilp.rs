//! Schedules that are proven to be fastest.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it stands, helpers included")]

use std::collections::BTreeSet;

use canopy_optimize::Never;
use canopy_tacos::{
    Attempts, CopyTask, Demand, FreeGroup, IlpEffort, Proven, Sends, Sent, TimedLink, TimedNetwork, best_of,
    deliver_best, delivery_bound, judge, judge_delivery, lower_bound, prove_copies, prove_deliveries,
};
use proptest::prelude::*;

use crate::support::{cables, mesh, torus, without};

/// What is proven of some attempts, judged; and when the best of these ends.
#[track_caller]
fn copied(network: &TimedNetwork, task: &CopyTask, count: u32) -> (Proven, u64) {
    let bound = lower_bound(network, task).unwrap();
    let group = FreeGroup::trivial(network.node_count());
    let known = best_of(network, task, &group, Attempts { seed: 0, count, bound, known: None }, &Never).unwrap().sends;
    let known_end = known.end;
    let proven = prove_copies(network, task, known, bound, IlpEffort::STANDARD, &Never).unwrap();
    judge(network, task, &proven.sends).unwrap();
    assert_eq!(proven.proof.end, proven.sends.end);
    assert!(bound <= proven.proof.bound && proven.proof.bound <= proven.proof.end && proven.sends.end <= known_end);
    (proven, known_end)
}

#[track_caller]
fn delivered(network: &TimedNetwork, demands: &[Demand], count: u32) -> Proven {
    let bound = delivery_bound(network, demands).unwrap();
    let known = deliver_best(network, demands, Attempts { seed: 0, count, bound, known: None }, &Never).unwrap().sends;
    let proven = prove_deliveries(network, demands, known, bound, IlpEffort::STANDARD, &Never).unwrap();
    judge_delivery(network, demands, &proven.sends).unwrap();
    proven
}

/// The schedule of no attempt at all: one chunk after the other, each from its owner along a tree, so that the program has all to do.
fn slow(network: &TimedNetwork, task: &CopyTask) -> Sends {
    let mut sends = Vec::new();
    let mut now = 0;
    for (chunk, &owner) in (0..).zip(task.owners()) {
        let mut have = BTreeSet::from([owner]);
        while let Some((link, timed)) =
            (0..).zip(network.links()).find(|(_, link)| have.contains(&link.from) && !have.contains(&link.to))
        {
            sends.push(Sent { start: now, link, chunk });
            have.insert(timed.to);
            now += timed.latency.max(timed.occupancy);
        }
    }
    let end = sends.iter().map(|sent| sent.start + network.link(sent.link).latency).max().unwrap_or(0);
    Sends { sends, end }
}

/// Won et al., figures 5 and 20 and tables III and IV; by the program alone, from a schedule that is no help.
#[test]
fn published_networks_are_proven_optimal() {
    for (name, network, task, end) in [
        ("3 × 3 mesh, allgather", mesh(&[3, 3]), CopyTask::allgather(9, 1).unwrap(), 4),
        ("6 × 6 mesh, broadcast", mesh(&[6, 6]), CopyTask::broadcast(36, 0, 1).unwrap(), 10),
        (
            "4 × 4 mesh without 7 and 9, allgather",
            without(&mesh(&[4, 4]), &[7, 9]),
            CopyTask::allgather(14, 1).unwrap(),
            13,
        ),
        ("4 × 4 torus, allgather", torus(&[4, 4]), CopyTask::allgather(16, 1).unwrap(), 4),
    ] {
        let bound = lower_bound(&network, &task).unwrap();
        let known = slow(&network, &task);
        let proven = prove_copies(&network, &task, known, bound, IlpEffort::STANDARD, &Never).unwrap();
        judge(&network, &task, &proven.sends).unwrap();
        assert_eq!((proven.proof.end, proven.proof.bound), (end, end), "{name}");
    }
}

/// Two triangles and a cable between them: three chunks pass it one after the other, and the last is still one link away from two
/// nodes. Each node by itself has links enough for three steps.
#[test]
fn a_horizon_that_no_bound_excludes_is_proven_too_short() {
    let network = cables(6, [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 3)]);
    let task = CopyTask::allgather(6, 1).unwrap();
    assert_eq!(lower_bound(&network, &task), Some(3));
    let (proven, _) = copied(&network, &task, 1);
    assert_eq!((proven.proof.bound, proven.proof.end), (4, 4));
}

/// A random network of eight nodes on which 32 attempts of the greedy engine take eight steps at best; each link takes the step and a
/// little more, or less.
fn hard(step: u64, more: impl Fn(u32) -> u64) -> TimedNetwork {
    let others = [(2, 0), (1, 3), (4, 3), (7, 3), (1, 4), (3, 6), (4, 5), (7, 4), (1, 7)];
    let ends = (0..8).map(|node| (node, (node + 1) % 8)).chain(others);
    let links = (0..).zip(ends).map(|(number, (from, to))| {
        let ticks = step + more(number);
        TimedLink { from, to, latency: ticks, occupancy: ticks }
    });
    TimedNetwork::new(8, links.collect()).unwrap()
}

#[test]
fn seven_steps_are_found_where_the_greedy_engine_takes_eight() {
    let (proven, known) = copied(&hard(1, |_| 0), &CopyTask::allgather(8, 1).unwrap(), 32);
    assert_eq!((proven.proof.bound, proven.proof.end), (7, 7), "{known} by attempts");
}

/// In true times the horizon has millions of moments: by a clock that ticks once for each step it has seven.
#[test]
fn slower_clocks_find_what_the_true_one_has_no_room_for() {
    let task = CopyTask::allgather(8, 1).unwrap();
    let network = hard(1_000_003, |link| u64::from(link * 5 % 7));
    let (known, bound) = (slow(&network, &task), lower_bound(&network, &task).unwrap());
    let proven = prove_copies(&network, &task, known, bound, IlpEffort::STANDARD, &Never).unwrap();
    judge(&network, &task, &proven.sends).unwrap();
    assert!(proven.proof.end <= 7 * 1_000_009, "{} ticks", proven.proof.end);
    assert!(proven.variables > u64::from(IlpEffort::STANDARD.variables_max));
}

/// Won et al., figure 5.
#[test]
fn a_scatter_on_a_ring_takes_three_steps() {
    let link = |node| TimedLink { from: node, to: (node + 1) % 4, latency: 1, occupancy: 1 };
    let network = TimedNetwork::new(4, (0..4).map(link).collect()).unwrap();
    let demands = [0, 2, 3].map(|to| Demand { from: 1, to });
    let proven = delivered(&network, &demands, 1);
    assert_eq!((proven.proof.bound, proven.proof.end), (3, 3));
    // The program alone, from the nearest-first schedule of five steps.
    let sends = [(0, 1, 1), (1, 1, 2), (2, 1, 0), (2, 2, 2), (3, 2, 0), (4, 3, 0)];
    let sends = sends.map(|(start, link, chunk)| Sent { start, link, chunk });
    let known = Sends { sends: sends.to_vec(), end: 5 };
    judge_delivery(&network, &demands, &known).unwrap();
    let proven = prove_deliveries(&network, &demands, known, 3, IlpEffort::STANDARD, &Never).unwrap();
    judge_delivery(&network, &demands, &proven.sends).unwrap();
    assert_eq!((proven.proof.bound, proven.proof.end), (3, 3));
}

/// Fewest steps by trying, in each, everything that links can carry; links that take one tick.
fn fewest_steps(network: &TimedNetwork) -> u64 {
    let nodes = network.node_count();
    let all = (1_u64 << (nodes * nodes)) - 1;
    let first: u64 = (0..nodes).map(|node| 1 << (node * nodes + node)).sum();
    let mut states = BTreeSet::from([first]);
    for step in 0.. {
        if states.contains(&all) {
            return step;
        }
        let mut next = BTreeSet::new();
        for &state in &states {
            let mut reached = BTreeSet::from([state]);
            for link in network.links() {
                let has = |node: u32, chunk: u32| state >> (node * nodes + chunk) & 1 == 1;
                let carried: Vec<u64> = (0..nodes)
                    .filter(|&chunk| has(link.from, chunk) && !has(link.to, chunk))
                    .map(|chunk| 1 << (link.to * nodes + chunk))
                    .collect();
                // To send something new is never worse than to send nothing.
                if !carried.is_empty() {
                    reached = reached.iter().flat_map(|held| carried.iter().map(move |chunk| held | chunk)).collect();
                }
            }
            next.extend(reached);
        }
        states = next;
    }
    unreachable!("every network is connected")
}

/// A ring one way through all nodes, and links at random, with these times.
fn networks(
    nodes: std::ops::Range<u32>,
    times: impl Strategy<Value = (u64, u64)> + Clone + 'static,
    others: usize,
) -> impl Strategy<Value = TimedNetwork> {
    nodes.prop_flat_map(move |nodes| {
        let link = (0..nodes, 1..nodes, times.clone());
        let ring = prop::collection::vec(times.clone(), nodes as usize);
        (Just(nodes), ring, prop::collection::vec(link, 0..others)).prop_map(|(nodes, ring, others)| {
            let timed = |from, to, (occupancy, alpha)| TimedLink { from, to, latency: occupancy + alpha, occupancy };
            let ring = (0..nodes).zip(ring).map(|(node, times)| timed(node, (node + 1) % nodes, times));
            let others = others.into_iter().map(|(from, offset, times)| timed(from, (from + offset) % nodes, times));
            TimedNetwork::new(nodes, ring.chain(others).collect()).unwrap()
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn steps_are_the_fewest_that_there_are(network in networks(2..5, Just((1_u64, 0_u64)), 4)) {
        let task = CopyTask::allgather(network.node_count(), 1).unwrap();
        let bound = lower_bound(&network, &task).unwrap();
        let known = slow(&network, &task);
        let proven = prove_copies(&network, &task, known, bound, IlpEffort::STANDARD, &Never).unwrap();
        judge(&network, &task, &proven.sends).unwrap();
        let fewest = fewest_steps(&network);
        prop_assert_eq!((proven.proof.bound, proven.proof.end), (fewest, fewest));
    }

    #[test]
    fn what_is_proven_lies_between_the_bound_and_what_is_known(
        network in networks(3..7, (1_u64..4, 0_u64..3), 8),
        chunks in 1_u32..3,
        members: [bool; 8],
    ) {
        let nodes = network.node_count();
        copied(&network, &CopyTask::allgather(nodes, chunks).unwrap(), 1);
        let is_member: Vec<bool> = (0..nodes as usize).map(|node| node == 0 || members[node]).collect();
        let owners = (0..nodes).filter(|&node| is_member[node as usize]).collect();
        copied(&network, &CopyTask::new(owners, is_member).unwrap(), 1);
        let others = 1..nodes;
        let demands: Vec<Demand> = others.clone().map(|to| Demand { from: 0, to }).collect();
        delivered(&network, &demands, 1);
        let demands: Vec<Demand> = others.map(|from| Demand { from, to: 0 }).collect();
        delivered(&network, &demands, 1);
    }

    /// Without any effort for proofs what is known stays, or what fractions propose takes its place.
    #[test]
    fn little_effort_proves_little_and_breaks_nothing(
        network in networks(3..7, (1_u64..3, 0_u64..2), 8),
        relaxed_variables_max in 0_u32..2000,
        conflicts_max in 0_u32..20,
    ) {
        let effort = IlpEffort { variables_max: 2000, relaxed_variables_max, conflicts_max };
        let task = CopyTask::allgather(network.node_count(), 1).unwrap();
        let (known, bound) = (slow(&network, &task), lower_bound(&network, &task).unwrap());
        let proven = prove_copies(&network, &task, known, bound, effort, &Never).unwrap();
        judge(&network, &task, &proven.sends).unwrap();
        let again = prove_copies(&network, &task, slow(&network, &task), bound, effort, &Never).unwrap();
        prop_assert_eq!(proven, again);
    }
}

#[test]
fn a_standing_request_stops() {
    let (network, task) = (mesh(&[3, 3]), CopyTask::allgather(9, 1).unwrap());
    let known = slow(&network, &task);
    assert!(prove_copies(&network, &task, known, 4, IlpEffort::STANDARD, &|| true).is_err());
}
