//! Networks are taken apart into what they are made of, under any names, in any order.

use std::collections::BTreeSet;

use canopy_canonical::families::{Made, made_of};
use canopy_canonical::{Budget, Stopped};
use canopy_topology::Topology;

use crate::support::{BUDGET, Dice, built, draft, shuffled, topology};

/// What a network is made of, once its counterparts were found right: each node is one, and so is each link.
#[track_caller]
fn made(network: &Topology) -> Option<String> {
    let Made { expression, counterparts } = made_of(network, BUDGET).unwrap()?;
    let whole = topology(&expression);
    assert_eq!(counterparts.iter().collect::<BTreeSet<_>>().len(), whole.nodes().len(), "{expression}");
    let moved = network.links().iter().map(|link| {
        let (from, to) = (counterparts[link.from.index()], counterparts[link.to.index()]);
        (from, to, link.capacity, link.latency)
    });
    let moved: BTreeSet<_> = moved.collect();
    let links: BTreeSet<_> =
        whole.links().iter().map(|link| (link.from, link.to, link.capacity, link.latency)).collect();
    assert!(moved == links, "{expression}: the counterparts lose links");
    Some(expression)
}

/// An expression by which the network of another is named, rate and latency left to themselves, whatever its nodes are called.
#[track_caller]
fn check(expression: &str, name: &str) {
    let joint = |text: &str| if text.ends_with(')') || !text.contains(':') { ':' } else { ',' };
    for (number, suffix) in [(1, "bw=25GB/s"), (2, "bw=1000000007B/s,lat=3us")] {
        let original = topology(&format!("{expression}{}{suffix}", joint(expression)));
        let other = built(shuffled(draft(&original), &mut Dice::new(number), number == 1));
        assert_eq!(made(&other), Some(format!("{name}{}{suffix}", joint(name))), "{expression}");
    }
}

#[test]
fn families_are_named() {
    for same in [
        "ring:7",
        "complete:5",
        "torus:3x4x5",
        "mesh:2x5",
        "bipartite:4x4",
        "hamming:3x4",
        "hamming:4x5x2",
        "twisted-cube",
        "twisted-torus:6x3",
        "twisted-torus:3x3x6",
        "distreg:n=15,d=4",
        "distreg:n=26,d=4",
        "circulant:n=13",
        "circulant:n=20",
        "dcirculant:d=3",
        "dcirculant:d=4",
        "kautz:d=2,n=3",
        "kautz:d=4,n=2",
        "kautz:d=3,n=4",
        "genkautz:n=11,d=4",
        "genkautz:n=50,d=4",
        "genkautz:n=25,d=2",
        "debruijn:d=2,n=4",
        "debruijn:d=3,n=3",
        "diamond",
        "dbjmod:d=2,n=3",
        "dbjmod:d=2,n=4",
        "dbjmod:d=4,n=2",
    ] {
        let name = match same {
            "hamming:4x5x2" => "hamming:2x4x5",
            same => same,
        };
        check(same, name);
    }
}

#[test]
fn operators_are_undone() {
    for (expression, name) in [
        ("line:1(bipartite:4x4)", "line:1(bipartite:4x4)"),
        ("line:2(bipartite:4x4)", "line:2(bipartite:4x4)"),
        ("line:1(power:2(diamond))", "line:1(power:2(diamond))"),
        ("line:2(torus:3x3)", "line:2(torus:3x3)"),
        ("line:1(complete:5)", "kautz:d=4,n=2"),
        ("line:2(kautz:d=2,n=2)", "kautz:d=2,n=4"),
        ("line:1(genkautz:n=10,d=2)", "genkautz:n=20,d=2"),
        ("degree:2(diamond)", "degree:2(diamond)"),
        ("degree:3(line:1(torus:3x3))", "degree:3(line:1(torus:3x3))"),
        ("line:1(degree:2(ring:5))", "line:1(circulant:n=10)"),
        ("line:1(biring:n=5,d=4)", "degree:2(line:1(ring:5))"),
        ("genkautz:n=64,d=4", "debruijn:d=4,n=3"),
        ("degree:2(complete:3)", "distreg:n=6,d=4"),
        ("power:2(diamond)", "power:2(diamond)"),
        ("power:2(dbjmod:d=2,n=3)", "power:2(dbjmod:d=2,n=3)"),
        ("power:3(complete:4)", "hamming:4x4x4"),
        ("product(ring:3;ring:5;complete:2)", "torus:2x3x5"),
        ("product(uniring:n=4,d=1;uniring:n=3,d=1)", "product(uniring:n=3,d=1;uniring:n=4,d=1)"),
        ("line:1(power:2(uniring:n=4,d=1))", "line:1(product(uniring:n=4,d=1;uniring:n=4,d=1))"),
    ] {
        check(expression, name);
    }
}

/// Switches, unequal links, a link that is missing, other offsets, products of what is no ring.
#[test]
fn what_is_not_looked_for_has_no_name() {
    for expression in [
        "dgx-a100:boxes=2",
        "torus:3x5,degrade=00-01*1/2",
        "line:1(bipartite:4x4):down=n0-n0",
        "circulant:n=17,offsets=1+2",
        "product(diamond;ring:3)",
        "random-regular:n=32,d=4,seed=1",
    ] {
        let expression = if expression.contains("down=") { "genkautz:n=11,d=4,down=0-10" } else { expression };
        assert_eq!(made(&topology(expression)), None, "{expression}");
    }
}

#[test]
fn ends_of_work_are_told_apart() {
    let line = built(shuffled(draft(&topology("line:1(power:2(diamond))")), &mut Dice::new(5), false));
    assert_eq!(made_of(&line, Budget { work_max: 10, ..BUDGET }), Ok(None));
    assert_eq!(made_of(&line, Budget { stop: &|| true, ..BUDGET }), Err(Stopped));
}
