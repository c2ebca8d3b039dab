//! Tables, lists and counts for people.

use std::borrow::Borrow;

pub(crate) use canopy_topology::count;
use canopy_topology::is_invisible;

/// Rows of cells under a heading; each column is as wide as its widest cell.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    /// Whether the column holds numbers, which stand to the right.
    numeric: Vec<bool>,
}

impl Table {
    /// A table with this heading; a heading that ends with `#` is that of numbers.
    pub(crate) fn new(heading: &[&str]) -> Self {
        let numeric = heading.iter().map(|name| name.ends_with('#')).collect();
        let heading = heading.iter().map(|name| name.trim_end_matches('#').to_owned()).collect();
        Self { rows: vec![heading], numeric }
    }

    /// Adds a row with as many cells as the heading, without characters that a terminal obeys instead of showing them.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let clean = |cell: String| cell.chars().filter(|&c| !is_invisible(c)).collect();
        self.rows.push(cells.into_iter().map(clean).collect());
    }

    /// The table as lines without trailing spaces.
    pub(crate) fn text(&self) -> String {
        let width =
            |column: usize| self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
        let widths: Vec<usize> = (0..self.numeric.len()).map(|column| width(column).unwrap_or(0)).collect();
        let line = |row: &Vec<String>| {
            let cells = row.iter().zip(&widths).zip(&self.numeric).map(|((cell, &width), &numeric)| {
                if numeric { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
            });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        self.rows.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// `a`, `a or b`, `a, b or c`, with this word before the last.
pub(crate) fn joined<S: Borrow<str>>(names: &[S], word: &str) -> String {
    match names {
        [] => String::new(),
        [only] => only.borrow().to_owned(),
        [first @ .., last] => format!("{} {word} {}", first.join(", "), last.borrow()),
    }
}

/// At most this many characters of a text, with a sign where some are left out.
pub(crate) fn shortened(text: &str, characters_max: usize) -> String {
    if text.chars().count() <= characters_max {
        return text.to_owned();
    }
    text.chars().take(characters_max.saturating_sub(1)).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_joined_with_a_word_before_the_last() {
        assert_eq!(joined::<&str>(&[], "or"), "");
        assert_eq!(joined(&["a"], "or"), "a");
        assert_eq!(joined(&["a", "b"], "and"), "a and b");
        assert_eq!(joined(&["a", "b", "c"], "or"), "a, b or c");
    }

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&["PLAN", "RANKS#", "STATE"]);
        table.row(["plans/a".to_owned(), "8".to_owned(), "pin\u{1b}ned".to_owned()]);
        table.row(["plans/bcd".to_owned(), "1024".to_owned(), String::new()]);
        assert_eq!(table.text(), "PLAN       RANKS  STATE\nplans/a        8  pinned\nplans/bcd   1024");
    }
}
