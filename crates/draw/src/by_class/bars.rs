//! How busy links of each class are, as bars, and what the colours mean.

use super::{ByClassDrawing, Parts};
use crate::svg::{Anchor, GRID, INK, LINE, MARGIN, Mark};
use crate::wires::{Busy, gigabytes};
use crate::words::{count, width_of};

/// Most classes that are drawn.
const CLASSES_MAX: usize = 14;
/// Where bars begin, and how long they are at most.
const LEFT: f64 = 420.0;
const LENGTH: f64 = 400.0;
/// Space between two colours of the legend.
const GAP: f64 = 18.0;

/// A bar for each class of links, the busiest first.
pub(super) fn links(drawing: &ByClassDrawing<'_>, parts: &mut Parts) {
    parts.begin("Links by class: the busiest of each");
    let order = drawing.classes.busiest_first();
    for &number in order.iter().take(CLASSES_MAX) {
        let class = &drawing.classes.links[number];
        let rate = gigabytes(u128::from(class.capacity));
        let words = format!("{}: {} of {rate} GB/s", class.kind.in_words(), count(class.links, "link"));
        let y = parts.y;
        parts.svg.text((MARGIN, y + 14.0), Anchor::Start, INK, &words);
        let part = drawing.classes.busy(drawing.topology, class.chunks_max, class.capacity).to_f64();
        parts.svg.plate((LEFT, y + 3.0), (LENGTH, 14.0), 2.0, &Mark { fill: "none", ..Mark::line(GRID, 1.0) });
        let link = drawing.topology.link(class.busiest);
        let [from, to] = [link.from, link.to].map(|node| drawing.topology.node(node).id.as_str());
        let chunks = super::range((class.chunks_min, class.chunks_max));
        let note = format!("{from} to {to}; {chunks} chunks over a link");
        let busy = drawing.busy(class.busiest);
        let mark = Mark { fill: busy.colour(), stroke: "none", width: 1.0, dashes: "", note: &note };
        parts.svg.plate((LEFT, y + 3.0), (LENGTH * part.clamp(0.0, 1.0), 14.0), 2.0, &mark);
        let percent = drawing.percent(class.busiest);
        parts.svg.text((LEFT + LENGTH + 8.0, y + 14.0), Anchor::Start, INK, &percent);
        parts.y += LINE + 4.0;
    }
    if order.len() > CLASSES_MAX {
        parts.say(&format!("and {} more classes of links", order.len() - CLASSES_MAX));
    }
}

/// The colours in a row.
pub(super) fn legend(parts: &mut Parts) {
    parts.y += LINE;
    let mut x = MARGIN;
    for busy in Busy::OF_PLANS {
        let mark = Mark { fill: busy.colour(), ..Mark::line("none", 1.0) };
        parts.svg.plate((x, parts.y + 3.0), (20.0, 12.0), 2.0, &mark);
        parts.svg.text((x + 26.0, parts.y + 13.0), Anchor::Start, INK, busy.words());
        x += 26.0 + width_of(busy.words(), 12) + GAP;
    }
    parts.y += LINE;
}
