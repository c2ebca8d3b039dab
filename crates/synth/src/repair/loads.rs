//! What links carry while a schedule is repaired, and how much they may.

use canopy_topology::{LinkIndex, Topology};

use super::RepairError;

/// Most chunks that a link may carry: with this, all that is multiplied below fits 128 bits.
pub(super) const CHUNKS_MAX: u64 = 1 << 40;

/// Parts of a chunk in which levels are counted.
const PARTS: u32 = 16;

/// Chunks that each link carries, and the most it shall.
#[derive(Clone, Debug)]
pub(super) struct Loads {
    capacities: Vec<u64>,
    chunks: Vec<u64>,
    limits: Vec<u64>,
    /// The greatest capacity, in parts.
    unit: u128,
}

impl Loads {
    /// No link carries any, and any may carry all.
    pub(super) fn none(topology: &Topology) -> Self {
        let capacities: Vec<u64> = topology.links().iter().map(|link| link.capacity.bytes_per_sec()).collect();
        let widest = capacities.iter().copied().max().unwrap_or(1);
        let (chunks, limits) = (vec![0; capacities.len()], vec![CHUNKS_MAX; capacities.len()]);
        Self { capacities, chunks, limits, unit: u128::from(widest) << PARTS }
    }

    /// So many chunks more take a route.
    pub(super) fn add(&mut self, route: &[LinkIndex], count: u64) -> Result<(), RepairError> {
        for link in route {
            let load = &mut self.chunks[link.index()];
            *load = load.checked_add(count).filter(|&load| load <= CHUNKS_MAX).ok_or(RepairError::TooLarge)?;
        }
        Ok(())
    }

    /// So many chunks take it no longer.
    pub(super) fn remove(&mut self, route: &[LinkIndex], count: u64) {
        route.iter().for_each(|link| self.chunks[link.index()] -= count);
    }

    /// Every chunk becomes so many.
    pub(super) fn scale(&mut self, factor: u64) -> Result<(), RepairError> {
        for load in &mut self.chunks {
            *load = load.checked_mul(factor).filter(|&load| load <= CHUNKS_MAX).ok_or(RepairError::TooLarge)?;
        }
        Ok(())
    }

    /// How long chunks keep a link of this capacity, in parts of the time that one takes on the widest; rounded up.
    pub(super) fn level(&self, chunks: u64, capacity: u128) -> u128 {
        (u128::from(chunks) * self.unit).div_ceil(capacity.max(1))
    }

    /// The level of the busiest link.
    pub(super) fn worst(&self) -> u128 {
        let levels = self.chunks.iter().zip(&self.capacities);
        levels.map(|(&chunks, &capacity)| self.level(chunks, capacity.into())).max().unwrap_or(0)
    }

    /// Fewest chunks on a link that is busy for at least half as long as the busiest.
    pub(super) fn chunks_where_busy(&self) -> u64 {
        let half = self.worst() / 2;
        let busy = self.chunks.iter().zip(&self.capacities).filter(|&(&chunks, _)| chunks > 0);
        busy.filter(|&(&chunks, &capacity)| self.level(chunks, capacity.into()) >= half)
            .map(|(&chunks, _)| chunks)
            .min()
            .unwrap_or(0)
    }

    /// From here on links shall carry no more than keeps them at a level.
    pub(super) fn limit_to(&mut self, level: u128) {
        for (limit, &capacity) in self.limits.iter_mut().zip(&self.capacities) {
            let most = level.checked_mul(capacity.into()).map(|most| most / self.unit);
            *limit = most.and_then(|most| u64::try_from(most).ok()).map_or(CHUNKS_MAX, |most| most.min(CHUNKS_MAX));
        }
    }

    /// From here on links may carry all.
    pub(super) fn limit_to_none(&mut self) {
        self.limits.fill(CHUNKS_MAX);
    }

    /// Chunks that a link carries beyond what it shall.
    pub(super) fn excess(&self, link: LinkIndex) -> u64 {
        self.chunks[link.index()].saturating_sub(self.limits[link.index()])
    }

    /// Links that carry more than they shall, the busiest first.
    pub(super) fn over(&self) -> Vec<LinkIndex> {
        let all = (0_u32..).zip(&self.chunks).map(|(number, _)| LinkIndex::new(number));
        let mut over: Vec<LinkIndex> = all.filter(|&link| self.excess(link) > 0).collect();
        let level = |link: LinkIndex| self.level(self.chunks[link.index()], self.capacities[link.index()].into());
        over.sort_by_key(|&link| (std::cmp::Reverse(level(link)), link));
        over
    }

    /// Whether so many chunks more may take a link.
    pub(super) fn has_room(&self, link: LinkIndex, count: u64) -> bool {
        self.chunks[link.index()].saturating_add(count) <= self.limits[link.index()]
    }

    /// By how much Σ load²/capacity grows with so many chunks more on a link, for each of them, scaled by 2⁶⁴.
    pub(super) fn price(&self, link: LinkIndex, count: u64) -> u128 {
        let load = 2 * u128::from(self.chunks[link.index()]) + u128::from(count);
        (load << 64) / u128::from(self.capacities[link.index()])
    }
}
