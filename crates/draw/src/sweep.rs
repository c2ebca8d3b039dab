//! Curves over sizes: how long several plans take, both axes logarithmic.

use crate::svg::{Anchor, GRID, INK, MARGIN, Svg, heading_bottom, real};
use crate::words::{width_of, wrapped};

const WIDTH: u32 = 900;
const LEFT: f64 = 90.0;
const RIGHT: f64 = 880.0;
const HEIGHT: f64 = 320.0;
/// Colours of the curves, told apart by most eyes; more curves begin again.
const COLOURS: [&str; 16] = [
    "#e6550d", "#0b4f94", "#3a9e8f", "#8c6bb1", "#7f7f7f", "#a6761d", "#d62790", "#6aaa1e", "#17a2d8", "#e0a800",
    "#b2182b", "#1a6b2f", "#b3a2e0", "#000000", "#f4a582", "#5c4033",
];
/// Most curves that the legend lists one below the other; more stand in columns.
const LEGEND_ROWS: usize = 6;
/// Width of a column of the legend.
const COLUMN: f64 = 270.0;
/// Columns there is room for.
const COLUMNS: usize = 3;
/// Most sizes that are written below the axis.
const SIZE_LABELS_MAX: usize = 12;
/// Rows for the words of marks, so that those of neighbours do not meet.
const MARK_ROWS: usize = 4;
/// Font size of these words.
const MARK_SIZE: u32 = 12;

/// A curve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// What it is of.
    pub name: String,
    /// By size, in picoseconds; none where nobody knows.
    pub times_ps: Vec<Option<u64>>,
}

/// What is drawn.
#[derive(Clone, Copy, Debug)]
pub struct SweepDrawing<'a> {
    /// The heading.
    pub title: &'a str,
    /// Sizes in bytes, rising, and how they are written.
    pub sizes: &'a [(u64, String)],
    /// The curves; the first is drawn last, over the others.
    pub series: &'a [Series],
    /// Sizes where something begins, rising, and what it is.
    pub marks: &'a [(u64, String)],
}

/// Draws times over sizes; the same bytes for the same input. O(sizes · curves).
pub fn draw_sweep(drawing: &SweepDrawing<'_>) -> String {
    let title = wrapped(drawing.title, 16, f64::from(WIDTH) - 2.0 * MARGIN, 2);
    let top = heading_bottom(&title, &[]) + 22.0;
    let bottom = top + HEIGHT;
    let legend_top = bottom + 62.0;
    let columns = if drawing.series.len() > LEGEND_ROWS { COLUMNS } else { 1 };
    let height = legend_top + 20.0 * real(drawing.series.len().div_ceil(columns)) + 8.0;
    let mut svg = Svg::new(WIDTH, crate::network::pixels(height), drawing.title);
    svg.heading(&title, &[]);
    let times = drawing.series.iter().flat_map(|series| series.times_ps.iter().flatten().copied());
    let (first, last) = times.fold((u64::MAX, 1), |(low, high), time| (low.min(time.max(1)), high.max(time)));
    let (low, high) = (first.min(last).ilog10(), (last.max(2) - 1).ilog10() + 1);
    let decades = f64::from(high.max(low + 1) - low);
    let place_y = |time: u64| bottom - (logarithm(time) - f64::from(low)) / decades * HEIGHT;
    for power in low..=high.max(low + 1) {
        let y = place_y(10_u64.saturating_pow(power));
        svg.line((LEFT, y), (RIGHT, y), GRID, "");
        svg.text((LEFT - 8.0, y + 4.0), Anchor::End, INK, &micros(power));
    }
    let ends = drawing.sizes.first().zip(drawing.sizes.last()).map(|(a, b)| (logarithm(a.0), logarithm(b.0)));
    let place_x = |size: u64| match ends {
        Some((from, to)) if to > from => LEFT + (logarithm(size) - from) / (to - from) * (RIGHT - LEFT - 20.0) + 10.0,
        _ => f64::midpoint(LEFT, RIGHT),
    };
    let every = drawing.sizes.len().div_ceil(SIZE_LABELS_MAX).max(1);
    for (number, (size, words)) in drawing.sizes.iter().enumerate() {
        let x = place_x(*size);
        svg.line((x, top), (x, bottom), GRID, "");
        // Counted from the end, so that the largest has its words.
        if (drawing.sizes.len() - 1 - number).is_multiple_of(every) {
            svg.text((x, bottom + 18.0), Anchor::Middle, INK, words);
        }
    }
    svg.text((f64::midpoint(LEFT, RIGHT), bottom + 38.0), Anchor::Middle, INK, "size");
    svg.text((LEFT, top - 8.0), Anchor::Start, INK, "time, µs");
    for (number, series) in drawing.series.iter().enumerate().rev() {
        let colour = COLOURS[number % COLOURS.len()];
        let known = drawing.sizes.iter().zip(&series.times_ps);
        let points = known.filter_map(|((size, _), time)| Some((place_x(*size), place_y((*time)?.max(1)))));
        svg.curve(&points.collect::<Vec<_>>(), colour);
    }
    for (number, (size, words)) in drawing.marks.iter().enumerate() {
        let (x, y) = (place_x(*size), top + 16.0 + 16.0 * real(number % MARK_ROWS));
        svg.line((x, top), (x, bottom), INK, "4 3");
        let is_at_the_edge = x + 4.0 + width_of(words, MARK_SIZE) > RIGHT;
        let (anchor, away) = if is_at_the_edge { (Anchor::End, -4.0) } else { (Anchor::Start, 4.0) };
        svg.text((x + away, y), anchor, INK, words);
    }
    for (number, series) in drawing.series.iter().enumerate() {
        let (row, column) = (real(number / columns), real(number % columns));
        let (x, y, colour) = (LEFT + COLUMN * column, legend_top + 20.0 * row, COLOURS[number % COLOURS.len()]);
        svg.curve(&[(x, y - 4.0), (x + 26.0, y - 4.0)], colour);
        svg.text((x + 36.0, y), Anchor::Start, INK, &series.name);
    }
    svg.finish()
}

#[expect(clippy::cast_precision_loss, reason = "a place on a sheet")]
fn logarithm(value: u64) -> f64 {
    (value as f64).log10()
}

/// A power of ten of picoseconds in microseconds.
fn micros(power: u32) -> String {
    match power.checked_sub(6) {
        Some(power) => 10_u64.saturating_pow(power).to_string(),
        None => format!("0.{}1", "0".repeat(5 - power as usize)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_and_curve_is_there() {
        let sizes: Vec<(u64, String)> =
            [(1 << 10, "1 KiB"), (1 << 20, "1 MiB")].map(|(size, name)| (size, name.to_owned())).into();
        let series = [("this <plan>", vec![Some(2_000_000), Some(90_000_000)]), ("ring", vec![Some(15_000_000), None])];
        let series = series.map(|(name, times_ps)| Series { name: name.to_owned(), times_ps });
        let marks = [(1 << 14, "ring from 16 KiB".to_owned())];
        let drawn = draw_sweep(&SweepDrawing { title: "times", sizes: &sizes, series: &series, marks: &marks });
        // From 1 to 100 µs; three points and four of the legend.
        for words in [">1<", ">10<", ">100<", ">1 KiB<", ">1 MiB<", "this &lt;plan&gt;", ">ring<", ">ring from 16 KiB<"]
        {
            assert!(drawn.contains(words), "`{words}` is missing from\n{drawn}");
        }
        assert_eq!(drawn.matches("<circle").count(), 3 + 4);
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
    }

    /// Many curves and sizes: no two of the legend at one place, the largest size written, and every curve in a colour of its own.
    #[test]
    fn many_curves_have_room() {
        let sizes: Vec<(u64, String)> = (0..33).map(|power| (1 << power, format!("2^{power}"))).collect();
        let of = |number: u64| Series { name: format!("curve{number}"), times_ps: vec![Some(number + 1); 33] };
        let series: Vec<Series> = (0..15).map(of).collect();
        let drawn = draw_sweep(&SweepDrawing { title: "", sizes: &sizes, series: &series, marks: &[] });
        let line = |words: &str| drawn.lines().find(|line| line.contains(&format!(">{words}<"))).map(str::to_owned);
        let place = |line: String| line.split(" text-anchor").next().map(str::to_owned);
        let mut places: Vec<_> = (0..15).filter_map(|number| place(line(&format!("curve{number}"))?)).collect();
        places.sort_unstable();
        places.dedup();
        assert_eq!(places.len(), 15);
        assert!(line("2^32").is_some() && line("2^31").is_none());
        assert!(COLOURS[..15].iter().all(|colour| drawn.contains(colour)));
    }

    #[test]
    fn extremes_have_places() {
        for times_ps in [vec![None], vec![Some(0)], vec![Some(1)], vec![Some(u64::MAX)]] {
            let series = [Series { name: "a".to_owned(), times_ps }];
            let (sizes, marks) = ([(1, "1 B".to_owned())], [(1, "a".to_owned())]);
            let drawn = draw_sweep(&SweepDrawing { title: "", sizes: &sizes, series: &series, marks: &marks });
            assert!(!drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
        }
        assert_eq!([0, 5, 6, 9].map(micros), ["0.000001", "0.1", "1", "1000"]);
    }
}
