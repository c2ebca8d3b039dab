//! The times at which some link has room for one more whole tree: only these matter.

use crate::digraph::Digraph;
use crate::fraction::Fraction;

/// Times `j/b` for the capacities `b` of a graph, in units.
#[derive(Clone, Debug)]
pub(super) struct Breakpoints {
    /// Divisor of all capacities.
    pub(super) unit: u64,
    /// Different capacities, in units, rising. None is zero.
    capacities: Vec<u64>,
}

/// Which breakpoints are asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// Those up to the limit.
    At,
    /// Those less than it.
    Before,
}

impl Breakpoints {
    /// O(arcs log arcs).
    pub(super) fn of(graph: &Digraph) -> Self {
        let arcs = || graph.arcs.iter().filter(|arc| arc.counts());
        let unit = arcs().fold(0, |unit, arc| num_integer::gcd(unit, arc.capacity)).max(1);
        let mut capacities: Vec<u64> = arcs().map(|arc| arc.capacity / unit).collect();
        capacities.sort_unstable();
        capacities.dedup();
        Self { unit, capacities }
    }

    /// The least capacity, in units.
    pub(super) fn thinnest(&self) -> Option<u64> {
        self.capacities.first().copied()
    }

    /// `⌊time·capacity⌋`, and whether that is all of it; `None` on overflow.
    pub(super) fn whole_part(time: Fraction, capacity: u64) -> Option<(u128, bool)> {
        let product = time.numerator.checked_mul(capacity.into())?;
        Some((product / time.denominator, product.is_multiple_of(time.denominator)))
    }

    /// The last breakpoint at or before `limit`; `None` on overflow.
    pub(super) fn last(&self, limit: Fraction, side: Side) -> Option<Fraction> {
        let mut last = Fraction::ZERO;
        for &capacity in &self.capacities {
            let (floor, is_all) = Self::whole_part(limit, capacity)?;
            let trees = if side == Side::Before && is_all { floor.saturating_sub(1) } else { floor };
            last = last.max(Fraction::new(trees, capacity.into()).expect("no capacity kept is zero"));
        }
        Some(last)
    }

    /// A breakpoint between two times that leaves about half of them on either side, if there is one; `None` on overflow.
    ///
    /// That of the capacity with most of them, as long as one has several. Then there are few, and they are sorted.
    pub(super) fn between(&self, low: Fraction, high: Fraction) -> Option<Option<Fraction>> {
        let mut most: (u128, Option<Fraction>) = (0, None);
        let mut singles = Vec::new();
        for &capacity in &self.capacities {
            let first = Self::whole_part(low, capacity)?.0 + 1;
            let (floor, is_all) = Self::whole_part(high, capacity)?;
            let end = if is_all { floor } else { floor + 1 };
            let count = end.saturating_sub(first);
            let middle = Fraction::new(first + count / 2, capacity.into());
            match count {
                0 => {}
                1 => singles.extend(middle),
                _ if count > most.0 => most = (count, middle),
                _ => {}
            }
        }
        if most.1.is_some() {
            return Some(most.1);
        }
        singles.sort_unstable();
        singles.dedup();
        Some(singles.get(singles.len() / 2).copied())
    }
}
