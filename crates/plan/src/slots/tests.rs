//! Which slots a matrix needs, and which routes fill them.

use super::*;

/// Three ranks with units of 16 bytes: slots of 3.
fn slots() -> Slots {
    Slots::new(3, &[99, 33, 0, 16, 0, 1, 0, 48, 0], 16).unwrap()
}

fn route(ranks: &[u32], first: u64, count: u64) -> SlotRoute {
    SlotRoute { ranks: ranks.to_vec(), first, count }
}

/// Routes for all units of these slots.
fn routes() -> Vec<SlotRoute> {
    vec![
        route(&[1, 2], 0, 1),
        route(&[0, 2, 1], 2, 1),
        route(&[1, 0], 0, 1),
        route(&[2, 1], 0, 3),
        route(&[0, 1], 0, 2),
    ]
}

#[test]
fn slots_are_as_large_as_the_greatest_entry_needs() {
    let slots = slots();
    assert_eq!((slots.slot_units(), slots.buffer_bytes()), (3, Some(144)));
    let filled: Vec<u64> =
        (0..3).flat_map(|from| (0..3).map(move |to| (from, to))).map(|(a, b)| slots.filled(a, b)).collect();
    assert_eq!(filled, [3, 3, 0, 1, 3, 1, 0, 3, 3]);
    assert_eq!((slots.filled(3, 0), slots.filled(0, 3)), (0, 0));
}

#[test]
fn matrices_without_slots_are_refused_with_the_remedy() {
    let text = |ranks, bytes: &[u64], unit| Slots::new(ranks, bytes, unit).unwrap_err().to_string();
    assert_eq!(text(1, &[0], 16), "`ranks` is 1; state 2 to 1024");
    assert_eq!(text(1025, &[], 16), "`ranks` is 1025; state 2 to 1024");
    assert_eq!(text(2, &[0; 3], 16), "`bytes` has 3 entries for 2 ranks; state 4, row by row");
    for unit in [0, 8, 24] {
        assert_eq!(text(2, &[0, 1, 1, 0], unit), format!("the unit has {unit} bytes; use a multiple of 16"));
    }
    assert_eq!(text(2, &[5, 0, 0, 5], 16), SlotsError::NothingMoves.to_string());
    let found = Slots::new(2, &[0, 1 << 30, 1, 0], 16).unwrap_err();
    assert_eq!(found, SlotsError::TooManyUnits { ranks: 2, slot_units: 1 << 26, unit_bytes_min: 1 << 10 });
    assert!(
        found.to_string().contains("more than the 1048576 that a proof can follow; use units of at least 1024 bytes")
    );
    assert!(Slots::new(2, &[0, 1 << 30, 1, 0], 1 << 10).is_ok());
    assert_eq!(Slots::new(1_024, &[u64::MAX; 1 << 20], 1 << 62).unwrap().buffer_bytes(), None);
}

#[test]
fn chunks_of_several_units_are_filled_whole_or_not_at_all() {
    let even = Slots::new(2, &[0, 64, 32, 0], 16).unwrap();
    assert_eq!((even.units_of_chunk(4), even.units_of_chunk(2)), (Ok(1), Ok(2)));
    for chunks in [0, 1, 3, 5, 8] {
        assert!(even.units_of_chunk(chunks).is_err(), "{chunks}");
    }
}

#[test]
fn every_rank_sends_in_each_turn() {
    let graph = slot_transfers(&slots(), &routes()).unwrap();
    let batches: Vec<_> = graph.batches.iter().map(|batch| (batch.chunk_first, batch.chunk_count)).collect();
    // Slots of 3 units: 1 for rank 0 to 1, 3 for 1 to 0, 5 for 1 to 2, 7 for 2 to 1.
    assert_eq!(batches, [(3, 2), (5, 1), (15, 1), (9, 1), (21, 3)]);
    let hops: Vec<_> = graph.transfers.iter().map(|hop| (hop.from.number(), hop.to.number())).collect();
    assert_eq!(hops, [(0, 1), (0, 2), (2, 1), (1, 2), (1, 0), (2, 1)]);
    let waits: Vec<_> = graph.transfers.iter().map(|hop| graph.dependencies_of(hop).to_vec()).collect();
    assert_eq!(waits, [vec![], vec![], vec![1], vec![], vec![], vec![]]);
}

#[test]
fn routes_that_do_not_fill_the_slots_are_refused() {
    let changed = |change: &dyn Fn(&mut Vec<SlotRoute>)| {
        let mut routes = routes();
        change(&mut routes);
        slot_transfers(&slots(), &routes).unwrap_err()
    };
    let units = |from, to, filled, found| SlotRouteError::Units { from, to, filled, found };
    assert_eq!(changed(&|routes| drop(routes.pop())), units(0, 1, 3, 0));
    assert_eq!(changed(&|routes| drop(routes.remove(0))), units(1, 2, 1, 0));
    assert_eq!(changed(&|routes| routes.push(route(&[0, 1], 2, 1))), units(0, 1, 3, 3));
    assert_eq!(changed(&|routes| routes.push(route(&[0, 2], 0, 1))), units(0, 2, 0, 0));
    assert_eq!(changed(&|routes| routes[3].count = u64::MAX), units(2, 1, 3, 0));
    assert_eq!(changed(&|routes| routes[4].count = 1), units(0, 1, 3, 1));
    assert_eq!(changed(&|routes| routes[2].ranks = vec![1]), SlotRouteError::TooShort { route: 2, found: 1 });
    assert_eq!(
        changed(&|routes| routes[2].ranks = vec![1, 3]),
        SlotRouteError::NoSuchRank { route: 2, rank: 3, ranks: 3 }
    );
    assert_eq!(changed(&|routes| routes[2].ranks = vec![1, 1]), SlotRouteError::Twice { route: 2, rank: 1 });
    let many = |routes: &mut Vec<SlotRoute>| routes.resize((1 << 18) + 1, route(&[0, 1], 0, 1));
    assert_eq!(changed(&many), SlotRouteError::TooMany { routes: (1 << 18) + 1 });
    assert_eq!(changed(&|routes| routes[1].count = 0), SlotRouteError::Empty { route: 1 });
}
