//! What collectives take together that share links: by hand.

use std::num::NonZeroU64;

use canopy_schedule::{CollectiveKind, SharedPart, SharedTimeError, compile, shared_links, shared_time};
use canopy_topology::Ratio;

use crate::forests::{CAPACITY, one_way_ring, path_3};
use crate::in_turn::in_turn;

fn size(bytes: u64) -> NonZeroU64 {
    NonZeroU64::new(bytes).unwrap()
}

#[test]
fn bytes_of_all_collectives_add_up_on_their_links() {
    let network = one_way_ring(3);
    // Over two links, and over all three: of each share, a third of the size.
    let broadcast = in_turn(&network, CollectiveKind::Broadcast, 1, &[(0, 0, 1, 0), (1, 1, 2, 0)]);
    let sent = [(0, 0, 1, 0), (0, 1, 2, 1), (0, 2, 0, 2), (1, 1, 2, 0), (1, 2, 0, 1), (1, 0, 1, 2)];
    let gather = in_turn(&network, CollectiveKind::Allgather, 1, &sent);
    let graphs = [&broadcast, &gather].map(|schedule| compile(&network, schedule).unwrap());
    let part = |graph, bytes| SharedPart { graph, topology: &network, size_bytes: size(bytes) };
    let time = |parts: &[SharedPart<'_>]| shared_time(&network, parts).unwrap();
    let seconds = |bytes: u64| Ratio::new(bytes, CAPACITY).unwrap();
    assert_eq!(time(&[part(&graphs[0], 300)]), seconds(300));
    assert_eq!(time(&[part(&graphs[1], 300)]), seconds(200));
    assert_eq!(time(&[part(&graphs[0], 300), part(&graphs[1], 600)]), seconds(700));
    assert_eq!(time(&[part(&graphs[0], 1), part(&graphs[0], 2), part(&graphs[0], 4)]), seconds(7));
    // 700 s of capacity on the busiest links: 300 of the first class where it sends, 400 of the second everywhere.
    let parts = [(0, part(&graphs[0], 300)), (1, part(&graphs[1], 600))];
    let links = shared_links(&network, &parts, 3).unwrap();
    let found: Vec<_> = links.iter().map(|link| (link.billionths.as_slice(), link.is_busiest)).collect();
    let both: (&[u32], bool) = (&[428_571_428, 571_428_571, 0], true);
    assert_eq!(found, [both, both, (&[0, 571_428_571, 0], false)]);
    assert_eq!(shared_links(&network, &[], 1), Err(SharedTimeError::Nothing));
    assert_eq!(shared_time(&network, &[]), Err(SharedTimeError::Nothing));
    // No link of the ring leads back.
    let path = path_3();
    let back = in_turn(&path, CollectiveKind::Allgather, 1, &[(0, 2, 1, 2)]);
    let mut graph = compile(&path, &broadcast_on(&path)).unwrap();
    assert_eq!(time(&[SharedPart { graph: &graph, topology: &path, size_bytes: size(5) }]), seconds(5));
    graph = compile(&path, &back).unwrap();
    let refused = shared_time(&network, &[SharedPart { graph: &graph, topology: &path, size_bytes: size(5) }]);
    assert!(matches!(refused, Err(SharedTimeError::NoLink { part: 0, .. })), "{refused:?}");
}

fn broadcast_on(path: &canopy_topology::Topology) -> canopy_schedule::Schedule {
    in_turn(path, CollectiveKind::Broadcast, 1, &[(0, 0, 1, 0), (1, 1, 2, 0)])
}
