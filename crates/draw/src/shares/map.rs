//! The network, each link as a band that classes divide: all of it, or the busiest boxes where it is large.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use canopy_schedule::SharedLink;
use canopy_topology::{Capacity, NodeIndex, Topology, TopologyDraft, TopologyLimits};

use super::band::{Band, FREE};
use super::kinds::{percent, total};
use super::{UseClass, fold};
use crate::layout::{Layout, layout};
use crate::network::lines::{Painter, make_room};
use crate::network::{FRAME, draw_node, name, name_frames};
use crate::svg::{INK, Mark, Point, Svg};
use crate::wires::{gigabytes, wires};
use crate::words::count;

/// Most nodes of a map.
const NODES_MAX: usize = 80;
/// Most bands of a map.
pub(super) const BANDS_MAX: usize = 520;
/// Widths of the bands of least and of greatest capacity.
const WIDTHS: (f64, f64) = (4.0, 9.0);
/// Space between the bands of two directions.
const APART: f64 = 0.8;

/// A network or a part of it, and the places of its nodes.
pub(super) struct Map {
    topology: Topology,
    /// Its links by their ends in it.
    links: BTreeMap<(NodeIndex, NodeIndex), SharedLink>,
    pub(super) layout: Layout,
    places: Vec<NodeIndex>,
    /// What was left out.
    pub(super) note: Option<String>,
}

impl Map {
    /// The whole network, else the two busiest boxes or the busiest one; `None` if that is too large, too, or no boxes are
    /// named.
    pub(super) fn of(topology: &Topology, links: &[SharedLink]) -> Option<Self> {
        if topology.nodes().len() <= NODES_MAX && links.len() <= BANDS_MAX {
            let by_ends = links.iter().map(|link| ((link.from, link.to), link.clone())).collect();
            return Some(Self::placed(topology.clone(), by_ends, None));
        }
        let boxes = busiest_boxes(topology, links);
        [2, 1].into_iter().filter_map(|most| boxes.get(..most)).find_map(|shown| {
            let mut map = Self::of_boxes(topology, links, shown)?;
            map.note = Some(format!(
                "Folded: of {}, the map shows {}, whose links are busiest; {} of {} are not in it. Profiles and \
                 numbers below count all.",
                if boxes.len() == 1 { "1 box".to_owned() } else { format!("{} boxes", boxes.len()) },
                shown.join(" and "),
                links.len() - map.links.len(),
                count(links.len(), "link"),
            ));
            Some(map)
        })
    }

    /// These boxes, and the switches that join them to others.
    fn of_boxes(topology: &Topology, links: &[SharedLink], shown: &[&str]) -> Option<Self> {
        let is_inside = |node: NodeIndex| box_of(topology, node).is_some_and(|name| shown.contains(&name));
        let is_elsewhere = |node: NodeIndex| {
            !is_inside(node) && (topology.rank_of(node).is_some() || box_of(topology, node).is_some())
        };
        let is_own = |link: &&SharedLink| {
            let ends = [link.from, link.to];
            ends.into_iter().any(is_inside) && !ends.into_iter().any(is_elsewhere)
        };
        let own: Vec<&SharedLink> = links.iter().filter(is_own).collect();
        let all = (0_u32..).take(topology.nodes().len()).map(NodeIndex::new);
        let ends = own.iter().flat_map(|link| [link.from, link.to]);
        let nodes: BTreeSet<NodeIndex> = all.filter(|&node| is_inside(node)).chain(ends).collect();
        if nodes.len() > NODES_MAX || own.len() > BANDS_MAX {
            return None;
        }
        let part = part(topology, &nodes, &own)?;
        let here = |node: NodeIndex| part.find_node(&topology.node(node).id);
        let by_ends = own.iter().filter_map(|link| Some(((here(link.from)?, here(link.to)?), (*link).clone())));
        let by_ends = by_ends.collect();
        Some(Self::placed(part, by_ends, None))
    }

    fn placed(topology: Topology, links: BTreeMap<(NodeIndex, NodeIndex), SharedLink>, note: Option<String>) -> Self {
        let mut layout = layout(&topology);
        let places: Vec<NodeIndex> = (0_u32..).take(topology.nodes().len()).map(NodeIndex::new).collect();
        make_room(&mut layout, &places, &wires(&topology, None, &places), &[]);
        Self { topology, links, layout, places, note }
    }

    /// Draws the network with its upper left corner at a place.
    pub(super) fn draw(&mut self, svg: &mut Svg, corner: Point, classes: &[UseClass]) {
        self.layout.move_by(corner);
        let layout = &self.layout;
        for frame in &layout.frames {
            svg.plate(frame.corner, frame.size, 10.0, &Mark { fill: FRAME, ..Mark::line("#aab4be", 1.0) });
        }
        let most = self.links.values().map(|link| link.bytes_per_sec).max().unwrap_or(1);
        let painter = Painter { layout, places: &self.places, most };
        let mut bands: Vec<(&(NodeIndex, NodeIndex), &SharedLink)> = self.links.iter().collect();
        // The busiest last, so that nothing covers them.
        bands.sort_by_key(|(ends, link)| (link.is_busiest, total(link), Reverse(**ends)));
        for (&(from, to), link) in bands {
            let width = width(link.bytes_per_sec, most);
            let has_both = self.links.contains_key(&(to, from));
            let shift = if has_both { (width + APART) / 2.0 } else { 0.0 };
            let band = Band::along(&painter.curve((from, to), shift), width);
            svg.open(&self.words((from, to), link, classes));
            svg.polygon(&band.strip(0, WHOLE), &Mark { fill: FREE, ..Mark::line("none", 1.0) });
            let mut low = 0_u32;
            for (part, colour) in link.billionths.iter().zip(fold::COLOURS).filter(|(part, _)| **part > 0) {
                let high = low.saturating_add(*part).min(WHOLE);
                svg.polygon(&band.strip(low, high), &Mark { fill: colour, ..Mark::line("none", 1.0) });
                low = high;
            }
            if link.is_busiest {
                svg.polygon(&band.strip(0, WHOLE), &Mark::line(INK, 1.2));
            }
            svg.close();
        }
        name_frames(svg, layout, corner.1);
        for &node in &self.places {
            let is_switch = self.topology.rank_of(node).is_none();
            draw_node(svg, layout, node, "white", (INK, ""), &name(&self.topology, node), is_switch);
        }
    }

    /// What a viewer shows of a band.
    fn words(&self, (from, to): (NodeIndex, NodeIndex), link: &SharedLink, classes: &[UseClass]) -> String {
        let [from, to] = [from, to].map(|node| self.topology.node(node).id.as_str());
        let parts = classes.iter().zip(&link.billionths).filter(|(_, part)| **part > 0);
        let parts: Vec<String> = parts.map(|(class, &part)| format!("{} {}", class.name, percent(part))).collect();
        let parts = if parts.is_empty() { "not used".to_owned() } else { parts.join(", ") };
        let busiest = if link.is_busiest { "; busy all the time" } else { "" };
        format!("{from} -> {to}, {} GB/s: {parts}{busiest}", gigabytes(link.bytes_per_sec))
    }
}

/// All of a link, in billionths.
const WHOLE: u32 = 1_000_000_000;

/// By the root of the capacity.
#[expect(clippy::cast_precision_loss, reason = "a width on a sheet")]
fn width(bytes_per_sec: u128, most: u128) -> f64 {
    WIDTHS.0 + (WIDTHS.1 - WIDTHS.0) * (bytes_per_sec as f64 / most.max(1) as f64).sqrt()
}

fn box_of(topology: &Topology, node: NodeIndex) -> Option<&str> {
    topology.node(node).attributes.box_name.as_deref()
}

/// The boxes, those with most links that are busy all the time first, and of these those whose links are busiest.
fn busiest_boxes<'a>(topology: &'a Topology, links: &[SharedLink]) -> Vec<&'a str> {
    let mut use_of: BTreeMap<&str, (usize, u64)> = BTreeMap::new();
    for link in links {
        let ends: BTreeSet<&str> = [link.from, link.to].into_iter().filter_map(|node| box_of(topology, node)).collect();
        for name in ends {
            let sum = use_of.entry(name).or_default();
            sum.0 += usize::from(link.is_busiest);
            sum.1 += u64::from(total(link));
        }
    }
    let mut found: Vec<(&str, (usize, u64))> = use_of.into_iter().collect();
    // Equal ones keep the order of their names.
    found.sort_by_key(|(_, use_of)| Reverse(*use_of));
    found.into_iter().map(|(name, _)| name).collect()
}

/// The network of these nodes and links.
fn part(topology: &Topology, nodes: &BTreeSet<NodeIndex>, links: &[&SharedLink]) -> Option<Topology> {
    let mut draft = TopologyDraft::default();
    for &node in nodes {
        let node = topology.node(node);
        draft.add_node(&node.id, node.kind, node.attributes.clone());
    }
    for link in links {
        let [from, to] = [link.from, link.to].map(|node| &topology.node(node).id);
        let capacity = Capacity::from_bytes_per_sec(u64::try_from(link.bytes_per_sec).unwrap_or(u64::MAX))?;
        draft.add_link(from, to, capacity, canopy_topology::Latency::default());
    }
    draft.build(&TopologyLimits::STANDARD).ok()
}
