//! The sweep over sizes as a drawing: time and busbw over size, all axes logarithmic, and the bound as a dashed line.

use canopy_draw::{Anchor, Svg};

use crate::axis::Decades;
use crate::sizes::in_words;

const WIDTH: u32 = 760;
const HEIGHT: u32 = 440;
/// Frame of the curves.
const LEFT: f64 = 80.0;
const RIGHT: f64 = 680.0;
const TOP: f64 = 50.0;
const BOTTOM: f64 = 380.0;
const TIME_COLOUR: &str = "#1f6fb4";
const RATE_COLOUR: &str = "#c8501e";
const GRID_COLOUR: &str = "#dddddd";
/// Most sizes that are written below the axis.
const SIZE_LABELS_MAX: usize = 8;

/// One size of a run.
pub(super) struct Point {
    pub(super) size_bytes: u64,
    pub(super) time_ps: u64,
    pub(super) busbw_gbps: f64,
}

/// Draws the sizes of a run, and the bound on busbw in GB/s.
pub(super) fn draw(title: &str, bound: f64, sizes: &[Point]) -> String {
    let micros = |size: &Point| {
        #[expect(clippy::cast_precision_loss, reason = "a place on a sheet")]
        let ps = size.time_ps as f64;
        ps / 1e6
    };
    let times = Decades::around(sizes.iter().map(micros), (BOTTOM, TOP));
    let rates = Decades::around(sizes.iter().map(|size| size.busbw_gbps).chain([bound]), (BOTTOM, TOP));
    let mut svg = Svg::new(WIDTH, HEIGHT, title);
    svg.text((f64::from(WIDTH) / 2.0, 22.0), Anchor::Middle, "black", title);
    for (value, words) in times.marks() {
        let y = times.place(value);
        svg.line((LEFT, y), (RIGHT, y), GRID_COLOUR, "");
        svg.text((LEFT - 8.0, y + 4.0), Anchor::End, TIME_COLOUR, &words);
    }
    for (value, words) in rates.marks() {
        svg.text((RIGHT + 8.0, rates.place(value) + 4.0), Anchor::Start, RATE_COLOUR, &words);
    }
    let every = sizes.len().div_ceil(SIZE_LABELS_MAX).max(1);
    let places = sizes_to_places(sizes);
    for (number, (size, &x)) in sizes.iter().zip(&places).enumerate() {
        svg.line((x, TOP), (x, BOTTOM), GRID_COLOUR, "");
        // Counted from the end, so that the largest has its words.
        if (sizes.len() - 1 - number).is_multiple_of(every) {
            svg.text((x, BOTTOM + 18.0), Anchor::Middle, "black", &in_words(size.size_bytes));
        }
    }
    let frame = [(LEFT, TOP), (RIGHT, TOP), (RIGHT, BOTTOM), (LEFT, BOTTOM), (LEFT, TOP)];
    frame.windows(2).for_each(|ends| svg.line(ends[0], ends[1], "black", ""));
    if bound > 0.0 {
        let y = rates.place(bound);
        svg.line((LEFT, y), (RIGHT, y), RATE_COLOUR, "6 4");
        svg.text((LEFT + 6.0, y - 5.0), Anchor::Start, RATE_COLOUR, &format!("bound {bound} GB/s"));
    }
    let curve = |of: &dyn Fn(&Point) -> f64| -> Vec<(f64, f64)> {
        places.iter().zip(sizes).map(|(&x, size)| (x, of(size))).collect()
    };
    svg.curve(&curve(&|size| times.place(micros(size))), TIME_COLOUR);
    svg.curve(&curve(&|size| rates.place(size.busbw_gbps)), RATE_COLOUR);
    svg.text((LEFT, TOP - 8.0), Anchor::Start, TIME_COLOUR, "time, µs");
    svg.text((RIGHT, TOP - 8.0), Anchor::End, RATE_COLOUR, "busbw, GB/s");
    svg.text(((LEFT + RIGHT) / 2.0, BOTTOM + 42.0), Anchor::Middle, "black", "size");
    svg.finish()
}

/// Where each size stands, by its logarithm; a single one in the middle.
fn sizes_to_places(sizes: &[Point]) -> Vec<f64> {
    #[expect(clippy::cast_precision_loss, reason = "a place on a sheet")]
    let logarithm = |size: &Point| (size.size_bytes as f64).log10();
    let ends = sizes.first().map(logarithm).zip(sizes.last().map(logarithm));
    let place = |size: &Point| match ends {
        Some((first, last)) if last > first => LEFT + (logarithm(size) - first) / (last - first) * (RIGHT - LEFT),
        _ => f64::midpoint(LEFT, RIGHT),
    };
    sizes.iter().map(place).collect()
}
