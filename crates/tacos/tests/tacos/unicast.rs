//! Deliveries, against what is proven.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it stands, helpers included")]

use canopy_optimize::Never;
use canopy_tacos::{
    Attempts, Demand, Fault, Sends, TimedLink, TimedNetwork, Ways, deliver, deliver_best, delivery_bound,
    judge_delivery,
};

use crate::support::{mesh, ring_fc_switch, torus};

fn all_to_all(nodes: u32) -> Vec<Demand> {
    let pairs = (0..nodes).flat_map(|from| (0..nodes).map(move |to| Demand { from, to }));
    pairs.filter(|demand| demand.from != demand.to).collect()
}

/// The end of the best of some attempts, judged, and the bound.
fn ends(network: &TimedNetwork, demands: &[Demand], (seed, count): (u64, u32)) -> (u64, u64) {
    let bound = delivery_bound(network, demands).unwrap();
    let attempts = Attempts { seed, count, bound, known: None };
    let sends = deliver_best(network, demands, attempts, &Never).unwrap().sends;
    judge_delivery(network, demands, &sends).unwrap();
    (sends.end, bound)
}

/// Won et al. did not solve the 6 × 6 mesh.
#[test]
fn all_to_alls_come_close_to_the_bound() {
    for (network, attempts, steps, most) in [
        (mesh(&[6, 6]), 16, 54, 54),
        (mesh(&[10, 10]), 1, 250, 253),
        (torus(&[8, 8]), 4, 64, 66),
        (torus(&[16, 16]), 1, 512, 520),
    ] {
        let (end, bound) = ends(&network, &all_to_all(network.node_count()), (0, attempts));
        assert!(bound == steps && end <= most, "{end} for a bound of {bound}");
    }
    let (end, bound) = ends(&ring_fc_switch(8, 1_000_000), &all_to_all(64), (0, 4));
    assert!(end * 98 <= bound * 100, "{end} for a bound of {bound}");
}

/// One node's chunks for all others, and theirs for it.
#[test]
fn scatters_and_gathers_reach_the_bound_with_every_seed() {
    for (network, middle) in [(mesh(&[6, 6]), 21), (mesh(&[16, 16]), 136), (torus(&[16, 16]), 131)] {
        for root in [0, middle] {
            let others = (0..network.node_count()).filter(|&node| node != root);
            let scatter: Vec<Demand> = others.clone().map(|to| Demand { from: root, to }).collect();
            let gather: Vec<Demand> = others.map(|from| Demand { from, to: root }).collect();
            for seed in 0..5 {
                for demands in [&scatter, &gather] {
                    let (end, bound) = ends(&network, demands, (seed, 4));
                    assert_eq!(end, bound, "{root}, {seed}");
                }
            }
        }
    }
}

/// Won et al., figure 5: nearest first takes five steps, farthest first three.
#[test]
fn farthest_first_scatters_on_a_ring_in_three_steps() {
    let link = |node| TimedLink { from: node, to: (node + 1) % 4, latency: 1, occupancy: 1 };
    let network = TimedNetwork::new(4, (0..4).map(link).collect()).unwrap();
    let demands = [0, 2, 3].map(|to| Demand { from: 1, to });
    assert_eq!(ends(&network, &demands, (0, 1)), (3, 3));
}

#[test]
fn the_judge_objects_to_every_change() {
    let network = torus(&[4, 4]);
    let demands = all_to_all(16);
    let sends = deliver(&network, &demands, Ways::Shortest, 1, &Never).unwrap();
    judge_delivery(&network, &demands, &sends).unwrap();
    let changed = |change: &dyn Fn(&mut Sends)| {
        let mut other = sends.clone();
        change(&mut other);
        judge_delivery(&network, &demands, &other).unwrap_err()
    };
    for index in 0..sends.sends.len() {
        let lost = changed(&|other| {
            other.sends.remove(index);
        });
        assert!(matches!(lost, Fault::Early { .. } | Fault::Missing { .. }), "{lost}");
        let other_chunk = changed(&|other| other.sends[index].chunk = (other.sends[index].chunk + 1) % 240);
        assert!(!matches!(other_chunk, Fault::End { .. }), "{other_chunk}");
        changed(&|other| other.sends.insert(index, other.sends[index]));
    }
    assert!(matches!(changed(&|other| other.end += 1), Fault::End { .. }));
}
