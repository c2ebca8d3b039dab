//! Boxes for networks that state none.

use std::collections::{BTreeMap, BTreeSet};

use canopy_canonical::families::{Boxed, Recognition, recognise, with_boxes};
use canopy_topology::{Capacity, Latency, NodeKind, Topology};

use crate::support::{BUDGET, Dice, built, draft, shuffled, topology};

/// Which nodes share a box, and which are in none: by what the ids of the generator say.
fn groups(topology: &Topology) -> BTreeSet<BTreeSet<String>> {
    let mut groups: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for node in topology.nodes() {
        if let (Some(name), Some(label)) = (&node.attributes.box_name, &node.attributes.label) {
            groups.entry(name).or_default().insert(label.clone());
        }
    }
    groups.into_values().collect()
}

#[test]
fn boxes_come_back_whatever_links_are_like() {
    for (number, expression) in
        ["dgx-a100:boxes=5", "dgx-h100:boxes=3,gpus=4", "mi250:boxes=4", "mi250:boxes=3,gpus=8", "rail:boxes=6,gpus=4"]
            .into_iter()
            .enumerate()
    {
        let mut draft = draft(&topology(expression));
        for node in &mut draft.nodes {
            node.attributes.label = Some(node.id.clone());
        }
        let stated = groups(&built(draft.clone()));
        for node in &mut draft.nodes {
            node.attributes.box_name = None;
        }
        for (link, nanos) in draft.links.iter_mut().zip([700, 2000, 0].into_iter().cycle()) {
            link.latency = Latency::from_nanos(nanos);
        }
        let other = built(shuffled(draft, &mut Dice::new(number as u64), true));
        let Boxed { topology: boxed, expression: found } = with_boxes(&other, BUDGET).unwrap().unwrap();
        let found = found.unwrap();
        assert_eq!(groups(&boxed), stated, "{expression} as {found}");
        assert_eq!(boxed.with_boxes(vec![None; other.nodes().len()]).as_ref(), Some(&other));
        assert!(found.starts_with(expression), "{expression} as {found}");
    }
}

/// Boxes of a network at other rates, a link of which is dead, under other names and in another order; and the right ones.
fn of_no_family(expression: &str, seed: u64, dead: (&str, &str)) -> (Option<Boxed>, BTreeSet<BTreeSet<String>>) {
    let mut draft = draft(&topology(expression));
    for node in &mut draft.nodes {
        node.attributes.label = (node.kind == NodeKind::Compute).then(|| node.id.clone());
    }
    let stated = groups(&built(draft.clone()));
    draft.nodes.iter_mut().for_each(|node| node.attributes.box_name = None);
    let count = draft.links.len();
    draft.links.retain(|link| {
        ![(link.from.as_str(), link.to.as_str()), (link.to.as_str(), link.from.as_str())].contains(&dead)
    });
    assert!(draft.links.len() < count, "{expression} has no link between {dead:?}");
    for link in &mut draft.links {
        link.capacity = Capacity::from_bytes_per_sec(link.capacity.bytes_per_sec() / 100 * 117).unwrap();
    }
    let other = built(shuffled(draft, &mut Dice::new(seed), true));
    assert_eq!(recognise(&other, BUDGET).unwrap(), Recognition::Other, "{expression}");
    (with_boxes(&other, BUDGET).unwrap(), stated)
}

#[test]
fn boxes_of_no_family_are_seen_by_their_links() {
    for (number, (expression, dead)) in [
        ("mi250:boxes=8", ("b0g0", "b0g1")),
        ("mi250:boxes=16,gpus=8", ("b3g0", "ib")),
        ("rail:boxes=16,gpus=8", ("b5g3", "rail3")),
        // Faster outside than inside, and switches of boxes that are smaller than rails.
        ("rail:boxes=24,gpus=4,nv=20GB/s,nic=50GB/s", ("b5g3", "rail3")),
    ]
    .into_iter()
    .enumerate()
    {
        let (boxed, stated) = of_no_family(expression, number as u64, dead);
        let Boxed { topology, expression: found } = boxed.unwrap();
        assert_eq!((found, groups(&topology)), (None, stated), "{expression}");
    }
}

#[test]
fn a_rank_cut_off_from_its_box_is_in_none() {
    let (boxed, mut stated) = of_no_family("dgx-a100:boxes=16", 7, ("b2g4", "b2nv"));
    stated = stated
        .into_iter()
        .map(|mut group| {
            group.remove("b2g4");
            group
        })
        .collect();
    assert_eq!(groups(&boxed.unwrap().topology), stated);
}

#[test]
fn what_is_stated_stands_and_one_box_says_nothing() {
    assert_eq!(with_boxes(&topology("dgx-a100:boxes=2"), BUDGET), Ok(None));
    for expression in ["dgx-a100:boxes=1", "torus:4x5", "fat-tree:k=4", "random-regular:n=16,d=3", "ring:2"] {
        let plain = built(shuffled(draft(&topology(expression)), &mut Dice::new(3), false));
        assert_eq!(with_boxes(&plain, BUDGET), Ok(None), "{expression}");
    }
}
