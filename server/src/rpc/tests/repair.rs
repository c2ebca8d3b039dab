//! Plans repaired from the schedule of the sound network.

use canopy_plan::{Format, Profile, Target};
use canopy_proto::Exact as _;

use super::*;

fn lost(faults: &[&str], order: &Order) -> Order {
    Order { faults: faults.iter().map(|text| text.parse().unwrap()).collect(), ..order.clone() }
}

fn repaired(order: &Order) -> Order {
    Order { making: Making::Repaired, ..order.clone() }
}

fn made(pipeline: &Pipeline, order: &Order) -> Result<v1::Plan, PlanFailure> {
    let produced = pipeline.produce(order, &pipeline.prepare(order, &Never)?, &Never, &Witness::default())?;
    Ok(produced.plan.plan)
}

/// The plan is made of what is kept of the sound network, is checked like any other, and says what it was made of.
#[test]
fn a_kept_schedule_is_made_to_fit_what_faults_leave() {
    let pipeline = Pipeline::new(TopologyLimits::STANDARD);
    for kind in [CollectiveKind::Allgather, CollectiveKind::Allreduce, CollectiveKind::AllToAll] {
        let sound = order(expression("torus:3x4"), kind, vec![Format::Json.usual()]);
        let broken = lost(&["gpu:11", "link:00-01"], &sound);
        assert!(matches!(made(&pipeline, &repaired(&broken)), Err(PlanFailure::NotCached)), "{kind}: nothing is kept");
        let whole = made(&pipeline, &sound).unwrap();
        let plan = made(&pipeline, &repaired(&broken)).unwrap();
        assert_eq!((plan.algorithm.as_str(), plan.checked.len()), ("repair", 5));
        let provenance = plan.provenance.as_ref().unwrap();
        assert_eq!((provenance.repaired_from.as_str(), provenance.schedules.len()), (whole.name.as_str(), 0));
        assert_eq!(plan.topology.as_ref().map(|topology| topology.ranks), Some(11));

        let anew = made(&pipeline, &broken).unwrap();
        assert_ne!(plan.name, anew.name);
        assert_eq!(anew.provenance.unwrap().repaired_from, "");
        let optimality = |plan: &v1::Plan| plan.quality.as_ref().unwrap().optimality.read::<canopy_topology::Ratio>();
        assert!(optimality(&plan).unwrap() >= canopy_topology::Ratio::new(3_u32, 4_u32).unwrap(), "{kind}: {plan:?}");
        assert_eq!(made(&pipeline, &repaired(&broken)).unwrap().artifacts, plan.artifacts, "{kind}");
    }
}

/// What it was made of is part of what it is: the same rest of another network is another plan.
#[test]
fn its_key_says_what_it_is_repaired_from() {
    let pipeline = Pipeline::new(TopologyLimits::STANDARD);
    let key = |network: &str, faults: &[&str]| {
        let sound = order(expression(network), CollectiveKind::Allgather, vec![Format::Json.usual()]);
        pipeline.prepare(&repaired(&lost(faults, &sound)), &Never).unwrap().key
    };
    let searched = |network: &str, faults: &[&str]| {
        let sound = order(expression(network), CollectiveKind::Allgather, vec![Format::Json.usual()]);
        pipeline.prepare(&lost(faults, &sound), &Never).unwrap().key
    };
    let (first, second) = (("mesh:2x3", ["link:00-01", "link:10-11"]), ("mesh:2x3,down=00-01", ["link:10-11"]));
    assert_ne!(key(first.0, &first.1), key(second.0, &second.1));
    assert_ne!(key(first.0, &first.1), searched(first.0, &first.1));
}

/// A runtime's file has room for few chunks: then it is a schedule of so few that is repaired.
#[test]
fn files_of_runtimes_are_made_too() {
    let pipeline = Pipeline::new(TopologyLimits::STANDARD);
    let outputs = vec![Target::from(Profile::Msccl)];
    let sound = order(expression("torus:3x3"), CollectiveKind::Allgather, outputs);
    made(&pipeline, &sound).unwrap();
    let plan = made(&pipeline, &repaired(&lost(&["link:00-01"], &sound))).unwrap();
    assert_eq!((plan.algorithm.as_str(), plan.artifacts.len()), ("repair", 1));
}

/// A network that nobody calls broken is the rest of one planned for before: a schedule of that one stands in, while the plan
/// that is asked for is the same whatever was planned before.
#[test]
fn a_first_request_is_helped_by_what_is_kept_of_a_larger_network() {
    let pipeline = Pipeline::new(TopologyLimits::STANDARD);
    let asked = |network: &str, kind| order(expression(network), kind, vec![Format::Json.usual()]);
    for kind in [CollectiveKind::Allgather, CollectiveKind::Broadcast, CollectiveKind::AllToAll] {
        let (whole, left) = (asked("mesh:3x4", kind), asked("mesh:3x4,down=00-01", kind));
        assert!(matches!(made(&pipeline, &repaired(&left)), Err(PlanFailure::NotCached)), "{kind}: nothing is kept");
        let source = made(&pipeline, &whole).unwrap();
        assert!(matches!(made(&pipeline, &repaired(&whole)), Err(PlanFailure::NotCached)), "{kind}: nothing larger is");
        let plan = made(&pipeline, &repaired(&left)).unwrap();
        assert_eq!((plan.algorithm.as_str(), plan.checked.len()), ("repair", 5));
        assert_eq!(plan.provenance.unwrap().repaired_from, source.name);
        assert_eq!(plan.topology.unwrap().links, source.topology.unwrap().links - 2);
        let (after, alone) = (made(&pipeline, &left), made(&Pipeline::new(TopologyLimits::STANDARD), &left));
        let (after, alone) = (after.unwrap(), alone.unwrap());
        assert_eq!((after.name, after.artifacts), (alone.name, alone.artifacts), "{kind}");
    }
}

/// The root is the same device, whatever its rank was.
#[test]
fn a_root_is_found_again_in_the_larger_network() {
    let pipeline = Pipeline::new(TopologyLimits::STANDARD);
    let whole = canopy_topology::generate("mesh:3x4", &TopologyLimits::STANDARD).unwrap();
    let left = whole.punctured(&[canopy_topology::Fault::Node { id: "00".to_owned() }]).unwrap();
    let document = TopologyInput::Document {
        kind: Some(FileKind::Own(DocumentFormat::Json)),
        content: canopy_topology::to_json(&left).into_bytes().into(),
    };
    let rooted = |topology, root| Order {
        root: Some(root),
        ..order(topology, CollectiveKind::Scatter, vec![Format::Json.usual()])
    };
    let source = made(&pipeline, &rooted(expression("mesh:3x4"), 5)).unwrap();
    let plan = made(&pipeline, &repaired(&rooted(document, 4))).unwrap();
    assert_eq!(plan.provenance.unwrap().repaired_from, source.name);
    assert_eq!(plan.collective.unwrap().root, Some(4));
}

/// Schedules in time are kept for the network that they were made for and messages of that size, and repaired as what they are.
#[test]
fn schedules_in_time_are_repaired_too() {
    let pipeline = Pipeline::new(TopologyLimits::STANDARD);
    for (algorithm, kind) in [
        (Algorithm::Tacos, CollectiveKind::Allgather),
        (Algorithm::Tacos, CollectiveKind::Allreduce),
        (canopy_baselines::TACOS_PUBLISHED, CollectiveKind::Broadcast),
    ] {
        let on = |network: &str| Order { algorithm, ..order(expression(network), kind, vec![Format::Json.usual()]) };
        let sound = on("torus:4x4");
        let broken = lost(&["link:00-01"], &sound);
        assert!(matches!(made(&pipeline, &repaired(&broken)), Err(PlanFailure::NotCached)), "{kind}: nothing is kept");
        let whole = made(&pipeline, &sound).unwrap();
        let plan = made(&pipeline, &repaired(&broken)).unwrap();
        assert_eq!((plan.algorithm.as_str(), plan.checked.len()), ("repair", 5));
        assert_eq!(plan.provenance.as_ref().unwrap().repaired_from, whole.name);
        assert_eq!(made(&pipeline, &repaired(&broken)).unwrap().artifacts, plan.artifacts, "{kind}");
        let anew = made(&pipeline, &broken).unwrap();
        assert_ne!(plan.name, anew.name);
        let optimality = |plan: &v1::Plan| plan.quality.as_ref().unwrap().optimality.as_ref().unwrap().value;
        assert!(optimality(&plan) >= 0.7 * optimality(&anew), "{kind}: {plan:?}");
        // A plan for all that this network is the rest of does, too, whoever says that anything broke.
        let left = repaired(&on("torus:4x4,down=00-01"));
        assert_eq!(made(&pipeline, &left).unwrap().provenance.unwrap().repaired_from, whole.name);
        let smaller = Order { size_bytes_max: 1 << 20, ..repaired(&broken) };
        assert!(matches!(made(&pipeline, &smaller), Err(PlanFailure::NotCached)), "{kind}: of another size");
    }
}
