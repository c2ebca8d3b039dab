//! The published method, with what is known of it.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it stands, helpers included")]

use canopy_baselines::copy_by_requests;
use canopy_optimize::Never;
use canopy_tacos::{CopyError, CopyTask, TimedLink, TimedNetwork, judge};

use crate::support::{dragonfly, mesh, ring_fc_switch, torus, without};

/// The least and the greatest end over so many seeds, and the sum of all.
fn ends(network: &TimedNetwork, seeds: u64) -> (u64, u64, u64) {
    let task = CopyTask::allgather(network.node_count(), 1).unwrap();
    let end = |seed| {
        let sends = copy_by_requests(network, &task, seed, &Never).unwrap();
        judge(network, &task, &sends).unwrap();
        sends.end
    };
    (0..seeds).map(end).fold((u64::MAX, 0, 0), |(least, most, sum), end| (least.min(end), most.max(end), sum + end))
}

/// Won et al., figure 20 and what follows from the method: on the 3 × 3 mesh 4 to 6 steps, 4.56 on average over 2,000 seeds.
#[test]
fn small_meshes_take_more_steps_with_some_seeds() {
    let (least, most, sum) = ends(&mesh(&[3, 3]), 2000);
    assert_eq!((least, most), (4, 6));
    assert!((4.45..4.67).contains(&(f64::from(u32::try_from(sum).unwrap()) / 2000.0)), "{sum}");
    assert_eq!(ends(&mesh(&[4, 4]), 20).0, 8);
    assert_eq!(ends(&mesh(&[5, 5]), 40).0, 12);
    // The 4 × 4 mesh without nodes 7 and 9 (table III): the bound with every seed.
    let (least, most, _) = ends(&without(&mesh(&[4, 4]), &[7, 9]), 100);
    assert_eq!((least, most), (13, 13));
}

/// At least one step more than the bound of 16 with every seed.
#[test]
fn the_torus_is_never_served_in_time() {
    let (least, most, _) = ends(&torus(&[8, 8]), 40);
    assert!(least == 17 && most <= 18, "{least} to {most}");
}

#[test]
fn on_links_of_different_speeds_slow_ones_carry_copies() {
    let (least, _, _) = ends(&dragonfly(), 100);
    assert!((10..=11).contains(&least), "{least}");
    // The bound is 159,500 ns; the method takes more than twice that.
    let (least, ..) = ends(&ring_fc_switch(8, 1_000_000), 5);
    assert!((250_000..450_000).contains(&least), "{least}");
}

#[test]
fn what_only_others_can_pass_on_is_not_reached() {
    let link = |from, to| TimedLink { from, to, latency: 1, occupancy: 1 };
    let network = TimedNetwork::new(3, vec![link(0, 1), link(1, 2)]).unwrap();
    let task = CopyTask::new(vec![0], vec![true, false, true]).unwrap();
    let refused = copy_by_requests(&network, &task, 0, &Never);
    assert_eq!(refused, Err(CopyError::Unreachable { node: 2, chunk: 0, owner: 0 }));
}
