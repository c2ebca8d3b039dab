//! Matrices as they are read: a JSON object on each line.

use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::{Path, PathBuf};

use canopy_proto::v1::MovingMatrix;
use serde::Deserialize;
use tokio::sync::mpsc;

use super::is_stdin;
use crate::exit::Failure;
use crate::input::cannot_read;

/// Longest line: one of 1,024 ranks has some 10 MB.
const LINE_BYTES_MAX: usize = 64 << 20;

/// A line.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    number: Option<u64>,
    bytes: Vec<Vec<u64>>,
}

/// A file of matrices, or standard input.
pub(super) struct Lines {
    path: PathBuf,
    input: Box<dyn BufRead + Send>,
    /// Lines that were read.
    count: u64,
    /// The number of the last matrix.
    last: Option<u64>,
    /// A matrix that was read before it was asked for.
    ahead: Option<MovingMatrix>,
}

impl Lines {
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let input: Box<dyn BufRead + Send> = match is_stdin(path) {
            true => Box::new(BufReader::new(std::io::stdin())),
            false => Box::new(BufReader::new(File::open(path).map_err(|error| cannot_read(path, &error))?)),
        };
        Ok(Self::of(path, input))
    }

    fn of(path: &Path, input: Box<dyn BufRead + Send>) -> Self {
        Self { path: path.to_owned(), input, count: 0, last: None, ahead: None }
    }

    /// Reads to the end, to the first line that is wrong, or until the receiver has gone. Blocks.
    pub(super) fn run(mut self, sender: &mpsc::Sender<Result<MovingMatrix, Failure>>) {
        while let Some(matrix) = self.next().transpose() {
            let is_wrong = matrix.is_err();
            if sender.blocking_send(matrix).is_err() || is_wrong {
                return;
            }
        }
    }

    /// The bytes of the only matrix, which is still to come.
    ///
    /// # Errors
    /// There is none, or another one; `why` says why that matters.
    pub(super) fn only_one(&mut self, why: &str) -> Result<&[u64], Failure> {
        let help = "write the matrix to a file of its own";
        let refused = |what: String| Err(Failure::input(what).help(help));
        let Some(first) = self.next()? else {
            return refused(format!("{why}, and {} has none", self.path.display()));
        };
        if self.next()?.is_some() {
            return refused(format!("{why}, and line {} of {} has another", self.count, self.path.display()));
        }
        Ok(&self.ahead.insert(first).bytes)
    }

    /// The next matrix; empty lines are passed over.
    fn next(&mut self) -> Result<Option<MovingMatrix>, Failure> {
        if let Some(matrix) = self.ahead.take() {
            return Ok(Some(matrix));
        }
        loop {
            let mut line = Vec::new();
            let limit = LINE_BYTES_MAX as u64 + 1;
            let read = (&mut self.input).take(limit).read_until(b'\n', &mut line);
            if read.map_err(|error| cannot_read(&self.path, &error))? == 0 {
                return Ok(None);
            }
            self.count += 1;
            if line.len() > LINE_BYTES_MAX {
                return Err(self.wrong(format!("it has more than {LINE_BYTES_MAX} bytes; send fewer ranks")));
            }
            if !line.trim_ascii().is_empty() {
                return self.read(&line).map(Some);
            }
        }
    }

    fn read(&mut self, line: &[u8]) -> Result<MovingMatrix, Failure> {
        let shape = "write {\"number\":1,\"bytes\":[[0,5],[7,0]]}";
        let Line { number, bytes: rows } =
            serde_json::from_slice(line).map_err(|error| self.wrong(format!("{error}; {shape}")))?;
        let ranks = rows.len();
        if let Some((row, of_row)) = rows.iter().enumerate().find(|(_, row)| row.len() != ranks) {
            let found = of_row.len();
            return Err(
                self.wrong(format!("row {row} has {found} numbers and the matrix {ranks} rows; make it square"))
            );
        }
        let next = self.last.map_or(1, |last| last.saturating_add(1));
        let number = number.unwrap_or(next);
        if let Some(last) = self.last.filter(|last| *last >= number) {
            return Err(self.wrong(format!("number {number} follows {last}; use ascending numbers")));
        }
        self.last = Some(number);
        Ok(MovingMatrix { number, bytes: rows.concat() })
    }

    fn wrong(&self, what: String) -> Failure {
        Failure::input(format!("{}: line {}: {what}", self.path.display(), self.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &'static str) -> Result<Vec<(u64, Vec<u64>)>, String> {
        let mut lines = Lines::of(Path::new("m"), Box::new(text.as_bytes()));
        let mut found = Vec::new();
        while let Some(matrix) = lines.next().map_err(|failure| failure.sentence())? {
            found.push((matrix.number, matrix.bytes));
        }
        Ok(found)
    }

    #[test]
    fn matrices_have_the_numbers_that_are_stated_or_the_next() {
        let text = "{\"bytes\":[[0,1],[2,0]]}\n\n{\"number\":7,\"bytes\":[[0]]}\n{\"bytes\":[]}";
        assert_eq!(all(text), Ok(vec![(1, vec![0, 1, 2, 0]), (7, vec![0]), (8, vec![])]));
    }

    #[test]
    fn the_only_matrix_is_still_to_come() {
        let mut lines = Lines::of(Path::new("m"), Box::new(&b"{\"bytes\":[[0,1],[2,0]]}\n\n"[..]));
        assert_eq!(
            lines.only_one("one").map(<[u64]>::to_vec).map_err(|failure| failure.sentence()),
            Ok(vec![0, 1, 2, 0])
        );
        assert_eq!(lines.next().unwrap().map(|matrix| matrix.number), Some(1));
        assert_eq!(lines.next().unwrap(), None);
        let refused = |text: &'static str| {
            let mut lines = Lines::of(Path::new("m"), Box::new(text.as_bytes()));
            lines.only_one("one is needed").unwrap_err().sentence()
        };
        assert_eq!(refused("\n"), "one is needed, and m has none");
        assert_eq!(refused("{\"bytes\":[]}\n\n{\"bytes\":[]}\n"), "one is needed, and line 3 of m has another");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (text, words) in [
            ("{\"bytes\":[[0,1],[2]]}", "m: line 1: row 1 has 1 numbers and the matrix 2 rows"),
            ("{\"bytes\":[]}\n{\"number\":1,\"bytes\":[]}", "m: line 2: number 1 follows 1"),
            ("{\"bytes\":[[-1]]}", "m: line 1: invalid value"),
            ("{\"bytes\":[],\"more\":1}", "m: line 1: unknown field"),
            ("[[0]]", "m: line 1: "),
        ] {
            let found = all(text).unwrap_err();
            assert!(found.starts_with(words), "{found}");
        }
    }
}
