//! Questions and answers.

use std::sync::atomic::{AtomicBool, Ordering};

use canopy_optimize::Stop;

use crate::bounds::Bounds;
use crate::candidate::{Candidate, Frontier, Keep};
use crate::lacking::{Lacking, lacking};
use crate::query::{FindError, Query};
use crate::search::Search;

/// Version of the answers: kept answers of another version are stale.
pub const VERSION: u32 = 3;

/// The answer to a query.
#[derive(Clone, Debug)]
pub struct Found {
    /// The query.
    pub query: Query,
    /// Networks none of which is at least as good as another in steps, in bandwidth of allgather and of reduce-scatter, and
    /// in the rate of an all-to-all; by ascending steps. None if the catalogue has none.
    pub candidates: Vec<Candidate>,
    /// Bounds for every such network; `None` if this number of nodes cannot be connected.
    pub bounds: Option<Bounds>,
    /// Published networks that are not offered.
    pub lacking: Vec<Lacking>,
}

/// Answers queries, and reuses the results of earlier ones.
///
/// Several threads may query at once. It takes some hundred bytes per network that may be part of another.
#[derive(Debug, Default)]
pub struct Finder {
    search: Search,
    /// Cells may be empty that should not be.
    was_stopped: AtomicBool,
}

impl Finder {
    /// An empty finder.
    pub fn new() -> Self {
        Self::default()
    }

    /// The networks that are best in some respect. The answer does not depend on earlier queries.
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
