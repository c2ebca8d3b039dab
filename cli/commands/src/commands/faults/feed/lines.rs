//! Feeds that are read line by line, from a file or standard input.

use std::fs::File;
use std::io::{BufRead, BufReader, Read as _};
use std::path::Path;

use canopy_faults::feeds::{
    Documents, FeedError, FeedOptions, Item, Line, MESSAGE_BYTES_MAX, read_json_line, read_ras, read_slurm,
    read_slurm_json,
};
use tokio::sync::mpsc;

use super::Received;
use crate::clock;
use crate::exit::{Failure, words};
use crate::input::{STDIN, cannot_read};

/// How the lines of a feed are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineFormat {
    Json,
    NcclRas,
    Slurm,
}

/// A feed that is read line by line.
pub(super) struct Reader {
    input: Box<dyn BufRead + Send>,
    format: LineFormat,
    options: FeedOptions,
    documents: Documents,
}

impl Reader {
    /// Opens a file, or standard input; `-` is standard input, too.
    pub(super) fn open(path: Option<&Path>, format: LineFormat, options: FeedOptions) -> Result<Self, Failure> {
        let input: Box<dyn BufRead + Send> = match path.filter(|path| *path != Path::new(STDIN)) {
            None => Box::new(BufReader::new(std::io::stdin())),
            Some(path) => Box::new(BufReader::new(File::open(path).map_err(|error| cannot_read(path, &error))?)),
        };
        Ok(Self { input, format, options, documents: Documents::default() })
    }

    /// Reads to the end, or until nobody takes what is read. Blocks.
    pub(super) fn run(mut self, sender: &mpsc::Sender<Received>) -> Result<(), Failure> {
        let send = |received: Received| sender.blocking_send(received).is_ok();
        loop {
            let line = next_line(&mut self.input)?;
            let next = line.as_ref().map(|line| line.as_ref().map_or("", String::as_str));
            let broken = self.documents.break_off(next);
            let mut is_heard = broken.is_none_or(|error| send(Received::Unreadable(words(&error))));
            let Some(line) = line else { return Ok(()) };
            is_heard &= match line.and_then(|line| self.read(&line)) {
                Ok(None) => true,
                Ok(Some(items)) => items.into_iter().map(Received::Item).chain([Received::End]).all(send),
                Err(error) => send(Received::Unreadable(words(&error))),
            };
            if !is_heard {
                return Ok(());
            }
        }
    }

    /// What a line says; none where it ends no message.
    fn read(&mut self, line: &str) -> Result<Option<Vec<Item>>, FeedError> {
        let now_ms = clock::since_1970_ms();
        if line.trim().is_empty() {
            return Ok(None);
        }
        let read_document = match self.format {
            LineFormat::Json => return read_json_line(line, &self.options, now_ms).map(Some),
            LineFormat::Slurm => read_slurm_json,
            LineFormat::NcclRas => read_ras,
        };
        match self.documents.push(line)? {
            Line::Document(document) => read_document(&document, &self.options, now_ms).map(Some),
            Line::Open => Ok(None),
            Line::Words(line) if self.format == LineFormat::Slurm => read_slurm(&line, &self.options, now_ms).map(Some),
            Line::Words(_) => Ok(Some(vec![Item::Passed { what: "words between documents".to_owned() }])),
        }
    }
}

/// The next line without its end; one that is too long is read to its end, and is an error.
fn next_line(input: &mut dyn BufRead) -> Result<Option<Result<String, FeedError>>, Failure> {
    let cannot = |error: std::io::Error| Failure::input(format!("cannot read the feed: {error}"));
    let mut bytes = Vec::new();
    let limit = MESSAGE_BYTES_MAX as u64 + 1;
    let read = (&mut *input).take(limit).read_until(b'\n', &mut bytes).map_err(cannot)?;
    if read == 0 {
        return Ok(None);
    }
    let mut is_whole = bytes.last() == Some(&b'\n') || bytes.len() <= MESSAGE_BYTES_MAX;
    if is_whole {
        return Ok(Some(Ok(String::from_utf8_lossy(&bytes).trim_end().to_owned())));
    }
    while !is_whole {
        bytes.clear();
        let read = (&mut *input).take(limit).read_until(b'\n', &mut bytes).map_err(cannot)?;
        is_whole = read == 0 || bytes.last() == Some(&b'\n');
    }
    Ok(Some(Err(FeedError::TooLong { limit: MESSAGE_BYTES_MAX })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_too_long_are_passed_over_whole() {
        let mut text = b"short\n".to_vec();
        text.extend(std::iter::repeat_n(b'x', MESSAGE_BYTES_MAX + 10));
        text.extend(b"\r\nlast \xff");
        let mut input = std::io::Cursor::new(text);
        let mut next = || next_line(&mut input).unwrap();
        assert_eq!(next(), Some(Ok("short".to_owned())));
        assert_eq!(next(), Some(Err(FeedError::TooLong { limit: MESSAGE_BYTES_MAX })));
        assert_eq!((next(), next()), (Some(Ok("last \u{fffd}".to_owned())), None));
    }
}
