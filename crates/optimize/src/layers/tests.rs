//! Layers never hold a cycle, refuse only what closes one, and need as few as small networks are known to need.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;

/// Whether the waits of some routes have no cycle: nothing is left once all that waits for nothing is taken away.
fn is_acyclic(routes: &[&Vec<u32>]) -> bool {
    let mut waits: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for pair in routes.iter().flat_map(|route| route.windows(2)) {
        waits.entry(pair[0]).or_default().insert(pair[1]);
    }
    loop {
        let held: BTreeSet<u32> = waits.keys().copied().collect();
        let before = waits.len();
        waits.retain(|_, next| next.iter().any(|channel| held.contains(channel)));
        if waits.len() == before {
            return waits.is_empty();
        }
    }
}

fn routes() -> impl Strategy<Value = Vec<Vec<u32>>> {
    // Walks over a few channels, none of them twice.
    let route = proptest::sample::subsequence((0..9_u32).collect::<Vec<_>>(), 1..5).prop_shuffle();
    proptest::collection::vec(route, 1..40)
}

proptest! {
    /// Each layer is without a cycle, and a route is in a later layer only if every earlier one would have had one.
    #[test]
    fn each_route_is_in_the_first_layer_that_takes_it(routes in routes()) {
        let mut layers = Layers::new(9, u32::MAX);
        let mut placed: Vec<Vec<&Vec<u32>>> = Vec::new();
        for route in &routes {
            let layer = layers.place(route).unwrap() as usize;
            placed.resize(placed.len().max(layer + 1), Vec::new());
            for earlier in &placed[..layer] {
                let with: Vec<&Vec<u32>> = earlier.iter().copied().chain([route]).collect();
                prop_assert!(!is_acyclic(&with), "{route:?} had room earlier");
            }
            placed[layer].push(route);
            prop_assert!(is_acyclic(&placed[layer]), "{:?}", placed[layer]);
        }
        prop_assert_eq!(placed.len(), layers.count() as usize);
    }

    /// Ways that rise are as short as any, pass no node twice, and have room in their layer.
    #[test]
    fn rising_ways_have_room(
        routes in routes(),
        ends in proptest::collection::vec((0..5_u32, 0..5_u32, 1..4_u64), 9),
        source in 0..5_u32,
    ) {
        let mut layers = Layers::new(9, 1);
        let mut placed: Vec<&Vec<u32>> = routes.iter().filter(|route| layers.place(route) == Some(0)).collect();
        prop_assume!(!placed.is_empty());
        let ascent = layers.ascent(0, source, 5, &ends).unwrap();
        let ways: Vec<Vec<u32>> = (0..5).filter_map(|node| {
            let (length, way) = ascent.way_to(node)?;
            let mut at = vec![source];
            for &channel in &way {
                assert_eq!(ends[channel as usize].0, *at.last().unwrap());
                at.push(ends[channel as usize].1);
            }
            assert_eq!(*at.last().unwrap(), node);
            assert_eq!(at.iter().collect::<BTreeSet<_>>().len(), at.len(), "{at:?}");
            assert_eq!(way.iter().map(|&channel| ends[channel as usize].2).sum::<u64>(), length);
            Some(way)
        }).collect();
        for way in &ways {
            prop_assert!(layers.place_in(0, way), "{way:?}");
            placed.push(way);
        }
        prop_assert!(is_acyclic(&placed));
    }
}

/// Going round a ring of one direction, no three routes of two links each fit one layer.
#[test]
fn a_ring_takes_two_layers() {
    let mut layers = Layers::new(3, 2);
    let found: Vec<Option<u32>> = [[0, 1], [1, 2], [2, 0]].iter().map(|route| layers.place(route)).collect();
    assert_eq!(found, [Some(0), Some(0), Some(1)]);
    assert_eq!(layers.count(), 2);
    assert!(layers.ascent(2, 0, 3, &[(0, 1, 1), (1, 2, 1), (2, 0, 1)]).is_none());
}

/// A refused route leaves nothing behind: what it would have blocked still has room.
#[test]
fn refusals_change_nothing() {
    let mut layers = Layers::new(5, 1);
    assert_eq!(layers.place(&[0, 1]), Some(0));
    // Waits 3 → 4 and 4 → 0 are fine; 1 → 0 is not.
    assert_eq!(layers.place(&[3, 4, 1, 0]), None);
    assert_eq!(layers.place(&[1, 4, 3]), Some(0));
    assert_eq!(layers.place(&[2]), Some(0));
    assert_eq!((layers.place(&[1, 0]), layers.place_in(0, &[1, 0])), (None, false));
}

/// A route that comes back to a channel waits for itself in every layer.
#[test]
fn a_route_in_a_circle_has_no_layer() {
    let mut layers = Layers::new(3, 9);
    assert_eq!((layers.place(&[1, 1]), layers.place(&[0, 1, 2, 0])), (None, None));
    assert_eq!(layers.count(), 0);
}
