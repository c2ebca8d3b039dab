//! All automorphisms that move one node to another.

use crate::automorphism::{Automorphism, Verifier};
use crate::budget::{Budget, Ended, Meter, Stopped};
use crate::graph::Graph;
use crate::partition::Partition;
use crate::reduce::Part;
use crate::refine::Refiner;

/// Finds the automorphisms that move certain nodes, on one graph.
pub struct Carriers<'a> {
    part: Part,
    /// Cells that cannot be refined.
    cells: Partition,
    verifier: Verifier<'a>,
    refiner: Refiner,
    meter: Meter<'a>,
}

impl<'a> Carriers<'a> {
    /// For a graph; the budget is for all questions together.
    ///
    /// # Errors
    /// Stopped. O(arcs log nodes), which do not count.
    pub fn new(graph: &'a Graph, budget: Budget<'a>) -> Result<Self, Stopped> {
        let (part, mut cells) = (Part::whole(graph), Partition::of_tags(graph.classes()));
        let mut refiner = Refiner::new(graph.node_count());
        let all: Vec<u32> = cells.cells().collect();
        refiner.refine(&part, &mut cells, all, &mut Meter::unlimited(budget)).map_err(|_| Stopped)?;
        Ok(Self { part, cells, verifier: Verifier::new(graph), refiner, meter: Meter::new(budget) })
    }

    /// All automorphisms that move the one node to the other, the identity as one without moves; `None` if there are more
    /// than `count_max`, or the budget ends.
    ///
    /// One node after the other is singled out on either side, wherever refinement goes the same way on both.
    ///
    /// * **Errors.** Stopped. **Cost.** O(arcs log nodes) per automorphism and per way that leads to none.
    pub fn between(&mut self, from: u32, to: u32, count_max: usize) -> Result<Option<Vec<Automorphism>>, Stopped> {
        match self.search(from, to, count_max) {
            Ok(found) => Ok(found),
            Err(Ended::Spent) => Ok(None),
            Err(Ended::Stopped) => Err(Stopped),
        }
    }

    fn search(&mut self, from: u32, to: u32, count_max: usize) -> Result<Option<Vec<Automorphism>>, Ended> {
        let mut found = Vec::new();
        let cells = self.cells.clone();
        let mut waiting: Vec<_> = self.singled_out(&cells, &cells, from, to)?.into_iter().collect();
        while let Some((left, right)) = waiting.pop() {
            let open = left.cells().filter(|&cell| left.size_of(cell) > 1);
            let Some(cell) = open.min_by_key(|&cell| left.size_of(cell)) else {
                let moves = left.order().iter().copied().zip(right.order().iter().copied());
                if let Some(automorphism) = self.verifier.verified(moves, &mut self.meter)? {
                    if found.len() == count_max {
                        return Ok(None);
                    }
                    found.push(automorphism);
                }
                continue;
            };
            for &image in right.members(cell).iter().rev() {
                waiting.extend(self.singled_out(&left, &right, left.members(cell)[0], image)?);
            }
        }
        Ok(Some(found))
    }

    /// Both sides with a node singled out, if they can still be alike.
    fn singled_out(
        &mut self,
        left: &Partition,
        right: &Partition,
        from: u32,
        to: u32,
    ) -> Result<Option<(Partition, Partition)>, Ended> {
        if left.cell_of(from) != right.cell_of(to) {
            return Ok(None);
        }
        let mut refined = |cells: &Partition, node: u32| {
            self.meter.spend(4 * self.part.node_count())?;
            let mut cells = cells.clone();
            cells.single_out(node);
            let splitter = cells.cell_of(node);
            let trace = self.refiner.refine(&self.part, &mut cells, [splitter], &mut self.meter)?;
            Ok((cells, trace))
        };
        let ((left, left_trace), (right, right_trace)) = (refined(left, from)?, refined(right, to)?);
        let is_alike = left_trace == right_trace && left.cells().eq(right.cells());
        Ok(is_alike.then_some((left, right)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Arc;

    /// A ring of six: each node goes to each other in two ways, but not if one is marked.
    #[test]
    fn all_ways_are_found() {
        let arcs = (0..6_u32).flat_map(|node| [(node, (node + 1) % 6), ((node + 1) % 6, node)]);
        let arcs: Vec<Arc> = arcs.map(|(from, to)| Arc { from, to, weight: [1, 0] }).collect();
        let budget = Budget { work_max: 1 << 20, stop: &|| false };
        let ring = Graph::new(vec![0; 6], arcs.clone()).unwrap();
        let mut carriers = Carriers::new(&ring, budget).unwrap();
        for (from, to) in (0..6).flat_map(|from| (0..6).map(move |to| (from, to))) {
            let found = carriers.between(from, to, 2).unwrap().unwrap();
            assert_eq!(found.len(), 2);
            assert!(found.iter().all(|automorphism| automorphism.image(from) == to));
        }
        assert_eq!(carriers.between(0, 1, 1), Ok(None));
        let marked = Graph::new(vec![1, 0, 0, 0, 0, 0], arcs).unwrap();
        let mut carriers = Carriers::new(&marked, budget).unwrap();
        let counts: Vec<usize> = (0..6).map(|to| carriers.between(1, to, 9).unwrap().unwrap().len()).collect();
        assert_eq!(counts, [0, 1, 0, 0, 0, 1]);
        let mut carriers = Carriers::new(&ring, Budget { work_max: 40, ..budget }).unwrap();
        assert_eq!(carriers.between(0, 1, 9), Ok(None));
    }
}
