//! How many trees of each box enter each rank from outside.

use std::collections::BTreeMap;

use canopy_optimize::Stop;

use super::layout::Layout;
use super::least::{Least, least};
use super::transport::transport;
use crate::error::SynthesisError;
use crate::forest::ask;
use crate::forest::pattern::quotas;

/// By box that trees come from, then by member: how many enter it from outside.
pub(super) type Entries = Vec<Vec<i64>>;

/// Entries such that every tree can reach every box and what is left for the switches of boxes fits those; `None` if none
/// were found.
///
/// With D all demands, `d(v)` that of a member and `d(b)` that of its box, a member v can take `inner(v)` from its own box,
/// hence needs `D − d(v) − inner(v)` from outside, and can take `outer(v)` there. A box takes at least `d(b')` from each
/// other box, so that each tree comes in; which switches those come over is settled beforehand, in proportion to what its
/// members can take from each, and so each switch is a transport problem of its own.
///
/// * **Errors.** Stopped. **Cost.** Some flows on boxes² for each switch, and on boxes · members for each box with several
///   members on one.
pub(super) fn entries(layout: &Layout, stop: &dyn Stop) -> Result<Option<Entries>, SynthesisError> {
    let Some(bounds) = bounds(layout) else {
        return Ok(None);
    };
    let Some(least) = least(layout, &bounds, stop)? else {
        return Ok(None);
    };
    let mut entries = vec![vec![0; layout.members.len()]; layout.boxes.len()];
    for trunk in 0..layout.trunks.len() {
        let Some(amounts) = between_boxes(layout, trunk, &bounds, &least, stop)? else {
            return Ok(None);
        };
        for (to, members) in &layout.trunks[trunk] {
            ask(stop)?;
            let into: Vec<i64> = amounts.iter().map(|row| row[*to]).collect();
            let Some(divided) = among_members(layout, &into, members, &bounds, stop)? else {
                return Ok(None);
            };
            for (entries, row) in entries.iter_mut().zip(divided) {
                row.iter().zip(members).for_each(|(&amount, &member)| entries[member] = amount);
            }
        }
    }
    Ok(Some(entries))
}

/// What goes over a switch, by box that it comes from and box that it goes to: what is settled, and more where members
/// need it.
fn between_boxes(
    layout: &Layout,
    trunk: usize,
    bounds: &[(i64, i64)],
    least: &Least,
    stop: &dyn Stop,
) -> Result<Option<Vec<Vec<i64>>>, SynthesisError> {
    let count = layout.boxes.len();
    let settled = |row: &[BTreeMap<usize, i64>]| -> Vec<i64> {
        row.iter().map(|over| over.get(&trunk).copied().unwrap_or_default()).collect()
    };
    let mut amounts: Vec<Vec<i64>> = least.iter().map(|row| settled(row)).collect();
    // By box: what it can send beyond that, needs to take, and could, and over how many members.
    let mut gives: Vec<i64> = amounts.iter().map(|row| -row.iter().sum::<i64>()).collect();
    let (mut needs, mut room, mut ways) = (vec![0; count], vec![0; count], vec![0; count]);
    for (&in_box, members) in &layout.trunks[trunk] {
        let into: i64 = amounts.iter().map(|row| row[in_box]).sum();
        let sum = |of: &dyn Fn(usize) -> i64| members.iter().map(|&member| of(member)).sum::<i64>();
        gives[in_box] += sum(&|member| layout.members[member].outer.sends);
        needs[in_box] = (sum(&|member| bounds[member].0) - into).max(0);
        room[in_box] = sum(&|member| bounds[member].1) - into;
        ways[in_box] = sum(&|_| 1);
    }
    // What boxes cannot send of their own trees, others send for them.
    let lacking: i64 = gives.iter().map(|&gives| (-gives).max(0)).sum();
    gives.iter_mut().for_each(|gives| *gives = (*gives).max(0));
    if lacking > gives.iter().sum() || room.iter().any(|&room| room < 0) {
        return Ok(None);
    }
    let helps = quotas(&gives, lacking);
    gives.iter_mut().zip(helps).for_each(|(gives, helps)| *gives -= helps);
    let most =
        |from: usize, to: usize| if from == to { 0 } else { ways[to] * layout.demands[from] - amounts[from][to] };
    let Some(more) = transport(&gives, &needs, most, layout.unit, stop)? else {
        return Ok(None);
    };
    for (amounts, more) in amounts.iter_mut().zip(more) {
        amounts.iter_mut().zip(more).for_each(|(amount, more)| *amount += more);
    }
    Ok(Some(amounts))
}

/// By member: the least and the most it takes from outside; `None` if one is more than the other.
fn bounds(layout: &Layout) -> Option<Vec<(i64, i64)>> {
    let mut bounds = Vec::with_capacity(layout.members.len());
    for (position, member) in layout.members.iter().enumerate() {
        let of_box = layout.demands[member.in_box];
        let low = (layout.total - member.demand - member.inner.receives).max(0);
        // Whoever is on no switch outside takes nothing from there.
        let outer = member.trunk.map_or(0, |_| member.outer.receives);
        let high = outer.min(layout.total - of_box);
        // All others of its box send to it.
        let fits = low <= high && of_box - member.demand <= member.inner.receives && layout.spare(position) >= 0;
        fits.then(|| bounds.push((low, high)))?;
    }
    // What members can send on may be less than what they could take.
    for (in_box, members) in layout.boxes.iter().enumerate() {
        let count = i64::try_from(members.len()).expect("members are counted in u32");
        let spare: i64 = members.iter().map(|&member| layout.spare(member)).sum();
        let low: i64 = members.iter().map(|&member| bounds[member].0).sum();
        let missing = (count * (layout.total - layout.demands[in_box]) - spare - low).max(0);
        let room: Vec<i64> = members.iter().map(|&member| bounds[member].1 - bounds[member].0).collect();
        if missing > room.iter().sum() {
            return None;
        }
        members.iter().zip(quotas(&room, missing)).for_each(|(&member, more)| bounds[member].0 += more);
    }
    Some(bounds)
}

/// Divides what comes from each box over the members that it goes to, by box and then by member.
fn among_members(
    layout: &Layout,
    amounts: &[i64],
    members: &[usize],
    bounds: &[(i64, i64)],
    stop: &dyn Stop,
) -> Result<Option<Vec<Vec<i64>>>, SynthesisError> {
    if members.len() == 1 {
        return Ok(Some(amounts.iter().map(|&amount| vec![amount]).collect()));
    }
    let low: Vec<i64> = members.iter().map(|&member| bounds[member].0).collect();
    let room: Vec<i64> = members.iter().map(|&member| bounds[member].1 - bounds[member].0).collect();
    let rest = amounts.iter().sum::<i64>() - low.iter().sum::<i64>();
    if rest < 0 || rest > room.iter().sum() {
        return Ok(None);
    }
    let needs: Vec<i64> = low.iter().zip(quotas(&room, rest)).map(|(low, more)| low + more).collect();
    transport(amounts, &needs, |from, _| layout.demands[from], layout.unit, stop)
}
