//! Bounds and plans of allreduce where switches replicate and add up, against all trees that there are.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use canopy_schedule::{Collective, CollectiveKind, Shares, certified_bound, check, compile};
use canopy_synth::{Algorithm, Never, Silent, SumOptions, SynthesisRequest, bound, synthesize};
use canopy_topology::{
    Attributes, Capacity, Latency, NodeKind, Rate, Topology, TopologyDraft, TopologyLimits, generate,
};
use good_lp::{Expression, ProblemVariables, Solution as _, SolverModel as _, constraint, variable};
use proptest::prelude::*;

const ABLE: NodeKind = NodeKind::Switch { multicast: true, aggregate: true };

/// Bounds whose certificate has been added up again.
fn allreduce(topology: &Topology) -> (Rate, Rate) {
    let collective = Collective::new(CollectiveKind::Allreduce, None, topology.rank_count()).unwrap();
    let found = bound(topology, collective, &Shares::Equal, &Never).unwrap();
    let proven = certified_bound(topology, collective, &Shares::Equal, &found.certificate).unwrap();
    assert_eq!(proven, found.upper);
    assert!(found.lower <= found.upper);
    (found.lower, found.upper)
}

/// The rate of a plan with what switches do, once the plan is checked.
fn planned(topology: &Topology) -> Rate {
    let collective = Collective::new(CollectiveKind::Allreduce, None, topology.rank_count()).unwrap();
    let sums = SumOptions { in_network: true, ..SumOptions::AUTO };
    let request = SynthesisRequest { sums, ..SynthesisRequest::new(collective, Algorithm::Auto) };
    let schedule = synthesize(topology, &request, &Never, &Silent).unwrap();
    let verdict = check(topology, &compile(topology, &schedule).unwrap()).unwrap();
    verdict.in_network.map_or(verdict.algbw, |with| with.algbw)
}

#[test]
fn plans_go_through_switches_that_reduce() {
    let generated = |expression: &str| generate(expression, &TopologyLimits::STANDARD).unwrap();
    assert_eq!(planned(&generated("dgx-h100:gpus=4,nvls=true")), gigabytes(450, 1));
    for expression in ["dgx-h100:boxes=2,nvls=true", "dgx-h100:boxes=3,nvls=true,sharp=true"] {
        assert_eq!(planned(&generated(expression)), gigabytes(400, 1), "{expression}");
    }
    // Trees that leave out the switch of one box each make up for NVLinks that are full.
    for expression in [
        "gb200-nvl72:racks=3,gpus=9,nvls=true",
        "dgx-h100:boxes=2,nvls=true,nic=200GB/s",
        "gb200-nvl72:racks=4,nvls=true",
    ] {
        assert_eq!(planned(&generated(expression)), of(expression).1, "{expression}");
    }
    // Two phases are as fast where NICs hold up everything.
    assert_eq!(planned(&generated("dgx-h100:boxes=8,nvls=true")), of("dgx-h100:boxes=8,nvls=true").1);
}

fn of(expression: &str) -> (Rate, Rate) {
    allreduce(&generate(expression, &TopologyLimits::STANDARD).unwrap())
}

fn gigabytes(numerator: u64, denominator: u64) -> Rate {
    Rate::new(numerator * 1_000_000_000, denominator).unwrap()
}

#[test]
fn a_box_whose_switch_reduces_takes_each_byte_once() {
    for gpus in [2, 3, 4, 8, 72] {
        let expression = format!("dgx-h100:gpus={gpus}");
        // Without: n/(2(n−1)) of a link's rate. With: a link's rate.
        let (lower, upper) = of(&expression);
        assert_eq!((lower, upper), (gigabytes(450 * gpus, 2 * (gpus - 1)), gigabytes(450 * gpus, 2 * (gpus - 1))));
        let (lower, upper) = of(&format!("{expression},nvls=true"));
        assert_eq!((lower, upper), (gigabytes(450, 1), gigabytes(450, 1)), "{gpus}");
    }
    // The NICs of a box: 8 × 50 GB/s.
    let (lower, upper) = of("dgx-h100:boxes=2,nvls=true");
    assert_eq!((lower, upper), (gigabytes(400, 1), gigabytes(400, 1)));
    // 288 parts, of which four hold the switch of their rack: 4 × (71 · 900 + 50 + 71 · 950) / (2 · 287). Trees of all GPUs
    // and all four switches would reach 288 × (900 + 900 + 50) / (2 · 291), which is less: some leave out a switch.
    let (lower, upper) = of("gb200-nvl72:racks=4,nvls=true");
    assert_eq!((lower, upper), (gigabytes(525_600, 574), gigabytes(525_600, 574)));
}

/// Ranks, then switches that replicate and add up; links both ways. `box_size` ranks make a box, if it is stated.
#[derive(Clone, Debug)]
struct Small {
    ranks: usize,
    switches: usize,
    box_size: Option<usize>,
    links: Vec<(usize, usize, u64)>,
}

impl Small {
    fn topology(&self) -> Topology {
        let mut draft = TopologyDraft::default();
        let id = |node: usize| format!("n{node}");
        for node in 0..self.ranks + self.switches {
            let kind = if node < self.ranks { NodeKind::Compute } else { ABLE };
            let box_name = self.box_size.filter(|_| node < self.ranks).map(|size| format!("b{}", node / size));
            draft.add_node(id(node), kind, Attributes { box_name, ..Attributes::default() });
        }
        for &(from, to, capacity) in &self.links {
            draft.add_both(&id(from), &id(to), Capacity::from_bytes_per_sec(capacity).unwrap(), Latency::default());
        }
        draft.build(&TopologyLimits::STANDARD).unwrap()
    }

    /// Trees that hold a root and all ranks, as the parents of all nodes but those left out: reduced up or broadcast down.
    fn trees(&self, root: usize) -> Vec<Vec<(usize, usize)>> {
        let nodes = self.ranks + self.switches;
        let parents = |node: usize| -> Vec<Option<usize>> {
            let left_out = (node >= self.ranks).then_some(None);
            let ends = self.links.iter().flat_map(|&(from, to, _)| [(from, to), (to, from)]);
            let ends = ends.filter_map(|(from, to)| (to == node).then_some(Some(from)));
            let unique: std::collections::BTreeSet<_> = ends.chain(left_out).collect();
            unique.into_iter().collect()
        };
        let mut choices: Vec<Vec<Option<usize>>> = vec![vec![]];
        for node in 0..nodes {
            let own = if node == root { vec![None] } else { parents(node) };
            choices = choices
                .iter()
                .flat_map(|before| own.iter().map(|&parent| before.iter().copied().chain([parent]).collect()))
                .collect();
        }
        // From every node that is not left out, parents lead to the root.
        let leads = |parent_of: &[Option<usize>], mut node: usize| {
            for _ in 0..nodes {
                match parent_of[node] {
                    Some(parent) => node = parent,
                    None => break,
                }
            }
            node == root
        };
        let whole = |parent_of: &Vec<Option<usize>>| {
            (0..nodes).all(|node| (node >= self.ranks && parent_of[node].is_none()) || leads(parent_of, node))
        };
        let links = |parent_of: Vec<Option<usize>>| {
            parent_of.iter().enumerate().filter_map(|(node, parent)| parent.map(|parent| (parent, node))).collect()
        };
        choices.into_iter().filter(whole).map(links).collect()
    }

    /// The most that can be reduced up one tree and broadcast down another with the same root, over all such pairs: a linear
    /// program with a variable for each tree and direction.
    fn optimum(&self) -> f64 {
        let mut variables = ProblemVariables::new();
        let mut carried = std::collections::BTreeMap::<(usize, usize), Expression>::new();
        let (mut total, mut equalities) = (Expression::from(0.0), Vec::new());
        for root in 0..self.ranks + self.switches {
            let trees = self.trees(root);
            let [mut up, mut down] = [Expression::from(0.0), Expression::from(0.0)];
            for tree in &trees {
                let [reduced, broadcast] = [0, 1].map(|_| variables.add(variable().min(0.0)));
                up += reduced;
                down += broadcast;
                for &(parent, child) in tree {
                    *carried.entry((child, parent)).or_default() += reduced;
                    *carried.entry((parent, child)).or_default() += broadcast;
                }
            }
            total += up.clone();
            equalities.push(up - down);
        }
        let mut capacities = std::collections::BTreeMap::<(usize, usize), f64>::new();
        for &(from, to, capacity) in &self.links {
            for ends in [(from, to), (to, from)] {
                *capacities.entry(ends).or_default() += capacity as f64;
            }
        }
        let mut model = variables.maximise(total.clone()).using(good_lp::microlp);
        for equality in equalities {
            model = model.with(constraint!(equality == 0.0));
        }
        for (ends, load) in carried {
            model = model.with(constraint!(load <= capacities[&ends]));
        }
        model.solve().unwrap().eval(total)
    }
}

fn small() -> impl Strategy<Value = Small> {
    let sizes = (2..=4_usize, 1..=2_usize).prop_filter("few trees", |(ranks, switches)| ranks + switches <= 5);
    sizes.prop_flat_map(|(ranks, switches)| {
        let nodes = ranks + switches;
        // A path through all, so that it is connected, and some links more.
        let path = prop::collection::vec(1..6_u64, nodes - 1);
        let more = prop::collection::vec((0..nodes, 0..nodes, 1..6_u64), 0..5);
        let order = Just((0..nodes).collect::<Vec<_>>()).prop_shuffle();
        (path, more, order).prop_map(move |(path, more, order)| {
            let path = path.into_iter().enumerate().map(|(at, capacity)| (order[at], order[at + 1], capacity));
            let links = path.chain(more.into_iter().filter(|(from, to, _)| from != to)).collect();
            Small { ranks, switches, box_size: None, links }
        })
    })
}

/// Two boxes of two ranks around a switch, with links between ranks of both.
fn boxes() -> impl Strategy<Value = Small> {
    let inner = prop::collection::vec(1..6_u64, 4);
    let outer = prop::collection::vec((0..2_usize, 2..4_usize, 1..9_u64), 1..4);
    (inner, outer).prop_map(|(inner, mut links)| {
        links.extend(inner.into_iter().enumerate().map(|(rank, capacity)| (rank, 4 + rank / 2, capacity)));
        Small { ranks: 4, switches: 2, box_size: Some(2), links }
    })
}

/// Whether a plan reaches what is said to be reachable, and beats no tree-packing.
fn is_right(small: &Small) -> Result<(), TestCaseError> {
    let topology = small.topology();
    let (lower, upper) = allreduce(&topology);
    let (reached, optimum) = (planned(&topology), small.optimum());
    prop_assert!(lower <= reached && reached <= upper, "{} {} {}", lower, reached, upper);
    prop_assert!(reached.gigabytes_per_sec() * 1e9 <= optimum * (1.0 + 1e-6), "{} {}", reached, optimum);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// No tree-packing beats the bound, and what is said to be reached is.
    #[test]
    fn bounds_hold_the_best_of_all_trees(small in small()) {
        let (lower, upper) = allreduce(&small.topology());
        let optimum = small.optimum();
        let slack = 1e-6 * optimum;
        let [lower, upper] = [lower, upper].map(|rate| rate.gigabytes_per_sec() * 1e9);
        prop_assert!(lower <= optimum + slack && optimum <= upper + slack, "{lower} {optimum} {upper}");
    }

    /// A plan is checked, reaches what the bound says is reachable, and beats no tree-packing.
    #[test]
    fn plans_reach_what_trees_through_switches_do(small in small()) {
        is_right(&small)?;
    }

    /// So does one of boxes, whose switches some of its trees may leave out.
    #[test]
    fn plans_of_boxes_reach_what_they_say(small in boxes()) {
        is_right(&small)?;
    }
}
