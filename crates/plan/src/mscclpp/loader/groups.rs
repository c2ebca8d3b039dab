//! Whether all members of multicast groups list them alike.
//!
//! The loader sets groups up one after the other: the member of the lowest rank makes each and hands it to the others, in
//! the order of its own list, and each maps the buffer that it names itself.

use std::collections::BTreeMap;

use super::super::program::{ExecutionPlan, RankChannels};
use crate::msccl::{Buffer, Findings, Place};

/// A group by members, buffer and size; a second one that is the same, and so on, counts by itself.
type Group = (Vec<u32>, Buffer, u32, usize);

/// Every member of a group lists it with the same buffer and size, and all lists follow one order.
pub(super) fn check(plan: &ExecutionPlan, findings: &mut Findings<'_>) {
    let mut listed: Vec<Vec<usize>> = Vec::with_capacity(plan.ranks.len());
    let mut numbers: BTreeMap<Group, usize> = BTreeMap::new();
    let mut members: Vec<Vec<u32>> = Vec::new();
    let mut found: Vec<usize> = Vec::new();
    for rank in &plan.ranks {
        let mut own: Vec<usize> = Vec::new();
        let mut times: BTreeMap<(Vec<u32>, Buffer, u32), usize> = BTreeMap::new();
        for entry in &rank.channels {
            let RankChannels::Switch { buffer, groups } = entry else { continue };
            for group in groups {
                let mut ranks = group.ranks.clone();
                ranks.sort_unstable();
                let time = times.entry((ranks.clone(), *buffer, group.size)).or_default();
                let key = (ranks, *buffer, group.size, *time);
                *time += 1;
                let number = *numbers.entry(key).or_insert_with_key(|key| {
                    members.push(key.0.clone());
                    found.push(0);
                    found.len() - 1
                });
                found[number] += 1;
                own.push(number);
            }
            if findings.must_stop(groups.iter().map(|group| group.ranks.len() as u64).sum()) {
                return;
            }
        }
        listed.push(own);
    }
    let mut is_whole = true;
    for (members, &found) in members.iter().zip(&found).filter(|(members, found)| members.len() != **found) {
        is_whole = false;
        let place = members.first().map_or(Place::FILE, |&rank| Place::rank(rank));
        let message = format!(
            "a rank group of {} is listed by {found}; list it at each member, with the same buffer_type and size",
            members.len()
        );
        findings.problem(place, message);
    }
    if is_whole && !has_order(&listed, found.len()) {
        findings.problem(Place::FILE, "members list rank groups in different orders; use one order at all members");
    }
}

/// Whether one order of all groups agrees with all lists. O(lists).
fn has_order(listed: &[Vec<usize>], count: usize) -> bool {
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); count];
    let mut before = vec![0_usize; count];
    for pair in listed.iter().flat_map(|list| list.windows(2)) {
        next[pair[0]].push(pair[1]);
        before[pair[1]] += 1;
    }
    let mut ready: Vec<usize> = (0..count).filter(|&group| before[group] == 0).collect();
    let mut ordered = 0;
    while let Some(group) = ready.pop() {
        ordered += 1;
        for &later in &next[group] {
            before[later] -= 1;
            if before[later] == 0 {
                ready.push(later);
            }
        }
    }
    ordered == count
}
