//! Trees that span the switches of most boxes, each kind of them leaving out those of another box.
//!
//! Where all trees span all switches, a box holds them up as soon as its thinnest lane is full, while there may be lanes
//! left outside the boxes. A tree that leaves out the switches of one box reaches each rank there from outside, and has a hop
//! less for each switch. So of trees of total weight x, a box whose own trees weigh c takes part in those of weight c, and the
//! other x − c reach its ranks one by one. The lanes outside are divided between the kinds of trees: a kind that weighs X
//! on all lanes that touch its box and on λ of every other takes y/X of the former and λ·y/X of the latter for a weight of y.
//! What is left weighs as much of the trees that span all switches as it is of all lanes.
//!
//! That is the optimum where every kind fills what it takes, as in racks that are alike around a fabric that blocks nothing.
//!
//! Source: our own.

mod boxes;
mod shares;

use canopy_optimize::{Fraction, Stop};
use canopy_schedule::{Forest, Shares};
use canopy_topology::Topology;

use crate::error::SynthesisError;
use crate::forest::sums::lanes::{self, Lanes};
use crate::forest::sums::rooted_at;
use crate::forest::sums::rooting::{self, Rooted};
use crate::progress::Progress;
use boxes::{Boxes, common_denominator};

/// Most boxes whose switches some trees may leave out.
const BOXES_MAX: usize = 64;

/// Trees of several kinds, which together are faster than trees that all span the same switches.
pub(super) struct Mixture<'a> {
    /// Of all of them, in bytes per second.
    pub(super) rate: Fraction,
    kinds: Vec<Kind<'a>>,
}

/// Trees that span the same switches.
struct Kind<'a> {
    /// Their part of all trees.
    share: Fraction,
    /// With lanes in proportion to what they take.
    lanes: Lanes<'a>,
    /// What trees on these lanes weigh.
    rate: Fraction,
    /// Sets that may be pieces of their own.
    parts: Vec<Vec<u32>>,
}

impl<'a> Mixture<'a> {
    /// Looks for a mixture that is faster than `least`; `None` where this finds none, or its numbers are too large.
    ///
    /// * **Errors.** Stopped. **Cost.** A few strengths for each box.
    pub(super) fn find(
        topology: &'a Topology,
        least: Fraction,
        stop: &dyn Stop,
    ) -> Result<Option<Self>, SynthesisError> {
        let switches = lanes::able(topology);
        let Some(boxes) = Boxes::find(topology, &switches, stop)? else { return Ok(None) };
        let Some(all) = boxes.around(None, stop)? else { return Ok(None) };
        let thin = boxes.thinner_than(all.rate);
        if thin.is_empty() || thin.len() > BOXES_MAX {
            return Ok(None);
        }
        let mut without = Vec::with_capacity(thin.len());
        for &of_box in &thin {
            let Some(around) = boxes.around(Some(of_box), stop)? else { return Ok(None) };
            without.push(around);
        }
        let Some(shares) = shares::divide(&boxes, &all, &without, least) else { return Ok(None) };
        let mut kinds = Vec::with_capacity(without.len() + 1);
        for (around, share) in std::iter::once(all).chain(without).zip(shares.of_kinds) {
            if share == Fraction::ZERO {
                continue;
            }
            let Some((lanes, rate)) = boxes.lanes_for(&around) else { return Ok(None) };
            kinds.push(Kind { share, lanes, rate, parts: around.parts });
        }
        Ok(Some(Self { rate: shares.rate, kinds }))
    }

    /// Plans all kinds, and puts them together in proportion to their parts. Without weights, all ranks are roots of equal parts
    /// of the trees that span all switches, and others have their roots at their centres: each root costs a tree.
    pub(super) fn plan(
        &self,
        rank_count: u32,
        weights: Option<&[u64]>,
        stop: &dyn Stop,
        progress: &dyn Progress,
    ) -> Result<(Forest, Shares), SynthesisError> {
        let mut kinds = Vec::with_capacity(self.kinds.len());
        let equal = vec![1; rank_count as usize];
        for Kind { share, lanes, rate, parts } in &self.kinds {
            let weights = weights.or_else(|| kinds.is_empty().then_some(&equal[..]));
            kinds.push((*share, rooted_at(lanes, (*rate, parts), weights, stop, progress)?));
        }
        let too_many = || SynthesisError::TooManyTrees { trees_per_rank: u128::MAX, rank_count };
        rooting::write(rank_count, together(kinds).ok_or_else(too_many)?, stop)
    }
}

/// Trees of all kinds, each kind as often as its part says. `None` where the trees exceed 64 bits.
fn together(kinds: Vec<(Fraction, Rooted)>) -> Option<Rooted> {
    let each = |(share, rooted): &(Fraction, Rooted)| share.checked_mul(Fraction::new(1, rooted.tree_count.into())?);
    let each: Vec<Fraction> = kinds.iter().map(each).collect::<Option<_>>()?;
    let tree_count = common_denominator(&each)?;
    let mut all = Rooted { tree_count: u64::try_from(tree_count).ok()?, trees: Vec::new(), routes: Vec::new() };
    for ((_, rooted), part) in kinds.into_iter().zip(each) {
        let factor = u64::try_from((tree_count / part.denominator).checked_mul(part.numerator)?).ok()?;
        let first = all.routes.len();
        all.routes.extend(rooted.routes);
        for (hung, mut tree) in rooted.trees {
            tree.weight = tree.weight.checked_mul(factor)?;
            for (route, count) in tree.hops.iter_mut().flat_map(|hop| &mut hop.carriers) {
                *route += first;
                *count = count.checked_mul(factor)?;
            }
            all.trees.push((hung, tree));
        }
    }
    Some(all)
}
