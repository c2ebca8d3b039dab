//! What was found for one network serves all of its shape, and is what they would have been given without it.

use canopy_import::FileKind;
use canopy_plan::{Format, PlanFile, Profile, Target, read_plan, write_plan};
use canopy_planner::ScheduleKey;
use canopy_schedule::{Certificate, Shape};
use canopy_store::schedules::ScheduleOptions;
use canopy_topology::{DraftLink, DraftNode, NodeIndex, NodeKind, TopologyDocument, TopologyDraft, generate};

use super::*;
use crate::store::{MemoryStore, Store, decode_record, encode_record};

/// Its best plan needs more chunks than a runtime has room for, so several numbers of trees are tried.
const CROWDED: &str = "mesh:2x2,bw=50012B/s,degrade=00-01*50011/50012";

/// The network with rank `r` as rank `r·step + 1`, other names, and switches in another order.
fn turned(expression: &str, step: u32) -> TopologyInput {
    let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
    let count = topology.rank_count();
    let rank = |node: NodeIndex| topology.rank_of(node).map(|rank| (rank.number() * step + 1) % count);
    let id =
        |node: NodeIndex| rank(node).map_or_else(|| format!("s{:03}", 999 - node.number()), |rank| format!("g{rank}"));
    let mut draft = TopologyDraft::default();
    for (number, node) in (0_u32..).map(NodeIndex::new).zip(topology.nodes()) {
        let mut attributes = node.attributes.clone();
        attributes.box_name = attributes.box_name.map(|name| name.replace('0', "z"));
        draft.nodes.push(DraftNode { id: id(number), kind: node.kind, rank: rank(number), attributes });
    }
    assert!(draft.nodes.iter().all(|node| node.rank.is_some() == (node.kind == NodeKind::Compute)));
    for link in topology.links() {
        let (from, to) = (id(link.from), id(link.to));
        draft.links.push(DraftLink { from, to, capacity: link.capacity, latency: link.latency, count: 1 });
    }
    let turned = draft.build(&TopologyLimits::STANDARD).unwrap();
    let content = serde_json::to_vec(&TopologyDocument::from(&turned)).unwrap();
    TopologyInput::Document { kind: Some(FileKind::Own(DocumentFormat::Json)), content: content.into() }
}

fn made(pipeline: &Pipeline, order: &Order) -> Produced {
    let prepared = pipeline.prepare(order, &Never).unwrap();
    pipeline.produce(order, &prepared, &Never, &Witness::default()).unwrap()
}

fn recalled(pipeline: &Pipeline, order: &Order) -> Option<Produced> {
    let prepared = pipeline.prepare(order, &Never).unwrap();
    match pipeline.recall(order, &prepared, &Never, &Witness::default()).unwrap() {
        Recall::Made(produced) => Some(*produced),
        Recall::Unknown(_) => None,
    }
}

/// Everything of a plan but how long it took.
fn timeless(produced: Produced) -> (v1::Plan, Vec<canopy_planner::Warning>) {
    let StoredPlan { mut plan, warnings, .. } = produced.plan;
    if let Some(provenance) = &mut plan.provenance {
        provenance.wall_time = None;
    }
    (plan, warnings)
}

#[test]
fn every_collective_is_recalled_for_another_network_of_its_shape() {
    let networks = [("dgx-a100:boxes=2,gpus=4", 3), ("torus:3x3", 2), ("rail:boxes=3,gpus=4,nv=200GB/s,nic=50GB/s", 5)];
    for (network, step) in networks {
        let ranks = generate(network, &TopologyLimits::STANDARD).unwrap().rank_count();
        for kind in CollectiveKind::ALL {
            let outputs = match kind {
                CollectiveKind::Gather | CollectiveKind::Scatter => vec![Format::Json.usual()],
                _ => vec![Format::Json.usual(), Target::from(Profile::Msccl)],
            };
            let root = Collective::new(kind, None, ranks).is_err().then_some(2);
            let first = Order { root, ..order(expression(network), kind, outputs) };
            let root = root.map(|root| (root * step + 1) % ranks);
            let second = Order { topology: turned(network, step), root, ..first.clone() };

            let pipeline = Pipeline::new(TopologyLimits::STANDARD);
            assert!(recalled(&pipeline, &first).is_none(), "{network} {kind}");
            let original = made(&pipeline, &first);
            assert!(!original.is_recalled);
            let again = recalled(&pipeline, &first).unwrap_or_else(|| panic!("{network} {kind}"));
            assert_eq!(timeless(again), timeless(original), "{network} {kind}");
            let known = recalled(&pipeline, &second).unwrap_or_else(|| panic!("{network} {kind}"));
            let fresh = made(&Pipeline::new(TopologyLimits::STANDARD), &second);
            assert!(known.is_recalled && !fresh.is_recalled);
            assert_eq!(timeless(known), timeless(fresh), "{network} {kind}");
        }
    }
}

#[test]
fn shares_and_roots_must_fall_on_ranks_that_are_alike() {
    let pipeline = Pipeline::new(TopologyLimits::STANDARD);
    let shared = |weights: &[u64]| Order {
        shares: weights.to_vec(),
        ..order(expression("ring:6"), CollectiveKind::Allgather, vec![Format::Json.usual()])
    };
    made(&pipeline, &shared(&[1, 2, 0, 1, 1, 1]));
    // Turned around the ring, and seen from its other side.
    assert!(recalled(&pipeline, &shared(&[1, 1, 2, 0, 1, 1])).is_some());
    assert!(recalled(&pipeline, &shared(&[0, 2, 1, 1, 1, 1])).is_some());
    // In other proportions, and on other ranks.
    assert!(recalled(&pipeline, &shared(&[1, 3, 0, 1, 1, 1])).is_none());
    assert!(recalled(&pipeline, &shared(&[1, 2, 1, 0, 1, 1])).is_none());
    assert!(recalled(&pipeline, &shared(&[1; 6])).is_none());

    let rooted = |root| Order {
        root: Some(root),
        ..order(expression("fat-tree:k=4,down=p0e0-p0a0"), CollectiveKind::Broadcast, vec![Format::Json.usual()])
    };
    made(&pipeline, &rooted(0));
    assert!(recalled(&pipeline, &rooted(1)).is_some());
    assert!(recalled(&pipeline, &rooted(4)).is_none());
}

#[test]
fn what_is_asked_of_the_search_is_part_of_what_is_recalled() {
    let pipeline = Pipeline::new(TopologyLimits::STANDARD);
    let plain = order(expression("torus:3x3"), CollectiveKind::Allgather, vec![Format::Json.usual()]);
    made(&pipeline, &plain);
    // Neither file nor size matters to the search.
    let files = Order {
        outputs: vec![Target::from(Profile::Msccl)],
        size_bytes_min: 0,
        size_bytes_max: 1 << 20,
        ..plain.clone()
    };
    assert!(recalled(&pipeline, &files).is_some());
    let limits = TreeLimits { trees_per_root: NonZeroU64::new(1), ..TreeLimits::NONE };
    for other in [
        Order { limits, ..plain.clone() },
        Order { algorithm: Algorithm::Forest, ..plain.clone() },
        Order { kind: CollectiveKind::ReduceScatter, ..plain.clone() },
        Order { topology: expression("torus:3x4"), ..plain.clone() },
        // Found at once, or by the numbers of the ranks.
        Order { algorithm: Algorithm::Direct, ..plain.clone() },
        Order { algorithm: Algorithm::Ring, ..plain.clone() },
    ] {
        assert!(recalled(&pipeline, &other).is_none(), "{other:?}");
    }
}

#[test]
fn a_plan_names_what_has_to_be_forgotten_with_it() {
    let pipeline = Pipeline::new(TopologyLimits::STANDARD);
    let small = order(expression(CROWDED), CollectiveKind::Allgather, vec![Target::from(Profile::Msccl)]);
    let plain = order(expression("torus:3x3"), CollectiveKind::Allgather, vec![Format::Json.usual()]);
    let direct = Order { algorithm: Algorithm::Direct, ..plain.clone() };
    let named = |order: &Order| {
        let provenance = made(&pipeline, order).plan.plan.provenance.unwrap();
        let keys = provenance.schedules.iter().map(|digits| ScheduleKey::from_digits(digits).unwrap());
        (keys.collect::<Vec<_>>(), provenance.schedules)
    };
    let (keys, texts) = named(&small);
    assert!(keys.len() > 1 && keys.iter().all(|key| pipeline.is_known(key)), "{texts:?}");
    assert_eq!(keys.iter().map(ScheduleKey::to_string).collect::<Vec<_>>(), texts);
    assert_eq!(named(&small).0, keys, "it is the same plan when it is recalled");
    assert_eq!((named(&plain).0.len(), named(&direct).0.len()), (1, 0));
    pipeline.forget(&keys);
    assert!(!keys.iter().any(|key| pipeline.is_known(key)));
    assert!(recalled(&pipeline, &small).is_none() && recalled(&pipeline, &plain).is_some());
}

#[test]
fn fewer_trees_are_recalled_as_they_were_found() {
    let topology = CROWDED;
    let outputs = vec![Target::from(Profile::Msccl)];
    let first = order(expression(topology), CollectiveKind::Allgather, outputs);
    let second = Order { topology: turned(topology, 3), ..first.clone() };
    let pipeline = Pipeline::new(TopologyLimits::STANDARD);
    made(&pipeline, &first);
    let (known, fresh) =
        (recalled(&pipeline, &second).unwrap(), made(&Pipeline::new(TopologyLimits::STANDARD), &second));
    assert!(fresh.plan.warnings.iter().any(|warning| warning.code == "FEWER_TREES"));
    assert_eq!(timeless(known), timeless(fresh));
}

#[test]
fn refusals_speak_of_the_callers_own_ranks() {
    let node = |id: &str| v1::Node { id: id.to_owned(), kind: v1::NodeKind::Compute.into(), ..v1::Node::default() };
    let link =
        |from: &str, to: &str| v1::Link { from: from.to_owned(), to: to.to_owned(), bandwidth: 1, latency_ns: 0 };
    let inline = v1::Topology {
        display_name: String::new(),
        nodes: vec![node("lonely"), node("a"), node("b")],
        links: vec![link("a", "b"), link("b", "a"), link("lonely", "a")],
    };
    let failure = produce(
        &order(
            TopologyInput::Inline(wire::draft(inline).unwrap()),
            CollectiveKind::Allgather,
            vec![Format::Json.usual()],
        ),
        &Witness::default(),
    );
    let text = failure.unwrap_err().to_string();
    assert!(text.contains("(lonely)") && text.contains("rank 0"), "{text}");
}

/// What is wrong with a plan that can be read.
type Damage = fn(&mut PlanFile);

/// A kept plan that is wrong is put aside, and searched for again.
#[test]
fn a_wrong_plan_costs_a_search_and_is_never_served() {
    let damages: [Damage; 4] = [
        |plan| {
            let Shape::Forest(forest) = &mut plan.schedule.shape else { panic!("trees") };
            let hops = forest.phases[0].trees[1].hops.clone();
            forest.phases[0].trees[0].hops = hops;
        },
        |plan| {
            let Shape::Forest(forest) = &mut plan.schedule.shape else { panic!("trees") };
            forest.phases[0].trees[0].hops.end -= 1;
        },
        |plan| {
            let Certificate::Cut { nodes, .. } = &mut plan.bound.certificate else { panic!("a cut") };
            nodes.remove(0);
        },
        |plan| plan.bound.upper = Rate::new(1_u32, 7_u32).unwrap(),
    ];
    let order = order(expression("dgx-a100:boxes=2,gpus=4"), CollectiveKind::Allgather, vec![Format::Json.usual()]);
    let fresh = timeless(made(&Pipeline::new(TopologyLimits::STANDARD), &order));
    for (number, damage) in damages.into_iter().enumerate() {
        let store = Arc::new(MemoryStore::default());
        let open = || {
            Pipeline::keeping(
                Arc::clone(&store) as Arc<dyn Store>,
                ScheduleOptions::of(1 << 20, TopologyLimits::STANDARD),
            )
        };
        made(&open(), &order);
        let key = store.keys(None, 2).unwrap()[0];
        let record = store.get(&key).unwrap().unwrap();
        let mut plan = read_plan(decode_record(&record).unwrap(), &TopologyLimits::STANDARD).unwrap();
        damage(&mut plan);
        let mut text = Vec::new();
        write_plan(&plan, &mut text).unwrap();
        let summary = store.summary(&key).unwrap().unwrap();
        store.put(&key, &encode_record(&text), &summary).unwrap();

        let pipeline = open();
        assert!(recalled(&pipeline, &order).is_none(), "damage {number}");
        assert_eq!(store.quarantined_count().unwrap(), 1);
        let again = made(&pipeline, &order);
        assert!(!again.is_recalled);
        assert_eq!(timeless(again), fresh);
        assert!(recalled(&pipeline, &order).is_some());
    }
}
