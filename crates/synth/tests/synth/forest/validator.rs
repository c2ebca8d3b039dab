//! A second judge of forest schedules, independent of canopy's checker: written for the tests, slow and direct.

use std::collections::HashMap;

use canopy_schedule::{Action, Collective, CollectiveKind, Forest, Hop, Schedule, Shape, Shares, Tree, check, compile};
use canopy_synth::{Algorithm, Never, Silent, SynthesisRequest, TreeLimits, synthesize};
use canopy_topology::{Link, LinkIndex, NodeIndex, Rank, Rate, Topology};

/// A schedule that both judges accepted, and what they agree it reaches.
pub(crate) struct Judged {
    pub(crate) forest: Forest,
    pub(crate) algbw: Rate,
    pub(crate) shares: Shares,
}

impl Judged {
    /// k.
    pub(crate) fn chunks_per_share(&self) -> u64 {
        self.forest.chunks_per_share
    }

    /// Trees that differ, over all phases.
    pub(crate) fn batches(&self) -> usize {
        self.forest.phases.iter().map(|phase| phase.trees.len()).sum()
    }

    /// Hops on the longest way of any tree.
    pub(crate) fn depth_max(&self) -> usize {
        let trees = self.forest.phases.iter().flat_map(|phase| phase.trees.iter().map(|tree| (phase.action, tree)));
        trees.map(|(action, tree)| depth(&self.forest, action, tree)).max().unwrap()
    }
}

/// Plans a collective, rooted at rank 0 if it has a root, and has it judged.
#[track_caller]
pub(crate) fn plan(topology: &Topology, kind: CollectiveKind) -> Judged {
    plan_within(topology, kind, TreeLimits::NONE)
}

/// The same within limits.
#[track_caller]
pub(crate) fn plan_within(topology: &Topology, kind: CollectiveKind, limits: TreeLimits) -> Judged {
    plan_with(topology, kind, Shares::Equal, limits)
}

/// The same with shares of these sizes.
#[track_caller]
pub(crate) fn plan_shares(topology: &Topology, kind: CollectiveKind, shares: Shares) -> Judged {
    plan_with(topology, kind, shares, TreeLimits::NONE)
}

/// The same with both.
#[track_caller]
pub(crate) fn plan_with(topology: &Topology, kind: CollectiveKind, shares: Shares, limits: TreeLimits) -> Judged {
    let collective = Collective::new(kind, None, topology.rank_count()).unwrap();
    plan_request(topology, &SynthesisRequest { shares, limits, ..SynthesisRequest::new(collective, Algorithm::Auto) })
}

/// Plans a collective and has it judged.
#[track_caller]
pub(crate) fn plan_of(topology: &Topology, collective: Collective) -> Judged {
    plan_request(topology, &SynthesisRequest::new(collective, Algorithm::Auto))
}

#[track_caller]
pub(crate) fn plan_request(topology: &Topology, request: &SynthesisRequest) -> Judged {
    let schedule = synthesize(topology, request, &Never, &Silent).unwrap();
    assert_eq!(schedule.algorithm, "forest");
    let algbw = judge(topology, &schedule);
    let verdict = check(topology, &compile(topology, &schedule).unwrap()).unwrap();
    assert_eq!(verdict.algbw, algbw, "two judges, one rate");
    let Shape::Forest(forest) = schedule.shape else { panic!("not a forest") };
    Judged { forest, algbw, shares: schedule.shares }
}

/// Checks every statement of the documentation of [`Forest`] and returns the rate the schedule reaches.
#[track_caller]
fn judge(topology: &Topology, schedule: &Schedule) -> Rate {
    let Shape::Forest(forest) = &schedule.shape else { panic!("not a forest") };
    let kind = schedule.collective.kind();
    let actions: Vec<Action> = forest.phases.iter().map(|phase| phase.action).collect();
    let expected: &[Action] = match kind {
        CollectiveKind::Reduce | CollectiveKind::ReduceScatter => &[Action::Reduce],
        CollectiveKind::Allreduce => &[Action::Reduce, Action::Copy],
        _ => &[Action::Copy],
    };
    assert_eq!(actions, expected);
    let mut loads = vec![0_u128; topology.links().len()];
    for phase in &forest.phases {
        assert!(phase.trees.is_sorted_by_key(|tree| tree.root), "trees are listed by root");
        for rank in topology.ranks() {
            let trees = phase.trees.iter().filter(|tree| tree.root == rank);
            let sum: u64 = trees.map(|tree| tree.multiplicity).sum();
            let is_root = schedule.collective.root().is_none_or(|root| root == rank);
            let weight = if is_root { schedule.shares.weight(rank) } else { 0 };
            assert_eq!(sum, weight * forest.chunks_per_share, "multiplicities of rank {rank:?}");
        }
        for tree in &phase.trees {
            check_tree(topology, forest, phase.action, tree);
            add_loads(forest, tree, &mut loads);
        }
    }
    let weight: u128 = topology.ranks().map(|rank| u128::from(schedule.shares.weight(rank))).sum();
    let chunks = if kind.has_root() { 1 } else { weight } * u128::from(forest.chunks_per_share);
    let used = topology.links().iter().zip(&loads).filter(|&(_, &load)| load > 0);
    let rate = |(link, &load): (&Link, &u128)| {
        let size = chunks.checked_mul(link.capacity.bytes_per_sec().into());
        Rate::new(size.expect("tests keep to 128 bits"), load).unwrap()
    };
    used.map(rate).min().unwrap()
}

/// A tree has N−1 hops in an order in which data can flow, and as many chunks on contiguous routes as copies.
#[track_caller]
fn check_tree(topology: &Topology, forest: &Forest, action: Action, tree: &Tree) {
    let hops = forest.hops_of(tree);
    assert_eq!(hops.len() + 1, topology.rank_count() as usize, "a spanning tree");
    assert!(tree.multiplicity > 0);
    let mut reached = vec![false; topology.rank_count() as usize];
    reached[tree.root.index()] = true;
    for (parent, child) in edges(action, hops) {
        assert!(reached[parent.index()], "{parent:?} has something to send");
        assert!(!std::mem::replace(&mut reached[child.index()], true), "{child:?} is reached once");
    }
    for hop in hops {
        let carriers = forest.carriers_of(hop);
        assert_eq!(carriers.iter().map(|carrier| carrier.chunk_count).sum::<u64>(), tree.multiplicity);
        for carrier in carriers {
            assert!(carrier.chunk_count > 0);
            check_route(topology, forest.routes.get(carrier.route).unwrap(), hop.from.node(), hop.to.node());
        }
    }
}

/// Links join up from end to end, over switches that are visited once each.
#[track_caller]
fn check_route(topology: &Topology, route: &[LinkIndex], from: NodeIndex, to: NodeIndex) {
    let mut visited = vec![from];
    for &link in route {
        let link = topology.link(link);
        assert_eq!(Some(&link.from), visited.last());
        assert!(!visited.contains(&link.to), "a route without loops");
        visited.push(link.to);
    }
    assert_eq!(visited.last(), Some(&to));
    let between = &visited[1..visited.len() - 1];
    assert!(between.iter().all(|&node| topology.rank_of(node).is_none()), "only switches on the way");
}

fn add_loads(forest: &Forest, tree: &Tree, loads: &mut [u128]) {
    for carrier in forest.hops_of(tree).iter().flat_map(|hop| forest.carriers_of(hop)) {
        for &link in forest.routes.get(carrier.route).unwrap() {
            loads[link.index()] += u128::from(carrier.chunk_count);
        }
    }
}

/// Parent and child of each hop, parents' own hops first: a reduce tree backwards and turned around is a broadcast tree.
fn edges(action: Action, hops: &[Hop]) -> Vec<(Rank, Rank)> {
    match action {
        Action::Copy => hops.iter().map(|hop| (hop.from, hop.to)).collect(),
        Action::Reduce => hops.iter().rev().map(|hop| (hop.to, hop.from)).collect(),
    }
}

fn depth(forest: &Forest, action: Action, tree: &Tree) -> usize {
    let mut depths = HashMap::from([(tree.root, 0)]);
    for (parent, child) in edges(action, forest.hops_of(tree)) {
        depths.insert(child, depths[&parent] + 1);
    }
    depths.into_values().max().unwrap()
}
