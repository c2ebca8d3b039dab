//! Boxes that are entered in two ways: found where NICs are fast, and as good as the bound wherever links are.

use canopy_optimize::Never;
use canopy_schedule::{CollectiveKind, Shares};
use canopy_topology::{Attributes, Capacity, Latency, NodeKind, Topology, TopologyDraft, TopologyLimits, generate};
use proptest::prelude::*;

use super::pieces::{in_pieces, in_pieces_of};
use crate::forest::decomposition::take_apart;
use crate::forest::instance::{Instance, Roots};
use crate::forest::modes::solve_in_modes;
use crate::forest::network::Network;
use crate::forest::packing::PackingChoice;
use crate::progress::Silent;

/// By how much the trees per root are multiplied where demand is divided; `None` where it is not.
fn scale(topology: &Topology) -> Option<u64> {
    let network = Network::of(topology);
    let instance = Instance::new(topology, Roots::All(&Shares::Equal), None, &Never).unwrap();
    let capacities: Vec<i128> = instance.capacities.iter().map(|&capacity| capacity.try_into().unwrap()).collect();
    let demands: Vec<i128> = instance.demands.iter().map(|&demand| demand.into()).collect();
    let apart = take_apart(&network, &capacities, &demands, &Never).unwrap();
    let counts = (instance.trees_per_root, 1 << 40);
    let numbers = (capacities.as_slice(), demands.as_slice());
    let trees = solve_in_modes(&network, &apart, numbers, counts, PackingChoice::First, (&Never, &Silent)).unwrap()?;
    assert!(trees.trees.is_sorted_by_key(|tree| tree.root));
    Some(trees.trees_per_root / instance.trees_per_root)
}

fn generated(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap()
}

#[test]
fn demand_is_divided_where_nics_are_fast() {
    // Inside, 8 GPUs take 7 links of each tree, and have 5 on rails, or under one switch.
    let star = Cluster { boxes: 9, gpus: 8, inside: 0, outside: 0, link: 2, nic: 1, faults: Vec::new(), named: true };
    for topology in [generated("rail:boxes=9,gpus=8,nv=100GB/s,nic=50GB/s"), star.topology().unwrap()] {
        assert!(scale(&topology).is_some_and(|scale| scale > 1));
        for kind in [CollectiveKind::Allgather, CollectiveKind::Allreduce, CollectiveKind::Broadcast] {
            in_pieces(&topology, kind);
        }
    }
    // Boundaries of boxes are tight as they are.
    assert_eq!(scale(&generated("dgx-a100:boxes=9")), None);
    assert_eq!(scale(&generated("mi250:boxes=4")), None);
    // No boxes at all.
    assert_eq!(scale(&generated("random-regular:n=40,d=4,seed=1")), None);
}

/// Boxes of GPUs of any inside, with fast and slow NICs, under one switch, two leaves with a spine, or rails.
#[derive(Clone, Debug)]
struct Cluster {
    boxes: usize,
    gpus: usize,
    inside: usize,
    outside: usize,
    link: u64,
    nic: u64,
    /// Links counted off that are gone, or have another capacity.
    faults: Vec<(usize, u64)>,
    named: bool,
}

impl Cluster {
    /// Links both ways.
    fn links(&self) -> Vec<(String, String, u64)> {
        let mut links = Vec::new();
        for number in 0..self.boxes {
            let gpu = |gpu: usize| format!("g{number}-{gpu}");
            for one in 0..self.gpus {
                match self.inside {
                    0 => links.push((gpu(one), format!("s{number}"), self.link)),
                    1 => links.extend((0..one).map(|other| (gpu(one), gpu(other), self.link))),
                    2 => links.push((gpu(one), gpu((one + 1) % self.gpus), self.link)),
                    // Pairs, and a switch that all share.
                    _ => {
                        links.push((gpu(one), format!("s{number}"), 1 + self.link / 3));
                        links.extend((one % 2 == 1).then(|| (gpu(one), gpu(one - 1), self.link)));
                    }
                }
                let hub = match self.outside {
                    0 => "hub".to_owned(),
                    1 => format!("leaf{}", number % 2),
                    _ => format!("rail{one}"),
                };
                links.push((gpu(one), hub, self.nic));
            }
        }
        if self.outside == 1 {
            let uplink = self.nic * (self.boxes * self.gpus) as u64;
            links.extend((0..2).map(|leaf| (format!("leaf{leaf}"), "spine".to_owned(), uplink)));
        }
        for &(place, capacity) in &self.faults {
            let place = place % links.len();
            links[place].2 = capacity;
        }
        links
    }

    fn topology(&self) -> Option<Topology> {
        let mut draft = TopologyDraft::default();
        for number in 0..self.boxes {
            let name = self.named.then(|| format!("box{number}"));
            let attributes = Attributes { box_name: name, ..Attributes::default() };
            (0..self.gpus)
                .for_each(|gpu| draft.add_node(format!("g{number}-{gpu}"), NodeKind::Compute, attributes.clone()));
        }
        let links: Vec<_> = self.links().into_iter().filter(|&(_, _, capacity)| capacity > 0).collect();
        let mut switches: Vec<&String> =
            links.iter().flat_map(|(from, to, _)| [from, to]).filter(|id| !id.starts_with('g')).collect();
        switches.sort();
        switches.dedup();
        switches.into_iter().for_each(|id| draft.add_switch(id));
        for (from, to, capacity) in &links {
            draft.add_both(from, to, Capacity::from_bytes_per_sec(*capacity)?, Latency::from_nanos(0));
        }
        draft
            .build(&TopologyLimits::STANDARD)
            .ok()
            .filter(|topology| topology.ranks().all(|rank| topology.first_unreachable_from(rank).is_none()))
    }
}

fn clusters() -> impl Strategy<Value = Cluster> {
    let shape = (2..6_usize, 2..6_usize, 0..4_usize, 0..3_usize);
    let faults = prop::collection::vec((0..999_usize, 0..3_u64), 0..3);
    (shape, 1..9_u64, 1..9_u64, faults, any::<bool>()).prop_map(
        |((boxes, gpus, inside, outside), link, nic, faults, named)| Cluster {
            boxes,
            gpus,
            inside,
            outside,
            link,
            nic,
            faults,
            named,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// The rate is that of the bound, which `in_pieces` asserts, whatever is divided.
    #[test]
    fn clusters_with_fast_nics_reach_the_bound(cluster in clusters(), weights in prop::collection::vec(0..4_u64, 25)) {
        let Some(topology) = cluster.topology() else { return Ok(()) };
        for kind in [CollectiveKind::Allgather, CollectiveKind::Allreduce, CollectiveKind::Broadcast] {
            in_pieces(&topology, kind);
        }
        let mut weights = weights[..topology.rank_count() as usize].to_vec();
        weights[0] += 1;
        in_pieces_of(&topology, CollectiveKind::ReduceScatter, Shares::Weighted(weights));
    }
}
