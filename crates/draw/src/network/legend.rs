//! What colours, widths and dashes mean, and how many links are of each kind.

use super::marked::Marked;
use super::{Lost, MISSING};
use crate::svg::{Anchor, INK, LINE, Mark, Point, Svg, real};
use crate::wires::{Busy, Wire, gigabytes};
use crate::words::{count, width_of};

/// Font size of the legend.
const SIZE: u32 = 12;
/// Width of what stands before the words.
const SYMBOL_WIDTH: f64 = 34.0;

/// What stands before the words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LegendSymbol {
    Line { colour: &'static str, dashes: &'static str, halo: bool },
    Plate(&'static str),
    Wedge,
}

/// One kind of thing in the drawing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Item {
    symbol: LegendSymbol,
    words: String,
}

/// Everything that the drawing shows, the busiest links first.
pub(super) fn items(wires: &[Wire], marked: &Marked, lost: &Lost, has_plan: bool) -> Vec<Item> {
    let mut items = Vec::new();
    let lanes = || wires.iter().flat_map(|wire| &wire.lanes);
    if has_plan {
        for busy in Busy::OF_PLANS {
            let links = lanes().flat_map(|lane| &lane.each).filter(|each| **each == busy).count();
            if links > 0 {
                let symbol = LegendSymbol::Line { colour: busy.colour(), dashes: "", halo: false };
                items.push(Item { symbol, words: format!("{} ({})", busy.words(), count(links, "link")) });
            }
        }
    }
    let rates = || lanes().map(|lane| lane.capacity);
    if let (Some(least), Some(most)) = (rates().min(), rates().max())
        && least < most
    {
        let words = format!("thickness: {} to {} GB/s", gigabytes(least), gigabytes(most));
        items.push(Item { symbol: LegendSymbol::Wedge, words });
    }
    if let Some(words) = &marked.words {
        let symbol = match marked.first_fill() {
            "none" => LegendSymbol::Line { colour: "none", dashes: "", halo: marked.is_telling() },
            fill => LegendSymbol::Plate(fill),
        };
        items.push(Item { symbol, words: words.clone() });
    }
    if !lost.links.is_empty() || !lost.nodes.is_empty() {
        let symbol = LegendSymbol::Line { colour: MISSING, dashes: "5 4", halo: false };
        let mut words = format!("missing ({}", count(lost.links.len(), "wire"));
        if !lost.nodes.is_empty() {
            words += &format!(", {}", count(lost.nodes.len(), "node"));
        }
        items.push(Item { symbol, words: words + ")" });
    }
    items
}

/// The items in rows of at most this width.
pub(super) fn rows(items: &[Item], width: f64) -> Vec<Vec<Item>> {
    let mut rows: Vec<Vec<Item>> = Vec::new();
    let mut used = f64::MAX;
    for item in items {
        let needed = item_width(item);
        if used + needed > width {
            rows.push(Vec::new());
            used = 0.0;
        }
        used += needed;
        if let Some(row) = rows.last_mut() {
            row.push(item.clone());
        }
    }
    rows
}

fn item_width(item: &Item) -> f64 {
    SYMBOL_WIDTH + width_of(&item.words, SIZE) + 14.0
}

/// Draws the rows from this place down.
pub(super) fn draw(svg: &mut Svg, rows: &[Vec<Item>], (left, top): Point) {
    for (number, row) in rows.iter().enumerate() {
        let y = top + real(number) * LINE * 1.4;
        let mut x = left;
        for item in row {
            match item.symbol {
                LegendSymbol::Line { colour, dashes, halo } => {
                    if halo {
                        svg.plate(
                            (x, y - 8.0),
                            (26.0, 9.0),
                            2.0,
                            &Mark { fill: super::lines::HALO, ..Mark::line("none", 1.0) },
                        );
                    }
                    if colour != "none" {
                        let (from, to) = ((x, y - 4.0), (x + 26.0, y - 4.0));
                        svg.stroke(
                            &crate::svg::Curve::Straight([from, to]),
                            &Mark { dashes, ..Mark::line(colour, 4.0) },
                        );
                    }
                }
                LegendSymbol::Wedge => {
                    let corners = [(x, y - 4.6), (x + 26.0, y - 6.3), (x + 26.0, y - 1.7), (x, y - 3.4)];
                    svg.polygon(&corners, &Mark { fill: Busy::Unknown.colour(), ..Mark::line("none", 1.0) });
                }
                LegendSymbol::Plate(fill) => {
                    svg.plate((x, y - 11.0), (26.0, 14.0), 7.0, &Mark { fill, ..Mark::line(INK, 1.0) })
                }
            }
            svg.text((x + SYMBOL_WIDTH, y), Anchor::Start, INK, &item.words);
            x += item_width(item);
        }
    }
}
