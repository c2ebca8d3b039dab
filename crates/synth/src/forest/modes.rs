//! Boxes whose ranks need all they have: some trees enter such a box once, the others enter it at every rank.
//!
//! Where NICs are fast beside the links in a box, no boundary is scarce but that of each single rank. The boundary of the box
//! has a surplus, which can not be trimmed (`trim`), as each rank needs its NICs. So the demand is divided, and the
//! capacities with it: for a part λ of it, trees enter the box once and spread inside; that makes its boundary tight. For
//! the rest, every rank takes what it needs by its NICs, and the links inside help only those that NICs alone do not
//! connect: of rails without a spine, what rank sends what others in its box must have for their rails.
//!
//! Each part of the demand is a network of its own, which is tested as any other and then solved in pieces; the trees of
//! all parts together are those of the whole.
//!
//! Source: our own.

mod boxes;
mod candidates;
mod need;
mod parts;
mod ranges;

use canopy_optimize::{FlowUnit, Stop};
use canopy_schedule::RouteIndex;

use crate::error::SynthesisError;
use crate::forest::assembly::position;
use crate::forest::condition::Condition;
use crate::forest::decomposition::{Apart, take_apart};
use crate::forest::network::Network;
use crate::forest::packing::PackingChoice;
use crate::forest::{FlowRange, RoutedHop, RoutedTree, RoutedTrees, ask};
use crate::progress::Progress;
use boxes::ScantBoxes;
use candidates::candidates;
use parts::{Part, parts};

/// Ways to divide a network that are tried.
const ATTEMPTS_MAX: usize = 3;

/// By how much the number of trees may be multiplied: odder numbers make more trees than a search.
const SCALE_MAX: u64 = 1 << 10;

/// Trees for all demands, found in parts that enter boxes in different ways; `None` if no box needs that, or a part does
/// not admit its trees or falls into pieces that are not much smaller.
///
/// * **In.** The network, and the same taken apart; how many trees there are per root, and may become.
/// * **Cost.** Parts are few: one more than there are different λ, each tested, taken apart and solved in pieces.
/// * **Errors.** Stopped, too many hops.
pub(super) fn solve_in_modes<C: FlowUnit>(
    network: &Network<'_>,
    apart: &Apart<'_, C>,
    (capacities, demands): (&[C], &[C]),
    (trees_per_root, trees_per_root_max): (u64, u64),
    choice: PackingChoice,
    (stop, progress): (&dyn Stop, &dyn Progress),
) -> Result<Option<RoutedTrees>, SynthesisError> {
    let numbers = |values: &[C]| values.iter().map(|value| i128::try_from(value.to_u128()).ok()).collect();
    let (Some(capacities), Some(demands)) = (numbers(capacities), numbers(demands)) else { return Ok(None) };
    let (capacities, demands): (Vec<i128>, Vec<i128>) = (capacities, demands);
    let scale_max = SCALE_MAX.min(trees_per_root_max / trees_per_root.max(1));
    let suitable = candidates(network, &capacities).into_iter().filter_map(|candidate| {
        let from = (candidate, apart.tight.clusters.as_slice());
        ScantBoxes::of(network, (&capacities, &demands), from, scale_max)
    });
    for (boxes, division) in suitable.take(ATTEMPTS_MAX) {
        ask(stop)?;
        let Some(parts) = parts(network, &boxes, &division, stop)? else { continue };
        let named: Vec<Network<'_>> = division.ends.iter().map(|&end| boxes.named(network, end)).collect();
        let mut parts_apart = Vec::with_capacity(parts.len());
        for (part, network) in parts.iter().zip(&named) {
            let Some(part_apart) = PartApart::new(network, part, stop)? else { break };
            if part_apart.largest() > apart.largest() / 2 {
                break;
            }
            parts_apart.push(part_apart);
        }
        if parts_apart.len() < parts.len() {
            continue;
        }
        let mut all: Option<RoutedTrees> = None;
        for part in parts_apart {
            let trees = part.solve(choice, stop, progress)?;
            match &mut all {
                None => all = Some(trees),
                Some(all) => join(all, trees)?,
            }
        }
        return Ok(all.map(|mut all| {
            all.trees_per_root = trees_per_root * division.scale;
            all.trees.sort_by_key(|tree| tree.root);
            all
        }));
    }
    Ok(None)
}

/// A part taken apart, in numbers that suit it.
enum PartApart<'a> {
    Narrow(Apart<'a, i64>),
    Wide(Apart<'a, i128>),
}

impl<'a> PartApart<'a> {
    /// `None` if its capacities do not admit the trees, or some switch is not balanced.
    fn new(network: &Network<'a>, part: &Part, stop: &dyn Stop) -> Result<Option<Self>, SynthesisError> {
        let sum: i128 = part.capacities.iter().chain(&part.demands).sum();
        Ok(match u128::try_from(sum).ok().and_then(FlowRange::of) {
            Some(FlowRange::Narrow) => part_apart(network, part, stop)?.map(Self::Narrow),
            Some(FlowRange::Wide) => part_apart(network, part, stop)?.map(Self::Wide),
            None => None,
        })
    }

    fn largest(&self) -> usize {
        match self {
            Self::Narrow(apart) => apart.largest(),
            Self::Wide(apart) => apart.largest(),
        }
    }

    /// The trees, as many per root as there are of this part.
    fn solve(
        self,
        choice: PackingChoice,
        stop: &dyn Stop,
        progress: &dyn Progress,
    ) -> Result<RoutedTrees, SynthesisError> {
        // How many there are of the whole demand is known in the end.
        let trees_per_root = 1;
        match self {
            Self::Narrow(apart) => apart.solve(trees_per_root, choice, stop, progress),
            Self::Wide(apart) => apart.solve(trees_per_root, choice, stop, progress),
        }
    }
}

fn part_apart<'a, C: FlowUnit>(
    network: &Network<'a>,
    part: &Part,
    stop: &dyn Stop,
) -> Result<Option<Apart<'a, C>>, SynthesisError> {
    let fits = "numbers are not negative, and their sum was found to fit";
    let convert = |&value: &i128| u128::try_from(value).ok().and_then(C::try_from_u128).expect(fits);
    let capacities: Vec<C> = part.capacities.iter().map(convert).collect();
    let demands: Vec<C> = part.demands.iter().map(convert).collect();
    // What is rounded need not come out even.
    if !network.switches_are_balanced(&capacities) {
        return Ok(None);
    }
    let edges = network.links.iter().zip(&capacities).map(|(link, &capacity)| (link.from, link.to, capacity));
    let mut condition = Condition::new(edges, demands.clone(), network.terminal_count, stop)?;
    if condition.violation()?.is_some() {
        return Ok(None);
    }
    take_apart(network, &capacities, &demands, stop).map(Some)
}

/// Adds the trees of another part.
fn join(all: &mut RoutedTrees, part: RoutedTrees) -> Result<(), SynthesisError> {
    let RoutedTrees { trees, hops, carriers, routes, .. } = part;
    let route_offset = position(all.routes.len())?;
    routes.iter().for_each(|route| {
        all.routes.push(route);
    });
    let carrier_offset = position(all.carriers.len())?;
    let hop_offset = position(all.hops.len())?;
    position(all.carriers.len() + carriers.len())?;
    position(all.hops.len() + hops.len())?;
    all.carriers
        .extend(carriers.into_iter().map(|(route, count)| (RouteIndex::new(route.number() + route_offset), count)));
    all.hops.extend(hops.into_iter().map(|hop| RoutedHop {
        carriers: hop.carriers.start + carrier_offset..hop.carriers.end + carrier_offset,
        ..hop
    }));
    all.trees.extend(
        trees
            .into_iter()
            .map(|tree| RoutedTree { hops: tree.hops.start + hop_offset..tree.hops.end + hop_offset, ..tree }),
    );
    Ok(())
}
