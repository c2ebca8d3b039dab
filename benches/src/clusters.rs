//! Random clusters, as one finds them in machine rooms: boxes of several kinds on fabrics of several kinds, with faults.
//!
//! A pure function of a seed: 4 to 64 boxes of 4 to 16 GPUs, up to eight faults of any kind that leave the network
//! connected, rates multiplied, and no name that says which node is what.

use canopy_topology::{
    Attributes, Capacity, Element, Fault, FaultKind, Latency, NodeKind, Topology, TopologyDraft, TopologyError,
    TopologyLimits,
};

use crate::random::Random;
use crate::unnamed::{Factor, unnamed};

/// Bytes per second in a gigabyte per second.
const GB: u64 = 1_000_000_000;
/// Most faults of a cluster.
const FAULTS_MAX: usize = 8;

/// How GPUs of a box are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inside {
    /// One switch.
    Switch,
    /// A link between every two.
    Mesh,
    /// A ring.
    Ring,
    /// Numbers that differ in one bit, for a power of two.
    Hypercube,
    /// Fast pairs in a ring, and a slow switch.
    Hybrid,
}

/// How boxes are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outside {
    /// All NICs on one switch.
    Star,
    /// NICs of one index on one switch; some with a spine above.
    Rails,
    /// Leaves of several boxes, all on several spines, with oversubscription.
    LeafSpine,
    /// A switch for each box; groups of these fully joined, and one link between every two groups.
    Dragonfly,
}

/// What a cluster consists of before anything breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// Number of boxes.
    pub boxes: usize,
    /// GPUs of each.
    pub gpus: usize,
    /// How they are joined.
    pub inside: Inside,
    /// How boxes are joined.
    pub outside: Outside,
    /// Bytes per second that a GPU sends inside its box.
    pub inside_rate: u64,
    /// Rate of a NIC in bytes per second.
    pub nic_rate: u64,
}

/// A random cluster.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// What it consists of.
    pub parts: Parts,
    /// What broke, in this order.
    pub faults: Vec<&'static str>,
    /// The network.
    pub topology: Topology,
}

impl std::fmt::Display for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Parts { boxes, gpus, inside, outside, inside_rate, nic_rate } = self.parts;
        let gigabytes = |rate: u64| rate as f64 / GB as f64;
        let (inside_rate, nic_rate) = (gigabytes(inside_rate), gigabytes(nic_rate));
        write!(f, "{boxes} × {gpus}, {inside:?} {inside_rate}, {outside:?} {nic_rate}")?;
        if self.faults.is_empty() { Ok(()) } else { write!(f, ", {}", self.faults.join(" ")) }
    }
}

/// The cluster of a seed.
///
/// # Errors
/// Never, unless sizes and rates here are changed beyond what a topology takes.
pub fn cluster(seed: u64) -> Result<Cluster, TopologyError> {
    let mut random = Random::new(seed);
    let parts = Parts::draw(&mut random);
    let mut topology = healthy(parts, &mut random)?;
    let mut faults = Vec::new();
    for _ in 0..random.below(FAULTS_MAX + 1) {
        if let Some((name, left)) = broken(&topology, &mut random) {
            faults.push(name);
            topology = left;
        }
    }
    let factor = Factor::draw(&mut random);
    Ok(Cluster { parts, faults, topology: unnamed(&topology, factor, &mut random)? })
}

impl Parts {
    fn draw(random: &mut Random) -> Self {
        let boxes = random.between(4, 64);
        let inside = random.choose(&[Inside::Switch, Inside::Mesh, Inside::Ring, Inside::Hypercube, Inside::Hybrid]);
        let gpus = match inside {
            Inside::Hypercube => random.choose(&[4, 8, 16]),
            // Pairs.
            Inside::Hybrid => random.between(4, 16) / 2 * 2,
            Inside::Switch | Inside::Mesh | Inside::Ring => random.between(4, 16),
        };
        let outside = random.choose(&[Outside::Star, Outside::Rails, Outside::LeafSpine, Outside::Dragonfly]);
        let inside_rate = random.choose(&[100, 200, 300, 400, 450, 600, 900]) * GB;
        let nic_rate = match random.toss() {
            true => random.choose(&[25 * GB, 50 * GB, 100 * GB]),
            false => random.choose(&[25 * GB / 2, 25 * GB, 50 * GB]),
        };
        Self { boxes, gpus, inside, outside, inside_rate, nic_rate }
    }
}

/// A cluster on which nothing is broken, with boxes by name; what its parts leave open of the fabric is drawn.
///
/// # Errors
/// Rates overflow, or there are fewer than two ranks.
pub fn healthy(parts: Parts, random: &mut Random) -> Result<Topology, TopologyError> {
    let mut network = Network::default();
    for number in 0..parts.boxes {
        network.add_box(number, parts);
    }
    match parts.outside {
        Outside::Star => network.add_star(parts),
        Outside::Rails => network.add_rails(parts, random),
        Outside::LeafSpine => network.add_leaves(parts, random),
        Outside::Dragonfly => network.add_dragonfly(parts, random),
    }
    network.draft.build(&TopologyLimits::STANDARD)
}

/// A draft whose nodes are called after box and index.
#[derive(Default)]
struct Network {
    draft: TopologyDraft,
}

fn gpu(number: usize, index: usize) -> String {
    format!("b{number}g{index}")
}

impl Network {
    /// Both ways, at least one byte per second.
    fn link(&mut self, a: &str, b: &str, rate: u64) {
        if let Some(capacity) = Capacity::from_bytes_per_sec(rate.max(1)) {
            self.draft.add_both(a, b, capacity, Latency::default());
        }
    }

    /// A box with its GPUs, and links between them.
    fn add_box(&mut self, number: usize, parts: Parts) {
        let Parts { gpus, inside, inside_rate: rate, .. } = parts;
        let attributes = || Attributes { box_name: Some(format!("b{number}")), ..Attributes::default() };
        for index in 0..gpus {
            self.draft.add_node(gpu(number, index), NodeKind::Compute, attributes());
        }
        let link = |network: &mut Self, a: usize, b: usize, rate: u64| {
            network.link(&gpu(number, a), &gpu(number, b), rate);
        };
        let ring = |network: &mut Self, rate: u64| (0..gpus).for_each(|a| link(network, a, (a + 1) % gpus, rate));
        let switch = |network: &mut Self, rate: u64| {
            let id = format!("b{number}s");
            network.draft.add_node(id.as_str(), NodeKind::PLAIN_SWITCH, attributes());
            (0..gpus).for_each(|index| network.link(&gpu(number, index), &id, rate));
        };
        let part = |count: usize| rate / count as u64;
        match inside {
            Inside::Switch => switch(self, rate),
            Inside::Mesh => {
                let pairs = (0..gpus).flat_map(|a| (0..a).map(move |b| (a, b)));
                pairs.for_each(|(a, b)| link(self, a, b, part(gpus - 1)));
            }
            Inside::Ring => ring(self, part(2)),
            Inside::Hypercube => {
                let bits = gpus.ilog2();
                let pairs = (0..gpus).flat_map(|a| (0..bits).map(move |bit| (a, a ^ (1 << bit))));
                pairs.filter(|(a, b)| b < a).for_each(|(a, b)| link(self, a, b, part(bits as usize)));
            }
            Inside::Hybrid => {
                (0..gpus - 1).step_by(2).for_each(|a| link(self, a, a + 1, part(2)));
                ring(self, part(4));
                switch(self, part(8));
            }
        }
    }

    fn add_star(&mut self, parts: Parts) {
        self.draft.add_switch("hub");
        for number in 0..parts.boxes {
            (0..parts.gpus).for_each(|index| self.link(&gpu(number, index), "hub", parts.nic_rate));
        }
    }

    fn add_rails(&mut self, parts: Parts, random: &mut Random) {
        let rail = |index: usize| format!("rail{index}");
        for index in 0..parts.gpus {
            self.draft.add_switch(rail(index));
            (0..parts.boxes).for_each(|number| self.link(&gpu(number, index), &rail(index), parts.nic_rate));
        }
        if random.below(10) < 4 {
            let rate = parts.nic_rate * parts.boxes as u64 / random.choose(&[1, 2, 4]);
            self.draft.add_switch("spine");
            (0..parts.gpus).for_each(|index| self.link(&rail(index), "spine", rate));
        }
    }

    fn add_leaves(&mut self, parts: Parts, random: &mut Random) {
        let Parts { boxes, gpus, nic_rate, .. } = parts;
        let boxes_on_leaf = random.between(2, (boxes / 2).max(2));
        let (spines, oversubscription) = (random.between(2, 8), random.choose(&[1, 2, 4]));
        let rate = nic_rate * (gpus * boxes_on_leaf) as u64 / spines as u64 / oversubscription;
        (0..spines).for_each(|spine| self.draft.add_switch(format!("spine{spine}")));
        for leaf in 0..boxes.div_ceil(boxes_on_leaf) {
            let id = format!("leaf{leaf}");
            self.draft.add_switch(id.as_str());
            (0..spines).for_each(|spine| self.link(&id, &format!("spine{spine}"), rate));
            for number in (leaf * boxes_on_leaf..boxes).take(boxes_on_leaf) {
                (0..gpus).for_each(|index| self.link(&gpu(number, index), &id, nic_rate));
            }
        }
    }

    fn add_dragonfly(&mut self, parts: Parts, random: &mut Random) {
        let Parts { boxes, gpus, nic_rate, .. } = parts;
        let group_size = random.between(2, (boxes / 2).clamp(2, 8));
        let router = |number: usize| format!("r{number}");
        for number in 0..boxes {
            self.draft.add_switch(router(number));
            (0..gpus).for_each(|index| self.link(&gpu(number, index), &router(number), nic_rate));
        }
        for a in 0..boxes {
            let group = a / group_size * group_size;
            (group..a).for_each(|b| self.link(&router(a), &router(b), nic_rate * gpus as u64 / group_size as u64));
        }
        let member = |group: usize, number: usize| {
            let size = (boxes - group * group_size).min(group_size);
            router(group * group_size + number % size)
        };
        let groups = boxes.div_ceil(group_size);
        let pairs = (0..groups).flat_map(|a| (0..a).map(move |b| (a, b)));
        for (number, (a, b)) in pairs.enumerate() {
            self.link(&member(a, number), &member(b, number + 1), nic_rate * 2);
        }
    }
}

/// What is left after one more fault, and its name; `None` if it would split the network, or there is nothing to break.
fn broken(topology: &Topology, random: &mut Random) -> Option<(&'static str, Topology)> {
    const KINDS: [(&str, FaultKind, Extent); 7] = [
        ("gpu", FaultKind::Gpus, Extent::Whole),
        ("nic", FaultKind::Nics, Extent::Whole),
        ("link-inside", FaultKind::LinksInside, Extent::Whole),
        ("link", FaultKind::Links, Extent::Whole),
        ("half-link", FaultKind::Links, Extent::Half),
        ("switch", FaultKind::Switches, Extent::Whole),
        ("one-way", FaultKind::Links, Extent::OneWay),
    ];
    let (name, kind, extent) = random.choose(&KINDS);
    let elements = topology.elements(kind);
    if elements.is_empty() {
        return None;
    }
    let element = elements[random.below(elements.len())].clone();
    let faults = match (extent, &element) {
        (Extent::OneWay, &Element::Link { from, to, both_ways }) => {
            let (from, to) = if both_ways && random.toss() { (to, from) } else { (from, to) };
            let id = |node| topology.node(node).id.clone();
            vec![Fault::Link { from: id(from), to: id(to), both_ways: false }]
        }
        (Extent::Half, _) => topology.faults_of(&[element], Some((1, 2))),
        (Extent::Whole | Extent::OneWay, _) => topology.faults_of(&[element], None),
    };
    let left = topology.punctured(&faults).ok()?;
    left.first_unreachable().is_none().then_some((name, left))
}

/// What a fault takes.
#[derive(Clone, Copy)]
enum Extent {
    Whole,
    Half,
    OneWay,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn clusters_are_of_the_stated_sizes_connected_and_repeatable() {
        let (mut kinds, mut faults, mut counts) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for seed in 0..200 {
            let made = cluster(seed).unwrap();
            let Parts { boxes, gpus, inside, outside, .. } = made.parts;
            assert!((4..=64).contains(&boxes) && (4..=16).contains(&gpus), "seed {seed}");
            let lost = made.faults.iter().filter(|name| **name == "gpu").count();
            assert_eq!(made.topology.rank_count() as usize, boxes * gpus - lost, "seed {seed}: {made}");
            assert_eq!(made.topology.first_unreachable(), None, "seed {seed}");
            assert!(made.topology.nodes().iter().all(|node| node.attributes == Attributes::default()));
            assert!(made.faults.contains(&"one-way") || made.topology.first_unbalanced().is_none(), "seed {seed}");
            kinds.insert(format!("{inside:?} {outside:?}"));
            counts.insert(made.faults.len());
            faults.extend(made.faults.iter().copied());
            if seed % 20 == 0 {
                assert_eq!(cluster(seed).unwrap().topology, made.topology);
            }
        }
        assert_eq!((kinds.len(), faults.len(), counts.len()), (20, 7, 9));
    }

    /// By hand: 4 boxes of 4, each kind.
    #[test]
    fn parts_have_their_links() {
        let links = |inside, outside| {
            let parts = Parts { boxes: 4, gpus: 4, inside, outside, inside_rate: 24 * GB, nic_rate: GB };
            let topology = healthy(parts, &mut Random::new(1)).unwrap();
            (topology.elements(FaultKind::LinksInside).len(), topology.elements(FaultKind::LinksOutside).len())
        };
        assert_eq!(links(Inside::Switch, Outside::Star), (16, 16));
        assert_eq!(links(Inside::Mesh, Outside::Star), (24, 16));
        assert_eq!(links(Inside::Ring, Outside::Star), (16, 16));
        assert_eq!(links(Inside::Hypercube, Outside::Star), (16, 16));
        // Links of pairs are in the ring, too.
        assert_eq!(links(Inside::Hybrid, Outside::Star), (32, 16));
        // Two groups of two, joined by one link.
        assert_eq!(links(Inside::Ring, Outside::Dragonfly), (16, 16 + 2 + 1));
        let (_, rails) = links(Inside::Ring, Outside::Rails);
        assert!(rails == 16 || rails == 20);
    }
}
