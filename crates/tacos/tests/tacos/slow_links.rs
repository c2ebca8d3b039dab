//! Allgathers on links of different speeds, against what is proven.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it stands, helpers included")]

use canopy_optimize::Never;
use canopy_tacos::{Attempts, CopyTask, FreeGroup, TimedLink, TimedNetwork, best_of, judge, lower_bound};

use crate::support::{Chance, dragonfly, grid_cables, random_regular, ring_fc_switch};

/// The best of five attempts, which must be within a part of the bound: `least` / 1000 of the time is needed by any schedule.
#[track_caller]
fn check(name: &str, network: &TimedNetwork, chunks: u32, least: u64) {
    let task = CopyTask::allgather(network.node_count(), chunks).unwrap();
    let bound = lower_bound(network, &task).unwrap();
    let group = FreeGroup::trivial(network.node_count());
    let best = best_of(network, &task, &group, Attempts { seed: 0, count: 5, bound, known: None }, &Never).unwrap();
    judge(network, &task, &best.sends).unwrap();
    let end = best.sends.end;
    assert!(bound <= end && end * least <= bound * 1000, "{name}: {end} for a bound of {bound}");
}

/// Links that are alike but for one in four, which takes four times as long; α is half of the shorter time.
fn one_to_four(sizes: &[u32], is_torus: bool) -> TimedNetwork {
    let mut links = Vec::new();
    for (a, b) in grid_cables(sizes, is_torus) {
        // Cables along the first dimension are slow.
        let occupancy = if a.abs_diff(b) >= sizes[1] { 4 } else { 1 } * 1000;
        let timed = |(from, to)| TimedLink { from, to, latency: 500 + occupancy, occupancy };
        links.extend([(a, b), (b, a)].map(timed));
    }
    TimedNetwork::new(sizes.iter().product(), links).unwrap()
}

#[test]
fn rings_joined_by_meshes_and_switches() {
    check("64 NPUs", &ring_fc_switch(8, 1_000_000), 1, 970);
    check("512 NPUs", &ring_fc_switch(64, 1_000_000), 1, 996);
}

#[test]
fn grids_with_slow_cables() {
    check("torus", &one_to_four(&[16, 16], true), 1, 970);
    check("mesh", &one_to_four(&[16, 16], false), 1, 970);
}

#[test]
fn dragonflies() {
    for (chunks, end) in [(1, 9), (4, 33), (16, 129)] {
        let network = dragonfly();
        let task = CopyTask::allgather(20, chunks).unwrap();
        let bound = lower_bound(&network, &task).unwrap();
        let attempts = Attempts { seed: 0, count: 9, bound, known: None };
        let best = best_of(&network, &task, &FreeGroup::trivial(20), attempts, &Never).unwrap();
        judge(&network, &task, &best.sends).unwrap();
        assert_eq!(best.sends.end, end);
    }
}

/// Where all seeds end at one time above the bound, as with some of these, it is the bound that is loose.
#[test]
fn any_costs() {
    for (seed, nodes, degree, costs, least) in [
        (4, 64, 4, 100, 1000),
        (6, 64, 4, 100, 1000),
        (7, 64, 4, 100, 950),
        (5, 128, 6, 10, 1000),
        (7, 128, 6, 10, 1000),
    ] {
        let mut chance = Chance(seed);
        let links = random_regular(nodes, degree, seed).links().to_vec();
        let links = links.into_iter().map(|link| {
            let occupancy = u64::from(1 + chance.below(costs)) * 100;
            TimedLink { latency: occupancy + 50, occupancy, ..link }
        });
        let network = TimedNetwork::new(nodes, links.collect()).unwrap();
        check(&format!("{nodes} nodes, {seed}"), &network, 1, least);
    }
}
