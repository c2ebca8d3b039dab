//! Groups of automorphisms of which exactly one moves rank 0 to each rank, whether they commute or not.
//!
//! Every Cayley graph has one (G. Sabidussi 1958): cube-connected cycles, wrapped butterflies, star and pancake graphs. It
//! is put together from automorphisms that move rank 0 to its neighbours: as long as the products of those chosen move
//! rank 0 to each rank that it reaches in one way only, another is added.

use canopy_canonical::{Arc, Automorphism, Budget, Carriers, Graph as ColouredGraph};
use canopy_optimize::{Stop, Stopped};

use super::Graph;
use crate::reach::ask;

/// Work allowed for the search of automorphisms: some tenths of a second.
const WORK_MAX: u64 = 1 << 25;
/// Arcs of a graph that is looked at, at most: it takes some hundredths of a second.
const ARCS_MAX: usize = 1 << 17;
/// Ways to move rank 0 to a neighbour, at most.
const CARRIERS_MAX: usize = 256;
/// Groups begun before the search is given up.
const GROUPS_MAX: usize = 400;
/// Numbers of ranks compared in all groups begun, at most: some tenths of a second.
const PRODUCTS_MAX: usize = 100_000_000;

/// By the rank that rank 0 is moved to: where each rank goes. `None` if no such group was found.
///
/// * **Source.** Our own. **Errors.** Stopped.
/// * **Cost.** Bounded by the constants above; one refinement of the graph where ranks are not alike.
pub(super) fn regular_group(graph: &Graph, stop: &dyn Stop) -> Result<Option<Vec<Vec<u32>>>, Stopped> {
    let is_requested = || stop.is_requested();
    let budget = Budget { work_max: WORK_MAX, stop: &is_requested };
    if graph.neighbours.iter().map(Vec::len).sum::<usize>() > ARCS_MAX {
        return Ok(None);
    }
    let Some(coloured) = coloured(graph) else { return Ok(None) };
    let mut carriers = Carriers::new(&coloured, budget).map_err(|_| Stopped)?;
    let mut search =
        Search { graph, candidates: Vec::new(), groups_left: GROUPS_MAX, products_left: PRODUCTS_MAX, stop };
    // All neighbours at once: where one has no candidates, nothing has to be tried.
    for &neighbour in &graph.neighbours[0] {
        let found = carriers.between(0, neighbour, CARRIERS_MAX).map_err(|_| Stopped)?;
        let tables = found.unwrap_or_default();
        let tables = tables.iter().map(|carrier: &Automorphism| carrier.to_table(graph.rank_count()));
        let free: Vec<Vec<u32>> = tables.filter(|table| has_equal_cycles(table)).collect();
        if free.is_empty() {
            return Ok(None);
        }
        search.candidates.push(free);
    }
    search.extend(&mut Vec::new())
}

/// Arcs with their capacities; those of the way back are arcs of their own.
fn coloured(graph: &Graph) -> Option<ColouredGraph> {
    let halves = |capacity: u128| {
        let half = |shift: u32| u64::try_from(capacity >> shift & u128::from(u64::MAX)).ok();
        Some([half(64)?, half(0)?])
    };
    let mut arcs = Vec::new();
    for (from, around) in (0_u32..).zip(&graph.neighbours) {
        for &to in around {
            arcs.push(Arc { from, to, weight: halves(graph.label(from, to)?.0)? });
        }
    }
    ColouredGraph::new(vec![0; graph.rank_count()], arcs).ok()
}

/// Whether no power of a permutation fixes one rank and moves another.
fn has_equal_cycles(image: &[u32]) -> bool {
    let mut is_seen = vec![false; image.len()];
    let mut first_length = None;
    for start in 0..image.len() {
        let (mut rank, mut length) = (start, 0_usize);
        while !std::mem::replace(&mut is_seen[rank], true) {
            rank = image[rank] as usize;
            length += 1;
        }
        if length > 0 && *first_length.get_or_insert(length) != length {
            return false;
        }
    }
    true
}

/// By rank: the product that moves rank 0 there, if one is known.
type Products = Vec<Option<Vec<u32>>>;

/// A search among candidates.
struct Search<'a> {
    graph: &'a Graph,
    /// By place among the neighbours of rank 0: permutations that move rank 0 to it, and may be in such a group.
    candidates: Vec<Vec<Vec<u32>>>,
    groups_left: usize,
    products_left: usize,
    stop: &'a dyn Stop,
}

impl Search<'_> {
    /// Adds generators until the group moves rank 0 to all its neighbours, and thus to all ranks.
    fn extend(&mut self, generators: &mut Vec<Vec<u32>>) -> Result<Option<Vec<Vec<u32>>>, Stopped> {
        let Some(products) = self.products(generators)? else { return Ok(None) };
        let is_reached = |neighbour: &u32| products[*neighbour as usize].is_some();
        let Some(open) = self.graph.neighbours[0].iter().position(|neighbour| !is_reached(neighbour)) else {
            // A network that falls apart is moved about in one of its parts only.
            return Ok(products.into_iter().collect());
        };
        for choice in 0..self.candidates[open].len() {
            generators.push(self.candidates[open][choice].clone());
            if let Some(found) = self.extend(generators)? {
                return Ok(Some(found));
            }
            generators.pop();
            if self.groups_left == 0 || self.products_left == 0 {
                break;
            }
        }
        Ok(None)
    }

    /// All products of the generators, unless two of them move rank 0 to the same rank, or it takes long.
    fn products(&mut self, generators: &[Vec<u32>]) -> Result<Option<Products>, Stopped> {
        let rank_count = self.graph.rank_count();
        let Some(groups_left) = self.groups_left.checked_sub(1) else { return Ok(None) };
        self.groups_left = groups_left;
        let mut products: Products = vec![None; rank_count];
        products[0] = Some((0_u32..).take(rank_count).collect());
        let mut reached = vec![0_u32];
        let mut next = 0;
        while let Some(&rank) = reached.get(next) {
            next += 1;
            ask(self.stop)?;
            for generator in generators {
                let Some(products_left) = self.products_left.checked_sub(rank_count) else {
                    self.products_left = 0;
                    return Ok(None);
                };
                self.products_left = products_left;
                let known = products[rank as usize].as_ref().expect("a rank is reached by a product");
                let product = generator.iter().map(|&moved| known[moved as usize]);
                let target = known[generator[0] as usize];
                if let Some(other) = &products[target as usize] {
                    if !product.eq(other.iter().copied()) {
                        return Ok(None);
                    }
                } else {
                    let product = product.collect();
                    products[target as usize] = Some(product);
                    reached.push(target);
                }
            }
        }
        Ok(Some(products))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use canopy_optimize::Never;

    use super::*;

    /// Plain links, both ways.
    fn graph(rank_count: u32, links: impl IntoIterator<Item = (u32, u32)>) -> Graph {
        let mut labels = vec![HashMap::new(); rank_count as usize];
        for (a, b) in links {
            labels[a as usize].insert(b, (1, 1));
            labels[b as usize].insert(a, (1, 1));
        }
        Graph::labelled(labels)
    }

    fn cube_connected_cycles(dimensions: u32) -> Graph {
        let links = (0..1 << dimensions).flat_map(move |corner: u32| {
            let rank = move |corner: u32, place: u32| corner * dimensions + place % dimensions;
            (0..dimensions).flat_map(move |place| {
                [
                    (rank(corner, place), rank(corner, place + 1)),
                    (rank(corner, place), rank(corner ^ 1 << place, place)),
                ]
            })
        });
        graph(dimensions << dimensions, links)
    }

    /// Exactly one moves rank 0 to each rank, every product of two is among them, and each keeps the network.
    #[track_caller]
    fn check(graph: &Graph) {
        let group = regular_group(graph, &Never).unwrap().unwrap();
        assert_eq!(group.len(), graph.rank_count());
        for (rank, image) in (0_u32..).zip(&group) {
            assert_eq!(image[0], rank);
            assert!(graph.is_automorphism(image));
            let other = &group[group.len() - 1 - rank as usize];
            let product: Vec<u32> = other.iter().map(|&moved| image[moved as usize]).collect();
            assert_eq!(group[product[0] as usize], product);
        }
    }

    #[test]
    fn groups_that_do_not_commute_are_found() {
        check(&cube_connected_cycles(3));
        check(&cube_connected_cycles(5));
        // The prism of seven sides: a dihedral group, among others.
        check(&graph(14, (0..7).flat_map(|i| [(i, (i + 1) % 7), (i + 7, (i + 1) % 7 + 7), (i, i + 7)])));
    }

    /// Every rank of the Petersen graph looks alike, and yet it is no Cayley graph; the ranks of a mesh differ.
    #[test]
    fn where_there_is_none_none_is_found() {
        let petersen = graph(10, (0..5).flat_map(|i| [(i, (i + 1) % 5), (i, i + 5), (i + 5, (i + 2) % 5 + 5)]));
        assert_eq!(regular_group(&petersen, &Never), Ok(None));
        let frucht = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (6, 0), (0, 7), (1, 7), (2, 8), (3, 9), (4, 9)];
        let frucht = frucht.into_iter().chain([(5, 10), (6, 10), (7, 11), (8, 9), (8, 11), (10, 11)]);
        assert_eq!(regular_group(&graph(12, frucht), &Never), Ok(None));
        assert_eq!(regular_group(&cube_connected_cycles(4), &|| true), Err(Stopped));
    }
}
