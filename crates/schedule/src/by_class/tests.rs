use canopy_topology::{Topology, TopologyLimits, generate};

use super::*;
use crate::collective::CollectiveKind;
use crate::forest::Action;
use crate::stages::{BoxGrid, Inside, Seats, Stages};

/// An allgather in stages of these digits, with a star in each box of eight.
fn staged(topology: &Topology, digits: &[u32], empty: Vec<u32>) -> ByClass {
    let stages = Stages {
        chunks_per_share: 1,
        actions: vec![Action::Copy],
        grid: BoxGrid { places: 8, digits: digits.to_vec(), seats: Seats::InOrder { empty } },
        inside: vec![Inside::Star],
        classes: BTreeMap::new(),
        inside_first: Vec::new(),
        exceptions: BTreeMap::new(),
    };
    let collective = Collective::new(CollectiveKind::Allgather, None, topology.rank_count()).unwrap();
    by_class(topology, collective, &Shape::Stages(stages), &|| false).unwrap().unwrap()
}

fn network(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap()
}

#[test]
fn boxes_and_links_fall_into_classes_with_exact_loads() {
    let topology = network("dgx-a100:boxes=6");
    let found = staged(&topology, &[2, 3], Vec::new());
    let kinds: Vec<(&str, usize, u128, u128)> =
        found.links.iter().map(|class| (class.kind.name(), class.links, class.chunks_min, class.chunks_max)).collect();
    // A NIC takes the five other boxes' shares, an eighth each; a rank hands on what it took in, and its own share.
    assert_eq!(kinds, [("nic-up", 48, 5, 5), ("nic-down", 48, 5, 5), ("in-box", 96, 42, 42)]);
    let RuleClasses::Stages(boxes) = &found.rule else { unreachable!("it is in stages") };
    let [class] = boxes.classes.as_slice() else { panic!("{boxes:?}") };
    assert_eq!((class.boxes, class.ranks(), class.nics.len(), class.inner), (6, 8, 16, 16));
    assert_eq!((class.out, class.into, class.nic), ((40, 40), (40, 40), (5, 5)));
    assert_eq!(found.busy(&topology, 5, 25_000_000_000).to_string(), "1/1");
    assert_eq!(found.busy(&topology, 42, 300_000_000_000).to_string(), "7/10");
    assert_eq!(found.binding(&topology).count(), 96);
    assert_eq!(found.links[found.busiest_first()[0]].kind, LinkKind::NicUp);
    assert_eq!(found.chunks_total(), 96 * 5 + 96 * 42);
}

#[test]
fn boxes_with_faults_are_classes_of_their_own() {
    let topology = network("dgx-a100:boxes=4,nodes-down=b1g3,degrade=b2g0-ib*1/2");
    let found = staged(&topology, &[4], vec![11]);
    let RuleClasses::Stages(boxes) = &found.rule else { unreachable!("it is in stages") };
    let classes: Vec<(u32, u32, usize)> =
        boxes.classes.iter().map(|class| (class.boxes, class.first, class.ranks())).collect();
    assert_eq!(classes, [(2, 0, 8), (1, 1, 7), (1, 2, 8)]);
    assert_eq!(boxes.classes[1].missing, [3]);
    assert_eq!(boxes.classes[2].nics.iter().filter(|nic| nic.capacity == 12_500_000_000).count(), 2);
}

#[test]
fn directions_have_names() {
    let name = |steps: &[i64]| LinkKind::Along(steps.to_vec()).in_words();
    assert_eq!(name(&[0, -1, 0]), "dimension 2 down");
    assert_eq!(name(&[1]), "dimension 1 up");
    assert_eq!(name(&[2, 0]), "along (+2, +0)");
    assert_eq!(name(&[1, -1]), "along (+1, -1)");
    assert_eq!(LinkKind::NicUp.in_words(), "NIC up");
}
