//! Who of a box passes trees on within it.

use std::ops::Range;

use canopy_optimize::Stop;

use super::entries::Entries;
use super::layout::Layout;
use super::spans::Span;
use super::transport::{transport, transport_anyhow};
use crate::error::SynthesisError;
use crate::forest::pattern::quotas;

/// How the trees of one box enter the members of another.
pub(super) struct Passage {
    /// Of the trees in a row, those that each member is the primary of.
    regions: Vec<Range<i64>>,
    /// By member, then by primary: so many of those enter it from outside all the same, the first of the region.
    extras: Vec<Vec<i64>>,
}

impl Passage {
    /// Which trees enter a member from outside.
    pub(super) fn entering(&self, member: usize) -> Vec<Span<()>> {
        let extra = |(region, &count): (&Range<i64>, &i64)| region.start..region.start + count;
        let mut spans: Vec<Range<i64>> = self.regions.iter().zip(&self.extras[member]).map(extra).collect();
        spans[member] = self.regions[member].clone();
        spans.into_iter().filter(|at| at.start < at.end).map(|at| Span { at, of: () }).collect()
    }

    /// Which trees enter a member from its own box, and from which member.
    pub(super) fn passed_on(&self, member: usize) -> Vec<Span<usize>> {
        let rest =
            |(of, (region, &count)): (usize, (&Range<i64>, &i64))| Span { at: region.start + count..region.end, of };
        let spans = self.regions.iter().zip(&self.extras[member]).enumerate().map(rest);
        spans.filter(|span| span.of != member && span.at.start < span.at.end).collect()
    }
}

/// The passages into a box, by the box that trees come from; `None` if members cannot pass on so much.
///
/// Of those that a tree enters from outside one is its *primary*, and sends it to all who did not get it so. A member of a
/// box of n that is primary of P trees, E of which enter others from outside, too, sends `(n − 1)·P − E`. So first all P
/// are chosen, for E as equal as what members can send allows; then, by flows, which trees of each box these are, and in
/// which of them others need nothing.
///
/// * **Errors.** Stopped. **Cost.** Some flows on boxes · members of the box, and two on boxes · members².
pub(super) fn passages(
    layout: &Layout,
    to: usize,
    entries: &Entries,
    stop: &dyn Stop,
) -> Result<Option<Vec<Passage>>, SynthesisError> {
    let members = &layout.boxes[to];
    let of_boxes = layout.demands.iter().enumerate();
    let trees: Vec<i64> = of_boxes.map(|(from, &demand)| if from == to { 0 } else { demand }).collect();
    let entered: Vec<Vec<i64>> =
        entries.iter().map(|entries| members.iter().map(|&member| entries[member]).collect()).collect();
    let sums: Vec<i64> = (0..members.len()).map(|member| entered.iter().map(|row| row[member]).sum()).collect();
    let spare: Vec<i64> = members.iter().map(|&member| layout.spare(member)).collect();
    let Some(chosen) = chosen(&sums, &spare, trees.iter().sum()) else { return Ok(None) };
    let most = |from: usize, member: usize| entered[from][member];
    let Some(primaries) = transport(&trees, &chosen, most, layout.unit, stop)? else { return Ok(None) };

    // By box and member: what enters it from outside beyond what it is the primary of.
    let place = |row: usize| (row / members.len(), row % members.len());
    let extras = |row: usize| entered[place(row).0][place(row).1] - primaries[place(row).0][place(row).1];
    let gives: Vec<i64> = (0..trees.len() * members.len()).map(extras).collect();
    let others = i64::try_from(members.len() - 1).expect("members are counted in u32");
    let least: Vec<i64> = chosen.iter().zip(&spare).map(|(chosen, spare)| (others * chosen - spare).max(0)).collect();
    let rest = gives.iter().sum::<i64>() - least.iter().sum::<i64>();
    let room: Vec<i64> = chosen.iter().zip(&least).map(|(chosen, least)| others * chosen - least).collect();
    if rest < 0 || rest > room.iter().sum() {
        return Ok(None);
    }
    let needs: Vec<i64> = least.iter().zip(quotas(&room, rest)).map(|(least, more)| least + more).collect();
    let most = |row: usize, primary: usize| if place(row).1 == primary { 0 } else { primaries[place(row).0][primary] };
    let Some(extras) = transport_anyhow(&gives, &needs, most, layout.unit, stop)? else { return Ok(None) };
    let passage = |(primaries, extras): (&Vec<i64>, &[Vec<i64>])| {
        let mut start = 0;
        let regions = primaries.iter().map(|count| {
            start += count;
            start - count..start
        });
        Passage { regions: regions.collect(), extras: extras.to_vec() }
    };
    Ok(Some(primaries.iter().zip(extras.chunks(members.len())).map(passage).collect()))
}

/// How many trees each member is the primary of, `all` in all: no more than enter it from outside, and so that what they
/// lack to send all of them to all others is as equal as can be.
fn chosen(entered: &[i64], spare: &[i64], all: i64) -> Option<Vec<i64>> {
    let others = i64::try_from(entered.len() - 1).expect("members are counted in u32").max(1);
    let with = |lack: i64| -> Vec<i64> {
        entered
            .iter()
            .zip(spare)
            .map(|(&entered, spare)| (spare.saturating_add(lack).max(0) / others).min(entered))
            .collect()
    };
    let (mut low, mut high) = (-spare.iter().copied().max()?, others.checked_mul(all)?);
    if with(high).iter().sum::<i64>() < all {
        return None;
    }
    while low < high {
        // Rounded down, also below zero.
        let middle = low + (high - low) / 2;
        let suffices = with(middle).iter().sum::<i64>() >= all;
        (low, high) = if suffices { (low, middle) } else { (middle + 1, high) };
    }
    let mut chosen = with(high);
    let mut surplus = chosen.iter().sum::<i64>() - all;
    // Less by one for the whole of them would be too few, so one from each of some is enough.
    for chosen in chosen.iter_mut().filter(|chosen| **chosen > 0) {
        let less = surplus.min(1);
        *chosen -= less;
        surplus -= less;
    }
    (surplus == 0).then_some(chosen)
}
