//! Ranks that look alike: one of each kind, and where automorphisms move it.

use canopy_canonical::{Automorphism, Budget, WORK_SERVED, analyse, graph_of};
use canopy_optimize::Stop;
use canopy_topology::Topology;

use crate::error::SynthesisError;
use crate::reach::ask;

/// Ranks from which on looking for automorphisms pays.
const RANKS_MIN: u32 = 64;

/// A table of all images takes 4 bytes for each pair of ranks.
const RANKS_MAX: u32 = 1 << 13;

/// Ranks by kind.
pub(super) struct Likeness {
    first: Vec<u32>,
    /// By rank: its kind, by position in `first`. Empty where every rank is of a kind of its own.
    kinds: Vec<u32>,
    /// By rank: where the automorphism that moves the first of its kind there moves every rank.
    images: Vec<Vec<u32>>,
}

/// An automorphism that moves the first rank of a kind to another.
pub(super) struct Image<'a> {
    first: u32,
    table: &'a [u32],
}

impl Image<'_> {
    /// The first rank of the kind.
    pub(super) const fn first(&self) -> u32 {
        self.first
    }

    /// Where a rank goes.
    pub(super) fn of(&self, rank: u32) -> u32 {
        self.table[rank as usize]
    }
}

impl Likeness {
    /// Every rank by itself.
    pub(super) fn none(rank_count: u32) -> Self {
        Self { first: (0..rank_count).collect(), kinds: Vec::new(), images: Vec::new() }
    }

    /// Kinds of ranks: those that automorphisms of the network exchange, if these are found within a quarter of a second
    /// and leave few kinds. Every rank by itself else, and where ranks have shares of different weights.
    ///
    /// Each automorphism has been verified link by link before it comes here, and so have products of them. They keep
    /// latencies as well, and those of the network are those of its transpose.
    ///
    /// # Errors
    /// Stopped. O(ranks²), besides the search.
    pub(super) fn of(topology: &Topology, amounts: &[u64], stop: &dyn Stop) -> Result<Self, SynthesisError> {
        let rank_count = topology.rank_count();
        let is_even = amounts.windows(2).all(|pair| pair[0] == pair[1]);
        if !(RANKS_MIN..=RANKS_MAX).contains(&rank_count) || !is_even {
            return Ok(Self::none(rank_count));
        }
        let Some(graph) = graph_of(topology, &[]) else { return Ok(Self::none(rank_count)) };
        let budget = Budget { work_max: WORK_SERVED, stop: &|| stop.is_requested() };
        let analysis = analyse(&graph, budget).map_err(|_| SynthesisError::Stopped)?;
        let orbits = analysis.orbits.to_sets();
        if orbits.len() > rank_count as usize / 4 {
            return Ok(Self::none(rank_count));
        }
        let first: Vec<u32> = orbits.iter().map(|orbit| orbit[0]).collect();
        let mut kinds = vec![0; rank_count as usize];
        for (kind, orbit) in (0_u32..).zip(&orbits) {
            orbit.iter().for_each(|&rank| kinds[rank as usize] = kind);
        }
        let tables: Vec<Vec<u32>> = analysis
            .generators
            .iter()
            .map(|generator| Automorphism::to_table(generator, rank_count as usize))
            .collect();
        Ok(Self { images: images(&first, &tables, rank_count, stop)?, first, kinds })
    }

    /// One rank of each kind, rising.
    pub(super) fn first_of_each(&self) -> &[u32] {
        &self.first
    }

    /// The kind of a rank, by position among the first ones, and how the first one is moved there.
    pub(super) fn image(&self, rank: u32) -> (usize, Image<'_>) {
        let kind = self.kinds[rank as usize] as usize;
        (kind, Image { first: self.first[kind], table: &self.images[rank as usize] })
    }
}

/// By rank, a product of generators that moves the first rank of its orbit there: breadth first from each of these.
fn images(
    first: &[u32],
    generators: &[Vec<u32>],
    rank_count: u32,
    stop: &dyn Stop,
) -> Result<Vec<Vec<u32>>, SynthesisError> {
    let mut images: Vec<Vec<u32>> = vec![Vec::new(); rank_count as usize];
    let mut order = Vec::with_capacity(rank_count as usize);
    for &rank in first {
        images[rank as usize] = (0..rank_count).collect();
        order.push(rank);
    }
    let mut next = 0;
    while let Some(&rank) = order.get(next) {
        ask(stop)?;
        next += 1;
        for generator in generators {
            let reached = generator[rank as usize];
            if images[reached as usize].is_empty() {
                let product = images[rank as usize].iter().map(|&moved| generator[moved as usize]).collect();
                images[reached as usize] = product;
                order.push(reached);
            }
        }
    }
    Ok(images)
}
