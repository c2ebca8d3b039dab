//! A balanced part that takes as little as it can from each arc, in floats: where one reaches the cut, no program is needed.

use super::way::Way;

/// Times that all nodes are balanced one after the other, at most: in a network without narrow places some ten do.
const SWEEPS_MAX: u32 = 256;

/// What enters a node and what leaves it may differ by this part.
const TOLERANCE: f64 = 1e-9;

/// Level of nodes and heads at first, where tails that send out what they like are at 1: so high that these are full, as they
/// mostly are in the end.
const START: f64 = 16.0;

/// Times that the level of a node is corrected by which of its arcs are full.
const CORRECTIONS_MAX: u32 = 8;

/// What arcs keep if each is full that leads up, and the others carry less the more they lead down; `None` where levels of nodes
/// for which all needs are met are not found soon.
///
/// Of a regular network all arcs keep the same part. The more a node lacks, the higher it is.
///
/// * **In.** By arc, its capacity, near 1; by node, whether it sends out what enters it, and else how much must enter it.
/// * **Out.** By arc, balanced up to [`TOLERANCE`]. **Source.** Our own, after the scaling of matrices (Sinkhorn 1964).
/// * **Cost.** O(arcs) for each of [`SWEEPS_MAX`] sweeps at most.
pub(super) fn evenly_kept(ways: &[Way], capacities: &[f64], is_balanced: &[bool], needs: &[f64]) -> Option<Vec<f64>> {
    let levels = is_balanced.iter().map(|&is_balanced| (if is_balanced { START } else { 1.0 }, START));
    let mut arcs = Arcs { ways, capacities, levels: levels.collect() };
    let mut entering = vec![Vec::new(); is_balanced.len()];
    let mut leaving = vec![Vec::new(); is_balanced.len()];
    for (arc, &(from, to, _)) in ways.iter().enumerate() {
        leaving[from as usize].push(arc);
        entering[to as usize].push(arc);
    }
    for _ in 0..SWEEPS_MAX {
        let mut is_done = true;
        for node in 0..is_balanced.len() {
            is_done &= if is_balanced[node] {
                arcs.balance(node, &entering[node], &leaving[node])
            } else {
                arcs.meet(node, &entering[node], needs[node])
            };
        }
        if is_done {
            return Some((0..ways.len()).map(|arc| arcs.kept(arc)).collect());
        }
    }
    None
}

struct Arcs<'a> {
    ways: &'a [Way],
    capacities: &'a [f64],
    /// By node, as the tail of an arc and as its head: the same of those that are balanced.
    levels: Vec<(f64, f64)>,
}

impl Arcs<'_> {
    fn tail(&self, arc: usize) -> f64 {
        self.levels[self.ways[arc].0 as usize].0
    }

    fn head(&self, arc: usize) -> f64 {
        self.levels[self.ways[arc].1 as usize].1
    }

    fn kept(&self, arc: usize) -> f64 {
        self.capacities[arc] * (self.head(arc) / self.tail(arc)).min(1.0)
    }

    fn sum(&self, arcs: &[usize]) -> f64 {
        arcs.iter().map(|&arc| self.kept(arc)).sum()
    }

    /// Amount that enters a node at a level, as the part of full arcs and the slope of the others.
    fn entering(&self, arcs: &[usize], level: f64) -> (f64, f64) {
        let (mut full, mut slope) = (0.0, 0.0);
        for &arc in arcs {
            let (capacity, tail) = (self.capacities[arc], self.tail(arc));
            if level < tail { slope += capacity / tail } else { full += capacity }
        }
        (full, slope)
    }

    /// Moves a node to the level at which as much enters it as leaves it. Says whether it was there.
    fn balance(&mut self, node: usize, entering: &[usize], leaving: &[usize]) -> bool {
        let is_there = |arcs: &Self| {
            let (enters, leaves) = (arcs.sum(entering), arcs.sum(leaving));
            (enters - leaves).abs() <= TOLERANCE * enters.max(leaves)
        };
        if is_there(self) {
            return true;
        }
        for _ in 0..CORRECTIONS_MAX {
            let level = self.levels[node].0;
            // What enters is `full + slope·level`, and what leaves `full + slope/level`.
            let enters = self.entering(entering, level);
            let mut leaves = (0.0, 0.0);
            for &arc in leaving {
                let (capacity, head) = (self.capacities[arc], self.head(arc));
                if head < level { leaves.1 += capacity * head } else { leaves.0 += capacity }
            }
            let surplus = enters.0 - leaves.0;
            let root = f64::sqrt(surplus * surplus + 4.0 * enters.1 * leaves.1);
            // Of the two forms of a root the one that does not cancel.
            let next =
                if surplus < 0.0 { (root - surplus) / (2.0 * enters.1) } else { 2.0 * leaves.1 / (root + surplus) };
            // Without slopes on one side the level lies beyond the next of the other ends.
            let next = if next.is_finite() && next > 0.0 {
                next
            } else if surplus > 0.0 {
                level / 2.0
            } else {
                level * 2.0
            };
            self.levels[node] = (next, next);
            if is_there(self) {
                break;
            }
        }
        false
    }

    /// Lifts a node, as a head, until enough enters it. Says whether it was there.
    fn meet(&mut self, node: usize, entering: &[usize], need: f64) -> bool {
        let enough = need * (1.0 - TOLERANCE);
        if self.sum(entering) >= enough {
            return true;
        }
        for _ in 0..CORRECTIONS_MAX {
            let level = self.levels[node].1;
            let enters = self.entering(entering, level);
            if enters.1 == 0.0 {
                break;
            }
            self.levels[node].1 = ((need - enters.0) / enters.1).max(level);
            if self.sum(entering) >= enough {
                break;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Hosts that send and take in so much each, by a node for each way, over links of 1 to these next ones around a ring.
    fn hosts(count: u32, send: u128, steps: &[u32], missing: &[(u32, u32)]) -> (Vec<Way>, Vec<bool>) {
        let mut ways = Vec::new();
        for host in 0..count {
            ways.extend([(host, count + host, send), (2 * count + host, host, send)]);
            let next = steps.iter().map(|step| (host, (host + step) % count)).filter(|pair| !missing.contains(pair));
            ways.extend(next.map(|(from, to)| (count + from, 2 * count + to, 1)));
        }
        (ways, (0..3 * count).map(|node| node >= count).collect())
    }

    fn kept(ways: &[Way], is_balanced: &[bool], need: f64) -> Option<Vec<f64>> {
        let capacities: Vec<f64> = ways.iter().map(|&(.., capacity)| capacity as f64).collect();
        let needs: Vec<f64> = is_balanced.iter().map(|&is_balanced| if is_balanced { 0.0 } else { need }).collect();
        evenly_kept(ways, &capacities, is_balanced, &needs)
    }

    #[test]
    fn regular_hosts_use_the_same_part_of_all_links() {
        let (ways, is_balanced) = hosts(20, 3, &[1, 2, 5, 19], &[]);
        let kept = kept(&ways, &is_balanced, 3.0).unwrap();
        let part = |(&(.., capacity), kept): (&Way, f64)| if capacity == 1 { kept / 0.75 } else { kept / 3.0 };
        assert!(ways.iter().zip(kept).map(part).all(|part| (part - 1.0).abs() < 1e-8));
    }

    #[test]
    fn what_can_not_be_met_is_not_found() {
        let (ways, is_balanced) = hosts(20, 3, &[1, 2], &[]);
        assert_eq!(kept(&ways, &is_balanced, 3.0), None);
    }

    proptest! {
        /// Two links missing anywhere of the eight into and out of each host leave the five that it needs.
        #[test]
        fn what_is_kept_is_balanced_and_enough(one in (0_u32..20, 0_usize..8), other in (0_u32..20, 0_usize..8)) {
            let steps = [1, 2, 5, 7, 11, 13, 17, 19];
            let missing = [one, other].map(|(from, step)| (from, (from + steps[step]) % 20));
            let (ways, is_balanced) = hosts(20, 5, &steps, &missing);
            let kept = kept(&ways, &is_balanced, 5.0).expect("it is soon found");
            let mut sums = vec![(0.0_f64, 0.0_f64); is_balanced.len()];
            for (&(from, to, _), kept) in ways.iter().zip(&kept) {
                sums[to as usize].0 += kept;
                sums[from as usize].1 += kept;
            }
            for (&(entering, leaving), &is_balanced) in sums.iter().zip(&is_balanced) {
                let is_right = if is_balanced { (entering - leaving).abs() < 1e-7 } else { entering > 5.0 - 1e-7 };
                prop_assert!(is_right);
            }
        }
    }
}
