//! Boxes for networks that state none.

use std::collections::{BTreeMap, BTreeSet};

use canopy_families::{Boxed, with_boxes};
use canopy_topology::{Latency, Topology};

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
        assert_eq!(groups(&boxed), stated, "{expression} as {found}");
        assert_eq!(boxed.with_boxes(vec![None; other.nodes().len()]).as_ref(), Some(&other));
        assert!(found.starts_with(expression), "{expression} as {found}");
    }
}

#[test]
fn what_is_stated_stands_and_one_box_says_nothing() {
    assert_eq!(with_boxes(&topology("dgx-a100:boxes=2"), BUDGET), Ok(None));
    for expression in ["dgx-a100:boxes=1", "torus:4x5", "fat-tree:k=4", "random-regular:n=16,d=3", "ring:2"] {
        let plain = built(shuffled(draft(&topology(expression)), &mut Dice::new(3), false));
        assert_eq!(with_boxes(&plain, BUDGET), Ok(None), "{expression}");
    }
}
