//! Trees on any network, of which no two take the same part of a link in a step.

use std::collections::{BTreeMap, VecDeque};

use canopy_optimize::{Stop, Stopped};

use crate::Digraph;
use crate::multiport::trees::{Branch, Tree, Trees, Unreachable, tails};

/// Errors of growing trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum GreedyError {
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    #[error("stopped before all trees were found")]
    Stopped,
}

impl From<Stopped> for GreedyError {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

/// Links of a network with switches, in numbers of equal parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wires {
    /// Ranks first, then switches.
    pub graph: Digraph,
    /// How many of the nodes are ranks.
    pub ranks: u32,
    /// By edge: how many trees may take it in a step.
    pub parts: Vec<u32>,
}

/// Trees over routes from rank to rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoutedTrees {
    /// Their edges are those of `graph`.
    pub trees: Trees,
    /// Of ranks only: an edge for each route that is taken.
    pub graph: Digraph,
    /// By edge of `graph`: the edges of the network, all nodes between which are switches.
    pub routes: Vec<Vec<u32>>,
}

/// Trees that grow together, one rank each in turn: in a step every part of an edge is taken by the first tree that
/// it extends.
///
/// A rank of the tree is extended by the free edge to a new rank that comes first, else by the shortest free way to
/// one through switches, wider links first.
///
/// * **Source.** Huang et al., MULTITREE, with steps counted by edge as in Pham 2026, section 3.2.3, and several
///   parts of links that are wider than others as in Zhao 2026, section 4.6.5; which of a tree's edges is taken
///   first, and which tree is first in a step, is our own: the nodes that joined first, and one later in each step.
/// * **Errors.** A node out of reach; stopped.
/// * **Cost.** O(steps · roots · edges) at most, without the nodes of a tree that lead to no new one; with switches,
///   for each rank of each tree the edges of the switches before it.
pub fn greedy_trees(wires: &Wires, roots: &[u32], stop: &dyn Stop) -> Result<RoutedTrees, GreedyError> {
    let mut growing: Vec<Growing> = roots.iter().map(|&root| Growing::new(wires, root)).collect();
    let mut search = Search::new(wires);
    let mut routes = Routes::default();
    let mut step = 0;
    let mut open: Vec<usize> = (0..growing.len()).collect();
    loop {
        open.retain(|&tree| growing[tree].missing > 0);
        if open.is_empty() {
            break;
        }
        search.free.clone_from(&wires.parts);
        let first = step as usize % open.len();
        let mut turns: Vec<usize> = open[first..].iter().chain(&open[..first]).copied().collect();
        let missing = |growing: &[Growing]| growing.iter().map(|tree| u64::from(tree.missing)).sum::<u64>();
        let before = missing(&growing);
        while !turns.is_empty() {
            if stop.is_requested() {
                return Err(GreedyError::Stopped);
            }
            turns.retain(|&tree| growing[tree].grow(step, &mut search, &mut routes));
        }
        if missing(&growing) == before {
            let stuck = &growing[open[0]];
            let node = stuck.is_in.iter().position(|&is_in| !is_in).unwrap_or(0);
            let node = u32::try_from(node).unwrap_or(u32::MAX);
            return Err(Unreachable { root: stuck.root, node }.into());
        }
        growing.iter_mut().for_each(Growing::end_step);
        step += 1;
    }
    let trees = growing.into_iter().map(|tree| Tree { root: tree.root, branches: tree.branches }).collect();
    Ok(routes.finish(wires, Trees { trees }))
}

/// Routes by their edges, numbered in the order in which they are taken first.
#[derive(Default)]
struct Routes {
    known: BTreeMap<Vec<u32>, u32>,
}

impl Routes {
    fn number(&mut self, route: Vec<u32>) -> u32 {
        let next = u32::try_from(self.known.len()).unwrap_or(u32::MAX);
        *self.known.entry(route).or_insert(next)
    }

    /// The graph of all routes, and trees on it.
    fn finish(self, wires: &Wires, mut trees: Trees) -> RoutedTrees {
        let tails = tails(&wires.graph);
        let ends = |route: &[u32]| {
            let tail = route.first().map_or(0, |&edge| tails[edge as usize]);
            (tail, route.last().map_or(0, |&edge| wires.graph.head(edge)))
        };
        // Edges are numbered by tail, and so are those of the network that routes begin with.
        let mut sorted = vec![0; self.known.len()];
        let mut routes = Vec::with_capacity(self.known.len());
        for (place, (route, number)) in (0..).zip(self.known) {
            sorted[number as usize] = place;
            routes.push(route);
        }
        for branch in trees.trees.iter_mut().flat_map(|tree| &mut tree.branches) {
            branch.edge = sorted[branch.edge as usize];
        }
        let graph = Digraph::new(wires.ranks, routes.iter().map(|route| ends(route)));
        let graph = graph.expect("routes lead from rank to rank, and there are fewer than places of trees");
        RoutedTrees { trees, graph, routes }
    }
}

/// Ways through switches over parts of links that are free.
struct Search<'a> {
    wires: &'a Wires,
    /// By node: its edges to switches, wider ones first.
    to_switches: Vec<Vec<u32>>,
    /// By switch and rank as a node: its edges to ranks and to switches, wider ones first.
    of_switches: Vec<Vec<u32>>,
    /// By edge, what is left of it in this step.
    free: Vec<u32>,
    /// By switch: the last search that came there, and the edge by which it did.
    seen: Vec<(u64, u32)>,
    tails: Vec<u32>,
    searches: u64,
}

impl<'a> Search<'a> {
    fn new(wires: &'a Wires) -> Self {
        let graph = &wires.graph;
        let edges_of = |node: u32| {
            let mut edges: Vec<u32> = graph.out_edges(node).collect();
            edges.sort_by_key(|&edge| std::cmp::Reverse(wires.parts[edge as usize]));
            edges
        };
        let to_switches = |node: u32| edges_of(node).into_iter().filter(|&edge| graph.head(edge) >= wires.ranks);
        Self {
            wires,
            to_switches: (0..wires.ranks).map(|rank| to_switches(rank).collect()).collect(),
            of_switches: (wires.ranks..graph.order()).map(edges_of).collect(),
            free: Vec::new(),
            seen: vec![(0, 0); (graph.order() - wires.ranks) as usize],
            tails: tails(graph),
            searches: 0,
        }
    }

    /// The shortest free way from a rank through switches to one that is not in a tree; none if there is none.
    fn way(&mut self, from: u32, is_in: &[bool]) -> Option<Vec<u32>> {
        let ranks = self.wires.ranks;
        let mut edges: VecDeque<u32> = self.to_switches[from as usize].iter().copied().collect();
        self.searches += 1;
        while let Some(edge) = edges.pop_front() {
            let head = self.wires.graph.head(edge);
            if self.free[edge as usize] == 0 {
                continue;
            }
            if head < ranks {
                if is_in[head as usize] {
                    continue;
                }
                return Some(self.back(from, edge));
            }
            let switch = (head - ranks) as usize;
            if self.seen[switch].0 != self.searches {
                self.seen[switch] = (self.searches, edge);
                edges.extend(&self.of_switches[switch]);
            }
        }
        None
    }

    /// The edges of a way that ends with this one.
    fn back(&self, from: u32, last: u32) -> Vec<u32> {
        let mut way = vec![last];
        let mut tail = self.tails[last as usize];
        while tail != from {
            let edge = self.seen[(tail - self.wires.ranks) as usize].1;
            way.push(edge);
            tail = self.tails[edge as usize];
        }
        way.reverse();
        way
    }
}

/// A tree that does not come to all ranks yet.
struct Growing<'a> {
    wires: &'a Wires,
    root: u32,
    is_in: Vec<bool>,
    missing: u32,
    branches: Vec<Branch>,
    /// Ranks that were in it before this step and lead to others, in the order in which they came.
    live: Vec<u32>,
    /// Ranks that came in this step.
    new: Vec<u32>,
    /// Where to look on in this step: a place in `live`, and one of its edges. What was passed cannot be of use
    /// before the next.
    cursor: (usize, usize),
}

impl<'a> Growing<'a> {
    fn new(wires: &'a Wires, root: u32) -> Self {
        let mut is_in = vec![false; wires.ranks as usize];
        if let Some(is_in) = is_in.get_mut(root as usize) {
            *is_in = true;
        }
        let missing = wires.ranks.saturating_sub(1);
        Self { wires, root, is_in, missing, branches: Vec::new(), live: vec![root], new: Vec::new(), cursor: (0, 0) }
    }

    /// Takes a way that other trees have left a part of in this step; false if there is none, or no need of another.
    fn grow(&mut self, step: u32, search: &mut Search<'_>, routes: &mut Routes) -> bool {
        let graph = &self.wires.graph;
        while let Some(&node) = self.live.get(self.cursor.0) {
            let (heads, first) = (graph.out(node), graph.out_edges(node).start);
            let mut direct = (first..).zip(heads).enumerate().skip(self.cursor.1);
            let found = direct.find(|&(_, (edge, &head))| {
                let is_new = self.is_in.get(head as usize).is_some_and(|is_in| !is_in);
                is_new && search.free[edge as usize] > 0
            });
            self.cursor.1 = found.as_ref().map_or(heads.len(), |(place, _)| place + 1);
            let way = found.map(|(_, (edge, _))| vec![edge]).or_else(|| search.way(node, &self.is_in));
            if let Some(way) = way {
                self.take(step, way, search, routes);
                return self.missing > 0;
            }
            self.cursor = (self.cursor.0 + 1, 0);
        }
        false
    }

    fn take(&mut self, step: u32, way: Vec<u32>, search: &mut Search<'_>, routes: &mut Routes) {
        let Some(head) = way.last().map(|&edge| self.wires.graph.head(edge)) else { return };
        way.iter().for_each(|&edge| search.free[edge as usize] -= 1);
        self.is_in[head as usize] = true;
        self.missing -= 1;
        self.branches.push(Branch { step, edge: routes.number(way) });
        self.new.push(head);
    }

    fn end_step(&mut self) {
        let Self { wires, is_in, live, new, .. } = self;
        live.append(new);
        // A rank beside a switch may reach every other.
        let leads_on = |head: &u32| is_in.get(*head as usize).is_none_or(|is_in| !is_in);
        live.retain(|&node| wires.graph.out(node).iter().any(leads_on));
        self.cursor = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use canopy_optimize::Never;
    use proptest::prelude::*;

    use super::*;
    use crate::Family;
    use crate::multiport::judge::judge_trees;
    use crate::multiport::tests::{graph, relabelled};

    /// Every node is a rank, and every link one part.
    fn plain(graph: Digraph) -> Wires {
        Wires { ranks: graph.order(), parts: vec![1; graph.edge_count() as usize], graph }
    }

    #[test]
    fn every_family_gets_trees_without_contention() {
        for family in [
            Family::Kautz { d: 2, n: 2 },
            Family::Kautz { d: 3, n: 3 },
            Family::Dfc2 { rows: 4, columns: 6 },
            Family::Hypercube { n: 5 },
            Family::Ring { n: 9, one_way: false },
        ] {
            let wires = plain(graph(family));
            let roots: Vec<u32> = (0..wires.ranks).collect();
            let found = greedy_trees(&wires, &roots, &Never).unwrap();
            assert_eq!(judge_trees(&found.graph, &found.trees), Ok(1));
            // No rank can get the shares of all others over its links any sooner.
            let degree = wires.graph.edge_count() / wires.ranks;
            assert!(found.trees.step_count() >= (wires.ranks - 1).div_ceil(degree));
        }
    }

    #[test]
    fn nodes_out_of_reach_are_named() {
        let wires = plain(Digraph::new(4, [(0, 1), (1, 0), (2, 3), (3, 2)]).unwrap());
        let unreachable = GreedyError::Unreachable(Unreachable { root: 1, node: 2 });
        assert_eq!(greedy_trees(&wires, &[1], &Never), Err(unreachable));
        assert_eq!(greedy_trees(&wires, &[1], &|| true), Err(GreedyError::Stopped));
    }

    /// What all trees take of each edge in each step, at most, compared with its parts.
    fn require_free(wires: &Wires, found: &RoutedTrees) {
        let mut taken: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        for branch in found.trees.trees.iter().flat_map(|tree| &tree.branches) {
            for &edge in &found.routes[branch.edge as usize] {
                *taken.entry((branch.step, edge)).or_default() += 1;
            }
        }
        assert!(taken.iter().all(|(&(_, edge), &count)| count <= wires.parts[edge as usize]));
    }

    /// One rank after the other behind a switch: with one part of each port, all ports are busy in all steps.
    #[test]
    fn switches_are_passed() {
        let edges = (0..4).flat_map(|rank| [(rank, 4), (4, rank)]);
        let wires = Wires { graph: Digraph::new(5, edges).unwrap(), ranks: 4, parts: vec![1; 8] };
        let found = greedy_trees(&wires, &[0, 1, 2, 3], &Never).unwrap();
        assert_eq!(judge_trees(&found.graph, &found.trees).map(|_| found.trees.step_count()), Ok(3));
        require_free(&wires, &found);
        let wires = Wires { parts: vec![3; 8], ..wires };
        assert_eq!(greedy_trees(&wires, &[0, 1, 2, 3], &Never).unwrap().trees.step_count(), 1);
        assert_eq!(greedy_trees(&wires, &[0], &Never).unwrap().trees.step_count(), 1);
    }

    proptest! {
        #[test]
        fn trees_are_right_on_any_connected_graph(n in 3_u64..20, d in 2_u64..4, seed in any::<u64>()) {
            let wires = plain(relabelled(&graph(Family::GenKautz { n: n.max(d + 1), d }), seed));
            let roots: Vec<u32> = (0..wires.ranks).step_by(2).collect();
            let found = greedy_trees(&wires, &roots, &Never).unwrap();
            prop_assert_eq!(judge_trees(&found.graph, &found.trees), Ok(1));
        }

        #[test]
        fn links_of_any_number_of_parts_are_never_overloaded(
            n in 4_u64..20, d in 2_u64..4, switches in 1_u32..4, seed in any::<u64>(), parts in 1_u32..5,
        ) {
            let graph = relabelled(&graph(Family::GenKautz { n: n.max(d + 1), d }), seed);
            let count = graph.edge_count();
            let parts = (0..count).map(|edge| 1 + edge % parts).collect();
            let wires = Wires { ranks: graph.order() - switches.min(graph.order() - 2), parts, graph };
            let roots: Vec<u32> = (0..wires.ranks).collect();
            let found = greedy_trees(&wires, &roots, &Never).unwrap();
            prop_assert!(judge_trees(&found.graph, &found.trees).is_ok());
            require_free(&wires, &found);
        }
    }
}
