//! Machines written down by hand and at random: what is found must be trees, in order, and within all ports.

use canopy_optimize::Never;
use proptest::prelude::*;

use super::whole::whole_trees;
use super::{BoxTrees, Layout, Member, Ports, box_trees};

fn ports(amount: i64) -> Ports {
    Ports { sends: amount, receives: amount }
}

/// Boxes of members with NICs on the trunks named, all alike.
fn machine(boxes: &[&[usize]], demand: i64, inner: i64, outer: i64) -> Vec<Member> {
    let members =
        boxes.iter().enumerate().flat_map(|(in_box, trunks)| trunks.iter().map(move |&trunk| (in_box, trunk)));
    let member =
        |(in_box, trunk)| Member { in_box, trunk: Some(trunk), demand, inner: ports(inner), outer: ports(outer) };
    members.map(member).collect()
}

/// Greatest depth of what is found, all of which is looked at.
#[track_caller]
fn check(members: &[Member], found: &BoxTrees) -> u32 {
    let mut rooted = vec![0; members.len()];
    let mut used = vec![0; found.edges.len()];
    let mut deepest = 0;
    for tree in &found.trees {
        let mut depths = vec![None; members.len()];
        depths[tree.root as usize] = Some(0);
        for &edge in &tree.edges {
            let (from, to, _) = found.edges[edge as usize];
            let depth = depths[from as usize].map(|depth: u32| depth + 1);
            assert!(depth.is_some() && std::mem::replace(&mut depths[to as usize], depth).is_none());
            used[edge as usize] += tree.weight;
            deepest = deepest.max(depth.unwrap_or_default());
        }
        assert!(tree.weight > 0 && depths.iter().all(Option::is_some));
        rooted[tree.root as usize] += tree.weight;
    }
    assert_eq!(rooted, members.iter().map(|member| member.demand).collect::<Vec<_>>());
    let mut ports: Vec<[Ports; 2]> = members.iter().map(|member| [member.inner, member.outer]).collect();
    for (&(from, to, amount), used) in found.edges.iter().zip(used) {
        assert_eq!(amount, used);
        let (tail, head) = (members[from as usize], members[to as usize]);
        let kind = usize::from(tail.in_box != head.in_box);
        assert!(kind == 0 || tail.trunk.is_some() && tail.trunk == head.trunk, "{from} -> {to}");
        ports[from as usize][kind].sends -= amount;
        ports[to as usize][kind].receives -= amount;
    }
    assert!(ports.iter().flatten().all(|left| left.sends >= 0 && left.receives >= 0), "{ports:?}");
    deepest
}

#[track_caller]
fn found(members: &[Member]) -> Option<BoxTrees> {
    let layout = Layout::new(members.to_vec()).unwrap();
    box_trees(&layout, &Never).unwrap()
}

/// Sixteen boxes of eight, two of which lack a GPU, whose members need all of their links: 125 trees of others, 11 times,
/// of which 750 come from the box.
#[test]
fn tight_rails_with_missing_members_are_filled() {
    let whole: Vec<usize> = (0..8).collect();
    let mut boxes = vec![whole.as_slice(); 16];
    let (without_three, without_five) = ([0, 1, 2, 4, 5, 6, 7], [0, 1, 2, 3, 4, 6, 7]);
    (boxes[4], boxes[9]) = (&without_three, &without_five);
    let members = machine(&boxes, 11, 6 * 125, 5 * 125);
    let trees = found(&members).unwrap();
    assert!(check(&members, &trees) <= 3);
    assert!(trees.trees.len() <= 3 * members.len(), "{}", trees.trees.len());
}

/// The same around one switch, two of whose links are slower.
#[test]
fn one_switch_outside_serves_all() {
    let hub = [0; 8];
    let mut boxes = vec![hub.as_slice(); 16];
    boxes[3] = &hub[1..];
    let mut members = machine(&boxes, 11, 6 * 126, 5 * 126);
    let trees = found(&members).unwrap();
    assert!(check(&members, &trees) <= 3);
    // Where links are slower, all others have links to spare.
    for member in &mut members {
        (member.demand, member.inner, member.outer) = (17, ports(12 * 126), ports(10 * 126));
    }
    members[40].outer = ports(5 * 126);
    let trees = found(&members).unwrap();
    assert!(check(&members, &trees) <= 3);
    assert!(trees.trees.len() <= 2 * members.len(), "{}", trees.trees.len());
}

/// Demands of one to four units on machines that are just fast enough for the lightest box: next to no tree is divided,
/// whether there is one switch outside or one for each place in a box.
#[test]
fn trees_of_different_demands_stay_whole() {
    for trunks in [[0; 8], [0, 1, 2, 3, 4, 5, 6, 7]] {
        let mut members = machine(&[trunks.as_slice(); 16], 0, 0, 0);
        for (position, member) in members.iter_mut().enumerate() {
            member.demand = 8 * [1, 3, 2, 4, 4, 1, 3][position * position % 7];
        }
        let of_boxes = members.chunks(8).map(|members| members.iter().map(|member| member.demand).sum::<i64>());
        let (total, least) = (of_boxes.clone().sum::<i64>(), of_boxes.min().unwrap());
        for member in &mut members {
            (member.inner, member.outer) = (ports(total), ports((total - least + 7) / 8));
        }
        let trees = whole_trees(&Layout::new(members.clone()).unwrap(), &Never).unwrap().unwrap();
        assert!(check(&members, &trees) <= 5);
        assert!(trees.trees.len() <= members.len() * 5 / 4, "{}", trees.trees.len());
        assert_eq!(found(&members), Some(trees));
    }
}

/// Whoever has no way in is not reached, and whoever lacks a unit is not served.
#[test]
fn what_cannot_be_is_not_found() {
    let members = machine(&[&[0, 1], &[1, 2], &[2, 3]], 1, 9, 9);
    assert_eq!(found(&members), None, "no switch is common to the first and the last box");
    let mut members = machine(&[&[0, 1], &[0, 1], &[0, 1]], 1, 3, 2);
    assert!(found(&members).is_some());
    members[0].outer.receives = 1;
    assert_eq!(found(&members), None);

    // Its box has not enough for it, and it is on no switch outside, whatever its link could take there.
    let mut members = machine(&[&[0, 0, 0], &[0, 0, 0]], 1, 9, 9);
    (members[0].trunk, members[0].inner.receives) = (None, 5);
    assert!(found(&members).is_some_and(|trees| check(&members, &trees) > 0));
    members[0].inner.receives = 4;
    assert_eq!(found(&members), None);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Boxes and rails of any sizes and capacities: wrong trees are never found.
    #[test]
    fn whatever_is_found_is_right(
        boxes in prop::collection::vec(prop::collection::vec((0_usize..4, any::<bool>()), 1..6), 2..8),
        numbers in prop::collection::vec((0_i64..4, 0_i64..80, 0_i64..80, 0_i64..80, 0_i64..80), 48),
        uneven: bool,
    ) {
        let members: Vec<Member> = boxes
            .iter()
            .enumerate()
            .flat_map(|(in_box, members)| members.iter().map(move |&(trunk, has_nic)| (in_box, trunk, has_nic)))
            .zip(numbers)
            .map(|((in_box, trunk, has_nic), (demand, a, b, c, d))| Member {
                in_box,
                trunk: (has_nic || !uneven).then_some(trunk % 2),
                demand: if uneven { demand } else { 3 },
                inner: Ports { sends: 40 + a, receives: 40 + b },
                outer: Ports { sends: 60 + c, receives: 60 + d },
            })
            .collect();
        if let Some(layout) = Layout::new(members.clone())
            && let Some(trees) = box_trees(&layout, &Never).unwrap()
        {
            let depth = check(&members, &trees);
            // Trees that stay whole may be passed on from box to box.
            prop_assert!(depth <= if uneven { 5 } else { 3 }, "{depth} hops");
        }
    }
}
