//! A run over time: a row for each link, a bar while something is on it, and the chain of messages that took longest.

use crate::network::pixels;
use crate::svg::{Anchor, GRID, INK, MARGIN, Mark, Svg, heading_bottom, real};
use crate::words::{shortened, width_of, wrapped};

/// Most rows that are drawn.
pub const ROWS_MAX: usize = 32;
/// Width of the part with the bars.
const SPAN: f64 = 820.0;
const ROW: f64 = 22.0;
/// Font size of what stands beside rows and below the axis.
const SIZE: u32 = 12;
const LABEL_CHARS_MAX: usize = 36;
const BUSY: &str = "#3f8fc5";
const CRITICAL: &str = "#e6550d";

/// When something was on a link, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bar {
    /// From when.
    pub start_ps: u64,
    /// Until when.
    pub end_ps: u64,
}

/// What a link did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its ends.
    pub label: String,
    /// When it was busy, in any order; they may overlap.
    pub bars: Vec<Bar>,
    /// When the chain of messages that took longest was on it.
    pub critical: Vec<Bar>,
}

/// What is drawn.
#[derive(Clone, Copy, Debug)]
pub struct TimelineDrawing<'a> {
    /// The heading.
    pub title: &'a str,
    /// Sentences below it.
    pub notes: &'a [String],
    /// Links, as they stand from the top; the first [`ROWS_MAX`] are drawn.
    pub rows: &'a [Row],
    /// When everything had arrived.
    pub end_ps: u64,
}

/// Draws a run over time; the same bytes for the same input. Bars closer than half a unit are joined, so that the file has
/// a bounded size. O(bars · log bars).
pub fn draw_timeline(drawing: &TimelineDrawing<'_>) -> String {
    let rows = drawing.rows.get(..ROWS_MAX).unwrap_or(drawing.rows);
    let labels: Vec<String> = rows.iter().map(|row| shortened(&row.label, LABEL_CHARS_MAX)).collect();
    let label_width = labels.iter().map(|label| width_of(label, SIZE)).fold(60.0, f64::max);
    let left = MARGIN + label_width + 10.0;
    let width = left + SPAN + 2.0 * MARGIN;
    let title = wrapped(drawing.title, 16, width - 2.0 * MARGIN, 2);
    let notes: Vec<String> =
        drawing.notes.iter().flat_map(|note| wrapped(note, SIZE, width - 2.0 * MARGIN, 3)).collect();
    let top = heading_bottom(&title, &notes) + 18.0;
    let bottom = top + ROW * real(rows.len());
    let mut svg = Svg::new(pixels(width), pixels(bottom + 72.0), drawing.title);
    svg.heading(&title, &notes);
    let scale = Scale { left, end_ps: drawing.end_ps.max(1) };
    for tick in ticks(scale.end_ps) {
        let x = scale.place(tick);
        svg.line((x, top), (x, bottom), GRID, "");
        svg.text((x, bottom + 18.0), Anchor::Middle, INK, &micros(tick));
    }
    svg.text((left + SPAN / 2.0, bottom + 38.0), Anchor::Middle, INK, "time, µs");
    for (number, (row, label)) in rows.iter().zip(&labels).enumerate() {
        let y = top + ROW * real(number);
        svg.text((left - 10.0, y + 15.0), Anchor::End, INK, label);
        for (start, end) in scale.joined(&row.bars) {
            svg.plate((start, y + 4.0), (end - start, 9.0), 0.0, &Mark { fill: BUSY, ..Mark::line("none", 1.0) });
        }
        for (start, end) in scale.joined(&row.critical) {
            svg.plate((start, y + 14.0), (end - start, 4.0), 0.0, &Mark { fill: CRITICAL, ..Mark::line("none", 1.0) });
        }
    }
    let y = bottom + 58.0;
    for (x, colour, words) in [
        (left, BUSY, "something is on the link"),
        (left + 230.0, CRITICAL, "critical path: α, data and latency of the messages that took longest"),
    ] {
        svg.plate((x, y - 9.0), (26.0, 8.0), 0.0, &Mark { fill: colour, ..Mark::line("none", 1.0) });
        svg.text((x + 34.0, y), Anchor::Start, INK, words);
    }
    svg.finish()
}

struct Scale {
    left: f64,
    end_ps: u64,
}

impl Scale {
    #[expect(clippy::cast_precision_loss, reason = "a place on a sheet")]
    fn place(&self, ps: u64) -> f64 {
        self.left + SPAN * (ps.min(self.end_ps) as f64 / self.end_ps as f64)
    }

    /// From where to where on the sheet: in order, apart by half a unit at least, and as wide at least.
    fn joined(&self, bars: &[Bar]) -> Vec<(f64, f64)> {
        let mut sorted = bars.to_vec();
        sorted.sort_unstable();
        let mut found: Vec<(f64, f64)> = Vec::new();
        for bar in sorted {
            let (start, end) = (self.place(bar.start_ps), self.place(bar.end_ps).max(self.place(bar.start_ps) + 0.5));
            match found.last_mut().filter(|last| start - last.1 < 0.5) {
                Some(last) => last.1 = last.1.max(end),
                None => found.push((start, end)),
            }
        }
        found
    }
}

/// Round times from 0 to the end: at most eleven.
fn ticks(end_ps: u64) -> Vec<u64> {
    let mut step = 1_u64;
    let factors = [2_u64, 5, 10];
    let mut power = 1_u64;
    'found: while end_ps / step > 10 {
        for factor in factors {
            step = power.saturating_mul(factor);
            if end_ps / step <= 10 {
                break 'found;
            }
        }
        power = power.saturating_mul(10);
    }
    (0..=10).map(|number| step.saturating_mul(number)).take_while(|&tick| tick <= end_ps).collect()
}

/// Picoseconds in microseconds, without zeros at the end.
fn micros(ps: u64) -> String {
    let text = format!("{}.{:06}", ps / 1_000_000, ps % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(ticks(10), (0..=10).collect::<Vec<_>>());
        assert_eq!(ticks(11), [0, 2, 4, 6, 8, 10]);
        assert_eq!(ticks(999), [0, 100, 200, 300, 400, 500, 600, 700, 800, 900]);
        assert_eq!(ticks(0), [0]);
        assert!(ticks(u64::MAX).len() <= 11);
        assert_eq!([1_500_000, 20_000_000, 1].map(micros), ["1.5", "20", "0.000001"]);
    }

    #[test]
    fn bars_that_touch_are_one() {
        let scale = Scale { left: 0.0, end_ps: 820 };
        let bars = [(100, 200), (0, 50), (150, 300), (301, 302)].map(|(start_ps, end_ps)| Bar { start_ps, end_ps });
        let found: Vec<(u64, u64)> =
            scale.joined(&bars).iter().map(|(start, end)| (pixels(*start).into(), pixels(*end).into())).collect();
        assert_eq!(found, [(1, 50), (100, 300), (301, 302)]);
        // However many there are, a row has no more of them than the sheet is wide.
        let many: Vec<Bar> = (0..100_000).map(|at| Bar { start_ps: 2 * at, end_ps: 2 * at + 1 }).collect();
        assert!(Scale { left: 0.0, end_ps: 200_000 }.joined(&many).len() <= 820);
    }

    #[test]
    fn rows_stand_below_each_other_and_names_are_texts() {
        let row =
            Row { label: "<script> -> b".to_owned(), bars: vec![Bar { start_ps: 0, end_ps: 5 }], critical: Vec::new() };
        let rows = vec![row; ROWS_MAX + 1];
        let drawn = draw_timeline(&TimelineDrawing { title: "a & b", notes: &[], rows: &rows, end_ps: 10 });
        assert_eq!(drawn.matches("&lt;script&gt; -&gt; b").count(), ROWS_MAX);
        assert!(!drawn.contains("<script>") && drawn.contains("<title>a &amp; b</title>"));
    }
}
