//! Ranks around a circle, the first at the top.

use std::f64::consts::TAU;

use canopy_topology::Topology;

use super::{Bend, GAP, Labels, Layout, NODE_HEIGHT, real};

/// Places all nodes around a circle that is wide enough for them.
pub(super) fn place(topology: &Topology, labels: &Labels) -> Layout {
    let nodes = topology.nodes().len();
    // Neighbours are at least the diagonal of a plate apart, whatever their direction.
    let apart = labels.width.hypot(NODE_HEIGHT) + GAP / 2.0;
    let radius = (apart / 2.0 / (TAU / 2.0 / real(nodes)).sin()).max(110.0);
    let side = 2.0 * radius + labels.width + 2.0 * GAP;
    let place = |number: usize| {
        let angle = TAU * real(number) / real(nodes) - TAU / 4.0;
        (side / 2.0 + radius * angle.cos(), side / 2.0 + radius * angle.sin())
    };
    let spots =
        (0_u32..).take(nodes).map(|node| labels.rank(canopy_topology::NodeIndex::new(node), place(node as usize)));
    Layout { size: (side, side), spots: spots.collect(), bends: vec![Bend::Inwards; nodes], frames: Vec::new() }
}
