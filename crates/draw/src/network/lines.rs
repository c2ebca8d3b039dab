//! How wires run between the places of nodes: straight, around what is in the way, or as arcs beside a row.

use canopy_topology::{NodeIndex, Topology};

use super::MISSING;
use crate::layout::{Bend, Layout, NODE_HEIGHT};
use crate::svg::{Curve, Mark, Point, Svg};
use crate::wires::{Lane, Wire};

/// Behind links that count in a certificate.
pub(super) const HALO: &str = "#ffe9a8";
/// Distance of the lines of two directions.
const APART: f64 = 2.6;
/// Thickness of the lines of greatest and of least capacity.
const WIDTHS: (f64, f64) = (4.5, 1.2);

/// Draws wires in a layout.
pub(super) struct Painter<'a> {
    pub(super) layout: &'a Layout,
    /// By node of the network: its place in the layout.
    pub(super) places: &'a [NodeIndex],
    /// Greatest capacity of a lane.
    pub(super) most: u128,
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

    /// A wire that is not there any more.
    pub(super) fn missing(&self, svg: &mut Svg, full: &Topology, ends: (NodeIndex, NodeIndex)) {
        let [from, to] = [ends.0, ends.1].map(|node| full.node(node).id.as_str());
        let note = format!("{from} - {to}: missing");
        let mark = Mark { dashes: "5 4", note: &note, ..Mark::line(MISSING, 2.5) };
        svg.stroke(&self.curve(ends, 0.0), &mark);
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
    fn curve(&self, (from, to): (NodeIndex, NodeIndex), shift: f64) -> Curve {
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
        if same_row && bend != Bend::Around && self.layout.bends[to.index()] == bend {
            let outwards = if bend == Bend::Up { -1.0 } else { 1.0 };
            let edge = outwards * NODE_HEIGHT / 2.0;
            let depth = edge + outwards * (4.0 / 3.0) * (14.0 + 0.16 * length).min(120.0) + shift * 1.5;
            let ends = [(start.0, a.centre.1 + edge), (end.0, b.centre.1 + edge)];
            let inset = (end.0 - start.0) * 0.12;
            let controls = [(start.0 + inset, a.centre.1 + depth), (end.0 - inset, b.centre.1 + depth)];
            return Curve::Cubic([ends[0], controls[0], controls[1], ends[1]]);
        }
        match bend == Bend::Around && self.is_blocked(from, to) {
            true => {
                // Both directions bend to the same side.
                let side = if (start.0, start.1) < (end.0, end.1) { -1.0 } else { 1.0 };
                let middle = (f64::midpoint(start.0, end.0), f64::midpoint(start.1, end.1));
                let bow = 2.0 * (22.0 + 0.05 * length).min(46.0);
                Curve::Quadratic([start, beside(middle, side * bow), end])
            }
            false => Curve::Straight([start, end]),
        }
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
