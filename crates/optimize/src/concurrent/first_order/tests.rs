use good_lp::{Expression, Solution, SolverModel, microlp, variable, variables};
use proptest::prelude::*;

use super::{SolverOptions, solve};
use crate::concurrent::samples::{everyone, generalized_kautz};
use crate::concurrent::{Commodity, ConcurrentError, ConcurrentOptimum, ConcurrentProblem, length_bound};
use crate::digraph::{Arc, Digraph};
use crate::stop::Never;

const WORK: u64 = 2_000_000_000;

fn graph(node_count: u32, arcs: impl IntoIterator<Item = (u32, u32, u64)>) -> Digraph {
    let arcs = arcs.into_iter().map(|(from, to, capacity)| Arc { from, to, capacity });
    Digraph { node_count, arcs: arcs.collect() }
}

/// A torus of two dimensions, with the dimension of each arc.
fn torus(width: u32, height: u32) -> (Digraph, Vec<u32>) {
    let mut arcs = Vec::new();
    let mut orbits = Vec::new();
    for (x, y) in (0..width).flat_map(|x| (0..height).map(move |y| (x, y))) {
        let at = |x: u32, y: u32| x % width * height + y % height;
        for (to, orbit) in [(at(x + 1, y), 0), (at(x + width - 1, y), 0), (at(x, y + 1), 1), (at(x, y + height - 1), 1)]
        {
            arcs.push((at(x, y), to, 1));
            orbits.push(orbit);
        }
    }
    (graph(width * height, arcs), orbits)
}

/// Boxes of four on a switch each, and all on a slow switch: nodes that are no switch first.
fn boxes(count: u32, fast: u64, slow: u64) -> Digraph {
    let ranks = 4 * count;
    let both = |rank: u32, switch: u32, capacity: u64| [(rank, switch, capacity), (switch, rank, capacity)];
    let links = (0..ranks).flat_map(|rank| [both(rank, ranks + rank / 4, fast), both(rank, ranks + count, slow)]);
    graph(ranks + count + 1, links.flatten())
}

fn solved(problem: &ConcurrentProblem<'_>, tolerance: f64) -> ConcurrentOptimum {
    let mut bracket = (0.0, f64::INFINITY);
    let options = SolverOptions { tolerance, work_max: WORK };
    let optimum = solve(problem, &options, &Never, &mut |lower, upper| {
        assert!(lower >= bracket.0 && upper <= bracket.1, "a bracket never widens");
        bracket = (lower, upper);
    });
    let optimum = optimum.unwrap();
    check(problem, &optimum);
    assert!(optimum.rate >= (1.0 - 1.01 * tolerance - 1e-9) * optimum.limit, "{optimum:?}");
    optimum
}

/// The flow brings what is wanted, fits at the rate, and lengths prove the limit.
fn check(problem: &ConcurrentProblem<'_>, optimum: &ConcurrentOptimum) {
    let graph = problem.graph();
    let proven = length_bound(problem, &optimum.lengths, &Never).unwrap().unwrap();
    assert_eq!(optimum.limit.to_bits(), (proven.numerator as f64 / proven.denominator as f64).to_bits());
    assert!(optimum.rate <= optimum.limit);
    let class = |arc: u32| problem.orbits().get(arc as usize).copied().unwrap_or(arc);
    let sizes = sums((0..).zip(&graph.arcs).map(|(arc, _)| (class(arc), 1.0)));
    let mut loads = Vec::new();
    for (commodity, amounts) in problem.commodities().iter().zip(&optimum.flow.amounts) {
        assert!(amounts.is_sorted_by(|a, b| a.0 < b.0) && amounts.iter().all(|&(_, amount)| amount > 0.0));
        let mut net = vec![0.0; graph.node_count as usize];
        for &(index, amount) in amounts {
            let arc = graph.arcs[index as usize];
            net[arc.to as usize] += amount;
            net[arc.from as usize] -= amount;
            loads.push((class(index), amount * commodity.copies as f64));
        }
        let total: u64 = commodity.sinks.iter().map(|&(_, demand)| demand).sum();
        for &(sink, demand) in &commodity.sinks {
            net[sink as usize] -= demand as f64;
        }
        net[commodity.source as usize] += total as f64;
        assert!(net.iter().all(|net| net.abs() <= 1e-9 * total as f64), "{net:?}");
    }
    for (class, load) in sums(loads) {
        let arc = (0..).zip(&graph.arcs).find(|&(arc, _)| class_is(problem, arc, class)).unwrap().1;
        let size = sizes.iter().find(|of| of.0 == class).unwrap().1;
        assert!(load / size * optimum.rate <= arc.capacity as f64 * (1.0 + 1e-9));
    }
}

fn class_is(problem: &ConcurrentProblem<'_>, arc: u32, class: u32) -> bool {
    problem.orbits().get(arc as usize).copied().unwrap_or(arc) == class
}

fn sums(values: impl IntoIterator<Item = (u32, f64)>) -> Vec<(u32, f64)> {
    let mut sums = std::collections::BTreeMap::new();
    for (key, value) in values {
        *sums.entry(key).or_insert(0.0) += value;
    }
    sums.into_iter().collect()
}

#[track_caller]
fn assert_near(found: &ConcurrentOptimum, expected: f64, tolerance: f64) {
    assert!(
        found.rate <= expected * (1.0 + 1e-9) && found.limit >= expected * (1.0 - 1e-9),
        "{expected} is not bracketed"
    );
    assert!((found.limit - expected).abs() <= tolerance * expected, "limit {} for {expected}", found.limit);
    assert!((found.rate - expected).abs() <= tolerance * expected, "rate {} for {expected}", found.rate);
}

/// Values of independent linear programs.
#[test]
fn generalised_kautz_networks_reach_their_reference_values() {
    for (node_count, expected, tolerance) in [
        (5, 1.0, 1e-9),
        (10, 1.0 / 3.5, 1e-6),
        (20, 7.0 / 61.0, 1e-6),
        (32, 0.047_058_823_53, 1e-7),
        (64, 0.021_707_67, 1e-6),
    ] {
        let (graph, all) = (generalized_kautz(node_count, 4), everyone(node_count));
        let problem = ConcurrentProblem::new(&graph, &all, &[]).unwrap();
        assert_near(&solved(&problem, tolerance), expected, 1.1 * tolerance);
    }
}

/// Single width serves where a hundredth is asked for; the bracket is as sound.
#[test]
fn a_coarse_answer_brackets_the_optimum_too() {
    let (graph, all) = (generalized_kautz(200, 4), everyone(200));
    let problem = ConcurrentProblem::new(&graph, &all, &[]).unwrap();
    let optimum = solved(&problem, 0.01);
    assert!(optimum.rate <= 0.005_552_059_1 && optimum.limit >= 0.005_552_058_9);
}

/// `2 / (N · max avgdist)` of a torus, from one source.
#[test]
fn one_source_gives_a_torus_exactly() {
    for (width, height) in [(3, 3), (4, 4), (5, 5), (10, 10), (4, 6), (3, 8)] {
        let (graph, orbits) = torus(width, height);
        let one = [Commodity { copies: u64::from(width * height), ..everyone(width * height)[0].clone() }];
        // Dimensions of the same length are exchanged by a symmetry.
        let orbits = if width == height { vec![0; orbits.len()] } else { orbits };
        let problem = ConcurrentProblem::new(&graph, &one, &orbits).unwrap();
        let around = width.max(height);
        let mean = f64::from((0..around).map(|step| step.min(around - step)).sum::<u32>()) / f64::from(around);
        assert_near(&solved(&problem, 1e-9), 2.0 / (f64::from(width * height) * mean), 1e-9);
    }
}

#[test]
fn one_source_gives_a_hypercube_exactly() {
    let arcs = (0..1024_u32).flat_map(|node| (0..10).map(move |bit| (node, node ^ 1 << bit, 1)));
    let graph = graph(1024, arcs);
    let one = [Commodity { copies: 1024, ..everyone(1024)[0].clone() }];
    let orbits = vec![7; graph.arcs.len()];
    let problem = ConcurrentProblem::new(&graph, &one, &orbits).unwrap();
    assert_near(&solved(&problem, 1e-12), 2_f64.powi(-9), 1e-12);
}

/// Orbits under `x → −1−x`, which is an automorphism of every generalised Kautz network.
#[test]
fn orbits_give_what_the_whole_gives() {
    let node_count = 40_u32;
    let graph = generalized_kautz(node_count, 4);
    let mirrored = |node: u32| node_count - 1 - node;
    let index = |from, to| graph.arcs.iter().position(|arc| (arc.from, arc.to) == (from, to)).unwrap();
    let orbit = |arc: &Arc| index(arc.from, arc.to).min(index(mirrored(arc.from), mirrored(arc.to)));
    let orbits: Vec<u32> = graph.arcs.iter().map(|arc| u32::try_from(orbit(arc)).unwrap()).collect();
    let half: Vec<Commodity> =
        everyone(node_count).into_iter().take(20).map(|commodity| Commodity { copies: 2, ..commodity }).collect();
    let problem = ConcurrentProblem::new(&graph, &half, &orbits).unwrap();
    assert_near(&solved(&problem, 1e-7), 1.0 / 23.525, 1.1e-7);
}

/// Within a box everything is fast; each rank gets 12 of its 15 from other boxes over its slow link, and no more.
#[test]
fn fast_and_slow_links_and_switches() {
    for (fast, slow) in [(300_000_000_000, 16_000_000_000), (300_000_000_000, 1), (3, 3), (1, 300_000_000_000)] {
        let graph = boxes(4, fast, slow);
        let all = everyone(16);
        let problem = ConcurrentProblem::new(&graph, &all, &[]).unwrap();
        let optimum = solved(&problem, 1e-6);
        let (fast, slow) = (fast as f64, slow as f64);
        // Out of each rank, and out of each box.
        assert_near(&optimum, ((fast + slow) / 15.0).min(slow / 12.0), 1.1e-6);
    }
}

/// Capacities from 1 to 10⁹, demands from 1 to 1,000: what binds is found among what does not.
#[test]
fn capacities_of_nine_orders_of_magnitude() {
    let mut state = 88_172_645_463_325_252_u64;
    let mut random = |bound: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) % bound
    };
    let node_count = 40;
    let mut arcs = Vec::new();
    for from in 0..node_count {
        for to in [(from + 1) % node_count, 0, 1, 2, 3] {
            let to = if arcs.len() % 5 == 0 { to } else { u32::try_from(random(40)).unwrap() };
            let capacity = 10_u64.pow(u32::try_from(random(10)).unwrap());
            arcs.push((from, to, capacity));
        }
    }
    let graph = graph(node_count, arcs);
    let mut all = everyone(node_count);
    all.iter_mut().flat_map(|commodity| &mut commodity.sinks).for_each(|sink| sink.1 = 1 + random(1000));
    let problem = ConcurrentProblem::new(&graph, &all, &[]).unwrap();
    solved(&problem, 1e-6);
}

#[test]
fn demands_and_scales_of_any_size() {
    // Two ways from 0 to 3, one of which is shared with what 1 sends.
    let links = [(0, 1, 10), (0, 2, 4), (1, 3, 6), (2, 3, 8), (3, 0, 0), (0, 0, 50), (0, 3, 1), (0, 3, 1)];
    let scale = 1 << 50;
    let graph = graph(4, links.map(|(from, to, capacity)| (from, to, capacity * scale)));
    let sinks = vec![
        Commodity { source: 0, sinks: vec![(3, 9_000_000_000)], copies: 1 },
        Commodity { source: 1, sinks: vec![(3, 3_000_000_000)], copies: 1 },
    ];
    let problem = ConcurrentProblem::new(&graph, &sinks, &[]).unwrap();
    // All of 12 units pass arcs into 3, from 1: 6, from 2: 4 (what 0 sends there), directly: 2.
    assert_near(&solved(&problem, 1e-9), scale as f64 / 1e9, 1.1e-9);
}

#[test]
fn one_commodity_with_one_sink_is_a_maximum_flow() {
    let graph = graph(5, [(0, 1, 3), (0, 2, 2), (1, 3, 2), (2, 3, 2), (1, 2, 1), (3, 4, 9), (4, 0, 1)]);
    let one = [Commodity { source: 0, sinks: vec![(4, 1)], copies: 1 }];
    let problem = ConcurrentProblem::new(&graph, &one, &[]).unwrap();
    assert_near(&solved(&problem, 1e-9), 4.0, 1.1e-9);
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let (graph, all) = (generalized_kautz(130, 4), everyone(130));
    let problem = ConcurrentProblem::new(&graph, &all, &[]).unwrap();
    for tolerance in [1e-2, 1e-5] {
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let options = SolverOptions { tolerance, work_max: 30_000_000 };
            let mut brackets = Vec::new();
            let optimum = pool.install(|| {
                solve(&problem, &options, &Never, &mut |lower, upper| brackets.push([lower.to_bits(), upper.to_bits()]))
            });
            (optimum.unwrap(), brackets)
        };
        assert_eq!(on(1), on(4));
    }
}

#[test]
fn what_cannot_be_reached_is_named_before_any_work() {
    let graph = graph(3, [(0, 1, 1), (1, 2, 0), (2, 0, 1)]);
    let all = everyone(3);
    let problem = ConcurrentProblem::new(&graph, &all, &[]).unwrap();
    let options = SolverOptions { tolerance: 0.01, work_max: WORK };
    let found = solve(&problem, &options, &Never, &mut |_, _| panic!("nothing to tell"));
    assert_eq!(found, Err(ConcurrentError::Unreachable { from: 0, to: 2 }));
}

#[test]
fn a_stop_is_heard_before_and_while_it_works() {
    use std::sync::atomic::{AtomicU32, Ordering};
    let (graph, all) = (generalized_kautz(100, 4), everyone(100));
    let problem = ConcurrentProblem::new(&graph, &all, &[]).unwrap();
    let options = SolverOptions { tolerance: 0.0, work_max: u64::MAX };
    for asked_max in [0, 1, 10, 1000, 3000] {
        let asked = AtomicU32::new(0);
        let stop = || asked.fetch_add(1, Ordering::Relaxed) >= asked_max;
        assert_eq!(solve(&problem, &options, &stop, &mut |_, _| ()), Err(ConcurrentError::Stopped));
    }
}

/// A budget that is spent leaves a flow and a limit that hold, only farther apart.
#[test]
fn a_budget_ends_the_work_with_what_there_is() {
    let (graph, all) = (generalized_kautz(32, 4), everyone(32));
    let problem = ConcurrentProblem::new(&graph, &all, &[]).unwrap();
    let gap = |work_max| {
        let options = SolverOptions { tolerance: 0.0, work_max };
        let optimum = solve(&problem, &options, &Never, &mut |_, _| ()).unwrap();
        check(&problem, &optimum);
        1.0 - optimum.rate / optimum.limit
    };
    let gaps = [0, 500_000, 5_000_000].map(gap);
    assert!(gaps[0] > 0.3 && gaps[1] < 0.1 && gaps[2] < 1e-4, "{gaps:?}");
}

/// `max F` by a linear program, one flow for each source.
fn by_linear_program(graph: &Digraph, commodities: &[Commodity]) -> f64 {
    let mut variables = variables!();
    let rate = variables.add(variable().min(0.0));
    let flows: Vec<Vec<_>> =
        commodities.iter().map(|_| graph.arcs.iter().map(|_| variables.add(variable().min(0.0))).collect()).collect();
    let mut model = variables.maximise(rate).using(microlp);
    for (index, arc) in graph.arcs.iter().enumerate() {
        let load: Expression = flows.iter().map(|flow| flow[index]).sum();
        model.add_constraint(load.leq(arc.capacity as f64));
    }
    for (flow, commodity) in flows.iter().zip(commodities) {
        for node in (0..graph.node_count).filter(|&node| node != commodity.source) {
            let demand = commodity.sinks.iter().find(|sink| sink.0 == node).map_or(0, |sink| sink.1);
            let mut net = Expression::from(0.0);
            for (&amount, arc) in flow.iter().zip(&graph.arcs) {
                net += f64::from(i32::from(arc.to == node) - i32::from(arc.from == node)) * amount;
            }
            model.add_constraint((net - demand as f64 * rate).geq(0.0));
        }
    }
    model.solve().unwrap().value(rate)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Networks with a ring through all nodes, uneven capacities, parallel arcs, loops and demands of any size.
    #[test]
    fn small_networks_agree_with_the_linear_program(
        node_count in 3_u32..7,
        ring in prop::collection::vec(1_u64..20, 7),
        more in prop::collection::vec((0_u32..7, 0_u32..7, 0_u64..40), 0..12),
        demands in prop::collection::vec(0_u64..6, 49),
    ) {
        let around = (0..node_count).zip(&ring).map(|(node, &capacity)| (node, (node + 1) % node_count, capacity));
        let more = more.into_iter().map(|(from, to, capacity)| (from % node_count, to % node_count, capacity));
        let graph = graph(node_count, around.chain(more));
        let sinks = |source: u32| {
            let wanted = (0..node_count).map(|node| (node, demands[(7 * source + node) as usize]));
            wanted.filter(|&(node, demand)| node != source && demand > 0).collect()
        };
        let all: Vec<Commodity> = (0..node_count).map(|source| Commodity { source, sinks: sinks(source), copies: 1 }).collect();
        prop_assume!(all.iter().any(|commodity| !commodity.sinks.is_empty()));
        let problem = ConcurrentProblem::new(&graph, &all, &[]).unwrap();
        let expected = by_linear_program(&graph, &all);
        assert_near(&solved(&problem, 1e-6), expected, 1.1e-6);
    }
}
