//! What the pipeline makes, as it is sent and judged.

use std::num::{NonZeroU32, NonZeroU64};
use std::sync::{Arc, Mutex};

use canopy_import::FileKind;
use canopy_plan::{Certainty, Format, Instances, LowerError, Profile, Target};
use canopy_planner::{Group, Making, PlanError, PlanKey, Request as Order, TopologyInput};
use canopy_proto::Exact as _;
use canopy_proto::v1;
use canopy_schedule::{AllreduceForm, Collective, CollectiveKind, Shares};
use canopy_synth::{Algorithm, BoundError, Never, RootPolicy, SumOptions, SynthesisError, TreeLimits};
use canopy_topology::{DocumentFormat, GroupError, PlacementError, Rank, Rate, Slot, TopologyLimits, Transit};
use canopy_wire as wire;
use canopy_wire::StoredPlan;

use crate::failure::PlanFailure;
use crate::jobs::pipeline::*;
use crate::jobs::planner::{Planner, Prepared, Produced, Recall, Watch};

mod faults;
mod fewer;
mod flows;
mod oneccl;
mod recall;
mod repair;
mod routes;
mod sizes;
mod steps;

/// Remembers what it is told.
#[derive(Default)]
struct Witness {
    stages: Mutex<Vec<&'static str>>,
    bounds: Mutex<Vec<String>>,
}

impl Watch for Witness {
    fn stage(&self, stage: &'static str, _: u64, _: u64) {
        let mut stages = self.stages.lock().unwrap();
        if stages.last() != Some(&stage) {
            stages.push(stage);
        }
    }

    fn bound(&self, algbw: &Rate) {
        self.bounds.lock().unwrap().push(algbw.to_string());
    }

    fn incumbent(&self, algbw: &Rate) {
        self.bounds.lock().unwrap().push(algbw.to_string());
    }
}

/// The error of the format, where one of the files cannot be made.
fn file_error<E: std::error::Error + 'static>(failure: &PlanFailure) -> Option<(usize, &E)> {
    match failure {
        PlanFailure::Planning(PlanError::File { output, error }) => Some((*output, error.downcast_ref()?)),
        _ => None,
    }
}

fn order(topology: TopologyInput, kind: CollectiveKind, outputs: Vec<Target>) -> Order {
    Order {
        topology,
        faults: Vec::new(),
        kind,
        root: None,
        shares: Vec::new(),
        group: None,
        placement: None,
        tenant: None,
        size_bytes_min: 0,
        size_bytes_max: 1 << 30,
        states_default_size: false,
        in_place: kind == CollectiveKind::Allreduce,
        algorithm: Algorithm::Auto,
        limits: TreeLimits::NONE,
        sums: SumOptions::AUTO,
        seed: 0,
        alpha_ns: 1_000,
        making: Making::Searched,
        joint: None,
        outputs,
    }
}

fn expression(text: &str) -> TopologyInput {
    TopologyInput::Expression(text.to_owned())
}

fn produce(order: &Order, witness: &Witness) -> Result<Produced, PlanFailure> {
    let pipeline = Pipeline::new(TopologyLimits::STANDARD);
    pipeline.produce(order, &pipeline.prepare(order, &Never)?, &Never, witness)
}

#[test]
fn the_plan_of_a_ring_is_optimal_checked_and_described() {
    let outputs = vec![Format::Json.usual(), Target::from(Profile::Msccl)];
    let order = order(expression("ring:8"), CollectiveKind::Allgather, outputs);
    let witness = Witness::default();
    let plan = produce(&order, &witness).unwrap().plan.plan;
    let quality = plan.quality.unwrap();
    // Each rank receives 7/8 of the data over two links of 25 GB/s: 50·8/7.
    assert_eq!((quality.achieved.exact(), quality.optimality.exact()), ("400000000000/7", "1/1"));
    assert_eq!(quality.bound, quality.achieved);
    assert!(quality.tight);
    assert_eq!(plan.checked, ["structure", "meaning", "load", "certificate", "file"]);
    assert_eq!(plan.algorithm, "forest");
    let topology = plan.topology.unwrap();
    assert_eq!((topology.ranks, topology.nodes, topology.links), (8, 8, 16));
    assert_eq!(plan.artifacts.len(), 2);
    for artifact in &plan.artifacts {
        let content = artifact.content.as_ref().unwrap();
        assert_eq!(artifact.size_bytes, content.len() as u64);
        assert_eq!(artifact.sha256, canopy_wire::sha256_hex(content));
    }
    assert!(plan.artifacts[1].content.as_ref().unwrap().starts_with(b"<algo "));
    let stages = witness.stages.lock().unwrap();
    assert_eq!((stages.first(), stages.last()), (Some(&"bound"), Some(&"lower")));
    assert!(stages.contains(&"check"));
    assert_eq!(*witness.bounds.lock().unwrap(), ["400000000000/7"; 2], "bound, then incumbent");
}

#[test]
fn the_same_order_gives_the_same_bytes() {
    let outputs = vec![Format::Json.usual(), Target::from(Profile::Msccl)];
    for kind in [CollectiveKind::Allgather, CollectiveKind::ReduceScatter, CollectiveKind::Allreduce] {
        let order = order(expression("dgx-a100:boxes=2,gpus=2"), kind, outputs.clone());
        let files = |produced: Produced| produced.plan.plan.artifacts;
        let (first, second) = (produce(&order, &Witness::default()), produce(&order, &Witness::default()));
        assert_eq!(files(first.unwrap()), files(second.unwrap()), "{kind}");
    }
}

#[test]
fn a_document_and_an_inline_topology_give_the_plan_of_the_same_network() {
    let yaml = "canopy: 1\nnodes: [{id: a}, {id: b}]\nlinks: [{from: a, to: b, bandwidth: 10GB/s, both: true}]\n";
    let document = TopologyInput::Document {
        kind: Some(FileKind::Own(DocumentFormat::Yaml)),
        content: bytes::Bytes::from_static(yaml.as_bytes()),
    };
    let node = |id: &str| v1::Node { id: id.to_owned(), kind: v1::NodeKind::Compute.into(), ..v1::Node::default() };
    let link = |from: &str, to: &str| v1::Link {
        from: from.to_owned(),
        to: to.to_owned(),
        bandwidth: 10_000_000_000,
        latency_ns: 0,
    };
    let inline = TopologyInput::Inline(
        wire::draft(v1::Topology {
            display_name: String::new(),
            nodes: vec![node("a"), node("b")],
            links: vec![link("a", "b"), link("b", "a")],
        })
        .unwrap(),
    );
    let keys: Vec<PlanKey> = [document, inline]
        .into_iter()
        .map(|topology| {
            let order = order(topology, CollectiveKind::Allgather, vec![Format::Json.usual()]);
            Pipeline::new(TopologyLimits::STANDARD).prepare(&order, &Never).unwrap().key
        })
        .collect();
    assert_eq!(keys[0], keys[1]);
}

/// A message has no boxes: they are those of the family, and the plan is as good as with boxes stated. Its file has the
/// network as it was given.
#[test]
fn networks_without_boxes_are_planned_with_those_of_their_family() {
    let planned = |topology: TopologyInput, kind| {
        produce(&order(topology, kind, vec![Format::Json.usual()]), &Witness::default()).unwrap().plan.plan
    };
    let inline = |expression: &str| {
        let topology = canopy_topology::generate(expression, &TopologyLimits::STANDARD).unwrap();
        let id = |node: canopy_topology::NodeIndex| format!("n{}", node.number());
        let node = |(index, node): (u32, &canopy_topology::Node)| v1::Node {
            id: id(canopy_topology::NodeIndex::new(index)),
            kind: match node.kind {
                canopy_topology::NodeKind::Compute => v1::NodeKind::Compute.into(),
                _ => v1::NodeKind::Switch.into(),
            },
            ..v1::Node::default()
        };
        let link = |link: &canopy_topology::Link| v1::Link {
            from: id(link.from),
            to: id(link.to),
            bandwidth: link.capacity.bytes_per_sec(),
            latency_ns: if link.to.number() < topology.rank_count() { 700 } else { 0 },
        };
        let nodes = (0_u32..).zip(topology.nodes().iter().map(AsRef::as_ref)).map(node).collect();
        TopologyInput::Inline(
            wire::draft(v1::Topology {
                display_name: String::new(),
                nodes,
                links: topology.links().iter().map(link).collect(),
            })
            .unwrap(),
        )
    };
    // Without boxes, trees are 18 hops deep, and take hundreds of times as long to find.
    let (stated, plain) = ("mi250:boxes=8", inline("mi250:boxes=8"));
    let (stated, plain) = [expression(stated), plain].map(|input| planned(input, CollectiveKind::Allgather)).into();
    assert_eq!((stated.family.as_str(), plain.family.as_str()), ("", "mi250:boxes=8,gpus=16"));
    assert_eq!(stated.quality.unwrap().achieved, plain.quality.unwrap().achieved);
    assert!(plain.steps <= stated.steps + 2, "{} steps, {} where boxes are stated", plain.steps, stated.steps);
    let file = String::from_utf8(plain.artifacts[0].content.clone().unwrap().to_vec()).unwrap();
    assert!(file.contains("\"n0\"") && !file.contains("box"), "the file has boxes that nobody stated");
    // The cut around half of the boxes proves that no all-to-all is faster.
    let (stated, plain) = ("dgx-a100:boxes=4", inline("dgx-a100:boxes=4"));
    let (stated, plain) = [expression(stated), plain].map(|input| planned(input, CollectiveKind::AllToAll)).into();
    assert_eq!(stated.quality.unwrap().optimality.exact(), "1/1");
    assert_eq!(plain.quality.unwrap().optimality.exact(), "1/1");
    assert_eq!(planned(inline("torus:3x3"), CollectiveKind::Allgather).family, "");
}

#[track_caller]
fn check_inline_refused(field: &str, change: impl FnOnce(&mut v1::Topology)) {
    let node = |id: &str| v1::Node { id: id.to_owned(), kind: v1::NodeKind::Compute.into(), ..v1::Node::default() };
    let link = v1::Link { from: "a".to_owned(), to: "b".to_owned(), bandwidth: 1, latency_ns: 0 };
    let mut topology =
        v1::Topology { display_name: String::new(), nodes: vec![node("a"), node("b")], links: vec![link] };
    change(&mut topology);
    let found = match wire::draft(topology) {
        Err(error) => Some(error.field()),
        Ok(draft) => {
            let order = order(TopologyInput::Inline(draft), CollectiveKind::Allgather, vec![Format::Json.usual()]);
            match Pipeline::new(TopologyLimits::STANDARD).prepare(&order, &Never) {
                Err(PlanFailure::Planning(PlanError::Inline(error))) => error.field(),
                other => panic!("{other:?}"),
            }
        }
    };
    assert_eq!(found.as_deref(), Some(field));
}

#[test]
fn every_wrong_field_of_an_inline_topology_is_named() {
    check_inline_refused("nodes[1].kind", |topology| topology.nodes[1].kind = 0);
    check_inline_refused("nodes[1].kind", |topology| topology.nodes[1].kind = 7);
    check_inline_refused("nodes[0].multicast", |topology| topology.nodes[0].multicast = true);
    check_inline_refused("nodes[0].aggregate", |topology| topology.nodes[0].aggregate = true);
    check_inline_refused("links[0].bandwidth", |topology| topology.links[0].bandwidth = 0);
    check_inline_refused("links[0].to", |topology| topology.links[0].to = "c".to_owned());
}

#[test]
fn a_stop_ends_the_work() {
    let order = order(expression("ring:8"), CollectiveKind::Allgather, vec![Format::Json.usual()]);
    let pipeline = Pipeline::new(TopologyLimits::STANDARD);
    let prepared = pipeline.prepare(&order, &Never).unwrap();
    let failure = pipeline.produce(&order, &prepared, &|| true, &Witness::default()).unwrap_err();
    assert!(matches!(
        failure,
        PlanFailure::Stopped
            | PlanFailure::Planning(PlanError::Bound(BoundError::Stopped))
            | PlanFailure::Planning(PlanError::Synthesis(SynthesisError::Stopped))
    ));
}

#[test]
fn a_root_that_is_no_rank_is_refused_before_any_work() {
    let mut order = order(expression("ring:8"), CollectiveKind::Broadcast, vec![Format::Json.usual()]);
    order.root = Some(8);
    let pipeline = Pipeline::new(TopologyLimits::STANDARD);
    assert!(matches!(pipeline.prepare(&order, &Never), Err(PlanFailure::Planning(PlanError::Root(_)))));
}

#[test]
fn a_stop_ends_the_reading_of_a_document_at_its_next_line() {
    let mut text = "canopy: 1\nnodes: [{id: a}, {id: b}]\nlinks:\n".to_owned();
    for _ in 0..1000 {
        text += "- {from: a, to: b, bandwidth: 10GB/s, both: true}\n";
    }
    let topology = TopologyInput::Document { kind: Some(FileKind::Own(DocumentFormat::Yaml)), content: text.into() };
    let order = order(topology, CollectiveKind::Allgather, vec![Format::Json.usual()]);
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let soon = || asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) >= 100;
    let failure = Pipeline::new(TopologyLimits::STANDARD).prepare(&order, &soon).unwrap_err();
    assert!(matches!(failure, PlanFailure::Stopped), "{failure}");
    assert_eq!(asked.into_inner(), 101, "no question is asked after the answer");
}

#[test]
fn a_stop_ends_the_reading_of_an_inline_topology_wherever_it_comes() {
    let node = |id: &str| v1::Node { id: id.to_owned(), kind: v1::NodeKind::Compute.into(), ..v1::Node::default() };
    let link = |latency_ns| v1::Link { from: "a".to_owned(), to: "b".to_owned(), bandwidth: 1, latency_ns };
    let topology = v1::Topology {
        nodes: vec![node("a"), node("b")],
        links: (0..40_000).map(link).collect(),
        ..v1::Topology::default()
    };
    let order = order(
        TopologyInput::Inline(wire::draft(topology).unwrap()),
        CollectiveKind::Allgather,
        vec![Format::Json.usual()],
    );
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let ask = |patience: usize| {
        // One that has not seen the network before.
        let pipeline = Pipeline::new(TopologyLimits::STANDARD);
        asked.store(0, std::sync::atomic::Ordering::Relaxed);
        let soon = || asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed) >= patience;
        (pipeline.prepare(&order, &soon), asked.load(std::sync::atomic::Ordering::Relaxed))
    };
    let (read, questions) = ask(usize::MAX);
    assert!(read.is_ok() && questions > 10, "{questions}");
    for patience in 0..questions {
        let (read, questions) = ask(patience);
        assert!(matches!(read, Err(PlanFailure::Stopped)), "{patience}");
        assert_eq!(questions, patience + 1, "no question is asked after the answer");
    }
}

#[test]
fn files_say_how_many_instances_they_hold() {
    let times = |instances| Instances::Exactly(instances);
    let of = |instances| Target { instances, ..Profile::Msccl.into() };
    let three = NonZeroU32::new(3).unwrap();
    let outputs = vec![Format::Json.usual(), of(Instances::ONE), of(times(three)), of(Instances::Auto)];
    let plan = produce(&order(expression("ring:4"), CollectiveKind::Allgather, outputs), &Witness::default());
    let plan = plan.unwrap().plan.plan;
    let instances: Vec<Option<u32>> = plan.artifacts.iter().map(|artifact| artifact.instances).collect();
    // A ring has 3 blocks per rank with the copy, so 32 channels are what stops more: 32 · 3 < 108.
    assert_eq!(instances, [None, Some(1), Some(3), Some(32)]);
    // Half of each share goes around either way.
    assert_eq!(plan.chunks_per_rank, 2);
    for artifact in &plan.artifacts[1..] {
        let text = String::from_utf8(artifact.content.clone().unwrap().to_vec()).unwrap();
        let instances = artifact.instances.unwrap();
        assert!(text.contains(&format!("nchannels=\"{instances}\"")));
        assert!(text.contains(&format!("nchunksperloop=\"{}\"", 8 * instances)));
    }
    assert_eq!(crate::rpc::shared::judge::judge_plan(&plan, &TopologyLimits::STANDARD), Ok(()));
    let too_many = of(times(NonZeroU32::new(33).unwrap()));
    match produce(&order(expression("ring:4"), CollectiveKind::Allgather, vec![too_many]), &Witness::default()) {
        Err(failure) => match file_error(&failure) {
            Some((0, &LowerError::OverLimit { what, limit, need, certainty, .. })) => {
                assert_eq!((what, limit, need, certainty), ("channels", 32, 33, Certainty::Proven));
            }
            _ => panic!("{failure:?}"),
        },
        Ok(_) => panic!("there is room"),
    }
}

#[test]
fn every_collective_has_a_file_for_each_runtime_that_can_name_it() {
    for kind in CollectiveKind::ALL {
        for profile in Profile::ALL {
            let order = order(expression("torus:2x3"), kind, vec![Target::from(profile)]);
            match produce(&order, &Witness::default()) {
                Ok(produced) => assert_eq!(produced.plan.plan.artifacts[0].profile, profile.name()),
                Err(failure) => match file_error(&failure) {
                    Some((0, LowerError::Unsupported { .. })) => {
                        assert_eq!(profile.spell(kind), None, "{kind} for {profile}");
                    }
                    _ => panic!("{kind} for {profile}: {failure}"),
                },
            }
        }
    }
}

#[test]
fn shares_are_planned_in_lowest_terms() {
    let plain = order(expression("ring:4"), CollectiveKind::Allgather, vec![Format::Json.usual()]);
    let weighted = |shares: &[u64]| Order { shares: shares.to_vec(), ..plain.clone() };
    let plan = produce(&weighted(&[6, 2, 2, 2]), &Witness::default()).unwrap().plan.plan;
    assert_eq!(plan.shares, [3, 1, 1, 1]);
    // Five of six units enter each of the others over 50 GB/s.
    let quality = plan.quality.as_ref().unwrap();
    assert_eq!((quality.achieved.exact(), quality.optimality.exact()), ("60000000000", "1/1"));
    assert_eq!(crate::rpc::shared::judge::judge_plan(&plan, &TopologyLimits::STANDARD), Ok(()));
    let forged = v1::Plan { shares: vec![3, 1, 1, 2], ..plan.clone() };
    assert!(crate::rpc::shared::judge::judge_plan(&forged, &TopologyLimits::STANDARD).is_err());

    let pipeline = Pipeline::new(TopologyLimits::STANDARD);
    let key = |order: &Order| pipeline.prepare(order, &Never).unwrap().key;
    assert_eq!(key(&weighted(&[3, 1, 1, 1])), key(&weighted(&[6, 2, 2, 2])));
    assert_eq!(key(&weighted(&[7; 4])), key(&plain), "equal weights are equal shares");
    assert_ne!(key(&weighted(&[3, 1, 1, 1])), key(&plain));
    let refused = |order: &Order| pipeline.prepare(order, &Never).unwrap_err();
    assert!(matches!(refused(&weighted(&[1, 2])), PlanFailure::Planning(PlanError::Shares(_))));
    assert!(matches!(refused(&weighted(&[0; 4])), PlanFailure::Planning(PlanError::Shares(_))));
    let broadcast = Order { kind: CollectiveKind::Broadcast, ..weighted(&[1; 4]) };
    assert!(matches!(refused(&broadcast), PlanFailure::Planning(PlanError::Shares(_))));
    let file = Order { outputs: vec![Target::from(Profile::Msccl)], ..weighted(&[3, 1, 1, 1]) };
    assert!(matches!(
        produce(&file, &Witness::default()),
        Err(PlanFailure::Planning(PlanError::File { output: 0, .. }))
    ));
}

/// Four of the GPUs of two boxes. The others, which have links to both switches, may pass data on, or may not.
#[test]
fn groups_are_planned_on_their_part_of_the_network() {
    let whole = order(expression("dgx-a100:boxes=2"), CollectiveKind::Allgather, vec![Format::Json.usual()]);
    let group =
        |ranks: &[u32], transit| Order { group: Some(Group { ranks: ranks.to_vec(), transit }), ..whole.clone() };
    let pipeline = Pipeline::new(TopologyLimits::STANDARD);
    let mut rates = Vec::new();
    for transit in [Transit::Unused, Transit::Forward] {
        let order = group(&[4, 5, 12, 13], transit);
        let warnings = pipeline.prepare(&order, &Never).unwrap().warnings;
        assert_eq!(warnings[0].code, "RANKS_RENUMBERED");
        let text = "the ranks of the group are renumbered: 0-1 (in the topology 4-5), 2-3 (in the topology 12-13)";
        assert_eq!(warnings[0].text, text);
        let plan = produce(&order, &Witness::default()).unwrap().plan.plan;
        assert_eq!(plan.topology.as_ref().unwrap().ranks, 4);
        let quality = plan.quality.as_ref().unwrap();
        assert_eq!(quality.optimality.exact(), "1/1");
        rates.push(quality.achieved.exact().to_owned());
        assert_eq!(crate::rpc::shared::judge::judge_plan(&plan, &TopologyLimits::STANDARD), Ok(()));
    }
    // Two boxes of two: a box sends 2 of 4 shares over 50 GB/s; others' links make it as much as three GPUs can pass.
    assert_eq!(rates, ["100000000000", "400000000000"]);
    let key = |order: &Order| pipeline.prepare(order, &Never).unwrap().key;
    assert_ne!(key(&group(&[4, 5], Transit::Unused)), key(&group(&[5, 4], Transit::Unused)));
    assert_eq!(pipeline.prepare(&group(&[0, 1], Transit::Unused), &Never).unwrap().warnings, []);
    let refused = |ranks: &[u32]| pipeline.prepare(&group(ranks, Transit::Unused), &Never).unwrap_err();
    assert!(matches!(
        refused(&[0, 16]),
        PlanFailure::Planning(PlanError::Group(GroupError::NoSuchRank { position: 1, .. }))
    ));
    assert!(matches!(refused(&[3]), PlanFailure::Planning(PlanError::Group(GroupError::TooFewRanks { found: 1 }))));
}

/// Of the boxes of a network and of what is placed there: the same ranks by either word are one plan, and the same ranks
/// on other machines are another.
#[test]
fn plans_are_kept_by_the_devices_of_their_ranks() {
    let whole = order(expression("dgx-a100:boxes=2,gpus=2"), CollectiveKind::Allgather, vec![Format::Json.usual()]);
    let placed = |slots: &[(&str, u32)]| {
        let slot = |&(node, device): &(&str, u32)| Slot { node: node.to_owned(), device };
        Order { placement: Some(slots.iter().map(slot).collect()), ..whole.clone() }
    };
    let listed = |ranks: &[u32], order: Order| Order {
        group: Some(Group { ranks: ranks.to_vec(), transit: Transit::Unused }),
        ..order
    };
    let pipeline = Pipeline::new(TopologyLimits::STANDARD);
    let key = |order: &Order| pipeline.prepare(order, &Never).unwrap().key;
    let in_order = [("b0", 0), ("b0", 1), ("b1", 0), ("b1", 1)];
    assert_eq!(key(&placed(&in_order)), key(&whole));
    let two = [("b1", 1), ("b0", 0)];
    assert_eq!(key(&placed(&two)), key(&listed(&[3, 0], whole.clone())));
    assert_eq!(key(&placed(&two)), key(&listed(&[3, 0], placed(&two))));
    let on = |a: &'static str, b: &'static str| placed(&[(a, 0), (a, 1), (b, 0), (b, 1)]);
    let keys =
        [whole.clone(), on("x", "y"), on("y", "x"), on("x", "z"), placed(&[("x", 1), ("x", 0), ("y", 0), ("y", 1)])];
    let distinct: std::collections::BTreeSet<_> = keys.iter().map(key).collect();
    assert_eq!(distinct.len(), keys.len());
    let refused = |order: &Order| pipeline.prepare(order, &Never).unwrap_err();
    let disagreeing = refused(&listed(&[3, 1], placed(&two)));
    assert!(
        matches!(disagreeing, PlanFailure::Planning(PlanError::Placement(PlacementError::Disagree { rank: 1, .. }))),
        "{disagreeing}"
    );

    let named = produce(&on("x", "y"), &Witness::default()).unwrap().plan.plan;
    let own = produce(&whole, &Witness::default()).unwrap().plan.plan;
    let nodes = |plan: &v1::Plan| -> Vec<String> {
        let slots = &plan.rank_map.as_ref().unwrap().slots;
        slots.iter().map(|slot| format!("{}:{}x{}", slot.node, slot.device, slot.count.unwrap())).collect()
    };
    assert_eq!(nodes(&named), ["x:0x2", "y:0x2"]);
    assert_eq!(nodes(&own), ["b0:0x2", "b1:0x2"]);
}

#[test]
fn a_network_without_machines_has_an_assumed_rank_map() {
    let pipeline = Pipeline::new(TopologyLimits::STANDARD);
    let ring = order(expression("ring:2"), CollectiveKind::Allgather, vec![Format::Json.usual()]);
    let prepared = pipeline.prepare(&ring, &Never).unwrap();
    assert_eq!((prepared.rank_map, &*prepared.warnings[0].code), (None, "RANK_MAP_ASSUMED"));
    let slot = |device| Slot { node: "x".to_owned(), device };
    let placed = pipeline.prepare(&Order { placement: Some(vec![slot(1), slot(0)]), ..ring }, &Never).unwrap();
    assert_eq!((placed.rank_map, placed.warnings), (Some(vec![slot(1), slot(0)]), Vec::new()));
}

/// No runtime makes a GPU forward that runs no program of its own; where none has to, files are written.
#[test]
fn files_of_runtimes_pass_no_device_that_only_forwards() {
    let outputs = vec![Target::from(Profile::Msccl)];
    let whole = order(expression("ring:4"), CollectiveKind::Allgather, outputs);
    let group =
        |ranks: &[u32], transit| Order { group: Some(Group { ranks: ranks.to_vec(), transit }), ..whole.clone() };
    let forwarded = produce(&group(&[0, 2], Transit::Forward), &Witness::default()).unwrap_err();
    let Some((0, LowerError::Forwarder { id, .. })) = file_error(&forwarded) else { panic!("{forwarded}") };
    assert_eq!(id, "1");
    let apart = produce(&group(&[0, 2], Transit::Unused), &Witness::default()).unwrap_err();
    let PlanFailure::Planning(PlanError::Apart { failure, parts }) = &apart else { panic!("{apart}") };
    assert!(matches!(**failure, PlanError::Bound(BoundError::Disconnected { .. })));
    assert_eq!(parts.to_string(), "the network is split in two: {0} and {2}");
    let star = order(expression("dgx-a100:boxes=1"), CollectiveKind::Allgather, whole.outputs.clone());
    let half = Group { ranks: vec![1, 3, 5, 7], transit: Transit::Forward };
    produce(&Order { group: Some(half), ..star }, &Witness::default()).unwrap();
}
