//! Translations of a network: a group of automorphisms of which exactly one moves a rank to any other.
//!
//! Tori, rings, hypercubes and other Cayley graphs of abelian groups have translations that commute. They are searched for
//! in the network itself, as automorphisms that move every rank to a neighbour of its own, and every one found is verified.
//! Where there are none, those of other groups are looked for (`regular`).

mod grid;
mod regular;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use canopy_optimize::{Stop, Stopped};
use canopy_topology::Topology;

use crate::reach::ask;

/// Arcs read between two looks at whether to stop.
const ASK_INTERVAL: usize = 1 << 12;

/// Pairs of values compared per search, at most: some tenths of a second.
const WORK_MAX: usize = 20_000_000;
/// Values tried per automorphism before the search is given up.
const GUESSES_MAX: usize = 400;
/// A table of all translations takes 4 bytes per pair of ranks.
const RANKS_MAX: usize = 1 << 12;

/// All translations of a network without switches.
pub(crate) struct Translations {
    /// By the rank that rank 0 is moved to: where each rank goes.
    pub(crate) image: Vec<Vec<u32>>,
}

/// The box of each rank, numbered in the order of first ranks.
pub(crate) fn boxes(topology: &Topology) -> Vec<Option<u32>> {
    let mut boxes = canopy_canonical::boxes(topology);
    boxes.truncate(topology.rank_count() as usize);
    boxes
}

/// What an arc has: its capacity and that of its reverse.
type Label = (u128, u128);

/// Finds translations; `None` if there are none, or the search would take long.
///
/// * **In.** Arcs between ranks with what they can carry, several between the same two added up; `boxes`: of each rank,
///   where known. **Errors.** Stopped. **Cost.** That of [`commuting`] and, where these are not found, of
///   [`regular::regular_group`].
pub(crate) fn translations(
    rank_count: usize,
    arcs: impl Iterator<Item = (u32, u32, u128)>,
    boxes: &[Option<u32>],
    stop: &dyn Stop,
) -> Result<Option<Translations>, Stopped> {
    let Some(graph) = Graph::new(rank_count, arcs, stop)? else { return Ok(None) };
    if let Some(image) = commuting(&graph, boxes, stop)? {
        return Ok(Some(Translations { image }));
    }
    Ok(regular::regular_group(&graph, stop)?.map(|image| Translations { image }))
}

/// Finds translations that commute: by the rank that rank 0 is moved to, where each rank goes.
///
/// The group they generate is abelian and transitive, hence regular: exactly one translation moves rank 0 to each rank.
/// Where ranks are in boxes of one size, those that move every rank to the next of its box, or to its counterpart in
/// the next box, are tried before any search; else, in a grid whose lines are joined all with all, those along its lines.
///
/// * **Errors.** Stopped. **Cost.** O(links · degree²) per generator, of which there are at most as many as neighbours.
fn commuting(graph: &Graph, boxes: &[Option<u32>], stop: &dyn Stop) -> Result<Option<Vec<Vec<u32>>>, Stopped> {
    let mut generators = verified(graph, turns_of_boxes(boxes), stop)?;
    if generators.is_empty() {
        generators = verified(graph, grid::turns(graph), stop)?;
    }
    let mut image = orbit(&generators, graph.rank_count(), stop)?;
    for &neighbour in &graph.neighbours[0] {
        if image.contains_key(&neighbour) {
            continue;
        }
        let mut search = Search { graph, generators: &generators, guesses: 0, stop };
        let Some(generator) = search.find(neighbour)? else { return Ok(None) };
        generators.push(generator);
        image = orbit(&generators, graph.rank_count(), stop)?;
    }
    Ok((0_u32..).take(graph.rank_count()).map(|rank| image.remove(&rank)).collect())
}

/// Those that keep all arcs. O(links · log degree) each.
fn verified(graph: &Graph, mut turns: Vec<Vec<u32>>, stop: &dyn Stop) -> Result<Vec<Vec<u32>>, Stopped> {
    ask(stop)?;
    turns.retain(|turn| graph.is_automorphism(turn));
    Ok(turns)
}

/// Where ranks are in boxes of one size: to the next rank in the box, and to the same place in the next box. They commute.
fn turns_of_boxes(boxes: &[Option<u32>]) -> Vec<Vec<u32>> {
    let mut members: Vec<Vec<u32>> = Vec::new();
    for (rank, number) in (0_u32..).zip(boxes) {
        // Boxes are numbered in the order of their first ranks.
        let Some(number) = number.map(|number| number as usize) else { return Vec::new() };
        members.resize_with(members.len().max(number + 1), Vec::new);
        members[number].push(rank);
    }
    let size = members.first().map_or(0, Vec::len);
    if members.iter().any(|ranks| ranks.len() != size) {
        return Vec::new();
    }
    let (mut next, mut across) = (vec![0; boxes.len()], vec![0; boxes.len()]);
    for (number, ranks) in members.iter().enumerate() {
        let other = &members[(number + 1) % members.len()];
        for (place, &rank) in ranks.iter().enumerate() {
            next[rank as usize] = ranks[(place + 1) % size];
            across[rank as usize] = other[place];
        }
    }
    vec![next, across]
}

/// Where the products of generators move rank 0, each with one that does. O(ranks) per rank reached.
fn orbit(generators: &[Vec<u32>], rank_count: usize, stop: &dyn Stop) -> Result<HashMap<u32, Vec<u32>>, Stopped> {
    let identity: Vec<u32> = (0_u32..).take(rank_count).collect();
    let mut image = HashMap::from([(0, identity)]);
    let mut waiting = vec![0];
    while let Some(rank) = waiting.pop() {
        ask(stop)?;
        for generator in generators {
            let reached = generator[rank as usize];
            if !image.contains_key(&reached) {
                let product = image[&rank].iter().map(|&moved| generator[moved as usize]).collect();
                image.insert(reached, product);
                waiting.push(reached);
            }
        }
    }
    Ok(image)
}

/// Ranks with labelled arcs.
struct Graph {
    /// By rank, sorted.
    neighbours: Vec<Vec<u32>>,
    /// By rank and neighbour, the number of the arc's label.
    kinds: Vec<Vec<u32>>,
    labels: Vec<Label>,
}

impl Graph {
    /// `None` for networks with arcs of one direction, too many ranks, or such as differ at a glance.
    fn new(
        rank_count: usize,
        arcs: impl Iterator<Item = (u32, u32, u128)>,
        stop: &dyn Stop,
    ) -> Result<Option<Self>, Stopped> {
        if !(2..=RANKS_MAX).contains(&rank_count) {
            return Ok(None);
        }
        let mut around: Vec<HashMap<u32, Label>> = vec![HashMap::new(); rank_count];
        for (position, (from, to, capacity)) in arcs.filter(|&(.., capacity)| capacity > 0).enumerate() {
            if position.is_multiple_of(ASK_INTERVAL) {
                ask(stop)?;
            }
            around[from as usize].entry(to).or_default().0 += capacity;
            around[to as usize].entry(from).or_default().1 += capacity;
        }
        ask(stop)?;
        let is_regular = around.iter().all(|arcs| arcs.len() == around[0].len());
        let is_two_way = || around.iter().flat_map(HashMap::values).all(|&(there, back)| there > 0 && back > 0);
        Ok((is_regular && is_two_way()).then(|| Self::labelled(around)))
    }

    /// By rank, its neighbours and the labels of arcs to them.
    fn labelled(around: Vec<HashMap<u32, Label>>) -> Self {
        let labels: BTreeSet<Label> = around.iter().flat_map(HashMap::values).copied().collect();
        let numbers: BTreeMap<Label, u32> = labels.iter().copied().zip(0..).collect();
        let (mut neighbours, mut kinds) = (Vec::new(), Vec::new());
        for arcs in around {
            let mut arcs: Vec<(u32, u32)> = arcs.into_iter().map(|(to, label)| (to, numbers[&label])).collect();
            arcs.sort_unstable();
            let (own, kind): (Vec<u32>, Vec<u32>) = arcs.into_iter().unzip();
            neighbours.push(own);
            kinds.push(kind);
        }
        Self { neighbours, kinds, labels: labels.into_iter().collect() }
    }

    fn rank_count(&self) -> usize {
        self.neighbours.len()
    }

    /// The number of the label of an arc. O(log degree).
    fn kind(&self, from: u32, to: u32) -> Option<u32> {
        let place = self.neighbours[from as usize].binary_search(&to).ok()?;
        Some(self.kinds[from as usize][place])
    }

    fn label(&self, from: u32, to: u32) -> Option<Label> {
        self.kind(from, to).map(|kind| self.labels[kind as usize])
    }

    fn is_automorphism(&self, image: &[u32]) -> bool {
        let mut is_hit = vec![false; image.len()];
        image.iter().for_each(|&rank| is_hit[rank as usize] = true);
        let keeps = |((around, kinds), &moved): ((&Vec<u32>, &Vec<u32>), &u32)| {
            around.iter().zip(kinds).all(|(&to, &kind)| self.kind(moved, image[to as usize]) == Some(kind))
        };
        is_hit.into_iter().all(|hit| hit) && self.neighbours.iter().zip(&self.kinds).zip(image).all(keeps)
    }
}

/// A search for one automorphism that moves every rank to a neighbour.
struct Search<'a> {
    graph: &'a Graph,
    generators: &'a [Vec<u32>],
    guesses: usize,
    stop: &'a dyn Stop,
}

/// By rank: where it may still go, sorted.
type Domains = Vec<Vec<u32>>;

impl Search<'_> {
    /// One that moves rank 0 to this neighbour and commutes with all generators.
    fn find(&mut self, target: u32) -> Result<Option<Vec<u32>>, Stopped> {
        let degree = self.graph.neighbours[0].len();
        let work = self.graph.rank_count().saturating_mul(degree * degree * degree);
        if work > WORK_MAX {
            return Ok(None);
        }
        let mut domains: Domains = self.graph.neighbours.clone();
        domains[0] = vec![target];
        let all: Vec<u32> = (0_u32..).take(domains.len()).collect();
        let mut waiting = vec![(domains, all)];
        while let Some((mut domains, changed)) = waiting.pop() {
            self.guesses += 1;
            if self.guesses > GUESSES_MAX {
                return Ok(None);
            }
            if !self.narrow(&mut domains, changed)? {
                continue;
            }
            let Some(open) = domains.iter().position(|domain| domain.len() > 1) else {
                let image: Vec<u32> = domains.into_iter().flatten().collect();
                if self.graph.is_automorphism(&image) && self.commutes(&image) {
                    return Ok(Some(image));
                }
                continue;
            };
            for &value in domains[open].iter().rev() {
                let mut guess = domains.clone();
                guess[open] = vec![value];
                waiting.push((guess, (0_u32..).skip(open).take(1).collect()));
            }
        }
        Ok(None)
    }

    fn commutes(&self, image: &[u32]) -> bool {
        let with = |other: &Vec<u32>| {
            image.iter().zip(other).all(|(&moved, &elsewhere)| other[moved as usize] == image[elsewhere as usize])
        };
        self.generators.iter().all(with)
    }

    /// Drops values that no neighbour has a fitting value for, and values taken by another rank, until nothing changes;
    /// `changed` are the ranks to start from. Says whether every rank has a value left.
    fn narrow(&self, domains: &mut Domains, changed: Vec<u32>) -> Result<bool, Stopped> {
        let mut queue = changed;
        let mut is_queued = vec![false; domains.len()];
        queue.iter().for_each(|&rank| is_queued[rank as usize] = true);
        while let Some(rank) = queue.pop() {
            ask(self.stop)?;
            is_queued[rank as usize] = false;
            let values = domains[rank as usize].clone();
            let taken = if let [value] = values[..] { Some(value) } else { None };
            // Whoever may go where this rank goes is a neighbour of that place.
            let rivals = taken.iter().flat_map(|&value| &self.graph.neighbours[value as usize]);
            let rivals: Vec<u32> = rivals.copied().filter(|&rival| rival != rank).collect();
            for &other in self.graph.neighbours[rank as usize].iter().chain(&rivals) {
                let kind = self.graph.kind(rank, other);
                let fits = |&moved: &u32| {
                    taken != Some(moved)
                        && (kind.is_none() || values.iter().any(|&value| self.graph.kind(value, moved) == kind))
                };
                let before = domains[other as usize].len();
                domains[other as usize].retain(fits);
                if domains[other as usize].is_empty() {
                    return Ok(false);
                }
                if domains[other as usize].len() < before && !std::mem::replace(&mut is_queued[other as usize], true) {
                    queue.push(other);
                }
            }
        }
        Ok(true)
    }
}
