//! What links carry while a schedule is repaired, and how much they may.

use canopy_topology::{LinkIndex, Topology};

use super::RepairError;

/// Most chunks that a link may carry: with this, all that is multiplied below fits 128 bits.
pub(super) const CHUNKS_MAX: u64 = 1 << 40;

/// Parts of a chunk in which levels are counted.
const PARTS: u32 = 16;

/// Steps below the level aimed at from which on the price of a link doubles with each of them.
const STEPS_DEAR: u32 = 40;

/// Doublings after which prices rise no faster.
const DOUBLINGS_MAX: u128 = 60;

/// Chunks that each link carries, the most it shall, and what more on it cost.
///
/// Prices are differences of a *potential*: of each link a sum that doubles with every step that it comes nearer to the level
/// aimed at, so that where less is on the busiest links and no more on those that are nearly as busy, the potential is less.
/// Far below that level it is the square of the link's use.
#[derive(Clone, Debug)]
pub(super) struct Loads {
    capacities: Vec<u64>,
    chunks: Vec<u64>,
    limits: Vec<u64>,
    /// Whether these count.
    is_limited: bool,
    /// Beyond these, links are relieved.
    targets: Vec<u64>,
    /// By link: steps for each chunk, scaled by 2⁴⁸.
    slopes: Vec<u128>,
    /// How many steps it is to the level aimed at, as a power of two.
    steps_log2: u32,
    potential: i128,
    /// The greatest capacity.
    widest: u128,
}

impl Loads {
    /// No link carries any, and any may carry all.
    pub(super) fn none(topology: &Topology) -> Self {
        let capacities: Vec<u64> = topology.links().iter().map(|link| link.capacity.bytes_per_sec()).collect();
        let widest = capacities.iter().copied().max().unwrap_or(1).into();
        let all = || vec![CHUNKS_MAX; capacities.len()];
        let (chunks, limits, targets) = (vec![0; capacities.len()], all(), all());
        let slopes = vec![0; capacities.len()];
        Self { capacities, chunks, limits, is_limited: false, targets, slopes, steps_log2: 0, potential: 0, widest }
    }

    pub(super) const fn link_count(&self) -> usize {
        self.chunks.len()
    }

    /// So many chunks more take a route.
    pub(super) fn add(&mut self, route: &[LinkIndex], count: u64) -> Result<(), RepairError> {
        for &link in route {
            let load = self.chunks[link.index()].checked_add(count).filter(|&load| load <= CHUNKS_MAX);
            self.set(link, load.ok_or(RepairError::TooLarge)?);
        }
        Ok(())
    }

    /// So many chunks take it no longer.
    pub(super) fn remove(&mut self, route: &[LinkIndex], count: u64) {
        route.iter().for_each(|&link| self.set(link, self.chunks[link.index()] - count));
    }

    fn set(&mut self, link: LinkIndex, chunks: u64) {
        let before = std::mem::replace(&mut self.chunks[link.index()], chunks);
        self.potential += self.potential_of(link, chunks);
        self.potential -= self.potential_of(link, before);
    }

    /// Every chunk becomes so many.
    pub(super) fn scale(&mut self, factor: u64) -> Result<(), RepairError> {
        for load in &mut self.chunks {
            *load = load.checked_mul(factor).filter(|&load| load <= CHUNKS_MAX).ok_or(RepairError::TooLarge)?;
        }
        self.add_up();
        Ok(())
    }

    /// How long chunks keep a link of this capacity, in parts of the time that one takes on the widest; rounded up.
    pub(super) fn level(&self, chunks: u64, capacity: u128) -> u128 {
        (u128::from(chunks) * (self.widest << PARTS)).div_ceil(capacity.max(1))
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

    /// From here on links shall carry no more than keeps them at a level, to which it is 2^`steps_log2` steps; those within
    /// four steps of it are to be relieved. O(links).
    pub(super) fn aim_at(&mut self, level: u128, steps_log2: u32) {
        (self.steps_log2, self.is_limited) = (steps_log2, true);
        let at = |level: u128, capacity: u64| {
            // Chunks that keep a link at a level, scaled by 2^PARTS.
            level.checked_mul(capacity.into()).map_or(u128::MAX, |chunks| chunks / self.widest)
        };
        let whole = |chunks: u128| u64::try_from(chunks >> PARTS).unwrap_or(u64::MAX).min(CHUNKS_MAX);
        let near = level - (level >> steps_log2.saturating_sub(2));
        for (place, &capacity) in self.capacities.iter().enumerate() {
            let most = at(level, capacity);
            self.limits[place] = whole(most);
            self.targets[place] = whole(at(near, capacity));
            self.slopes[place] = (1_u128 << (48 + PARTS + steps_log2)) / most.max(1);
        }
        self.add_up();
    }

    fn add_up(&mut self) {
        let all = (0_u32..).map(LinkIndex::new).zip(&self.chunks);
        self.potential = all.map(|(link, &chunks)| self.potential_of(link, chunks)).sum();
    }

    /// Of a link with so many chunks.
    fn potential_of(&self, link: LinkIndex, chunks: u64) -> i128 {
        // In steps, scaled by 2¹⁶; one step is 2⁻ˢ of the level aimed at.
        let steps = (u128::from(chunks) * self.slopes[link.index()]) >> 32;
        let part = (steps >> self.steps_log2).min(1 << 40);
        let floor = (1_u128 << self.steps_log2).saturating_sub(STEPS_DEAR.into()) << 16;
        let above = steps.saturating_sub(floor).min((DOUBLINGS_MAX << 16) + (1 << 24));
        let doublings = (above >> 16).min(DOUBLINGS_MAX);
        // A chain of straight lines through the powers of two.
        let dear = (((1 << 16) + above - (doublings << 16)) << doublings) - (1 << 16);
        (dear + ((part * part) >> 8)).cast_signed()
    }

    /// The sum over all links.
    pub(super) const fn potential(&self) -> i128 {
        self.potential
    }

    /// Whether the limits count from here on; if not, links may carry all, at the same prices.
    pub(super) const fn heed_limits(&mut self, is_limited: bool) {
        self.is_limited = is_limited;
    }

    /// Chunks that a link is to be relieved of.
    pub(super) fn excess(&self, link: LinkIndex) -> u64 {
        self.chunks[link.index()].saturating_sub(self.targets[link.index()])
    }

    /// Links that are to be relieved, the busiest first.
    pub(super) fn over(&self) -> Vec<LinkIndex> {
        let all = (0_u32..).zip(&self.chunks).map(|(number, _)| LinkIndex::new(number));
        let mut over: Vec<LinkIndex> = all.filter(|&link| self.excess(link) > 0).collect();
        let level = |link: LinkIndex| self.level(self.chunks[link.index()], self.capacities[link.index()].into());
        over.sort_by_key(|&link| (std::cmp::Reverse(level(link)), link));
        over
    }

    /// Whether so many chunks more may take a link.
    pub(super) fn has_room(&self, link: LinkIndex, count: u64) -> bool {
        let limit = if self.is_limited { self.limits[link.index()] } else { CHUNKS_MAX };
        self.chunks[link.index()].saturating_add(count) <= limit
    }

    /// By how much the potential grows with so many chunks more on a link, and one more, so that no link is for nothing.
    pub(super) fn price(&self, link: LinkIndex, count: u64) -> i128 {
        let chunks = self.chunks[link.index()];
        1 + self.potential_of(link, chunks.saturating_add(count)) - self.potential_of(link, chunks)
    }

    /// By how much the potential falls with so many chunks less on a link.
    pub(super) fn relief(&self, link: LinkIndex, count: u64) -> i128 {
        let chunks = self.chunks[link.index()];
        self.potential_of(link, chunks) - self.potential_of(link, chunks.saturating_sub(count))
    }
}

#[cfg(test)]
mod tests {
    use canopy_topology::{TopologyLimits, generate};

    use super::*;

    /// Links of two rates.
    fn loads() -> Loads {
        Loads::none(&generate("dgx-a100:boxes=2", &TopologyLimits::STANDARD).unwrap())
    }

    #[test]
    fn prices_and_relief_are_what_the_potential_changes_by() {
        let mut loads = loads();
        let routes = [[LinkIndex::new(0)], [LinkIndex::new(3)], [LinkIndex::new(1)]];
        routes.iter().zip([900, 400, 1000]).for_each(|(route, count)| loads.add(route, count).unwrap());
        loads.aim_at(loads.worst(), 7);
        for route in routes {
            for count in [1, 17, 300] {
                let (before, price) = (loads.potential(), loads.price(route[0], count));
                loads.add(&route, count).unwrap();
                assert_eq!(loads.potential() - before, price - 1);
                assert_eq!(loads.relief(route[0], count), price - 1);
                loads.remove(&route, count);
                assert_eq!(loads.potential(), before);
            }
        }
        let kept = loads.potential();
        loads.add_up();
        assert_eq!(loads.potential(), kept);
    }

    #[test]
    fn the_next_chunk_costs_no_less_than_the_last_and_twice_as_much_a_step_on() {
        let mut loads = loads();
        let link = LinkIndex::new(2);
        loads.add(&[link], 1 << 10).unwrap();
        loads.aim_at(loads.worst(), 6);
        let price = |chunks: u64| loads.potential_of(link, chunks + 1) - loads.potential_of(link, chunks);
        // Roundings of the square apart.
        assert!((0..1 << 11).all(|chunks| price(chunks + 1) + (1 << 16) >= price(chunks)));
        let (near, nearer) = (price((1 << 10) - 24), price((1 << 10) - 8));
        assert!(nearer > near + near / 2 && nearer < 3 * near, "{near} {nearer}");
    }

    #[test]
    fn what_is_aimed_at_is_within_the_limits_and_what_is_near_it_is_to_be_relieved() {
        let mut loads = loads();
        // All to the switch of a box.
        let [busy, near, far] = [0, 2, 4].map(LinkIndex::new);
        for (link, count) in [(busy, 256), (near, 250), (far, 230)] {
            loads.add(&[link], count).unwrap();
        }
        loads.aim_at(loads.worst(), 6);
        assert!(loads.has_room(busy, 0) && !loads.has_room(busy, 1) && loads.has_room(near, 6));
        assert_eq!((loads.excess(busy), loads.excess(near), loads.excess(far)), (16, 10, 0));
        assert_eq!(loads.over(), [busy, near]);
    }
}
