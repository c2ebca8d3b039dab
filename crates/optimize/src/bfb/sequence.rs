//! The loads of all steps, over all nodes.

use num_integer::Integer;

use super::{Arrivals, BfbError, BfbGraph};
use crate::fraction::Fraction;
use crate::stop::Stop;

/// Greatest loads of the steps of one or of many nodes.
///
/// A step takes as long as its busiest link anywhere, so only the maximum over the nodes counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepLoads {
    /// By step, the first one first: amounts, or chunks, per width of a link; delays of links included.
    pub loads: Vec<Fraction>,
}

impl StepLoads {
    /// Step by step the greater of both.
    #[must_use]
    pub fn max(mut self, other: &Self) -> Self {
        if self.loads.len() < other.loads.len() {
            self.loads.resize(other.loads.len(), Fraction::ZERO);
        }
        for (load, &other) in self.loads.iter_mut().zip(&other.loads) {
            *load = (*load).max(other);
        }
        self
    }

    /// Sum over all steps; `None` where it does not fit 128 bits.
    ///
    /// In a graph of N nodes with equal shares and d links of width 1 into each, the bandwidth term of the schedule is
    /// `d/N` times it, in units of all data through all links of a node.
    pub fn total(&self) -> Option<Fraction> {
        self.loads.iter().try_fold(Fraction::ZERO, |sum, &load| sum.checked_add(load))
    }
}

impl Arrivals<'_> {
    /// Loads of the node visited, up to the last step in which anything arrives: [`load`](Self::load), or [`chunk_load`](Self::chunk_load) where a number of
    /// chunks is given.
    ///
    /// # Errors
    /// Stopped.
    pub fn loads(&mut self, chunks: Option<u64>, stop: &dyn Stop) -> Result<StepLoads, BfbError> {
        let loads = (1..=self.step_count()).map(|step| match chunks {
            None => self.load(step, stop),
            Some(chunks) => self.chunk_load(step, chunks, Fraction::ZERO, stop),
        });
        let mut loads: Vec<Fraction> = loads.collect::<Result<_, _>>()?;
        // The farthest nodes may have nothing to send.
        loads.truncate(loads.iter().rposition(|&load| load != Fraction::ZERO).map_or(0, |last| last + 1));
        Ok(StepLoads { loads })
    }
}

/// Loads of all steps over these nodes: all of a graph, or one of each kind.
///
/// # Errors
/// A node that is not reached from everywhere; stopped. One [`Arrivals::visit`] and as many loads as steps for each node.
pub fn step_loads(
    graph: &BfbGraph,
    nodes: impl IntoIterator<Item = u32>,
    chunks: Option<u64>,
    stop: &dyn Stop,
) -> Result<StepLoads, BfbError> {
    let mut arrivals = Arrivals::new(graph);
    nodes.into_iter().try_fold(StepLoads::default(), |most, node| {
        arrivals.visit(node, stop)?;
        Ok(most.max(&arrivals.loads(chunks, stop)?))
    })
}

/// A number of chunks for each unit of an amount with which whole chunks reach all of these loads: the least common multiple
/// of their denominators. With d links of width 1 into each node, each denominator is at most d. `None` beyond 64 bits.
///
/// On links of one width no smaller number will do: the links of a set that is filled each carry exactly the load.
pub fn chunks_needed(loads: &StepLoads) -> Option<u64> {
    let chunks = loads.loads.iter().try_fold(1_u128, |chunks, load| {
        let factor = load.denominator / chunks.gcd(&load.denominator);
        chunks.checked_mul(factor)
    });
    chunks.and_then(|chunks| u64::try_from(chunks).ok())
}
