//! Ranks in rows, box by box, and switches in layers: those of a box outside of it, those that join boxes between them.
//!
//! Where one layer of switches joins all boxes, half of the boxes stand above it and half below; where there are several,
//! all ranks stand at the bottom.

use std::collections::BTreeMap;

use canopy_topology::{NodeIndex, Topology};

use super::{Bend, Frame, GAP, Labels, Layout, NODE_HEIGHT, Spot, arc_depth, real};

/// Space between a frame and what is in it.
const PADDING: f64 = 16.0;
/// Height of a layer of switches, with the links below it.
const LAYER: f64 = 96.0;
/// Room for the name of a box.
const NAME: f64 = 22.0;

/// Number of boxes that ranks state.
pub(super) fn box_count(topology: &Topology) -> usize {
    groups(topology).iter().filter(|group| group.name.is_some()).count()
}

/// Ranks of one box, or those of none, and the switches that only they use.
struct Group {
    name: Option<String>,
    ranks: Vec<NodeIndex>,
    switches: Vec<NodeIndex>,
}

/// By first rank; ranks without a box are one group.
fn groups(topology: &Topology) -> Vec<Group> {
    let mut known: BTreeMap<Option<&str>, usize> = BTreeMap::new();
    let mut groups: Vec<Group> = Vec::new();
    for rank in topology.ranks() {
        let name = topology.node(rank.node()).attributes.box_name.as_deref();
        let number = *known.entry(name).or_insert_with(|| {
            groups.push(Group { name: name.map(str::to_owned), ranks: Vec::new(), switches: Vec::new() });
            groups.len() - 1
        });
        groups[number].ranks.push(rank.node());
    }
    groups
}

/// Other nodes that links lead to or from, by node.
fn neighbours(topology: &Topology) -> Vec<Vec<NodeIndex>> {
    let mut found = vec![Vec::new(); topology.nodes().len()];
    for link in topology.links() {
        found[link.from.index()].push(link.to);
        found[link.to.index()].push(link.from);
    }
    for list in &mut found {
        list.sort_unstable();
        list.dedup();
    }
    found
}

/// Places every node. O(nodes log nodes + links).
pub(super) fn place(topology: &Topology, labels: &Labels) -> Layout {
    let near = neighbours(topology);
    let mut groups = groups(topology);
    let layers = layers(topology, &near, &mut groups);
    let named = groups.iter().filter(|group| group.name.is_some()).count();
    let two_sided = layers.len() == 1 && named > 1;
    let above = if two_sided { groups.len() / 2 } else { 0 };
    // Depth of the arcs between ranks of a group, and room for switches of its own.
    let measures: Vec<Measure> = groups.iter().map(|group| Measure::of(&near, group, labels)).collect();
    let column = measures.iter().map(|measure| measure.width).fold(0.0, f64::max);
    let outside = measures.iter().map(|measure| measure.outside).fold(0.0, f64::max);
    let columns = groups.len() - above;
    // Boxes above and below each other are as wide as the widest; in a single row, each is as wide as it must be.
    let widths: Vec<f64> = match two_sided {
        true => vec![column; columns],
        false => measures.iter().map(|measure| measure.width).collect(),
    };
    let before = |position: usize| widths.iter().take(position).map(|width| width + GAP).sum::<f64>();
    let width = before(columns) + GAP;
    let upper = if two_sided { GAP + outside + LAYER } else { GAP + NODE_HEIGHT };
    let lower = upper + LAYER * real(layers.len().max(1)) - if layers.is_empty() { LAYER } else { 0.0 };
    let mut layout = Layout {
        size: (width, lower + outside + GAP),
        spots: vec![Spot { centre: (0.0, 0.0), width: 0.0, label: String::new() }; topology.nodes().len()],
        bends: vec![Bend::Down; topology.nodes().len()],
        frames: Vec::new(),
    };
    for (number, (group, measure)) in groups.iter().zip(&measures).enumerate() {
        let is_above = number < above;
        let (position, row) = if is_above { (number, upper - LAYER) } else { (number - above, lower) };
        // A shorter row above stands in the middle.
        let spare = if is_above { real(columns - above) * (column + GAP) / 2.0 } else { 0.0 };
        let left = GAP + spare + before(position) + (widths[position] - measure.width) / 2.0;
        group.place(labels, measure, (left, row), if is_above { Bend::Up } else { Bend::Down }, &mut layout);
    }
    for (number, layer) in layers.iter().enumerate() {
        let y = if two_sided { upper } else { lower - LAYER * real(number + 1) };
        place_layer(labels, &near, layer, y, &mut layout);
        // Nothing stands above the topmost layer, so that arcs between its switches cross nothing.
        if !two_sided && number + 1 == layers.len() {
            layer.iter().for_each(|switch| layout.bends[switch.index()] = Bend::Up);
        }
    }
    layout
}

/// What a group takes up.
struct Measure {
    width: f64,
    /// Depth of the arcs.
    arcs: f64,
    /// From the middle of the row to the far edge of the frame.
    outside: f64,
}

impl Measure {
    fn of(near: &[Vec<NodeIndex>], group: &Group, labels: &Labels) -> Self {
        let position: BTreeMap<NodeIndex, usize> = group.ranks.iter().copied().zip(0..).collect();
        let spans = group.ranks.iter().flat_map(|&rank| {
            let here = position[&rank];
            near[rank.index()]
                .iter()
                .filter_map(|other| position.get(other))
                .map(move |&there| here.abs_diff(there))
                .collect::<Vec<_>>()
        });
        let longest = spans.max().unwrap_or(0);
        let arcs = if longest == 0 { 0.0 } else { arc_depth(real(longest) * labels.pitch()) };
        // They stand in equal parts.
        let widest = group.switches.iter().map(|&switch| labels.switch_width(switch)).fold(0.0, f64::max);
        let switches = real(group.switches.len()) * (widest + GAP) - GAP;
        let row = real(group.ranks.len()) * labels.pitch() - GAP;
        let own = if group.switches.is_empty() { 0.0 } else { 76.0 };
        let name = group.name.as_deref().map_or(0.0, |_| NAME);
        Self {
            width: row.max(switches).max(70.0) + 2.0 * PADDING,
            arcs,
            outside: NODE_HEIGHT / 2.0 + arcs + own + name + PADDING,
        }
    }
}

impl Group {
    fn place(&self, labels: &Labels, measure: &Measure, (left, row): (f64, f64), bend: Bend, layout: &mut Layout) {
        let outwards = if bend == Bend::Up { -1.0 } else { 1.0 };
        let pitch = labels.pitch();
        let inner = measure.width - 2.0 * PADDING;
        let first = left + PADDING + (inner - (real(self.ranks.len()) * pitch - GAP)) / 2.0 + labels.width / 2.0;
        for (position, &rank) in self.ranks.iter().enumerate() {
            layout.spots[rank.index()] = labels.rank(rank, (first + real(position) * pitch, row));
            layout.bends[rank.index()] = bend;
        }
        let each = (inner + GAP) / real(self.switches.len().max(1)) - GAP;
        let y = row + outwards * (measure.arcs + 70.0);
        for (position, &switch) in self.switches.iter().enumerate() {
            let x = left + PADDING + real(position) * (each + GAP) + each / 2.0;
            layout.spots[switch.index()] = labels.switch(switch, (x, y), each);
            layout.bends[switch.index()] = bend;
        }
        if let Some(name) = &self.name {
            let inside = NODE_HEIGHT / 2.0 + PADDING;
            let top = if bend == Bend::Up { row - measure.outside } else { row - inside };
            let (corner, size) = ((left, top), (measure.width, measure.outside + inside));
            layout.frames.push(Frame { corner, size, label: name.clone() });
        }
    }
}

/// Gives each group the switches that are its own, and sorts the others by their distance from ranks.
fn layers(topology: &Topology, near: &[Vec<NodeIndex>], groups: &mut [Group]) -> Vec<Vec<NodeIndex>> {
    let rank_count = topology.rank_count() as usize;
    let nodes = topology.nodes().len();
    let mut group_of: Vec<Option<usize>> = vec![None; nodes];
    for (number, group) in groups.iter().enumerate() {
        group.ranks.iter().for_each(|rank| group_of[rank.index()] = Some(number));
    }
    let others = || (0_u32..).take(nodes).skip(rank_count).map(NodeIndex::new);
    for node in others() {
        let stated = topology.node(node).attributes.box_name.as_deref();
        let of: Vec<Option<usize>> = near[node.index()].iter().map(|other| group_of[other.index()]).collect();
        let only = of.first().copied().flatten().filter(|first| of.iter().all(|group| *group == Some(*first)));
        let found = groups.iter().position(|group| group.name.is_some() && group.name.as_deref() == stated);
        if let Some(number) = found.or(only.filter(|&number| groups[number].name.is_some())) {
            groups[number].switches.push(node);
        }
    }
    for (number, group) in groups.iter().enumerate() {
        group.switches.iter().for_each(|switch| group_of[switch.index()] = Some(number));
    }
    let mut layer_of: Vec<Option<usize>> = group_of.iter().map(|group| group.map(|_| 0)).collect();
    let mut layers: Vec<Vec<NodeIndex>> = Vec::new();
    loop {
        let number = layers.len();
        let is_next = |node: &NodeIndex| {
            layer_of[node.index()].is_none()
                && near[node.index()].iter().any(|other| layer_of[other.index()] == Some(number))
        };
        let layer: Vec<NodeIndex> = others().filter(is_next).collect();
        if layer.is_empty() {
            break;
        }
        layer.iter().for_each(|node| layer_of[node.index()] = Some(number + 1));
        layers.push(layer);
    }
    let lost: Vec<NodeIndex> = others().filter(|node| layer_of[node.index()].is_none()).collect();
    if !lost.is_empty() {
        layers.push(lost);
    }
    layers
}

/// A layer of switches: over what hangs on each where that leaves room, else side by side in equal parts.
fn place_layer(labels: &Labels, near: &[Vec<NodeIndex>], layer: &[NodeIndex], y: f64, layout: &mut Layout) {
    let span = |node: NodeIndex| {
        let placed =
            near[node.index()].iter().map(|other| &layout.spots[other.index()]).filter(|spot| spot.width > 0.0);
        let (left, right) =
            placed.fold((f64::MAX, f64::MIN), |(left, right), spot| (left.min(spot.left()), right.max(spot.right())));
        if left > right { (GAP, layout.size.0 - GAP) } else { (left, right) }
    };
    let mut spans: Vec<(NodeIndex, (f64, f64))> = layer.iter().map(|&node| (node, span(node))).collect();
    spans.sort_by(|(_, a), (_, b)| (a.0 + a.1).total_cmp(&(b.0 + b.1)));
    let apart = spans.windows(2).all(|pair| pair[0].1.1 + GAP <= pair[1].1.0);
    let wide = spans.iter().all(|(node, (left, right))| right - left >= labels.switch_width(*node));
    if apart && wide {
        for (node, (left, right)) in spans {
            layout.spots[node.index()] = labels.switch(node, (f64::midpoint(left, right), y), right - left);
        }
        return;
    }
    let widest = layer.iter().map(|&node| labels.switch_width(node)).fold(0.0, f64::max);
    let needed = real(layer.len()) * (widest + GAP) + GAP;
    if needed > layout.size.0 {
        // What is there already stays in the middle.
        let shift = (needed - layout.size.0) / 2.0;
        layout.spots.iter_mut().for_each(|spot| spot.centre.0 += shift);
        layout.frames.iter_mut().for_each(|frame| frame.corner.0 += shift);
        layout.size.0 = needed;
    }
    let part = (layout.size.0 - 2.0 * GAP + GAP) / real(layer.len());
    // Wider than its name only where it is the only one.
    let width = if layer.len() == 1 { part - GAP } else { (part - GAP).min(widest.max(72.0)) };
    for (position, (node, _)) in spans.into_iter().enumerate() {
        let x = GAP + part * real(position) + (part - GAP) / 2.0;
        layout.spots[node.index()] = labels.switch(node, (x, y), width);
    }
}
