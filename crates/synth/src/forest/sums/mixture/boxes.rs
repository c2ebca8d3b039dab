//! Boxes whose switches add up for all their ranks, and what is around them.

use std::collections::BTreeSet;

use canopy_optimize::{Arc, Digraph, Fraction, Stop, isolating_cuts, strength};
use canopy_topology::Topology;
use num_integer::Integer;

use crate::error::SynthesisError;
use crate::forest::sums::lanes::{Lane, Lanes};
use crate::forest::sums::refusal;

/// Rounds in which the lanes that a kind of trees needs are looked for.
const ROUNDS_MAX: usize = 64;

/// The boxes of a network, by number.
pub(super) struct Boxes<'a> {
    topology: &'a Topology,
    switches: Vec<u32>,
    /// By node of the topology.
    box_of: Vec<Option<usize>>,
    /// By box: what trees of its ranks and switches weigh on its own lanes.
    weights: Vec<Fraction>,
    /// Greatest common divisor of all capacities, and the sum of those outside boxes in its units.
    unit: u64,
    outside: u64,
}

/// The network outside boxes, each of which is one terminal, but for one whose ranks are terminals of their own.
pub(super) struct Around {
    pub(super) left_out: Option<usize>,
    /// What trees weigh there, in bytes per second.
    pub(super) rate: Fraction,
    /// The part of the lanes not touching that box that they need; all of those that do.
    pub(super) others: Fraction,
    /// The weakest partition, in the numbers of [`Boxes::lanes_for`].
    pub(super) parts: Vec<Vec<u32>>,
}

impl<'a> Boxes<'a> {
    /// All boxes whose switches join their ranks alone; `None` if there are none.
    pub(super) fn find(
        topology: &'a Topology,
        switches: &[u32],
        stop: &dyn Stop,
    ) -> Result<Option<Self>, SynthesisError> {
        let lanes = Lanes::spanning(topology, switches);
        let box_count = lanes.boxes.iter().flatten().max().map_or(0, |&last| last as usize + 1);
        let mut members = vec![Vec::new(); box_count];
        let mut has_switch = vec![false; box_count];
        for (number, of_box) in (0..).zip(&lanes.boxes) {
            if let Some(of_box) = of_box {
                members[*of_box as usize].push(number);
                has_switch[*of_box as usize] |= number >= lanes.rank_count;
            }
        }
        let home = |number: u32| lanes.boxes.get(number as usize).copied().flatten();
        for lane in &lanes.list {
            for (end, other) in [(lane.low, lane.high), (lane.high, lane.low)] {
                if let Some(own) = home(end).filter(|_| end >= lanes.rank_count)
                    && home(other) != Some(own)
                {
                    has_switch[own as usize] = false;
                }
            }
        }
        let unit = lanes.list.iter().fold(0, |unit: u64, lane| unit.gcd(&lane.capacity)).max(1);
        let mut boxes = Self {
            topology,
            switches: switches.to_vec(),
            box_of: vec![None; topology.nodes().len()],
            weights: Vec::new(),
            unit,
            outside: 0,
        };
        for members in members.iter().zip(has_switch).filter_map(|(members, has_switch)| has_switch.then_some(members))
        {
            let is_member = |number: u32| members.binary_search(&number).is_ok();
            let inner = lanes.list.iter().filter(|lane| is_member(lane.low) && is_member(lane.high));
            let arcs = inner.map(|lane| Arc { from: lane.low, to: lane.high, capacity: lane.capacity }).collect();
            let terminals: Vec<bool> = (0..lanes.node_count).map(is_member).collect();
            let graph = Digraph { node_count: lanes.node_count, arcs };
            let weight =
                twice(strength(&graph, &terminals, stop).map_err(|error| refusal(error, lanes.rank_count))?.rate);
            if weight > Fraction::ZERO {
                for &number in members {
                    boxes.box_of[lanes.node(number) as usize] = Some(boxes.weights.len());
                }
                boxes.weights.push(weight);
            }
        }
        let outside = lanes.list.iter().filter(|lane| boxes.inside(&lanes, lane).is_none());
        let outside = outside.fold(0_u64, |sum, lane| sum.saturating_add(lane.capacity / unit));
        boxes.outside = outside;
        Ok((!boxes.weights.is_empty()).then_some(boxes))
    }

    /// What trees of a box weigh on its own lanes.
    pub(super) fn weight(&self, of_box: usize) -> Fraction {
        self.weights[of_box]
    }

    /// Boxes whose own trees weigh less, the thinnest first.
    pub(super) fn thinner_than(&self, rate: Fraction) -> Vec<usize> {
        let mut thin: Vec<usize> = (0..self.weights.len()).filter(|&of_box| self.weights[of_box] < rate).collect();
        thin.sort_by_key(|&of_box| (self.weights[of_box], of_box));
        thin
    }

    /// For each lane outside boxes, those that it touches, each pair once.
    pub(super) fn touched(&self) -> BTreeSet<[Option<usize>; 2]> {
        let lanes = Lanes::of(self.topology);
        let outside = lanes.list.iter().filter(|lane| self.inside(&lanes, lane).is_none());
        outside.map(|lane| [lane.low, lane.high].map(|number| self.box_of[lanes.node(number) as usize])).collect()
    }

    /// The box that both ends of a lane are in.
    fn inside(&self, lanes: &Lanes<'_>, lane: &Lane) -> Option<usize> {
        let [low, high] = [lane.low, lane.high].map(|number| self.box_of[lanes.node(number) as usize]);
        low.filter(|_| low == high)
    }

    fn touches(&self, lanes: &Lanes<'_>, lane: &Lane, of_box: Option<usize>) -> bool {
        of_box.is_some() && [lane.low, lane.high].iter().any(|&end| self.box_of[lanes.node(end) as usize] == of_box)
    }

    /// Lanes for trees that leave out the switches of a box.
    fn spanning(&self, left_out: Option<usize>) -> Lanes<'a> {
        let is_spanned = |&&switch: &&u32| left_out.is_none() || self.box_of[switch as usize] != left_out;
        let switches: Vec<u32> = self.switches.iter().filter(is_spanned).copied().collect();
        Lanes::spanning(self.topology, &switches)
    }

    /// What trees weigh outside, and which lanes they need for it. `None` where there are none, or numbers are too large.
    pub(super) fn around(&self, left_out: Option<usize>, stop: &dyn Stop) -> Result<Option<Around>, SynthesisError> {
        let lanes = self.spanning(left_out);
        let one = Fraction { numerator: 1, denominator: 1 };
        let terminals = lanes.terminals();
        let broken = |error| refusal(error, lanes.rank_count);
        let weigh = |others: Fraction| {
            let Some(graph) = self.graph(&lanes, left_out, others) else { return Ok(None) };
            let found = strength(&graph, &terminals, stop).map_err(broken)?;
            let Some(scale) = Fraction::new(self.unit.into(), others.denominator) else { return Ok(None) };
            Ok::<_, SynthesisError>(twice(found.rate).checked_mul(scale).map(|rate| (rate, found.parts, graph)))
        };
        let Some((rate, parts, _)) = weigh(one)? else { return Ok(None) };
        if rate == Fraction::ZERO {
            return Ok(None);
        }
        let mut around = Around { left_out, rate, others: one, parts };
        if left_out.is_none() {
            return Ok(Some(around));
        }
        let mut others = Fraction::ZERO;
        for _ in 0..ROUNDS_MAX {
            let Some((found, parts, graph)) = weigh(others)? else { return Ok(None) };
            if found >= rate {
                (around.others, around.parts) = (others, parts);
                break;
            }
            let mut both = graph;
            both.arcs.extend(both.arcs.clone().into_iter().map(|Arc { from, to, capacity }| Arc {
                from: to,
                to: from,
                capacity,
            }));
            let sets = isolating_cuts(&both, &parts, stop).map_err(broken)?;
            let Some(more) = self.needed(&lanes, left_out, rate, &sets) else { return Ok(None) };
            if more <= others || more > one {
                break;
            }
            others = more;
        }
        Ok(Some(around))
    }

    /// Lanes outside, in units and times the denominator of what the others have, and boxes that hold together.
    fn graph(&self, lanes: &Lanes<'_>, left_out: Option<usize>, others: Fraction) -> Option<Digraph> {
        let [part, whole] = [others.numerator, others.denominator].map(u64::try_from);
        let (part, whole) = part.ok().zip(whole.ok())?;
        let mut arcs = Vec::with_capacity(lanes.list.len());
        for lane in &lanes.list {
            let capacity = match self.inside(lanes, lane) {
                inside @ Some(_) if inside == left_out => 0,
                Some(_) => self.outside.checked_mul(whole)?,
                None if left_out.is_none() || self.touches(lanes, lane, left_out) => {
                    (lane.capacity / self.unit).checked_mul(whole)?
                }
                None => (lane.capacity / self.unit).checked_mul(part)?,
            };
            if capacity > 0 {
                arcs.push(Arc { from: lane.low, to: lane.high, capacity });
            }
        }
        Some(Digraph { node_count: lanes.node_count, arcs })
    }

    /// The part of the other lanes by which just so much leaves disjoint sets that trees of this weight can go into them.
    fn needed(
        &self,
        lanes: &Lanes<'_>,
        left_out: Option<usize>,
        rate: Fraction,
        sets: &[Vec<u32>],
    ) -> Option<Fraction> {
        let mut set_of = vec![None; lanes.node_count as usize];
        for (set, nodes) in sets.iter().enumerate() {
            nodes.iter().for_each(|&node| set_of[node as usize] = Some(set));
        }
        let (mut whole, mut part) = (0_u128, 0_u128);
        for lane in &lanes.list {
            let [low, high] = [lane.low, lane.high].map(|node| set_of[node as usize]);
            if low == high || self.inside(lanes, lane).is_some() {
                continue;
            }
            let sides = u128::from(low.is_some()) + u128::from(high.is_some());
            let leaving = sides * u128::from(lane.capacity);
            if self.touches(lanes, lane, left_out) { whole += leaving } else { part += leaving }
        }
        let times = 2 * (u128::try_from(sets.len()).ok()?.checked_sub(1)?);
        let wanted = rate.numerator.checked_mul(times)?.checked_sub(whole.checked_mul(rate.denominator)?)?;
        Fraction::new(wanted, part.checked_mul(rate.denominator)?)
    }

    /// Lanes in proportion to what trees take that weigh as much as they can outside, and their rate in units of these
    /// lanes. Each box has of its own what its trees need for just this rate.
    pub(super) fn lanes_for(&self, around: &Around) -> Option<(Lanes<'a>, Fraction)> {
        let rate = around.rate;
        let lanes = self.spanning(around.left_out);
        let mut capacities = Vec::with_capacity(lanes.list.len());
        for lane in &lanes.list {
            let whole = Fraction { numerator: lane.capacity.into(), denominator: 1 };
            capacities.push(match self.inside(&lanes, lane) {
                inside @ Some(_) if inside == around.left_out => Fraction::ZERO,
                Some(of_box) => whole.checked_mul(rate.checked_mul(self.weight(of_box).inverse()?)?)?,
                None if around.left_out.is_none() || self.touches(&lanes, lane, around.left_out) => whole,
                None => whole.checked_mul(around.others)?,
            });
        }
        let common = common_denominator(&capacities)?;
        let whole: Vec<u128> = capacities
            .iter()
            .map(|capacity| (common / capacity.denominator).checked_mul(capacity.numerator))
            .collect::<Option<_>>()?;
        let divisor = whole.iter().fold(0, |divisor: u128, capacity| divisor.gcd(capacity)).max(1);
        let list = lanes.list.iter().zip(whole).filter(|(_, capacity)| *capacity > 0);
        let list = list.map(|(lane, whole)| Some(Lane { capacity: u64::try_from(whole / divisor).ok()?, ..*lane }));
        let list = list.collect::<Option<Vec<Lane>>>()?;
        let rate = rate.checked_mul(Fraction::new(common, divisor)?)?;
        Some((lanes.with(list), rate))
    }
}

/// The least number that makes all fractions whole; `None` where it does not fit 128 bits.
pub(super) fn common_denominator(fractions: &[Fraction]) -> Option<u128> {
    let mut denominators = fractions.iter().map(|fraction| fraction.denominator);
    denominators.try_fold(1_u128, |common, next| common.checked_mul(next / next.gcd(&common)))
}

/// The kernel lets a link count half in either direction, a lane stands for one each way.
fn twice(rate: Fraction) -> Fraction {
    Fraction::new(2 * rate.numerator, rate.denominator).unwrap_or(Fraction::ZERO)
}
