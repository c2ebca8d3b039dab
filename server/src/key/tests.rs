use std::num::{NonZeroU32, NonZeroU64};

use canopy_plan::{ExecutorProfile, Instances, Profile};
use canopy_schedule::{AllreduceForm, CollectiveKind};
use canopy_synth::{Algorithm, Tolerance, TreeLimits};
use canopy_topology::{Rank, TopologyLimits, generate};

use super::*;
use crate::order::{Making, TopologyInput};

fn order() -> Order {
    Order {
        topology: TopologyInput::Expression("ring:8".to_owned()),
        faults: Vec::new(),
        kind: CollectiveKind::Broadcast,
        root: Some(1),
        shares: Vec::new(),
        group: None,
        placement: None,
        tenant: None,
        size_bytes_min: 0,
        size_bytes_max: 1 << 20,
        in_place: false,
        algorithm: Algorithm::Forest,
        limits: TreeLimits::NONE,
        sums: SumOptions::AUTO,
        seed: 0,
        making: Making::Searched,
        joint: None,
        outputs: vec![Output::Json],
    }
}

fn slots(slots: &[(&str, u32)]) -> Vec<Slot> {
    slots.iter().map(|&(node, device)| Slot { node: node.to_owned(), device }).collect()
}

fn times(instances: u32) -> Instances {
    Instances::Exactly(NonZeroU32::new(instances).unwrap())
}

fn plan_key(expression: &str, root: u32, order: &Order) -> PlanKey {
    let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
    let collective = Collective::new(order.kind, Some(Rank::new(root)), topology.rank_count()).unwrap();
    PlanKey::new(&TopologyKey::of(&topology), collective, &Shares::Equal, order)
}

/// Orders that differ from [`order`] in one thing that a plan depends on, the topology and root apart.
fn changed_orders() -> Vec<Order> {
    vec![
        Order { kind: CollectiveKind::Reduce, ..order() },
        Order { size_bytes_max: 1 << 21, ..order() },
        Order { size_bytes_min: 1, ..order() },
        Order { size_bytes_min: 2, ..order() },
        Order { in_place: true, ..order() },
        Order { algorithm: Algorithm::Auto, ..order() },
        Order { limits: TreeLimits { trees_per_root: NonZeroU64::new(2), ..TreeLimits::NONE }, ..order() },
        Order { limits: TreeLimits { max_chunks: NonZeroU64::new(2), ..TreeLimits::NONE }, ..order() },
        Order { limits: TreeLimits { chunks: NonZeroU64::new(2), ..TreeLimits::NONE }, ..order() },
        Order { limits: TreeLimits { max_chunks: NonZeroU64::new(3), ..TreeLimits::NONE }, ..order() },
        Order { limits: TreeLimits { max_depth: NonZeroU32::new(3), ..TreeLimits::NONE }, ..order() },
        Order { limits: TreeLimits { tolerance: Tolerance::new(1, 3), ..TreeLimits::NONE }, ..order() },
        Order { limits: TreeLimits { tolerance: Tolerance::new(2, 3), ..TreeLimits::NONE }, ..order() },
        Order { sums: SumOptions { form: Some(AllreduceForm::Trees), ..SumOptions::AUTO }, ..order() },
        Order { sums: SumOptions { form: Some(AllreduceForm::TwoPhases), ..SumOptions::AUTO }, ..order() },
        Order { sums: SumOptions { roots: RootPolicy::Spread, ..SumOptions::AUTO }, ..order() },
        Order { seed: 1, ..order() },
        Order { seed: 2, ..order() },
        Order { outputs: vec![Output::MscclXml(Profile::Msccl, Instances::ONE)], ..order() },
        Order { outputs: vec![Output::OnecclXml], ..order() },
        Order { outputs: vec![Output::RoutesXml(None)], ..order() },
        Order { outputs: vec![Output::RoutesXml(NonZeroU32::new(1))], ..order() },
        Order { outputs: vec![Output::RoutesXml(NonZeroU32::new(2))], ..order() },
        Order { outputs: vec![Output::MscclppJson(ExecutorProfile::V08, SwitchUse::Offered)], ..order() },
        Order { outputs: vec![Output::MscclppJson(ExecutorProfile::V09, SwitchUse::Offered)], ..order() },
        Order { outputs: vec![Output::MscclppJson(ExecutorProfile::V10, SwitchUse::Offered)], ..order() },
        Order { outputs: vec![Output::MscclppJson(ExecutorProfile::V10, SwitchUse::None)], ..order() },
        Order { outputs: vec![Output::MscclXml(Profile::Msccl, times(2))], ..order() },
        Order { outputs: vec![Output::MscclXml(Profile::Msccl, times(3))], ..order() },
        Order { outputs: vec![Output::MscclXml(Profile::Msccl, Instances::Auto)], ..order() },
        Order { outputs: vec![Output::Json, Output::MscclXml(Profile::Msccl, Instances::ONE)], ..order() },
        Order { outputs: vec![Output::MscclXml(Profile::Msccl, Instances::ONE), Output::Json], ..order() },
    ]
}

#[test]
fn a_plan_key_changes_with_everything_a_plan_depends_on() {
    let mut keys = vec![
        plan_key("ring:8", 1, &order()),
        plan_key("ring:8", 2, &order()),
        plan_key("ring:9", 1, &order()),
        plan_key("ring:8,bw=50GB/s", 1, &order()),
        plan_key("ring:8,lat=5ns", 1, &order()),
    ];
    keys.extend(changed_orders().iter().map(|order| plan_key("ring:8", 1, order)));
    let placed = |on: &[(&str, u32)]| plan_key("ring:8", 1, &order()).placed(&slots(on));
    keys.extend([
        placed(&[]),
        placed(&[("a", 0), ("b", 0)]),
        placed(&[("b", 0), ("a", 0)]),
        placed(&[("a", 0), ("b", 1)]),
    ]);
    let topology = TopologyKey::of(&generate("ring:8", &TopologyLimits::STANDARD).unwrap());
    let gather = Collective::new(CollectiveKind::Gather, Some(Rank::new(1)), 8).unwrap();
    let weighted = |last| Shares::Weighted([vec![1; 7], vec![last]].concat());
    for shares in [Shares::Equal, weighted(2), weighted(3)] {
        keys.push(PlanKey::new(&topology, gather, &shares, &order()));
    }
    let all_to_all = Collective::new(CollectiveKind::AllToAll, None, 8).unwrap();
    let row = |last| Shares::in_proportion(all_to_all, 8, [vec![1; 63], vec![last]].concat()).unwrap();
    for shares in [Shares::Equal, row(0), row(2)] {
        keys.push(PlanKey::new(&topology, all_to_all, &shares, &order()));
    }
    let plain = plan_key("ring:8", 1, &order());
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
    let topology = |topology| Order { topology, ..order() };
    let group = |ranks: &[u32], transit| Order { group: Some(Group { ranks: ranks.to_vec(), transit }), ..order() };
    let document = |format| TopologyInput::Document { format, content: bytes::Bytes::from_static(b"ring:8") };
    let mut orders = changed_orders();
    orders.extend([
        order(),
        Order { root: None, ..order() },
        Order { root: Some(0), ..order() },
        Order { shares: vec![1; 8], ..order() },
        Order { shares: vec![1; 7], ..order() },
        group(&[0, 1], Transit::Unused),
        group(&[0, 1], Transit::Forward),
        group(&[1, 0], Transit::Unused),
        Order { shares: vec![1; 8], ..group(&[0, 1], Transit::Unused) },
        Order { placement: Some(slots(&[("a", 0), ("b", 0)])), ..order() },
        Order { placement: Some(slots(&[("a", 0), ("b", 1)])), ..order() },
        Order { placement: Some(slots(&[("b", 0), ("a", 0)])), ..order() },
        Order { tenant: Some("red".parse().unwrap()), ..order() },
        Order { tenant: Some("blue".parse().unwrap()), ..order() },
        topology(TopologyInput::Expression("ring:9".to_owned())),
        topology(document(canopy_topology::DocumentFormat::Yaml)),
        topology(document(canopy_topology::DocumentFormat::Json)),
        topology(TopologyInput::Inline(canopy_proto::v1::Topology::default())),
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
    let plan = PlanKey::new(&topology, collective, &Shares::Equal, &order());
    assert_eq!(
        [RequestKey::of(&order()).to_string(), plan.to_string()],
        [
            "d4a2e3375541f5690ef806adf5d9ea434235b5a11df30c0984e9684bfead3101",
            "2d623798d7cb1c3e408b26502247a875c77abf94f26a6735f6e3e6bffa979aec"
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
    let mut seen = vec![(plan_key("ring:8", 1, &order()), RequestKey::of(&order()))];
    for tasks in others.iter().map(|other| vec![task(&[2, 3], None, 8), other.clone()]) {
        let schedule = ScheduleKey::of_joint(&whole, &tasks);
        for position in 0..2 {
            let joint = Some(JointOrder { tasks: tasks.clone(), position });
            let keys = (
                plan_key("ring:8", 1, &order()).in_common(&schedule, position),
                RequestKey::of(&Order { joint, ..order() }),
            );
            assert!(seen.iter().all(|(plan, request)| *plan != keys.0 && *request != keys.1));
            seen.push(keys);
        }
    }
}
