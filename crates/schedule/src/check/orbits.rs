//! Judges orbit forests by their templates and their group, without the trees of any other rank.
//!
//! **Every share reaches every rank once.** Symmetries map trees that span all ranks to such trees, and each root has
//! exactly one symmetry that moves the root of its orbit there. **Loads** are counted by orbits of links, and compared
//! with the capacity of each link. Links and ranks that are missing must carry nothing then: patches move what the
//! templates send over them. Backwards, all holds with sums in place of shares.

mod error;
mod group;
mod loads;
mod patches;
mod tree;

use canopy_topology::Topology;

use super::load::busiest;
use super::{CheckError, Stop, StructureError, Verdict, phases};
use crate::collective::{Collective, CollectiveKind};
use crate::forest::Action;
use crate::orbits::{Orbits, Template};
use crate::shares::{ChunkLayout, Shares};

pub use error::{GeneratorFault, OrbitsError, PatchFault, TemplateFault};
use group::Group;
use loads::{Healthy, Loads};
use patches::Patches;
use tree::Tree;

/// Most switches on a route.
const SWITCHES_MAX: usize = 3;

/// Judges an orbit forest: structure and meaning of templates, symmetries and patches, then the exact load of every
/// link.
///
/// * **Source.** Orbits and stabilisers, as the text of this module says.
/// * **Out.** As of [`check`](super::check). With patches, depths are those of the deepest tree at most.
/// * **Errors.** [`OrbitsError`], or [`Stopped`](CheckError::Stopped) soon after `stop` says so.
/// * **Cost.** O(links · generators + ranks · templates), and for each lost rank as much as all templates; for each
///   patch O(roots), times the patches of one tree. Memory likewise, without the patches of one tree.
pub fn check_orbits_until(
    topology: &Topology,
    collective: Collective,
    shares: &Shares,
    orbits: &Orbits,
    stop: Stop<'_>,
) -> Result<Verdict, CheckError> {
    Ok(judge_orbits_until(topology, collective, shares, orbits, stop)?.0)
}

/// The same with the chunks over each link.
pub fn judge_orbits_until(
    topology: &Topology,
    collective: Collective,
    shares: &Shares,
    orbits: &Orbits,
    stop: Stop<'_>,
) -> Result<(Verdict, Vec<u128>), CheckError> {
    let (seat_count, chunks_per_share) = (orbits.seat_count, orbits.chunks_per_share);
    require_phases(collective.kind(), orbits)?;
    if *shares != Shares::Equal {
        return Err(OrbitsError::Shares.into());
    }
    // Sums of chunks over a link have 64 bits: it carries all chunks once for each pair of seats at most.
    let max = u64::MAX / 16 / u64::from(seat_count).pow(2).max(1);
    if !(1..=max).contains(&chunks_per_share) {
        return Err(OrbitsError::Chunks { chunks_per_share, seat_count, max }.into());
    }
    let roots = roots(orbits)?;
    let seating = orbits.seating(topology.rank_count()).map_err(OrbitsError::from)?;
    let switches = topology.nodes().len() - topology.rank_count() as usize;
    let network = Healthy::new(topology, &seating, seat_count);
    let group = Group::new(orbits, seat_count as usize + switches, &roots)?;
    if stop() {
        return Err(CheckError::Stopped);
    }
    let is_faulty = Patches::is_needed(orbits, topology.rank_count());
    if is_faulty && orbits.templates.iter().any(|template| !template.over.is_empty()) {
        return Err(OrbitsError::Switches.into());
    }
    let patches = Patches::new(orbits, &group, &network)?;
    let phase = |&action: &Action| Loads::new(&network, &group, &patches.is_patched, action);
    let mut loads: Vec<Loads<'_>> = orbits.actions.iter().map(phase).collect();
    let mut depths = Depths::default();
    for (number, template) in orbits.templates.iter().enumerate() {
        let tree = Tree::new(number, template, &group)?;
        count(template, number, &tree, &group, &network, &mut loads)?;
        let deeper = match is_faulty {
            true => patches.apply(number, &tree, &mut loads, stop)?.ok_or(CheckError::Stopped)?,
            false => patches::Deeper::default(),
        };
        if stop() {
            return Err(CheckError::Stopped);
        }
        let first = group.orbit_of(tree.root) * group.size();
        let live = (first..first + group.size()).filter(|&code| network.is_live(group.seat_of(code))).count() as u64;
        let longest = template.over.values().map(Vec::len).max().map_or(1, |switches| switches + 1);
        depths.add(template.weight, live, &tree, deeper, u32::try_from(longest).unwrap_or(u32::MAX));
    }
    let mut all = vec![0_u128; topology.links().len()];
    loads.iter().try_for_each(|of_phase| of_phase.put(&mut all))?;
    let size = ChunkLayout::new(collective, topology.rank_count(), chunks_per_share, shares);
    let (algbw, busiest_link) = busiest(topology, &all, size.map_err(StructureError::from)?.size())?;
    let phases = u32::try_from(orbits.actions.len()).unwrap_or(u32::MAX);
    let verdict = Verdict {
        algbw,
        busiest_link,
        tree_count: u64::from(topology.rank_count()) * chunks_per_share,
        depth_max: depths.depth.saturating_mul(phases),
        depth_sum: depths.sum * u128::from(phases),
        links_max: depths.links.saturating_mul(phases),
        links_sum: depths.links_sum * u128::from(phases),
        batch_count: depths.trees * orbits.actions.len(),
        chain_max: depths.depth.saturating_mul(phases),
        steps: None,
        in_network: None,
        checks: ["structure", "meaning", "load"],
    };
    Ok((verdict, all))
}

/// How deep trees are.
#[derive(Default)]
struct Depths {
    depth: u32,
    links: u32,
    sum: u128,
    links_sum: u128,
    trees: usize,
}

impl Depths {
    /// Counts the trees that a template makes for live roots.
    fn add(&mut self, weight: u64, live: u64, tree: &Tree, deeper: patches::Deeper, longest: u32) {
        let depth = tree.depth.max(deeper.depth);
        let sum = u128::from(weight) * (u128::from(live) * u128::from(tree.depth) + u128::from(deeper.sum));
        self.depth = self.depth.max(depth);
        self.links = self.links.max(depth.saturating_mul(longest));
        self.sum += sum;
        self.links_sum += sum * u128::from(longest);
        self.trees += usize::try_from(live).unwrap_or(usize::MAX);
    }
}

fn require_phases(kind: CollectiveKind, orbits: &Orbits) -> Result<(), OrbitsError> {
    match phases::difference(kind, &orbits.actions) {
        Some((found, expected)) => Err(OrbitsError::Phases { collective: kind.name(), found, expected }),
        None => Ok(()),
    }
}

/// The roots of templates, each once, if what templates state can be counted and each root has all its chunks.
fn roots(orbits: &Orbits) -> Result<Vec<u32>, OrbitsError> {
    if orbits.templates.is_empty() {
        return Err(OrbitsError::NoTemplate { seat: 0 });
    }
    let mut weights: Vec<(u32, u128)> = Vec::new();
    for (number, template) in orbits.templates.iter().enumerate() {
        let fault = |fault| OrbitsError::Template { template: number, fault };
        let Template { root, weight, parents, .. } = template;
        if *weight == 0 {
            return Err(fault(TemplateFault::NoChunks));
        }
        // Before anything of this size is built, there are that many numbers.
        if parents.len() != orbits.seat_count as usize {
            return Err(fault(TemplateFault::Length { found: parents.len(), expected: orbits.seat_count }));
        }
        if parents.get(*root as usize) != Some(root) {
            return Err(fault(TemplateFault::Root { root: *root }));
        }
        match weights.last_mut().filter(|(last, _)| last == root) {
            Some((_, sum)) => *sum += u128::from(*weight),
            None => weights.push((*root, u128::from(*weight))),
        }
    }
    let expected = orbits.chunks_per_share;
    match weights.iter().find(|&&(_, found)| found != u128::from(expected)) {
        Some(&(root, found)) => Err(OrbitsError::Weights { root, found, expected }),
        None => Ok(weights.into_iter().map(|(root, _)| root).collect()),
    }
}

/// Adds the hops of a template to the loads of all phases.
fn count(
    template: &Template,
    number: usize,
    tree: &Tree,
    group: &Group,
    network: &Healthy<'_>,
    loads: &mut [Loads<'_>],
) -> Result<(), OrbitsError> {
    let fault = |fault| OrbitsError::Template { template: number, fault };
    let nodes = network.seat_count as usize + network.topology.nodes().len() - network.topology.rank_count() as usize;
    for (&seat, switches) in &template.over {
        if seat == template.root || seat >= network.seat_count || !(1..=SWITCHES_MAX).contains(&switches.len()) {
            return Err(fault(TemplateFault::Route { seat, max: SWITCHES_MAX }));
        }
        if let Some(&node) = switches.iter().find(|&&node| node < network.seat_count || node as usize >= nodes) {
            return Err(fault(TemplateFault::NoSwitch { seat, node }));
        }
    }
    for (child, parent) in tree.hops() {
        let (mut from, to) = (group.seat_of(parent), group.seat_of(child));
        let passed = if template.over.is_empty() { None } else { template.over.get(&to) };
        for next in passed.into_iter().flatten().copied().chain([to]) {
            loads.iter_mut().try_for_each(|of_phase| of_phase.add(from, next, template.weight))?;
            from = next;
        }
    }
    Ok(())
}
