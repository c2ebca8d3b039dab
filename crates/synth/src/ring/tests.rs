//! Orders and walks by themselves.

use canopy_optimize::Never;
use canopy_topology::{TopologyLimits, generate};

use super::*;
use crate::routing::{Heading, Network};

fn topology(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap()
}

fn order(topology: &Topology) -> Vec<u32> {
    order::ring_order(topology, &Never).unwrap().into_iter().map(Rank::number).collect()
}

/// Pairs of neighbours around the order of which `holds` is true.
fn count(order: &[u32], holds: impl Fn(u32, u32) -> bool) -> usize {
    order.iter().zip(order.iter().cycle().skip(1)).filter(|&(&one, &next)| holds(one, next)).count()
}

#[test]
fn an_order_names_every_rank_once() {
    for expression in ["ring:7", "mesh:3x3", "torus:4x4", "dgx-a100:boxes=3", "mi250:boxes=2", "ring:5,dir=uni"] {
        let topology = topology(expression);
        let mut order = order(&topology);
        order.sort_unstable();
        assert_eq!(order, (0..topology.rank_count()).collect::<Vec<_>>(), "{expression}");
    }
}

/// A cycle was found: all neighbours are joined by a link.
#[test]
fn grids_with_a_cycle_have_their_cycle_found() {
    for expression in
        ["ring:9", "torus:5x5", "torus:3x3x3", "torus:8x8", "hypercube:6", "mesh:4x5", "mesh:6x6", "bipartite:5x5"]
    {
        let topology = topology(expression);
        let is_linked = |from: u32, to: u32| {
            let mut links = topology.links_from(Rank::new(from).node());
            links.any(|link| topology.link(link).to == Rank::new(to).node())
        };
        let order = order(&topology);
        assert_eq!(count(&order, is_linked), order.len(), "{expression}");
    }
}

/// As many steps between boxes as there are boxes, and the rest over the links inside.
#[test]
fn boxes_stay_together() {
    for (expression, gpus, boxes) in [("dgx-a100:boxes=4", 8, 4), ("dgx-h100:boxes=3", 8, 3), ("mi250:boxes=2", 16, 2)]
    {
        let order = order(&topology(expression));
        assert_eq!(count(&order, |one, next| one / gpus != next / gpus), boxes, "{expression}");
    }
}

/// A path of four has to be walked there and back: 0 1 2 3 2 1.
#[test]
fn a_walk_goes_back_where_it_must() {
    let topology = topology("mesh:1x4");
    let order: Vec<Rank> = [0, 1, 2, 3].map(Rank::new).to_vec();
    let walk = Walk::new(&topology, &order, &Never).unwrap();
    let hops = |legs: Vec<&crate::parts::Leg>| -> Vec<(u32, u32)> {
        legs.into_iter().map(|leg| (leg.from.number(), leg.to.number())).collect()
    };
    assert_eq!(hops(walk.chain_from(Rank::new(0)).collect()), [(0, 1), (1, 2), (2, 3)]);
    assert_eq!(hops(walk.chain_from(Rank::new(1)).collect()), [(1, 2), (2, 3), (1, 0)]);
    assert_eq!(hops(walk.chain_to(Rank::new(0))), [(3, 2), (2, 1), (1, 0)]);
    assert_eq!(hops(walk.chain_to(Rank::new(1))), [(3, 2), (2, 1), (0, 1)]);
    // From 2 to 1 the second time that the walk passes 2 is nearer.
    let arcs = walk.arcs_from(Rank::new(2));
    assert_eq!(arcs.to(Rank::new(1)).0, 1);
    assert_eq!(arcs.to(Rank::new(0)).0, 2);
    assert_eq!(arcs.to(Rank::new(3)).0, 1);
}

/// Turning parts around undoes crossings: 0 2 1 3 on a ring of four is no cycle, 0 1 2 3 is one.
#[test]
fn worst_neighbours_are_brought_nearer() {
    let topology = topology("ring:4");
    let network = Network::new(&topology, Heading::Along);
    let neighbours = nearness::Neighbours::new(&network, &Never).unwrap();
    let rows: Vec<_> = topology.ranks().map(|rank| nearness::nearness(&network, &neighbours, rank)).collect();
    let mut order = vec![0, 2, 1, 3];
    improve::improve(&mut order, &rows, &Never).unwrap();
    assert_eq!(count(&order, |one, next| one.abs_diff(next) == 2), 0, "{order:?}");
}
