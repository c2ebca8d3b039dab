//! A text on its way into a reader.

use canopy_topology::{ReadError, TopologyLimits};

use crate::error::ImportError;

/// The text of a file, and how far a reader may go.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    /// Without a byte order mark.
    pub(crate) text: &'a str,
    pub(crate) limits: &'a TopologyLimits,
    pub(crate) stop: &'a dyn Fn() -> bool,
}

/// Lines between two questions whether to stop.
const LINES_BETWEEN_STOPS: usize = 4096;

impl<'a> Source<'a> {
    /// Lines with their numbers from 1, until nobody wants them any more.
    pub(crate) fn lines(self) -> impl Iterator<Item = Result<(usize, &'a str), ImportError>> {
        (1..).zip(self.text.lines()).map(move |(number, line)| {
            if number % LINES_BETWEEN_STOPS == 0 {
                self.ask()?;
            }
            Ok((number, line))
        })
    }

    /// Whether to stop.
    pub(crate) fn ask(self) -> Result<(), ImportError> {
        if (self.stop)() { Err(ReadError::Stopped.into()) } else { Ok(()) }
    }

    /// Refuses counts over the limits, before anything is built for them.
    pub(crate) fn require(self, nodes: usize, links: usize) -> Result<(), ImportError> {
        Ok(self.limits.check(nodes, links)?)
    }
}
