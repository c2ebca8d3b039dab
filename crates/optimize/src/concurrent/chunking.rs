//! How many chunks each unit of demand is divided into.

use num_integer::Integer as _;

use super::ConcurrentOptimum;
use super::problem::{ConcurrentError, ConcurrentProblem};
use super::whole::{Effort, WholeFlow};
use crate::fraction::Fraction;
use crate::stop::Stop;

/// Most chunks of a unit, unless fewer are asked for: then a chunk counts for as little as the tolerance.
const CHUNKS_MAX: u64 = 1 << 20;
/// Most chunks with which the limit itself is tried to be reached.
const EXACT_CHUNKS_MAX: u64 = 256;
/// Multiples of the fewest chunks that can reach the limit that are tried.
const MULTIPLES_TRIED: u64 = 6;
/// Amounts of all commodities up to which several multiples are tried: tenths of a second each.
const AMOUNTS_MAX: usize = 1 << 18;
/// Part of the rate that a solver may lack whose flow is worth to be made exact.
const NEARLY: f64 = 1e-5;

/// A flow that is to be divided into whole chunks.
#[derive(Clone, Copy, Debug)]
pub struct Chunking<'a> {
    /// The demands.
    pub problem: &'a ConcurrentProblem<'a>,
    /// The flow, and lengths that prove the limit.
    pub optimum: &'a ConcurrentOptimum,
    /// No flow has a greater rate.
    pub limit: Fraction,
    /// Part of the rate that may be lacking in all.
    pub tolerance: f64,
}

impl Chunking<'_> {
    /// As few chunks as reach the limit where that is found, else as few as lose less than the tolerance allows.
    ///
    /// # Errors
    /// Those of [`WholeFlow::new`].
    pub fn finest(&self, stop: &dyn Stop) -> Result<WholeFlow, ConcurrentError> {
        self.at_most(CHUNKS_MAX, stop)
    }

    /// So many chunks.
    ///
    /// # Errors
    /// Those of [`WholeFlow::new`].
    pub fn exactly(&self, chunks: u64, stop: &dyn Stop) -> Result<WholeFlow, ConcurrentError> {
        self.round(chunks, Effort::Full, stop)
    }

    /// The best of at most so many that is found: chunks that can reach the limit, else powers of two from where a chunk is
    /// about what may be lost, until no more than that is lost.
    ///
    /// # Errors
    /// Those of [`WholeFlow::new`].
    pub fn at_most(&self, most: u64, stop: &dyn Stop) -> Result<WholeFlow, ConcurrentError> {
        let mut best = self.reaching(most, stop)?;
        if best.as_ref().is_some_and(|best| best.rate() == Some(self.limit)) {
            return best.ok_or(ConcurrentError::TooLarge);
        }
        let amounts = self.amounts();
        let enough =
            self.optimum.rate.max(self.optimum.limit * (1.0 - self.tolerance / 2.0)) * (1.0 - self.tolerance / 2.0);
        let mut chunks = self.first(most);
        loop {
            let effort =
                if chunks <= EXACT_CHUNKS_MAX && amounts <= AMOUNTS_MAX { Effort::Full } else { Effort::Quick };
            match self.round(chunks, effort, stop) {
                Ok(whole) => best = better(best, whole),
                // Numbers of chunks are too large to be counted: what there is has to do.
                Err(ConcurrentError::TooLarge) if best.is_some() => break,
                Err(error) => return Err(error),
            }
            let rate = best.as_ref().and_then(WholeFlow::rate).map_or(0.0, Fraction::to_float);
            if chunks >= most || rate >= enough {
                break;
            }
            chunks = chunks.saturating_mul(2).min(most);
        }
        best.ok_or(ConcurrentError::TooLarge)
    }

    /// The best of few numbers of chunks that can reach the limit; `None` if the flow is too far from it, or those are too
    /// many.
    ///
    /// # Errors
    /// Those of [`WholeFlow::new`].
    pub fn reaching(&self, most: u64, stop: &dyn Stop) -> Result<Option<WholeFlow>, ConcurrentError> {
        let mut best: Option<WholeFlow> = None;
        let is_nearly_exact = self.optimum.limit - self.optimum.rate <= NEARLY * self.optimum.limit;
        let fewest = self.fewest().filter(|_| is_nearly_exact);
        let multiples = if self.amounts() <= AMOUNTS_MAX { MULTIPLES_TRIED } else { 1 };
        for chunks in fewest.into_iter().flat_map(|fewest| (1..=multiples).map(move |multiple| multiple * fewest)) {
            if chunks > most.min(EXACT_CHUNKS_MAX) {
                break;
            }
            let whole = self.round(chunks, Effort::Full, stop)?;
            let is_exact = whole.rate() == Some(self.limit);
            best = better(best, whole);
            if is_exact {
                break;
            }
        }
        Ok(best)
    }

    /// Arcs that carry something, of all commodities.
    fn amounts(&self) -> usize {
        self.optimum.flow.amounts.iter().map(Vec::len).sum()
    }

    fn round(&self, chunks: u64, effort: Effort, stop: &dyn Stop) -> Result<WholeFlow, ConcurrentError> {
        let proof = (self.optimum.lengths.as_slice(), self.limit);
        WholeFlow::new(self.problem, &self.optimum.flow, chunks, proof, effort, stop)
    }

    /// Fewest chunks with which all arcs of positive length can be filled to the limit with whole chunks, if some.
    fn fewest(&self) -> Option<u64> {
        let arcs = self.problem.graph().arcs.iter().zip(&self.optimum.lengths);
        let full = arcs.filter(|&(arc, &length)| length > 0 && arc.capacity > 0);
        let mut fewest = 1_u128;
        for (arc, _) in full {
            // An arc carries chunks · capacity / limit.
            let top = u128::from(arc.capacity).checked_mul(self.limit.denominator)?;
            let own = self.limit.numerator / self.limit.numerator.gcd(&top);
            fewest = (fewest / fewest.gcd(&own)).checked_mul(own)?;
            if fewest > EXACT_CHUNKS_MAX.into() {
                return None;
            }
        }
        u64::try_from(fewest).ok()
    }

    /// A power of two: the least with which a chunk on the fullest arc is about as much as may be lost.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "only where the search begins"
    )]
    fn first(&self, most: u64) -> u64 {
        let capacity = self.problem.graph().arcs.iter().map(|arc| arc.capacity).max().unwrap_or(1);
        let load = capacity as f64 / self.optimum.limit.max(f64::MIN_POSITIVE);
        let wanted = 1.0 / (2.0 * self.tolerance.max(1e-9) * load.max(1.0));
        let wanted = (wanted.min(CHUNKS_MAX as f64) as u64).max(1);
        wanted.next_power_of_two().min(most)
    }
}

/// The one of greater rate; of equal ones the first.
fn better(best: Option<WholeFlow>, other: WholeFlow) -> Option<WholeFlow> {
    match best {
        Some(best) if best.rate() >= other.rate() => Some(best),
        _ => Some(other),
    }
}
