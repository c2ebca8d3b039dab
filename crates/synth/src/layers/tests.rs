//! Few layers, none with a cycle; limits are kept with other ways or refused.

use std::collections::{BTreeMap, BTreeSet};

use canopy_optimize::Never;
use canopy_schedule::{Collective, CollectiveKind, Schedule, Shares, check_flow};
use canopy_topology::{Rate, TopologyDraft, TopologyLimits, generate};

use super::*;
use crate::algorithm::Algorithm;
use crate::algorithm::SynthesisRequest;
use crate::progress::Silent;
use crate::synthesize::synthesize;

fn all_to_all(topology: &Topology) -> Schedule {
    let collective = Collective::new(CollectiveKind::AllToAll, None, topology.rank_count()).unwrap();
    synthesize(topology, &SynthesisRequest::new(collective, Algorithm::Flow), &Never, &Silent).unwrap()
}

fn topology(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap()
}

/// Links of each path.
fn ways(flow: &Flow) -> Vec<Vec<u32>> {
    let links = |path| flow.hops_of(path).iter().flat_map(|&hop| flow.routes.get(hop).unwrap());
    flow.paths.iter().map(|path| links(path).map(|link| link.number()).collect()).collect()
}

/// Layers and rate of a schedule within a limit; that the flow is right, and no layer has a cycle, is asserted.
fn judged(topology: &Topology, schedule: &Schedule, most: Option<u32>) -> Result<(u32, Rate), LayersError> {
    let layered = layered_flow(topology, schedule, most.and_then(NonZeroU32::new), &Never)?;
    let flow = Schedule { shape: Shape::Flow(layered.flow.clone()), ..schedule.clone() };
    let verdict = check_flow(topology, &flow).unwrap();
    assert_eq!(layered.layers.len(), layered.flow.paths.len());
    let mut waits: Vec<BTreeMap<u32, BTreeSet<u32>>> = vec![BTreeMap::new(); layered.layer_count as usize];
    for (way, &layer) in ways(&layered.flow).iter().zip(&layered.layers) {
        let nodes: BTreeSet<u32> = way.iter().map(|&link| topology.link(LinkIndex::new(link)).to.number()).collect();
        assert_eq!(nodes.len(), way.len(), "{way:?} passes a node twice");
        for pair in way.windows(2) {
            waits[layer as usize].entry(pair[0]).or_default().insert(pair[1]);
        }
    }
    for mut waits in waits {
        while let Some(end) = waits.iter().find(|(_, next)| next.iter().all(|next| !waits.contains_key(next))) {
            let end = *end.0;
            waits.remove(&end);
        }
        assert!(waits.is_empty(), "a cycle: {waits:?}");
    }
    Ok((layered.layer_count, verdict.algbw))
}

#[test]
fn small_networks_need_few_layers() {
    for expression in ["mesh:3x3", "hypercube:3", "bipartite:4x4", "torus:4x4", "genkautz:n=20,d=4"] {
        let topology = topology(expression);
        let schedule = all_to_all(&topology);
        let (found, rate) = judged(&topology, &schedule, None).unwrap();
        assert!(found <= 4, "{expression}: {found}");
        assert_eq!(rate, check_flow(&topology, &schedule).unwrap().algbw, "{expression}");
    }
}

/// Where links lead both ways, one layer always has room for all: slower, but right.
#[test]
fn limits_are_kept_on_other_ways() {
    for expression in ["torus:4x4", "torus:3x3", "ring:7", "dgx-a100:boxes=2,gpus=2", "hypercube:3"] {
        let topology = topology(expression);
        let schedule = all_to_all(&topology);
        let (needed, rate) = judged(&topology, &schedule, None).unwrap();
        let (kept, slower) = judged(&topology, &schedule, Some(1)).unwrap();
        assert_eq!(kept, 1, "{expression}");
        assert!(slower <= rate && slower > Rate::zero(), "{expression}: {slower} of {rate}");
        assert_eq!(judged(&topology, &schedule, Some(needed)).unwrap(), (needed, rate), "{expression}");
    }
}

#[test]
fn what_cannot_be_kept_is_refused_with_what_is_needed() {
    let topology = topology("ring:4,dir=uni");
    let schedule = all_to_all(&topology);
    assert_eq!(judged(&topology, &schedule, None).unwrap().0, 2);
    assert_eq!(judged(&topology, &schedule, Some(1)).unwrap_err(), LayersError::TooMany { needed: 2, limit: 1 });
}

/// By the switch to one rank, and by the same switch to the next: the middle is left out. Equal ways are one.
#[test]
fn ways_make_no_round_trips_and_are_there_once() {
    let mut draft = TopologyDraft::default();
    ["a", "b", "c"].iter().for_each(|id| draft.add_compute(*id));
    draft.add_switch("s");
    let rate = canopy_topology::Capacity::from_bytes_per_sec(1000).unwrap();
    ["a", "b", "c"].iter().for_each(|id| draft.add_both(id, "s", rate, canopy_topology::Latency::default()));
    let topology = draft.build(&TopologyLimits::STANDARD).unwrap();
    let link = |from: &str, to: &str| {
        let (from, to) = (topology.find_node(from).unwrap(), topology.find_node(to).unwrap());
        topology.links_from(from).find(|&link| topology.link(link).to == to).unwrap()
    };
    let mut parts = FlowParts::new(&topology, 3);
    let (direct, through) =
        ([link("a", "s"), link("s", "c")], [link("a", "s"), link("s", "b"), link("b", "s"), link("s", "c")]);
    let root = Rank::new(0);
    parts.add_path(root, Rank::new(1), 3, &[link("a", "s"), link("s", "b")]).unwrap();
    parts.add_path(root, Rank::new(2), 2, &direct).unwrap();
    parts.add_path(root, Rank::new(2), 1, &through).unwrap();
    let collective = Collective::new(CollectiveKind::Scatter, Some(root), 3).unwrap();
    let shape = Shape::Flow(parts.finish());
    let schedule = Schedule { collective, algorithm: "flow".to_owned(), shares: Shares::Equal, shape };
    let layered = layered_flow(&topology, &schedule, None, &Never).unwrap();
    assert_eq!(
        ways(&layered.flow),
        [[link("a", "s").number(), link("s", "b").number()], direct.map(LinkIndex::number)]
    );
    let chunks: Vec<u64> = layered.flow.paths.iter().map(|path| path.chunk_count).collect();
    assert_eq!((chunks, layered.layers), (vec![3, 3], vec![0, 0]));
}

#[test]
fn other_shapes_have_no_routes() {
    let topology = topology("ring:4");
    let collective = Collective::new(CollectiveKind::Allgather, None, 4).unwrap();
    let forest = synthesize(&topology, &SynthesisRequest::new(collective, Algorithm::Forest), &Never, &Silent).unwrap();
    assert_eq!(layered_flow(&topology, &forest, None, &Never), Err(LayersError::NotAFlow { shape: "forest" }));
    let stopped = layered_flow(&topology, &all_to_all(&topology), None, &|| true);
    assert_eq!(stopped, Err(LayersError::Stopped));
}
