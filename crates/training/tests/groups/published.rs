//! Rates that an independent program found before: exact fractions, each with a proof of its own.

use canopy_optimize::Never;
use canopy_training::groups::{Group, GroupKind, GroupOptions, Patience, group_optimum, ring_rate};

use num_rational::BigRational;

use crate::networks::{Network, boxes, columns, data, grid, group, rows, tensor};

const REDUCE: GroupKind = GroupKind::AllReduce;

fn rate(text: &str) -> BigRational {
    text.parse().unwrap()
}

fn expect(network: &Network, groups: Vec<Group>, expected: &str) {
    for uses_symmetry in [true, false] {
        if !uses_symmetry && network.graph.arcs.len() > 600 {
            continue;
        }
        let problem = network.problem(groups.clone());
        let optimum =
            group_optimum(&problem, GroupOptions { uses_symmetry, ..GroupOptions::STANDARD }, Patience::ENDLESS);
        let optimum = optimum.unwrap();
        let found = (optimum.rate.to_string(), optimum.bound.to_string());
        assert_eq!(
            found,
            (rate(expected).to_string(), rate(expected).to_string()),
            "{:?} {}",
            optimum.classes,
            optimum.rounds
        );
    }
}

/// Groups in boxes and over rails.
fn mixed(count: u32, tensor_kind: (GroupKind, u64), which: &[u32], size: impl Fn(u32) -> u64) -> Vec<Group> {
    let mut groups: Vec<Group> = tensor(count, tensor_kind.0, tensor_kind.1).collect();
    groups.extend(data(count, REDUCE, which.iter().copied(), size));
    groups
}

const ALL: [u32; 8] = [0, 1, 2, 3, 4, 5, 6, 7];

#[test]
fn boxes_with_groups_inside_and_between() {
    for rails in [false, true] {
        expect(&boxes(2, rails), mixed(2, (REDUCE, 1), &ALL, |_| 1), "25");
    }
    expect(&boxes(4, true), mixed(4, (REDUCE, 1), &ALL, |_| 1), "50/3");
    expect(&boxes(4, true), mixed(4, (GroupKind::AllGather, 6), &ALL, |_| 1), "50/3");
    expect(&boxes(4, true), mixed(4, (REDUCE, 1), &[0, 1], |_| 1), "200/3");
    expect(&boxes(4, true), mixed(4, (REDUCE, 8), &ALL, |i| u64::from(i) + 1), "100/27");
}

#[test]
fn everybody_to_everybody_beside_rails() {
    for rails in [false, true] {
        let mut groups = data(4, REDUCE, ALL, |_| 1);
        groups.push(group(GroupKind::AllToAll, (0..32).collect(), 1));
        expect(&boxes(4, rails), groups, "100/9");
    }
}

#[test]
fn sixteen_boxes() {
    expect(&boxes(16, true), mixed(16, (REDUCE, 1), &ALL, |_| 1), "40/3");
    expect(&boxes(16, true), mixed(16, (REDUCE, 1), &[0, 1], |_| 1), "160/3");
    expect(&boxes(16, true), mixed(16, (REDUCE, 8), &ALL, |i| u64::from(i) + 1), "80/27");
}

#[test]
fn a_thousand_ranks() {
    expect(&boxes(128, true), mixed(128, (REDUCE, 1), &ALL, |_| 1), "1600/127");
    expect(&boxes(128, true), mixed(128, (REDUCE, 1), &[0, 1], |_| 1), "6400/127");
    expect(&boxes(128, true), mixed(128, (REDUCE, 8), &ALL, |i| u64::from(i) + 1), "3200/1143");
    expect(&boxes(128, true), mixed(128, (GroupKind::AllGather, 6), &ALL, |_| 1), "1600/127");
    let mut groups: Vec<Group> = tensor(128, REDUCE, 1).collect();
    groups.extend(data(128, GroupKind::ReduceScatter, ALL, |_| 1));
    groups.extend(data(128, GroupKind::AllGather, ALL, |_| 1));
    expect(&boxes(128, true), groups, "1600/127");
}

#[test]
fn rows_and_columns_of_tori() {
    let both = |size: u32, row_kind: GroupKind| {
        let mut groups = rows(size, 0..size, row_kind);
        groups.extend(columns(size, size, REDUCE));
        groups
    };
    expect(&grid(8, 8, true), both(8, REDUCE), "8/7");
    expect(&grid(8, 8, true), both(8, GroupKind::AllGather), "8/7");
    expect(&grid(8, 8, true), both(8, GroupKind::AllToAll), "1");
    expect(&grid(8, 8, true), rows(8, 0..4, REDUCE), "10/7");
    expect(&grid(32, 32, true), both(32, REDUCE), "32/31");
    expect(&grid(32, 32, true), both(32, GroupKind::AllToAll), "1/4");
    expect(&grid(32, 32, true), rows(32, (0..32).step_by(2), REDUCE), "64/31");
    let strided = |number: u32| {
        let within = |node: &u32| (node / 32 % 4, node % 4) == (number / 4, number % 4);
        group(REDUCE, (0..1024).filter(within).collect(), 1)
    };
    let mut groups = rows(32, 0..32, REDUCE);
    groups.extend((0..16).map(strided));
    expect(&grid(32, 32, true), groups, "64/157");
    let block = |number: u32| {
        let corner = number / 4 * 8 * 32 + number % 4 * 8;
        group(REDUCE, (0..64).map(|place| corner + place / 8 * 32 + place % 8).collect(), 1)
    };
    expect(&grid(32, 32, true), (0..16).map(block).collect(), "16/9");
}

#[test]
fn meshes_with_halves_and_columns() {
    let half = |left: bool| (0..36).filter(|node| (node % 6 < 3) == left).collect();
    let groups = vec![
        group(GroupKind::AllGather, half(true), 1),
        group(REDUCE, half(false), 1),
        group(GroupKind::AllToAll, (12..24).collect(), 1),
    ];
    expect(&grid(6, 6, false), groups, "36/31");
    let every = |odd: u32| group(GroupKind::AllGather, (0..36).filter(|node| node % 6 % 2 == odd).collect(), 1);
    expect(&grid(6, 6, false), vec![every(0), every(1)], "27/17");
}

#[test]
fn dead_nics_and_links() {
    let rail = |count: u32, rank: u32| (rank, 8 * count + count + rank % 8);
    for (count, dead, expected) in [
        (4, &[0][..], "775/48"),
        (16, &[0], "635/48"),
        (16, &[0, 1], "105/8"),
        (128, &[0], "25575/2032"),
        (128, &[0, 1], "12775/1016"),
    ] {
        let mut network = boxes(count, true);
        for &rank in dead {
            let (rank, rail) = rail(count, rank);
            network.cut(rank, rail);
        }
        expect(&network, mixed(count, (REDUCE, 1), &ALL, |_| 1), expected);
    }
    let mut torus = grid(8, 8, true);
    torus.cut(0, 1);
    let mut groups = rows(8, 0..8, REDUCE);
    groups.extend(columns(8, 8, REDUCE));
    expect(&torus, groups.clone(), "31/28");
    // A dead node: its row and its column go on without it.
    let mut torus = grid(8, 8, true);
    torus.graph.arcs.retain(|arc| arc.from != 0 && arc.to != 0);
    groups.iter_mut().for_each(|group| group.members.retain(|&node| node != 0));
    expect(&torus, groups, "100/91");
}

/// Pairs on K2,3: every cut allows 1.
#[test]
fn cuts_do_not_suffice_for_several_groups() {
    let mut network = Network::nodes(5);
    for left in [0, 1] {
        for right in [2, 3, 4] {
            network.link(left, right, 1);
        }
    }
    let pairs = [[0, 1], [2, 3], [2, 4], [3, 4]];
    expect(&network, pairs.map(|pair| group(REDUCE, pair.to_vec(), 1)).to_vec(), "3/4");
}

/// The values of the same program for rings.
#[test]
fn rings_are_as_good_on_even_rails_only() {
    let ring = |network: &Network, groups: Vec<Group>| ring_rate(&network.problem(groups), &Never).unwrap();
    assert_eq!(ring(&boxes(4, true), mixed(4, (REDUCE, 1), &ALL, |_| 1)), rate("50/3"));
    assert_eq!(ring(&boxes(4, true), mixed(4, (REDUCE, 1), &[0, 1], |_| 1)), rate("50/3"));
    let mut network = boxes(4, true);
    network.cut(0, 36);
    assert_eq!(ring(&network, mixed(4, (REDUCE, 1), &ALL, |_| 1)), rate("25/3"));
    let mut groups = rows(8, 0..8, REDUCE);
    groups.extend(columns(8, 8, REDUCE));
    assert_eq!(ring(&grid(8, 8, true), groups), rate("8/7"));
}
