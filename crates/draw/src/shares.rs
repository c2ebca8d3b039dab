//! Who uses which link: classes of groups that run at once, on a network that they share.

mod band;
mod fold;
mod grid;
mod kinds;
mod map;
mod table;

#[cfg(test)]
mod tests;

use canopy_schedule::SharedLink;
use canopy_topology::Topology;

use crate::network::pixels;
use crate::svg::{LINE, MARGIN, Mark, Point, Svg, heading_bottom, real};
use crate::words::{count, wrapped};
use band::FREE;
use fold::COLOURS;
use grid::{Grid, ROW};
use kinds::{KINDS_MAX, Kind, percent};
use map::Map;
use table::{Block, COLUMNS_MAX};

/// Least width of a sheet.
const WIDTH_MIN: f64 = 860.0;
/// Most elements of a drawing: those of a map of 520 bands in all colours, of 80 nodes, and of 16 kinds of links.
pub const ELEMENTS_MAX: usize = 8_000;
/// Width of what stands before a row of the legend.
const SWATCH: f64 = 30.0;

/// Groups that do the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UseClass {
    /// What they are called.
    pub name: String,
    /// Their collective.
    pub does: String,
    /// How many they are.
    pub groups: usize,
    /// Ranks of the largest.
    pub ranks: usize,
    /// Of each, in words.
    pub size: String,
}

/// What is drawn.
#[derive(Clone, Copy, Debug)]
pub struct SharesDrawing<'a> {
    /// The heading.
    pub title: &'a str,
    /// Sentences below it.
    pub notes: &'a [String],
    /// The network.
    pub topology: &'a Topology,
    /// The classes; those beyond the colours are drawn as one.
    pub classes: &'a [UseClass],
    /// What each takes of each link of the network.
    pub links: &'a [SharedLink],
}

/// Draws a network whose links are bands, divided by what each class takes; below it, all links by kind.
///
/// * **Out.** An SVG of its own, without scripts, fonts or references; the same bytes for the same input. Of a large
///   network, the map shows a box or two, and links of a kind are folded into a profile; a sentence says so. At most
///   [`ELEMENTS_MAX`] elements.
/// * **Cost.** O((nodes + links) · log links), and the layout of at most 80 nodes.
pub fn draw_shares(drawing: &SharesDrawing<'_>) -> String {
    let (classes, links) = fold::folded(drawing.classes, drawing.links);
    let kinds = kinds::kinds(drawing.topology, &links);
    let blocks: Vec<Block<'_>> = kinds.iter().map(|kind| Block::of(kind, &links, &classes)).collect();
    let mut map = Map::of(drawing.topology, &links);
    let size = map.as_ref().map_or((0.0, 0.0), |map| map.layout.size);
    let legend = legend(&classes, &links);
    let widest = blocks.iter().map(Block::width).fold(legend.width() + SWATCH, f64::max);
    let width = (size.0.max(widest) + 2.0 * MARGIN).max(WIDTH_MIN);
    let title = wrapped(drawing.title, 16, width - 2.0 * MARGIN, 2);
    let all_notes = drawing.notes.iter().cloned().chain(said(drawing, &map, &kinds));
    let notes: Vec<String> = all_notes.flat_map(|note| wrapped(&note, 12, width - 2.0 * MARGIN, 3)).collect();
    let top = heading_bottom(&title, &notes) + 28.0;
    let map_top = top + legend.height() + ROW + 10.0;
    let table_top = map_top + size.1 + LINE;
    let height = table_top + blocks.iter().map(Block::height).sum::<f64>() + MARGIN;
    let mut svg = Svg::new(pixels(width), pixels(height), drawing.title);
    svg.describe(&description(&classes, &links, &blocks));
    svg.heading(&title, &notes);
    draw_legend(&mut svg, &legend, (MARGIN, top), &links);
    if let Some(map) = &mut map {
        map.draw(&mut svg, ((width - size.0) / 2.0, map_top), &classes);
    }
    let mut y = table_top;
    for block in &blocks {
        block.draw(&mut svg, (MARGIN, y));
        y += block.height();
    }
    svg.finish()
}

/// How the drawing is read, and what was folded.
fn said(drawing: &SharesDrawing<'_>, map: &Option<Map>, kinds: &[Kind]) -> Vec<String> {
    let mut notes = Vec::new();
    match map {
        Some(map) => {
            notes.push(
                "A band is a link, as wide as the root of its capacity. Traffic keeps to the right of its direction. Classes \
                 divide the band in the order of the table."
                    .to_owned(),
            );
            notes.extend(map.note.clone());
        }
        None => notes.push(format!(
            "Folded: {} are too many for a map; profiles and numbers below count all links.",
            count(drawing.topology.nodes().len(), "node")
        )),
    }
    let most = kinds.iter().map(|kind| kind.links.len()).max().unwrap_or(0);
    if most > COLUMNS_MAX {
        notes.push(format!(
            "Folded: a column of a profile is the mean of up to {} links, the busiest first.",
            most.div_ceil(COLUMNS_MAX)
        ));
    }
    if kinds.iter().any(|kind| kind.bytes_per_sec.is_none()) {
        notes.push(format!("Folded: of kinds of links, the {} busiest are apart.", KINDS_MAX - 1));
    }
    if drawing.classes.len() > COLOURS.len() {
        notes.push(format!("Folded: {} classes share the last colour.", drawing.classes.len() + 1 - COLOURS.len()));
    }
    notes
}

/// A row for each class.
fn legend(classes: &[UseClass], links: &[SharedLink]) -> Grid {
    let heading = ["class", "collective", "groups#", "ranks each#", "size#", "greatest part of a link#"];
    let mut grid = Grid::new(&heading);
    for (number, class) in classes.iter().enumerate() {
        let most = links.iter().filter_map(|link| link.billionths.get(number)).max().copied().unwrap_or(0);
        grid.row([
            class.name.clone(),
            class.does.clone(),
            class.groups.to_string(),
            class.ranks.to_string(),
            class.size.clone(),
            percent(most),
        ]);
    }
    grid
}

/// The rows with their colours, and below them what belongs to no class.
fn draw_legend(svg: &mut Svg, legend: &Grid, (left, top): Point, links: &[SharedLink]) {
    legend.draw(svg, (left + SWATCH, top));
    let rows = (legend.height() / ROW - 1.0).max(0.0);
    for (number, colour) in COLOURS.iter().enumerate().take_while(|(number, _)| real(*number) + 0.5 < rows) {
        swatch(svg, (left, top + ROW * real(number + 1)), colour);
    }
    let y = top + legend.height();
    swatch(svg, (left, y), FREE);
    svg.text((left + SWATCH, y), crate::svg::Anchor::Start, crate::svg::INK, "free");
    let busiest = links.iter().filter(|link| link.is_busiest).count();
    if busiest > 0 {
        let x = left + SWATCH + 60.0;
        svg.plate((x, y - 10.0), (20.0, 11.0), 0.0, &Mark { fill: FREE, ..Mark::line(crate::svg::INK, 1.2) });
        let words = format!("outlined: busy all the time ({})", count(busiest, "link"));
        svg.text((x + SWATCH, y), crate::svg::Anchor::Start, crate::svg::INK, &words);
    }
}

/// A colour before words whose base line is at a place.
fn swatch(svg: &mut Svg, (x, y): Point, colour: &str) {
    svg.plate((x, y - 10.0), (20.0, 11.0), 0.0, &Mark { fill: colour, ..Mark::line("none", 1.0) });
}

/// The drawing in words, for those who hear it.
fn description(classes: &[UseClass], links: &[SharedLink], blocks: &[Block<'_>]) -> String {
    let class = |(number, class): (usize, &UseClass)| {
        let most = links.iter().filter_map(|link| link.billionths.get(number)).max().copied().unwrap_or(0);
        format!("{}, {} of {}, takes up to {} of a link", class.name, class.does, class.size, percent(most))
    };
    let classes = classes.iter().enumerate().map(class);
    let blocks = blocks.iter().map(|block| {
        let (kind, rest) = block.words();
        format!("{kind}, {rest}")
    });
    classes.chain(blocks).collect::<Vec<_>>().join(". ")
}
