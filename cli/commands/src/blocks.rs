//! The file of sizes of blocks that all-to-all-v is given: a square of whole numbers.

use canopy_schedule::Blocks;

use crate::input::{digits, file_text};

/// Longest file that is read: 16 bytes for each of the most blocks there can be.
const FILE_BYTES_MAX: usize = 64 << 20;

/// As many rows of weights as there are weights in each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlockRows(Vec<u64>);

impl BlockRows {
    /// Row after row.
    pub(crate) fn weights(&self) -> &[u64] {
        &self.0
    }
}

/// Reads the file of this name.
pub(crate) fn read(path: &str) -> Result<BlockRows, String> {
    let content = file_text(path, FILE_BYTES_MAX, "give smaller numbers in the same proportions")?;
    parsed(&content).map_err(|error| format!("`{path}`: {error}"))
}

/// Rows as JSON, which begins with a bracket, or as lines of numbers between commas and blanks; empty lines do not count.
fn parsed(content: &str) -> Result<BlockRows, String> {
    let content = content.trim_start_matches('\u{feff}').trim();
    let mut square = Square::default();
    if content.starts_with('[') {
        // Most of what a value takes in memory is not in its text: too many are refused before they are read.
        let (values, limit) = (content.matches(['[', ',']).count(), Blocks::RANKS_MAX as usize);
        if values > limit * (limit + 1) {
            return Err(format!("there are more than {limit} rows of {limit} columns; {}", up_to(limit)));
        }
        let rows: Vec<Vec<serde_json::Value>> =
            serde_json::from_str(content).map_err(|error| format!("not a list of lists of numbers: {error}"))?;
        for row in &rows {
            square.add(row.iter().map(|number| (number.as_u64(), number.to_string())))?;
        }
    } else {
        for line in content.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let words = line.split(|c: char| c == ',' || c.is_whitespace()).filter(|word| !word.is_empty());
            square.add(words.map(|word| (digits(word), word.to_owned())))?;
        }
    }
    square.finish()
}

fn up_to(limit: usize) -> String {
    format!("blocks are weighed for up to {limit} ranks")
}

/// Rows so far.
#[derive(Default)]
struct Square {
    rows: usize,
    columns: usize,
    weights: Vec<u64>,
}

impl Square {
    /// Adds a row of weights, each with how it is written; rows and columns are counted from 0, as ranks are.
    fn add(&mut self, weights: impl Iterator<Item = (Option<u64>, String)>) -> Result<(), String> {
        let (row, limit) = (self.rows, Blocks::RANKS_MAX as usize);
        if row == limit {
            return Err(format!("there are more than {limit} rows; {}", up_to(limit)));
        }
        let mut columns = 0;
        for (weight, written) in weights {
            if columns == limit {
                return Err(format!("row {row} has more than {limit} columns; {}", up_to(limit)));
            }
            let weight = weight.ok_or_else(|| {
                let written: String = written.chars().take(40).collect();
                format!(
                    "row {row}, column {columns}: `{written}` is not a weight of a block; write whole numbers from 0 to {}",
                    u64::MAX
                )
            })?;
            self.weights.push(weight);
            columns += 1;
        }
        if row > 0 && columns != self.columns {
            let expected = self.columns;
            return Err(format!(
                "row {row} has {columns} columns, and the rows before have {expected}; give one column for each rank"
            ));
        }
        (self.rows, self.columns) = (row + 1, columns);
        Ok(())
    }

    fn finish(self) -> Result<BlockRows, String> {
        let Self { rows, columns, weights } = self;
        if weights.is_empty() {
            return Err("there are no weights; give a row for each rank".to_owned());
        }
        if rows != columns {
            return Err(format!(
                "there are {rows} rows of {columns} columns; give one row and one column for each rank"
            ));
        }
        Ok(BlockRows(weights))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_json_say_the_same() {
        let rows = BlockRows(vec![0, 3, 1, 0]);
        for text in
            ["[[0,3],[1,0]]", " [ [0, 3],\n [1, 0] ]\n", "0,3\n1,0", "\u{feff}0 3\r\n\r\n1\t0\r\n", "0 , 3\n 1 ,0,\n"]
        {
            assert_eq!(parsed(text).as_ref(), Ok(&rows), "{text}");
        }
        assert_eq!(parsed("[[18446744073709551615]]"), Ok(BlockRows(vec![u64::MAX])));
    }

    #[test]
    fn what_is_no_square_of_weights_is_refused_by_row_and_column() {
        for (text, message) in [
            ("", "no weights"),
            ("[]", "no weights"),
            ("[[]]", "no weights"),
            ("0 1\n2", "row 1 has 1 columns, and the rows before have 2"),
            ("[[0,1],[2,3,4]]", "row 1 has 3 columns"),
            ("0 1\n2 3\n4 5", "3 rows of 2 columns"),
            ("0 1\n-2 3", "row 1, column 0: `-2`"),
            ("[[0,1],[2,-3]]", "row 1, column 1: `-3`"),
            ("[[0,1.5],[2,3]]", "row 0, column 1: `1.5`"),
            ("[[0,\"1\"],[2,3]]", "row 0, column 1: `\"1\"`"),
            ("0 NaN\n1 2", "row 0, column 1: `NaN`"),
            ("0 1e3\n1 2", "row 0, column 1: `1e3`"),
            ("[[0,NaN],[1,2]]", "not a list of lists"),
            ("[0,1]", "not a list of lists"),
            ("[[0,1],[1,0]", "not a list of lists"),
            ("0 18446744073709551616\n1 0", "row 0, column 1: `18446744073709551616`"),
        ] {
            let refused = parsed(text).unwrap_err();
            assert!(refused.contains(message), "{text}: {refused}");
        }
        let limit = Blocks::RANKS_MAX as usize;
        assert!(parsed(&"1\n".repeat(limit + 1)).unwrap_err().contains("more than 2048 rows"));
        assert!(parsed(&"1 ".repeat(limit + 1)).unwrap_err().contains("row 0 has more than 2048 columns"));
        // As many brackets and commas as the largest square has are looked at, one more are not.
        let most = limit * (limit + 1);
        assert!(parsed(&"[".repeat(most)).unwrap_err().contains("not a list of lists"));
        assert!(parsed(&"[".repeat(most + 1)).unwrap_err().contains("more than 2048 rows of 2048 columns"));
    }
}
