//! Cells in columns, each as wide as its widest cell.

use crate::svg::{Anchor, INK, Point, Svg, real};
use crate::words::{shortened, width_of};

/// Font size of cells.
const SIZE: u32 = 12;
/// Longest text of a cell.
const CHARS_MAX: usize = 34;
/// Space between columns.
const GAP: f64 = 18.0;
/// Height of a row.
pub(super) const ROW: f64 = 18.0;

/// Rows of cells under a bold heading.
pub(super) struct Grid {
    /// The heading first.
    rows: Vec<Vec<String>>,
    /// Whether a column has numbers, which stand to the right.
    numeric: Vec<bool>,
}

impl Grid {
    /// A grid with this heading; a heading that ends with `#` is that of numbers.
    pub(super) fn new(heading: &[&str]) -> Self {
        let numeric = heading.iter().map(|name| name.ends_with('#')).collect();
        let heading = heading.iter().map(|name| name.trim_end_matches('#').to_owned()).collect();
        Self { rows: vec![heading], numeric }
    }

    /// Adds a row.
    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| shortened(&cell, CHARS_MAX)).collect());
    }

    /// Of all rows with the heading.
    pub(super) fn height(&self) -> f64 {
        ROW * real(self.rows.len())
    }

    /// Of all columns.
    pub(super) fn width(&self) -> f64 {
        self.widths().iter().map(|width| width + GAP).sum()
    }

    fn widths(&self) -> Vec<f64> {
        let cell = |row: &Vec<String>, column: usize| row.get(column).map_or(0.0, |cell| width_of(cell, SIZE));
        let widest = |column: usize| self.rows.iter().map(|row| cell(row, column)).fold(0.0, f64::max);
        (0..self.numeric.len()).map(widest).collect()
    }

    /// Draws the rows from this place down; it is on the first base line.
    pub(super) fn draw(&self, svg: &mut Svg, (left, top): Point) {
        let widths = self.widths();
        for (number, row) in self.rows.iter().enumerate() {
            let (mut x, y) = (left, top + ROW * real(number));
            for ((cell, width), numeric) in row.iter().zip(&widths).zip(&self.numeric) {
                let (place, anchor) = if *numeric { (x + width, Anchor::End) } else { (x, Anchor::Start) };
                match number {
                    _ if cell.is_empty() => {}
                    0 => svg.words((place, y), anchor, (SIZE, true), cell),
                    _ => svg.text((place, y), anchor, INK, cell),
                }
                x += width + GAP;
            }
        }
    }
}
