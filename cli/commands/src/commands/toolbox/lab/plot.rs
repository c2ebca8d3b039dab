//! The rates of a lab as bars: simulated, measured and Open MPI's best, as part of the prediction.

use canopy_draw::{Anchor, Mark, Svg};
use num_traits::ToPrimitive as _;

use super::report::{Entry, Report};

const WIDTH: u32 = 900;
const LEFT: f64 = 380.0;
const RIGHT: f64 = 840.0;
const TOP: f64 = 70.0;
/// Height of a plan's bars, and of one bar.
const ROW: f64 = 44.0;
const BAR: f64 = 11.0;
const INK: &str = "#222222";
const GRID: &str = "#dddddd";
const SIMULATED: &str = "#b8c4d0";
const MEASURED: &str = "#0b4f94";
const RIVAL: &str = "#e6550d";
/// Longest name of a plan.
const NAME_CHARS_MAX: usize = 58;

/// Draws all entries.
pub(super) fn draw(report: &Report) -> String {
    let rows = report.entries.len().to_f64().unwrap_or(0.0);
    let height = (TOP + rows * ROW + 30.0).to_u32().unwrap_or(u32::MAX);
    let title = "Rates in the lab, as part of the prediction for large messages";
    let mut svg = Svg::new(WIDTH, height, title);
    svg.words((20.0, 28.0), Anchor::Start, (16, true), title);
    for (at, (colour, name)) in
        [(SIMULATED, "simulated"), (MEASURED, "measured"), (RIVAL, "best of Open MPI")].iter().enumerate()
    {
        let x = 20.0 + at.to_f64().unwrap_or(0.0) * 150.0;
        svg.plate((x, 42.0), (12.0, 12.0), 0.0, &filled(colour));
        svg.text((x + 18.0, 52.0), Anchor::Start, INK, name);
    }
    for tenth in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let x = LEFT + tenth * (RIGHT - LEFT);
        svg.line((x, TOP), (x, TOP + rows * ROW), GRID, "");
        svg.text((x, TOP + rows * ROW + 18.0), Anchor::Middle, INK, &format!("{tenth}"));
    }
    let mut y = TOP;
    for entry in &report.entries {
        bars(&mut svg, entry, y);
        y += ROW;
    }
    svg.finish()
}

fn filled(colour: &str) -> Mark<'_> {
    Mark { fill: colour, ..Mark::line(colour, 0.0) }
}

fn bars(svg: &mut Svg, entry: &Entry, y: f64) {
    let title: String = entry.title().chars().take(NAME_CHARS_MAX).collect();
    svg.text((LEFT - 10.0, y + 22.0), Anchor::End, INK, &title);
    let rival = entry.best_rival().map(|(_, rate)| rate);
    let all = [(SIMULATED, Some(entry.simulated())), (MEASURED, Some(entry.best())), (RIVAL, rival)];
    for (row, (colour, rate)) in all.into_iter().enumerate() {
        let Some(rate) = rate else { continue };
        let part = (rate / entry.predicted()).clamp(0.0, 1.1);
        let (top, width) = (y + 3.0 + row.to_f64().unwrap_or(0.0) * (BAR + 1.0), part * (RIGHT - LEFT));
        svg.plate((LEFT, top), (width, BAR), 0.0, &filled(colour));
        svg.text((LEFT + width + 4.0, top + BAR - 1.0), Anchor::Start, INK, &format!("{part:.3}"));
    }
}
