//! For each kind of links, a profile of all of them, the busiest first, and what each class takes at least, on average and
//! at most.

use canopy_schedule::SharedLink;

use super::band::FREE;
use super::fold::COLOURS;
use super::grid::{Grid, ROW};
use super::kinds::{Kind, Spread, percent, total};
use super::{UseClass, swatch};
use crate::svg::{Anchor, INK, MARGIN, Mark, Point, Svg, real};
use crate::wires::gigabytes;
use crate::words::{count, shortened, width_of};

/// Width of a profile.
const WIDTH: f64 = 380.0;
/// Most columns of a profile.
pub(super) const COLUMNS_MAX: usize = 64;
/// Height of the words above a profile.
const HEAD: f64 = 22.0;
/// Space below a block.
const GAP: f64 = 16.0;
/// Least height of a profile.
const HEIGHT_MIN: f64 = 54.0;
/// Longest words of a kind.
const CHARS_MAX: usize = 80;

/// A kind of links and its numbers.
pub(super) struct Block<'a> {
    kind: &'a Kind,
    links: Vec<&'a SharedLink>,
    grid: Grid,
    /// Colours of the rows of the grid; all classes if it is unset.
    colours: Vec<Option<&'static str>>,
}

impl<'a> Block<'a> {
    pub(super) fn of(kind: &'a Kind, links: &'a [SharedLink], classes: &[UseClass]) -> Self {
        let links: Vec<&SharedLink> = kind.links.iter().filter_map(|&position| links.get(position)).collect();
        let mut grid = Grid::new(&["class", "least#", "mean#", "greatest#"]);
        let mut colours = Vec::new();
        let mut row = |name: &str, spread: Spread| {
            grid.row([name.to_owned(), percent(spread.least), percent(spread.mean), percent(spread.greatest)]);
        };
        for (number, (class, colour)) in classes.iter().zip(COLOURS).enumerate() {
            let parts = links.iter().map(|link| link.billionths.get(number).copied().unwrap_or(0));
            let spread = Spread::of(parts);
            if spread.greatest > 0 {
                row(&class.name, spread);
                colours.push(Some(colour));
            }
        }
        row("all", Spread::of(links.iter().map(|link| total(link))));
        colours.push(None);
        Self { kind, links, grid, colours }
    }

    pub(super) fn height(&self) -> f64 {
        HEAD + self.grid.height().max(HEIGHT_MIN) + GAP
    }

    /// Of everything.
    pub(super) fn width(&self) -> f64 {
        WIDTH + 58.0 + self.grid.width()
    }

    /// What it says above the profile: the kind, and how many links are of it.
    pub(super) fn words(&self) -> (String, String) {
        let rate = self.kind.bytes_per_sec.map(|rate| format!(" of {} GB/s", gigabytes(rate)));
        let busiest = self.links.iter().filter(|link| link.is_busiest).count();
        let busiest = match busiest {
            0 => String::new(),
            all if all == self.links.len() => ", busy all the time".to_owned(),
            some => format!(", {some} of them busy all the time"),
        };
        let rest = format!("{}{}{busiest}", count(self.links.len(), "link"), rate.unwrap_or_default());
        (shortened(&self.kind.words, CHARS_MAX), rest)
    }

    /// Draws it with its upper left corner at a place.
    pub(super) fn draw(&self, svg: &mut Svg, (left, top): Point) {
        let (kind, rest) = self.words();
        svg.words((left, top + 12.0), Anchor::Start, (12, true), &kind);
        svg.text((left + width_of(&kind, 12) * 1.08 + 12.0, top + 12.0), Anchor::Start, INK, &rest);
        let height = self.grid.height().max(HEIGHT_MIN) - 4.0;
        let corner = (left, top + HEAD);
        let size = (WIDTH, height);
        svg.open(&format!("{kind}, {rest}: the busiest first"));
        svg.plate(corner, size, 0.0, &Mark { fill: FREE, ..Mark::line("none", 1.0) });
        self.profile(svg, corner, size);
        svg.close();
        let (x, y) = (left + WIDTH + MARGIN, top + HEAD + 11.0);
        for (number, colour) in self.colours.iter().enumerate() {
            if let Some(colour) = colour {
                swatch(svg, (x, y + ROW * real(number + 1)), colour);
            }
        }
        self.grid.draw(svg, (x + 30.0, y));
    }

    /// A stepped area for each class, one above the other, and a line over those that are busy all the time.
    fn profile(&self, svg: &mut Svg, (left, top): Point, (width, height): (f64, f64)) {
        let columns = self.links.len().min(COLUMNS_MAX);
        let place = |column: usize| left + width * real(column) / real(columns.max(1));
        let mut below = vec![0_u32; columns];
        for (number, colour) in COLOURS.iter().enumerate() {
            let own: Vec<u32> = (0..columns).map(|column| self.mean(column, columns, number)).collect();
            if own.iter().all(|part| *part == 0) {
                continue;
            }
            let above: Vec<u32> = below.iter().zip(&own).map(|(low, part)| low.saturating_add(*part)).collect();
            let steps = |parts: &[u32]| -> Vec<Point> {
                let y = |part: u32| top + height * (1.0 - f64::from(part.min(1_000_000_000)) / 1e9);
                let both = |(column, part): (usize, &u32)| [(place(column), y(*part)), (place(column + 1), y(*part))];
                parts.iter().enumerate().flat_map(both).collect()
            };
            let corners: Vec<Point> = steps(&above).into_iter().chain(steps(&below).into_iter().rev()).collect();
            svg.polygon(&corners, &Mark { fill: colour, ..Mark::line("none", 1.0) });
            below = above;
        }
        let busiest = self.links.iter().filter(|link| link.is_busiest).count();
        if busiest > 0 {
            let right = left + width * real(busiest) / real(self.links.len().max(1));
            svg.plate((left, top - 3.0), (right - left, 3.0), 0.0, &Mark { fill: INK, ..Mark::line("none", 1.0) });
        }
    }

    /// What a class takes of the links of a column on average.
    fn mean(&self, column: usize, columns: usize, class: usize) -> u32 {
        let edge = |column: usize| column * self.links.len() / columns.max(1);
        let own = self.links.get(edge(column)..edge(column + 1)).unwrap_or_default();
        Spread::of(own.iter().map(|link| link.billionths.get(class).copied().unwrap_or(0))).mean
    }
}
