//! Large networks in pieces: clusters with tight boundaries are solved apart, equal ones once, and put together.
//!
//! Nothing is lost: the trimmed network still meets the condition, and tight boundaries separate (see `trim`). Machines of
//! boxes that are not all alike are one piece, the trees of which can be written down (see `boxes`).

use canopy_optimize::{FlowUnit, Stop};

use crate::error::SynthesisError;
use crate::forest::clusters::{Detail, find_clusters};
use crate::forest::coarse::coarsen;
use crate::forest::condition::Condition;
use crate::forest::glue::glue;
use crate::forest::network::Network;
use crate::forest::packing::PackingChoice;
use crate::forest::piece::{Home, Machine, Piece, Solution, pieces, solve};
use crate::forest::trim::{Tight, trim};
use crate::forest::{RoutedTrees, ask};
use crate::progress::{Progress, Stage};

/// Different trees per rank up to which those of a machine of boxes are taken as they are: where shares are of all sizes
/// they are many, and pieces have fewer.
const TREES_PER_RANK: usize = 4;

/// Ranks from which on capacities are rounded so that trees are fewer. Smaller plans can do with more trees, and their trees
/// are flatter.
const COARSE_FROM: u32 = 512;

/// Terminals of the largest piece from which on parts of boxes are tried.
const PARTS_FROM: usize = 48;

/// A network taken apart.
pub(super) struct Apart<'a, C> {
    /// Along which boundaries.
    pub(super) tight: Tight<C>,
    /// What numbers of a piece may be divided by if all are multiples of it.
    unit: u128,
    pieces: Vec<Piece<'a, C>>,
    homes: Vec<Home>,
    /// By rank.
    demands: Vec<C>,
    /// The trees, if the network is one piece and they were written down.
    written: Option<Solution<C>>,
}

/// Takes a network apart whose capacities admit the trees. If it is no machine of boxes whose trees can be written down, and
/// has no clusters that can be made tight, or is not balanced at every switch, it is one piece.
///
/// * **Source.** Our own. **Errors.** Stopped; broken if the input does not meet the condition.
/// * **Cost.** Some tests of the network.
pub(super) fn take_apart<'a, C: FlowUnit>(
    network: &Network<'a>,
    capacities: &[C],
    demands: &[C],
    stop: &dyn Stop,
) -> Result<Apart<'a, C>, SynthesisError> {
    let apart = take_apart_by(network, capacities, demands, Detail::Boxes, stop)?;
    if apart.largest() < PARTS_FROM {
        return Ok(apart);
    }
    let finer = take_apart_by(network, capacities, demands, Detail::Parts, stop)?;
    Ok(if finer.largest() <= apart.largest() / 2 { finer } else { apart })
}

/// The same with what boxes are looked at for.
fn take_apart_by<'a, C: FlowUnit>(
    network: &Network<'a>,
    capacities: &[C],
    demands: &[C],
    detail: Detail,
    stop: &dyn Stop,
) -> Result<Apart<'a, C>, SynthesisError> {
    ask(stop)?;
    let of_ranks = demands[..network.terminal_count as usize].to_vec();
    let whole = Tight { capacities: capacities.to_vec(), clusters: Vec::new() };
    let (all, homes) = pieces(network, demands, &whole, stop)?;
    let piece = &all[0];
    // Where all boxes are alike, so are the trees of pieces, or those that symmetry finds, and they are flatter.
    let (at_once, at_last) = match piece.machine() {
        Some(machine) if machine.is_uniform() => (None, Some(machine).filter(Machine::has_more_links)),
        machine => (machine, None),
    };
    let mut written = match at_once {
        Some(machine) => piece.solve_boxes(machine, stop)?,
        None => None,
    };
    let trees_max = TREES_PER_RANK * network.terminal_count as usize;
    let is_few = |solution: &Solution<C>| solution.trees.iter().map(Vec::len).sum::<usize>() <= trees_max;
    if !written.as_ref().is_some_and(is_few) {
        if let Some(mut tight) = tight_clusters(network, capacities, demands, detail, stop)? {
            let is_large = network.terminal_count >= COARSE_FROM;
            let unit = if is_large { coarsen(network, &mut tight, demands, stop)? } else { 1 };
            let (pieces, homes) = pieces(network, demands, &tight, stop)?;
            return Ok(Apart { tight, unit, pieces, homes, demands: of_ranks, written: None });
        }
        if let Some(machine) = at_last {
            written = piece.solve_boxes(machine, stop)?;
        }
    }
    Ok(Apart { tight: whole, unit: 1, pieces: all, homes, demands: of_ranks, written })
}

impl<C: FlowUnit> Apart<'_, C> {
    /// Whether it is one piece, and nothing is known of its trees.
    pub(super) fn is_whole(&self) -> bool {
        self.pieces.len() == 1 && self.written.is_none()
    }

    /// Terminals of the largest piece whose trees are yet to be searched for.
    pub(super) fn largest(&self) -> usize {
        let sizes = self.pieces.iter().filter(|piece| !piece.is_star()).map(|piece| piece.terminals.len());
        if self.written.is_some() { 0 } else { sizes.max().unwrap_or(0) }
    }

    /// Trees for all demands.
    ///
    /// * **Errors.** Stopped, too many hops. **Cost.** The different pieces, and what the result takes.
    pub(super) fn solve(
        self,
        trees_per_root: u64,
        choice: PackingChoice,
        stop: &dyn Stop,
        progress: &dyn Progress,
    ) -> Result<RoutedTrees, SynthesisError> {
        let Self { pieces, homes, demands, written, unit, .. } = self;
        let (solution_of, solutions) = match written {
            Some(written) => {
                progress.report(Stage::Trees, 1, 1);
                (vec![0], vec![written])
            }
            None => solve(&pieces, unit, choice, stop, progress)?,
        };
        glue(&pieces, (&solution_of, &solutions), &homes, &demands, trees_per_root, (stop, progress))
    }
}

/// Clusters with tight boundaries; `None` if there are none, or the network is not balanced at every switch.
fn tight_clusters<C: FlowUnit>(
    network: &Network<'_>,
    capacities: &[C],
    demands: &[C],
    detail: Detail,
    stop: &dyn Stop,
) -> Result<Option<Tight<C>>, SynthesisError> {
    if !network.switches_are_balanced(capacities) {
        return Ok(None);
    }
    let clusters = find_clusters(network, capacities, detail, stop)?;
    if clusters.is_empty() {
        return Ok(None);
    }
    let edges = network.links.iter().zip(capacities).map(|(link, &capacity)| (link.from, link.to, capacity));
    let mut condition = Condition::new(edges, demands.to_vec(), network.terminal_count, stop)?;
    let tight = trim(network, capacities, clusters, &mut condition)?;
    Ok(Some(tight).filter(|tight| !tight.clusters.is_empty()))
}
