use std::num::{NonZeroU32, NonZeroU64};

use canopy_import::FileKind;
use canopy_plan::{ExecutorProfile, Format, Instances, Profile, SwitchUse, Target};
use canopy_schedule::{AllreduceForm, CollectiveKind};
use canopy_synth::{Algorithm, Tolerance, TreeLimits};
use canopy_topology::{DocumentFormat, Rank, TopologyDraft, TopologyLimits, generate};

use super::*;
use crate::request::TopologyInput;

fn request() -> Request {
    Request {
        root: Some(1),
        size_bytes_max: 1 << 20,
        algorithm: Algorithm::Forest,
        ..Request::on("ring:8", CollectiveKind::Broadcast)
    }
}

fn slots(slots: &[(&str, u32)]) -> Vec<Slot> {
    slots.iter().map(|&(node, device)| Slot { node: node.to_owned(), device }).collect()
}

fn times(instances: u32) -> Instances {
    Instances::Exactly(NonZeroU32::new(instances).unwrap())
}

fn plan_key(expression: &str, root: u32, request: &Request) -> PlanKey {
    let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
    let collective = Collective::new(request.kind, Some(Rank::new(root)), topology.rank_count()).unwrap();
    PlanKey::new(&TopologyKey::of(&topology), collective, &Shares::Equal, request)
}

/// Orders that differ from [`order`] in one thing that a plan depends on, the topology and root apart.
fn changed_requests() -> Vec<Request> {
    vec![
        Request { kind: CollectiveKind::Reduce, ..request() },
        Request { size_bytes_max: 1 << 21, ..request() },
        Request { states_default_size: true, ..request() },
        Request { alpha_ns: 0, ..request() },
        Request { alpha_ns: 2_000, ..request() },
        Request { size_bytes_min: 1, ..request() },
        Request { size_bytes_min: 2, ..request() },
        Request { in_place: true, ..request() },
        Request { algorithm: Algorithm::Auto, ..request() },
        Request { limits: TreeLimits { trees_per_root: NonZeroU64::new(2), ..TreeLimits::NONE }, ..request() },
        Request { limits: TreeLimits { max_chunks: NonZeroU64::new(2), ..TreeLimits::NONE }, ..request() },
        Request { limits: TreeLimits { chunks: NonZeroU64::new(2), ..TreeLimits::NONE }, ..request() },
        Request { limits: TreeLimits { max_chunks: NonZeroU64::new(3), ..TreeLimits::NONE }, ..request() },
        Request { limits: TreeLimits { max_depth: NonZeroU32::new(3), ..TreeLimits::NONE }, ..request() },
        Request { limits: TreeLimits { tolerance: Tolerance::new(1, 3), ..TreeLimits::NONE }, ..request() },
        Request { limits: TreeLimits { tolerance: Tolerance::new(2, 3), ..TreeLimits::NONE }, ..request() },
        Request { sums: SumOptions { form: Some(AllreduceForm::Trees), ..SumOptions::AUTO }, ..request() },
        Request { sums: SumOptions { form: Some(AllreduceForm::TwoPhases), ..SumOptions::AUTO }, ..request() },
        Request { sums: SumOptions { roots: RootPolicy::Spread, ..SumOptions::AUTO }, ..request() },
        Request { seed: 1, ..request() },
        Request { seed: 2, ..request() },
        Request { outputs: vec![Target::from(Profile::Msccl)], ..request() },
        Request { outputs: vec![Format::OnecclXml.usual()], ..request() },
        Request { outputs: vec![Format::RoutesXml.usual()], ..request() },
        Request { outputs: vec![Target { layers_max: NonZeroU32::new(1), ..Format::RoutesXml.usual() }], ..request() },
        Request { outputs: vec![Target { layers_max: NonZeroU32::new(2), ..Format::RoutesXml.usual() }], ..request() },
        Request { outputs: vec![Target::from(ExecutorProfile::V08)], ..request() },
        Request { outputs: vec![Target::from(ExecutorProfile::V09)], ..request() },
        Request { outputs: vec![Target::from(ExecutorProfile::V10)], ..request() },
        Request { outputs: vec![Target { switches: SwitchUse::None, ..ExecutorProfile::V10.into() }], ..request() },
        Request { outputs: vec![Target { instances: times(2), ..Profile::Msccl.into() }], ..request() },
        Request { outputs: vec![Target { instances: times(3), ..Profile::Msccl.into() }], ..request() },
        Request { outputs: vec![Target { instances: Instances::Auto, ..Profile::Msccl.into() }], ..request() },
        Request { outputs: vec![Format::Json.usual(), Target::from(Profile::Msccl)], ..request() },
        Request { outputs: vec![Target::from(Profile::Msccl), Format::Json.usual()], ..request() },
    ]
}

#[test]
fn a_plan_key_changes_with_everything_a_plan_depends_on() {
    let mut keys = vec![
        plan_key("ring:8", 1, &request()),
        plan_key("ring:8", 2, &request()),
        plan_key("ring:9", 1, &request()),
        plan_key("ring:8,bw=50GB/s", 1, &request()),
        plan_key("ring:8,lat=5ns", 1, &request()),
    ];
    keys.extend(changed_requests().iter().map(|request| plan_key("ring:8", 1, request)));
    let placed = |on: &[(&str, u32)]| plan_key("ring:8", 1, &request()).placed(&slots(on));
    keys.extend([
        placed(&[]),
        placed(&[("a", 0), ("b", 0)]),
        placed(&[("b", 0), ("a", 0)]),
        placed(&[("a", 0), ("b", 1)]),
    ]);
    keys.push(placed(&[("a", 0), ("b", 0)]).stating_devices());
    let topology = TopologyKey::of(&generate("ring:8", &TopologyLimits::STANDARD).unwrap());
    let gather = Collective::new(CollectiveKind::Gather, Some(Rank::new(1)), 8).unwrap();
    let weighted = |last| Shares::Weighted([vec![1; 7], vec![last]].concat());
    for shares in [Shares::Equal, weighted(2), weighted(3)] {
        keys.push(PlanKey::new(&topology, gather, &shares, &request()));
    }
    let all_to_all = Collective::new(CollectiveKind::AllToAll, None, 8).unwrap();
    let row = |last| Shares::in_proportion(all_to_all, 8, [vec![1; 63], vec![last]].concat()).unwrap();
    for shares in [Shares::Equal, row(0), row(2)] {
        keys.push(PlanKey::new(&topology, all_to_all, &shares, &request()));
    }
    let plain = plan_key("ring:8", 1, &request());
    keys.extend(["red", "blue"].map(|tenant| plain.of_tenant(&tenant.parse().unwrap())));
    let count = keys.len();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), count);
}

#[test]
fn a_plan_key_does_not_see_how_the_topology_was_written() {
    let topology = generate("ring:8", &TopologyLimits::STANDARD).unwrap();
    for text in [canopy_topology::to_yaml(&topology), canopy_topology::to_json(&topology)] {
        let read = canopy_topology::read_document(text.as_bytes(), None, &TopologyLimits::STANDARD).unwrap();
        assert_eq!(TopologyKey::of(&read.topology), TopologyKey::of(&topology));
    }
}

#[test]
fn a_request_key_changes_with_every_field() {
    let topology = |topology| Request { topology, ..request() };
    let group = |ranks: &[u32], transit| Request { group: Some(Group { ranks: ranks.to_vec(), transit }), ..request() };
    let document = |kind| TopologyInput::Document { kind, content: bytes::Bytes::from_static(b"ring:8") };
    let mut orders = changed_requests();
    orders.extend([
        request(),
        Request { root: None, ..request() },
        Request { root: Some(0), ..request() },
        Request { shares: vec![1; 8], ..request() },
        Request { shares: vec![1; 7], ..request() },
        group(&[0, 1], Transit::Unused),
        group(&[0, 1], Transit::Forward),
        group(&[1, 0], Transit::Unused),
        Request { shares: vec![1; 8], ..group(&[0, 1], Transit::Unused) },
        Request { placement: Some(slots(&[("a", 0), ("b", 0)])), ..request() },
        Request { placement: Some(slots(&[("a", 0), ("b", 1)])), ..request() },
        Request { placement: Some(slots(&[("b", 0), ("a", 0)])), ..request() },
        Request { tenant: Some("red".parse().unwrap()), ..request() },
        Request { tenant: Some("blue".parse().unwrap()), ..request() },
        topology(TopologyInput::Expression("ring:9".to_owned())),
        topology(document(None)),
        topology(document(Some(FileKind::Own(DocumentFormat::Yaml)))),
        topology(document(Some(FileKind::Own(DocumentFormat::Json)))),
        topology(TopologyInput::Inline(TopologyDraft::default())),
    ]);
    let mut keys: Vec<RequestKey> = orders.iter().map(RequestKey::of).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), orders.len());
}

/// A key that changes by accident would empty every cache: these were computed once for a class of planners and stay.
#[test]
fn keys_stay_what_they_are() {
    let topology = TopologyKey::of(&generate("ring:8", &TopologyLimits::STANDARD).unwrap());
    let collective = Collective::new(CollectiveKind::Broadcast, Some(Rank::new(1)), 8).unwrap();
    let plan = PlanKey::new(&topology, collective, &Shares::Equal, &request());
    assert_eq!(
        [RequestKey::of(&request()).to_string(), plan.to_string()],
        [
            "78d61cf8ee9caf0b0411cbc1955f84919b0e66b57d8260e207fd38fde0db4f44",
            "a802166dc3eb1c4409a6ba9573eef252c090f252d8d8eb3bac212a53008790b4"
        ]
    );
}

/// Plans in common differ by their places, and by whatever any of the tasks says.
#[test]
fn plans_in_common_are_told_apart_by_all_that_run_at_the_same_time() {
    let whole = generate("ring:8", &TopologyLimits::STANDARD).unwrap();
    let task = |ranks: &[u32], root, size| JointTask {
        ranks: ranks.to_vec(),
        kind: CollectiveKind::Broadcast,
        root,
        size_bytes: NonZeroU64::new(size).unwrap(),
        chunks: NonZeroU64::MIN,
    };
    let others = [task(&[0, 1], None, 8), task(&[1, 0], None, 8), task(&[0, 1], Some(0), 8), task(&[0, 1], None, 9)];
    let mut seen = vec![(plan_key("ring:8", 1, &request()), RequestKey::of(&request()))];
    for tasks in others.iter().map(|other| vec![task(&[2, 3], None, 8), other.clone()]) {
        let schedule = ScheduleKey::of_joint(&whole, &tasks);
        for position in 0..2 {
            let joint = Some(JointRequest { tasks: tasks.clone(), position });
            let keys = (
                plan_key("ring:8", 1, &request()).in_common(&schedule, position),
                RequestKey::of(&Request { joint, ..request() }),
            );
            assert!(seen.iter().all(|(plan, request)| *plan != keys.0 && *request != keys.1));
            seen.push(keys);
        }
    }
}
