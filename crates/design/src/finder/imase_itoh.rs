//! Exact costs of breadth-first broadcasts on generalized Kautz graphs Π(d, m) of Imase and Itoh, without building them.
//!
//! Π(d, m) has the links x → −d·x − a mod m, 1 ≤ a ≤ d. With ι(x) = m − 1 − x, which is an automorphism, a link is
//! x → ι(d·x + r), 0 ≤ r < d. So t links lead from x to d^t consecutive nodes, and from floor((ι^t(u) + j·m) / d^t),
//! 0 ≤ j < d^t, to u: near equally spaced nodes whose floors nest exactly. While d^t < m each of them is reached by one
//! walk, hence over one link; at the first T with d^T ≥ m all nodes are within reach, and T is the last step there is.
//! Two nodes u differ in nothing when they differ by a multiple of m / gcd(d + 1, m), or by ι.

mod inward;
mod outward;

use canopy_optimize::{Fraction, Stop};
use num_integer::Integer;

use crate::finder::histogram::Histogram;

/// What breadth-first broadcasts on a generalized Kautz graph come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImaseItoh {
    /// Largest load of a link into a node at each step of an allgather, in shards: as many as the diameter.
    pub gather_loads: Vec<Fraction>,
    /// The same for the allgather of the transpose, which reversed is a reduce-scatter.
    pub scatter_loads: Vec<Fraction>,
    /// Sum of the distances of all ordered pairs of nodes.
    pub distance_sum: u64,
    /// Lengths of the shortest cycles through the nodes.
    pub cycles: Histogram,
    /// Distances from the heads of links back to their tails; 0 for a link from a node to itself.
    pub returns: Histogram,
}

/// Costs on Π(`degree`, `nodes`).
///
/// * **In.** 2 ≤ `degree` ≤ 64, `degree` < `nodes` ≤ 2¹⁶. **None** otherwise, or when stopped.
/// * **Source.** Imase and Itoh 1983; loads of the program (3.1) by its cuts: the largest count of sources that depend on
///   a set of links, divided by the size of the set.
/// * **Cost.** O(T·N) steps towards nodes and O(T·N·(d + T)) away from them, for 1 / (2·gcd(d + 1, N)) of the nodes.
pub fn imase_itoh(degree: u32, nodes: u32, stop: &dyn Stop) -> Option<ImaseItoh> {
    let graph = Graph::new(degree, nodes)?;
    let inward = inward::sweep(&graph, stop)?;
    let (scatter_loads, distance_sum) = outward::sweep(&graph, stop)?;
    debug_assert_eq!(inward.loads.len(), scatter_loads.len());
    let inward::Inward { loads: gather_loads, cycles, returns } = inward;
    Some(ImaseItoh { gather_loads, scatter_loads, distance_sum, cycles, returns })
}

/// The numbers of a graph.
#[derive(Debug)]
struct Graph {
    /// d, links per node.
    degree: u64,
    /// m, number of nodes.
    nodes: u64,
    /// 1, d, d², …, d^T, where d^T is the first power that is not less than m.
    powers: Vec<u64>,
    /// Nodes that differ by this are alike.
    period: u64,
}

/// Links into a node are the bits of a word.
const DEGREE_MAX: u32 = 64;
/// 2¹⁶ nodes of 64 links keep every product below 2⁶⁴.
const NODES_MAX: u32 = 1 << 16;

impl Graph {
    fn new(degree: u32, nodes: u32) -> Option<Self> {
        if !(2..=DEGREE_MAX).contains(&degree) || nodes <= degree || nodes > NODES_MAX {
            return None;
        }
        let (degree, nodes) = (u64::from(degree), u64::from(nodes));
        let mut powers = vec![1];
        let mut power = 1;
        while power < nodes {
            power *= degree;
            powers.push(power);
        }
        Some(Self { degree, nodes, powers, period: nodes / (degree + 1).gcd(&nodes) })
    }

    /// T: no two nodes are farther apart.
    fn last_step(&self) -> usize {
        self.powers.len() - 1
    }

    /// Nodes one of which is like every node, in ascending order without a gap, with the number of nodes like each.
    fn representatives(&self) -> impl Iterator<Item = (u64, u64)> {
        let (period, copies) = (self.period, self.nodes / self.period);
        (0..period.div_ceil(2)).map(move |node| (node, if 2 * node + 1 == period { copies } else { 2 * copies }))
    }

    /// The representatives, until somebody wants to stop: then a last `None`.
    fn representatives_until(&self, stop: &dyn Stop) -> impl Iterator<Item = Option<(u64, u64)>> {
        /// Nodes looked at between two questions, some hundred microseconds.
        const STRIDE: u64 = 64;
        let mut is_stopped = false;
        self.representatives().map_while(move |(node, copies)| {
            if is_stopped {
                return None;
            }
            is_stopped = node.is_multiple_of(STRIDE) && stop.is_requested();
            Some((!is_stopped).then_some((node, copies)))
        })
    }

    /// ι^t(u).
    fn turned(&self, node: u64, step: usize) -> u64 {
        if step.is_multiple_of(2) { node } else { self.nodes - 1 - node }
    }
}

#[cfg(test)]
mod tests;
