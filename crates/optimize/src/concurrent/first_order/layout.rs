//! The problem as the iteration passes over it: the arcs that count, in the order of their heads, capacities and demands near
//! one, and classes of arcs that have one price.

use std::collections::BTreeMap;

use crate::concurrent::problem::{Commodity, ConcurrentError, ConcurrentProblem};

/// An arc that can carry something.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaidArc {
    pub(super) from: u32,
    pub(super) to: u32,
    /// Which price it has.
    pub(super) class: u32,
}

/// Arcs that are alike.
#[derive(Clone, Copy, Debug)]
pub(super) struct Class {
    /// Capacity of each arc, 1 for the greatest of the network.
    pub(super) capacity: f64,
    /// How many arcs there are.
    pub(super) size: f64,
}

/// A problem with what a pass over all arcs needs.
#[derive(Debug)]
pub(super) struct Layout<'a> {
    pub(super) commodities: &'a [Commodity],
    pub(super) node_count: usize,
    /// By head, then tail.
    pub(super) arcs: Vec<LaidArc>,
    /// By arc of the layout, which arc of the graph it is.
    pub(super) original: Vec<u32>,
    pub(super) classes: Vec<Class>,
    /// By node where its arcs start in `leaving`; one more for the end.
    leaving_start: Vec<u32>,
    /// Arcs by tail.
    leaving: Vec<u32>,
    /// Capacity of the graph that is 1 here.
    pub(super) capacity_unit: f64,
    /// Demand that is 1 here.
    pub(super) demand_unit: f64,
}

impl<'a> Layout<'a> {
    /// O(arcs log arcs + commodities × arcs).
    ///
    /// **Errors.** A sink out of reach.
    pub(super) fn new(problem: &ConcurrentProblem<'a>) -> Result<Self, ConcurrentError> {
        let graph = problem.graph();
        let counts = |index: &u32| {
            let arc = graph.arcs[*index as usize];
            arc.capacity > 0 && arc.from != arc.to
        };
        let mut original: Vec<u32> = (0_u32..).take(graph.arcs.len()).filter(counts).collect();
        original.sort_by_key(|&index| (graph.arcs[index as usize].to, graph.arcs[index as usize].from));
        let greatest = original.iter().map(|&index| graph.arcs[index as usize].capacity).max().unwrap_or(1);
        let capacity_unit = greatest as f64;
        let mut classes: Vec<Class> = Vec::new();
        let mut class_of_orbit = BTreeMap::new();
        let mut arcs = Vec::with_capacity(original.len());
        for &index in &original {
            let arc = graph.arcs[index as usize];
            let orbit = problem.orbits().get(index as usize).copied().unwrap_or(index);
            let class = *class_of_orbit.entry((orbit, arc.capacity)).or_insert(classes.len());
            if class == classes.len() {
                classes.push(Class { capacity: arc.capacity as f64 / capacity_unit, size: 0.0 });
            }
            classes[class].size += 1.0;
            arcs.push(LaidArc { from: arc.from, to: arc.to, class: u32::try_from(class).expect("no more than arcs") });
        }
        let node_count = graph.node_count as usize;
        let mut leaving_start = vec![0_u32; node_count + 1];
        for arc in &arcs {
            leaving_start[arc.from as usize + 1] += 1;
        }
        for node in 0..node_count {
            leaving_start[node + 1] += leaving_start[node];
        }
        let mut leaving: Vec<u32> = (0_u32..).take(arcs.len()).collect();
        leaving.sort_by_key(|&arc| arcs[arc as usize].from);
        let demands = problem.commodities().iter().flat_map(|commodity| &commodity.sinks);
        let demand_unit = demands.map(|&(_, demand)| demand).max().unwrap_or(1) as f64;
        let commodities = problem.commodities();
        let layout = Self {
            commodities,
            node_count,
            arcs,
            original,
            classes,
            leaving_start,
            leaving,
            capacity_unit,
            demand_unit,
        };
        layout.check_reach()?;
        Ok(layout)
    }

    /// Arcs that leave a node.
    pub(super) fn leaving(&self, node: u32) -> &[u32] {
        let node = node as usize;
        &self.leaving[self.leaving_start[node] as usize..self.leaving_start[node + 1] as usize]
    }

    /// By arc, what its class has.
    pub(super) fn by_arc<T>(&self, of_class: impl Fn(usize) -> T) -> Vec<T> {
        self.arcs.iter().map(|arc| of_class(arc.class as usize)).collect()
    }

    /// Refuses demands that no path meets.
    fn check_reach(&self) -> Result<(), ConcurrentError> {
        let mut reached = vec![u32::MAX; self.node_count];
        let mut queue = Vec::new();
        for (round, commodity) in (0_u32..).zip(self.commodities) {
            queue.clear();
            queue.push(commodity.source);
            reached[commodity.source as usize] = round;
            while let Some(node) = queue.pop() {
                for &arc in self.leaving(node) {
                    let to = self.arcs[arc as usize].to;
                    if std::mem::replace(&mut reached[to as usize], round) != round {
                        queue.push(to);
                    }
                }
            }
            if let Some(&(to, _)) = commodity.sinks.iter().find(|(sink, _)| reached[*sink as usize] != round) {
                return Err(ConcurrentError::Unreachable { from: commodity.source, to });
            }
        }
        Ok(())
    }
}
