//! The boxes of a network in order, and the places of ranks in them.

use std::collections::BTreeMap;

use canopy_schedule::NOBODY;
use canopy_topology::Topology;

use super::BoxNetwork;
use super::levels::Levels;
use super::order::Order;
use super::parts::Parts;

/// Pieces as boxes in the order of their pods, with places.
pub(super) fn network(topology: &Topology, parts: &Parts) -> Option<BoxNetwork> {
    let ranks = topology.rank_count() as usize;
    let (box_of, count) = (&parts.piece_of, parts.ranks.len());
    let places = parts.ranks.iter().map(Vec::len).max()?;
    let levels = Levels::of(topology, parts);
    let order = Order::of(count, &levels.of_boxes, places == 1)?;
    let attached = attached(topology, parts);
    let one = vec![0; count];
    let pods = levels.of_boxes.first().unwrap_or(&one);
    let rails = Rails::of(topology, parts, &attached, pods, places);
    let mut network = BoxNetwork {
        places: u32::try_from(places).ok()?,
        ranks: Vec::with_capacity(order.boxes.len()),
        odd: Vec::new(),
        levels: order.levels,
        nics: nics(topology, parts),
        homes: vec![NOBODY; topology.nodes().len()],
        areas: Vec::new(),
    };
    let mut number_of = vec![NOBODY; count];
    for (number, &of_box) in (0..).zip(&order.boxes) {
        let seats = of_box.map_or_else(|| vec![NOBODY; places], |of| rails.seat(&parts.ranks[of], pods[of], places));
        network.ranks.push(seats);
        if let Some(of_box) = of_box {
            number_of[of_box] = number;
        }
    }
    for (home, of_box) in network.homes.iter_mut().zip(box_of) {
        *home = of_box.map_or(NOBODY, |of_box| number_of[of_box]);
    }
    let area = |of: Option<usize>| of.and_then(|of| u32::try_from(of).ok()).unwrap_or(NOBODY);
    network.areas = levels.of_nodes.into_iter().map(|of| of.into_iter().map(area).collect()).collect();
    network.odd = odd(topology, &network, ranks);
    Some(network)
}

/// Links from boxes to outer switches: the box, its node, and the switch.
fn attached(topology: &Topology, parts: &Parts) -> Vec<(usize, usize, usize)> {
    let links = topology.links().iter().map(|link| (link.from.index(), link.to.index()));
    let outward = links.filter(|&(_, to)| parts.outer[to]);
    outward.filter_map(|(from, to)| Some((parts.piece_of[from]?, from, to))).collect()
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
    /// By node: an outer switch that it is at, and whether there are more.
    switches: Vec<Option<(usize, bool)>>,
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
        let mut rails = Self { places: BTreeMap::new(), switches: vec![None; parts.piece_of.len()] };
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
            let at = &mut rails.switches[node];
            *at = Some(at.map_or((switch, false), |(first, _)| (first, true)));
        }
        rails
    }

    /// The ranks of a box by place.
    fn seat(&self, ranks: &[u32], pod: usize, places: usize) -> Vec<u32> {
        let mut seats = vec![NOBODY; places];
        let mut others = Vec::new();
        for &rank in ranks {
            let only = self.switches.get(rank as usize).copied().flatten().filter(|&(_, has_more)| !has_more);
            let place = only.and_then(|(switch, _)| self.places.get(&(pod, switch)).copied());
            match place.filter(|&place| seats[place] == NOBODY) {
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
    let is_free = |of_box: u32| network.ranks[of_box as usize].iter().all(|&rank| rank == NOBODY);
    for (of_box, signature) in (0..).zip(&signatures) {
        *counts.entry(signature).or_default() += usize::from(!is_free(of_box));
    }
    let most = counts.iter().max_by_key(|(_, count)| **count).map(|(signature, _)| *signature).unwrap_or_default();
    let others = (0..).zip(&signatures).filter(|(_, signature)| signature.as_slice() != most);
    others.map(|(of_box, _)| of_box).filter(|&of_box| !is_free(of_box)).collect()
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
                Some(&home) if home != NOBODY && to >= first_switch => {
                    let known = switches.iter().position(|&known| known == to);
                    known.unwrap_or_else(|| {
                        switches.push(to);
                        switches.len() - 1
                    }) + ranks.len()
                }
                Some(&home) if home != NOBODY => {
                    ranks.iter().position(|&rank| rank as usize == to).unwrap_or(usize::MAX)
                }
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
