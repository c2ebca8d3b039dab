//! Trees in boxes whose ranks do not all reach each other directly: those of an allgather in the box alone, in which
//! each rank has as much as enters there.

use std::collections::BTreeMap;

use canopy_optimize::Stop;
use canopy_schedule::{BoxTree, Collective, CollectiveKind, Exchange, Inside, Pieces, Seating, Shape, Shares, Stages};
use canopy_topology::{NodeIndex, Rank, Topology, TopologyDraft, TopologyLimits};

use crate::algorithm::{Algorithm, SynthesisRequest};
use crate::error::SynthesisError;
use crate::progress::Silent;
use crate::synthesize::synthesize;

/// States trees for boxes that need them: one class for most boxes, and one for each of the odd ones.
///
/// A box for which no trees are found keeps what it has. **Cost.** That of a forest on one box, for each class.
pub(super) fn spread_along_trees(
    topology: &Topology,
    stages: &mut Stages,
    odd: &[u32],
    stop: &dyn Stop,
) -> Result<(), SynthesisError> {
    let Ok(seating) = stages.grid.seating(topology.rank_count()) else { return Ok(()) };
    let Some(usual) = (0..seating.box_count()).find(|of_box| odd.binary_search(of_box).is_err()) else { return Ok(()) };
    let members = |of_box| seating.live(of_box).collect::<Vec<_>>();
    if are_joined(topology, &members(usual)) {
        return Ok(());
    }
    let at_usual = entered(stages, &seating, usual);
    let Some(trees) = trees_of(topology, &members(usual), &at_usual, stop)? else { return Ok(()) };
    let mut inside = vec![Inside::Trees(trees)];
    let mut classes = BTreeMap::new();
    for &of_box in odd.iter().filter(|&&of_box| !seating.is_empty(of_box)) {
        let entered = entered(stages, &seating, of_box);
        let trees = trees_of(topology, &members(of_box), &entered, stop)?;
        let own = trees.map_or(Inside::Star, |trees| Inside::Trees(fitted(trees, &entered)));
        classes.insert(of_box, u32::try_from(inside.len()).unwrap_or(0));
        inside.push(own);
    }
    (stages.inside, stages.classes) = (inside, classes);
    Ok(())
}

/// Whether each rank has a link to each other one, or is at a switch with it at which nobody else is.
fn are_joined(topology: &Topology, members: &[(u32, u32)]) -> bool {
    let is_own = |switch: NodeIndex| {
        let mut others = topology.links_from(switch).map(|link| topology.link(link).to);
        others.all(|to| members.iter().any(|&(_, rank)| rank == to.number()))
    };
    let switches = |rank: u32| {
        let links = topology.links_from(NodeIndex::new(rank)).map(|link| topology.link(link).to);
        links.filter(|&to| topology.rank_of(to).is_none() && is_own(to)).collect::<Vec<_>>()
    };
    let at: Vec<(u32, Vec<NodeIndex>)> = members.iter().map(|&(_, rank)| (rank, switches(rank))).collect();
    at.iter().all(|(from, own)| {
        let reaches = |(to, others): &(u32, Vec<NodeIndex>)| {
            from == to
                || topology.has_link(NodeIndex::new(*from), NodeIndex::new(*to))
                || own.iter().any(|switch| others.contains(switch))
        };
        at.iter().all(reaches)
    })
}

/// The trees of a box, given its places with their ranks, and how much enters at each place. `None`: its ranks do not
/// reach each other in it.
fn trees_of(
    topology: &Topology,
    live: &[(u32, u32)],
    entered: &[u64],
    stop: &dyn Stop,
) -> Result<Option<Vec<BoxTree>>, SynthesisError> {
    let Some(network) = alone(topology, live) else { return Ok(None) };
    let count = network.rank_count();
    let weights = live.iter().map(|&(place, _)| entered.get(place as usize).copied().unwrap_or(1)).collect();
    let Ok(collective) = Collective::new(CollectiveKind::Allgather, None, count) else { return Ok(None) };
    let shares = Shares::in_proportion(collective, count, weights)?;
    let request = SynthesisRequest { shares, ..SynthesisRequest::new(collective, Algorithm::Forest) };
    let schedule = match synthesize(&network, &request, stop, &Silent) {
        Err(SynthesisError::Stopped) => return Err(SynthesisError::Stopped),
        Err(_) => return Ok(None),
        Ok(schedule) => schedule,
    };
    let Shape::Forest(forest) = schedule.shape else { return Ok(None) };
    let place = |rank: Rank| live.get(rank.index()).map_or(0, |&(place, _)| place);
    let trees = forest.phases.iter().flat_map(|phase| &phase.trees).map(|tree| BoxTree {
        root: place(tree.root),
        multiplicity: tree.multiplicity,
        hops: forest.hops_of(tree).iter().map(|hop| (place(hop.from), place(hop.to))).collect(),
    });
    Ok(Some(trees.collect()))
}

/// The trees of a box with as many chunks as they get in it: of what enters at a place, in proportion to their
/// multiplicities. Where these add up to more than enters, trees whose turn is late would not have any.
fn fitted(trees: Vec<BoxTree>, entered: &[u64]) -> Vec<BoxTree> {
    let mut turns: BTreeMap<u32, u128> = BTreeMap::new();
    trees.iter().for_each(|tree| *turns.entry(tree.root).or_default() += u128::from(tree.multiplicity));
    let mut before: BTreeMap<u32, u128> = BTreeMap::new();
    let of_tree = |tree: BoxTree| {
        let chunks = entered.get(tree.root as usize).map_or(0, |&chunks| u128::from(chunks));
        let (turn, before) =
            (turns.get(&tree.root).map_or(1, |&turn| turn.max(1)), before.entry(tree.root).or_default());
        let up_to = |multiplicity: u128| chunks * multiplicity / turn;
        let first = up_to(*before);
        *before += u128::from(tree.multiplicity);
        let multiplicity = u64::try_from(up_to(*before) - first).unwrap_or(u64::MAX);
        (multiplicity > 0).then_some(BoxTree { multiplicity, ..tree })
    };
    trees.into_iter().filter_map(of_tree).collect()
}

/// The links between the ranks of a box as a network.
fn alone(topology: &Topology, live: &[(u32, u32)]) -> Option<Topology> {
    let mut draft = TopologyDraft::default();
    let name = |rank: u32| Some(format!("{:06}", live.iter().position(|&(_, other)| other == rank)?));
    for &(_, rank) in live {
        draft.add_compute(name(rank)?);
    }
    for &(_, rank) in live {
        for link in topology.links_from(NodeIndex::new(rank)).map(|link| topology.link(link)) {
            if let Some(to) = name(link.to.number()) {
                draft.add_link(name(rank)?, to, link.capacity, link.latency);
            }
        }
    }
    draft.build(&TopologyLimits::STANDARD).ok()
}

/// Chunks that enter a box at each place, those of its own ranks included.
fn entered(stages: &Stages, seating: &Seating, of_box: u32) -> Vec<u64> {
    let mut entered = vec![0_u64; seating.places() as usize];
    let mut add = |place: u32, chunks: u64| {
        if let Some(entered) = entered.get_mut(place as usize) {
            *entered = entered.saturating_add(chunks);
        }
    };
    seating.live(of_box).for_each(|(place, _)| add(place, stages.chunks_per_share));
    let (rules, mut pieces) = (Pieces::new(stages, seating), Vec::new());
    for exchange in Exchange::into_box(&stages.grid, of_box) {
        if rules.chunks(exchange) > 0 {
            rules.put(exchange, &mut pieces);
            pieces.iter().for_each(|piece| add(piece.enters, piece.chunk_count));
        }
    }
    entered
}
