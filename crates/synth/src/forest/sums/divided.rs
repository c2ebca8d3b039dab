//! Trees up and other trees down, where links are not alike in both directions: each link is divided between them.
//!
//! What both have in common is how many of them are rooted at which rank, since what is summed up there is what is spread
//! from there. Otherwise they are two problems, each of which the stages of broadcast trees solve.

use canopy_optimize::{Arc, Digraph, Division, Fraction, OptimumError, Stop, divided, halved, strength};
use canopy_schedule::{Action, Collective, CollectiveKind, Forest, Shares};
use canopy_topology::{Rate, Topology};
use num_integer::Integer;

use crate::bound::{BoundError, allreduce_limit};
use crate::error::SynthesisError;
use crate::forest::assembly::Assembly;
use crate::forest::instance::{self, Instance};
use crate::forest::sums::refusal;
use crate::forest::{Effort, solve};
use crate::progress::Progress;

/// Steps between what is reached otherwise and what is possible at most.
const STEPS: u128 = 64;

/// Ranks and links up to which a linear program is solved: a second or two at most.
const RANKS_MAX: u32 = 512;
const LINKS_MAX: usize = 2560;

/// Ranks from which on a program takes long enough to be spared where little can be gained, and how little that is.
const SPARED_FROM: u32 = 65;
const LITTLE: u32 = 200;

/// Divides the links such that trees of more than `least` fit. `None` where that is not found.
///
/// Where as much enters every node as leaves it, at the strength of the network, which no allreduce exceeds, if that is
/// found. Else a linear program says how; of very large networks it is the greatest part of the strength that is found
/// by bisection.
///
/// * **Errors.** Stopped. **Cost.** That of some strengths; up to two seconds for the program.
pub(super) fn find(topology: &Topology, least: &Rate, stop: &dyn Stop) -> Result<Option<Division>, SynthesisError> {
    let graph = graph(topology);
    let terminals: Vec<bool> = (0..graph.node_count).map(|node| node < topology.rank_count()).collect();
    let broken = |error| refusal(error, topology.rank_count());
    let most = strength(&graph, &terminals, stop).map_err(broken)?.rate;
    // Of switches out of balance the strength says nothing.
    let are_balanced = switches_are_balanced(topology);
    if rate_of(most) <= *least && are_balanced {
        return Ok(None);
    }
    // Parts that are balanced at no switch fall into no pieces, and take minutes where ranks are many.
    if !are_balanced && topology.rank_count() > RANKS_MAX && is_near_the_bound(topology, least, stop)? {
        return Ok(None);
    }
    let part = |steps: u128| {
        let (numerator, denominator) = (most.numerator.checked_mul(steps)?, most.denominator.checked_mul(STEPS)?);
        Fraction::new(numerator, denominator).filter(|&rate| rate_of(rate) > *least)
    };
    let attempt = |steps: u128| match part(steps).map(|rate| halved(&graph, &terminals, rate, stop)) {
        None | Some(Err(OptimumError::Unbalanced { .. } | OptimumError::TooLarge { .. })) => Ok(None),
        Some(Ok(division)) => Ok(division),
        Some(Err(error)) => Err(broken(error)),
    };
    let mut best = attempt(STEPS)?;
    if best.is_none() && topology.rank_count() <= RANKS_MAX && topology.links().len() <= LINKS_MAX {
        if topology.rank_count() >= SPARED_FROM && is_near_the_bound(topology, least, stop)? {
            return Ok(None);
        }
        let found = divided(&graph, &terminals, stop).map_err(broken)?;
        return Ok(found.filter(|found| found.rate(&graph).is_some_and(|rate| rate_of(rate) > *least)));
    }
    let is_balanced = topology.first_unbalanced().is_none();
    if best.is_none() && is_balanced {
        let (mut possible, mut impossible) = ((0..STEPS).rfind(|&steps| part(steps).is_none()).unwrap_or(0), STEPS);
        while impossible - possible > 1 {
            let middle = possible.midpoint(impossible);
            match attempt(middle)? {
                Some(found) => (best, possible) = (Some(found), middle),
                None => impossible = middle,
            }
        }
    }
    Ok(best)
}

/// Whether no allreduce is faster than this rate by more than little.
fn is_near_the_bound(topology: &Topology, rate: &Rate, stop: &dyn Stop) -> Result<bool, SynthesisError> {
    match allreduce_limit(topology, stop) {
        Ok(limit) => {
            let ((limit, of_limit), (rate, of_rate)) = (limit.parts(), rate.parts());
            Ok(limit * of_rate * LITTLE <= rate * of_limit * (LITTLE + 1))
        }
        Err(BoundError::Stopped) => Err(SynthesisError::Stopped),
        Err(_) => Ok(false),
    }
}

/// Whether as much enters every switch as leaves it.
fn switches_are_balanced(topology: &Topology) -> bool {
    let mut surplus = vec![0_i128; topology.nodes().len()];
    for link in topology.links() {
        surplus[link.from.index()] -= i128::from(link.capacity.bytes_per_sec());
        surplus[link.to.index()] += i128::from(link.capacity.bytes_per_sec());
    }
    surplus[topology.rank_count() as usize..].iter().all(|&surplus| surplus == 0)
}

/// Plans both phases with what a division leaves to each.
///
/// * **Out.** The forest, and as shares how many trees have which root. **Errors.** As [`forest::plan`](super::forest::plan).
pub(super) fn plan(
    topology: &Topology,
    division: &Division,
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<(Forest, Shares), SynthesisError> {
    let rank_count = topology.rank_count();
    let too_many = || SynthesisError::TooManyTrees { trees_per_rank: division.tree_count, rank_count };
    let narrow = |&count: &u128| u64::try_from(count).map_err(|_| too_many());
    let demands = division.roots.iter().map(narrow).collect::<Result<Vec<u64>, _>>()?;
    let broken = |error| SynthesisError::Broken { what: format!("allreduce has no root: {error}") };
    let collective = Collective::new(CollectiveKind::Allreduce, None, rank_count).map_err(broken)?;
    let shares = Shares::in_proportion(collective, rank_count, demands[..rank_count as usize].to_vec())?;
    let trees_per_root = demands.iter().fold(0, |common, demand| demand.gcd(&common)).max(1);

    let transposed = topology.transposed();
    let behind = instance::links_behind_transposed(topology);
    let spread = Instance { trees_per_root, demands: demands.clone(), capacities: division.spread.clone() };
    let turned = behind.iter().map(|link| division.collect[link.index()]).collect();
    let collect = Instance { trees_per_root, demands, capacities: turned };
    let phases = [
        (Action::Reduce, solve(&transposed, &collect, Effort::FULL, stop, progress)?),
        (Action::Copy, solve(topology, &spread, Effort::FULL, stop, progress)?),
    ];
    let size = (rank_count, shares.weight_total(rank_count));
    let mut assembly = Assembly::new([trees_per_root; 2].into_iter(), phases.len(), size, stop)?;
    for (action, trees) in &phases {
        assembly.add_phase(*action, trees, &behind)?;
    }
    Ok((assembly.finish(), shares))
}

/// All links as they are.
fn graph(topology: &Topology) -> Digraph {
    let arc = |link: &canopy_topology::Link| Arc {
        from: link.from.number(),
        to: link.to.number(),
        capacity: link.capacity.bytes_per_sec(),
    };
    let node_count = u32::try_from(topology.nodes().len()).expect("limits keep node counts within u32");
    Digraph { node_count, arcs: topology.links().iter().map(arc).collect() }
}

fn rate_of(rate: Fraction) -> Rate {
    Rate::new(rate.numerator, rate.denominator).unwrap_or_else(Rate::zero)
}
