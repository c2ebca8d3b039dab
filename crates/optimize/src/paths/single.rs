//! One path for each pair: an integer program, where that is small, begun with a local search.

mod bound;
mod fitting;

use microlp::{ComparisonOp, OptimizationDirection, Problem, SolveOptions};

use super::whole::PathLoads;
use crate::digraph::Digraph;
use crate::fraction::Fraction;
use crate::stop::{Stop, Stopped};
pub use bound::single_load_bound;
pub(super) use fitting::Fitting;

/// Effort to find a better choice or to prove that none exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SingleOptions {
    /// Most paths of all pairs for which the integer program is solved.
    pub paths_max: u64,
    /// Nodes of its search.
    pub nodes_max: u64,
    /// Moves of the local search for each lesser load.
    pub moves_max: u64,
}

/// One path for each pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinglePaths {
    /// By pair, the place of its path.
    pub choices: Vec<u32>,
    /// The greatest `pairs on an arc / capacity`.
    pub load: Fraction,
    /// Whether no choice has a lesser load: it is the least that whole numbers of pairs allow above the limit given, or the
    /// integer program says so, in floating point.
    pub is_optimal: bool,
}

/// Rounds of choosing every path again by what the others load.
const ROUNDS: u32 = 16;

/// Chooses paths so that the busiest arc carries few pairs for its capacity.
///
/// It begins with the best of the given choices and of a quick search, in which every pair takes the path that adds least to
/// Σ load²/capacity, again and again. As long as `least` allows a lesser load than the one reached, a local search asks for
/// the next lesser one, and an integer program does so where that fails and there are few paths.
///
/// * **Source.** Basu 2024 §5, `ILP-disjoint` and `ILP-shortest`.
/// * **In.** For each pair at least one path of arcs with capacity; `starts`, each the places of a path for every pair.
///   `least`: no choice has a lesser load, as [`single_load_bound`] proves; 0 if nothing is known.
/// * **Errors.** Stopped; asked between moves, rounds and integer programs. **Cost.** The rounds: O(length of all paths) each;
///   the rest as its limits say, and its limits only: equal arguments give equal choices.
pub fn single_paths(
    graph: &Digraph,
    pairs: &[Vec<Vec<u32>>],
    starts: &[Vec<u32>],
    least: Fraction,
    options: SingleOptions,
    stop: &dyn Stop,
) -> Result<SinglePaths, Stopped> {
    let steps = Steps::of(graph);
    let may_improve = |load: Fraction| steps.below(load).filter(|&next| next >= least);
    let loaded = |choices: Vec<u32>| (load_of(graph, pairs, &choices), choices);
    let start = starts.iter().cloned().map(loaded).min_by_key(|start| start.0);
    let (mut load, mut choices) = match start {
        Some(start) if may_improve(start.0).is_none() => start,
        start => {
            let quick = loaded(searched(graph, pairs, stop)?);
            start.filter(|start| start.0 <= quick.0).unwrap_or(quick)
        }
    };
    let count: u64 = pairs.iter().map(|paths| paths.len() as u64).sum();
    while let Some(next) = may_improve(load) {
        let better = match Fitting::new(graph, pairs, &choices, next).search(options.moves_max, stop)? {
            Some(better) => Answer::Found(better),
            None if count > options.paths_max => Answer::Unknown,
            None => program(graph, pairs, next, options.nodes_max),
        };
        match better {
            Answer::Found(better) if load_of(graph, pairs, &better) < load => (load, choices) = loaded(better),
            Answer::None => break,
            Answer::Found(_) | Answer::Unknown => return Ok(SinglePaths { choices, load, is_optimal: false }),
        }
    }
    Ok(SinglePaths { choices, load, is_optimal: true })
}

/// The loads there can be: whole numbers over the capacities.
struct Steps {
    /// Different ones, ascending.
    capacities: Vec<u64>,
}

impl Steps {
    fn of(graph: &Digraph) -> Self {
        let mut capacities: Vec<u64> = graph.arcs.iter().map(|arc| arc.capacity).filter(|&c| c > 0).collect();
        capacities.sort_unstable();
        capacities.dedup();
        Self { capacities }
    }

    /// The greatest below a load, if that is not nothing.
    fn below(&self, load: Fraction) -> Option<Fraction> {
        let below = |&capacity: &u64| {
            let product = load.numerator.checked_mul(capacity.into())?;
            let whole = product.checked_sub(1)? / load.denominator;
            Fraction::new(whole, capacity.into()).filter(|&fraction| fraction > Fraction::ZERO)
        };
        self.capacities.iter().filter_map(below).max()
    }

    /// The least from a load on; `None` where there is no capacity, or it does not fit.
    fn at_least(&self, load: Fraction) -> Option<Fraction> {
        let from = |&capacity: &u64| {
            let product = load.numerator.checked_mul(capacity.into())?;
            Fraction::new(product.div_ceil(load.denominator), capacity.into())
        };
        self.capacities.iter().map(from).collect::<Option<Vec<_>>>()?.into_iter().min()
    }
}

fn load_of(graph: &Digraph, pairs: &[Vec<Vec<u32>>], choices: &[u32]) -> Fraction {
    let mut loads = vec![0_u128; graph.arcs.len()];
    for (paths, &choice) in pairs.iter().zip(choices) {
        paths[choice as usize].iter().for_each(|&arc| loads[arc as usize] += 1);
    }
    let times = loads.into_iter().zip(&graph.arcs).filter_map(|(load, arc)| Fraction::new(load, arc.capacity.into()));
    times.max().unwrap_or(Fraction::ZERO)
}

/// Choices by local search.
fn searched(graph: &Digraph, pairs: &[Vec<Vec<u32>>], stop: &dyn Stop) -> Result<Vec<u32>, Stopped> {
    let mut loads = PathLoads::new(graph, pairs);
    let mut choices: Vec<Option<usize>> = vec![None; pairs.len()];
    let mut best: Option<(Fraction, Vec<u32>)> = None;
    for round in 0..ROUNDS {
        if stop.is_requested() {
            return Err(Stopped);
        }
        for (pair, choice) in choices.iter_mut().enumerate() {
            if let Some(place) = *choice {
                loads.remove(pair, place, 1);
            }
            let place = loads.least_growth(pair, round % 2 == 1);
            loads.add(pair, place, 1);
            *choice = Some(place);
        }
        let mut relieved = PathLoads::new(graph, pairs);
        choices.iter().enumerate().for_each(|(pair, place)| relieved.add(pair, place.unwrap_or_default(), 1));
        relieved.relieve(stop)?;
        let load = relieved.load(1);
        if best.as_ref().is_none_or(|(least, _)| load < *least) {
            let place = |counts: &Vec<u64>| counts.iter().position(|&count| count > 0).unwrap_or_default();
            let places = relieved.counts.iter().map(|counts| u32::try_from(place(counts)).unwrap_or_default());
            best = Some((load, places.collect()));
        }
    }
    Ok(best.map_or_else(Vec::new, |(_, choices)| choices))
}

/// What the integer program says.
enum Answer {
    Found(Vec<u32>),
    /// There is no such choice.
    None,
    /// Its nodes ended, or its numbers did.
    Unknown,
}

/// Choices of at most this load: `x_p ∈ {0, 1}`, `Σ x_p = 1` for each pair, `Σ x_p ≤ load · capacity` on each arc.
fn program(graph: &Digraph, pairs: &[Vec<Vec<u32>>], load: Fraction, nodes_max: u64) -> Answer {
    let mut problem = Problem::new(OptimizationDirection::Minimize);
    let mut users = vec![Vec::new(); graph.arcs.len()];
    let mut variables = Vec::with_capacity(pairs.len());
    for paths in pairs {
        let own: Vec<_> = paths.iter().map(|_| problem.add_binary_var(0.0)).collect();
        for (path, &variable) in paths.iter().zip(&own) {
            path.iter().for_each(|&arc| users[arc as usize].push((variable, 1.0)));
        }
        problem.add_constraint(own.iter().map(|&variable| (variable, 1.0)), ComparisonOp::Eq, 1.0);
        variables.push(own);
    }
    for (arc, users) in graph.arcs.iter().zip(&users) {
        let room = load.numerator.saturating_mul(arc.capacity.into()) / load.denominator;
        if (users.len() as u128) > room {
            // Fewer than the paths, of which there are few enough for a program.
            let room = u32::try_from(room).unwrap_or(u32::MAX);
            problem.add_constraint(users.as_slice(), ComparisonOp::Le, f64::from(room));
        }
    }
    let mut options = SolveOptions::default();
    options.node_limit = Some(nodes_max);
    match problem.solve_with(options) {
        Err(microlp::Error::Infeasible) => Answer::None,
        Err(_) => Answer::Unknown,
        Ok(outcome) => match outcome.solution() {
            None => Answer::Unknown,
            Some(solution) => {
                let greatest = |own: &Vec<microlp::Variable>| {
                    let value = |place: &usize| solution.var_value(own[*place]);
                    (0..own.len()).max_by(|one, other| value(one).total_cmp(&value(other))).unwrap_or_default()
                };
                let places = variables.iter().map(|own| u32::try_from(greatest(own)).unwrap_or_default());
                Answer::Found(places.collect())
            }
        },
    }
}
