//! Groups of automorphisms in which only the identity fixes a node.

use std::collections::{BTreeMap, HashMap};

use crate::network::{TimedLink, TimedNetwork};
use crate::task::CopyTask;

/// Most entries of the table of all images: 128 MiB.
const IMAGES_MAX: usize = 1 << 25;

/// A group of automorphisms of a network and a task, none of which but the identity leaves a node in its place.
///
/// Links and chunks stay apart under such a group as well, so what is decided for one node of each orbit holds, moved, for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeGroup {
    node_count: usize,
    /// Element after element, the identity first: by node, where it goes.
    images: Vec<u32>,
}

impl FreeGroup {
    /// The identity alone.
    pub fn trivial(node_count: u32) -> Self {
        Self { node_count: node_count as usize, images: (0..node_count).collect() }
    }

    /// The group that these permutations of nodes generate; none where one is no automorphism of both, or one of the group
    /// leaves a node in its place.
    ///
    /// Permutations that the earlier ones generate cost a comparison only, so all elements of a group may be given.
    ///
    /// * **Cost.** O(links · log links) for each generator that counts, O(order · nodes · generators) in all.
    pub fn generated_by<'a>(
        network: &TimedNetwork,
        task: &CopyTask,
        permutations: impl IntoIterator<Item = &'a [u32]>,
    ) -> Option<Self> {
        let mut group = Self::trivial(network.node_count());
        let node_count = group.node_count;
        if node_count == 0 {
            return Some(group);
        }
        let mut generators: Vec<&[u32]> = Vec::new();
        // By where an element takes node 0: its number.
        let mut numbers = BTreeMap::from([(0, 0)]);
        for permutation in permutations {
            let first = *permutation.first().filter(|_| permutation.len() == node_count)?;
            if let Some(&number) = numbers.get(&first) {
                if group.element(number) == permutation {
                    continue;
                }
                return None;
            }
            if !is_automorphism(network, task, permutation) {
                return None;
            }
            generators.push(permutation);
            (group, numbers) = closure(node_count, &generators)?;
        }
        Some(group)
    }

    /// Number of automorphisms.
    pub fn order(&self) -> usize {
        self.images.len().checked_div(self.node_count).unwrap_or(1)
    }

    /// Where nodes go when each automorphism becomes its inverse, node 0 staying: of a group that takes it to every node; none of another.
    ///
    /// Where automorphisms commute, that turns the network around: a link leads as far in its image's direction as against its own.
    /// O(nodes²).
    pub fn inversion(&self) -> Option<Vec<u32>> {
        if self.order() != self.node_count {
            return None;
        }
        let mut inverse = vec![0; self.node_count];
        for number in 0..self.order() {
            let element = self.element(number);
            let back = element.iter().position(|&to| to == 0)?;
            inverse[element[0] as usize] = u32::try_from(back).ok()?;
        }
        Some(inverse)
    }

    /// Where an automorphism takes each node.
    pub(crate) fn element(&self, number: usize) -> &[u32] {
        &self.images[number * self.node_count..(number + 1) * self.node_count]
    }

    /// The smallest node of each orbit, in order.
    pub(crate) fn representatives(&self) -> Vec<u32> {
        let is_smallest = |&node: &u32| (0..self.order()).all(|number| self.element(number)[node as usize] >= node);
        (0..u32::try_from(self.node_count).expect("counted in u32")).filter(is_smallest).collect()
    }

    /// Where each automorphism takes these links: element after element. Links between the same two nodes that are alike keep
    /// their order.
    pub(crate) fn images_of_links(&self, network: &TimedNetwork, links: &[u32]) -> Vec<u32> {
        if self.order() == 1 {
            return links.to_vec();
        }
        let mut alike: HashMap<TimedLink, Vec<u32>> = HashMap::new();
        for (number, &link) in (0_u32..).zip(network.links()) {
            alike.entry(link).or_default().push(number);
        }
        let places: Vec<usize> = links
            .iter()
            .map(|number| {
                let same = &alike[&network.link(*number)];
                same.iter().position(|other| other == number).expect("a link is among those like it")
            })
            .collect();
        let mut images = Vec::with_capacity(links.len() * self.order());
        for number in 0..self.order() {
            let element = self.element(number);
            images.extend(links.iter().zip(&places).map(|(&link, &place)| {
                let link = network.link(link);
                let moved = TimedLink { from: element[link.from as usize], to: element[link.to as usize], ..link };
                alike[&moved][place]
            }));
        }
        images
    }
}

/// Whether a permutation of nodes keeps all links with their times, members, and how many chunks nodes own.
fn is_automorphism(network: &TimedNetwork, task: &CopyTask, permutation: &[u32]) -> bool {
    if !is_permutation(permutation) {
        return false;
    }
    let first = task.first_chunks();
    let owned = |node: u32| first[node as usize + 1] - first[node as usize];
    let keeps = |(from, &to): (u32, &u32)| task.is_member(from) == task.is_member(to) && owned(from) == owned(to);
    if !(0..).zip(permutation).all(keeps) {
        return false;
    }
    let mut links = network.links().to_vec();
    let moved = |&link: &TimedLink| TimedLink {
        from: permutation[link.from as usize],
        to: permutation[link.to as usize],
        ..link
    };
    let mut images: Vec<TimedLink> = links.iter().map(moved).collect();
    links.sort_unstable();
    images.sort_unstable();
    links == images
}

/// Whether each number below the length is there once.
pub(crate) fn is_permutation(images: &[u32]) -> bool {
    let mut is_hit = vec![false; images.len()];
    images.iter().all(|&to| is_hit.get_mut(to as usize).is_some_and(|hit| !std::mem::replace(hit, true)))
}

/// All products of generators; none where two of them take node 0 to the same node and are not the same, one leaves a node in
/// its place, or they are too many.
fn closure(node_count: usize, generators: &[&[u32]]) -> Option<(FreeGroup, BTreeMap<u32, usize>)> {
    let identity = FreeGroup::trivial(u32::try_from(node_count).ok()?);
    let mut group = FreeGroup { node_count, images: identity.images };
    let mut numbers = BTreeMap::from([(0, 0)]);
    let mut next = 0;
    while next < group.order() {
        for generator in generators {
            let product: Vec<u32> = group.element(next).iter().map(|&node| generator[node as usize]).collect();
            match numbers.get(&product[0]) {
                Some(&known) if group.element(known) == product => {}
                Some(_) => return None,
                None => {
                    let moves_all = (0..).zip(&product).all(|(node, &to): (u32, _)| node != to);
                    if !moves_all || group.images.len() + node_count > IMAGES_MAX {
                        return None;
                    }
                    numbers.insert(product[0], group.order());
                    group.images.extend(product);
                }
            }
        }
        next += 1;
    }
    Some((group, numbers))
}
