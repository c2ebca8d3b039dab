//! What each group may use of each link, so that its own optimum on that much is its part of the joint one.

use std::collections::BTreeMap;

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::One as _;

use crate::groups::found::{GroupLevels, GroupOptimum, GroupPart};
use crate::groups::patience::{Asking, Patience, Taken};
use crate::groups::problem::{GroupProblem, GroupsError};
use crate::groups::symmetry::{ArcTable, Images, Symmetry};

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
/// * **Errors.** [`GroupsError::Stopped`], where there is no use in any answer; [`GroupsError::NoRoom`].
/// * **Cost.** O(groups · nodes · generators), and O(generators) for each arc of each group's share.
pub fn group_shares(
    problem: &GroupProblem,
    optimum: &GroupOptimum,
    patience: Patience<'_>,
) -> Result<GroupShares, GroupsError> {
    divided(problem, &optimum.parts, &optimum.rate, &optimum.symmetry, patience)
}

/// Divides the links among the groups of levels: in its shares alone, each group reaches its own rate.
///
/// As [`group_shares`] in everything else.
pub fn level_shares(
    problem: &GroupProblem,
    levels: &GroupLevels,
    patience: Patience<'_>,
) -> Result<GroupShares, GroupsError> {
    divided(problem, &levels.parts, &BigRational::one(), &levels.symmetry, patience)
}

/// Loads of units, of which so much is sent, averaged.
fn divided(
    problem: &GroupProblem,
    parts: &[GroupPart],
    rate: &BigRational,
    symmetry: &Symmetry,
    patience: Patience<'_>,
) -> Result<GroupShares, GroupsError> {
    let stop = patience.stop;
    let _memory = Taken::of(patience.room, symmetry.images_bytes(problem.groups().len()))?;
    let Images { of, tables } = symmetry.images(problem.groups().len(), stop)?;
    let mut asking = Asking::of(stop);
    let (arcs, is_reversible) = (ArcTable::of(problem), problem.is_reversible());
    let mut shares = BTreeMap::new();
    for (group, _) in of.iter().enumerate().filter(|&(group, first)| group == *first) {
        let mut loads: BTreeMap<u32, BigRational> = BTreeMap::new();
        for (unit, weight) in parts.iter().filter(|part| part.group == group).flat_map(|part| &part.units) {
            asking.before(64 * unit.arc_count())?;
            unit.for_each_arc(problem, |arc| *loads.entry(arc).or_default() += weight);
        }
        let mut share: BTreeMap<u32, BigRational> = BTreeMap::new();
        for &arc in loads.keys() {
            if stop.is_requested() {
                return Err(GroupsError::Stopped);
            }
            if share.contains_key(&arc) {
                continue;
            }
            let alike = symmetry.arcs_of_groups(&arcs, (group, arc), is_reversible, stop)?;
            let own: Vec<u32> = alike.iter().filter(|(other, _)| *other == group).map(|&(_, arc)| arc).collect();
            let load: BigRational = own.iter().filter_map(|arc| loads.get(arc)).sum();
            let each = load * rate / BigInt::from(alike.len());
            share.extend(own.into_iter().map(|arc| (arc, each.clone())));
        }
        shares.insert(group, share.into_iter().collect());
    }
    Ok(GroupShares { like: of, shares, tables })
}
