//! Schedules in time, repaired: what can be sent when it was stays.

use std::collections::BTreeSet;

use canopy_schedule::{Pace, Shape, Steps};

use super::*;

fn steps(schedule: &Schedule) -> &Steps {
    let Shape::Steps(steps) = &schedule.shape else { panic!("schedules in time are steps") };
    steps
}

/// The same of schedules in time.
const IN_TIME: RepairOptions = RepairOptions { is_in_time: true, ..PLAIN };

/// What is sent when, by names that faults do not change.
fn sends(topology: &Topology, schedule: &Schedule) -> BTreeSet<(u32, String, String, u64)> {
    let id = |rank: Rank| topology.node(rank.node()).id.clone();
    let sends = steps(schedule).sends.iter();
    sends.map(|send| (send.step, id(send.from), id(send.to), send.chunks.start)).collect()
}

fn id(topology: &Topology, rank: u32) -> String {
    topology.node(Rank::new(rank).node()).id.clone()
}

/// Of a torus of cables that are alike, with one chunk for each share: steps of the repaired schedule, and how many sends of the old one
/// it has.
fn mended(whole: &Topology, kind: CollectiveKind, faults: &[Fault]) -> (u64, usize, usize) {
    let schedule = healthy(whole, Algorithm::Tacos, (kind, 0), Shares::Equal);
    let left = whole.punctured(faults).unwrap();
    let repaired = repaired(whole, &schedule, &left, IN_TIME, &Never).unwrap();
    judged(&left, &repaired);
    assert_eq!((repaired.algorithm.as_str(), steps(&repaired).pace), ("repair", Pace::Barriers));
    let (before, after) = (sends(whole, &schedule), sends(&left, &repaired));
    (steps(&repaired).step_count(), before.intersection(&after).count(), before.len())
}

/// 85 steps, as many as three links need for what 255 others have, and what comes late is passed on in a few more.
#[test]
fn one_dead_link_of_a_torus_costs_few_steps() {
    let whole = generate("torus:16x16", &TopologyLimits::STANDARD).unwrap();
    let dead = |to, both_ways| Fault::Link { from: id(&whole, 87), to: id(&whole, to), both_ways };
    for to in [88, 103] {
        for both_ways in [false, true] {
            let dead = dead(to, both_ways);
            let (steps, kept, total) = mended(&whole, Allgather, std::slice::from_ref(&dead));
            assert!((85..=90).contains(&steps), "{dead:?}: {steps} steps");
            assert!(kept * 100 >= total * 96, "{dead:?}: {kept} of {total} kept");
        }
    }
    let dead = dead(88, true);
    let (steps, ..) = mended(&whole, ReduceScatter, std::slice::from_ref(&dead));
    assert!((85..=90).contains(&steps), "{steps} steps");
    let (steps, ..) = mended(&whole, Allreduce, &[dead]);
    assert!((170..=180).contains(&steps), "{steps} steps");
}

/// A dead rank takes its chunks along; its neighbours are left with three links.
#[test]
fn a_dead_rank_of_a_torus_leaves_most_as_it_was() {
    let whole = generate("torus:16x16", &TopologyLimits::STANDARD).unwrap();
    let (steps, ..) = mended(&whole, Allgather, &[Fault::Node { id: id(&whole, 87) }]);
    // ⌈254/3⌉
    assert!((85..=95).contains(&steps), "{steps} steps");
    let (steps, ..) = mended(&whole, Broadcast, &[Fault::Node { id: id(&whole, 87) }]);
    assert!(steps <= 40, "{steps} steps");
}

/// Of links that share a switch, of different speeds and latencies, of weighted shares: whatever there is, the checker accepts it.
#[test]
fn switches_and_slow_links_are_mended_around() {
    type Broken<'a> = &'a dyn Fn(&Topology, u32) -> Fault;
    let dead = |topology: &Topology, rank| Fault::Node { id: id(topology, rank) };
    let no_nic =
        |topology: &Topology, rank| Fault::Link { from: id(topology, rank), to: "ib".to_owned(), both_ways: true };
    let half = |topology: &Topology, rank| {
        let link = topology.links()[rank as usize];
        let [from, to] = [link.from, link.to].map(|node| topology.node(node).id.clone());
        Fault::Degrade { from, to, both_ways: true, numerator: 1, denominator: 2 }
    };
    let cases: [(&str, Broken<'_>); 5] = [
        ("dgx-a100:boxes=2", &no_nic),
        ("dgx-a100:boxes=2", &dead),
        ("dims:ring2+fc4+switch4,bw=200GB/s+100GB/s+50GB/s", &dead),
        ("dims:ring2+fc4+switch4,bw=200GB/s+100GB/s+50GB/s", &half),
        ("mi250:boxes=2", &dead),
    ];
    for (network, fault) in cases {
        let whole = generate(network, &TopologyLimits::STANDARD).unwrap();
        let fault = fault(&whole, 3);
        let left = whole.punctured(std::slice::from_ref(&fault)).unwrap();
        let weights: Vec<u64> = (0..u64::from(whole.rank_count())).map(|rank| rank % 3).collect();
        for shares in [Shares::Equal, Shares::Weighted(weights)] {
            for kind in [Allgather, ReduceScatter, Allreduce] {
                let schedule = healthy(&whole, Algorithm::Tacos, (kind, 0), shares.clone());
                for size_bytes in [None, std::num::NonZeroU64::new(1 << 20)] {
                    let options = RepairOptions { size_bytes, ..IN_TIME };
                    let repaired = repaired(&whole, &schedule, &left, options, &Never).unwrap();
                    let found = judged(&left, &repaired).algbw;
                    if size_bytes.is_none() {
                        let anew = healthy(&left, Algorithm::Tacos, (kind, 0), repaired.shares);
                        let part = found.ratio_to(&judged(&left, &anew).algbw).unwrap().to_f64();
                        assert!(part > 0.5, "{network} {kind} {fault:?}: {part} of what is found anew");
                    }
                }
            }
        }
    }
}

/// Wide links are planned as parallel ones, and mended as what they are.
#[test]
fn parallel_links_are_mended_around() {
    for network in ["random-regular:n=64,d=4,seed=1", "dims:ring8+ring8,bw=50GB/s+25GB/s"] {
        let whole = generate(network, &TopologyLimits::STANDARD).unwrap();
        let by_capacity = |number: &usize| whole.links()[*number].capacity;
        let numbers = || 0..whole.links().len();
        let (narrow, wide) = (numbers().min_by_key(by_capacity).unwrap(), numbers().max_by_key(by_capacity).unwrap());
        assert!(by_capacity(&narrow) < by_capacity(&wide), "{network}");
        for kind in [Allgather, ReduceScatter, Allreduce] {
            let schedule = healthy(&whole, Algorithm::Tacos, (kind, 0), Shares::Equal);
            assert_eq!(steps(&schedule).pace, Pace::Barriers, "{kind} on {network}");
            for dead in [narrow, wide] {
                let link = whole.links()[dead];
                let [from, to] = [link.from, link.to].map(|node| whole.node(node).id.clone());
                let left = whole.punctured(&[Fault::Link { from, to, both_ways: false }]).unwrap();
                let repaired = repaired(&whole, &schedule, &left, IN_TIME, &Never).unwrap();
                let anew = healthy(&left, Algorithm::Tacos, (kind, 0), Shares::Equal);
                let part = judged(&left, &repaired).algbw.ratio_to(&judged(&left, &anew).algbw).unwrap().to_f64();
                assert!(part > 0.97, "{kind} on {network}: {part} of what is found anew");
            }
        }
    }
}

/// Without a fault nothing changes.
#[test]
fn what_is_whole_stays() {
    for (network, kind) in [("torus:4x4", Allgather), ("mesh:3x4", Allreduce), ("dgx-a100:boxes=2", ReduceScatter)] {
        let whole = generate(network, &TopologyLimits::STANDARD).unwrap();
        let schedule = healthy(&whole, Algorithm::Tacos, (kind, 0), Shares::Equal);
        let repaired = repaired(&whole, &schedule, &whole, IN_TIME, &Never).unwrap();
        assert_eq!(judged(&whole, &repaired).algbw, judged(&whole, &schedule).algbw, "{network}");
        assert_eq!(sends(&whole, &repaired).len(), sends(&whole, &schedule).len(), "{network}");
    }
}

#[test]
fn it_stops_when_asked() {
    let whole = generate("torus:4x4", &TopologyLimits::STANDARD).unwrap();
    let schedule = healthy(&whole, Algorithm::Tacos, (Allgather, 0), Shares::Equal);
    assert_eq!(repaired(&whole, &schedule, &whole, IN_TIME, &|| true), Err(RepairError::Stopped));
}
