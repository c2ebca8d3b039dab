//! How wires run between the places of nodes: straight, around what is in the way, or as arcs beside a row.

use canopy_topology::{NodeIndex, Topology};

use super::MISSING;
use crate::layout::{Bend, Layout, NODE_HEIGHT, arc_depth};
use crate::svg::{Curve, Mark, Point, Svg, real};
use crate::wires::{Lane, Wire};

/// Behind links that count in a certificate.
pub(super) const HALO: &str = "#ffe9a8";
/// Distance of the lines of two directions.
const APART: f64 = 2.6;
/// Thickness of the lines of greatest and of least capacity.
const WIDTHS: (f64, f64) = (4.5, 1.2);

/// Least distance of a wire from the edge of the layout: half of its halo and a little.
const MARGIN: f64 = 8.0;

/// Draws wires in a layout.
pub(crate) struct Painter<'a> {
    pub(crate) layout: &'a Layout,
    /// By node of the network: its place in the layout.
    pub(crate) places: &'a [NodeIndex],
    /// Greatest capacity of a lane.
    pub(crate) most: u128,
}

/// A wire that is missing.
pub(crate) struct Gone {
    /// Places of its ends.
    ends: (NodeIndex, NodeIndex),
    note: String,
}

impl Gone {
    pub(super) fn of(full: &Topology, (from, to): (NodeIndex, NodeIndex), ends: (NodeIndex, NodeIndex)) -> Self {
        Self { ends, note: format!("{} - {}: missing", full.node(from).id, full.node(to).id) }
    }
}

/// Makes the layout large enough for every wire, so that none leaves it. O(wires · nodes).
pub(crate) fn make_room(layout: &mut Layout, places: &[NodeIndex], wires: &[Wire], gone: &[Gone]) {
    let painter = Painter { layout, places, most: 1 };
    let found = wires.iter().flat_map(|wire| &wire.lanes).map(|lane| painter.curve(painter.ends(lane), APART));
    let gone = gone.iter().map(|gone| painter.curve(gone.ends, 0.0));
    let size = layout.size;
    let (mut low, mut high) = ((0.0_f64, 0.0_f64), size);
    for (x, y) in found.chain(gone).flat_map(|curve| curve.points()) {
        low = (low.0.min(x - MARGIN), low.1.min(y - MARGIN));
        high = (high.0.max(x + MARGIN), high.1.max(y + MARGIN));
    }
    layout.move_by((-low.0, -low.1));
    layout.size = (high.0 - low.0, high.1 - low.1);
}

impl Painter<'_> {
    /// The light band behind a wire.
    pub(super) fn halo(&self, svg: &mut Svg, wire: &Wire) {
        if let Some(lane) = wire.lanes.first() {
            svg.stroke(&self.curve(self.ends(lane), 0.0), &Mark::line(HALO, 11.0));
        }
    }

    /// One line where both directions are alike, else one with a point for each.
    pub(super) fn wire(&self, svg: &mut Svg, wire: &Wire) {
        if let (true, [there, back]) = (wire.is_alike(), wire.lanes.as_slice()) {
            let note = format!("{}\n{}", there.note, back.note);
            let mark = Mark { note: &note, ..Mark::line(there.busy.colour(), self.width(there)) };
            return svg.stroke(&self.curve(self.ends(there), 0.0), &mark);
        }
        let shift = if wire.lanes.len() > 1 { APART } else { 0.0 };
        for lane in &wire.lanes {
            let (width, colour) = (self.width(lane) * 0.7, lane.busy.colour());
            let curve = self.curve(self.ends(lane), shift);
            svg.stroke(&curve, &Mark { note: &lane.note, ..Mark::line(colour, width) });
            self.point(svg, &curve, lane.to, colour, width);
        }
    }

    /// A wire that is missing; between nodes of one place there is nothing to draw.
    pub(super) fn missing(&self, svg: &mut Svg, gone: &Gone) {
        if gone.ends.0 != gone.ends.1 {
            let mark = Mark { dashes: "5 4", note: &gone.note, ..Mark::line(MISSING, 2.5) };
            svg.stroke(&self.curve(gone.ends, 0.0), &mark);
        }
    }

    fn ends(&self, lane: &Lane) -> (NodeIndex, NodeIndex) {
        let place = |node: NodeIndex| self.places.get(node.index()).copied().unwrap_or(node);
        (place(lane.from), place(lane.to))
    }

    /// By the root of the capacity, so that areas of bundles compare.
    fn width(&self, lane: &Lane) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a thickness")]
        let part = (lane.capacity as f64 / self.most.max(1) as f64).sqrt();
        WIDTHS.1 + (WIDTHS.0 - WIDTHS.1) * part
    }

    /// The way between two places, moved to the right of its direction by `shift`.
    pub(crate) fn curve(&self, (from, to): (NodeIndex, NodeIndex), shift: f64) -> Curve {
        let spots = &self.layout.spots;
        let (a, b) = (&spots[from.index()], &spots[to.index()]);
        let (start, end) = (a.port(b.centre), b.port(a.centre));
        // Between two wide plates, both ports look at each other.
        let (start, end) = (a.port(end), b.port(start));
        let length = (end.0 - start.0).hypot(end.1 - start.1).max(1.0);
        let normal = ((start.1 - end.1) / length, (end.0 - start.0) / length);
        let beside = |(x, y): Point, by: f64| (x + normal.0 * by, y + normal.1 * by);
        let (start, end) = (beside(start, shift), beside(end, shift));
        let bend = self.layout.bends[from.index()];
        let same_row = (a.centre.1 - b.centre.1).abs() < 1.0;
        if same_row && matches!(bend, Bend::Up | Bend::Down) && self.layout.bends[to.index()] == bend {
            let outwards = if bend == Bend::Up { -1.0 } else { 1.0 };
            let edge = outwards * NODE_HEIGHT / 2.0;
            let depth = edge + outwards * (4.0 / 3.0) * arc_depth(length) + shift * 1.5;
            let ends = [(start.0, a.centre.1 + edge), (end.0, b.centre.1 + edge)];
            let inset = (end.0 - start.0) * 0.12;
            let controls = [(start.0 + inset, a.centre.1 + depth), (end.0 - inset, b.centre.1 + depth)];
            return Curve::Cubic([ends[0], controls[0], controls[1], ends[1]]);
        }
        match matches!(bend, Bend::Around | Bend::Inwards) && self.is_blocked(from, to) {
            true => {
                let middle = (f64::midpoint(start.0, end.0), f64::midpoint(start.1, end.1));
                // Both directions bend to the same side.
                let side = match bend {
                    Bend::Inwards => self.side_of_middle(middle, normal),
                    _ if (start.0, start.1) < (end.0, end.1) => -1.0,
                    _ => 1.0,
                };
                let bow = 2.0 * (22.0 + 0.05 * length).min(64.0);
                Curve::Quadratic([start, beside(middle, side * bow), end])
            }
            false => Curve::Straight([start, end]),
        }
    }

    /// On which side of a way the middle of all nodes is: 1 where `normal` points, else -1.
    fn side_of_middle(&self, (x, y): Point, normal: Point) -> f64 {
        let spots = &self.layout.spots;
        let sum = spots.iter().fold((0.0, 0.0), |sum, spot| (sum.0 + spot.centre.0, sum.1 + spot.centre.1));
        let count = real(spots.len());
        let along = (sum.0 / count - x) * normal.0 + (sum.1 / count - y) * normal.1;
        if along < 0.0 { -1.0 } else { 1.0 }
    }

    /// Whether another node is on the straight way.
    fn is_blocked(&self, from: NodeIndex, to: NodeIndex) -> bool {
        let spots = &self.layout.spots;
        let ((x0, y0), (x1, y1)) = (spots[from.index()].centre, spots[to.index()].centre);
        let square = (x1 - x0).powi(2) + (y1 - y0).powi(2);
        let others = spots.iter().enumerate().filter(|(node, _)| *node != from.index() && *node != to.index());
        let mut others = others.map(|(_, spot)| spot.centre);
        others.any(|(x, y)| {
            let along = ((x - x0) * (x1 - x0) + (y - y0) * (y1 - y0)) / square.max(1.0);
            let (nearest_x, nearest_y) = (x0 + along * (x1 - x0), y0 + along * (y1 - y0));
            (0.0..=1.0).contains(&along) && (x - nearest_x).hypot(y - nearest_y) < NODE_HEIGHT * 0.7
        })
    }

    /// The point of an arrow where a line meets its node.
    fn point(&self, svg: &mut Svg, curve: &Curve, to: NodeIndex, colour: &str, width: f64) {
        let (before, end) = curve.end();
        let length = (end.0 - before.0).hypot(end.1 - before.1).max(1.0);
        let way = ((end.0 - before.0) / length, (end.1 - before.1) / length);
        let spot = &self.layout.spots[to.index()];
        // Back from the middle of the plate to its edge.
        let back = match curve {
            Curve::Cubic(_) => 0.0,
            _ => edge_distance((spot.width / 2.0, NODE_HEIGHT / 2.0), way).min(length * 0.8),
        };
        let tip = (end.0 - way.0 * back, end.1 - way.1 * back);
        let (long, wide) = (7.0 + width, 3.0 + width / 2.0);
        let foot = (tip.0 - way.0 * long, tip.1 - way.1 * long);
        let corners =
            [tip, (foot.0 - way.1 * wide, foot.1 + way.0 * wide), (foot.0 + way.1 * wide, foot.1 - way.0 * wide)];
        svg.polygon(&corners, &Mark { fill: colour, ..Mark::line("none", 1.0) });
    }
}

/// How far it is from the middle of a plate to its edge in a direction.
fn edge_distance((half_width, half_height): (f64, f64), (x, y): Point) -> f64 {
    let part = |half: f64, way: f64| if way.abs() < 1e-9 { f64::MAX } else { half / way.abs() };
    part(half_width, x).min(part(half_height, y))
}

#[cfg(test)]
mod tests {
    use canopy_topology::{Attributes, Capacity, Latency, NodeKind, TopologyDraft, TopologyLimits};

    use super::*;
    use crate::layout::layout;
    use crate::wires::wires;

    /// Links around a circle stay within it, at the top as at the bottom.
    #[test]
    fn chords_of_a_circle_bend_towards_its_middle() {
        let mut draft = TopologyDraft::default();
        (0..60).for_each(|number| draft.add_compute(format!("g{number}")));
        for number in 0..60 {
            for step in [1, 7] {
                let ends = (format!("g{number}"), format!("g{}", (number + step) % 60));
                draft.add_both(&ends.0, &ends.1, Capacity::from_bytes_per_sec(1).unwrap(), Latency::default());
            }
        }
        let topology = draft.build(&TopologyLimits::STANDARD).unwrap();
        let places: Vec<NodeIndex> = (0..60).map(NodeIndex::new).collect();
        let layout = layout(&topology);
        let painter = Painter { layout: &layout, places: &places, most: 1 };
        let middle = layout.size.0 / 2.0;
        let distance = |(x, y): Point| (x - middle).hypot(y - middle);
        let radius = distance(layout.spots[0].centre);
        for from in 0..60 {
            let to = (from + 7) % 60;
            for ends in [(from, to), (to, from)] {
                let curve = painter.curve((NodeIndex::new(ends.0), NodeIndex::new(ends.1)), 0.0);
                let deepest = curve.points().into_iter().map(distance).fold(radius, f64::min);
                assert!(deepest < radius - 40.0, "{ends:?}: {deepest} of {radius}");
                assert!(curve.points().into_iter().all(|point| distance(point) < radius + 1.0), "{ends:?}");
            }
        }
    }

    /// 60 ranks in a row of boxes, joined by links from one end of the row to the other: their arcs go deep.
    #[test]
    fn no_arc_leaves_the_layout() {
        for boxed in [true, false] {
            let mut draft = TopologyDraft::default();
            for number in 0..60 {
                let box_name = boxed.then(|| format!("b{}", number / 6));
                draft.add_node(
                    format!("g{number}"),
                    NodeKind::Compute,
                    Attributes { box_name, ..Attributes::default() },
                );
            }
            for number in 0..60 {
                for step in [1, 2, 17, 43] {
                    let ends = (format!("g{number}"), format!("g{}", (number + step) % 60));
                    draft.add_link(ends.0, ends.1, Capacity::from_bytes_per_sec(1).unwrap(), Latency::default());
                }
            }
            let topology = draft.build(&TopologyLimits::STANDARD).unwrap();
            let places: Vec<NodeIndex> = (0..60).map(NodeIndex::new).collect();
            let wires = wires(&topology, None, &places);
            let mut layout = layout(&topology);
            make_room(&mut layout, &places, &wires, &[]);
            let painter = Painter { layout: &layout, places: &places, most: 1 };
            for (x, y) in wires.iter().flat_map(|wire| painter.curve(painter.ends(&wire.lanes[0]), 0.0).points()) {
                let inside = (0.0..=layout.size.0).contains(&x) && (0.0..=layout.size.1).contains(&y);
                assert!(inside, "({x}, {y}) is not within {:?}", layout.size);
            }
        }
    }
}
