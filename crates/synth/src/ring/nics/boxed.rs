//! Boxes as their rings see them: GPUs, NICs, and which GPUs are joined inside.

use std::collections::BTreeMap;

use canopy_topology::{LinkIndex, NodeIndex, Rank, Topology};

use super::NicRingsError;

/// Steps of the search for one line of a box whose GPUs are not all joined.
const WORK_MAX: u32 = 1 << 12;

/// A box.
#[derive(Clone, Debug)]
pub(super) struct Boxed {
    /// Its ranks, rising.
    ranks: Vec<Rank>,
    /// By NIC, in the order of their GPUs: the position of the GPU in `ranks`.
    gpus: Vec<usize>,
    /// By position: positions of the GPUs it reaches over links and switches of the box, with the width of the narrowest link.
    joined: Vec<BTreeMap<usize, u64>>,
    /// How many lines pass from one position to another so far.
    passed: BTreeMap<(usize, usize), u64>,
}

/// All boxes, by their first ranks.
pub(super) fn boxes(topology: &Topology) -> Result<Vec<Boxed>, NicRingsError> {
    let name_of = |node: NodeIndex| topology.node(node).attributes.box_name.as_deref();
    let mut members: BTreeMap<&str, Vec<Rank>> = BTreeMap::new();
    for rank in topology.ranks() {
        let name = name_of(rank.node()).ok_or(NicRingsError::NoBox { rank: rank.number() })?;
        members.entry(name).or_default().push(rank);
    }
    if members.len() < 2 {
        return Err(NicRingsError::OneBox);
    }
    let mut links: BTreeMap<&str, (Vec<LinkIndex>, Vec<LinkIndex>)> = BTreeMap::new();
    for (number, link) in (0_u32..).zip(topology.links()) {
        let Some(name) = name_of(link.from) else { continue };
        let (inside, leaving) = links.entry(name).or_default();
        match name_of(link.to) {
            Some(other) if other == name => inside.push(LinkIndex::new(number)),
            // A link from box to box leads to one neighbour, and is no NIC.
            Some(_) => {}
            None if topology.rank_of(link.to).is_none() => leaving.push(LinkIndex::new(number)),
            None => {}
        }
    }
    let mut found = Vec::with_capacity(members.len());
    for (name, ranks) in members {
        let (inside, leaving) = links.remove(name).unwrap_or_default();
        let joined = joined(topology, &ranks, &inside);
        let gpus = nics(topology, &ranks, &inside, &leaving);
        if gpus.is_empty() {
            return Err(NicRingsError::NoNic { name: name.to_owned() });
        }
        found.push(Boxed { ranks, gpus, joined, passed: BTreeMap::new() });
    }
    found.sort_by_key(|one: &Boxed| one.ranks.first().copied());
    Ok(found)
}

/// GPUs by NIC: of each NIC that is used, the position of the nearest GPU, the one of fewest NICs among equally near ones.
fn nics(topology: &Topology, ranks: &[Rank], inside: &[LinkIndex], leaving: &[LinkIndex]) -> Vec<usize> {
    let rate = |link: LinkIndex| topology.link(link).capacity.bytes_per_sec();
    let mut rates: Vec<u64> = leaving.iter().map(|&link| rate(link)).collect();
    rates.sort_unstable_by(|a, b| b.cmp(a));
    // Rings have equal parts: more of them are slower where a slow NIC comes along.
    let total = |(place, &rate): (usize, &u64)| (place as u128 + 1) * u128::from(rate);
    let best = rates.iter().enumerate().max_by_key(|&(place, rate)| (total((place, rate)), place));
    let least = best.map_or(0, |(_, &rate)| rate);
    let mut nic_counts = vec![0_u32; ranks.len()];
    let mut gpus = Vec::new();
    for &nic in leaving.iter().filter(|&&link| rate(link) >= least) {
        let hops = hops_to(topology, topology.link(nic).from, inside);
        let near = ranks.iter().enumerate().filter_map(|(position, rank)| Some((*hops.get(&rank.node())?, position)));
        let nearest = near.min_by_key(|&(hops, position)| (hops, nic_counts[position], position));
        if let Some((_, position)) = nearest {
            nic_counts[position] += 1;
            gpus.push(position);
        }
    }
    gpus.sort_unstable();
    gpus
}

/// Fewest links inside the box from each node to one of them.
fn hops_to(topology: &Topology, target: NodeIndex, inside: &[LinkIndex]) -> BTreeMap<NodeIndex, u32> {
    let mut hops = BTreeMap::from([(target, 0)]);
    let mut level = vec![target];
    while !level.is_empty() {
        let mut before = Vec::new();
        for &link in inside {
            let link = topology.link(link);
            if level.contains(&link.to) && !hops.contains_key(&link.from) {
                let next = hops.get(&link.to).map_or(0, |hops| hops + 1);
                hops.insert(link.from, next);
                before.push(link.from);
            }
        }
        level = before;
    }
    hops
}

/// By position: the GPUs that each reaches over links and switches of the box alone, with the widest of the routes found.
fn joined(topology: &Topology, ranks: &[Rank], inside: &[LinkIndex]) -> Vec<BTreeMap<usize, u64>> {
    let positions: BTreeMap<NodeIndex, usize> = ranks.iter().map(|rank| rank.node()).zip(0..).collect();
    let mut leaving: BTreeMap<NodeIndex, Vec<LinkIndex>> = BTreeMap::new();
    for &link in inside {
        leaving.entry(topology.link(link).from).or_default().push(link);
    }
    let reached_from = |rank: &Rank| {
        let mut widths: BTreeMap<NodeIndex, u64> = BTreeMap::new();
        let mut level = vec![(rank.node(), u64::MAX)];
        while let Some((node, width)) = level.pop() {
            for &link in leaving.get(&node).into_iter().flatten() {
                let link = topology.link(link);
                let width = width.min(link.capacity.bytes_per_sec());
                if link.to == rank.node() || widths.get(&link.to).is_some_and(|&known| known >= width) {
                    continue;
                }
                widths.insert(link.to, width);
                if topology.rank_of(link.to).is_none() {
                    level.push((link.to, width));
                }
            }
        }
        widths.into_iter().filter_map(|(node, width)| Some((*positions.get(&node)?, width))).collect()
    };
    ranks.iter().map(reached_from).collect()
}

impl Boxed {
    pub(super) fn nic_count(&self) -> usize {
        self.gpus.len()
    }

    /// The ranks of the box as one of so many rings passes them, in the box at this place of the ring.
    pub(super) fn line(&mut self, ring: usize, ring_count: usize, place: usize) -> Vec<Rank> {
        // Half of all NICs further on, so that each NIC is entered once and left once. One NIC alone is both.
        let (own, other) = (ring, (ring + ring_count / 2) % ring_count.max(1));
        let (entry, exit) = if place.is_multiple_of(2) { (own, other) } else { (other, own) };
        let gpu = |nic: usize| self.gpus.get(nic).copied().unwrap_or_default();
        let (entry, exit) = (gpu(entry), Some(gpu(exit)).filter(|&exit| exit != gpu(entry)));
        let is_complete = self.joined.iter().all(|others| others.len() + 1 == self.ranks.len());
        let line = if is_complete { None } else { self.searched(entry, exit) };
        let line = line.unwrap_or_else(|| self.zigzag(entry, exit));
        for pair in line.windows(2) {
            if let &[from, to] = pair {
                *self.passed.entry((from, to)).or_default() += 1;
            }
        }
        line.into_iter().filter_map(|position| self.ranks.get(position).copied()).collect()
    }

    /// Out and back in widening turns, `0 1 −1 2 −2 …` from the entry on: as every difference of positions occurs once, lines
    /// from different entries pass different pairs, where the number of GPUs is even.
    fn zigzag(&self, entry: usize, exit: Option<usize>) -> Vec<usize> {
        let count = self.ranks.len();
        let turn = |step: usize| match step.is_multiple_of(2) {
            true => (entry + count - step / 2) % count,
            false => (entry + step.div_ceil(2)) % count,
        };
        let inner = (0..count).map(turn).filter(|&position| Some(position) != exit);
        inner.chain(exit).collect()
    }

    /// A line over joined GPUs, depth first, over what fewest lines pass for its width; `None` if the bounded search finds none.
    fn searched(&self, entry: usize, exit: Option<usize>) -> Option<Vec<usize>> {
        let count = self.ranks.len();
        let mut path = vec![entry];
        let mut choices = vec![self.choices(&path, exit)];
        for _ in 0..WORK_MAX {
            if path.len() == count {
                return Some(path);
            }
            match choices.last_mut()?.pop() {
                Some(next) => {
                    path.push(next);
                    choices.push(self.choices(&path, exit));
                }
                None => {
                    path.pop();
                    choices.pop();
                }
            }
        }
        None
    }

    /// Where a path may go on, best last: the exit comes at the end only.
    fn choices(&self, path: &[usize], exit: Option<usize>) -> Vec<usize> {
        let Some(&last) = path.last() else { return Vec::new() };
        let is_last = path.len() + 1 == self.ranks.len();
        let free = |position: &usize| !path.contains(position) && (is_last || Some(*position) != exit);
        let fits = |position: &usize| free(position) && (!is_last || exit.is_none_or(|exit| exit == *position));
        let onward =
            |position: usize| self.joined.get(position).map_or(0, |next| next.keys().filter(|&one| free(one)).count());
        // Lines per byte/s after this one; as 128 bits, exact enough to compare.
        let load = |position: usize, width: u64| {
            let passed = self.passed.get(&(last, position)).copied().unwrap_or_default();
            (u128::from(passed + 1) << 64) / u128::from(width.max(1))
        };
        let next = self.joined.get(last).into_iter().flatten().filter(|(position, _)| fits(position));
        let mut choices: Vec<(u128, usize, usize)> =
            next.map(|(&position, &width)| (load(position, width), onward(position), position)).collect();
        choices.sort_unstable_by(|a, b| b.cmp(a));
        choices.into_iter().map(|(_, _, position)| position).collect()
    }
}
