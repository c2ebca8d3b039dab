//! `direct`: every transfer takes one shortest physical route.
//!
//! Most libraries do this if they do not know the network, so it is the baseline for other algorithms. Ranks on a
//! shortest route store and forward.

mod trees;

use canopy_optimize::Stop;
use canopy_schedule::{Action, Collective, Shape, Shares};
use canopy_topology::{LinkIndex, Rank, Topology};

use crate::algorithm::{ALL_COLLECTIVES, Memory, Paths, Rival, SynthesisRequest, Synthesized, Synthesizer, Task};
use crate::error::SynthesisError;
use crate::parts::{FlowParts, ForestParts, Leg, pairs, phase_actions, require_room, roots, weight_between};
use crate::progress::{Progress, Stage};
use crate::reach::{ask, require_reach};
use crate::routing::{Chooser, Heading, Levels, Loads, Network, Passing, is_less};

/// Shortest routes.
pub(crate) static DIRECT: Synthesizer = Synthesizer {
    memory: Memory { paths: Paths::OneShortest, ..Memory::USUAL },
    rival: Some(Rival { place: 2, ..Rival::PAIRS }),
    ..Synthesizer::new("direct", "every transfer on one shortest route", ALL_COLLECTIVES, plan)
};

/// How often every tree or path is chosen: the first ones chosen know nothing of what comes after them. More rounds than
/// these change next to nothing on tori, hypercubes and machines of two boxes.
const ROUNDS: u64 = 4;

/// How often every path is chosen again with ties broken any way, since the worst link was relieved last, as long as some
/// link carries more than links do on average and there are few pairs. Always the first or the last of equal routes gets
/// stuck: on a torus of 3 × 3 at loads of 4, where 3 will do.
const ROUNDS_MIXED: u64 = 4;

/// Most pairs whose paths are chosen so often: those of 128 ranks.
const PAIRS_MIXED: usize = 128 * 127;

/// Most pairs whose routes are chosen one by one: those of 512 ranks. Of more, a tree per source is chosen, which takes a
/// thirtieth of the time.
const PAIRS_ALONE: usize = 512 * 511;

/// Destinations handled between two looks at whether to stop.
const ASK_INTERVAL: usize = 64;

/// Plans a collective on shortest routes, one chunk per share (or block), or per unit of its weight.
///
/// Data that all ranks get follows one shortest-path tree per root, so no rank receives a chunk twice; sums follow the
/// same on the reverse of the network. Gather, scatter and all-to-all take one shortest path per pair. Which of equally
/// short routes is taken is chosen one after the other by what the links carry, and again some times when all are known;
/// of paths, the round counts in which the worst link is used least. Paths of more pairs than those of 512 ranks are chosen
/// as one tree per source.
///
/// * **Source.** Basu 2024 §5 (`SSSP`), with the fewest links as the first measure and Σ load²/capacity as the weight.
/// * **In.** Any topology on which data of the roots can go where it must. **Out.** k = 1.
/// * **Errors.** Disconnected, too many hops, stopped.
/// * **Cost.** O(links on shortest routes) per pair of ranks.
fn plan(task: &Task<'_>) -> Result<Synthesized, SynthesisError> {
    let &Task { topology, request, stop, progress, .. } = task;
    let &SynthesisRequest { collective, ref shares, .. } = request;
    require_reach(topology, collective, shares)?;
    let mut planner =
        Planner { topology, shares, loads: Loads::none(topology), chooser: Chooser::new(topology), stop, progress };
    Ok(task.planned(match phase_actions(collective.kind()) {
        Some(actions) => planner.forest(collective, actions)?,
        None => planner.flow(collective)?,
    }))
}

const REACHED: &str = "every rank that needs data was found to be within reach of its sources";

struct Planner<'a> {
    topology: &'a Topology,
    shares: &'a Shares,
    loads: Loads,
    chooser: Chooser,
    stop: &'a dyn Stop,
    progress: &'a dyn Progress,
}

impl Planner<'_> {
    fn forest(&mut self, collective: Collective, actions: &[Action]) -> Result<Shape, SynthesisError> {
        let roots = roots(collective, self.topology.rank_count(), self.shares);
        let tree_count = (roots.len() * actions.len()) as u64;
        require_room(tree_count.saturating_mul(u64::from(self.topology.rank_count())))?;
        let networks = actions.iter().map(|&action| {
            let heading = if action == Action::Reduce { Heading::Against } else { Heading::Along };
            (action, Network::new(self.topology, heading))
        });
        let networks: Vec<(Action, Network<'_>)> = networks.collect();
        let weight_total = roots.iter().map(|&(_, weight)| u128::from(weight)).sum();
        let mut trees: Vec<Vec<Leg>> = vec![Vec::new(); roots.len() * actions.len()];
        for round in 0..ROUNDS {
            self.chooser.change_tie_break();
            let places = networks.iter().flat_map(|(_, network)| roots.iter().map(move |&root| (network, root)));
            for ((tree, (network, (root, weight))), done) in trees.iter_mut().zip(places).zip(1..) {
                self.loads.weigh(weight, weight_total);
                tree.iter().for_each(|leg| self.loads.remove(&leg.links));
                *tree = self.tree(network, root)?;
                self.progress.report(Stage::Routes, round * tree_count + done, ROUNDS * tree_count);
            }
        }
        let mut parts = ForestParts::new(1);
        for ((action, _), trees) in networks.iter().zip(trees.chunks(roots.len())) {
            parts.add_phase(*action);
            for (&(root, weight), tree) in roots.iter().zip(trees) {
                ask(self.stop)?;
                match action {
                    Action::Copy => parts.add_tree(root, weight, tree.iter().cloned())?,
                    Action::Reduce => parts.add_tree(root, weight, tree.iter().rev().map(turned))?,
                }
            }
        }
        Ok(Shape::Forest(parts.finish()))
    }

    /// A tree of shortest routes from the root: nearest ranks first, each reached from a rank on a shortest route to it.
    fn tree(&mut self, network: &Network<'_>, root: Rank) -> Result<Vec<Leg>, SynthesisError> {
        ask(self.stop)?;
        let levels = Levels::new(network, root.node(), Passing::Anyone);
        let mut others: Vec<Rank> = self.topology.ranks().filter(|&rank| rank != root).collect();
        others.sort_by_key(|rank| levels.distance(rank.node()));
        let mut tree = Vec::with_capacity(others.len());
        for (rank, position) in others.into_iter().zip(1_usize..) {
            if position % ASK_INTERVAL == 0 {
                ask(self.stop)?;
            }
            let is_rank = |node| self.topology.rank_of(node).is_some();
            let links = self.chooser.choose(network, &levels, &self.loads, rank.node(), is_rank);
            let links = links.expect(REACHED);
            let from = self.topology.rank_of(network.tail(links[0])).expect("routes were asked to start at ranks");
            self.loads.add(&links);
            tree.push(Leg { from, to: rank, links });
        }
        Ok(tree)
    }

    /// One path per pair; a path keeps its length in all rounds, so all are kept in one list.
    fn flow(&mut self, collective: Collective) -> Result<Shape, SynthesisError> {
        let pairs = pairs(collective, self.topology.rank_count(), self.shares)?;
        let weight = |pair: (Rank, Rank)| weight_between(collective, self.shares, pair);
        let weight_total = pairs.iter().map(|&pair| u128::from(weight(pair))).sum();
        let network = Network::new(self.topology, Heading::Along);
        if pairs.len() > PAIRS_ALONE {
            let &mut Self { topology, stop, progress, .. } = self;
            return trees::flow(topology, &network, &pairs, |from, to| weight((from, to)), stop, progress);
        }
        let sources = || pairs.chunk_by(|first, second| first.0 == second.0);
        let levels = |source: Rank| Levels::new(&network, source.node(), Passing::Anyone);
        let starts = self.starts(&network, &pairs)?;
        let mut routes = vec![LinkIndex::new(0); starts.last().copied().unwrap_or_default()];
        let pairs_total = pairs.len() as u64;
        let mut best: Option<((u64, u64), Vec<LinkIndex>)> = None;
        let (mut round, mut rounds) = (0, ROUNDS);
        while round < rounds {
            if round < ROUNDS {
                self.chooser.change_tie_break();
            } else {
                self.chooser.mix_tie_breaks(round);
            }
            let mut done = 0;
            for pairs in sources() {
                let levels = levels(pairs[0].0);
                let ahead = pairs.partition_point(|(source, destination)| destination < source);
                for offset in 0..pairs.len() {
                    if offset % ASK_INTERVAL == 0 {
                        ask(self.stop)?;
                    }
                    let at = (ahead + offset) % pairs.len();
                    let (source, destination) = pairs[at];
                    let range = starts[done + at]..starts[done + at + 1];
                    self.loads.weigh(weight(pairs[at]), weight_total);
                    if round > 0 {
                        self.loads.remove(&routes[range.clone()]);
                    }
                    let is_source = |node| node == source.node();
                    let route = self.chooser.choose(&network, &levels, &self.loads, destination.node(), is_source);
                    let route = route.expect(REACHED);
                    self.loads.add(&route);
                    routes[range].copy_from_slice(&route);
                }
                done += pairs.len();
                // How many rounds are still to come is known of the first ones only.
                if round < ROUNDS {
                    self.progress.report(Stage::Routes, round * pairs_total + done as u64, ROUNDS * pairs_total);
                }
            }
            round += 1;
            if round < ROUNDS || pairs.len() > PAIRS_MIXED {
                continue;
            }
            let worst = self.loads.worst(self.topology);
            if best.as_ref().is_none_or(|(least, _)| is_less(worst, *least)) {
                best = Some((worst, routes.clone()));
                rounds = if self.loads.are_level(self.topology) { round } else { round + ROUNDS_MIXED };
            }
        }
        let routes = best.map_or(routes, |(_, best)| best);
        self.written(collective, &pairs, &starts, &routes)
    }

    /// Of the routes of all pairs: where each starts, and after the last. A pair's routes are all of one length.
    fn starts(&self, network: &Network<'_>, pairs: &[(Rank, Rank)]) -> Result<Vec<usize>, SynthesisError> {
        let mut starts = vec![0];
        let mut end = 0;
        for pairs in pairs.chunk_by(|first, second| first.0 == second.0) {
            ask(self.stop)?;
            let levels = Levels::new(network, pairs[0].0.node(), Passing::Anyone);
            for (_, destination) in pairs {
                end += levels.distance(destination.node()).expect(REACHED) as usize;
                starts.push(end);
            }
            require_room(end as u64)?;
        }
        Ok(starts)
    }

    /// Every pair's block on its route, of which `starts` says where it is in `routes`.
    fn written(
        &self,
        collective: Collective,
        pairs: &[(Rank, Rank)],
        starts: &[usize],
        routes: &[LinkIndex],
    ) -> Result<Shape, SynthesisError> {
        let mut parts = FlowParts::new(self.topology, 1);
        for ((&(source, destination), ends), position) in pairs.iter().zip(starts.windows(2)).zip(1_usize..) {
            if position % ASK_INTERVAL == 0 {
                ask(self.stop)?;
            }
            let weight = weight_between(collective, self.shares, (source, destination));
            parts.add_path(source, destination, weight, &routes[ends[0]..ends[1]])?;
        }
        Ok(Shape::Flow(parts.finish()))
    }
}

/// A leg of the network seen against its links, as one of the network itself.
fn turned(leg: &Leg) -> Leg {
    Leg { from: leg.to, to: leg.from, links: leg.links.iter().rev().copied().collect() }
}
