//! Rounding, one commodity after the other.

use super::super::problem::{Commodity, ConcurrentError, ConcurrentProblem};
use super::Classes;
use super::support::Support;

/// Part of the greatest rest of a node below which an arc is rounded up only after all others.
const LITTLE: f64 = 0.5;

/// Rounds commodities and keeps account of what classes of arcs were due and given.
pub(super) struct Apportioner<'a, 'b> {
    problem: &'a ConcurrentProblem<'a>,
    classes: &'b mut Classes,
    /// By class: what the flows of all commodities so far propose, in chunks.
    due: Vec<f64>,
    chunks: u64,
    support: Support<'a>,
    /// By node: chunks that it has to get.
    needs: Vec<u64>,
    /// Buffers: of the arcs that enter one node.
    shares: Vec<u64>,
    open: Vec<(bool, f64, usize)>,
}

impl<'a, 'b> Apportioner<'a, 'b> {
    pub(super) fn new(problem: &'a ConcurrentProblem<'a>, classes: &'b mut Classes, chunks: u64) -> Self {
        let graph = problem.graph();
        let due = vec![0.0; classes.capacities.len()];
        let support = Support::new(graph.node_count, &graph.arcs);
        let needs = vec![0; graph.node_count as usize];
        Self { problem, classes, due, chunks, support, needs, shares: Vec::new(), open: Vec::new() }
    }

    /// Whole chunks for one commodity: arcs ascending.
    pub(super) fn round(
        &mut self,
        commodity: &Commodity,
        proposed: &[(u32, f64)],
    ) -> Result<Vec<(u32, u64)>, ConcurrentError> {
        let arcs = &self.problem.graph().arcs;
        let usable = |&&(arc, amount): &&(u32, f64)| {
            amount.is_finite()
                && arcs.get(arc as usize).is_some_and(|arc| arc.capacity > 0 && arc.to != commodity.source)
        };
        let mut amounts: Vec<(u32, f64)> = proposed.iter().filter(usable).copied().collect();
        self.support.untangle(&mut amounts);
        #[expect(clippy::cast_precision_loss, reason = "only steers what is rounded up")]
        let scale = self.chunks as f64 * commodity.copies as f64;
        for &(arc, amount) in &amounts {
            self.due[self.classes.of(arc)] += amount * scale;
        }
        self.needs.fill(0);
        for &(node, demand) in &commodity.sinks {
            self.needs[node as usize] = demand * self.chunks;
        }
        let mut whole = vec![0_u64; amounts.len()];
        let mut stranded = Vec::new();
        for position in (0..self.support.order().len()).rev() {
            let node = self.support.order()[position];
            let need = std::mem::take(&mut self.needs[node as usize]);
            if need == 0 || node == commodity.source {
                continue;
            }
            if self.support.entering(node).is_empty() {
                stranded.push((node, need));
                continue;
            }
            self.divide(node, need, commodity.copies, &amounts);
            for (&entering, &share) in self.support.entering(node).iter().zip(&self.shares) {
                let (arc, _) = amounts[entering as usize];
                whole[entering as usize] = share;
                self.needs[arcs[arc as usize].from as usize] += share;
                self.classes.add(arc, u128::from(share) * u128::from(commodity.copies));
            }
        }
        let mut rounded: Vec<(u32, u64)> = amounts.iter().map(|&(arc, _)| arc).zip(whole).collect();
        // What the proposal brings nothing to goes over as few arcs as possible.
        for (node, need) in stranded {
            let unreachable = ConcurrentError::Unreachable { from: commodity.source, to: node };
            for arc in self.support.fewest_arcs(commodity.source, node).ok_or(unreachable)? {
                rounded.push((arc, need));
                self.classes.add(arc, u128::from(need) * u128::from(commodity.copies));
            }
        }
        rounded.sort_unstable_by_key(|&(arc, _)| arc);
        rounded.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 += next.1;
            }
            same
        });
        rounded.retain(|&(_, share)| share > 0);
        Ok(rounded)
    }

    /// Divides what a node needs among the arcs that enter it, into `shares`: first the whole parts, then, of the arcs with
    /// much of a rest, one more to those whose classes were given least of what was due, for their capacity.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "floats only steer what is rounded up; what is given adds up exactly"
    )]
    fn divide(&mut self, node: u32, need: u64, copies: u64, amounts: &[(u32, f64)]) {
        let entering = self.support.entering(node);
        let total: f64 = entering.iter().map(|&position| amounts[position as usize].1).sum();
        self.shares.clear();
        let mut left = need;
        for &position in entering {
            let part = need as f64 * (amounts[position as usize].1 / total);
            let share = (part.max(0.0) as u64).min(left);
            self.shares.push(share);
            left -= share;
        }
        // An arc that hardly anything was proposed for would be a long way around.
        let rest = |slot: usize, shares: &[u64]| {
            need as f64 * (amounts[entering[slot] as usize].1 / total) - shares[slot] as f64
        };
        let greatest = (0..entering.len()).map(|slot| rest(slot, &self.shares)).fold(0.0, f64::max);
        self.open.clear();
        for (slot, &position) in entering.iter().enumerate() {
            let class = self.classes.of(amounts[position as usize].0);
            let given = self.classes.loads[class] as f64 + (self.shares[slot] + 1) as f64 * copies as f64;
            let ahead = (given - self.due[class]) / self.classes.capacities[class] as f64;
            self.open.push((rest(slot, &self.shares) < greatest * LITTLE, ahead, slot));
        }
        self.open.sort_unstable_by(|left, right| {
            left.0.cmp(&right.0).then(left.1.total_cmp(&right.1)).then(left.2.cmp(&right.2))
        });
        // As many as there are arcs would be whole parts; more are left where floats are too short, and go to the first.
        let each = left / entering.len() as u64;
        let extra = left % entering.len() as u64;
        for (&(.., slot), place) in self.open.iter().zip(0_u64..) {
            self.shares[slot] += each + u64::from(place < extra);
        }
    }
}
