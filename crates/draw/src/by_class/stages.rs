//! With whom one rank exchanges in each stage.

use canopy_schedule::Stages;

use super::{ByClassDrawing, Parts};
use crate::svg::{Anchor, Curve, INK, MARGIN, Mark, Point, real};
use crate::words::count;

/// Most values of a digit that are drawn.
const VALUES_MAX: usize = 16;
/// Where the values begin, and how far apart they are.
const LEFT: f64 = 400.0;
const STEP: f64 = 28.0;
/// Half of the side of a value.
const HALF: f64 = 8.0;
/// Height of a stage.
const HEIGHT: f64 = 66.0;
/// The box whose rank it is.
const OWN: &str = "#ffdf80";

/// Draws a row for each stage: the values of its digit, and curves to those that the rank sends to.
pub(super) fn draw(drawing: &ByClassDrawing<'_>, rule: &Stages, parts: &mut Parts) {
    parts.begin("What one rank sends, by stage");
    let ranks = drawing.topology.rank_count();
    for (number, &digit) in rule.grid.digits.iter().enumerate() {
        let shares = rule.grid.unit(number) as usize;
        let y = parts.y + HEIGHT - 24.0;
        let line = |down: f64| (MARGIN, y - 14.0 + down);
        let head = format!(
            "Stage {}: {} that differ in digit {}",
            number + 1,
            count(digit as usize, "box").replace("boxs", "boxes"),
            number + 1
        );
        parts.svg.words(line(0.0), Anchor::Start, (12, true), &head);
        let peers = count(digit.saturating_sub(1) as usize, "peer");
        let words = format!("to {peers}, {} of {ranks} each, then to its box", count(shares, "share"));
        parts.svg.text(line(18.0), Anchor::Start, INK, &words);
        let shown = VALUES_MAX.min(digit as usize);
        let at = |value: usize| (LEFT + STEP * real(value), y);
        for value in 1..shown {
            arrow(at(0), at(value), parts);
        }
        for value in 0..shown {
            let (x, y) = at(value);
            let fill = if value == 0 { OWN } else { "white" };
            let note = if value == 0 { "the box of the rank" } else { "a box that it sends to" };
            let mark = Mark { fill, stroke: INK, width: 1.2, dashes: "", note };
            parts.svg.plate((x - HALF, y - HALF), (2.0 * HALF, 2.0 * HALF), 3.0, &mark);
        }
        if digit as usize > shown {
            let more = format!("… {}", digit as usize - shown);
            parts.svg.text((LEFT + STEP * real(shown) - HALF, y + 4.0), Anchor::Start, INK, &more);
        }
        parts.y += HEIGHT;
    }
}

/// A curve over the values in between.
fn arrow((from, y): Point, (to, _): Point, parts: &mut Parts) {
    let top = y - HALF;
    let high = top - 8.0 - (to - from) * 0.07;
    let curve =
        Curve::Cubic([(from, top), (from + (to - from) * 0.2, high), (to - (to - from) * 0.2, high), (to, top)]);
    parts.svg.stroke(&curve, &Mark::line("#5b6b7b", 1.0));
}
