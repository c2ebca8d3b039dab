//! Small networks of all kinds with groups on them, by number.

use canopy_training::groups::{Group, GroupKind};

use crate::networks::{Network, grid, group};

/// Most nodes that can be members.
const RANKS_MAX: u32 = 12;

/// The number that `CANOPY_CASES` asks for, or `few`.
pub(crate) fn cases(few: u32) -> u32 {
    let given = std::env::var("CANOPY_CASES").ok();
    given.map_or(few, |text| text.parse().expect("CANOPY_CASES is a number"))
}

/// SplitMix64 (Steele 2014): every seed gives numbers of its own.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, limit: u32) -> u32 {
        u32::try_from(self.next() % u64::from(limit)).expect("a remainder is below the limit")
    }

    pub(crate) fn between(&mut self, least: u32, greatest: u32) -> u32 {
        least + self.below(greatest - least + 1)
    }

    /// True once in `count` times.
    pub(crate) fn one_in(&mut self, count: u32) -> bool {
        self.below(count) == 0
    }

    pub(crate) fn one_of<T: Copy>(&mut self, things: &[T]) -> T {
        things[self.below(u32::try_from(things.len()).expect("there are few")) as usize]
    }

    pub(crate) fn shuffle<T>(&mut self, things: &mut [T]) {
        for last in (1..things.len()).rev() {
            things.swap(last, self.below(u32::try_from(last + 1).expect("there are few")) as usize);
        }
    }

    pub(crate) fn shuffled(&mut self, count: u32) -> Vec<u32> {
        let mut order: Vec<u32> = (0..count).collect();
        self.shuffle(&mut order);
        order
    }
}

/// A network and its groups.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) network: Network,
    pub(crate) groups: Vec<Group>,
}

impl Case {
    pub(crate) fn numbered(number: u64) -> Self {
        let mut random = Random(number);
        let is_regular = random.one_in(4);
        let (mut network, ranks) = if is_regular { regular(&mut random) } else { irregular(&mut random) };
        let groups = if is_regular && random.one_in(2) { tidy(&mut random, ranks) } else { any(&mut random, ranks) };
        let some = random.below(3);
        for (node, relays) in (0_u32..).zip(&mut network.relays) {
            *relays = match some {
                0 => true,
                1 => node >= ranks,
                _ => !random.one_in(4),
            };
        }
        Self { network, groups }
    }
}

/// Ranks come first, then switches.
fn irregular(random: &mut Random) -> (Network, u32) {
    let ranks = random.between(2, RANKS_MAX);
    let nodes = ranks + random.below(4);
    let most = random.one_of(&[1, 3, 20, 1000]);
    let mut network = Network::nodes(nodes);
    match random.below(3) {
        0 => both_ways(random, &mut network, |random| [u64::from(random.between(1, most)); 2]),
        1 => both_ways(random, &mut network, |random| {
            let some = |random: &mut Random| if random.one_in(16) { 0 } else { u64::from(random.between(1, most)) };
            [some(random), some(random)]
        }),
        _ => one_way(random, &mut network, most),
    }
    (network, ranks)
}

/// A tree of links and some more.
fn both_ways(random: &mut Random, network: &mut Network, mut capacities: impl FnMut(&mut Random) -> [u64; 2]) {
    let nodes = network.graph.node_count;
    let order = random.shuffled(nodes);
    let mut ends: Vec<(u32, u32)> =
        (1..nodes).map(|place| (order[place as usize], order[random.below(place) as usize])).collect();
    for _ in 0..random.between(0, 2 * nodes) {
        ends.push((random.below(nodes), random.below(nodes)));
    }
    for (a, b) in ends {
        let [there, back] = capacities(random);
        network.arc(a, b, there);
        network.arc(b, a, back);
    }
}

/// Arcs at random, mostly with a ring through all nodes.
fn one_way(random: &mut Random, network: &mut Network, most: u32) {
    let nodes = network.graph.node_count;
    let order = random.shuffled(nodes);
    let mut ends: Vec<(u32, u32)> =
        (0..random.between(nodes, 4 * nodes)).map(|_| (random.below(nodes), random.below(nodes))).collect();
    if !random.one_in(8) {
        ends.extend(order.iter().copied().zip(order.iter().copied().cycle().skip(1)));
    }
    for (from, to) in ends {
        network.arc(from, to, u64::from(random.between(1, most)));
    }
}

/// Networks that look alike from several sides: tori, meshes, boxes on rails, sometimes with a link less.
fn regular(random: &mut Random) -> (Network, u32) {
    let (mut network, ranks) = if random.one_in(3) {
        let (boxes, size) = random.one_of(&[(2, 2), (2, 3), (2, 4), (3, 3), (3, 4), (4, 3)]);
        (small_boxes(boxes, size, random.one_of(&[1, 3, 12]), random.one_in(2)), boxes * size)
    } else {
        let (width, height) = random.one_of(&[(5, 1), (8, 1), (2, 2), (3, 2), (4, 2), (3, 3), (4, 3)]);
        (grid(width, height, random.one_in(2)), width * height)
    };
    if random.one_in(4) {
        let lost = network.graph.arcs[random.below(u32::try_from(network.graph.arcs.len()).unwrap()) as usize];
        if random.one_in(2) {
            network.cut(lost.from, lost.to);
        } else {
            network.graph.arcs.retain(|arc| (arc.from, arc.to) != (lost.from, lost.to));
        }
    }
    (network, ranks)
}

/// Ranks on a switch for each box, and on rails or one hub.
fn small_boxes(boxes: u32, size: u32, speed: u64, rails: bool) -> Network {
    let ranks = boxes * size;
    let mut network = Network::nodes(ranks + boxes + if rails { size } else { 1 });
    for rank in 0..ranks {
        network.link(rank, ranks + rank / size, speed);
        network.link(rank, ranks + boxes + if rails { rank % size } else { 0 }, 1);
    }
    network
}

fn kind(random: &mut Random, style: u32, members: u32) -> GroupKind {
    let root = random.below(members);
    let all = [
        GroupKind::AllReduce,
        GroupKind::AllToAll,
        GroupKind::AllGather,
        GroupKind::ReduceScatter,
        GroupKind::Broadcast(root),
        GroupKind::Reduce(root),
        GroupKind::Scatter(root),
        GroupKind::Gather(root),
    ];
    // The first one, the first two, or all: links of equal capacity both ways are taken together for two of them.
    all[random.below([1, 2, 8][style as usize]) as usize]
}

fn size(random: &mut Random, most: u64) -> u64 {
    1 + random.next() % most
}

/// Groups of any members, disjoint or not.
fn any(random: &mut Random, ranks: u32) -> Vec<Group> {
    let (style, most) = (random.below(3), random.one_of(&[1, 9, 1_000_000]));
    let count = random.between(1, 6);
    let is_disjoint = random.one_in(2);
    let mut left = random.shuffled(ranks);
    let mut groups = Vec::new();
    for _ in 0..count {
        if !is_disjoint {
            left = random.shuffled(ranks);
        }
        if left.len() < 2 {
            break;
        }
        let members = left.split_off(left.len().saturating_sub(random.between(2, 5) as usize));
        if members.len() > 1 {
            let count = u32::try_from(members.len()).unwrap();
            groups.push(group(kind(random, style, count), members, size(random, most)));
        }
    }
    groups
}

/// Neighbours, and nodes in equal distances: such groups often keep the symmetries of a network.
fn tidy(random: &mut Random, ranks: u32) -> Vec<Group> {
    let style = random.below(3);
    let mut groups = Vec::new();
    for is_near in [true, false] {
        let parts = (2..=ranks / 2).find(|&parts| ranks.is_multiple_of(parts) && ranks / parts <= 5).unwrap_or(1);
        let count = ranks / parts;
        let (kind, size) = (kind(random, style, count.min(5)), size(random, 4));
        for part in 0..parts {
            let member = |place: u32| if is_near { part * count + place } else { place * parts + part };
            groups.push(group(kind, (0..count.min(5)).map(member).collect(), size));
        }
        if random.one_in(2) {
            break;
        }
    }
    groups
}
