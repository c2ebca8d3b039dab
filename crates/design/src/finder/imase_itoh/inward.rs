//! Loads of links into the nodes of Π(d, m): the allgather.
//!
//! The nodes t links away from u are kept for all t at once, as a set of t per node, while u goes up by one. At each t
//! about one node leaves and one comes, so that a step costs O(T) and not O(m).

use canopy_optimize::{Fraction, Stop};

use super::Graph;
use crate::finder::hall::Largest;
use crate::finder::histogram::Histogram;

/// What is seen from the nodes that links lead to.
pub(super) struct Inward {
    /// Largest load at each step, in shards.
    pub(super) loads: Vec<Fraction>,
    pub(super) cycles: Histogram,
    pub(super) returns: Histogram,
}

/// Looks at one of each kind of nodes; `None` when stopped.
pub(super) fn sweep(graph: &Graph, stop: &dyn Stop) -> Option<Inward> {
    let mut sweep = Sweep::new(graph);
    let (mut cycles, mut returns) = (Histogram::default(), Histogram::default());
    for kind in graph.representatives_until(stop) {
        let (node, copies) = kind?;
        if node > 0 {
            sweep.advance();
        }
        sweep.judge();
        let mut shortest = u32::MAX;
        for link in 1..=graph.degree {
            let head = graph.nodes - 1 - (graph.degree * node + link - 1) % graph.nodes;
            let back = sweep.steps[usize_of(head)].trailing_zeros();
            returns.add(back, copies);
            shortest = shortest.min(1 + back);
        }
        cycles.add(shortest, copies);
    }
    let mut loads: Vec<Fraction> = sweep.largest.iter().skip(1).map(Largest::fraction).collect();
    while loads.last().is_some_and(|&load| load == Fraction::ZERO) {
        loads.pop();
    }
    Some(Inward { loads, cycles, returns })
}

/// Nodes by what they have to do with one node u.
struct Sweep<'a> {
    graph: &'a Graph,
    /// u.
    node: u64,
    /// By step t and residue: the nodes y with d^t·y of that residue mod m, which are those that change when ι^t(u) passes it.
    passing: Vec<Buckets>,
    /// Bit t of node v: t links lead from v to u.
    steps: Vec<u32>,
    /// By step t < T and link: the nodes at distance t, which all depend on one link.
    alone: Vec<Vec<u64>>,
    /// At step T: the number of nodes at distance T by the first of the consecutive links that they may use; those that
    /// may use `width` of them, and those that may use one more.
    arcs: [Vec<u64>; 2],
    width: u64,
    /// Links whose number of nodes has changed.
    changed: Vec<(usize, usize)>,
    arcs_changed: bool,
    touched: Vec<u64>,
    /// The largest load seen, by step.
    largest: Vec<Largest>,
}

impl<'a> Sweep<'a> {
    fn new(graph: &'a Graph) -> Self {
        let (last, degree) = (graph.last_step(), usize_of(graph.degree));
        let mut sweep = Self {
            graph,
            node: 0,
            passing: graph.powers.iter().map(|power| Buckets::new(graph.nodes, *power)).collect(),
            steps: vec![1 << last; usize_of(graph.nodes)],
            alone: vec![vec![0; degree]; last],
            arcs: [vec![0; degree], vec![0; degree]],
            width: graph.powers[last] / graph.nodes,
            changed: Vec::new(),
            arcs_changed: true,
            touched: Vec::new(),
            largest: vec![Largest::default(); last + 1],
        };
        // By step t, the nodes from which t links lead to node 0: fewer than nodes · degree in all.
        for step in 0..last {
            let (power, turned) = (graph.powers[step], graph.turned(0, step));
            for walk in 0..power {
                sweep.steps[usize_of((turned + walk * graph.nodes) / power)] |= 1 << step;
            }
        }
        for from in 0..graph.nodes {
            sweep.count(from, true);
        }
        sweep
    }

    /// Goes on to the next u.
    fn advance(&mut self) {
        let (graph, last) = (self.graph, self.graph.last_step());
        let mut touched = std::mem::take(&mut self.touched);
        touched.clear();
        for step in 0..=last {
            touched.extend(self.passing(step).iter().flat_map(|&passing| [u64::from(passing) - 1, u64::from(passing)]));
        }
        touched.sort_unstable();
        touched.dedup();
        for &from in &touched {
            self.count(from, false);
        }
        // By step t, the nodes that begin or cease to be t links away as u becomes u + 1.
        for step in 0..last {
            let (sooner, later) = (self.node, self.node + 1);
            let forward = graph.turned(later, step) > graph.turned(sooner, step);
            for index in 0..self.passing(step).len() {
                let passing = self.passing(step)[index] as usize;
                let (from, to) = if forward { (passing - 1, passing) } else { (passing, passing - 1) };
                self.steps[from] &= !(1 << step);
                self.steps[to] |= 1 << step;
            }
        }
        self.node += 1;
        for &from in &touched {
            self.count(from, true);
        }
        self.touched = touched;
    }

    /// The nodes y that floor((ι^t(u) + j·m) / d^t) enters or leaves when u goes up by one.
    fn passing(&self, step: usize) -> &[u32] {
        let (now, next) = (self.graph.turned(self.node, step), self.graph.turned(self.node + 1, step));
        self.passing[step].with(now.max(next))
    }

    /// Enters a node under its distance and the links that it may use, or takes it out.
    fn count(&mut self, from: u64, enters: bool) {
        let step = self.steps[usize_of(from)].trailing_zeros() as usize;
        let last = self.graph.last_step();
        let degree = self.graph.degree;
        let place = if step == 0 {
            return;
        } else if step < last {
            let link = usize_of(self.first_walk(step, from) % degree);
            self.changed.push((step, link));
            &mut self.alone[step][link]
        } else {
            self.arcs_changed = true;
            let first = self.first_walk(last, from);
            let longer = self.first_walk(last, from + 1) - first > self.width;
            &mut self.arcs[usize::from(longer)][usize_of(first % degree)]
        };
        *place = if enters { *place + 1 } else { *place - 1 };
    }

    /// The least j with floor((ι^t(u) + j·m) / d^t) ≥ v.
    fn first_walk(&self, step: usize, from: u64) -> u64 {
        let turned = self.graph.turned(self.node, step);
        (self.graph.powers[step] * from).saturating_sub(turned).div_ceil(self.graph.nodes)
    }

    /// Notes the loads of the links into u.
    fn judge(&mut self) {
        while let Some((step, link)) = self.changed.pop() {
            self.largest[step].raise(self.alone[step][link], 1);
        }
        if std::mem::take(&mut self.arcs_changed) {
            self.judge_arcs();
        }
    }

    /// Of a set of links that binds, some consecutive ones do: the counts of separated ones add up, and so do their
    /// sizes, and a quotient of sums is at most the largest quotient.
    fn judge_arcs(&mut self) {
        let (degree, width) = (usize_of(self.graph.degree), usize_of(self.width));
        let [shorter, longer] = &self.arcs;
        let largest = &mut self.largest[self.graph.last_step()];
        let total: u64 = shorter.iter().chain(longer).sum();
        largest.raise(total, self.graph.degree);
        if total == 0 {
            return;
        }
        for first in 0..degree {
            let mut inside = 0;
            for size in width..degree {
                inside += shorter[(first + size - width) % degree];
                if size > width {
                    inside += longer[(first + size - width - 1) % degree];
                }
                largest.raise(inside, size as u64);
            }
        }
    }
}

/// Nodes by the residue of a multiple of them.
struct Buckets {
    starts: Vec<u32>,
    nodes: Vec<u32>,
}

impl Buckets {
    /// The nodes but for 0, by `factor`·node mod `modulus`.
    fn new(modulus: u64, factor: u64) -> Self {
        let residue = |node: u64| usize_of(node * (factor % modulus) % modulus);
        let mut starts = vec![0; usize_of(modulus) + 1];
        for node in 1..modulus {
            starts[residue(node) + 1] += 1;
        }
        for index in 1..starts.len() {
            starts[index] += starts[index - 1];
        }
        let mut free = starts.clone();
        let mut nodes = vec![0; usize_of(modulus) - 1];
        for node in 1..modulus {
            let place = &mut free[residue(node)];
            nodes[*place as usize] = u32::try_from(node).expect("there are at most 2¹⁶ nodes");
            *place += 1;
        }
        Self { starts, nodes }
    }

    fn with(&self, residue: u64) -> &[u32] {
        let index = usize_of(residue);
        &self.nodes[self.starts[index] as usize..self.starts[index + 1] as usize]
    }
}

/// Numbers here are at most a product of two of at most 2²² each.
fn usize_of(number: u64) -> usize {
    usize::try_from(number).expect("64 bits")
}
