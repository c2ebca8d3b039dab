//! What could be boxes, innermost sets of ranks that have much to do with each other.

use std::collections::BTreeSet;

use petgraph::unionfind::UnionFind;

use crate::forest::network::{Network, Way};

/// Candidates looked at that differ in their rates, or in their sizes: O(links) each.
const CANDIDATES_MAX: usize = 12;

/// By node: the number of its box, where it is in one with other ranks. No box has more than half of all ranks.
pub(super) type Candidate = Vec<Option<usize>>;

/// Boxes that the network names, those that remain if only links of some rate or more count, and those that remain without
/// switches of many ranks. Links between switches never count.
///
/// O(links · α) for each.
pub(super) fn candidates(network: &Network<'_>, capacities: &[i128]) -> Vec<Candidate> {
    let ranks = network.terminal_count;
    let links = network.links.iter().zip(capacities).filter(|&(way, &rate)| rate > 0 && way.from.min(way.to) < ranks);
    let links: Vec<(&Way, i128)> = links.map(|(way, &rate)| (way, rate)).collect();
    let mut attached = vec![0_usize; network.node_count as usize];
    let mut label_of: Vec<Option<Option<u32>>> = vec![None; network.node_count as usize];
    for (way, _) in &network.links.iter().zip(capacities).filter(|&(_, &rate)| rate > 0).collect::<Vec<_>>() {
        attached[way.to as usize] += usize::from(way.from < ranks);
        let label = network.boxes.get(way.from as usize).copied().flatten();
        // A switch has a label if all of its neighbours have that one.
        let of_switch = label_of[way.to as usize].get_or_insert(label);
        *of_switch = of_switch.filter(|known| label == Some(*known));
    }
    let label = |node: u32| match node < ranks {
        true => network.boxes[node as usize],
        false => label_of[node as usize].flatten(),
    };
    let is_named = |(way, _): &(&Way, i128)| label(way.from).is_some() && label(way.from) == label(way.to);
    let mut found: Vec<Candidate> = Vec::new();
    found.extend(components(network, links.iter().copied().filter(is_named)));
    let rates: BTreeSet<i128> = links.iter().map(|&(_, rate)| rate).collect();
    for &least in rates.iter().rev().take(CANDIDATES_MAX) {
        found.extend(components(network, links.iter().copied().filter(|&(_, rate)| rate >= least)));
    }
    let sizes: BTreeSet<usize> = attached[ranks as usize..].iter().copied().filter(|&count| count > 0).collect();
    for &size in sizes.iter().rev().take(CANDIDATES_MAX) {
        let is_kept = |node: u32| node < ranks || attached[node as usize] < size;
        let kept = links.iter().copied().filter(|(way, _)| is_kept(way.from) && is_kept(way.to));
        found.extend(components(network, kept));
    }
    let mut different: Vec<Candidate> = Vec::new();
    for candidate in found {
        if !different.contains(&candidate) {
            different.push(candidate);
        }
    }
    different
}

/// The components of some links, as far as they have several ranks; `None` if there are none, or one has more than half of
/// all ranks.
fn components<'a>(network: &Network<'_>, links: impl Iterator<Item = (&'a Way, i128)>) -> Option<Candidate> {
    let ranks = network.terminal_count as usize;
    let mut joined = UnionFind::<u32>::new(network.node_count as usize);
    links.for_each(|(way, _)| {
        joined.union(way.from, way.to);
    });
    // A switch belongs to the ranks around it, if these belong together and it has no other neighbours.
    let mut around: Vec<Option<Option<u32>>> = vec![None; network.node_count as usize];
    for way in &network.links {
        let component = if (way.from as usize) < ranks { Some(joined.find(way.from)) } else { None };
        let known = around[way.to as usize].get_or_insert(component);
        *known = known.filter(|&known| component == Some(known));
    }
    for (switch, component) in (0_u32..).zip(around).skip(ranks) {
        if let Some(component) = component.flatten() {
            joined.union(component, switch);
        }
    }
    let component_of = joined.into_labeling();
    let mut sizes = vec![0_usize; component_of.len()];
    component_of[..ranks].iter().for_each(|&component| sizes[component as usize] += 1);
    if sizes.iter().any(|&size| 2 * size > ranks) || sizes.iter().all(|&size| size < 2) {
        return None;
    }
    let mut numbers = vec![None; component_of.len()];
    let mut next = 0;
    let number = |&component: &u32| {
        let number = &mut numbers[component as usize];
        (sizes[component as usize] > 1).then(|| {
            *number.get_or_insert_with(|| {
                next += 1;
                next - 1
            })
        })
    };
    Some(component_of.iter().map(number).collect())
}
