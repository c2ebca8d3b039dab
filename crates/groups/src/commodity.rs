//! What the groups send, one kind of unit at a time, and the cheapest unit for given lengths.

use num_bigint::BigInt;
use num_rational::BigRational;

use crate::problem::{GroupKind, GroupProblem, GroupsError};
use crate::tree::{Closure, Hop, spanning_tree};
use crate::ways::{NO_WAY, Passing};

/// A group, and the root of its trees where each root has its own: a position among the members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Commodity {
    pub(crate) group: usize,
    pub(crate) root: Option<u32>,
}

/// What a commodity sends at once: a tree, a pair of trees, or ways from a root to all others.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unit {
    /// Its hops.
    pub hops: Vec<Hop>,
    /// Whether each hop is used backwards, too, over the arcs of the opposite direction.
    pub both_ways: bool,
}

/// Which units of an allreduce are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    /// Trees that are used both ways: for links of the same capacity both ways.
    Trees,
    /// Pairs of any two trees of one root.
    Pairs,
}

/// Lengths by arc.
pub(crate) struct Lengths {
    one_way: Vec<u128>,
    /// Of an arc and that of the opposite direction together.
    both_ways: Vec<u128>,
}

impl Lengths {
    pub(crate) fn new(problem: &GroupProblem, one_way: Vec<u128>) -> Self {
        let both = |(arc, &length): (u32, &u128)| {
            let back = problem.reverse(arc).and_then(|arc| one_way.get(arc as usize)).copied();
            length.saturating_add(back.unwrap_or(length))
        };
        let both_ways = (0_u32..).zip(&one_way).map(both).collect();
        Self { one_way, both_ways }
    }
}

/// The cheapest unit of a commodity, and what it costs: the sum of the lengths of its arcs.
pub(crate) struct Priced {
    pub(crate) cost: u128,
    pub(crate) unit: Unit,
}

impl Commodity {
    /// All of a problem, by group and root.
    pub(crate) fn all(problem: &GroupProblem) -> Vec<Self> {
        let mut all = Vec::new();
        for (group, asked) in problem.groups().iter().enumerate() {
            match asked.kind {
                GroupKind::AllReduce => all.push(Self { group, root: None }),
                GroupKind::AllGather | GroupKind::ReduceScatter | GroupKind::AllToAll => {
                    all.extend((0_u32..).zip(&asked.members).map(|(root, _)| Self { group, root: Some(root) }));
                }
                kind => all.push(Self { group, root: kind.root() }),
            }
        }
        all
    }

    /// Bytes of a unit of it, for the sizes that the groups state.
    pub(crate) fn demand(self, problem: &GroupProblem) -> BigRational {
        let group = &problem.groups()[self.group];
        let parts = match group.kind {
            GroupKind::AllReduce | GroupKind::Broadcast(_) | GroupKind::Reduce(_) => 1,
            _ => group.members.len(),
        };
        BigRational::new(BigInt::from(group.size), BigInt::from(parts))
    }

    /// The cheapest unit.
    ///
    /// * **In.** `width`: which units of an allreduce. `roots`: positions of members at which its pairs of trees are tried.
    /// * **Errors.** [`GroupsError::NoWay`].
    /// * **Cost.** One search of the network for trees of equal lengths both ways and for ways from one root, else one
    ///   for each member, and O(members³) at worst for a tree.
    pub(crate) fn priced(
        self,
        problem: &GroupProblem,
        lengths: &Lengths,
        width: Width,
        roots: &[u32],
    ) -> Result<Priced, GroupsError> {
        let group = &problem.groups()[self.group];
        let members = &group.members;
        let lost = |(from, to): (u32, u32)| GroupsError::NoWay { group: self.group, from, to };
        let root = self.root.map_or(0, |root| root as usize);
        let closure = || Closure::of(problem, members, &lengths.one_way);
        match group.kind {
            GroupKind::AllReduce if width == Width::Trees => {
                let (cost, hops) = spanning_tree(problem, members, &lengths.both_ways).map_err(lost)?;
                Ok(Priced { cost, unit: Unit { hops, both_ways: true } })
            }
            GroupKind::AllReduce => pair_of_trees(&closure(), roots).map_err(lost),
            GroupKind::AllGather | GroupKind::Broadcast(_) => {
                closure().arborescence(root, false).map(Priced::one_way).map_err(lost)
            }
            GroupKind::ReduceScatter | GroupKind::Reduce(_) => {
                closure().arborescence(root, true).map(Priced::one_way).map_err(lost)
            }
            GroupKind::AllToAll | GroupKind::Scatter(_) => {
                star(problem, members, root, &lengths.one_way).map(Priced::one_way).map_err(lost)
            }
            GroupKind::Gather(_) => {
                star_inwards(problem, members, root, &lengths.one_way).map(Priced::one_way).map_err(lost)
            }
        }
    }
}

impl Priced {
    fn one_way((cost, hops): (u128, Vec<Hop>)) -> Self {
        Self { cost, unit: Unit { hops, both_ways: false } }
    }
}

/// The cheapest trees towards a root and away from it, over all roots that are to be tried.
fn pair_of_trees(closure: &Closure<'_>, roots: &[u32]) -> Result<Priced, (u32, u32)> {
    let mut best: Option<Priced> = None;
    for &root in roots {
        let (inwards, mut hops) = closure.arborescence(root as usize, true)?;
        let (outwards, others) = closure.arborescence(root as usize, false)?;
        let cost = inwards.saturating_add(outwards);
        if best.as_ref().is_none_or(|best| cost < best.cost) {
            hops.extend(others);
            best = Some(Priced::one_way((cost, hops)));
        }
    }
    Ok(best.expect("one root at least is tried"))
}

/// The shortest ways from one member to all others.
fn star(
    problem: &GroupProblem,
    members: &[u32],
    root: usize,
    lengths: &[u128],
) -> Result<(u128, Vec<Hop>), (u32, u32)> {
    let from = members[root];
    let ways = Passing::of(problem, members).ways_to_members(from, lengths);
    let (mut cost, mut hops) = (0_u128, Vec::with_capacity(members.len() - 1));
    for &to in members.iter().filter(|&&to| to != from) {
        let distance = ways.distances[to as usize];
        if distance == NO_WAY {
            return Err((from, to));
        }
        cost = cost.saturating_add(distance.0);
        hops.push(Hop { from, to, arcs: ways.way_to(problem, to) });
    }
    Ok((cost, hops))
}

/// The shortest ways from all others to one member.
fn star_inwards(
    problem: &GroupProblem,
    members: &[u32],
    root: usize,
    lengths: &[u128],
) -> Result<(u128, Vec<Hop>), (u32, u32)> {
    let closure = Closure::of(problem, members, lengths);
    let (mut cost, mut hops) = (0_u128, Vec::with_capacity(members.len() - 1));
    for from in (0..members.len()).filter(|&from| from != root) {
        let distance = closure.distance(from, root);
        if distance == NO_WAY {
            return Err((members[from], members[root]));
        }
        cost = cost.saturating_add(distance.0);
        hops.push(closure.hop(from, root));
    }
    Ok((cost, hops))
}

impl Unit {
    /// Calls for every use of an arc.
    pub(crate) fn for_each_arc(&self, problem: &GroupProblem, mut use_arc: impl FnMut(u32)) {
        for &arc in self.hops.iter().flat_map(|hop| &hop.arcs) {
            use_arc(arc);
            if let Some(reverse) = problem.reverse(arc).filter(|_| self.both_ways) {
                use_arc(reverse);
            }
        }
    }
}
