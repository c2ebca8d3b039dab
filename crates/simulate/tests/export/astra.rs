//! Networks as products of dimensions: those that are, under the numbers of their ranks, and those that are not.

use canopy_simulate::export::{Block, NetworkError, network as dimensions};
use canopy_topology::{Capacity, Latency, TopologyDraft, TopologyLimits};

use crate::plans::network;

#[track_caller]
fn check(expression: &str, expected: &[(Block, u32)]) {
    let found = dimensions(&network(expression)).unwrap_or_else(|error| panic!("{expression}: {error}"));
    let found: Vec<_> = found.dimensions.iter().map(|dimension| (dimension.block, dimension.rank_count)).collect();
    assert_eq!(found, expected, "{expression}");
}

#[test]
fn products_are_found() {
    use Block::{FullyConnected, Ring, Switch};
    check("ring:8", &[(Ring, 8)]);
    check("ring:3", &[(Ring, 3)]);
    check("complete:2", &[(FullyConnected, 2)]);
    check("complete:6", &[(FullyConnected, 6)]);
    // The last extent counts fastest.
    check("torus:3x5", &[(Ring, 5), (Ring, 3)]);
    check("torus:4x3x5", &[(Ring, 5), (Ring, 3), (Ring, 4)]);
    check("hypercube:4", &[(FullyConnected, 2); 4]);
    check("dgx-a100:boxes=1", &[(Switch, 8)]);
    check("rail:boxes=4,gpus=8", &[(Switch, 8), (Switch, 4)]);
}

#[test]
fn a_network_file_is_exact() {
    let text = dimensions(&network("rail:boxes=4,gpus=8,nv=450GB/s,nic=50GB/s,lat=700ns")).unwrap().to_string();
    assert_eq!(
        text,
        "# Innermost dimension first; of bandwidth, 1 is 2^30 bytes per second.\n\
         topology: [ Switch, Switch ]\n\
         npus_count: [ 8, 4 ]\n\
         bandwidth: [ 419.09515857696533203125, 46.56612873077392578125 ]\n\
         latency: [ 700.0, 700.0 ]\n"
    );
    let text = dimensions(&network("ring:4,bw=1GB/s,lat=0ns")).unwrap().to_string();
    assert!(text.contains("bandwidth: [ 0.931322574615478515625 ]\nlatency: [ 0.0 ]\n"), "{text}");
}

#[test]
fn other_networks_are_refused_with_what_is_in_the_way() {
    #[track_caller]
    fn refused(expression: &str, words: &[&str]) {
        let error = dimensions(&network(expression)).unwrap_err().to_string();
        for word in words {
            assert!(error.contains(word), "{expression}: `{word}` is missing from {error}");
        }
    }
    // One switch for all, instead of one for each rail.
    refused("dgx-a100:boxes=2", &["rank 0 (b0g0)", "multiples of 8"]);
    refused("mesh:3x3", &["rank 0", "multiples of 1;"]);
    refused("mi250:boxes=1", &["not a product"]);
    // A link that is gone, and one that is slower.
    refused("torus:4x4,down=11>12", &["Ring(4) x Ring(4) has 32 links in dimension 1, but the network has 31"]);
    refused("ring:8,degrade=2>3*1/2", &["differs in bandwidth or latency", "dimension 1 of Ring(8)"]);
    // Ring order 0 2 1 3: rank 0 has the neighbours of a ring no more.
    let mut draft = TopologyDraft::default();
    ["a", "b", "c", "d", "e"].into_iter().for_each(|id| draft.add_compute(id));
    let rate = Capacity::from_bytes_per_sec(1_000).unwrap();
    for (from, to) in [("a", "c"), ("c", "b"), ("b", "d"), ("d", "e"), ("e", "a")] {
        draft.add_both(from, to, rate, Latency::default());
    }
    let found = dimensions(&draft.build(&TopologyLimits::STANDARD).unwrap());
    assert!(matches!(found, Err(NetworkError::NoDimension { .. })), "{found:?}");
    // The neighbours of rank 0 are right, those of the others are not.
    let mut draft = TopologyDraft::default();
    ["a", "b", "c", "d", "e"].into_iter().for_each(|id| draft.add_compute(id));
    for (from, to) in [("a", "b"), ("b", "d"), ("d", "c"), ("c", "e"), ("e", "a")] {
        draft.add_both(from, to, rate, Latency::default());
    }
    let found = dimensions(&draft.build(&TopologyLimits::STANDARD).unwrap());
    assert!(matches!(found, Err(NetworkError::Foreign { .. })), "{found:?}");
}
