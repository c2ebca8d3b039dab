//! What one rank of a torus sends in each dimension, its templates, and where patches are.

use canopy_schedule::{LinkClass, LinkKind, OrbitClasses};
use canopy_topology::Rank;

use super::{ByClassDrawing, Parts, moved};
use crate::svg::{Anchor, INK, LINE, MARGIN, Mark, Point, real};
use crate::words::{count, shortened};

/// Height of a dimension.
const HEIGHT: f64 = 46.0;
/// Where the rank stands, and how long its links are.
const MIDDLE: f64 = 380.0;
const REACH: f64 = 180.0;
/// Most dimensions, templates and ranks with patches that are drawn.
const ROWS_MAX: usize = 12;
/// Width of the bar of a template.
const BAR: f64 = 520.0;
/// What differs.
const PATCHED: &str = "#b00020";
/// Fills of dimensions in bars.
const FILLS: [&str; 6] = ["#ffdf80", "#b8e0b0", "#f4c2d7", "#c9c2f0", "#b5e3e3", "#e8cfae"];

/// Draws all of it.
pub(super) fn draw(drawing: &ByClassDrawing<'_>, found: &OrbitClasses, parts: &mut Parts) {
    parts.begin("Links of one rank, by dimension");
    for (dimension, &order) in found.orders.iter().enumerate().take(ROWS_MAX) {
        let y = parts.y + HEIGHT / 2.0;
        let name = format!("Dimension {}, of {order}", dimension + 1);
        parts.svg.words((MARGIN, y + 4.0), Anchor::Start, (12, true), &name);
        for is_up in [false, true] {
            let is_here = |class: &&LinkClass| class.kind.dimension() == Some((dimension, is_up));
            // A ring of two has one direction.
            if let Some(class) = drawing.classes.links.iter().find(is_here) {
                arm(drawing, class, ((MIDDLE, y), is_up), parts);
            }
        }
        let mark = Mark { fill: "white", stroke: INK, width: 1.2, dashes: "", note: "a rank" };
        parts.svg.plate((MIDDLE - 10.0, y - 10.0), (20.0, 20.0), 10.0, &mark);
        parts.y += HEIGHT;
    }
    templates(drawing, found, parts);
    if found.patch_count > 0 {
        patches(drawing, found, parts);
    }
}

/// The links of one direction, with how busy they are over the line.
fn arm(drawing: &ByClassDrawing<'_>, class: &LinkClass, (from, is_up): (Point, bool), parts: &mut Parts) {
    let busy = drawing.busy(class.busiest);
    let end = moved(from, if is_up { REACH } else { -REACH }, 0.0);
    parts.svg.polygon(&band(from, end), &Mark { fill: busy.colour(), ..Mark::line("none", 1.0) });
    let half = moved(from, if is_up { REACH / 2.0 } else { -REACH / 2.0 }, -8.0);
    let words = format!("{} {}", if is_up { "up" } else { "down" }, drawing.percent(class.busiest));
    parts.svg.text(half, Anchor::Middle, INK, &words);
    let mark = Mark { fill: "white", stroke: INK, width: 1.2, dashes: "", note: "its neighbour" };
    parts.svg.plate((end.0 - 8.0, end.1 - 8.0), (16.0, 16.0), 8.0, &mark);
}

fn band((x, y): Point, (to, _): Point) -> [Point; 4] {
    [(x, y - 2.0), (to, y - 2.0), (to, y + 2.0), (x, y + 2.0)]
}

/// Each template as a bar of its hops by dimension.
fn templates(drawing: &ByClassDrawing<'_>, found: &OrbitClasses, parts: &mut Parts) {
    parts.begin("Templates: hops by dimension and direction");
    for (number, template) in found.templates.iter().enumerate().take(ROWS_MAX) {
        let words = format!("{}: weight {}, depth {}", number + 1, template.weight, template.depth());
        parts.svg.text((MARGIN, parts.y + 14.0), Anchor::Start, INK, &words);
        let hops = template.hops();
        let all = hops.values().sum::<u64>().max(1);
        let mut x = 230.0;
        for (class, hops) in hops {
            let Some(class) = drawing.classes.links.get(class as usize) else { continue };
            let width = BAR * part(hops, all);
            let fill = fill(&class.kind);
            let note = format!("{hops} hops, {}", class.kind.in_words());
            let mark = Mark { fill, stroke: INK, width: 0.6, dashes: "", note: &note };
            parts.svg.plate((x, parts.y + 2.0), (width, 16.0), 0.0, &mark);
            let short = short(&class.kind);
            if width > 26.0 {
                parts.svg.text((x + width / 2.0, parts.y + 14.0), Anchor::Middle, "black", &short);
            }
            x += width;
        }
        parts.y += LINE + 6.0;
    }
    if found.templates.len() > ROWS_MAX {
        parts.say(&format!("and {} more templates", found.templates.len() - ROWS_MAX));
    }
}

fn fill(kind: &LinkKind) -> &'static str {
    kind.dimension().and_then(|(dimension, _)| FILLS.get(dimension)).copied().unwrap_or("#e3e8ee")
}

/// `1+`: dimension and direction.
fn short(kind: &LinkKind) -> String {
    match kind.dimension() {
        Some((dimension, is_up)) => format!("{}{}", dimension + 1, if is_up { "+" } else { "−" }),
        None => String::new(),
    }
}

/// A part of a width.
fn part(some: u64, all: u64) -> f64 {
    let thousandths = u128::from(some) * 100_000 / u128::from(all.max(1));
    f64::from(u32::try_from(thousandths).unwrap_or(u32::MAX)) / 100_000.0
}

/// Ranks that get something from other parents.
fn patches(drawing: &ByClassDrawing<'_>, found: &OrbitClasses, parts: &mut Parts) {
    parts.begin("Patches: ranks with other parents in some trees");
    let ranks = count(found.patches.len(), "rank");
    let lost = if found.lost > 0 { format!(", {} missing", count(found.lost, "rank")) } else { String::new() };
    parts.say(&format!("{} changes of parents at {ranks}{lost}", found.patch_count));
    let columns = 3;
    for (number, patch) in found.patches.iter().take(ROWS_MAX).enumerate() {
        let (row, column) = (number / columns, number % columns);
        let at = (MARGIN + 290.0 * real(column), parts.y + 14.0 + LINE * real(row));
        let mark = Mark { fill: "white", stroke: PATCHED, width: 1.2, dashes: "3 2", note: "patched" };
        parts.svg.plate((at.0, at.1 - 10.0), (12.0, 12.0), 6.0, &mark);
        let known = drawing.topology.rank_count() > patch.rank;
        let name =
            if known { drawing.topology.node(Rank::new(patch.rank).node()).id.as_str() } else { "a missing rank" };
        let trees = if patch.trees == 1 { "1 tree".to_owned() } else { format!("{} trees", patch.trees) };
        let words = format!("{}: {trees}", shortened(name, 20));
        parts.svg.text(moved(at, 18.0, 0.0), Anchor::Start, INK, &words);
    }
    parts.y += LINE * real(found.patches.len().min(ROWS_MAX).div_ceil(columns)) + 6.0;
    if found.patches.len() > ROWS_MAX {
        parts.say(&format!("and {} more ranks", found.patches.len() - ROWS_MAX));
    }
}
