//! A network: its nodes, its links by how busy a plan keeps them, the bottleneck that the certificate names, and what is
//! missing of a network that was whole.

mod legend;
pub(crate) mod lines;
mod marked;

use std::collections::BTreeMap;

use canopy_schedule::{Certificate, LinkLoads, Schedule};
use canopy_topology::{NodeIndex, Topology};

use crate::error::DrawError;
use crate::layout::{Bend, LABEL_SIZE, Layout, NODE_HEIGHT, layout};
use crate::summary::Summary;
use crate::svg::{Anchor, INK, LINE, MARGIN, Mark, Svg, heading_bottom, real};
use crate::wires::wires;
use crate::words::wrapped;
use lines::{Gone, Painter};
use marked::Marked;

/// Most nodes that are drawn.
const NODES_MAX: usize = 400;
/// Most directed links that are drawn.
const LINKS_MAX: usize = 8_000;
/// Least width of a sheet: titles and legends need it.
const WIDTH_MIN: f64 = 640.0;
/// Inside of the frames of boxes.
pub(crate) const FRAME: &str = "#f4f6f8";
/// What is not there any more.
const MISSING: &str = "#b00020";

/// What is drawn.
#[derive(Clone, Copy, Debug)]
pub struct NetworkDrawing<'a> {
    /// The heading.
    pub title: &'a str,
    /// Sentences below it.
    pub notes: &'a [String],
    /// The network.
    pub topology: &'a Topology,
    /// How busy a plan keeps its links; without, all look alike.
    pub loads: Option<&'a LinkLoads>,
    /// The bottleneck, a certificate that was checked on this network.
    pub certificate: Option<&'a Certificate>,
    /// The plan that the certificate bounds: without it, bottlenecks that bind alike are not looked for.
    pub schedule: Option<&'a Schedule>,
    /// The network before something broke, by the ids of its nodes: what it has and `topology` lacks is dashed.
    pub base: Option<&'a Topology>,
}

/// Draws a network: boxes around the switches that join them, grids by coordinates, anything else in a circle.
///
/// * **Out.** An SVG of its own, without scripts, fonts or references; the same bytes for the same input. Each link says
///   its rate and load where a viewer is asked for it.
/// * **Errors.** More nodes or links than can be looked at, and no group of nodes to draw as one.
/// * **Cost.** O(nodes · links) at worst, of a few hundred nodes.
pub fn draw_network(drawing: &NetworkDrawing<'_>) -> Result<String, DrawError> {
    let (topology, base) = (drawing.topology, drawing.base.filter(|base| holds(base, drawing.topology)));
    let full = base.unwrap_or(topology);
    let summary = Summary::of(full);
    let drawn = summary.as_ref().map_or(full, |summary| &summary.topology);
    let (nodes, links) = (drawn.nodes().len(), drawn.links().len());
    if nodes > NODES_MAX || links > LINKS_MAX {
        return Err(DrawError::TooLarge { nodes, links, nodes_max: NODES_MAX, links_max: LINKS_MAX });
    }
    let mut layout = layout(drawn);
    for (spot, labels) in layout.spots.iter_mut().zip(summary.iter().flat_map(|summary| &summary.labels)) {
        labels.iter().for_each(|label| spot.say(label.clone()));
    }
    let marked = Marked::of(topology, drawing.certificate, drawing.schedule);
    let place = |node: NodeIndex| summary.as_ref().map_or(node, |summary| summary.places[node.index()]);
    let lost = Lost::of(topology, full);
    let places: Vec<NodeIndex> = match base {
        Some(base) => topology.nodes().iter().filter_map(|node| base.find_node(&node.id)).map(place).collect(),
        None => (0_u32..).take(topology.nodes().len()).map(NodeIndex::new).map(place).collect(),
    };
    let wires = wires(topology, drawing.loads, &places);
    let gone: Vec<Gone> =
        lost.links.iter().map(|&(from, to)| Gone::of(full, (from, to), (place(from), place(to)))).collect();
    lines::make_room(&mut layout, &places, &wires, &gone);
    let width = (layout.size.0 + 2.0 * MARGIN).max(WIDTH_MIN);
    let text_width = width - 2.0 * MARGIN;
    let title = wrapped(drawing.title, 16, text_width, 2);
    let notes = drawing.notes.iter().chain(summary.iter().map(|summary| &summary.note));
    let notes: Vec<String> = notes.flat_map(|note| wrapped(note, 12, text_width, 3)).collect();
    let items = legend::items(&wires, &marked, &lost, drawing.loads.is_some());
    let rows = legend::rows(&items, text_width);
    let top = heading_bottom(&title, &notes) + 8.0;
    let height = top + layout.size.1 + LINE * 1.4 * real(rows.len()) + MARGIN;
    let left = (width - layout.size.0) / 2.0;
    layout.move_by((left, top));
    let mut svg = Svg::new(pixels(width), pixels(height), drawing.title);
    svg.heading(&title, &notes);
    for frame in &layout.frames {
        svg.plate(frame.corner, frame.size, 10.0, &Mark { fill: FRAME, ..Mark::line("#aab4be", 1.0) });
    }
    let most = wires.iter().flat_map(|wire| &wire.lanes).map(|lane| lane.capacity).max().unwrap_or(1);
    let painter = Painter { layout: &layout, places: &places, most };
    wires.iter().filter(|wire| marked.crosses(wire)).for_each(|wire| painter.halo(&mut svg, wire));
    gone.iter().for_each(|gone| painter.missing(&mut svg, gone));
    // The busiest last, so that nothing covers them.
    let mut order: Vec<&crate::wires::Wire> = wires.iter().collect();
    order.sort_by_key(|wire| wire.lanes.iter().map(|lane| lane.busy).max());
    order.into_iter().for_each(|wire| painter.wire(&mut svg, wire));
    name_frames(&mut svg, &layout, top);
    let standing = by_place(&places);
    for (&place, nodes) in &standing {
        let first = nodes[0];
        let names: Vec<String> = nodes.iter().map(|&node| name(topology, node)).collect();
        let fill = nodes.iter().map(|&node| marked.fill(node)).find(|fill| *fill != "white").unwrap_or("white");
        draw_node(&mut svg, &layout, place, fill, (INK, ""), &names.join("\n"), topology.rank_of(first).is_none());
    }
    for &node in &lost.nodes {
        let place = place(node);
        if standing.contains_key(&place) {
            continue;
        }
        let note = format!("{}, missing", full.node(node).id);
        draw_node(&mut svg, &layout, place, "white", (MISSING, "4 3"), &note, full.rank_of(node).is_none());
    }
    let y = top + layout.size.1 + LINE;
    legend::draw(&mut svg, &rows, (MARGIN, y));
    Ok(svg.finish())
}

/// Writes the names of boxes, away from the lines between them.
pub(crate) fn name_frames(svg: &mut Svg, layout: &Layout, top: f64) {
    for frame in &layout.frames {
        let is_up = frame.corner.1 + frame.size.1 / 2.0 < top + layout.size.1 / 2.0 && layout.frames.len() > 1;
        let is_at_top = is_up && layout.bends.contains(&Bend::Up);
        let y = if is_at_top { frame.corner.1 + 16.0 } else { frame.corner.1 + frame.size.1 - 8.0 };
        svg.name((frame.corner.0 + 10.0, y), FRAME, &frame.label);
    }
}

/// The nodes at each place, in order.
fn by_place(places: &[NodeIndex]) -> BTreeMap<NodeIndex, Vec<NodeIndex>> {
    let mut found: BTreeMap<NodeIndex, Vec<NodeIndex>> = BTreeMap::new();
    for (node, &place) in (0_u32..).map(NodeIndex::new).zip(places) {
        found.entry(place).or_default().push(node);
    }
    found
}

/// What a viewer shows when asked about a node.
pub(crate) fn name(topology: &Topology, node: NodeIndex) -> String {
    let id = &topology.node(node).id;
    topology.rank_of(node).map_or_else(|| id.clone(), |rank| format!("{id}, rank {}", rank.number()))
}

/// What the whole network has and the network lacks.
pub(crate) struct Lost {
    /// In the whole network.
    nodes: Vec<NodeIndex>,
    /// In the whole network: two ends, in one direction or in both.
    links: Vec<(NodeIndex, NodeIndex)>,
}

impl Lost {
    fn of(topology: &Topology, full: &Topology) -> Self {
        let here: Vec<Option<NodeIndex>> = full.nodes().iter().map(|node| topology.find_node(&node.id)).collect();
        let nodes = (0_u32..).map(NodeIndex::new).zip(&here).filter(|(_, here)| here.is_none()).map(|(node, _)| node);
        let is_there = |from: NodeIndex, to: NodeIndex| match (here[from.index()], here[to.index()]) {
            (Some(from), Some(to)) => topology.links_from(from).any(|link| topology.link(link).to == to),
            _ => false,
        };
        let mut links: Vec<(NodeIndex, NodeIndex)> = full
            .links()
            .iter()
            .filter(|link| !is_there(link.from, link.to))
            .map(|link| (link.from.min(link.to), link.from.max(link.to)))
            .collect();
        links.sort_unstable();
        links.dedup();
        Self { nodes: nodes.collect(), links }
    }
}

/// Whether every node of a network is in another, by its id.
fn holds(full: &Topology, part: &Topology) -> bool {
    part.nodes().iter().all(|node| full.find_node(&node.id).is_some())
}

/// Draws the plate of a node.
pub(crate) fn draw_node(
    svg: &mut Svg,
    layout: &Layout,
    node: NodeIndex,
    fill: &str,
    (stroke, dashes): (&str, &str),
    note: &str,
    is_switch: bool,
) {
    let spot = &layout.spots[node.index()];
    let corner = (spot.left(), spot.centre.1 - NODE_HEIGHT / 2.0);
    let radius = if is_switch { 3.0 } else { NODE_HEIGHT / 2.0 };
    let fill = if is_switch && fill == "white" { "#e3e8ee" } else { fill };
    svg.plate(corner, (spot.width, NODE_HEIGHT), radius, &Mark { fill, stroke, width: 1.2, dashes, note });
    svg.words((spot.centre.0, spot.centre.1 + 4.0), Anchor::Middle, (LABEL_SIZE, false), &spot.label);
}

/// Sizes of sheets are small and not negative.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few thousand")]
pub(crate) fn pixels(size: f64) -> u32 {
    size.ceil().clamp(1.0, 100_000.0) as u32
}
