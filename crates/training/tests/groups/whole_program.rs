//! Random cases against a linear program written out whole: every tree over the members of each group, in floats.
//!
//! `CANOPY_CASES=3000 cargo test -p canopy-training --test groups whole_program` runs more.

use canopy_training::groups::{Group, GroupKind, GroupOptions, GroupsError, Patience, group_optimum};

use good_lp::{
    Constraint, Expression, ProblemVariables, Solution as _, SolverModel as _, Variable, clarabel, constraint, variable,
};
use num_traits::ToPrimitive as _;

use crate::costs::{Sends, Work, lacking, passes, reached, rooted_trees};
use crate::networks::{Network, group};
use crate::random::{Case, cases};

/// Cases where no number is asked for.
const CASES: u32 = 500;

/// Least Σ capacity · length − Σ rate · cost of frozen groups, over all lengths of which all others together need 1.
pub(crate) struct Program<'a> {
    network: &'a Network,
    variables: ProblemVariables,
    /// By arc.
    lengths: Vec<Variable>,
    constraints: Vec<Constraint>,
}

impl<'a> Program<'a> {
    pub(crate) fn new(network: &'a Network) -> Self {
        let mut variables = ProblemVariables::new();
        let lengths = network.graph.arcs.iter().map(|_| variables.add(variable().min(0))).collect();
        Self { network, variables, lengths, constraints: Vec::new() }
    }

    fn some(&mut self) -> Variable {
        self.variables.add(variable().min(0))
    }

    /// By positions of two members, at most their distance; none without a way.
    fn distances(&mut self, group: &Group) -> Vec<Vec<Option<Variable>>> {
        let mut all = Vec::new();
        for &source in &group.members {
            let reached = reached(self.network, group, source);
            let potentials: Vec<Option<Variable>> =
                reached.into_iter().map(|reached| reached.then(|| self.some())).collect();
            for (arc, &length) in self.network.graph.arcs.iter().zip(&self.lengths) {
                let ends = potentials[arc.from as usize].zip(potentials[arc.to as usize]);
                if let Some((near, far)) = ends.filter(|_| arc.capacity > 0 && passes(self.network, group, arc.from)) {
                    self.constraints.push(constraint!(far - near <= length));
                }
            }
            self.constraints.push(constraint!(potentials[source as usize].unwrap() <= 0));
            all.push(group.members.iter().map(|&member| potentials[member as usize]).collect());
        }
        all
    }

    /// At most what any tree with this root costs.
    fn tree(&mut self, distances: &[Vec<Option<Variable>>], root: usize, inwards: bool) -> Variable {
        let cost = self.some();
        for tree in rooted_trees(distances.len(), root) {
            let hop = |&(parent, child): &(usize, usize)| {
                if inwards { distances[child][parent] } else { distances[parent][child] }
            };
            if let Some(hops) = tree.iter().map(hop).collect::<Option<Vec<Variable>>>() {
                self.constraints.push(constraint!(cost <= hops.iter().sum::<Expression>()));
            }
        }
        cost
    }

    /// At most what the cheapest way costs to send one byte of a group's size.
    fn cost(&mut self, group: &Group) -> Expression {
        let distances = self.distances(group);
        let Work { sends, roots, pairs, parts } = Work::of(group);
        let sum: Expression = match sends {
            Sends::Ways => pairs.iter().map(|&(from, to)| distances[from][to].unwrap()).sum(),
            Sends::Trees { inwards } => roots.iter().map(|&root| self.tree(&distances, root, inwards)).sum(),
            Sends::Pair => {
                let cost = self.some();
                for root in roots {
                    let [there, back] = [true, false].map(|inwards| self.tree(&distances, root, inwards));
                    self.constraints.push(constraint!(cost <= there + back));
                }
                cost.into()
            }
        };
        sum * (1.0 / parts as f64)
    }

    /// The greatest common rate of groups that are not frozen; `frozen`: by group, its rate.
    pub(crate) fn solved(mut self, groups: &[Group], frozen: &[Option<f64>]) -> f64 {
        let costs: Vec<Expression> = groups.iter().map(|group| self.cost(group)).collect();
        // Close to 1 for all sizes.
        let sizes = groups.iter().zip(frozen).filter(|(_, frozen)| frozen.is_none()).map(|(group, _)| group.size);
        let unit = sizes.max().unwrap() as f64;
        let most = self.network.graph.arcs.iter().map(|arc| arc.capacity).max().unwrap() as f64;
        let (mut paid, mut kept) = (Expression::default(), Expression::default());
        for ((cost, group), frozen) in costs.into_iter().zip(groups).zip(frozen) {
            match frozen {
                Some(rate) => kept += cost * (rate / most),
                None => paid += cost * (group.size as f64 / unit),
            }
        }
        let room: Expression = self
            .network
            .graph
            .arcs
            .iter()
            .zip(&self.lengths)
            .map(|(arc, &length)| arc.capacity as f64 / most * length)
            .sum();
        let left = room - kept;
        let mut model = self.variables.minimise(left.clone()).using(clarabel);
        for constraint in self.constraints {
            model = model.with(constraint);
        }
        let solution = model.with(constraint!(paid >= 1)).solve().unwrap();
        solution.eval(left) * most / unit
    }
}

/// A case without a way is refused by name; any other has the optimum of the program, proven.
fn check(number: u64, case: &Case) -> bool {
    let problem = case.network.problem(case.groups.clone());
    let found = group_optimum(&problem, GroupOptions::STANDARD, Patience::ENDLESS);
    if let Some((lacking, pairs)) = lacking(&case.network, &case.groups) {
        let Err(GroupsError::NoWay { group, from, to }) = found else { panic!("case {number}: {found:?}, {case:?}") };
        assert_eq!(group, lacking, "case {number}: {case:?}");
        assert!(pairs.contains(&(from, to)), "case {number}: from {from} to {to}, {case:?}");
        return false;
    }
    let optimum = found.unwrap();
    let expected = Program::new(&case.network).solved(&case.groups, &vec![None; case.groups.len()]);
    let rate = optimum.rate.to_f64().unwrap();
    assert!((rate / expected - 1.0).abs() < 1e-6, "case {number}: {rate} instead of {expected}, {case:?}");
    assert_eq!(optimum.rate, optimum.bound, "case {number} after {} rounds: {case:?}", optimum.rounds);
    true
}

#[test]
fn rates_are_those_of_the_whole_program() {
    let cases = cases(CASES);
    let solved = (0..u64::from(cases)).filter(|&number| check(number, &Case::numbered(number))).count();
    assert!(solved * 2 > cases as usize, "only {solved} of {cases} have all ways");
}

/// A path of three: the program allows 1 in all, and half of it to each of two groups.
#[test]
fn the_program_knows_the_path() {
    let mut network = Network::nodes(3);
    network.link(0, 1, 1);
    network.link(1, 2, 1);
    let one = group(GroupKind::AllReduce, vec![0, 1, 2], 1);
    for (groups, expected) in [(vec![one.clone()], 1.0), (vec![one.clone(), one], 0.5)] {
        let found = Program::new(&network).solved(&groups, &vec![None; groups.len()]);
        assert!((found - expected).abs() < 1e-6, "{found}");
    }
}
