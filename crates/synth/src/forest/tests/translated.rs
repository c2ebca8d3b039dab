//! Networks with translations, and those without.

use canopy_optimize::Never;
use canopy_schedule::{CollectiveKind, Shares};
use canopy_topology::{Topology, TopologyLimits, generate};

use super::pieces::{depth_max, in_pieces};
use super::{both_ways, one_way};
use crate::forest::instance::{Instance, Roots};
use crate::forest::network::Network;

use crate::symmetry::translations;

/// The images of all ranks under all translations, if there are any, by the rank that rank 0 is moved to.
fn found(topology: &Topology) -> Option<Vec<Vec<u32>>> {
    let network = Network::of(topology);
    let arcs = topology.links().iter();
    let arcs = arcs.map(|link| (link.from.number(), link.to.number(), u128::from(link.capacity.bytes_per_sec())));
    let found = translations(topology.nodes().len(), arcs, &network.boxes, &Never).unwrap();
    found.map(|translations| translations.image)
}

fn generated(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap()
}

/// One translation to each rank, and each is an automorphism without fixed ranks.
#[test]
fn tori_rings_hypercubes_and_grids_have_translations() {
    let tori = ["torus:6x5", "torus:4x4", "torus:3x4x5", "ring:9", "hypercube:5", "torus:2x6"];
    for expression in tori.into_iter().chain(["dfc2:5x6", "dfc2:8x8", "torus:3x3x3"]) {
        let topology = generated(expression);
        let images = found(&topology).unwrap_or_else(|| panic!("{expression} has translations"));
        for (rank, image) in (0..).zip(&images) {
            assert_eq!(image[0], rank, "{expression}");
            assert!(rank == 0 || (0..).zip(image).all(|(here, &there)| here != there), "{expression}");
            for link in topology.links() {
                let ends = (image[link.from.index()], image[link.to.index()]);
                let moved = topology.links().iter().find(|other| (other.from.number(), other.to.number()) == ends);
                assert_eq!(moved.map(|other| other.capacity), Some(link.capacity), "{expression}");
            }
        }
    }
}

/// A mesh has corners, a random network nothing regular, one slow link breaks a ring, and a star has a middle.
#[test]
fn other_networks_have_none() {
    let ring = |slow| [("a", "b", slow), ("b", "c", 2), ("c", "d", 2), ("d", "e", 2), ("e", "a", 2)];
    assert!(found(&both_ways("a b c d e", &ring(2))).is_some());
    assert!(found(&both_ways("a b c d e", &ring(1))).is_none());
    assert!(found(&one_way("a b c d e", &ring(2))).is_none());
    assert!(found(&both_ways("a b c s", &[("a", "s", 1), ("b", "s", 1), ("c", "s", 1)])).is_none());
    for expression in ["mesh:4x4", "random-euler:n=12,switches=0,seed=1", "bipartite:2x3"] {
        assert!(found(&generated(expression)).is_none(), "{expression}");
    }
}

/// No rank is further from a root than in the network itself, and the rate is the optimum.
#[test]
fn translated_trees_are_as_flat_as_the_network() {
    for (expression, eccentricity) in
        [("torus:6x6", 6), ("torus:4x6", 5), ("torus:3x4x5", 5), ("torus:8x16", 12), ("hypercube:5", 5), ("ring:9", 4)]
    {
        let (forest, _) = in_pieces(&generated(expression), CollectiveKind::Allgather);
        assert_eq!(depth_max(&forest), eccentricity, "{expression}");
        in_pieces(&generated(expression), CollectiveKind::ReduceScatter);
    }
}

/// Boxes so well joined that every rank is as scarce as its box, which therefore has nothing to trim: what is left once
/// the switches are gone looks the same from all ranks.
#[test]
fn machines_without_tight_boxes_are_symmetric() {
    for expression in
        ["rail:boxes=4,gpus=4,nv=60GB/s,nic=50GB/s", "dgx-h100:boxes=2", "dgx-h100:boxes=3", "dgx-a100:boxes=1"]
    {
        let (forest, _) = in_pieces(&generated(expression), CollectiveKind::Allgather);
        assert!(depth_max(&forest) <= 2, "{expression}: {} hops", depth_max(&forest));
    }
}

/// What makes all capacities whole is more than is needed where every link can spare a fraction of a tree.
#[test]
fn the_least_number_of_trees_is_found() {
    for (expression, trees) in [("mi250:boxes=4", 3), ("mi250:boxes=16", 1), ("mi250:boxes=2", 83), ("ring:6", 2)] {
        let topology = generated(expression);
        assert_eq!(
            Instance::new(&topology, Roots::All(&Shares::Equal), None, &Never).unwrap().trees_per_root,
            trees,
            "{expression}"
        );
    }
}
