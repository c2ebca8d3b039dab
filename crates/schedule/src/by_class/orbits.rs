//! Links of an orbit forest by the symmetry that leads along them, and what its templates and patches do.

use std::collections::BTreeMap;

use canopy_topology::{LinkIndex, NodeIndex, Rank, Topology};

use super::LinkKind;
use crate::orbits::{Orbits, Template};
use crate::stages::Seating;

/// Marks ranks and seats that are not known.
const UNKNOWN: u32 = u32::MAX;

/// What an orbit forest consists of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrbitClasses {
    /// Orders of the generators.
    pub orders: Vec<u32>,
    /// Orbits of seats.
    pub orbits: usize,
    /// Seats without a rank.
    pub lost: usize,
    /// Templates in the order of the plan.
    pub templates: Vec<TemplateClass>,
    /// Ranks with other parents in some trees, the most trees first.
    pub patches: Vec<PatchClass>,
    /// How many patches the plan has.
    pub patch_count: usize,
}

/// What one template does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateClass {
    /// The seat where it begins.
    pub root: u32,
    /// Chunks of a share that take it.
    pub weight: u64,
    /// Hops that are alike, by their number from the root: the first of these is 1 hop.
    pub levels: Vec<Vec<HopGroup>>,
}

/// Hops of a template that take the like and come as late: a single one, or where there are many, those with as many
/// hops before them over the same links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HopGroup {
    /// The classes of links that each takes, in order.
    pub links: Vec<u32>,
    /// How many there are.
    pub hops: u64,
    /// Groups of the level before that they come after; none at the root.
    pub after: Vec<u32>,
}

/// Most hops of all templates that are groups of their own.
const SINGLE_MAX: usize = 1 << 20;

/// A rank that gets some chunks from another parent than symmetry says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatchClass {
    /// The rank.
    pub rank: u32,
    /// Other parents that it has.
    pub parents: usize,
    /// Trees in which it has one.
    pub trees: u64,
}

impl TemplateClass {
    /// Hops to the farthest rank.
    pub fn depth(&self) -> usize {
        self.levels.len()
    }

    /// Hops over each class of links.
    pub fn hops(&self) -> BTreeMap<u32, u64> {
        let mut hops: BTreeMap<u32, u64> = BTreeMap::new();
        for group in self.levels.iter().flatten() {
            group.links.iter().for_each(|&class| *hops.entry(class).or_default() += group.hops);
        }
        hops
    }
}

/// Where seats are under the group.
pub(super) struct Places {
    /// By rank: its seat.
    seat_of: Vec<u32>,
    /// By seat: the rank, or [`UNKNOWN`].
    rank_of: Vec<u32>,
    /// By seat: its orbit, and how often each generator leads there, as a number with these digits.
    orbit_of: Vec<u32>,
    code_of: Vec<u32>,
    orders: Vec<u32>,
    orbits: usize,
}

impl Places {
    /// Those of a forest that was judged. O(seats · generators).
    pub(super) fn of(topology: &Topology, orbits: &Orbits, seating: &Seating) -> Self {
        let seats = orbits.seat_count as usize;
        let mut rank_of = vec![UNKNOWN; seats];
        let mut seat_of = vec![UNKNOWN; topology.rank_count() as usize];
        for (seat, rank) in seating.live(0) {
            (rank_of[seat as usize], seat_of[rank as usize]) = (rank, seat);
        }
        let orders: Vec<u32> = orbits.generators.iter().map(|generator| generator.order).collect();
        let (mut orbit_of, mut code_of) = (vec![UNKNOWN; seats], vec![0; seats]);
        let mut count = 0;
        for root in 0..orbits.seat_count {
            if orbit_of[root as usize] != UNKNOWN {
                continue;
            }
            let orbit = u32::try_from(count).unwrap_or(UNKNOWN);
            for (code, seat) in (0..).zip(moved(orbits, root)) {
                if let Some(place) = orbit_of.get_mut(seat as usize) {
                    (*place, code_of[seat as usize]) = (orbit, code);
                }
            }
            orbit_of[root as usize] = orbit;
            count += 1;
        }
        Self { seat_of, rank_of, orbit_of, code_of, orders, orbits: count }
    }

    /// Where a link leads.
    pub(super) fn kind(&self, topology: &Topology, link: LinkIndex) -> LinkKind {
        let link = topology.link(link);
        let seat = |node: NodeIndex| topology.rank_of(node).map(|rank| self.seat_of[rank.index()]);
        match (seat(link.from), seat(link.to)) {
            (Some(from), Some(to)) => LinkKind::Along(self.between(from, to)),
            (Some(_), None) => LinkKind::ToSwitch,
            (None, Some(_)) => LinkKind::FromSwitch,
            (None, None) => LinkKind::BetweenSwitches,
        }
    }

    /// How often each generator is applied from one seat to another, the shorter way round; from one orbit to another
    /// these two as well.
    fn between(&self, from: u32, to: u32) -> Vec<i64> {
        let (mut one, mut other) = (self.code_of[from as usize], self.code_of[to as usize]);
        let mut steps = Vec::with_capacity(self.orders.len());
        for &order in &self.orders {
            let order = order.max(1);
            let (size, ahead) = (i64::from(order), i64::from(other % order) - i64::from(one % order));
            let ahead = ahead.rem_euclid(size);
            steps.push(if ahead * 2 > size { ahead - size } else { ahead });
            (one, other) = (one / order, other / order);
        }
        let orbits = [from, to].map(|seat| i64::from(self.orbit_of[seat as usize]));
        if self.orbits > 1 {
            steps.extend(orbits);
        }
        steps
    }

    /// Templates and patches by what they do. O(seats · templates · log links + patches).
    pub(super) fn classes(&self, topology: &Topology, orbits: &Orbits, class_of: &[u32]) -> OrbitClasses {
        let finder = Finder::of(self, topology, class_of);
        let are_single = orbits.templates.len().saturating_mul(self.rank_of.len()) <= SINGLE_MAX;
        let templates = orbits.templates.iter().map(|template| finder.class(template, are_single));
        let mut by_rank: BTreeMap<u32, PatchClass> = BTreeMap::new();
        for patch in &orbits.patches {
            let rank = self.rank_of.get(patch.child as usize).copied().unwrap_or(UNKNOWN);
            let class = by_rank.entry(rank).or_insert(PatchClass { rank, parents: 0, trees: 0 });
            class.parents += 1;
            class.trees += patch.roots.len() as u64;
        }
        let mut patches: Vec<PatchClass> = by_rank.into_values().collect();
        patches.sort_by_key(|class| (std::cmp::Reverse(class.trees), class.rank));
        OrbitClasses {
            orders: self.orders.clone(),
            orbits: self.orbits,
            lost: self.rank_of.iter().filter(|&&rank| rank == UNKNOWN).count(),
            templates: templates.collect(),
            patches,
            patch_count: orbits.patches.len(),
        }
    }
}

/// All seats that the group moves one to: in the order of the number whose digits say how often each generator is
/// applied, the first lowest.
fn moved(orbits: &Orbits, root: u32) -> Vec<u32> {
    let seats = orbits.seat_count as usize;
    let mut found = vec![root];
    for generator in &orbits.generators {
        let before = found.len();
        for _ in 1..generator.order {
            if found.len() + before > seats {
                return found;
            }
            let from = found.len() - before;
            let next: Vec<u32> = found[from..].iter().filter_map(|&seat| generator.motion.image(seat)).collect();
            if next.len() != before {
                return found;
            }
            found.extend(next);
        }
    }
    found
}

/// Finds the classes of the links on the way into a seat.
struct Finder<'a> {
    places: &'a Places,
    topology: &'a Topology,
    class_of: &'a [u32],
    /// By what leads from one seat to another: the class of links that do, of the fastest ones.
    along: BTreeMap<Vec<i64>, u32>,
}

impl<'a> Finder<'a> {
    fn of(places: &'a Places, topology: &'a Topology, class_of: &'a [u32]) -> Self {
        let mut along: BTreeMap<Vec<i64>, u32> = BTreeMap::new();
        for (link, &class) in topology.links().iter().zip(class_of) {
            let ranks = topology.rank_of(link.from).zip(topology.rank_of(link.to));
            let Some((from, to)) = ranks else { continue };
            let [from, to] = [from, to].map(|rank| places.seat_of[rank.index()]);
            // Classes of one kind are numbered from the fastest on.
            let known = along.entry(places.between(from, to)).or_insert(class);
            *known = class.min(*known);
        }
        Self { places, topology, class_of, along }
    }

    /// The hops of a template, level by level. O(seats · log seats).
    fn class(&self, template: &Template, are_single: bool) -> TemplateClass {
        let Template { root, weight, parents, .. } = template;
        let depths = depths(parents, *root);
        let mut order: Vec<u32> = (0..).take(parents.len()).filter(|seat| seat != root).collect();
        order.sort_by_key(|&seat| depths[seat as usize]);
        // By seat: its group within its level, the links into it, and the hops over the same ones before it.
        let (mut group_of, mut runs) = (vec![0_u32; parents.len()], vec![0_u32; parents.len()]);
        let mut kinds: BTreeMap<Vec<u32>, u32> = BTreeMap::new();
        let mut kind_of = vec![UNKNOWN; parents.len()];
        let mut levels: Vec<Vec<HopGroup>> = Vec::new();
        let mut known: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        for seat in order {
            let (at, parent) = (seat as usize, parents[seat as usize] as usize);
            if levels.len() < depths[at] as usize {
                levels.push(Vec::new());
                known.clear();
            }
            let Some(level) = levels.last_mut() else { continue };
            let links = self.step(template, seat);
            let next = u32::try_from(kinds.len()).unwrap_or(UNKNOWN);
            kind_of[at] = *kinds.entry(links.clone()).or_insert(next);
            runs[at] = if kind_of[parent] == kind_of[at] { runs[parent] + 1 } else { 0 };
            let key = if are_single { (seat, 0) } else { (kind_of[at], runs[at]) };
            let fresh = u32::try_from(level.len()).unwrap_or(UNKNOWN);
            let number = *known.entry(key).or_insert(fresh);
            if number == fresh {
                level.push(HopGroup { links, hops: 0, after: Vec::new() });
            }
            let group = &mut level[number as usize];
            group.hops += 1;
            if parents[at] != *root && !group.after.contains(&group_of[parent]) {
                group.after.push(group_of[parent]);
            }
            group_of[at] = number;
        }
        TemplateClass { root: *root, weight: *weight, levels }
    }

    /// Classes of the links from a seat's parent to it.
    fn step(&self, template: &Template, seat: u32) -> Vec<u32> {
        let parent = template.parents[seat as usize];
        if seat == template.root {
            return Vec::new();
        }
        let Some(switches) = template.over.get(&seat) else {
            return self.along.get(&self.places.between(parent, seat)).copied().into_iter().collect();
        };
        let seats = self.places.rank_of.len();
        let node = |number: u32| match self.places.rank_of.get(number as usize) {
            Some(&rank) => Rank::new(rank).node(),
            None => NodeIndex::new(self.topology.rank_count() + number - u32::try_from(seats).unwrap_or(number)),
        };
        let passed: Vec<u32> =
            std::iter::once(parent).chain(switches.iter().copied()).chain(std::iter::once(seat)).collect();
        let link = |pair: &[u32]| {
            let (from, to) = (node(pair[0]), node(pair[1]));
            self.topology.links_from(from).find(|&link| self.topology.link(link).to == to)
        };
        passed.windows(2).filter_map(link).map(|link| self.class_of[link.index()]).collect()
    }
}

/// Hops from the root of a tree to each seat.
fn depths(parents: &[u32], root: u32) -> Vec<u32> {
    let mut depths = vec![UNKNOWN; parents.len()];
    depths[root as usize] = 0;
    let mut path = Vec::new();
    for seat in (0..).take(parents.len()) {
        let mut at: u32 = seat;
        while depths[at as usize] == UNKNOWN && path.len() < parents.len() {
            path.push(at);
            at = parents[at as usize];
        }
        let mut depth = depths[at as usize];
        while let Some(next) = path.pop() {
            depth = depth.saturating_add(1);
            depths[next as usize] = depth;
        }
    }
    depths
}
