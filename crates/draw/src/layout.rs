//! Where nodes stand: boxes of ranks around the switches that join them, grids by their coordinates, hypercubes by the
//! bits of their numbers, else a circle.
//!
//! Nothing here knows of plans. No two nodes overlap, and every node is inside the sheet.

mod circle;
mod grid;
mod hypercube;
mod layered;

use canopy_topology::{NodeIndex, Topology};

pub(crate) use hypercube::hypercube_numbers;

use crate::svg::{Point, real};
use crate::words::{shortened, width_of};

/// Font size of node labels.
pub(crate) const LABEL_SIZE: u32 = 11;
/// Height of a node.
pub(crate) const NODE_HEIGHT: f64 = 26.0;
/// Longest label of a node.
const LABEL_CHARS_MAX: usize = 10;
/// Least gap between neighbours.
const GAP: f64 = 14.0;

/// The place of a node: a plate with round corners around its centre.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Spot {
    pub(crate) centre: Point,
    pub(crate) width: f64,
    pub(crate) label: String,
}

impl Spot {
    /// Writes another label on it, and makes it wide enough.
    pub(crate) fn say(&mut self, label: String) {
        self.width = self.width.max(width_of(&label, LABEL_SIZE) + 12.0);
        self.label = label;
    }

    pub(crate) fn left(&self) -> f64 {
        self.centre.0 - self.width / 2.0
    }

    pub(crate) fn right(&self) -> f64 {
        self.centre.0 + self.width / 2.0
    }

    /// Whether it is a switch as wide as what hangs on it, to which links lead straight.
    fn is_bar(&self) -> bool {
        self.width > 4.0 * NODE_HEIGHT
    }

    /// The place on it from which a link to a place elsewhere starts.
    pub(crate) fn port(&self, towards: Point) -> Point {
        if self.is_bar() {
            let inset = 8.0;
            (towards.0.clamp(self.left() + inset, self.right() - inset), self.centre.1)
        } else {
            self.centre
        }
    }
}

/// A frame around what belongs together.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Frame {
    pub(crate) corner: Point,
    pub(crate) size: (f64, f64),
    pub(crate) label: String,
}

/// To which side links between neighbours in one row are bent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bend {
    /// They are straight, unless another node is in the way.
    Around,
    /// The same, and where one is they bend towards the middle of all nodes.
    Inwards,
    /// All of them, upwards.
    Up,
    /// All of them, downwards.
    Down,
}

/// Places of all nodes on a sheet whose upper left corner is the origin.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Layout {
    pub(crate) size: (f64, f64),
    /// By node.
    pub(crate) spots: Vec<Spot>,
    /// By node.
    pub(crate) bends: Vec<Bend>,
    pub(crate) frames: Vec<Frame>,
}

impl Layout {
    pub(crate) fn move_by(&mut self, (x, y): (f64, f64)) {
        self.spots.iter_mut().for_each(|spot| spot.centre = (spot.centre.0 + x, spot.centre.1 + y));
        self.frames.iter_mut().for_each(|frame| frame.corner = (frame.corner.0 + x, frame.corner.1 + y));
    }
}

/// Depth of an arc between two places of a row: long arcs go deeper, but ever more slowly.
pub(crate) fn arc_depth(distance: f64) -> f64 {
    14.0 + 0.16 * distance.min(660.0) + 0.04 * (distance - 660.0).max(0.0)
}

/// Places the nodes of a network. O(nodes + links) and a sort of switches.
pub(crate) fn layout(topology: &Topology) -> Layout {
    let labels = Labels::of(topology);
    let has_boxes = topology.nodes().iter().any(|node| node.attributes.box_name.is_some());
    let has_switches = topology.nodes().len() > topology.rank_count() as usize;
    let one_box = layered::box_count(topology) <= 1;
    if has_switches || has_boxes && !one_box {
        return layered::place(topology, &labels);
    }
    let cube = hypercube::place(topology, &labels).or_else(|| grid::place(topology, &labels));
    cube.unwrap_or_else(|| circle::place(topology, &labels))
}

/// What stands in the plates of nodes.
pub(crate) struct Labels {
    /// By node.
    texts: Vec<String>,
    /// Of every node that is a rank.
    width: f64,
}

impl Labels {
    /// Ids; in a frame that says which box it is, without the name of the box.
    fn of(topology: &Topology) -> Self {
        let texts = topology.nodes().iter().map(|node| {
            let in_box = node.attributes.box_name.as_deref().and_then(|name| node.id.strip_prefix(name));
            let rest = in_box.map(|rest| rest.trim_start_matches(['-', '.', '_', '/'])).filter(|rest| !rest.is_empty());
            shortened(rest.unwrap_or(&node.id), LABEL_CHARS_MAX)
        });
        let texts: Vec<String> = texts.collect();
        let ranks = texts.iter().take(topology.rank_count() as usize);
        let widest = ranks.map(|text| width_of(text, LABEL_SIZE)).fold(0.0, f64::max);
        Self { texts, width: (widest + 12.0).max(30.0) }
    }

    /// Distance of neighbours in a row.
    fn pitch(&self) -> f64 {
        self.width + GAP
    }

    fn rank(&self, node: NodeIndex, centre: Point) -> Spot {
        Spot { centre, width: self.width, label: self.texts[node.index()].clone() }
    }

    fn switch(&self, node: NodeIndex, centre: Point, width: f64) -> Spot {
        Spot { centre, width, label: self.texts[node.index()].clone() }
    }

    /// Least width of a switch.
    fn switch_width(&self, node: NodeIndex) -> f64 {
        (width_of(&self.texts[node.index()], LABEL_SIZE) + 16.0).max(40.0)
    }
}

#[cfg(test)]
mod tests;
