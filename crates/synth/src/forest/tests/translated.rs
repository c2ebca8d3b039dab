//! Networks with translations, and those without.

use canopy_optimize::Never;
use canopy_schedule::CollectiveKind;
use canopy_topology::{Topology, TopologyLimits, generate};

use super::pieces::{depth_max, in_pieces};
use super::{both_ways, one_way};
use crate::forest::instance::{Instance, Roots};
use crate::forest::network::Network;
use crate::forest::symmetry::translations;

/// The images of rank 0's neighbour under all translations, if there are any.
fn found(topology: &Topology) -> Option<Vec<Vec<u32>>> {
    let capacities: Vec<i128> = topology.links().iter().map(|link| link.capacity.bytes_per_sec().into()).collect();
    translations(&Network::of(topology), &capacities, &Never).unwrap().map(|translations| translations.image)
}

fn generated(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap()
}

/// One translation to each rank, and each is an automorphism without fixed ranks.
#[test]
fn tori_rings_and_hypercubes_have_translations() {
    for expression in ["torus:6x5", "torus:4x4", "torus:3x4x5", "ring:9", "hypercube:5", "torus:2x6"] {
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

/// A mesh has corners, a random network nothing regular, one slow link breaks a ring, and a switch is no rank.
#[test]
fn other_networks_have_none() {
    let ring = |slow| [("a", "b", slow), ("b", "c", 2), ("c", "d", 2), ("d", "e", 2), ("e", "a", 2)];
    assert!(found(&both_ways("a b c d e", &ring(2))).is_some());
    assert!(found(&both_ways("a b c d e", &ring(1))).is_none());
    assert!(found(&one_way("a b c d e", &ring(2))).is_none());
    for expression in ["mesh:4x4", "random-euler:n=12,switches=0,seed=1", "dgx-a100:boxes=2", "bipartite:2x3"] {
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

/// What makes all capacities whole is more than is needed where every link can spare a fraction of a tree.
#[test]
fn the_least_number_of_trees_is_found() {
    for (expression, trees) in [("mi250:boxes=4", 3), ("mi250:boxes=16", 1), ("mi250:boxes=2", 83), ("ring:6", 2)] {
        let topology = generated(expression);
        assert_eq!(Instance::new(&topology, Roots::All, &Never).unwrap().trees_per_root, trees, "{expression}");
    }
}
