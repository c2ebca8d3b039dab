//! Which switches outside each tree comes over when it enters each box once.

use std::collections::BTreeMap;

use canopy_optimize::Stop;

use super::layout::Layout;
use super::transport::transport;
use crate::error::SynthesisError;
use crate::forest::ask;
use crate::forest::pattern::quotas;

/// By box that trees come from, box that they go to, and switch outside: how many come in that way.
pub(super) type Least = Vec<Vec<BTreeMap<usize, i64>>>;

/// Every tree once into every box, none over a switch that not both boxes are on, and no more than members may take by
/// `bounds`. `None` if that was not found.
///
/// In proportion to what boxes can take from each switch, if that is possible; else one box after the other, those that
/// can take little more than they must first, from each other box as evenly over the switches as it can send. Where a box
/// cannot send each of its trees to all others, others have to.
///
/// * **Errors.** Stopped. **Cost.** O(boxes² · switches), and where proportions do not do, a flow on boxes · switches for
///   each box.
pub(super) fn least(layout: &Layout, bounds: &[(i64, i64)], stop: &dyn Stop) -> Result<Option<Least>, SynthesisError> {
    let ways = Ways::new(layout, bounds);
    match ways.in_proportion(layout, stop)? {
        Some(least) if ways.suffice_for(&least) => Ok(Some(least)),
        Some(_) => ways.in_turn(layout, stop),
        None => Ok(None),
    }
}

/// By box: what it can take from each switch and send to it, where that is anything.
struct Ways {
    takes: Vec<BTreeMap<usize, i64>>,
    sends: Vec<BTreeMap<usize, i64>>,
}

impl Ways {
    fn new(layout: &Layout, bounds: &[(i64, i64)]) -> Self {
        let mut takes = vec![BTreeMap::new(); layout.boxes.len()];
        let mut sends = takes.clone();
        for (trunk, of_boxes) in layout.trunks.iter().enumerate() {
            for (&in_box, members) in of_boxes {
                let of_takes: i64 = members.iter().map(|&member| bounds[member].1).sum();
                let of_sends: i64 = members.iter().map(|&member| layout.members[member].outer.sends).sum();
                takes[in_box].extend(Some((trunk, of_takes)).filter(|&(_, most)| most > 0));
                sends[in_box].extend(Some((trunk, of_sends)).filter(|&(_, most)| most > 0));
            }
        }
        Self { takes, sends }
    }

    /// In proportion to what boxes can take; `None` if two boxes have no switch in common.
    fn in_proportion(&self, layout: &Layout, stop: &dyn Stop) -> Result<Option<Least>, SynthesisError> {
        let count = layout.boxes.len();
        let mut least: Least = vec![vec![BTreeMap::new(); count]; count];
        for (from, row) in least.iter_mut().enumerate().filter(|&(from, _)| layout.demands[from] > 0) {
            ask(stop)?;
            for (to, amounts) in row.iter_mut().enumerate().filter(|&(to, _)| to != from) {
                let is_shared = |(trunk, _): &(&usize, _)| self.sends[from].contains_key(trunk);
                let mut shared: Vec<(&usize, &i64)> = self.takes[to].iter().filter(is_shared).collect();
                if shared.is_empty() {
                    return Ok(None);
                }
                // What does not divide goes to another switch each time.
                let turn = (from + to) % shared.len();
                shared.rotate_left(turn);
                let units = layout.demands[from] / layout.unit;
                // Quotas end at what there is, proportions do not.
                let most: Vec<i64> = shared.iter().map(|(_, most)| most.saturating_mul(units)).collect();
                let parts = shared.iter().zip(quotas(&most, units));
                amounts.extend(parts.map(|((trunk, _), units)| (**trunk, units * layout.unit)));
            }
        }
        Ok(Some(least))
    }

    /// Whether boxes can send and take so much.
    fn suffice_for(&self, least: &Least) -> bool {
        let (mut takes, mut sends) = (self.takes.clone(), self.sends.clone());
        // Takes off what each pair of boxes sends at least over each trunk: O(boxes² · trunks).
        for (from, row) in least.iter().enumerate() {
            for (to, amounts) in row.iter().enumerate() {
                for (trunk, amount) in amounts {
                    takes[to].entry(*trunk).and_modify(|left| *left -= amount);
                    sends[from].entry(*trunk).and_modify(|left| *left -= amount);
                }
            }
        }
        takes.iter().chain(&sends).all(|left| left.values().all(|&left| left >= 0))
    }

    /// One box after the other.
    fn in_turn(&self, layout: &Layout, stop: &dyn Stop) -> Result<Option<Least>, SynthesisError> {
        let count = layout.boxes.len();
        let mut order: Vec<usize> = (0..count).collect();
        let slack = |&to: &usize| self.takes[to].values().sum::<i64>() - (layout.total - layout.demands[to]);
        order.sort_by_key(slack);
        let mut sends = self.sends.clone();
        let mut least: Least = vec![vec![BTreeMap::new(); count]; count];
        for (done, to) in order.into_iter().enumerate() {
            ask(stop)?;
            let trunks: Vec<usize> = self.takes[to].keys().copied().collect();
            let gives: Vec<i64> = self.takes[to].values().copied().collect();
            let needs = layout.demands.iter().enumerate().map(|(from, &demand)| if from == to { 0 } else { demand });
            let needs: Vec<i64> = needs.collect();
            // What a box can send is kept for the boxes to come, too, as far as that is possible.
            let boxes_left = i64::try_from(count - done).expect("boxes are counted in u32");
            let left = |trunk: usize, from: usize| sends[from].get(&trunks[trunk]).copied().unwrap_or_default().max(0);
            let all = |trunk: usize, from: usize| left(trunk, from).min(needs[from]);
            let part = |trunk: usize, from: usize| {
                let units = (left(trunk, from) / layout.unit + boxes_left - 1) / boxes_left;
                all(trunk, from).min(units * layout.unit)
            };
            let any =
                |trunk: usize, from: usize| if self.sends[from].contains_key(&trunks[trunk]) { needs[from] } else { 0 };
            let mut amounts = transport(&gives, &needs, part, layout.unit, stop)?;
            if amounts.is_none() {
                amounts = transport(&gives, &needs, all, layout.unit, stop)?;
            }
            if amounts.is_none() {
                amounts = transport(&gives, &needs, any, layout.unit, stop)?;
            }
            let Some(amounts) = amounts else {
                return Ok(None);
            };
            for (row, &trunk) in amounts.iter().zip(&trunks) {
                for (from, &amount) in row.iter().enumerate().filter(|&(_, &amount)| amount > 0) {
                    sends[from].entry(trunk).and_modify(|left| *left -= amount);
                    least[from][to].insert(trunk, amount);
                }
            }
        }
        Ok(Some(least))
    }
}
