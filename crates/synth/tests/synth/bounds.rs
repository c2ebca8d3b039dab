//! Bounds against enumeration on small random networks, what they do not depend on, and what is refused.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use canopy_schedule::CollectiveKind::{
    AllToAll, Allgather, Allreduce, Broadcast, Gather, Reduce, ReduceScatter, Scatter,
};
use canopy_schedule::{
    Bound, Certificate, Collective, CollectiveKind, CutDirection, Shares, SharesError, certified_bound,
};
use canopy_synth::{BoundError, Never, Stopped, bound};
use canopy_topology::{
    Attributes, Capacity, Latency, NodeIndex, NodeKind, Rank, Rate, Topology, TopologyDraft, TopologyLimits,
};
use proptest::prelude::*;

/// Directed links between nodes of a network: the first `rank_count` are ranks, the rest switches.
#[derive(Clone, Debug)]
struct Plan {
    rank_count: u32,
    node_count: u32,
    links: Vec<(u32, u32, u64)>,
}

impl Plan {
    fn topology(&self, switch: NodeKind) -> Topology {
        let mut draft = TopologyDraft::default();
        for node in 0..self.node_count {
            let kind = if node < self.rank_count { NodeKind::Compute } else { switch };
            draft.add_node(format!("n{node:02}"), kind, Attributes::default());
        }
        for (position, &(from, to, capacity)) in (0..).zip(&self.links) {
            let capacity = Capacity::from_bytes_per_sec(capacity).expect("positive");
            // Different latencies keep parallel links apart.
            draft.add_link(format!("n{from:02}"), format!("n{to:02}"), capacity, Latency::from_nanos(position % 5));
        }
        draft.build(&TopologyLimits::STANDARD).expect("a valid draft")
    }

    /// Capacity that leaves a set of nodes.
    fn leaving(&self, set: u32) -> u128 {
        let crosses = |&&(from, to, _): &&(u32, u32, u64)| set >> from & 1 == 1 && set >> to & 1 == 0;
        self.links.iter().filter(crosses).map(|&(_, _, capacity)| u128::from(capacity)).sum()
    }

    fn all(&self) -> u32 {
        (1 << self.node_count) - 1
    }

    fn ranks_in(&self, set: u32) -> u32 {
        (set & ((1 << self.rank_count) - 1)).count_ones()
    }

    /// Whether more leaves some switch than enters it, in the direction of the data.
    fn some_switch_multiplies(&self, kind: CollectiveKind) -> bool {
        (self.rank_count..self.node_count).any(|switch| {
            let (leaving, entering) = (self.leaving(1 << switch), self.leaving(self.all() & !(1 << switch)));
            match kind {
                Allgather | Broadcast => leaving > entering,
                _ => entering > leaving,
            }
        })
    }

    /// The least rate that any cut implies, by the definitions.
    fn least_cut(&self, kind: CollectiveKind, root: u32) -> Rate {
        self.least_cut_of(kind, root, &vec![1; self.rank_count as usize])
    }

    /// The same for shares of these weights: a rank without share has nothing to tell, but wants to know.
    fn least_cut_of(&self, kind: CollectiveKind, root: u32, weights: &[u64]) -> Rate {
        let total: u128 = weights.iter().map(|&weight| u128::from(weight)).sum();
        let weight_in = |set: u32| -> u128 {
            (0..self.rank_count)
                .zip(weights)
                .map(|(rank, &weight)| u128::from(set >> rank & 1) * u128::from(weight))
                .sum()
        };
        let rate = |set: u32| {
            let (out, into) = (self.leaving(set), self.leaving(self.all() & !set));
            let (inside, outside) = (weight_in(set), total - weight_in(set));
            let ranks_in = self.ranks_in(set);
            let open = ranks_in > 0 && ranks_in < self.rank_count && (!kind.has_root() || set >> root & 1 == 1);
            let (numerator, denominator) = match kind {
                Allgather => (total * out, inside),
                ReduceScatter => (total * into, inside),
                Broadcast => (out, 1),
                Reduce => (into, 1),
                Scatter => (total * out, outside),
                Gather => (total * into, outside),
                Allreduce | AllToAll => (out.min(into), 1),
            };
            open.then(|| Rate::new(numerator, denominator)).flatten()
        };
        (0..=self.all()).filter_map(rate).min().expect("some cut separates two ranks")
    }

    /// The least `Σ B⁺(S_i)/(2(p−1))` over all families of disjoint sets with a rank each that hold all ranks.
    fn least_partition(&self) -> Rate {
        self.least_partition_of(|_| false)
    }

    /// The same over those that hold certain switches.
    fn least_partition_of(&self, is_held: fn(u32) -> bool) -> Rate {
        let mut best = None;
        self.place(0, &mut Vec::new(), is_held, &mut best);
        best.expect("there are two ranks")
    }

    /// Puts node after node into one of the sets, a new one (ranks only), or none (switches that need not be held only).
    fn place(&self, node: u32, sets: &mut Vec<u32>, is_held: fn(u32) -> bool, best: &mut Option<Rate>) {
        if node == self.node_count {
            let leaving: u128 = sets.iter().map(|&set| self.leaving(set)).sum();
            if let Some(rate) = (sets.len() > 1).then(|| Rate::new(leaving, 2 * (sets.len() as u128 - 1))).flatten() {
                *best = Some(best.take().map_or(rate.clone(), |least| least.min(rate)));
            }
            return;
        }
        for position in 0..sets.len() {
            sets[position] |= 1 << node;
            self.place(node + 1, sets, is_held, best);
            sets[position] &= !(1 << node);
        }
        if node < self.rank_count {
            sets.push(1 << node);
            self.place(node + 1, sets, is_held, best);
            sets.pop();
        } else if !is_held(node) {
            self.place(node + 1, sets, is_held, best);
        }
    }
}

/// Unions of random directed cycles: as much enters as leaves, at every node.
fn eulerian(ranks_max: u32, switches_max: u32) -> impl Strategy<Value = Plan> {
    (2..=ranks_max, 0..=switches_max).prop_flat_map(|(rank_count, switch_count)| {
        let node_count = rank_count + switch_count;
        let cycle = (prop::collection::vec(any::<u32>(), node_count as usize), 2..=node_count as usize, 1..9_u64);
        prop::collection::vec(cycle, 1..6).prop_map(move |cycles| {
            let mut links = Vec::new();
            for (position, (keys, length, capacity)) in cycles.into_iter().enumerate() {
                let mut nodes: Vec<u32> = (0..node_count).collect();
                nodes.sort_by_key(|&node| keys[node as usize]);
                // The first cycle connects everything.
                nodes.truncate(if position == 0 { nodes.len() } else { length });
                links.extend((0..nodes.len()).map(|at| (nodes[at], nodes[(at + 1) % nodes.len()], capacity)));
            }
            Plan { rank_count, node_count, links }
        })
    })
}

/// Any directed links on top of a cycle through all nodes.
fn directed(ranks_max: u32, switches_max: u32) -> impl Strategy<Value = Plan> {
    eulerian(ranks_max, switches_max).prop_flat_map(|plan| {
        let node_count = plan.node_count;
        let link = (0..node_count, 0..node_count, 1..9_u64);
        prop::collection::vec(link, 0..12).prop_map(move |extra| {
            let mut plan = plan.clone();
            plan.links.extend(extra.into_iter().filter(|(from, to, _)| from != to));
            plan
        })
    })
}

const CUT_KINDS: [CollectiveKind; 6] = [Allgather, ReduceScatter, Broadcast, Reduce, Scatter, Gather];

/// The bound, certified, with its lower value not above the upper one.
fn certified(topology: &Topology, kind: CollectiveKind, root: u32) -> Result<Bound, TestCaseError> {
    certified_of(topology, kind, root, &Shares::Equal)
}

/// The same for these shares.
fn certified_of(topology: &Topology, kind: CollectiveKind, root: u32, shares: &Shares) -> Result<Bound, TestCaseError> {
    let root = kind.has_root().then(|| Rank::new(root));
    let collective = Collective::new(kind, root, topology.rank_count()).expect("a rank");
    let bound = bound(topology, collective, shares, &Never).map_err(|error| TestCaseError::fail(error.to_string()))?;
    prop_assert_eq!(certified_bound(topology, collective, shares, &bound.certificate), Ok(bound.upper.clone()));
    prop_assert!(bound.lower <= bound.upper);
    Ok(bound)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Balanced networks: every cut is tried, and every bound of a cut is reachable.
    #[test]
    fn eulerian_bounds_are_least_cuts(plan in eulerian(6, 4), root in 0..6_u32) {
        let root = root % plan.rank_count;
        let topology = plan.topology(NodeKind::PLAIN_SWITCH);
        for kind in CUT_KINDS {
            let bound = certified(&topology, kind, root)?;
            prop_assert_eq!(&bound.upper, &plan.least_cut(kind, root), "{}", kind);
            prop_assert!(bound.is_tight());
        }
    }

    /// Unbalanced ones: what a switch can not pass on counts as well, and then every bound is reachable.
    #[test]
    fn directed_bounds_are_reachable(plan in directed(5, 3), root in 0..5_u32) {
        let root = root % plan.rank_count;
        let topology = plan.topology(NodeKind::PLAIN_SWITCH);
        for kind in CUT_KINDS {
            let bound = certified(&topology, kind, root)?;
            prop_assert!(bound.is_tight(), "{} {:?}", kind, bound);
            let cut = plan.least_cut(kind, root);
            let is_cut = matches!(kind, Scatter | Gather) || !plan.some_switch_multiplies(kind);
            prop_assert!(bound.upper == cut || !is_cut && bound.upper < cut, "{} {:?}", kind, bound);
        }
    }

    /// Shares of any weights, 0 included: the cuts are weighed, and just as reachable.
    #[test]
    fn weighted_bounds_are_least_cuts(
        plan in directed(5, 3),
        root in 0..5_u32,
        weights in prop::collection::vec(prop_oneof![Just(0), 1..5_u64, 1..1_000_000_000_000_u64], 5),
        source in 0..5_usize,
    ) {
        let (root, rank_count) = (root % plan.rank_count, plan.rank_count as usize);
        let mut weights = weights[..rank_count].to_vec();
        // Something has to move.
        let source = source % rank_count;
        let source = if source == root as usize { (source + 1) % rank_count } else { source };
        weights[source] += 1;
        let topology = plan.topology(NodeKind::PLAIN_SWITCH);
        let shares = Shares::Weighted(weights.clone());
        for kind in [Allgather, ReduceScatter, Scatter, Gather] {
            let bound = certified_of(&topology, kind, root, &shares)?;
            // Of weights that are 10¹² apart, what the small ones need is mixed in.
            let gap = bound.upper.gigabytes_per_sec() / bound.lower.gigabytes_per_sec() - 1.0;
            prop_assert!(bound.is_tight() || gap < 1e-3, "{} {:?}", kind, bound);
            let cut = plan.least_cut_of(kind, root, &weights);
            let is_flow = matches!(kind, Scatter | Gather);
            let is_balanced = topology.first_unbalanced().is_none() || plan.node_count == plan.rank_count;
            prop_assert!(bound.upper == cut || !is_flow && !is_balanced && bound.upper < cut, "{} {:?}", kind, bound);
        }
        // The sum of all vectors is the same whoever adds up which part of it.
        let allreduce = certified_of(&topology, Allreduce, 0, &shares)?;
        prop_assert_eq!(allreduce, certified(&topology, Allreduce, 0)?);
    }

    /// Only proportions count.
    #[test]
    fn bounds_see_proportions(plan in eulerian(5, 3), weights in prop::collection::vec(1..9_u64, 5), factor: u32) {
        let topology = plan.topology(NodeKind::PLAIN_SWITCH);
        let weights = &weights[..plan.rank_count as usize];
        let larger = weights.iter().map(|weight| weight * u64::from(factor.max(1))).collect();
        let (some, same) = (Shares::Weighted(weights.to_vec()), Shares::Weighted(larger));
        for kind in [Allgather, ReduceScatter, Scatter, Gather] {
            let (first, second) = (certified_of(&topology, kind, 0, &some)?, certified_of(&topology, kind, 0, &same)?);
            prop_assert_eq!(first.upper, second.upper);
        }
    }

    /// No partition is below the allreduce bound of a balanced network; a network alike in both directions reaches it.
    #[test]
    fn allreduce_bounds_are_least_partitions(plan in eulerian(4, 3)) {
        let bound = certified(&plan.topology(NodeKind::PLAIN_SWITCH), Allreduce, 0)?;
        prop_assert_eq!(bound.upper, plan.least_partition());
        let mut two_way = plan.clone();
        two_way.links.extend(plan.links.iter().map(|&(from, to, capacity)| (to, from, capacity)));
        let bound = certified(&two_way.topology(NodeKind::PLAIN_SWITCH), Allreduce, 0)?;
        prop_assert_eq!(&bound.upper, &two_way.least_partition());
        prop_assert!(bound.is_tight());
    }

    /// Elsewhere it is no worse than any single cut or partition.
    #[test]
    fn directed_allreduce_bounds_are_sound(plan in directed(4, 3)) {
        let bound = certified(&plan.topology(NodeKind::PLAIN_SWITCH), Allreduce, 0)?;
        prop_assert!(bound.upper <= plan.least_cut(Allreduce, 0).min(plan.least_partition()), "{:?}", bound);
    }

    /// Compute devices that only forward could add up what passes them, so partitions must hold them; cuts do not mind.
    #[test]
    fn forwarders_are_part_of_partitions(plan in eulerian(4, 3)) {
        let (plain, forwarding) = (plan.topology(NodeKind::PLAIN_SWITCH), plan.topology(NodeKind::Forwarder));
        for kind in CUT_KINDS {
            prop_assert_eq!(certified(&plain, kind, 0)?, certified(&forwarding, kind, 0)?, "{}", kind);
        }
        let bound = certified(&forwarding, Allreduce, 0)?;
        prop_assert!(bound.upper >= plan.least_partition_of(|_| true));
        prop_assert!(bound.upper <= plan.least_cut(Allreduce, 0), "a cut and what is outside are a partition");
        prop_assert!(bound.lower >= certified(&plain, Allreduce, 0)?.lower);
        let found = certified(&plain, Allreduce, 0)?.certificate;
        let collective = Collective::new(Allreduce, None, plan.rank_count).expect("no root");
        let Certificate::Partition { sets } = &found else { return Ok(()) };
        let missing = (plan.rank_count..plan.node_count).map(NodeIndex::new);
        let missing = missing.filter(|node| !sets.iter().any(|set| set.contains(node))).count();
        let proven = certified_bound(&forwarding, collective, &Shares::Equal, &found);
        prop_assert_eq!(proven.is_err(), missing > 0);
    }

    /// Switches that multicast or aggregate matter to allreduce alone, which they never slow down.
    #[test]
    fn capable_switches_are_part_of_partitions(plan in eulerian(5, 3), multicast: bool, aggregate: bool) {
        prop_assume!(plan.node_count > plan.rank_count && (multicast || aggregate));
        let (plain, capable) = (plan.topology(NodeKind::PLAIN_SWITCH), plan.topology(NodeKind::Switch { multicast, aggregate }));
        let (without, bound) = (certified(&plain, Allreduce, 0)?, certified(&capable, Allreduce, 0)?);
        prop_assert!(bound.upper >= without.upper && bound.lower >= without.lower);
        prop_assert!(bound.upper >= plan.least_partition_of(|_| true));
        prop_assert!(bound.upper <= plan.least_cut(Allreduce, 0));
        prop_assert_eq!(certified(&plain, Allgather, 0)?, certified(&capable, Allgather, 0)?);
    }

    /// Bounds see neither names nor the order of ranks and links, and grow with the capacities.
    #[test]
    fn bounds_ignore_labels_and_scale(plan in directed(5, 3), shift in 0..5_u32, factor in 1..1000_u64) {
        let rename = |node: u32| if node < plan.rank_count { (node + shift) % plan.rank_count } else { node };
        let link = |&(from, to, capacity): &(u32, u32, u64)| (rename(from), rename(to), capacity * factor);
        let links = plan.links.iter().rev().map(link).collect();
        let renamed = Plan { links, ..plan.clone() }.topology(NodeKind::PLAIN_SWITCH);
        let topology = plan.topology(NodeKind::PLAIN_SWITCH);
        for kind in CUT_KINDS.into_iter().chain([Allreduce]) {
            let (first, second) = (certified(&topology, kind, 0)?, certified(&renamed, kind, rename(0))?);
            for (first, second) in [(first.upper, second.upper), (first.lower, second.lower)] {
                let (numerator, denominator) = first.parts();
                prop_assert_eq!(Rate::new(numerator * factor, denominator), Some(second), "{}", kind);
            }
        }
    }

    /// Reduce-scatter is allgather with every link turned around, with the same set as proof.
    #[test]
    fn transposing_exchanges_collectives(plan in directed(5, 3)) {
        let topology = plan.topology(NodeKind::PLAIN_SWITCH);
        let turned = topology.transposed();
        for (kind, opposite) in [
            (Allgather, ReduceScatter),
            (Broadcast, Reduce),
            (Scatter, Gather),
        ] {
            let (first, second) = (certified(&topology, kind, 0)?, certified(&turned, opposite, 0)?);
            prop_assert_eq!((&first.upper, &first.lower), (&second.upper, &second.lower));
            match (first.certificate, second.certificate) {
                (Certificate::Cut { nodes, .. }, Certificate::Cut { nodes: other, .. }) => prop_assert_eq!(nodes, other),
                (Certificate::Sum { terms, .. }, Certificate::Sum { terms: others, .. }) => {
                    prop_assert_eq!(terms.len(), others.len());
                }
                (first, second) => return Err(TestCaseError::fail(format!("{first:?} {second:?}"))),
            }
        }
    }
}

fn collective(kind: CollectiveKind) -> Collective {
    Collective::new(kind, None, 2).unwrap()
}

/// A switch that takes in more than it hands out costs nothing, whatever its reverse links have.
#[test]
fn what_enters_a_switch_and_can_not_leave_it_is_no_loss() {
    for (links, kind, expected) in [
        ([(0, 2, 5), (2, 0, 3), (1, 2, 4), (2, 1, 6)], Allgather, "6"),
        ([(0, 2, 5), (2, 0, 5), (1, 2, 2), (2, 1, 6)], Broadcast, "5"),
    ] {
        let topology = Plan { rank_count: 2, node_count: 3, links: links.to_vec() }.topology(NodeKind::PLAIN_SWITCH);
        let bound = bound(&topology, collective(kind), &Shares::Equal, &Never).unwrap();
        assert_eq!((bound.upper.to_string(), bound.lower.to_string()), (expected.to_owned(), expected.to_owned()));
    }
}

/// One link into a switch and two out of it: only a copy at the switch could fill both.
#[test]
fn switches_that_would_have_to_copy_halve_the_rate() {
    let fork = Plan { rank_count: 3, node_count: 4, links: vec![(0, 3, 4), (3, 1, 4), (3, 2, 4)] };
    // The reverse, a switch that would have to add up.
    let links = fork.links.iter().map(|&(from, to, capacity)| (to, from, capacity)).collect();
    let joint = Plan { links, ..fork.clone() };
    for (switch, upper) in [(NodeKind::PLAIN_SWITCH, "2"), (NodeKind::Switch { multicast: true, aggregate: true }, "4")]
    {
        for (network, kind) in [(&fork, Broadcast), (&joint, Reduce)] {
            let collective = Collective::new(kind, None, 3).unwrap();
            let found = bound(&network.topology(switch), collective, &Shares::Equal, &Never).unwrap();
            assert_eq!((found.upper.to_string(), found.lower.to_string()), (upper.to_owned(), "2".to_owned()));
        }
    }
}

/// The path of three ranks, which reduces to the middle and broadcasts from there: 1, while its halves reach 3/4.
#[test]
fn allreduce_on_a_path_is_not_its_two_halves() {
    let path = Plan { rank_count: 3, node_count: 3, links: vec![(0, 1, 4), (1, 0, 4), (1, 2, 4), (2, 1, 4)] };
    let bound = bound(&path.topology(NodeKind::PLAIN_SWITCH), collective(Allreduce), &Shares::Equal, &Never).unwrap();
    assert_eq!((bound.upper.to_string(), bound.is_tight()), ("4".to_owned(), true));
    assert!(matches!(bound.certificate, Certificate::Partition { .. }));
}

#[test]
fn disconnected_ranks_are_named() {
    let one_way = Plan { rank_count: 2, node_count: 2, links: vec![(0, 1, 4)] }.topology(NodeKind::PLAIN_SWITCH);
    let lost = BoundError::Disconnected { from: "n01".to_owned(), from_rank: 1, to: "n00".to_owned(), to_rank: 0 };
    for kind in [Allgather, ReduceScatter, Allreduce] {
        assert_eq!(bound(&one_way, collective(kind), &Shares::Equal, &Never), Err(lost.clone()), "{kind}");
    }
    // From rank 0 everything can be sent, but nothing collected there.
    for (kind, direction) in [(Broadcast, CutDirection::Out), (Scatter, CutDirection::Out)] {
        let found = bound(&one_way, collective(kind), &Shares::Equal, &Never).unwrap().certificate;
        assert_eq!(found, Certificate::Cut { direction, nodes: vec![NodeIndex::new(0)] });
    }
    for kind in [Reduce, Gather] {
        assert_eq!(bound(&one_way, collective(kind), &Shares::Equal, &Never), Err(lost.clone()), "{kind}");
    }
}

/// A rank without share may be one that nothing can leave; only the root having one leaves nothing to do.
#[test]
fn shares_decide_what_has_to_move() {
    let one_way = Plan { rank_count: 3, node_count: 3, links: vec![(0, 1, 4), (1, 0, 4), (1, 2, 6)] };
    let one_way = one_way.topology(NodeKind::PLAIN_SWITCH);
    let on_three = |kind| Collective::new(kind, None, 3).unwrap();
    let found = |kind, weights: [u64; 3]| bound(&one_way, on_three(kind), &Shares::Weighted(weights.to_vec()), &Never);
    let upper = |kind, weights| found(kind, weights).map(|bound| bound.upper.to_string());
    // Rank 2 gets 1 + 2 shares over its link; rank 0 gets 2 of 3.
    assert_eq!(upper(Allgather, [1, 2, 0]), Ok("6".to_owned()));
    let lost = |from: u32, to: u32| BoundError::Disconnected {
        from: format!("n{from:02}"),
        from_rank: from,
        to: format!("n{to:02}"),
        to_rank: to,
    };
    assert_eq!(upper(Allgather, [1, 2, 1]), Err(lost(2, 0)));
    assert_eq!(upper(ReduceScatter, [1, 2, 0]), Err(lost(2, 0)));
    assert_eq!(upper(Gather, [0, 1, 0]), Ok("4".to_owned()));
    assert_eq!(upper(Gather, [0, 1, 1]), Err(lost(2, 0)));
    assert_eq!(upper(Scatter, [7, 1, 1]), Ok("18".to_owned()));
    for kind in [Gather, Scatter] {
        assert_eq!(upper(kind, [3, 0, 0]), Err(BoundError::NothingToMove { root: 0 }), "{kind}");
    }
}

#[test]
fn shares_that_fit_nothing_are_refused() {
    let pair =
        Plan { rank_count: 2, node_count: 2, links: vec![(0, 1, 4), (1, 0, 4)] }.topology(NodeKind::PLAIN_SWITCH);
    let refused = |kind, weights: &[u64]| {
        bound(&pair, collective(kind), &Shares::Weighted(weights.to_vec()), &Never).unwrap_err()
    };
    assert_eq!(refused(Allgather, &[1; 3]), SharesError::Count { found: 3, rank_count: 2 }.into());
    assert_eq!(refused(Gather, &[0, 0]), SharesError::Nothing.into());
    for kind in [Broadcast, Reduce, AllToAll] {
        assert_eq!(refused(kind, &[1, 2]), SharesError::NotApplicable { collective: kind }.into());
    }
}

#[test]
fn searches_end_when_asked() {
    let pair =
        Plan { rank_count: 2, node_count: 2, links: vec![(0, 1, 4), (1, 0, 4)] }.topology(NodeKind::PLAIN_SWITCH);
    for kind in CollectiveKind::ALL {
        assert_eq!(bound(&pair, collective(kind), &Shares::Equal, &|| true), Err(Stopped.into()), "{kind}");
    }
}

/// Capacities of 2⁶⁴ − 1 everywhere, parallel links of different latency among them.
#[test]
fn largest_capacities() {
    let most = u64::MAX;
    let pairs = [(0, 1), (1, 2), (2, 0), (0, 1)];
    let links = pairs.iter().flat_map(|&(a, b)| [(a, b, most), (b, a, most)]).collect();
    let topology = Plan { rank_count: 3, node_count: 3, links }.topology(NodeKind::PLAIN_SWITCH);
    let expected = Rate::new(3 * u128::from(most), 1_u128).unwrap();
    for kind in [Allgather, ReduceScatter] {
        assert_eq!(bound(&topology, collective(kind), &Shares::Equal, &Never).unwrap().upper, expected, "{kind}");
    }
    let allreduce = bound(&topology, collective(Allreduce), &Shares::Equal, &Never).unwrap();
    assert_eq!(allreduce.upper, Rate::new(2 * u128::from(most), 1_u128).unwrap());
    assert!(allreduce.is_tight());
}
