//! Groups of sets of nodes that are all linked to each other, as in a dragonfly.

use std::collections::BTreeSet;

use canopy_topology::Topology;
use petgraph::unionfind::UnionFind;

/// Most comparisons of neighbours.
const WORK_MAX: usize = 1 << 28;
/// Most numbers of common neighbours that groups are looked for with.
const TRIES_MAX: usize = 64;

/// Pairs of linked sets that join the members of each group, given the set of each node; `None` without groups.
///
/// Two of a group have the others of it as common neighbours, two of different ones have few or none. The least number
/// of common neighbours is looked for from which on links join sets that are three quarters complete, and more than one.
///
/// O(links · links of a set).
pub(super) fn pairs(topology: &Topology, of_nodes: &[Option<usize>], count: usize) -> Option<Vec<(usize, usize)>> {
    let mut neighbours: Vec<Vec<usize>> = vec![Vec::new(); count];
    for link in topology.links() {
        if let (Some(one), Some(other)) = (of_nodes[link.from.index()], of_nodes[link.to.index()])
            && one != other
        {
            neighbours[one].push(other);
            neighbours[other].push(one);
        }
    }
    for of_set in &mut neighbours {
        of_set.sort_unstable();
        of_set.dedup();
    }
    let pairs = |one: usize| neighbours[one].iter().map(move |&other| (one, other)).filter(|(one, other)| one < other);
    let work = |(one, other): (usize, usize)| neighbours[one].len() + neighbours[other].len();
    if (0..count).flat_map(pairs).map(work).sum::<usize>() > WORK_MAX {
        return None;
    }
    let in_common = |(one, other): (usize, usize)| (one, other, common(&neighbours[one], &neighbours[other]));
    let links: Vec<(usize, usize, usize)> = (0..count).flat_map(pairs).map(in_common).collect();
    let numbers: BTreeSet<usize> = links.iter().map(|&(_, _, common)| common).filter(|&common| common > 0).collect();
    numbers.into_iter().take(TRIES_MAX).find_map(|least| groups(&links, count, least))
}

/// The links of groups with so many common neighbours at least, if they are nearly complete.
fn groups(links: &[(usize, usize, usize)], count: usize, least: usize) -> Option<Vec<(usize, usize)>> {
    let mut sets = UnionFind::<usize>::new(count);
    let pairs: Vec<(usize, usize)> =
        links.iter().filter(|link| link.2 >= least).map(|&(one, other, _)| (one, other)).collect();
    pairs.iter().for_each(|&(one, other)| {
        sets.union(one, other);
    });
    let mut sizes = vec![0_usize; count];
    (0..count).for_each(|set| sizes[sets.find_mut(set)] += 1);
    let inside = links.iter().filter(|&&(one, other, _)| sets.equiv(one, other)).count();
    let complete: usize = sizes.iter().map(|&size| size * size.saturating_sub(1) / 2).sum();
    let are_several = sizes.iter().filter(|&&size| size > 0).count() > 1;
    (are_several && inside * 4 >= complete * 3).then_some(pairs)
}

/// Number of common elements of two sorted lists.
fn common(one: &[usize], other: &[usize]) -> usize {
    let mut others = other.iter().peekable();
    let is_common = |&&element: &&usize| {
        while others.next_if(|&&other| other < element).is_some() {}
        others.next_if(|&&other| other == element).is_some()
    };
    one.iter().filter(is_common).count()
}
