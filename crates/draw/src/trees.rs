//! The trees of a plan, one panel each: the root on the left, each further hop one column to the right.

use canopy_schedule::{Action, Batch, Schedule, Shape, TransferGraph};
use canopy_topology::{Rank, Topology};

use crate::error::DrawError;
use crate::network::pixels;
use crate::svg::{Anchor, Curve, INK, MARGIN, Mark, Point, Svg, heading_bottom, real};
use crate::words::{count, shortened, width_of, wrapped};

/// Most trees that are drawn.
const TREES_MAX: usize = 24;
/// Most ranks of trees that are drawn.
const RANKS_MAX: usize = 128;
/// Width of a sheet with several columns of trees.
const WIDTH: f64 = 1180.0;
/// Height of a leaf.
const LEAF: f64 = 24.0;
const PLATE: f64 = 18.0;
/// Between a rank and those it sends to.
const HOP: f64 = 30.0;
const SIZE: u32 = 10;
const LABEL_CHARS_MAX: usize = 12;
const EDGE: &str = "#3f8fc5";
const ROOT: &str = "#ffdf80";

/// What is drawn.
#[derive(Clone, Copy, Debug)]
pub struct TreesDrawing<'a> {
    /// The heading.
    pub title: &'a str,
    /// The network.
    pub topology: &'a Topology,
    /// The plan, for its shape.
    pub schedule: &'a Schedule,
    /// Its transfers.
    pub graph: &'a TransferGraph,
    /// Whose trees: all of one root, or the first of every root.
    pub root: Option<Rank>,
    /// Which phase of an allreduce, from 1.
    pub phase: u32,
}

/// Draws trees, or of gather, scatter and all-to-all paths, side by side; the same bytes for the same input.
///
/// * **Errors.** Plans in steps, roots and phases without trees, and more ranks than can be looked at.
/// * **Cost.** O(transfers of the trees drawn).
pub fn draw_trees(drawing: &TreesDrawing<'_>) -> Result<String, DrawError> {
    let &TreesDrawing { topology, schedule, graph, root, phase, .. } = drawing;
    if matches!(schedule.shape, Shape::Steps(_)) {
        return Err(DrawError::NoTrees { shape: schedule.shape.name() });
    }
    let ranks = topology.rank_count() as usize;
    if ranks > RANKS_MAX {
        return Err(DrawError::TooManyRanks { ranks, ranks_max: RANKS_MAX });
    }
    let mut actions: Vec<Action> = Vec::new();
    for batch in &graph.batches {
        if !actions.contains(&batch.action) {
            actions.push(batch.action);
        }
    }
    let phases = u32::try_from(actions.len()).unwrap_or(u32::MAX);
    let action = phase.checked_sub(1).and_then(|phase| actions.get(phase as usize)).copied();
    let action = action.ok_or(DrawError::NoSuchPhase { phase, phases })?;
    let all: Vec<&Batch> = graph.batches.iter().filter(|batch| batch.action == action).collect();
    let chosen: Vec<&Batch> = match root {
        Some(root) => all.iter().copied().filter(|batch| batch.root == root).collect(),
        None => {
            let mut seen: Vec<Rank> = Vec::new();
            let is_first = |batch: &&Batch| {
                !seen.contains(&batch.root) && {
                    seen.push(batch.root);
                    true
                }
            };
            all.iter().copied().filter(is_first).collect()
        }
    };
    if let (Some(root), true) = (root, chosen.is_empty()) {
        return Err(DrawError::NoSuchTree { root: root.number(), phase });
    }
    let shown = chosen.len().min(TREES_MAX);
    let way = match action {
        Action::Copy => "data goes from left to right",
        Action::Reduce => "data goes from right to left, and is added up on the way",
    };
    let which = match root {
        Some(root) => format!("trees of rank {}", root.number()),
        None => "the first tree of each root".to_owned(),
    };
    let left_out = if root.is_some() { chosen.len() } else { all.len() } - shown;
    let more = match left_out {
        0 => String::new(),
        1 => "; 1 more tree is not drawn".to_owned(),
        more => format!("; {more} more trees are not drawn"),
    };
    let note = format!("phase {phase} of {phases}, {which}: {way}{more}");
    let panels: Vec<Panel> = chosen.iter().take(shown).map(|batch| Panel::of(drawing, batch, &all)).collect();
    Ok(sheet(drawing.title, &note, &panels))
}

/// A tree with the places of its ranks, from its own upper left corner.
struct Panel {
    title: String,
    size: (f64, f64),
    spots: Vec<(Point, String)>,
    /// Positions of parent and child in `spots`.
    edges: Vec<(usize, usize)>,
    label_width: f64,
}

impl Panel {
    fn of(drawing: &TreesDrawing<'_>, batch: &Batch, all: &[&Batch]) -> Self {
        let (topology, graph) = (drawing.topology, drawing.graph);
        let id = |rank: Rank| shortened(&topology.node(rank.node()).id, LABEL_CHARS_MAX);
        let transfers = graph.transfers_of(batch);
        // A path of all-to-all ends where it leads to; its root is where it starts, or it is a tree towards its root.
        let pairs = transfers.iter().map(|transfer| match batch.action {
            Action::Copy => (transfer.from, transfer.to),
            Action::Reduce => (transfer.to, transfer.from),
        });
        let mut children: Vec<Vec<Rank>> = vec![Vec::new(); topology.rank_count() as usize];
        let mut is_child = vec![false; topology.rank_count() as usize];
        for (parent, child) in pairs {
            children[parent.index()].push(child);
            is_child[child.index()] = true;
        }
        let start = topology.ranks().find(|rank| !is_child[rank.index()] && !children[rank.index()].is_empty());
        let start = if is_child[batch.root.index()] { start.unwrap_or(batch.root) } else { batch.root };
        let mut panel =
            Self { title: String::new(), size: (0.0, 0.0), spots: Vec::new(), edges: Vec::new(), label_width: 0.0 };
        let order = panel.visit(start, &children);
        let labels: Vec<String> = order.iter().map(|&(rank, _)| id(rank)).collect();
        panel.label_width = labels.iter().map(|label| width_of(label, SIZE) + 10.0).fold(24.0, f64::max);
        let depth = order.iter().map(|&(_, depth)| depth).max().unwrap_or(0);
        let column = panel.label_width + HOP;
        // From the last visited on: children stand before their parent is placed in the middle of them.
        let mut heights = vec![0.0; order.len()];
        let mut of_child: Vec<Vec<usize>> = vec![Vec::new(); order.len()];
        panel.edges.iter().for_each(|&(parent, child)| of_child[parent].push(child));
        let mut leaves = 0;
        for position in 0..order.len() {
            if of_child[position].is_empty() {
                heights[position] = LEAF * (real(leaves) + 0.5);
                leaves += 1;
            }
        }
        for position in (0..order.len()).rev() {
            if let (Some(&first), Some(&last)) = (of_child[position].first(), of_child[position].last()) {
                heights[position] = f64::midpoint(heights[first], heights[last]);
            }
        }
        let places =
            order.iter().zip(&heights).map(|(&(_, depth), &y)| (panel.label_width / 2.0 + real(depth) * column, y));
        panel.spots = places.zip(labels).collect();
        let of_root: u64 = all.iter().filter(|other| other.root == batch.root).map(|other| other.chunk_count).sum();
        panel.title = format!(
            "{}: {} of {}, {} deep",
            id(batch.root),
            batch.chunk_count,
            count(usize::try_from(of_root).unwrap_or(usize::MAX), "chunk"),
            count(depth, "hop")
        );
        panel.size = (panel.label_width + real(depth) * column, LEAF * real(leaves.max(1)));
        panel.size.0 = panel.size.0.max(width_of(&panel.title, 12));
        panel
    }

    /// Ranks with their depths in the order of a walk from the start, a parent before its children; notes the edges.
    fn visit(&mut self, start: Rank, children: &[Vec<Rank>]) -> Vec<(Rank, usize)> {
        let mut order: Vec<(Rank, usize)> = Vec::new();
        let mut stack: Vec<(Rank, usize, Option<usize>)> = vec![(start, 0, None)];
        // A checked batch is a tree, so each rank comes once; a bound that does not rely on it.
        while let Some((rank, depth, parent)) = stack.pop().filter(|_| order.len() <= children.len()) {
            let position = order.len();
            order.push((rank, depth));
            self.edges.extend(parent.map(|parent| (parent, position)));
            stack.extend(children[rank.index()].iter().rev().map(|&child| (child, depth + 1, Some(position))));
        }
        order
    }

    fn draw(&self, svg: &mut Svg, (left, top): Point) {
        svg.words((left, top + 12.0), Anchor::Start, (12, true), &self.title);
        let at = |(x, y): Point| (left + x, top + 22.0 + y);
        for &(parent, child) in &self.edges {
            let (from, to) = (at(self.spots[parent].0), at(self.spots[child].0));
            let (start, end) = ((from.0 + self.label_width / 2.0, from.1), (to.0 - self.label_width / 2.0, to.1));
            let middle = f64::midpoint(start.0, end.0);
            let curve = Curve::Cubic([start, (middle, start.1), (middle, end.1), end]);
            svg.stroke(&curve, &Mark::line(EDGE, 1.6));
        }
        for (number, (place, label)) in self.spots.iter().enumerate() {
            let (x, y) = at(*place);
            let fill = if number == 0 { ROOT } else { "white" };
            let corner = (x - self.label_width / 2.0, y - PLATE / 2.0);
            svg.plate(corner, (self.label_width, PLATE), PLATE / 2.0, &Mark { fill, ..Mark::line(INK, 1.0) });
            svg.words((x, y + 3.5), Anchor::Middle, (SIZE, false), label);
        }
    }
}

/// Panels in rows, as many in each as fit.
fn sheet(title: &str, note: &str, panels: &[Panel]) -> String {
    let widest = panels.iter().map(|panel| panel.size.0).fold(0.0, f64::max);
    let width = (widest + 2.0 * MARGIN).max(WIDTH);
    let title_lines = wrapped(title, 16, width - 2.0 * MARGIN, 2);
    let note_lines = wrapped(note, 12, width - 2.0 * MARGIN, 3);
    let mut corner = (MARGIN, heading_bottom(&title_lines, &note_lines) + 24.0);
    let mut places = Vec::with_capacity(panels.len());
    let mut row_height = 0.0_f64;
    for panel in panels {
        if corner.0 > MARGIN && corner.0 + panel.size.0 > width - MARGIN {
            corner = (MARGIN, corner.1 + row_height);
            row_height = 0.0;
        }
        places.push(corner);
        corner.0 += panel.size.0 + 36.0;
        row_height = row_height.max(panel.size.1 + 52.0);
    }
    let ends = panels.iter().zip(&places).map(|(panel, place)| place.0 + panel.size.0 + MARGIN);
    let written =
        title_lines.iter().map(|line| width_of(line, 16)).chain(note_lines.iter().map(|line| width_of(line, 12)));
    let used = ends.chain(written.map(|width| width + 2.0 * MARGIN)).fold(0.0, f64::max).min(width);
    let mut svg = Svg::new(pixels(used), pixels(corner.1 + row_height), title);
    svg.heading(&title_lines, &note_lines);
    panels.iter().zip(places).for_each(|(panel, place)| panel.draw(&mut svg, place));
    svg.finish()
}
