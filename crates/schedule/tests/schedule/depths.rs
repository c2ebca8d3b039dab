//! No schedule needs fewer hops in a row than the distances say.

use canopy_schedule::{Collective, CollectiveKind, Shape, Shares, check, compile};
use canopy_topology::{Rank, Topology};
use proptest::prelude::*;

use crate::depth_bound::depth_bound;
use crate::forests::{Random, complete_with_switch, one_way_ring, path_3, star, topology};
use crate::shapes::any_shape;

fn bound(topology: &Topology, kind: CollectiveKind, root: u32) -> Option<u32> {
    let root = kind.has_root().then(|| Rank::new(root));
    depth_bound(topology, Collective::new(kind, root, topology.rank_count()).unwrap(), &Shares::Equal)
}

#[test]
fn distances_by_hand() {
    let (path, ring, star) = (path_3(), one_way_ring(5), star(4));
    for kind in CollectiveKind::ALL {
        // From the middle of the path, from its end, around the ring, and through one switch.
        let ends = if kind.has_root() { 1 } else { 2 };
        assert_eq!((bound(&path, kind, 1), bound(&path, kind, 2)), (Some(ends), Some(2)), "{kind}");
        assert_eq!((bound(&ring, kind, 0), bound(&star, kind, 0)), (Some(4), Some(1)), "{kind}");
    }
    // Two switches in a row are still one hop.
    let row = topology(2, 2, &[("r0", "s0"), ("s0", "s1"), ("s1", "r1"), ("r1", "r0")]);
    assert_eq!(bound(&row, CollectiveKind::Allreduce, 0), Some(1));
}

#[test]
fn only_what_is_promised_counts() {
    let one_way = topology(3, 0, &[("r0", "r1"), ("r1", "r2")]);
    let found = |kind, root| bound(&one_way, kind, root);
    assert_eq!((found(CollectiveKind::Broadcast, 0), found(CollectiveKind::Broadcast, 1)), (Some(2), None));
    assert_eq!((found(CollectiveKind::Reduce, 2), found(CollectiveKind::Gather, 0)), (Some(2), None));
    let only = |kind, weights: &[u64]| {
        let collective = Collective::new(kind, None, 3).unwrap();
        depth_bound(&one_way, collective, &Shares::Weighted(weights.to_vec()))
    };
    assert_eq!(only(CollectiveKind::Allgather, &[1, 0, 0]), Some(2));
    assert_eq!(only(CollectiveKind::ReduceScatter, &[0, 0, 1]), Some(2));
    assert_eq!(only(CollectiveKind::Scatter, &[0, 1, 0]), Some(1));
    assert_eq!(only(CollectiveKind::Allgather, &[1, 1, 0]), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_schedule_is_flatter(ranks in 2..7_u32, seed: u64) {
        let topology = complete_with_switch(ranks);
        let mut random = Random(seed);
        for kind in CollectiveKind::ALL {
            let schedule = any_shape(&topology, kind, &mut random);
            let bound = depth_bound(&topology, schedule.collective, &schedule.shares).unwrap();
            let verdict = check(&topology, &compile(&topology, &schedule).unwrap()).unwrap();
            prop_assert!(verdict.chain_max >= bound);
            match &schedule.shape {
                Shape::Steps(steps) => prop_assert!(steps.step_count() >= u64::from(bound)),
                Shape::Forest(_) | Shape::Flow(_) | Shape::Stages(_) | Shape::Orbits(_) => prop_assert!(verdict.depth_max >= bound),
            }
        }
    }
}
