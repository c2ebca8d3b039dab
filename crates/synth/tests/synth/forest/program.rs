//! The linear program of the article, written out whole: what plans on networks of one-way links are measured against.
//!
//! Nothing of it is shared with how plans are found: two flows per rank instead of cuts, and floating point throughout.

use canopy_schedule::CollectiveKind::Allreduce;
use canopy_topology::Topology;
use good_lp::{Expression, ProblemVariables, Solution, SolverModel, Variable, constraint, microlp, variable};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::forest::families;
use crate::forest::validator::plan;

/// Networks tried.
const CASES: usize = 200;

/// The greatest rate of an allreduce on a network without switches, as bytes per second.
///
/// Source: Zhao 2026, appendix B.7: data rates rooted at each rank, a part of each link for spreading and one for
/// collecting, and for each rank a flow of the whole rate to it within the first and from it within the second.
#[expect(clippy::cast_precision_loss, reason = "a program in floating point")]
fn optimum(topology: &Topology) -> f64 {
    let ranks: Vec<usize> = topology.ranks().map(|rank| rank.index()).collect();
    let links: Vec<(usize, usize)> = topology.links().iter().map(|link| (link.from.index(), link.to.index())).collect();
    let capacities: Vec<f64> = topology.links().iter().map(|link| link.capacity.bytes_per_sec() as f64).collect();
    let unit = capacities.iter().copied().fold(1.0, f64::max);
    let mut variables = ProblemVariables::new();
    let mut some = |count: usize| -> Vec<Variable> { (0..count).map(|_| variables.add(variable().min(0))).collect() };
    let roots = some(ranks.len());
    let (spread, collect) = (some(links.len()), some(links.len()));
    // By direction, then by rank: flow over each link, then between the root of all and each rank.
    let flows: [Vec<(Vec<Variable>, Vec<Variable>)>; 2] =
        [(); 2].map(|()| ranks.iter().map(|_| (some(links.len()), some(ranks.len()))).collect());
    let rate: Expression = roots.iter().sum();
    let mut model = variables.maximise(rate.clone()).using(microlp);
    for (link, capacity) in capacities.iter().enumerate() {
        model = model.with(constraint!(spread[link] + collect[link] <= capacity / unit));
    }
    for ((flows, parts), outwards) in flows.iter().zip([&spread, &collect]).zip([true, false]) {
        for (&rank, (over_links, at_ranks)) in ranks.iter().zip(flows) {
            for (&flow, &part) in over_links.iter().zip(parts).chain(at_ranks.iter().zip(&roots)) {
                model = model.with(constraint!(flow <= part));
            }
            for &node in &ranks {
                let mut surplus = Expression::from(at_ranks[node]);
                for (&(from, to), &flow) in links.iter().zip(over_links) {
                    // Seen from the root of all, what is collected flows against the links.
                    let (from, to) = if outwards { (from, to) } else { (to, from) };
                    if to == node {
                        surplus += flow;
                    }
                    if from == node {
                        surplus -= flow;
                    }
                }
                let least = if node == rank { rate.clone() } else { Expression::from(0) };
                model = model.with(constraint!(surplus >= least));
            }
        }
    }
    let solution = model.solve().unwrap();
    unit * roots.iter().map(|&root| solution.value(root)).sum::<f64>()
}

/// Never more than the program allows, and within half a hundredth of it.
#[test]
fn plans_reach_what_the_program_of_the_article_allows() {
    let mut runner = TestRunner::deterministic();
    let mut tried = 0;
    while tried < CASES {
        let topology = families::without_switches().new_tree(&mut runner).unwrap().current();
        if topology.first_unreachable().is_some() || topology.rank_count() > 8 {
            continue;
        }
        tried += 1;
        let best = optimum(&topology);
        let reached = plan(&topology, Allreduce).algbw.gigabytes_per_sec() * 1e9;
        assert!(reached <= best * (1.0 + 1e-6) && reached >= best * 0.995, "{reached} of {best}: {topology:?}");
    }
}

/// A path of three: everything is summed up in the middle.
#[test]
fn the_program_knows_the_path() {
    let links = [(0, 1, 1, 0), (1, 0, 1, 0), (1, 2, 1, 0), (2, 1, 1, 0)];
    let rate = optimum(&families::build(3, 0, &[], &links));
    assert!((rate - 1.0).abs() < 1e-6, "{rate}");
}
