//! What the groups send, one kind of unit at a time, and the cheapest unit for given lengths.

use canopy_optimize::Stop;
use num_bigint::BigInt;
use num_rational::BigRational;

use crate::groups::problem::{Group, GroupKind, GroupProblem, GroupsError};
use crate::groups::tree::{Closure, Hop, spanning_tree};
use crate::groups::ways::{NO_WAY, Passing, WAYS_NODE_BYTES};

/// Bytes of a hop of a unit with its arcs, roughly, and with the rows that it uses.
const HOP_BYTES: u64 = 160;
/// Bytes for each pair of members while a tree is sought in their distances.
const PAIR_BYTES: u64 = 96;

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
    /// * **Errors.** [`GroupsError::NoWay`], stopped.
    /// * **Cost.** One search of the network for trees of equal lengths both ways and for ways from one root, else one
    ///   for each member, and O(members³) at worst for a tree.
    pub(crate) fn priced(
        self,
        problem: &GroupProblem,
        lengths: &Lengths,
        width: Width,
        roots: &[u32],
        stop: &dyn Stop,
    ) -> Result<Priced, GroupsError> {
        let root = self.root.map_or(0, |root| root as usize);
        let closure = || Closure::of(problem, self.group, &lengths.one_way, stop);
        match problem.groups()[self.group].kind {
            GroupKind::AllReduce if width == Width::Trees => {
                let (cost, hops) = spanning_tree(problem, self.group, &lengths.both_ways, stop)?;
                Ok(Priced { cost, unit: Unit { hops, both_ways: true } })
            }
            GroupKind::AllReduce => pair_of_trees(&closure(), roots),
            GroupKind::AllGather | GroupKind::Broadcast(_) => closure().arborescence(root, false).map(Priced::one_way),
            GroupKind::ReduceScatter | GroupKind::Reduce(_) => closure().arborescence(root, true).map(Priced::one_way),
            GroupKind::AllToAll | GroupKind::Scatter(_) => {
                star(problem, self.group, root, &lengths.one_way, stop).map(Priced::one_way)
            }
            GroupKind::Gather(_) => star_inwards(&closure(), self.group, root, problem).map(Priced::one_way),
        }
    }

    /// Bytes of a unit of it, roughly.
    pub(crate) fn unit_bytes(self, problem: &GroupProblem) -> u64 {
        (problem.groups()[self.group].members.len() as u64).saturating_mul(HOP_BYTES)
    }

    /// Bytes that looking for its cheapest unit takes, roughly.
    pub(crate) fn pricing_bytes(self, problem: &GroupProblem) -> u64 {
        let Group { kind, members, .. } = &problem.groups()[self.group];
        let (nodes, count) = (u64::from(problem.graph().node_count), members.len() as u64);
        let search = nodes.saturating_mul(WAYS_NODE_BYTES);
        let trees =
            || count.saturating_mul(search).saturating_add(count.saturating_mul(count).saturating_mul(PAIR_BYTES));
        match kind {
            GroupKind::AllReduce if problem.is_even() => search,
            GroupKind::AllToAll | GroupKind::Scatter(_) => search,
            GroupKind::Gather(_) => count.saturating_mul(search),
            GroupKind::AllReduce
            | GroupKind::AllGather
            | GroupKind::ReduceScatter
            | GroupKind::Broadcast(_)
            | GroupKind::Reduce(_) => trees(),
        }
    }
}

impl Priced {
    fn one_way((cost, hops): (u128, Vec<Hop>)) -> Self {
        Self { cost, unit: Unit { hops, both_ways: false } }
    }
}

/// The cheapest trees towards a root and away from it, over all roots that are to be tried.
fn pair_of_trees(closure: &Closure<'_>, roots: &[u32]) -> Result<Priced, GroupsError> {
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
    group: usize,
    root: usize,
    lengths: &[u128],
    stop: &dyn Stop,
) -> Result<(u128, Vec<Hop>), GroupsError> {
    let members = &problem.groups()[group].members;
    let from = members[root];
    let ways = Passing::of(problem, members, stop).ways_to_members(from, lengths)?;
    let (mut cost, mut hops) = (0_u128, Vec::with_capacity(members.len() - 1));
    for &to in members.iter().filter(|&&to| to != from) {
        let distance = ways.distances[to as usize];
        if distance == NO_WAY {
            return Err(GroupsError::NoWay { group, from, to });
        }
        cost = cost.saturating_add(distance.0);
        hops.push(Hop { from, to, arcs: ways.way_to(problem, to) });
    }
    Ok((cost, hops))
}

/// The shortest ways from all others to one member.
fn star_inwards(
    closure: &Closure<'_>,
    group: usize,
    root: usize,
    problem: &GroupProblem,
) -> Result<(u128, Vec<Hop>), GroupsError> {
    let members = &problem.groups()[group].members;
    let (mut cost, mut hops) = (0_u128, Vec::with_capacity(members.len() - 1));
    for from in (0..members.len()).filter(|&from| from != root) {
        let distance = closure.distance(from, root)?;
        if distance == NO_WAY {
            return Err(GroupsError::NoWay { group, from: members[from], to: members[root] });
        }
        cost = cost.saturating_add(distance.0);
        hops.push(closure.hop(from, root)?);
    }
    Ok((cost, hops))
}

impl Unit {
    /// Uses of arcs, those backwards left out.
    pub(crate) fn arc_count(&self) -> usize {
        self.hops.iter().map(|hop| hop.arcs.len()).sum()
    }

    /// Bytes of memory that it takes, roughly.
    pub(crate) fn bytes(&self) -> u64 {
        let (hops, arcs) = (self.hops.len() as u64, self.arc_count() as u64);
        hops.saturating_mul(64).saturating_add(arcs.saturating_mul(8))
    }

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
