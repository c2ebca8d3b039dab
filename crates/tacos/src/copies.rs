//! Copies of chunks to all members: at every moment each node takes, over each free link into it, another chunk that it lacks,
//! the one that most nodes after it lack as well, and among these the one that fewest nodes have.
//!
//! With links that are alike a moment is lost only where a free link leads from a node that has nothing new. Taking what the
//! neighbourhood lacks most keeps neighbours different, hence links useful to the end: on meshes, tori, hypercubes and random
//! regular graphs the lower bound is reached whatever the seed. Links of different speeds obey three more rules (`slow`).
//! Under a group of automorphisms that leave no node in its place, one node of each orbit decides for all.

mod choice;
mod kept;
pub(crate) mod prune;
mod slow;

use std::collections::BTreeMap;

use canopy_optimize::Stop;

use crate::bits::{BitRows, count, positions, words_for};
use crate::chance::Chance;
use crate::network::TimedNetwork;
use crate::sends::{Sends, Sent};
use crate::symmetry::FreeGroup;
use crate::task::{ChunkPlaces, CopyTask};
use choice::{Choice, Holders};
use kept::Kept;
use slow::SlowLinks;

/// The order of the two counts of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Preference {
    /// How many nodes after the receiver lack it; then how many nodes have it.
    Neighbours,
    /// How many nodes have it; then how many nodes after the receiver lack it.
    Holders,
}

/// Errors of scheduling copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum CopyError {
    #[error("node {node} cannot receive chunk {chunk} of node {owner}, because no path leads there")]
    Unreachable { node: u32, chunk: u32, owner: u32 },
    #[error("the task has {task} nodes, the network {network} and the automorphism group {group}")]
    Sizes { task: usize, network: u32, group: usize },
    #[error("the schedule takes longer than 2⁶³ ticks")]
    TooLong,
    #[error("stopped before there was a schedule")]
    Stopped,
}

/// Longest schedule.
pub(crate) const END_MAX: u64 = 1 << 63;
/// In place of a chunk: a link is free for the next.
const FREE: u32 = u32::MAX;
/// Links that are matched with chunks at a time, at most.
const MATCHED_MAX: usize = 64;

/// Sends that bring every chunk to every member, each to each node once at most.
///
/// * **Source.** Our own; the problem is that of Won et al., section 4.
/// * **In.** `group`: of automorphisms of both. **Out.** The same for the same seed.
/// * **Errors.** [`CopyError`].
/// * **Cost.** O(sends · (d·C/64 + min(C/64, 8)·log nodes)) for in-degree d and C chunks, divided by the order of the group but for
///   the marks of chunks; (2 to 3)·nodes·C bits and 16 bytes for each send.
pub fn copy_all(
    network: &TimedNetwork,
    task: &CopyTask,
    group: &FreeGroup,
    seed: u64,
    preference: Preference,
    stop: &dyn Stop,
) -> Result<Sends, CopyError> {
    let sizes = (task.node_count(), network.node_count(), group.representatives().len() * group.order());
    if sizes.0 != sizes.1 as usize || sizes.2 != sizes.0 {
        return Err(CopyError::Sizes { task: sizes.0, network: sizes.1, group: sizes.2 });
    }
    let mut engine = Engine::new(network, task, group, seed, preference);
    engine.run(stop)?;
    Ok(prune::pruned(network, task, engine.sends))
}

/// The same around sends that are decided before: by start, each of a chunk that its sender has then, on a link that is free, each
/// chunk to each node once. They stay as they are, but for those that bring what nobody needs.
///
/// # Errors
/// As [`copy_all`]. O(sends) on top of its cost for what is added.
pub(crate) fn copy_around(
    network: &TimedNetwork,
    task: &CopyTask,
    kept: &[Sent],
    seed: u64,
    preference: Preference,
    stop: &dyn Stop,
) -> Result<Sends, CopyError> {
    let group = FreeGroup::trivial(network.node_count());
    let mut engine = Engine::new(network, task, &group, seed, preference);
    engine.keep(kept);
    engine.run(stop)?;
    let mut sends = engine.sends;
    sends.extend_from_slice(kept);
    sends.sort_unstable();
    Ok(prune::pruned(network, task, sends))
}

/// A link that has something for its receiver.
struct Offer {
    link: u32,
    /// How many chunks it could bring.
    count: u32,
    /// Decides between equal counts.
    tie: u64,
    /// Its row of what it could bring.
    row: usize,
    /// The cluster that it enters with what nobody there has; none: it may bring any of its chunks.
    novel_for: Option<u32>,
    picked: Option<u32>,
}

/// State of the network at one moment.
struct Engine<'a> {
    network: &'a TimedNetwork,
    task: &'a CopyTask,
    group: &'a FreeGroup,
    representatives: Vec<u32>,
    /// By link: the link into a representative that an automorphism moves onto it.
    origin: Vec<u32>,
    /// By link into a representative: where its images begin in `images`; all of them are [`FreeGroup::order`] links.
    images: Vec<u32>,
    place: Vec<usize>,
    chunk_images: ChunkImages<'a>,
    words: usize,
    /// By node, what has arrived.
    has: BitRows,
    /// By node, what has arrived or is under way.
    got: BitRows,
    /// By node, how many chunks are not even under way.
    lacking: Vec<u32>,
    /// The sum of these over representatives that are members.
    missing: u64,
    holders: Holders,
    slow: Option<SlowLinks>,
    choice: Choice,
    chance: Chance,
    /// By link: nothing useful was left for it when it was last looked at.
    is_idle: Vec<bool>,
    /// By link, until when it carries what was sent here.
    busy_until: Vec<u64>,
    kept: Kept,
    events: BTreeMap<u64, Vec<(u32, u32)>>,
    sends: Vec<Sent>,
    offers: Vec<Offer>,
    /// By offer, the chunks that it could bring.
    available: Vec<u64>,
    /// Buffer of one row.
    row: Vec<u64>,
}

impl<'a> Engine<'a> {
    fn new(
        network: &'a TimedNetwork,
        task: &'a CopyTask,
        group: &'a FreeGroup,
        seed: u64,
        preference: Preference,
    ) -> Self {
        let (nodes, chunks) = (network.node_count(), task.chunk_count());
        let representatives = group.representatives();
        let incoming: Vec<u32> = representatives.iter().flat_map(|&node| network.incoming(node)).copied().collect();
        let by_element = group.images_of_links(network, &incoming);
        let mut origin = vec![0; network.links().len()];
        let mut place = vec![0; network.links().len()];
        let mut images = Vec::with_capacity(by_element.len());
        for (index, &link) in incoming.iter().enumerate() {
            place[link as usize] = images.len();
            images.extend(by_element[index..].iter().step_by(incoming.len()));
            images[place[link as usize]..].iter().for_each(|&image| origin[image as usize] = link);
        }
        let first_chunks = task.first_chunks();
        let mut has = BitRows::new(nodes as usize, chunks);
        let mut got = BitRows::new(nodes as usize, chunks);
        let mut holders = Holders::new(chunks, nodes);
        let mut slow = SlowLinks::of(network, chunks);
        for (chunk, &owner) in (0..).zip(task.owners()) {
            has.insert(owner, chunk);
            got.insert(owner, chunk);
            holders.add(chunk);
            if let Some(slow) = &mut slow {
                slow.enter(owner, chunk);
            }
        }
        let lacking: Vec<u32> = first_chunks.windows(2).map(|own| chunks - (own[1] - own[0])).collect();
        let members = representatives.iter().filter(|&&node| task.is_member(node));
        let missing = members.map(|&node| u64::from(lacking[node as usize])).sum();
        Self {
            choice: Choice::new(network, chunks, preference),
            words: words_for(chunks),
            is_idle: vec![false; network.links().len()],
            busy_until: vec![0; network.links().len()],
            kept: Kept::nothing(),
            events: BTreeMap::new(),
            sends: Vec::new(),
            offers: Vec::new(),
            available: Vec::new(),
            row: Vec::new(),
            chance: Chance::new(seed),
            network,
            task,
            group,
            representatives,
            origin,
            images,
            place,
            chunk_images: ChunkImages { group, places: task.places() },
            has,
            got,
            lacking,
            missing,
            holders,
            slow,
        }
    }

    /// Takes over sends that are decided; without automorphisms, which these know nothing of.
    fn keep(&mut self, kept: &[Sent]) {
        for &Sent { start, link, chunk } in kept {
            let timed = self.network.link(link);
            self.got.insert(timed.to, chunk);
            self.lacking[timed.to as usize] -= 1;
            self.missing -= u64::from(self.task.is_member(timed.to));
            self.holders.add(chunk);
            self.enter(timed.to, chunk);
            self.note(link, chunk, start);
        }
        self.kept = Kept::of(self.network, kept);
    }

    /// Sends until all members have all chunks or are sent them.
    fn run(&mut self, stop: &dyn Stop) -> Result<(), CopyError> {
        let mut touched = self.representatives.clone();
        let mut collected: Vec<Vec<u32>> = vec![Vec::new(); self.network.node_count() as usize];
        let mut is_collected = vec![false; self.network.links().len()];
        for &node in &touched {
            collected[node as usize].extend_from_slice(self.network.incoming(node));
            self.network.incoming(node).iter().for_each(|&link| is_collected[link as usize] = true);
        }
        let mut now = 0;
        loop {
            self.chance.shuffle(&mut touched);
            for node in touched.drain(..) {
                if stop.is_requested() {
                    return Err(CopyError::Stopped);
                }
                let mut links = std::mem::take(&mut collected[node as usize]);
                self.serve(node, &links, now);
                links.drain(..).for_each(|link| is_collected[link as usize] = false);
                collected[node as usize] = links;
            }
            if self.missing == 0 {
                return Ok(());
            }
            let Some((time, events)) = self.events.pop_first() else { return Err(self.unreachable()) };
            now = time;
            if now >= END_MAX {
                return Err(CopyError::TooLong);
            }
            let arrivals = events.iter().filter(|&&(_, chunk)| chunk != FREE);
            arrivals.for_each(|&(link, chunk)| self.arrive(link, chunk));
            let mut collect = |link: u32, network: &TimedNetwork| {
                if !std::mem::replace(&mut is_collected[link as usize], true) {
                    let node = network.link(link).to;
                    let links = &mut collected[node as usize];
                    if links.is_empty() {
                        touched.push(node);
                    }
                    links.push(link);
                }
            };
            for &(link, chunk) in &events {
                let node = self.network.link(link).to;
                if chunk != FREE {
                    for &next in self.network.outgoing(node) {
                        let waiting = self.origin[next as usize];
                        if self.is_idle[waiting as usize] && !self.got.contains(self.network.link(next).to, chunk) {
                            self.is_idle[waiting as usize] = false;
                            collect(waiting, self.network);
                        }
                    }
                }
                if self.busy_until[link as usize] <= now && self.lacking[node as usize] > 0 {
                    collect(link, self.network);
                }
            }
        }
    }

    /// Gives each of these free links into a node a chunk of its own, where there is one.
    fn serve(&mut self, node: u32, links: &[u32], now: u64) {
        if self.lacking[node as usize] == 0 {
            return;
        }
        self.offers.clear();
        self.available.clear();
        for &link in links {
            // When what is in the way ends, the link is looked at again.
            if self.kept.is_free(link, now, self.network.link(link).occupancy) {
                self.offer(link, node);
            }
        }
        if self.offers.len() > 1 {
            self.offers.sort_unstable_by_key(|offer| (offer.count, offer.tie, offer.link));
        }
        if !self.offers.is_empty() {
            self.choice.look_around(node, &self.got, &mut self.chance);
        }
        for index in 0..self.offers.len() {
            self.pick(index, node);
        }
        for index in 0..self.offers.len() {
            let Offer { link, picked, .. } = self.offers[index];
            match picked {
                Some(chunk) => self.send(link, chunk, now),
                None => self.is_idle[link as usize] = true,
            }
        }
    }

    /// Writes down what a link could bring, if there is anything that it should.
    fn offer(&mut self, link: u32, node: u32) {
        let from = self.network.link(link).from;
        self.row.clear();
        self.row.extend(self.has.row(from).iter().zip(self.got.row(node)).map(|(has, got)| has & !got));
        let mut novel_for = None;
        if let Some(slow) = &self.slow {
            novel_for = slow.restrict(link, self.lacking[node as usize], &self.got, &mut self.row);
        }
        let count = count(&self.row);
        if count == 0 {
            self.is_idle[link as usize] = true;
            return;
        }
        let (tie, row) = (self.chance.next(), self.available.len());
        self.available.extend_from_slice(&self.row);
        self.offers.push(Offer { link, count, tie, row, novel_for, picked: None });
    }

    /// Picks a chunk for an offer that no offer before it has picked.
    fn pick(&mut self, index: usize, node: u32) {
        let (before, rest) = self.offers.split_at_mut(index);
        let offer = &mut rest[0];
        let row = &mut self.available[offer.row..offer.row + self.words];
        self.row.clear();
        self.row.extend_from_slice(row);
        for chunk in before.iter().filter_map(|offer| offer.picked) {
            let (word, bit) = crate::bits::place_of(chunk);
            self.row[word] &= !bit;
        }
        if let (Some(cluster), Some(slow)) = (offer.novel_for, &self.slow) {
            slow.drop_known(cluster, &mut self.row);
        }
        let picked = self.choice.pick(node, &self.row, (&self.got, &self.holders), &mut self.chance);
        match picked {
            Some(chunk) => {
                offer.picked = Some(chunk);
                self.enter(node, chunk);
            }
            None if offer.novel_for.is_none() && self.offers.len() <= MATCHED_MAX => {
                let mut tried = Vec::new();
                if let Some(chunk) = self.rearrange(index, &mut tried) {
                    self.enter(node, chunk);
                }
            }
            None => {}
        }
    }

    /// Finds an offer a chunk by giving another one that has picked it something else (Kuhn's alternating paths); the chunk
    /// that is picked in addition.
    fn rearrange(&mut self, index: usize, tried: &mut Vec<u32>) -> Option<u32> {
        let start = self.offers[index].row;
        for word in 0..self.words {
            let bits = self.available[start + word];
            for chunk in positions(&[bits], word) {
                if tried.contains(&chunk) {
                    continue;
                }
                tried.push(chunk);
                let added = match self.offers.iter().position(|offer| offer.picked == Some(chunk)) {
                    None => Some(chunk),
                    Some(owner) if self.offers[owner].novel_for.is_none() => self.rearrange(owner, tried),
                    Some(_) => None,
                };
                if added.is_some() {
                    self.offers[index].picked = Some(chunk);
                    return added;
                }
            }
        }
        None
    }

    /// Marks in the clusters of a node and of all its images that a chunk comes there.
    fn enter(&mut self, node: u32, chunk: u32) {
        let Some(slow) = &mut self.slow else { return };
        for number in 0..self.group.order() {
            slow.enter(self.group.element(number)[node as usize], self.chunk_images.of(number, chunk));
        }
    }

    /// Sends a chunk over a link into a representative, and its images over those of the link.
    fn send(&mut self, link: u32, chunk: u32, now: u64) {
        let place = self.place[link as usize];
        for number in 0..self.group.order() {
            let chunk = self.chunk_images.of(number, chunk);
            let link = self.images[place + number];
            let node = self.network.link(link).to;
            self.got.insert(node, chunk);
            self.lacking[node as usize] -= 1;
            self.holders.add(chunk);
            self.sends.push(Sent { start: now, link, chunk });
        }
        let timed = self.network.link(link);
        self.missing -= u64::from(self.task.is_member(timed.to));
        // A link can be looked at again without having been woken, when what it sent before arrives.
        self.is_idle[link as usize] = false;
        self.busy_until[link as usize] = now + timed.occupancy;
        self.note(link, chunk, now);
    }

    /// Has a send looked at when the chunk arrives and when the link is free.
    fn note(&mut self, link: u32, chunk: u32, start: u64) {
        let timed = self.network.link(link);
        self.events.entry(start + timed.latency).or_default().push((link, chunk));
        if timed.occupancy != timed.latency {
            self.events.entry(start + timed.occupancy).or_default().push((link, FREE));
        }
    }

    /// Lets a chunk arrive over a link into a representative, and its images over those of the link.
    fn arrive(&mut self, link: u32, chunk: u32) {
        let place = self.place[link as usize];
        for number in 0..self.group.order() {
            let chunk = self.chunk_images.of(number, chunk);
            self.has.insert(self.network.link(self.images[place + number]).to, chunk);
        }
    }

    /// Which member lacks what when nothing moves any more.
    fn unreachable(&self) -> CopyError {
        let mut members = (0..self.network.node_count()).filter(|&node| self.task.is_member(node));
        let lacked = members.find_map(|node| {
            let chunk = (0..self.task.chunk_count()).find(|&chunk| !self.got.contains(node, chunk))?;
            Some(CopyError::Unreachable { node, chunk, owner: self.task.owners()[chunk as usize] })
        });
        lacked.expect("a member is missing a chunk")
    }
}

/// Images of chunks under a group.
struct ChunkImages<'a> {
    group: &'a FreeGroup,
    places: ChunkPlaces<'a>,
}

impl ChunkImages<'_> {
    /// Where an automorphism takes a chunk.
    fn of(&self, number: usize, chunk: u32) -> u32 {
        if number == 0 {
            return chunk;
        }
        self.places.image(chunk, self.group.element(number))
    }
}
