//! Networks that differ from a member in one thing are not members.

use canopy_canonical::families::{Recognition, recognise, recognised_names};
use canopy_canonical::{Comparison, compare, graph_of};
use canopy_topology::{Capacity, DraftLink, Latency, NodeKind, Topology, TopologyDraft};
use proptest::prelude::*;

use crate::parameters::{COUNT, expression};
use crate::support::{BUDGET, Dice, built, draft, is_switch, member, shuffled, topology};

/// Changes one thing; `None` where dice or network do not allow it.
type Change = fn(&mut TopologyDraft, &mut Dice) -> Option<()>;

const CHANGES: [(&str, Change); 6] = [
    ("capacity", capacity),
    ("latency", latency),
    ("rewired", rewired),
    ("removed", removed),
    ("kind", kind),
    ("switched", switched),
];

fn capacity(draft: &mut TopologyDraft, dice: &mut Dice) -> Option<()> {
    let link = dice.below(draft.links.len());
    let link = &mut draft.links[link];
    link.capacity = Capacity::from_bytes_per_sec(link.capacity.bytes_per_sec() + 1)?;
    Some(())
}

fn latency(draft: &mut TopologyDraft, dice: &mut Dice) -> Option<()> {
    let link = dice.below(draft.links.len());
    let link = &mut draft.links[link];
    link.latency = Latency::from_nanos(link.latency.nanos() + 1);
    Some(())
}

/// A link with its way back.
fn pair(draft: &TopologyDraft, dice: &mut Dice) -> DraftLink {
    draft.links[dice.below(draft.links.len())].clone()
}

fn is_linked(draft: &TopologyDraft, a: &str, b: &str) -> bool {
    draft.links.iter().any(|link| (link.from == a && link.to == b) || (link.from == b && link.to == a))
}

/// Puts other ends in place of those of a link and its way back.
fn moved(draft: &mut TopologyDraft, (a, b): (&str, &str), (c, d): (&str, &str)) {
    for link in &mut draft.links {
        if link.from == a && link.to == b {
            (link.from, link.to) = (c.to_owned(), d.to_owned());
        } else if link.from == b && link.to == a {
            (link.from, link.to) = (d.to_owned(), c.to_owned());
        }
    }
}

/// One end leads elsewhere.
fn rewired(draft: &mut TopologyDraft, dice: &mut Dice) -> Option<()> {
    let DraftLink { from, to, .. } = pair(draft, dice);
    let other = draft.nodes[dice.below(draft.nodes.len())].id.clone();
    if other == from || is_linked(draft, &from, &other) {
        return None;
    }
    moved(draft, (&from, &to), (&from, &other));
    Some(())
}

fn removed(draft: &mut TopologyDraft, dice: &mut Dice) -> Option<()> {
    let DraftLink { from, to, .. } = pair(draft, dice);
    let is_it = |link: &DraftLink| (link.from == from && link.to == to) || (link.from == to && link.to == from);
    draft.links.retain(|link| !is_it(link));
    Some(())
}

/// A switch that can do more; a rank that can do less, where at least two are left.
fn kind(draft: &mut TopologyDraft, dice: &mut Dice) -> Option<()> {
    let node = dice.below(draft.nodes.len());
    if is_switch(&draft.nodes[node]) {
        draft.nodes[node].kind = NodeKind::Switch { multicast: true, aggregate: false };
        return Some(());
    }
    let rank = draft.nodes[node].rank.take()?;
    draft.nodes[node].kind = NodeKind::Forwarder;
    for other in draft.nodes.iter_mut().filter_map(|node| node.rank.as_mut()) {
        *other -= u32::from(*other > rank);
    }
    (draft.nodes.iter().filter(|node| node.rank.is_some()).count() > 1).then_some(())
}

/// Two links of one kind exchange their ends: all degrees stay.
fn switched(draft: &mut TopologyDraft, dice: &mut Dice) -> Option<()> {
    let (one, other) = (pair(draft, dice), pair(draft, dice));
    let kind = |id: &str| draft.nodes.iter().find(|node| node.id == id).map(|node| node.kind);
    let is_alike = kind(&one.from) == kind(&other.from) && kind(&one.to) == kind(&other.to);
    let ends = [&one.from, &one.to, &other.from, &other.to];
    let are_distinct = (0..4).all(|end| !ends[..end].contains(&ends[end]));
    if !is_alike || !are_distinct || one.capacity != other.capacity {
        return None;
    }
    if is_linked(draft, &one.from, &other.to) || is_linked(draft, &other.from, &one.to) {
        return None;
    }
    moved(draft, (&one.from, &one.to), (&one.from, &other.to));
    moved(draft, (&other.from, &other.to), (&other.from, &one.to));
    Some(())
}

/// A network that differs from the member in one thing, and the thing: the one of this number, or the next that there is.
fn near_miss(original: &Topology, number: usize, dice: &mut Dice) -> (&'static str, Topology) {
    let graph = |topology: &Topology| graph_of(topology, &[]).unwrap();
    for (name, change) in CHANGES.iter().cycle().skip(number).take(CHANGES.len()) {
        for _ in 0..20 {
            let mut draft = draft(original);
            if change(&mut draft, dice).is_none() || draft.links.is_empty() {
                continue;
            }
            let changed = built(shuffled(draft, dice, false));
            if let Comparison::Different(_) = compare(&graph(original), &graph(&changed), BUDGET).unwrap() {
                return (name, changed);
            }
        }
    }
    panic!("{:?} cannot be changed", original.name());
}

#[test]
fn fifty_near_misses_of_each_family_are_not_recognised() {
    let mut made = std::collections::BTreeMap::new();
    let mut others = Vec::new();
    for family in recognised_names() {
        for number in 0..COUNT {
            let expression = expression(family, number);
            let (change, changed) = near_miss(&topology(&expression), number, &mut Dice::new(900 + number as u64));
            *made.entry((family, change)).or_insert(0) += 1;
            if let Some(found) = member(&changed) {
                others.push(format!("{expression}, {change}: {}", found.expression));
            }
        }
    }
    // Two linked switches with a rank each: the rank that moves to the other one leaves a network of another family.
    let [only] = others.as_slice() else { panic!("{others:#?}") };
    assert!(
        only.starts_with("dragonfly-router:p=1,a=1,h=1") && only.contains("rewired: leaf-spine:leaves=1"),
        "{only}"
    );
    // Each change was made in each family, but for those that make no difference there: a complete graph has no room for
    // another link, and GPUs that change places are as they were.
    let missing: Vec<_> = recognised_names()
        .into_iter()
        .flat_map(|family| CHANGES.map(|(change, _)| (family, change)))
        .filter(|entry| !made.contains_key(entry))
        .collect();
    let expected = [
        ("complete", "rewired"),
        ("complete", "switched"),
        ("dgx-a100", "switched"),
        ("dgx-h100", "switched"),
        ("dgx-b200", "switched"),
        ("dgx-b300", "switched"),
    ];
    assert_eq!(missing, expected);
}

/// Faults are no family: what is left is a network like any other.
#[test]
fn broken_members_are_none() {
    for expression in [
        "torus:5x5,down=00-01",
        "dgx-a100:boxes=3,degrade=b0g3-ib*1/2",
        "rail:boxes=4,nodes-down=b0g5",
        "fat-tree:k=4,down=h0-p0e0",
        "random-regular:n=32,d=4,seed=1",
        "random-euler:n=16,switches=4,seed=2",
    ] {
        assert_eq!(recognise(&topology(expression), BUDGET), Ok(Recognition::Other), "{expression}");
    }
    // A rank gone from every box leaves a smaller member.
    let smaller = member(&topology("dgx-a100:boxes=2,nodes-down=b0g1+b1g6")).unwrap();
    assert_eq!(smaller.expression, "dgx-a100:boxes=2,gpus=7");
}

proptest! {
    /// Any small network: whatever is said of it is right, which [`member`] judges.
    #[test]
    fn whatever_is_recognised_is_right(
        ranks in 2..6_usize,
        switches in 0..4_usize,
        links in prop::collection::vec((0..9_usize, 0..9_usize, 1..3_u64, 0..8_u64, any::<bool>()), 0..24),
    ) {
        let mut draft = TopologyDraft::default();
        (0..ranks).for_each(|rank| draft.add_compute(format!("r{rank}")));
        (0..switches).for_each(|switch| draft.add_switch(format!("s{switch}")));
        let ids: Vec<String> = draft.nodes.iter().map(|node| node.id.clone()).collect();
        for (from, to, rate, latency, is_both) in links {
            let (from, to) = (&ids[from % ids.len()], &ids[to % ids.len()]);
            if from != to {
                let (rate, latency) = (Capacity::from_bytes_per_sec(rate).unwrap(), Latency::from_nanos(latency / 7));
                draft.add_link(from, to, rate, latency);
                if is_both {
                    draft.add_link(to, from, rate, latency);
                }
            }
        }
        member(&built(draft));
    }
}
