//! Pods of boxes at the same switches, and the places of ranks in their boxes.

use std::collections::BTreeMap;

use canopy_schedule::NOBODY;
use canopy_topology::Topology;
use petgraph::unionfind::UnionFind;

use super::parts::Parts;
use super::{BoxNetwork, Home};

/// Pieces as boxes in the order of their pods, with places.
pub(super) fn network(topology: &Topology, parts: &Parts) -> Option<BoxNetwork> {
    let ranks = topology.rank_count() as usize;
    let box_of = &parts.piece_of;
    let attached = attached(topology, parts);
    let pods = pods(parts.ranks.len(), &attached);
    let order = order(&pods)?;
    let nics = nics(topology, parts);
    let places = parts.ranks.iter().map(Vec::len).max()?;
    let rails = Rails::of(topology, parts, &attached, &pods, places);
    let mut network = BoxNetwork {
        places: u32::try_from(places).ok()?,
        ranks: Vec::with_capacity(parts.ranks.len()),
        odd: Vec::new(),
        pod: order.pod,
        nics,
        homes: vec![Home::Between; topology.nodes().len()],
    };
    let mut number_of = vec![0; parts.ranks.len()];
    for (number, &of_box) in (0..).zip(&order.boxes) {
        network.ranks.push(rails.seat(&parts.ranks[of_box], pods[of_box], places));
        number_of[of_box] = number;
    }
    for (home, of_box) in network.homes.iter_mut().zip(box_of) {
        *home = of_box.map_or(Home::Between, |of_box| Home::Box(number_of[of_box]));
    }
    for &(of_box, _, switch) in &attached {
        network.homes[switch] = Home::Pod(number_of[of_box] / network.pod);
    }
    network.odd = odd(topology, &network, ranks);
    Some(network)
}

/// Links from boxes to outer switches: the box, its node, and the switch.
fn attached(topology: &Topology, parts: &Parts) -> Vec<(usize, usize, usize)> {
    let links = topology.links().iter().map(|link| (link.from.index(), link.to.index()));
    let outward = links.filter(|&(_, to)| parts.outer[to]);
    outward.filter_map(|(from, to)| Some((parts.piece_of[from]?, from, to))).collect()
}

/// The pod of each box: boxes that are at one switch are in one.
fn pods(boxes: usize, attached: &[(usize, usize, usize)]) -> Vec<usize> {
    let mut joined = UnionFind::<usize>::new(boxes);
    let mut first_at: BTreeMap<usize, usize> = BTreeMap::new();
    for &(of_box, _, switch) in attached {
        joined.union(of_box, *first_at.entry(switch).or_insert(of_box));
    }
    let mut number = vec![None; boxes];
    let mut count = 0;
    (0..boxes)
        .map(|of_box| {
            *number[joined.find_mut(of_box)].get_or_insert_with(|| {
                count += 1;
                count - 1
            })
        })
        .collect()
}

/// Boxes in the order of their numbers.
struct Order {
    boxes: Vec<usize>,
    pod: u32,
}

fn order(pods: &[usize]) -> Option<Order> {
    let mut boxes: Vec<usize> = (0..pods.len()).collect();
    boxes.sort_by_key(|&of_box| pods[of_box]);
    let count = pods.iter().max()? + 1;
    let mut sizes = vec![0_usize; count];
    pods.iter().for_each(|&pod| sizes[pod] += 1);
    let size = match sizes.iter().all(|&size| size == sizes[0]) {
        true => sizes[0],
        false => {
            boxes.sort_unstable();
            pods.len()
        }
    };
    Some(Order { boxes, pod: u32::try_from(size).ok()? })
}

/// By rank: bytes per second to and from outer switches; of ranks behind a switch of their box that leads there, those
/// of their links to it.
fn nics(topology: &Topology, parts: &Parts) -> Vec<(u64, u64)> {
    let first_switch = topology.rank_count() as usize;
    let mut leads_out = parts.outer.clone();
    let direct = topology.links().iter().any(|link| link.from.index() < first_switch && parts.outer[link.to.index()]);
    if !direct {
        for link in topology.links().iter().filter(|link| parts.outer[link.to.index()]) {
            leads_out[link.from.index()] = parts.piece_of[link.from.index()].is_some();
        }
    }
    let mut nics = vec![(0_u64, 0_u64); first_switch];
    for link in topology.links() {
        let (from, to, rate) = (link.from.index(), link.to.index(), link.capacity.bytes_per_sec());
        if from < first_switch && leads_out[to] {
            nics[from].0 = nics[from].0.saturating_add(rate);
        } else if to < first_switch && leads_out[from] {
            nics[to].1 = nics[to].1.saturating_add(rate);
        }
    }
    nics
}

/// Which place the ranks at a switch have.
struct Rails {
    /// By pod and switch: the place. Without any, places follow the order of ranks.
    places: BTreeMap<(usize, usize), usize>,
    /// By rank: the outer switches that it is at.
    switches: BTreeMap<usize, Vec<usize>>,
}

impl Rails {
    /// Switches of a pod are rails if it has as many of them as its boxes have places.
    fn of(
        topology: &Topology,
        parts: &Parts,
        attached: &[(usize, usize, usize)],
        pods: &[usize],
        places: usize,
    ) -> Self {
        let mut of_pods: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for &(of_box, _, switch) in attached {
            of_pods.entry(pods[of_box]).or_default().push(switch);
        }
        let mut rails = Self { places: BTreeMap::new(), switches: BTreeMap::new() };
        if places < 2 {
            return rails;
        }
        for (pod, mut switches) in of_pods {
            switches.sort_unstable();
            switches.dedup();
            if switches.len() == places {
                // Those of different pods that lead to the same switches are one rail.
                switches.sort_by_cached_key(|&switch| beyond(topology, parts, switch));
                rails.places.extend((0..).zip(switches).map(|(place, switch)| ((pod, switch), place)));
            }
        }
        for &(_, node, switch) in attached.iter().filter(|_| !rails.places.is_empty()) {
            rails.switches.entry(node).or_default().push(switch);
        }
        rails
    }

    /// The ranks of a box by place.
    fn seat(&self, ranks: &[u32], pod: usize, places: usize) -> Vec<u32> {
        let mut seats = vec![NOBODY; places];
        let mut others = Vec::new();
        for &rank in ranks {
            let switches = self.switches.get(&(rank as usize)).map_or(&[][..], Vec::as_slice);
            let place = switches.first().and_then(|&switch| self.places.get(&(pod, switch)).copied());
            match place.filter(|&place| switches.len() == 1 && seats[place] == NOBODY) {
                Some(place) => seats[place] = rank,
                None => others.push(rank),
            }
        }
        let mut free = (0..places).filter(|&place| seats[place] == NOBODY).collect::<Vec<_>>().into_iter();
        for (rank, place) in others.into_iter().zip(&mut free) {
            seats[place] = rank;
        }
        seats
    }
}

/// Outer switches that an outer switch leads to.
fn beyond(topology: &Topology, parts: &Parts, switch: usize) -> Vec<usize> {
    let Some(node) = topology.nodes().get(switch).and_then(|_| u32::try_from(switch).ok()) else { return Vec::new() };
    let links = topology.links_from(canopy_topology::NodeIndex::new(node)).map(|link| topology.link(link).to.index());
    links.filter(|&to| parts.outer[to]).collect()
}

/// Boxes whose links are not those of most.
fn odd(topology: &Topology, network: &BoxNetwork, first_switch: usize) -> Vec<u32> {
    let signatures: Vec<Vec<u64>> =
        network.ranks.iter().map(|ranks| signature(topology, network, ranks, first_switch)).collect();
    let mut counts: BTreeMap<&[u64], usize> = BTreeMap::new();
    signatures.iter().for_each(|signature| *counts.entry(signature).or_default() += 1);
    let most = counts.iter().max_by_key(|(_, count)| **count).map(|(signature, _)| *signature).unwrap_or_default();
    (0..).zip(&signatures).filter(|(_, signature)| signature.as_slice() != most).map(|(of_box, _)| of_box).collect()
}

/// What the ranks of a box have: their NICs, and their links to each other and to its switches.
fn signature(topology: &Topology, network: &BoxNetwork, ranks: &[u32], first_switch: usize) -> Vec<u64> {
    let mut switches: Vec<usize> = Vec::new();
    let mut all = Vec::new();
    for &rank in ranks {
        if rank == NOBODY {
            all.push(u64::MAX);
            continue;
        }
        let (to, from) = network.nics.get(rank as usize).copied().unwrap_or_default();
        all.extend([to, from]);
        let mut links = Vec::new();
        for link in topology.links_from(canopy_topology::NodeIndex::new(rank)).map(|link| topology.link(link)) {
            let to = link.to.index();
            let name = match network.homes.get(to) {
                Some(Home::Box(_)) if to >= first_switch => {
                    let known = switches.iter().position(|&known| known == to);
                    known.unwrap_or_else(|| {
                        switches.push(to);
                        switches.len() - 1
                    }) + ranks.len()
                }
                Some(Home::Box(_)) => ranks.iter().position(|&rank| rank as usize == to).unwrap_or(usize::MAX),
                _ => continue,
            };
            links.push((name as u64, link.capacity.bytes_per_sec()));
        }
        links.sort_unstable();
        all.push(links.len() as u64);
        all.extend(links.into_iter().flat_map(|(name, rate)| [name, rate]));
    }
    all
}
