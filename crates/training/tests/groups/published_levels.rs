//! Levels that an independent program found before.

use canopy_training::groups::{Group, GroupKind};
use num_rational::BigRational;
use num_traits::ToPrimitive as _;

use crate::levels::{check_levels, levels};
use crate::networks::{Network, boxes, columns, data, grid, rows, tensor};

const REDUCE: GroupKind = GroupKind::AllReduce;

fn tensor_and_data(count: u32) -> Vec<Group> {
    let mut groups: Vec<Group> = tensor(count, REDUCE, 1).collect();
    groups.extend(data(count, REDUCE, 0..8, |_| 1));
    groups
}

/// Distinct rates of levels, slowest first.
fn rates(network: &Network, groups: Vec<Group>) -> Vec<BigRational> {
    let problem = network.problem(groups);
    let found = levels(&problem, true);
    let mut rates: Vec<BigRational> = found.levels.iter().map(|level| level.rate.clone()).collect();
    rates.dedup();
    rates
}

/// The slowest, and to a tenth, the slowest and the fastest of all others.
fn expect(network: &Network, groups: Vec<Group>, first: &str, others: [f64; 2]) {
    let rates = rates(network, groups);
    assert_eq!(rates[0], first.parse().unwrap());
    for (rate, expected) in [&rates[1], &rates[rates.len() - 1]].into_iter().zip(others) {
        assert!((rate.to_f64().unwrap() - expected).abs() <= 0.05, "{rates:?}");
    }
}

/// On 1,024 ranks, groups in boxes have what those on rails leave of the links to the switch, or all of them.
#[test]
fn boxes_are_faster_than_rails() {
    assert_eq!(
        rates(&boxes(128, true), tensor_and_data(128)),
        ["1600/127", "1200/7"].map(|rate| rate.parse().unwrap())
    );
}

#[test]
fn boxes_with_dead_nics_are_slower() {
    let dead = |count: u32, ranks: &[u32]| {
        let mut network = boxes(count, true);
        ranks.iter().for_each(|&rank| network.cut(rank, 8 * count + count + rank % 8));
        network
    };
    expect(&dead(4, &[0]), tensor_and_data(4), "775/48", [169.12, 170.16]);
    expect(&dead(16, &[0]), tensor_and_data(16), "635/48", [169.5, 171.3]);
    expect(&dead(16, &[0, 1]), tensor_and_data(16), "105/8", [167.7, 171.0]);
    expect(&dead(128, &[0]), tensor_and_data(128), "25575/2032", [169.6, 171.4]);
    expect(&dead(128, &[0, 1]), tensor_and_data(128), "12775/1016", [167.8, 171.4]);
}

#[test]
fn a_dead_link_of_a_torus_slows_few() {
    let mut torus = grid(8, 8, true);
    torus.cut(0, 1);
    let mut groups = rows(8, 0..8, REDUCE);
    groups.extend(columns(8, 8, REDUCE));
    assert_eq!(rates(&torus, groups.clone()), ["31/28", "9/8", "8/7"].map(|rate| rate.parse().unwrap()));
    let problem = torus.problem(groups);
    let [with, without] = [true, false].map(|uses| levels(&problem, uses));
    assert_eq!(with.rates, without.rates);
    check_levels(&problem, &with);
}
