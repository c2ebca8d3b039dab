//! Questions and answers.

use std::sync::atomic::{AtomicBool, Ordering};

use canopy_optimize::Stop;

use crate::finder::bounds::Bounds;
use crate::finder::candidate::{Candidate, Frontier, Keep};
use crate::finder::lacking::{Lacking, lacking};
use crate::finder::query::{FindError, Query};
use crate::finder::rates::Rates;
use crate::finder::search::Search;

/// Version of the answers: kept answers of another version are stale.
pub const VERSION: u32 = 4;

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

    /// The networks that are best in some respect, all-to-alls compared by rates known without a computation: exact ones, and
    /// bounds by distances. The answer does not depend on earlier queries.
    ///
    /// * **Errors.** Numbers out of range; stopped, and then for ever.
    /// * **Cost.** Mostly that of a generalized Kautz graph for each number of nodes and ports that divides the given ones, of
    ///   line graphs that are built with a `degree`-th of the nodes, and O(divisors · degree) products.
    pub fn find(&self, query: Query, stop: &dyn Stop) -> Result<Found, FindError> {
        query.check()?;
        let cell = self.search.cell((query.nodes, query.degree), query.links, stop);
        self.require_all(stop)?;
        let mut best = Frontier::new(Keep::BestOnly);
        for candidate in cell.iter() {
            best.insert(candidate.clone());
        }
        Ok(Found::of(query, best))
    }

    /// The same, all-to-alls compared by the optima of their linear programs, or by the least bound that is proven of them.
    ///
    /// The most promising bound comes first; networks that are no better than another even at their bound are left out.
    ///
    /// * **Errors.** As above. **Cost.** As above, and some seconds at most for linear programs.
    pub fn find_rated(&self, query: Query, stop: &dyn Stop) -> Result<Found, FindError> {
        query.check()?;
        let contenders = self.search.contenders((query.nodes, query.degree), query.links, stop);
        self.require_all(stop)?;
        let mut best = Frontier::new(Keep::BestOnly);
        let mut rates = Rates::new(stop);
        for mut candidate in contenders {
            if best.has_place_for(&candidate.known) {
                let rate = rates.refined(&candidate.construction, candidate.known.all_to_all);
                candidate.known.all_to_all = rate.map_err(|_| FindError::Stopped)?;
                best.insert(candidate);
            }
        }
        Ok(Found::of(query, best))
    }

    /// Refuses what was stopped: cells may be empty that should not be.
    fn require_all(&self, stop: &dyn Stop) -> Result<(), FindError> {
        if stop.is_requested() {
            self.was_stopped.store(true, Ordering::Relaxed);
        }
        if self.was_stopped.load(Ordering::Relaxed) { Err(FindError::Stopped) } else { Ok(()) }
    }
}

impl Found {
    fn of(query: Query, best: Frontier) -> Self {
        let candidates = best.into_sorted();
        let lacking = lacking(query, &candidates);
        Self { query, candidates, bounds: Bounds::of(query.nodes, query.degree, query.links), lacking }
    }
}
