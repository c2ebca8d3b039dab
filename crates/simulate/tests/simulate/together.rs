//! Several collectives at once.

use canopy_simulate::{SimulateOptions, TogetherError, TogetherPart, simulate, simulate_together};

use crate::networks::{ALPHA_PS, BETA, CAPACITY, broadcast, checked, network, options};

/// Bytes that take as long as α.
const BYTES: u64 = ALPHA_PS / BETA;

#[test]
fn one_alone_takes_what_it_takes() {
    let topology = network(3, 0, &[("0", "1", CAPACITY, 0), ("1", "2", CAPACITY, 0)]);
    let (graph, _) = checked(&topology, &broadcast(&topology, &[(0, 0, 1), (1, 1, 2)]));
    let part = TogetherPart { graph: &graph, topology: &topology, size_bytes: BYTES };
    let together = simulate_together(&topology, &[part], &options(1), &|| false).unwrap();
    assert_eq!(together.outcome, simulate(&topology, &graph, &options(BYTES), &|| false).unwrap());
    assert_eq!(together.left_ps, [4 * ALPHA_PS]);
}

/// Both hops of the first share each link with one of the second, which is three times as large: all end together.
#[test]
fn messages_share_links_by_their_bytes() {
    let topology = network(2, 0, &[("0", "1", CAPACITY, 0)]);
    let (graph, _) = checked(&topology, &broadcast(&topology, &[(0, 0, 1)]));
    let part = |size_bytes| TogetherPart { graph: &graph, topology: &topology, size_bytes };
    let together = simulate_together(&topology, &[part(BYTES), part(3 * BYTES)], &options(1), &|| false).unwrap();
    assert_eq!(together.left_ps, [5 * ALPHA_PS, 5 * ALPHA_PS]);
    assert_eq!(together.outcome.time_ps, 5 * ALPHA_PS);
}

/// The numbers of a part's own network mean nothing in that of all: ids do.
#[test]
fn parts_name_nodes_by_their_ids() {
    let whole = network(3, 0, &[("0", "1", CAPACITY, 0), ("1", "2", CAPACITY, 0)]);
    let own = network(2, 0, &[("0", "1", CAPACITY, 0)]);
    let (graph, _) = checked(&own, &broadcast(&own, &[(0, 0, 1)]));
    let part = TogetherPart { graph: &graph, topology: &own, size_bytes: BYTES };
    let together = simulate_together(&whole, &[part], &options(1), &|| false).unwrap();
    assert_eq!(together.left_ps, [2 * ALPHA_PS]);
    let other = network(3, 0, &[("0", "2", CAPACITY, 0), ("1", "2", CAPACITY, 0)]);
    let refused = simulate_together(&other, &[part], &options(1), &|| false).unwrap_err();
    assert!(matches!(refused, TogetherError::NoLink { part: 0, .. }), "{refused}");
    assert_eq!(simulate_together(&whole, &[], &options(1), &|| false), Err(TogetherError::Nothing));
    let little = SimulateOptions { work_max: 1, ..options(1) };
    assert!(matches!(simulate_together(&whole, &[part], &little, &|| false), Err(TogetherError::Simulate(_))));
}
