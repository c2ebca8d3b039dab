//! The condition, and how much of a switch it lets go.

use canopy_optimize::Never;
use canopy_topology::Topology;
use proptest::prelude::*;

use super::two_boxes;
use crate::forest::condition::{Condition, EdgeIndex, Step};
use crate::forest::logical::LogicalGraph;
use crate::forest::network::Network;
use crate::forest::pattern::{Port, Share, Spread, even_shares, grouped_shares};
use crate::forest::switches::remove_switches;
use crate::progress::Silent;

/// Lowers `from → via → to` in favour of `from → to`, as a split does, but knows nothing of its cost.
struct Detour {
    lowered: [EdgeIndex; 2],
    raised: EdgeIndex,
    amount: i64,
}

impl Step<i64> for Detour {
    fn amount(&self) -> i64 {
        self.amount
    }

    fn apply(&self, condition: &mut Condition<'_, i64>, amount: i64) {
        self.lowered.iter().for_each(|&edge| condition.lower(edge, amount));
        condition.raise(self.raised, amount);
    }

    fn undo(&self, condition: &mut Condition<'_, i64>, amount: i64) {
        self.lowered.iter().for_each(|&edge| condition.raise(edge, amount));
        condition.lower(self.raised, amount);
    }

    fn cost(&self, _: &Condition<'_, i64>, _: &[bool]) -> u64 {
        1
    }
}

fn capacities(topology: &Topology) -> Vec<i64> {
    topology.links().iter().map(|link| i64::try_from(link.capacity.bytes_per_sec()).unwrap()).collect()
}

fn condition(topology: &Topology, trees_per_rank: i64) -> Condition<'static, i64> {
    let network = Network::of(topology);
    let graph = LogicalGraph::new(&network, &capacities(topology), &Never).unwrap();
    let mut demands = vec![0; topology.nodes().len()];
    demands[..topology.rank_count() as usize].fill(trees_per_rank);
    Condition::new(graph.edges(), demands, topology.rank_count(), &Never).unwrap()
}

/// How much of a detour may be split off, up to the capacities.
fn gamma(condition: &mut Condition<'_, i64>, from: u32, via: u32, to: u32) -> i64 {
    let lowered = [condition.edge_or_new(from, via), condition.edge_or_new(via, to)];
    let amount = lowered.map(|edge| condition.capacity(edge)).into_iter().min().unwrap();
    let step = Detour { lowered, raised: condition.edge_or_new(from, to), amount };
    let (whole, part) = condition.apply_longest_prefix(&[step]).unwrap();
    if whole == 1 { amount } else { part }
}

/// Two boxes of two, worked by hand: inside a box both units may go; between the boxes, a detour that turns back into
/// the box takes one of the two units the box needs.
#[test]
fn what_a_box_needs_is_not_split_off() {
    let topology = two_boxes();
    assert_eq!(gamma(&mut condition(&topology, 1), 0, 4, 1), 2);
    assert_eq!(gamma(&mut condition(&topology, 1), 0, 6, 1), 0);
    assert_eq!(gamma(&mut condition(&topology, 1), 0, 6, 2), 1);
    assert!(condition(&topology, 1).violation().unwrap().is_none());
    let violation = condition(&topology, 2).violation().unwrap().expect("half of the trees fit");
    assert!(violation.deficit > 0);
}

/// In and out of every rank together make what its links carried, less what went in circles; nothing is left of
/// any switch.
#[test]
fn removal_leaves_ranks_only() {
    let topology = two_boxes();
    let network = Network::of(&topology);
    let mut graph = LogicalGraph::new(&network, &capacities(&topology), &Never).unwrap();
    remove_switches(&network, &mut graph, &[1, 1, 1, 1, 0, 0, 0], Spread::All, &Never, &Silent).unwrap();
    let mut edges: Vec<_> = graph.edges().collect();
    edges.sort_unstable();
    let inside = [(0, 1, 2), (1, 0, 2), (2, 3, 2), (3, 2, 2)];
    let across = [(0, 2, 1), (1, 3, 1), (2, 0, 1), (3, 1, 1)];
    let mut expected = [inside, across].concat();
    expected.sort_unstable();
    assert_eq!(edges, expected);
}

/// Sums of shares by sender and by receiver.
fn sums(count: usize, shares: &[Share<i64>]) -> Vec<(i64, i64)> {
    let mut sums = vec![(0, 0); count];
    for share in shares {
        sums[share.from].0 += share.amount;
        sums[share.to].1 += share.amount;
    }
    sums
}

/// Sixteen ranks in two boxes: each sends all to its counterpart. Eight in one: as equal as whole numbers can be.
#[test]
fn shares_are_few_between_boxes_and_even_within() {
    let ports: Vec<Port<i64>> = (0..16).map(|node| Port { node, group: node / 8, entering: 15, leaving: 15 }).collect();
    let shares = grouped_shares(&ports, Spread::All, &Never).unwrap();
    assert_eq!(shares.len(), 16);
    assert!(shares.iter().all(|share| share.amount == 15 && share.from % 8 == share.to % 8));

    let within = even_shares(&[(180_i64, 180_i64); 8], |from, to| (from != to).then_some(0), &Never).unwrap();
    assert_eq!(within.len(), 56);
    assert!(within.iter().all(|share| share.amount <= 26), "180 over seven others");
}

/// Forty boxes alike send to six others each, and by these in four hops to all.
#[test]
fn few_shares_reach_all_groups() {
    let ports: Vec<Port<i64>> = (0..80).map(|node| Port { node, group: node / 2, entering: 63, leaving: 63 }).collect();
    let shares = grouped_shares(&ports, Spread::Few, &Never).unwrap();
    assert_eq!(sums(80, &shares), vec![(63, 63); 80]);
    assert_eq!(shares.len(), 80 * 6);
    let mut reached = vec![false; 80];
    reached[0] = true;
    for _ in 0..4 {
        let before = reached.clone();
        shares.iter().filter(|share| before[share.from]).for_each(|share| reached[share.to] = true);
    }
    assert!((0..80).all(|port| reached[port] == (port % 2 == 0)));
}

proptest! {
    /// Whatever the ports, all of them is used up, and nothing goes back to its sender unless it must.
    #[test]
    fn shares_use_up_every_port(
        ports in proptest::collection::vec((0_u32..12, 0_i64..50), 1..24),
        turn in 0_usize..24,
    ) {
        let mut leaving: Vec<i64> = ports.iter().map(|port| port.1).collect();
        leaving.rotate_left(turn % ports.len());
        let mut ports: Vec<Port<i64>> = (0..)
            .zip(ports.iter().zip(leaving))
            .map(|(node, (&(group, entering), leaving))| Port { node, group, entering, leaving })
            .collect();
        ports.sort_by_key(|port| port.group);
        let expected: Vec<_> = ports.iter().map(|port| (port.entering, port.leaving)).collect();
        for spread in [Spread::All, Spread::Few] {
            let shares = grouped_shares(&ports, spread, &Never).unwrap();
            prop_assert_eq!(sums(ports.len(), &shares), expected.clone());
            prop_assert!(shares.iter().all(|share| share.amount > 0));
        }
    }

    /// Numbers too large for exact proportions change the proportions, never the sums.
    #[test]
    fn shares_of_huge_ports_add_up(amounts in proptest::collection::vec(0_i128..(1 << 100), 4)) {
        let ports: Vec<Port<i128>> = (0..)
            .zip(&amounts)
            .map(|(node, &amount)| Port { node, group: node / 2, entering: amount, leaving: amount })
            .collect();
        let shares = grouped_shares(&ports, Spread::All, &Never).unwrap();
        for (position, &amount) in amounts.iter().enumerate() {
            let sent: i128 = shares.iter().filter(|share| share.from == position).map(|share| share.amount).sum();
            let received: i128 = shares.iter().filter(|share| share.to == position).map(|share| share.amount).sum();
            prop_assert_eq!((sent, received), (amount, amount));
        }
    }
}
