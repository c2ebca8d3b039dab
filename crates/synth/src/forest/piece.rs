//! The problems that a network falls into along tight boundaries, and their solutions.
//!
//! The piece of a cluster has its own ranks and switches, one terminal for each cluster in it, and one, z, for all that
//! is outside. Each boundary link of the cluster is there as a link of z. Trees from outside enter as many as z has
//! capacity for, each once, so after the switches are gone z is, too: each tree that it sends to a node is one more
//! tree rooted there.

mod boxes;
mod order;
mod pairs;
mod planes;
mod star;

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use canopy_optimize::{FlowUnit, Stop};
use canopy_topology::LinkIndex;

use crate::error::SynthesisError;
use crate::forest::clusters::Cluster;
use crate::forest::logical::{LogicalGraph, Strand};
use crate::forest::network::{Network, Way};
use crate::forest::packed::{Packed, packed};
use crate::forest::packing::PackingChoice;
use crate::forest::pattern::Spread;
use crate::forest::switches::remove_switches;
use crate::forest::trim::Tight;
use crate::forest::{ASK_INTERVAL, ask};
use crate::progress::{Progress, Silent, Stage};
pub(super) use boxes::Machine;

/// Different pieces up to which each is packed several times for better trees. More of them take long enough already:
/// where every rank has a share of another size no two pieces are equal.
const PACKED_AGAIN_MAX: usize = 8;

/// What a terminal of a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Terminal {
    Rank(u32),
    /// The position of a piece.
    Piece(usize),
}

/// One of the problems, in numbers of its own, and where it is in the network.
#[derive(Clone)]
pub(super) struct Piece<'a, C> {
    /// Terminals by their lowest node, z last if there is an outside, then switches.
    network: Network<'a>,
    capacities: Vec<C>,
    demands: Vec<C>,
    /// By terminal, z excepted.
    pub(super) terminals: Vec<Terminal>,
    /// What the links are in the network.
    pub(super) links: Vec<LinkIndex>,
    /// By link that leads out of, or into, a terminal that is a piece: its number in that piece.
    pub(super) outward: Vec<usize>,
    pub(super) inward: Vec<usize>,
    /// The piece around it, and which terminal of that it is.
    pub(super) around: Option<(usize, u32)>,
}

/// Where a rank is a terminal.
pub(super) type Home = (usize, u32);

/// What two pieces have in common if one solution serves both.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct Signature {
    terminal_count: u32,
    node_count: u32,
    has_outside: bool,
    boxes: Vec<Option<u32>>,
    links: Vec<Way>,
    numbers: Vec<u128>,
}

/// Takes a network apart. Pieces of clusters in their order, then that of all that is left; homes by rank.
///
/// O((nodes + links) · depth of nesting).
pub(super) fn pieces<'a, C: FlowUnit>(
    network: &Network<'a>,
    demands: &[C],
    tight: &Tight<C>,
    stop: &dyn Stop,
) -> Result<(Vec<Piece<'a, C>>, Vec<Home>), SynthesisError> {
    let mut builders = builders(network, demands, &tight.clusters, stop)?;
    let mut homes: Vec<Home> = vec![(0, 0); network.node_count as usize];
    for (position, builder) in builders.iter().enumerate() {
        for (&node, number) in builder.own_nodes.iter().zip(&builder.own_numbers) {
            homes[node as usize] = (position, *number);
        }
    }
    for (link, place) in network.links.iter().zip(0_u32..) {
        if place % ASK_INTERVAL == 0 {
            ask(stop)?;
        }
        let capacity = tight.capacities[place as usize];
        if capacity == C::ZERO {
            continue;
        }
        let (mut from, mut to) = (homes[link.from as usize], homes[link.to as usize]);
        let mut push = |position: usize, from: u32, to: u32| {
            let way = Way { from, to, latency_ns: link.latency_ns };
            builders[position].links.push((way, LinkIndex::new(place), capacity));
            builders[position].around
        };
        // From inside out to the piece that holds both ends. Clusters come before what is around them, so the earlier
        // one is not it.
        let outwards = "the last piece has everything in it";
        while from.0 != to.0 {
            if from.0 < to.0 {
                from = push(from.0, from.1, OUTSIDE).expect(outwards);
            } else {
                to = push(to.0, OUTSIDE, to.1).expect(outwards);
            }
        }
        push(from.0, from.1, to.1);
    }
    homes.truncate(network.terminal_count as usize);
    let mut pieces: Vec<Piece<'a, C>> = builders.into_iter().map(Builder::finish).collect();
    order::put_in_order(&mut pieces, &mut homes, stop)?;
    number_boundaries(&mut pieces, stop)?;
    Ok((pieces, homes))
}

/// Looks up what links of a piece are called in the pieces inside.
fn number_boundaries<C>(pieces: &mut [Piece<'_, C>], stop: &dyn Stop) -> Result<(), SynthesisError> {
    let mut numbers: HashMap<(usize, LinkIndex), usize> = HashMap::new();
    // What is around a piece comes after it.
    for (position, piece) in pieces.iter_mut().enumerate() {
        ask(stop)?;
        let inner = |terminal: u32| match piece.terminals.get(terminal as usize) {
            Some(&Terminal::Piece(inner)) => Some(inner),
            _ => None,
        };
        for (local, (way, &link)) in piece.network.links.iter().zip(&piece.links).enumerate() {
            let number = |end: u32| inner(end).and_then(|inner| numbers.get(&(inner, link)).copied());
            let (outward, inward) = (number(way.from), number(way.to));
            (piece.outward[local], piece.inward[local]) = (outward.unwrap_or_default(), inward.unwrap_or_default());
        }
        let Some(z) = piece.network.outside else { continue };
        let boundary = piece.network.links.iter().zip(&piece.links).enumerate();
        let boundary = boundary.filter(|(_, (way, _))| way.from == z || way.to == z);
        numbers.extend(boundary.map(|(local, (_, &link))| ((position, link), local)));
    }
    Ok(())
}

/// The number of z until it is known.
const OUTSIDE: u32 = u32::MAX;

/// A piece on its way.
struct Builder<'a, C> {
    terminals: Vec<Terminal>,
    /// Nodes that are in no inner piece, with their numbers here.
    own_nodes: Vec<u32>,
    own_numbers: Vec<u32>,
    boxes: Vec<Option<u32>>,
    switch_names: Vec<&'a str>,
    /// By terminal, z last.
    demands: Vec<C>,
    has_outside: bool,
    links: Vec<(Way, LinkIndex, C)>,
    around: Option<(usize, u32)>,
}

/// Pieces without links.
fn builders<'a, C: FlowUnit>(
    network: &Network<'a>,
    demands: &[C],
    clusters: &[Cluster],
    stop: &dyn Stop,
) -> Result<Vec<Builder<'a, C>>, SynthesisError> {
    let mut is_outermost = vec![true; clusters.len()];
    clusters.iter().flat_map(|cluster| &cluster.children).for_each(|&child| is_outermost[child] = false);
    let outermost: Vec<usize> = (0..clusters.len()).filter(|&cluster| is_outermost[cluster]).collect();
    let all: Vec<u32> = (0..network.node_count).collect();
    let sets = clusters.iter().map(|cluster| (&cluster.nodes, &cluster.children, true));
    let mut is_taken = vec![false; network.node_count as usize];
    let mut around = vec![None; clusters.len() + 1];
    let mut builders: Vec<Builder<'a, C>> = Vec::new();
    let total = demands.iter().fold(C::ZERO, |sum, &demand| sum + demand);
    for (position, (nodes, children, has_outside)) in sets.chain([(&all, &outermost, false)]).enumerate() {
        ask(stop)?;
        let own_nodes: Vec<u32> = nodes.iter().copied().filter(|&node| !is_taken[node as usize]).collect();
        own_nodes.iter().for_each(|&node| is_taken[node as usize] = true);
        let first_switch = own_nodes.partition_point(|&node| node < network.terminal_count);
        let ranks = own_nodes[..first_switch].iter().map(|&rank| (rank, Terminal::Rank(rank)));
        let inner = children.iter().map(|&child| (clusters[child].nodes[0], Terminal::Piece(child)));
        let mut by_node: Vec<(u32, Terminal)> = ranks.chain(inner).collect();
        by_node.sort_unstable_by_key(|&(node, _)| node);
        let mut builder = Builder {
            terminals: Vec::new(),
            own_nodes: Vec::new(),
            own_numbers: Vec::new(),
            boxes: Vec::new(),
            switch_names: Vec::new(),
            demands: Vec::new(),
            has_outside,
            links: Vec::new(),
            around: None,
        };
        for ((_, terminal), number) in by_node.into_iter().zip(0_u32..) {
            builder.terminals.push(terminal);
            let (demand, in_box) = match terminal {
                Terminal::Rank(rank) => {
                    builder.own_nodes.push(rank);
                    builder.own_numbers.push(number);
                    (demands[rank as usize], network.boxes[rank as usize])
                }
                Terminal::Piece(child) => {
                    around[child] = Some((position, number));
                    let inner: &[u32] = &clusters[child].nodes;
                    (inner.iter().fold(C::ZERO, |sum, &node| sum + demands[node as usize]), None)
                }
            };
            builder.demands.push(demand);
            builder.boxes.push(in_box);
        }
        if has_outside {
            builder.demands.push(builder.demands.iter().fold(total, |rest, &demand| rest - demand));
            builder.boxes.push(None);
        }
        let terminal_count = u32::try_from(builder.demands.len()).expect("no more than nodes");
        for (&switch, number) in own_nodes[first_switch..].iter().zip(terminal_count..) {
            builder.own_nodes.push(switch);
            builder.own_numbers.push(number);
            builder.switch_names.push(network.switch_name(switch));
        }
        builders.push(builder);
    }
    for (builder, around) in builders.iter_mut().zip(around) {
        builder.around = around;
    }
    Ok(builders)
}

impl<'a, C: FlowUnit> Builder<'a, C> {
    fn finish(mut self) -> Piece<'a, C> {
        let terminal_count = u32::try_from(self.demands.len()).expect("no more than nodes");
        let node_count = terminal_count + u32::try_from(self.switch_names.len()).expect("no more than nodes");
        for (way, ..) in &mut self.links {
            for end in [&mut way.from, &mut way.to] {
                *end = if *end == OUTSIDE { terminal_count - 1 } else { *end };
            }
        }
        // Of parallel links the one with the lower number first, as they come: so equal clusters make equal pieces.
        self.links.sort_by_key(|(way, ..)| (way.from, way.to));
        self.demands.resize(node_count as usize, C::ZERO);
        let network = Network {
            terminal_count,
            node_count,
            outside: self.has_outside.then(|| terminal_count - 1),
            links: self.links.iter().map(|&(way, ..)| way).collect(),
            boxes: in_order_of_first(self.boxes),
            switch_names: self.switch_names,
        };
        Piece {
            outward: vec![0; self.links.len()],
            inward: vec![0; self.links.len()],
            network,
            capacities: self.links.iter().map(|&(_, _, capacity)| capacity).collect(),
            demands: self.demands,
            terminals: self.terminals,
            links: self.links.iter().map(|&(_, link, _)| link).collect(),
            around: self.around,
        }
    }
}

/// Names replaced by numbers, in the order in which each comes first.
fn in_order_of_first(mut names: Vec<Option<u32>>) -> Vec<Option<u32>> {
    let mut numbers: BTreeMap<u32, u32> = BTreeMap::new();
    for name in names.iter_mut().flatten() {
        let count = u32::try_from(numbers.len()).expect("no more than nodes");
        *name = *numbers.entry(*name).or_insert(count);
    }
    names
}

/// Trees of a piece on routes of it, by root.
pub(super) struct Solution<C> {
    /// By terminal, z excepted: trees rooted there, those that come from outside included.
    pub(super) trees: Vec<Vec<PieceTree<C>>>,
    /// All strands of all edges.
    pub(super) strands: Vec<Strand<C>>,
    /// By link: strands by which it leads from outside to a terminal, with that terminal; empty for others.
    pub(super) entries: Vec<Vec<(u32, usize)>>,
    /// By link: strands by which it leads outside, with the terminal they start at; empty for others.
    pub(super) exits: Vec<Vec<(u32, usize)>>,
}

impl<C: FlowUnit> Solution<C> {
    /// Makes so many trees of each.
    fn multiply(&mut self, times: u128) {
        let multiplied = |amount: C| {
            let product = amount.to_u128() * times;
            C::try_from_u128(product).expect("no more than the numbers that were divided")
        };
        if times > 1 {
            self.trees.iter_mut().flatten().for_each(|tree| tree.weight = multiplied(tree.weight));
            self.strands.iter_mut().for_each(|strand| strand.amount = multiplied(strand.amount));
        }
    }
}

/// Equal trees of a piece.
pub(super) struct PieceTree<C> {
    pub(super) weight: C,
    /// Each after the one into its tail.
    pub(super) edges: Vec<PieceEdge>,
}

/// An edge of a tree of a piece, between terminals.
#[derive(Clone)]
pub(super) struct PieceEdge {
    pub(super) tail: u32,
    pub(super) head: u32,
    /// Those that lead from the one to the other.
    pub(super) strands: Range<usize>,
}

/// A piece half way.
enum Begun<'a, C> {
    WithoutSwitches(LogicalGraph<'a, C>),
    Solved(Solution<C>),
}

/// Solves all pieces, equal ones once: by piece, the position of its solution.
///
/// * **In.** Pieces that meet the condition. **Errors.** Stopped; broken if one does not.
pub(super) fn solve<C: FlowUnit>(
    pieces: &[Piece<'_, C>],
    unit: u128,
    choice: PackingChoice,
    stop: &dyn Stop,
    progress: &dyn Progress,
) -> Result<(Vec<usize>, Vec<Solution<C>>), SynthesisError> {
    let mut known: HashMap<Signature, usize> = HashMap::new();
    let mut different: Vec<&Piece<'_, C>> = Vec::new();
    let mut solution_of = Vec::new();
    for piece in pieces {
        ask(stop)?;
        let solution = *known.entry(piece.signature()).or_insert(different.len());
        if solution == different.len() {
            different.push(piece);
        }
        solution_of.push(solution);
    }
    let total = different.len() as u64;
    let whole = unit;
    let different: Vec<(Piece<'_, C>, u128)> = different.into_iter().map(|piece| piece.in_units(unit)).collect();
    let mut begun = Vec::new();
    for (done, (piece, divided_by)) in (0..).zip(&different) {
        progress.report(Stage::Switches, done, total);
        let mut written = piece.solve_star(whole / divided_by, stop)?;
        if written.is_none() {
            written = piece.solve_planes(whole / divided_by, stop)?;
        }
        if written.is_none() {
            written = piece.solve_pairs(stop)?;
        }
        if let Some(solution) = written {
            begun.push(Begun::Solved(solution));
            continue;
        }
        let mut graph = LogicalGraph::new(&piece.network, &piece.capacities, stop)?;
        remove_switches(&piece.network, &mut graph, &piece.demands, Spread::All, stop, &Silent)?;
        begun.push(Begun::WithoutSwitches(graph));
    }
    progress.report(Stage::Switches, total, total);
    let mut solutions = Vec::new();
    let choice = if different.len() > PACKED_AGAIN_MAX { PackingChoice::First } else { choice };
    for (((piece, unit), begun), done) in different.iter().zip(begun).zip(0..) {
        progress.report(Stage::Trees, done, total);
        let mut solution = match begun {
            Begun::Solved(solution) => solution,
            Begun::WithoutSwitches(graph) => piece.pack(graph, choice, stop)?,
        };
        solution.multiply(*unit);
        solutions.push(solution);
    }
    progress.report(Stage::Trees, total, total);
    Ok((solution_of, solutions))
}

impl<C: FlowUnit> Piece<'_, C> {
    pub(super) fn signature(&self) -> Signature {
        Signature {
            terminal_count: self.network.terminal_count,
            node_count: self.network.node_count,
            has_outside: self.network.outside.is_some(),
            boxes: self.network.boxes.clone(),
            links: self.network.links.clone(),
            numbers: self.capacities.iter().chain(&self.demands).map(|number| number.to_u128()).collect(),
        }
    }

    /// The piece with all numbers divided by `unit`, if they are multiples of it; and by what they were divided.
    fn in_units(&self, unit: u128) -> (Self, u128) {
        let mut numbers = self.capacities.iter().chain(&self.demands).map(|number| number.to_u128());
        let unit = if unit > 1 && numbers.all(|number| number.is_multiple_of(unit)) { unit } else { 1 };
        let divided = |numbers: &[C]| {
            let divided = |number: &C| C::try_from_u128(number.to_u128() / unit).expect("no more than the number");
            numbers.iter().map(divided).collect()
        };
        let mut piece = self.clone();
        (piece.capacities, piece.demands) = (divided(&self.capacities), divided(&self.demands));
        (piece, unit)
    }

    /// Packs the trees once there are no switches left.
    fn pack<'a>(
        &'a self,
        graph: LogicalGraph<'a, C>,
        choice: PackingChoice,
        stop: &dyn Stop,
    ) -> Result<Solution<C>, SynthesisError> {
        let inner_count = u32::try_from(self.terminals.len()).expect("no more than nodes");
        let (capacities, demands) = (&self.capacities, &self.demands);
        let Packed { graph, grower, trees: packed } =
            packed(&self.network, graph, capacities, demands, choice, stop, &Silent)?;

        let (mut strands, mut ranges) = (Vec::new(), BTreeMap::new());
        let (mut entries, mut exits) = (vec![Vec::new(); self.links.len()], vec![Vec::new(); self.links.len()]);
        for ((from, to), of_edge) in graph.into_strands(stop)? {
            ranges.insert((from, to), strands.len()..strands.len() + of_edge.len());
            for strand in of_edge {
                if strands.len().is_multiple_of(ASK_INTERVAL as usize) {
                    ask(stop)?;
                }
                if from == inner_count {
                    entries[strand.links[0].index()].push((to, strands.len()));
                } else if to == inner_count {
                    exits[strand.links[strand.links.len() - 1].index()].push((from, strands.len()));
                }
                strands.push(strand);
            }
        }
        let mut trees: Vec<Vec<PieceTree<C>>> = (0..inner_count).map(|_| Vec::new()).collect();
        for tree in &packed {
            ask(stop)?;
            let edge = |&edge: &usize| {
                let (tail, head) = grower.ends(edge);
                PieceEdge { tail, head, strands: ranges.get(&(tail, head)).cloned().unwrap_or_default() }
            };
            let edges = tree.edges.iter().map(edge).collect();
            trees[tree.root as usize].push(PieceTree { weight: tree.weight, edges });
        }
        Ok(Solution { trees, strands, entries, exits })
    }
}
