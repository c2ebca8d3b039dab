//! The networks as a drawing: steps against bandwidth, and times over sizes, both logarithmic.

use canopy_draw::{Anchor, Svg};
use canopy_optimize::Fraction;
use canopy_schedule::CollectiveKind as Kind;

use super::model::{Model, Network, Workload};
use crate::axis::{Axis, Decades};
use crate::sizes::in_words;

const WIDTH: u32 = 1080;
/// Height without the list of networks.
const HEIGHT: u32 = 420;
const TOP: f64 = 60.0;
const BOTTOM: f64 = 360.0;
/// Left and right end of either frame.
const FRONTIER: (f64, f64) = (70.0, 470.0);
const TIMES: (f64, f64) = (600.0, 1040.0);
const LINE_HEIGHT: f64 = 18.0;
const GRID_COLOUR: &str = "#dddddd";
const COLOURS: [&str; 8] = ["#1f6fb4", "#c8501e", "#2e8b57", "#8a4fa3", "#b8860b", "#d1478c", "#4d4d4d", "#17a2b8"];
/// Sizes from 1 KiB to 1 GiB, each four times the one before.
const SIZES: std::ops::RangeInclusive<u32> = 10..=30;

/// Draws all networks, each in a colour and under a number.
pub(super) fn draw(title: &str, networks: &[Network], model: &Model, workload: Option<Workload>) -> String {
    let rows = u32::try_from(networks.len()).unwrap_or(u32::MAX);
    let mut svg = Svg::new(WIDTH, HEIGHT.saturating_add(rows.saturating_mul(18)), title);
    svg.text((f64::from(WIDTH) / 2.0, 24.0), Anchor::Middle, "black", title);
    frontier(&mut svg, networks);
    times(&mut svg, networks, model, workload.map_or(Kind::Allreduce, |workload| workload.kind));
    for (index, network) in networks.iter().enumerate() {
        #[expect(clippy::cast_precision_loss, reason = "a place on a sheet")]
        let y = f64::from(HEIGHT) + index as f64 * LINE_HEIGHT;
        let words =
            format!("{}  {}  (T_L {}, T_B {})", index + 1, network.expression, network.steps, network.bandwidth);
        svg.text((FRONTIER.0, y), Anchor::Start, colour(index), &words);
    }
    svg.finish()
}

fn colour(index: usize) -> &'static str {
    COLOURS[index % COLOURS.len()]
}

#[expect(clippy::cast_precision_loss, reason = "a place on a sheet")]
fn value(fraction: Fraction) -> f64 {
    fraction.numerator as f64 / fraction.denominator as f64
}

fn frame(svg: &mut Svg, (left, right): (f64, f64)) {
    let corners = [(left, TOP), (right, TOP), (right, BOTTOM), (left, BOTTOM), (left, TOP)];
    corners.windows(2).for_each(|ends| svg.line(ends[0], ends[1], "black", ""));
}

/// T_L to the right, T_B upwards.
fn frontier(svg: &mut Svg, networks: &[Network]) {
    let steps = Axis::around(networks.iter().map(|network| f64::from(network.steps)), FRONTIER);
    let bandwidth = Axis::around(networks.iter().map(|network| value(network.bandwidth)), (BOTTOM, TOP));
    for (tick, words) in steps.marks(1.0) {
        let x = steps.place(tick);
        svg.line((x, TOP), (x, BOTTOM), GRID_COLOUR, "");
        svg.text((x, BOTTOM + 18.0), Anchor::Middle, "black", &words);
    }
    for (tick, words) in bandwidth.marks(0.0) {
        let y = bandwidth.place(tick);
        svg.line((FRONTIER.0, y), (FRONTIER.1, y), GRID_COLOUR, "");
        svg.text((FRONTIER.0 - 8.0, y + 4.0), Anchor::End, "black", &words);
    }
    frame(svg, FRONTIER);
    for (index, network) in networks.iter().enumerate() {
        let (x, y) = (steps.place(f64::from(network.steps)), bandwidth.place(value(network.bandwidth)));
        svg.curve(&[(x, y)], colour(index));
        svg.text((x + 7.0, y - 5.0), Anchor::Start, colour(index), &(index + 1).to_string());
    }
    svg.text((FRONTIER.0, TOP - 10.0), Anchor::Start, "black", "T_B of an allgather, M/B");
    svg.text((f64::midpoint(FRONTIER.0, FRONTIER.1), BOTTOM + 36.0), Anchor::Middle, "black", "T_L, steps");
}

/// Sizes to the right, times upwards.
fn times(svg: &mut Svg, networks: &[Network], model: &Model, kind: Kind) {
    let sizes: Vec<u64> = SIZES.step_by(2).map(|power| 1 << power).collect();
    let time = |network: &Network, size: u64| Some(model.time_us(model.line(network, kind)?, size));
    let all = || networks.iter().flat_map(|network| sizes.iter().filter_map(move |&size| time(network, size)));
    let heights = Decades::around(all(), (BOTTOM, TOP));
    let widths = Axis { values: (f64::from(*SIZES.start()), f64::from(*SIZES.end())), places: TIMES };
    let place = |size: u64| widths.place(f64::from(size.ilog2()));
    for (number, &size) in sizes.iter().enumerate() {
        svg.line((place(size), TOP), (place(size), BOTTOM), GRID_COLOUR, "");
        if number.is_multiple_of(2) {
            svg.text((place(size), BOTTOM + 18.0), Anchor::Middle, "black", &in_words(size));
        }
    }
    for (tick, words) in heights.marks() {
        let y = heights.place(tick);
        svg.line((TIMES.0, y), (TIMES.1, y), GRID_COLOUR, "");
        svg.text((TIMES.0 - 8.0, y + 4.0), Anchor::End, "black", &words);
    }
    frame(svg, TIMES);
    for (index, network) in networks.iter().enumerate() {
        let points = sizes.iter().filter_map(|&size| Some((place(size), heights.place(time(network, size)?))));
        svg.curve(&points.collect::<Vec<_>>(), colour(index));
    }
    svg.text((TIMES.0, TOP - 10.0), Anchor::Start, "black", &format!("time of {}, us", kind.name()));
    svg.text((f64::midpoint(TIMES.0, TIMES.1), BOTTOM + 36.0), Anchor::Middle, "black", "size");
}
