//! What one rank of an orbit forest stands for.

use canopy_schedule::{ByClass, OrbitClasses, Orbits};
use canopy_topology::{LinkIndex, Rank, Topology};

use super::Representative;
use super::graph::{Copied, Lane, representative as graph_of};
use crate::options::SimulateError;

/// Hops of templates as transfers over classes of links.
pub(super) fn representative(
    topology: &Topology,
    orbits: &Orbits,
    classes: &ByClass,
    found: &OrbitClasses,
) -> Result<Representative, SimulateError> {
    let phases = u32::try_from(orbits.actions.len()).unwrap_or(1).max(1);
    let copied = transfers(topology, classes, found, classes.verdict.depth_max / phases);
    // Each class as fast as its busiest link lets what the templates send through.
    let mut carried = vec![0_u128; classes.links.len()];
    for action in &orbits.actions {
        for one in &copied {
            let route = if *action == canopy_schedule::Action::Copy { &one.route } else { &one.backwards };
            route.iter().for_each(|&class| carried[class] += u128::from(one.chunks));
        }
    }
    let lanes = classes.links.iter().zip(&carried).map(|(class, &carried)| {
        let scaled = carried.saturating_mul(class.capacity.into()).checked_div(class.chunks_max);
        let capacity = scaled.map_or(class.capacity, |scaled| u64::try_from(scaled).unwrap_or(u64::MAX));
        Lane { capacity, latency: topology.link(class.busiest).latency, link: class.busiest }
    });
    let lanes: Vec<Lane> = lanes.collect();
    graph_of(0, &copied, &lanes, &orbits.actions)
}

/// Level by level, so that each comes after what it waits for.
fn transfers(topology: &Topology, classes: &ByClass, found: &OrbitClasses, depth: u32) -> Vec<Copied> {
    let turned: Vec<usize> = classes.links.iter().map(|class| turned(topology, classes, class.busiest)).collect();
    let ends = |route: &[usize]| {
        let link = route.first().map(|&class| topology.link(classes.links[class].busiest));
        let rank = |node| topology.rank_of(node).unwrap_or(Rank::new(0));
        link.map_or((Rank::new(0), Rank::new(0)), |link| (rank(link.from), rank(link.to)))
    };
    let levels = found.templates.iter().map(canopy_schedule::TemplateClass::depth).max().unwrap_or(0);
    let mut copied: Vec<Copied> = Vec::new();
    // By template: transfers of the level before, by group.
    let mut before: Vec<Vec<Option<u32>>> = vec![Vec::new(); found.templates.len()];
    for level in 0..levels {
        for (template, before) in found.templates.iter().zip(&mut before) {
            let mut next: Vec<Option<u32>> = Vec::new();
            for group in template.levels.get(level).into_iter().flatten() {
                let route: Vec<usize> = group.links.iter().map(|&class| class as usize).collect();
                if route.is_empty() {
                    next.push(None);
                    continue;
                }
                let waits = group.after.iter().filter_map(|&after| before.get(after as usize).copied().flatten());
                next.push(u32::try_from(copied.len()).ok());
                copied.push(Copied {
                    step: u32::try_from(level).unwrap_or(u32::MAX),
                    chunks: template.weight.saturating_mul(group.hops),
                    piece_chunks: template.weight,
                    owner: (level == 0).then_some(0),
                    waits: waits.collect(),
                    backwards: route.iter().rev().map(|&class| turned[class]).collect(),
                    ends: ends(&route),
                    route,
                });
            }
            *before = next;
        }
    }
    // Patches lead some trees farther.
    for step in u32::try_from(levels).unwrap_or(u32::MAX)..depth {
        let Some(last) = copied.last().cloned() else { break };
        let waits = vec![u32::try_from(copied.len() - 1).unwrap_or(0)];
        copied.push(Copied { step, chunks: last.piece_chunks, owner: None, waits, ..last });
    }
    copied
}

/// The class of the link back.
fn turned(topology: &Topology, classes: &ByClass, link: LinkIndex) -> usize {
    let one = topology.link(link);
    let back = topology.links_from(one.to).find(|&back| topology.link(back).to == one.from);
    classes.class_of.get(back.unwrap_or(link).index()).copied().unwrap_or(0) as usize
}
