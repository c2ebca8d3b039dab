//! Pieces of planes: terminals around several switches that are all alike, as those of a level of a fat tree. Each switch carries the
//! same part of everything, so the trees are those of a star.

use canopy_optimize::{FlowUnit, Stop};
use canopy_topology::LinkIndex;

use super::{Piece, PieceTree, Solution};
use crate::error::SynthesisError;
use crate::forest::links::Links;
use crate::forest::logical::Strand;
use crate::forest::network::{Network, Way};

impl<C: FlowUnit> Piece<'_, C> {
    /// The solution of a piece of planes, each of which is a star whose trees are written down; `None` for everything else, and
    /// where demands are no multiples of the number of planes.
    ///
    /// * **Errors.** Stopped. **Cost.** That of [`solve_star`](Self::solve_star), and the strands of all planes.
    pub(super) fn solve_planes(&self, unit: u128, stop: &dyn Stop) -> Result<Option<Solution<C>>, SynthesisError> {
        let Some(planes) = self.planes() else { return Ok(None) };
        let Some(plane) = self.plane(&planes) else { return Ok(None) };
        let Some(solution) = plane.solve_star(unit, stop)? else { return Ok(None) };
        Ok(Some(solution.over(&planes)))
    }

    /// The links of each plane in the same order, if all planes are alike and there are several.
    fn planes(&self) -> Option<Vec<Vec<usize>>> {
        let terminals = self.network.terminal_count;
        let mut planes: Vec<Vec<usize>> = vec![Vec::new(); (self.network.node_count - terminals) as usize];
        for (link, way) in self.network.links.iter().enumerate() {
            let hub = way.from.max(way.to).checked_sub(terminals).filter(|_| way.from.min(way.to) < terminals)?;
            planes[hub as usize].push(link);
        }
        let spoke = |&link: &usize| {
            let Way { from, to, latency_ns } = self.network.links[link];
            (from.min(to), from < to, latency_ns, self.capacities[link])
        };
        let first: Vec<_> = planes.first()?.iter().map(spoke).collect();
        let is_like_first = |plane: &Vec<usize>| plane.iter().map(spoke).eq(first.iter().copied());
        (planes.len() > 1 && planes.iter().all(is_like_first)).then_some(planes)
    }

    /// The first plane, with its part of all demands.
    fn plane(&self, planes: &[Vec<usize>]) -> Option<Self> {
        let (terminals, count) = (self.network.terminal_count, planes.len() as u128);
        let part = |demand: &C| {
            let demand = demand.to_u128();
            demand.is_multiple_of(count).then(|| C::try_from_u128(demand / count)).flatten()
        };
        let mut demands = self.demands[..terminals as usize].iter().map(part).collect::<Option<Vec<C>>>()?;
        demands.push(C::ZERO);
        let links = planes.first()?;
        let network = Network {
            node_count: terminals + 1,
            links: links.iter().map(|&link| self.network.links[link]).collect(),
            boxes: self.network.boxes.clone(),
            switch_names: self.network.switch_names.iter().copied().take(1).collect(),
            ..self.network
        };
        Some(Piece {
            network,
            capacities: links.iter().map(|&link| self.capacities[link]).collect(),
            demands,
            terminals: self.terminals.clone(),
            links: links.iter().map(|&link| self.links[link]).collect(),
            outward: links.iter().map(|&link| self.outward[link]).collect(),
            inward: links.iter().map(|&link| self.inward[link]).collect(),
            around: self.around,
        })
    }
}

impl<C: FlowUnit> Solution<C> {
    /// The same in all planes of a piece, for a solution of one: each strand in each plane, and as many times as many trees.
    fn over(self, planes: &[Vec<usize>]) -> Self {
        let count = planes.len();
        let index = |link: usize| LinkIndex::new(u32::try_from(link).expect("links are counted in u32"));
        let in_planes = |Strand { amount, links }: Strand<C>| {
            let links = move |plane: &Vec<usize>| -> Vec<LinkIndex> {
                links.iter().map(|link| index(plane[link.index()])).collect()
            };
            planes.iter().map(move |plane| Strand { amount, links: Links::from(links(plane).as_slice()) })
        };
        let strands = self.strands.into_iter().flat_map(in_planes).collect();
        let all = planes.iter().map(Vec::len).sum();
        let ends = |of_links: Vec<Vec<(u32, usize)>>| {
            let mut ends = vec![Vec::new(); all];
            for (place, of_link) in of_links.into_iter().enumerate() {
                for (number, plane) in planes.iter().enumerate() {
                    ends[plane[place]] =
                        of_link.iter().map(|&(terminal, strand)| (terminal, strand * count + number)).collect();
                }
            }
            ends
        };
        let times = |weight: C| {
            let product = weight.to_u128() * count as u128;
            C::try_from_u128(product).expect("no more than the numbers that were divided")
        };
        let mut trees = self.trees;
        for PieceTree { weight, edges } in trees.iter_mut().flatten() {
            *weight = times(*weight);
            for edge in edges {
                edge.strands = edge.strands.start * count..edge.strands.end * count;
            }
        }
        Self { trees, strands, entries: ends(self.entries), exits: ends(self.exits) }
    }
}
