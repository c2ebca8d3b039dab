//! Networks of ranks alone that are the same by theorem, and symmetries that are known.

use canopy_canonical::{Budget, Comparison, Graph, WORK_STANDARD, compare, graph_of};
use canopy_topology::{Topology, TopologyLimits, generate};

use crate::support::analysed;

const BUDGET: Budget<'static> = Budget { work_max: WORK_STANDARD, stop: &|| false };

fn network(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap_or_else(|error| panic!("{expression}: {error}"))
}

fn graph(topology: &Topology) -> Graph {
    graph_of(topology, &[]).unwrap()
}

/// Ports that lead back to their own rank, in bytes per second, by how many ranks have so much.
fn loops(topology: &Topology) -> Vec<u64> {
    let loops = topology.nodes().iter().filter_map(|node| node.attributes.loops);
    let mut loops: Vec<u64> = loops.map(|loops| loops.bytes_per_sec()).collect();
    loops.sort_unstable();
    loops
}

#[track_caller]
fn check_same(a: &str, b: &str) {
    let (one, other) = (network(a), network(b));
    let comparison = compare(&graph(&one), &graph(&other), BUDGET).unwrap();
    assert!(matches!(comparison, Comparison::Same(_)), "{a} and {b}: {comparison:?}");
    assert_eq!(loops(&one), loops(&other), "{a} and {b}");
}

#[test]
fn constructions_of_the_same_network_agree() {
    for (a, b) in [
        ("hamming:2x2x2x2", "hypercube:4"),
        ("hypercube:5", "power:5(complete:2)"),
        ("torus:4x5", "product(ring:4;ring:5)"),
        ("torus:2x3x4", "product(ring:4;torus:2x3)"),
        ("mesh:3x4", "product(mesh:4;mesh:3)"),
        ("dfc2:3x4", "product(complete:3;complete:4)"),
        ("hamming:3x3x3", "power:3(complete:3)"),
        ("power:2(power:2(uniring:n=3))", "power:4(uniring:n=3)"),
        ("bipartite:4x4", "degree:4(complete:2)"),
        ("degree:3(degree:2(ring:3))", "degree:6(ring:3)"),
        ("bidirect(ring:5,dir=uni)", "ring:5"),
        ("bidirect(ring:5):bw=1GB/s", "biring:n=5,d=4,bw=1GB/s"),
        ("biring:n=6,d=4,bw=1GB/s", "ring:6,bw=2GB/s"),
        ("circulant:n=5,offsets=1+2", "complete:5"),
        ("circulant:n=9,offsets=1+2", "circulant:n=9,offsets=2+4"),
        ("circulant:n=13", "circulant:n=13,offsets=2+3"),
        ("circulant:n=13,d=8,bw=1GB/s", "circulant:n=13,bw=2GB/s"),
        ("dcirculant:d=1", "ring:3,dir=uni"),
        ("dims:ring4+ring5", "torus:4x5"),
        ("dims:fc3+fc4", "dfc2:3x4"),
        ("dims:switch4+switch3,unwind=3+2,bw=6GB/s+4GB/s", "hamming:4x3,bw=2GB/s"),
        ("dragonfly:4x1,local=25GB/s", "complete:4"),
        // Pham 2026, §2.1 with figures 2.4(c) and 2.5(c), and the Dragonfly of table 3.2 for d = 4.
        ("dragonfly:3x4,h=3,local=25GB/s,global=25GB/s", "dfc2:3x4"),
        ("dragonfly:4x5,h=4,local=25GB/s,global=25GB/s", "dfc2:4x5"),
        // Table A.2's names for what other families have too.
        ("distreg:n=6", "degree:2(complete:3)"),
        ("distreg:n=9", "hamming:3x3"),
        ("distreg:n=16", "hypercube:4"),
    ] {
        check_same(a, b);
    }
}

/// The text's theorems on line graphs: Kautz graphs are line graphs of complete ones, generalised Kautz and de Bruijn
/// graphs each other's.
#[test]
fn line_graphs_are_those_of_the_theorems() {
    for d in 2..5 {
        check_same(&format!("line(complete:{})", d + 1), &format!("kautz:d={d},n=2"));
        check_same(&format!("line:2(kautz:d={d},n=1)"), &format!("kautz:d={d},n=3"));
        for n in d + 1..d + 9 {
            check_same(&format!("line(genkautz:n={n},d={d})"), &format!("genkautz:n={},d={d}", d * n));
        }
        for (length, words) in [(1, d + 1), (2, d * (d + 1)), (3, d * d * (d + 1))] {
            check_same(&format!("genkautz:n={words},d={d}"), &format!("kautz:d={d},n={length}"));
        }
        check_same(&format!("line(debruijn:d={d},n=2)"), &format!("debruijn:d={d},n=3"));
    }
    check_same("line:2(line:3(bipartite:2x2))", "line:5(bipartite:2x2)");
    check_same("line(uniring:n=7)", "uniring:n=7");
}

#[test]
fn what_differs_is_told_apart() {
    for (a, b) in [
        ("twisted-cube", "hypercube:3"),
        ("twisted-torus:8x4", "torus:8x4"),
        ("twisted-torus:4x4x8", "torus:4x4x8"),
        ("distreg:n=32", "twisted-torus:8x4"),
        ("line(mesh:2x3)", "line(ring:7)"),
    ] {
        let comparison = compare(&graph(&network(a)), &graph(&network(b)), BUDGET).unwrap();
        assert!(matches!(comparison, Comparison::Different(_)), "{a} and {b}: {comparison:?}");
    }
    // Zhao 2026, table A.3: reverse-symmetric or not.
    for (expression, same) in [
        ("kautz:d=2,n=4", true),
        ("debruijn:d=3,n=2", true),
        ("dcirculant:d=3", true),
        ("uniring:n=5,d=2", true),
        ("genkautz:n=11,d=4", false),
        ("diamond", false),
        ("dbjmod:d=2,n=3", true),
        ("dbjmod:d=2,n=4", false),
        ("dbjmod:d=4,n=2", false),
    ] {
        let network = network(expression);
        let turned = compare(&graph(&network), &graph(&network.transposed()), BUDGET).unwrap();
        assert_eq!(matches!(turned, Comparison::Same(_)), same, "{expression}");
        assert_ne!(turned, Comparison::Undetermined, "{expression}");
    }
}

/// Brouwer, Cohen, Neumaier, *Distance-Regular Graphs*, 1989, chapters 6 and 9 to 13: orders of automorphism groups. That
/// of the split Cayley hexagon of order 3 is twice that of G₂(3), because the hexagon is its own dual; W(3) is not, so its
/// points and lines are told apart.
#[test]
fn distance_regular_networks_have_the_symmetries_of_their_geometries() {
    for (order, automorphisms, orbits) in [
        (6, "48", 1),
        (9, "72", 1),
        (10, "240", 1),
        (15, "120", 1),
        (16, "384", 1),
        (26, "11232", 1),
        (45, "1440", 1),
        (80, "51840", 2),
        (728, "8491392", 1),
    ] {
        let graph = graph(&network(&format!("distreg:n={order}")));
        let analysis = analysed(&graph);
        assert_eq!(analysis.solution().unwrap().group_order.to_string(), automorphisms, "{order}");
        assert_eq!(analysis.orbits.to_sets().len(), orbits, "{order}");
    }
}

#[test]
fn networks_that_look_alike_from_every_rank_are_found_to() {
    for (expression, alike) in [
        ("hamming:3x4", true),
        ("twisted-torus:8x4", true),
        ("twisted-torus:4x4x8", true),
        ("circulant:n=22", true),
        ("dcirculant:d=4", true),
        ("biring:n=7,d=4", true),
        ("kautz:d=2,n=2", true),
        ("power:2(bipartite:3x3)", true),
        ("degree:2(hypercube:3)", true),
        // The Möbius ladder of eight nodes.
        ("twisted-cube", true),
        ("genkautz:n=11,d=4", false),
        ("kautz:d=2,n=4", false),
        ("debruijn:d=2,n=3", false),
        ("diamond", false),
    ] {
        let analysis = analysed(&graph(&network(expression)));
        assert!(analysis.solution().is_some(), "{expression}");
        assert_eq!(analysis.orbits.to_sets().len() == 1, alike, "{expression}");
    }
}
