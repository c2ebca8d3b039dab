use canopy_topology::{Attributes, Capacity, Latency, NodeKind, TopologyDraft, TopologyLimits, generate};
use proptest::prelude::*;

use super::*;

/// No two plates touch, all are on the sheet, frames hold their box, and labels fit.
fn check(topology: &Topology) {
    let Layout { size, spots, frames, bends } = layout(topology);
    assert_eq!((spots.len(), bends.len()), (topology.nodes().len(), topology.nodes().len()));
    for (number, spot) in spots.iter().enumerate() {
        let (top, bottom) = (spot.centre.1 - NODE_HEIGHT / 2.0, spot.centre.1 + NODE_HEIGHT / 2.0);
        let inside = spot.left() >= 0.0 && spot.right() <= size.0 && top >= 0.0 && bottom <= size.1;
        assert!(inside, "{spot:?} is not within {size:?}");
        assert!(width_of(&spot.label, LABEL_SIZE) <= spot.width, "{spot:?}");
        for other in &spots[..number] {
            let (dx, dy) = ((spot.centre.0 - other.centre.0).abs(), (spot.centre.1 - other.centre.1).abs());
            let apart = dx >= (spot.width + other.width) / 2.0 || dy >= NODE_HEIGHT;
            assert!(apart, "{spot:?} and {other:?} overlap");
        }
    }
    for (node, spot) in topology.nodes().iter().zip(&spots) {
        let Some(name) = &node.attributes.box_name else { continue };
        for frame in frames.iter().filter(|frame| frame.label == *name && node.kind == NodeKind::Compute) {
            let (left, top) = frame.corner;
            assert!(spot.left() >= left && spot.right() <= left + frame.size.0, "{spot:?} {frame:?}");
            assert!(spot.centre.1 >= top && spot.centre.1 <= top + frame.size.1, "{spot:?} {frame:?}");
        }
    }
    for (number, frame) in frames.iter().enumerate() {
        let within = frame.corner.0 >= 0.0 && frame.corner.0 + frame.size.0 <= size.0 && frame.corner.1 >= 0.0;
        assert!(within && frame.corner.1 + frame.size.1 <= size.1, "{frame:?} is not within {size:?}");
        for other in &frames[..number] {
            let across =
                frame.corner.0 >= other.corner.0 + other.size.0 || other.corner.0 >= frame.corner.0 + frame.size.0;
            let along =
                frame.corner.1 >= other.corner.1 + other.size.1 || other.corner.1 >= frame.corner.1 + frame.size.1;
            assert!(across || along, "{frame:?} and {other:?} overlap");
        }
    }
}

#[test]
fn families_have_room() {
    for expression in [
        "ring:2",
        "ring:48",
        "mesh:3x5",
        "torus:4x4",
        "torus:8x8",
        "torus:4x4x4",
        "torus:2x3x2x3",
        "hypercube:3",
        "hypercube:4",
        "hypercube:5",
        "complete:8",
        "bipartite:4x4",
        "dgx-a100:boxes=1",
        "dgx-a100:boxes=2",
        "dgx-a100:boxes=5",
        "dgx-h100:boxes=8",
        "mi250:boxes=1",
        "mi250:boxes=2",
        "mi250:boxes=3",
        "rail:boxes=4",
        "rail:boxes=4,spine=50GB/s",
        "fat-tree:k=4",
        "leaf-spine:leaves=4,hosts=4,spines=2,oversub=2",
        "dragonfly-router:p=2,a=4,h=2",
        "random-euler:n=16,switches=4,seed=1",
        "torus:4x4,down=00-01",
        "torus:4x4,nodes-down=11",
        "dgx-a100:boxes=2,nodes-down=b0g3",
    ] {
        check(&generate(expression, &TopologyLimits::STANDARD).unwrap());
    }
}

#[test]
fn a_grid_stands_in_rows_and_columns() {
    let topology = generate("torus:2x3", &TopologyLimits::STANDARD).unwrap();
    let layout = layout(&topology);
    let place = |id: &str| layout.spots[topology.find_node(id).unwrap().index()].centre;
    assert!((place("00").1 - place("02").1).abs() < 0.1 && place("00").0 < place("01").0);
    assert!((place("01").0 - place("11").0).abs() < 0.1 && place("01").1 < place("11").1);
}

#[test]
fn boxes_stand_on_both_sides_of_the_one_layer_that_joins_them() {
    let topology = generate("dgx-a100:boxes=2", &TopologyLimits::STANDARD).unwrap();
    let layout = layout(&topology);
    let y = |id: &str| layout.spots[topology.find_node(id).unwrap().index()].centre.1;
    assert!(y("b0nv") < y("b0g0") && y("b0g0") < y("ib") && y("ib") < y("b1g0") && y("b1g0") < y("b1nv"));
    assert_eq!(layout.frames.iter().map(|frame| frame.label.as_str()).collect::<Vec<_>>(), ["b0", "b1"]);
}

prop_compose! {
    /// Ranks and switches, some of them in boxes, joined as it comes.
    fn networks()(
        ranks in 2_usize..14,
        switches in 0_usize..6,
        names in prop::collection::vec("[a-z0-9<&\"'µ]{1,24}", 20),
        boxes in prop::collection::vec(prop::option::of(0_u8..4), 20),
        ends in prop::collection::vec((0_usize..20, 0_usize..20), 0..60),
    ) -> Topology {
        let mut draft = TopologyDraft::default();
        let id = |number: usize| format!("{}-{number}", names[number]);
        for (number, in_box) in boxes.iter().enumerate().take(ranks + switches) {
            let kind = if number < ranks { NodeKind::Compute } else { NodeKind::PLAIN_SWITCH };
            let box_name = in_box.map(|name| format!("b{name}"));
            draft.add_node(id(number), kind, Attributes { box_name, ..Attributes::default() });
        }
        for (from, to) in ends {
            let (from, to) = (from % (ranks + switches), to % (ranks + switches));
            if from != to {
                draft.add_link(id(from), id(to), Capacity::from_bytes_per_sec(1).unwrap(), Latency::default());
            }
        }
        draft.build(&TopologyLimits::STANDARD).unwrap()
    }
}

proptest! {
    #[test]
    fn any_network_has_room(topology in networks()) {
        check(&topology);
    }
}
