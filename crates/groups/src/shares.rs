//! What each group may use of each link, so that its own optimum on that much is its part of the joint one.

use std::collections::BTreeMap;

use canopy_canonical::{Budget, WORK_STANDARD};
use canopy_optimize::Stop;
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One as _, Zero as _};

use crate::found::{GroupLevels, GroupOptimum, GroupPart};
use crate::problem::{GroupProblem, GroupsError};
use crate::symmetry::{Images, Symmetry};

/// The shares of all groups.
#[derive(Clone, Debug)]
pub struct GroupShares {
    /// By group, the first group that is like it, see [`Self::node_of`]; for most, itself.
    pub like: Vec<usize>,
    /// By group, of the arcs that it uses, rising, what it gets: in units of capacity.
    shares: BTreeMap<usize, Vec<(u32, BigRational)>>,
    /// By group, where each node of the network goes.
    tables: Vec<Vec<u32>>,
}

impl GroupShares {
    /// What a group that is like no other before it gets of the arcs that it uses, rising, in units of capacity.
    pub fn of(&self, group: usize) -> &[(u32, BigRational)] {
        self.shares.get(&self.like[group]).map_or(&[], Vec::as_slice)
    }

    /// The node of a group that has the place of this one in the group that it is like. A share of the arc (u, v) there
    /// is one of the arc between the nodes that u and v stand for here.
    pub fn node_of(&self, group: usize, node: u32) -> u32 {
        self.tables[group][node as usize]
    }
}

/// Divides the links among the groups: in its shares alone, each group reaches its part of the joint rate, and what is
/// not a member passes on as much as it gets.
///
/// * **Source.** The loads of an optimum, averaged over the symmetries that keep a group; within them, that group is
///   alone, with trees that branch at its members only, which a packing of trees in a balanced network finds again.
/// * **In.** An optimum of the problem.
/// * **Errors.** Stopped.
/// * **Cost.** The symmetries of the network for each group that is like no other, and O(groups · nodes · generators).
pub fn group_shares(
    problem: &GroupProblem,
    optimum: &GroupOptimum,
    stop: &dyn Stop,
) -> Result<GroupShares, GroupsError> {
    divided(problem, &optimum.parts, &optimum.rate, &optimum.symmetry, stop)
}

/// Divides the links among the groups of levels: in its shares alone, each group reaches its own rate.
///
/// As [`group_shares`] in everything else.
pub fn level_shares(problem: &GroupProblem, levels: &GroupLevels, stop: &dyn Stop) -> Result<GroupShares, GroupsError> {
    divided(problem, &levels.parts, &BigRational::one(), &levels.symmetry, stop)
}

/// Loads of units, of which so much is sent, averaged.
fn divided(
    problem: &GroupProblem,
    parts: &[GroupPart],
    rate: &BigRational,
    symmetry: &Symmetry,
    stop: &dyn Stop,
) -> Result<GroupShares, GroupsError> {
    let is_stopped = || stop.is_requested();
    let budget = Budget { work_max: WORK_STANDARD, stop: &is_stopped };
    let Images { of, tables } = symmetry.images(problem.groups().len());
    // Every symmetry keeps the only group.
    let keeps_all = problem.groups().len() == 1 || symmetry.is_none();
    let mut count: BTreeMap<usize, usize> = BTreeMap::new();
    of.iter().for_each(|&first| *count.entry(first).or_default() += 1);
    let is_reversible = problem.is_reversible();
    let mut shares = BTreeMap::new();
    for (&group, &alike) in &count {
        if stop.is_requested() {
            return Err(GroupsError::Stopped);
        }
        let classes = if keeps_all {
            symmetry.arcs(problem, is_reversible)
        } else {
            let kept = Symmetry::of(problem, Some(group), budget).map_err(|_stopped| GroupsError::Stopped)?;
            kept.arcs(problem, is_reversible)
        };
        let mut loads = vec![BigRational::zero(); classes.first.len()];
        for part in parts.iter().filter(|part| part.group == group) {
            for (unit, weight) in &part.units {
                let mut uses: BTreeMap<u32, u64> = BTreeMap::new();
                unit.for_each_arc(problem, |arc| *uses.entry(classes.of[arc as usize]).or_default() += 1);
                uses.into_iter().for_each(|(class, uses)| loads[class as usize] += weight * BigInt::from(uses));
            }
        }
        let each = |class: u32| {
            let things = BigInt::from(classes.count[class as usize]) * BigInt::from(alike);
            &loads[class as usize] * rate / things
        };
        let of_arcs = (0_u32..).zip(&classes.of).map(|(arc, &class)| (arc, each(class)));
        shares.insert(group, of_arcs.filter(|(_, share)| !share.is_zero()).collect());
    }
    Ok(GroupShares { like: of, shares, tables })
}
