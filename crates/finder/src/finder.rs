//! Questions and answers.

use std::sync::atomic::{AtomicBool, Ordering};

use canopy_optimize::Stop;

use crate::bounds::Bounds;
use crate::candidate::{Candidate, Frontier, Keep};
use crate::lacking::{Lacking, lacking};
use crate::search::{Links, Search};

/// What networks are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Query {
    /// Number of nodes, from 2 to [`NODES_MAX`].
    pub nodes: u32,
    /// Ports of each, from 1 to [`DEGREE_MAX`]: so many links leave it, and so many enter it.
    pub degree: u32,
    /// Which links they may have.
    pub links: Links,
}

impl Query {
    /// Refuses numbers out of range.
    ///
    /// # Errors
    /// [`FindError::Nodes`] or [`FindError::Degree`].
    pub fn check(self) -> Result<(), FindError> {
        if !(2..=NODES_MAX).contains(&self.nodes) {
            return Err(FindError::Nodes { found: self.nodes, limit: NODES_MAX });
        }
        if !(1..=DEGREE_MAX).contains(&self.degree) {
            return Err(FindError::Degree { found: self.degree, limit: DEGREE_MAX });
        }
        Ok(())
    }
}

/// Counts the changes of what is found for the same query: a kept answer of another number is of no use.
pub const VERSION: u32 = 3;
/// Most nodes of a network that is looked for.
pub const NODES_MAX: u32 = 1 << 14;
/// Most ports of each.
pub const DEGREE_MAX: u32 = 32;

/// What was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// What was wanted.
    pub query: Query,
    /// Networks none of which is at least as good as another in steps, in bandwidth of allgather and of reduce-scatter, and
    /// in the rate of an all-to-all; by ascending steps. None if the catalogue has none.
    pub candidates: Vec<Candidate>,
    /// What no network can do better; `None` where so many nodes cannot be connected.
    pub bounds: Option<Bounds>,
    /// Published networks that are not offered.
    pub lacking: Vec<Lacking>,
}

/// Why nothing was looked for, or not to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum FindError {
    #[error("nodes: {found} is not from 2 to {limit}; ask for that many nodes")]
    Nodes { found: u32, limit: u32 },
    #[error("degree: {found} is not from 1 to {limit}; ask for that many ports per node")]
    Degree { found: u32, limit: u32 },
    #[error("stopped before all networks were compared")]
    Stopped,
}

/// Answers questions; what was found for one serves the others.
///
/// Several threads may ask at once. It takes some hundred bytes for every network that may be part of another.
#[derive(Debug, Default)]
pub struct Finder {
    search: Search,
    /// Cells may be empty that should not be.
    was_stopped: AtomicBool,
}

impl Finder {
    /// One that has found nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The networks that are best in some respect. The same for the same query, whatever was asked before.
    ///
    /// * **Errors.** Numbers out of range; stopped, and then for ever.
    /// * **Cost.** Mostly that of a generalized Kautz graph for each number of nodes and ports that divides the given ones, of
    ///   line graphs that are built with a `degree`-th of the nodes, and O(divisors · degree) products.
    pub fn find(&self, query: Query, stop: &dyn Stop) -> Result<Found, FindError> {
        query.check()?;
        let Query { nodes, degree, links } = query;
        let cell = self.search.cell((nodes, degree), links, stop);
        if stop.is_requested() {
            self.was_stopped.store(true, Ordering::Relaxed);
        }
        if self.was_stopped.load(Ordering::Relaxed) {
            return Err(FindError::Stopped);
        }
        let mut best = Frontier::default();
        for candidate in cell.iter() {
            best.insert(candidate.clone(), Keep::BestOnly);
        }
        let candidates = best.into_sorted();
        let lacking = lacking(query, &candidates);
        Ok(Found { query, candidates, bounds: Bounds::of(nodes, degree, links), lacking })
    }
}
