//! Networks and the groups that share them.

use std::collections::HashMap;

use canopy_optimize::{Arc, Digraph};
use num_rational::BigRational;
use num_traits::Signed as _;

/// Most arcs and nodes of a network, and most members of all groups together.
const PARTS_MAX: usize = 1 << 24;

/// What the members of a group do together. Roots are given by their position among the members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum GroupKind {
    /// Everybody gets the sum of what all have.
    AllReduce,
    /// Everybody gets what all have, an equal part of the size each.
    AllGather,
    /// Everybody gets an equal part of the sum.
    ReduceScatter,
    /// Everybody gets what one has.
    Broadcast(u32),
    /// One gets the sum of what all have.
    Reduce(u32),
    /// One sends a part of its own to everybody.
    Scatter(u32),
    /// One gets a part from everybody.
    Gather(u32),
    /// Everybody sends a part of its own to everybody.
    AllToAll,
}

impl GroupKind {
    /// The position of the root, where there is one.
    pub const fn root(self) -> Option<u32> {
        match self {
            Self::Broadcast(root) | Self::Reduce(root) | Self::Scatter(root) | Self::Gather(root) => Some(root),
            Self::AllReduce | Self::AllGather | Self::ReduceScatter | Self::AllToAll => None,
        }
    }

    /// Whether a schedule run backwards does the same, so that links of equal capacity both ways can be taken together.
    pub(crate) const fn is_reversible(self) -> bool {
        matches!(self, Self::AllReduce | Self::AllToAll)
    }
}

/// Nodes that communicate with each other, and with no others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// What they do.
    pub kind: GroupKind,
    /// The nodes, each once, at least two.
    pub members: Vec<u32>,
    /// *Size* of the collective in bytes, at least 1: rates of groups stand in the proportion of their sizes.
    pub size: u64,
}

/// Why a problem is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum GroupsError {
    #[error("there are no groups; name one at least")]
    NoGroups,
    #[error("groups[{group}] has {count} members; name two at least")]
    FewMembers { group: usize, count: usize },
    #[error("groups[{group}] names node {node}, and the network has {node_count} nodes, numbered from 0")]
    NoSuchNode { group: usize, node: u32, node_count: u32 },
    #[error("groups[{group}] names node {node} twice; name each member once")]
    MemberTwice { group: usize, node: u32 },
    #[error("groups[{group}] has the root {root}, and only {count} members, which are numbered from 0")]
    NoSuchRoot { group: usize, root: u32, count: usize },
    #[error("groups[{group}] has the size 0; state at least 1 byte")]
    NoSize { group: usize },
    #[error("groups[{group}]: no way leads from node {from} to node {to}; let more nodes relay, or mend the network")]
    NoWay { group: usize, from: u32, to: u32 },
    #[error("arc {arc} joins nodes that the network of {node_count} nodes does not have")]
    BadArc { arc: usize, node_count: u32 },
    #[error("`relays` has {found} entries, and the network has {expected} nodes; state one for each")]
    RelayCount { found: usize, expected: u32 },
    #[error("the network and its groups have more than {max} parts; divide them")]
    TooLarge { max: usize },
    #[error("group {group} does not exist; there are {count}, numbered from 0")]
    NoSuchGroup { group: usize, count: usize },
    #[error("groups[{group}] is frozen at the rate {rate}; state more than 0, or leave the group out")]
    FrozenRate { group: usize, rate: BigRational },
    #[error("groups[{group}] is frozen; ask for levels, which keep its rate")]
    Frozen { group: usize },
    #[error("all groups are frozen; leave one at least that is not")]
    AllFrozen,
    #[error("the frozen groups need more than the network carries; lower their rates to {share} of each, or less")]
    FrozenTooFast { share: BigRational },
    #[error(
        "the search needs about {needed} bytes of memory, more than there is; use a smaller network or fewer groups"
    )]
    NoRoom { needed: u64 },
    #[error("stopped before a result was found")]
    Stopped,
}

/// A network and the groups that share it, checked.
///
/// Members receive, add, copy and send. Everything else on the way between two of them forwards only: switches, and
/// nodes that are not members, as far as they may relay.
#[derive(Clone, Debug)]
pub struct GroupProblem {
    graph: Digraph,
    relays: Vec<bool>,
    groups: Vec<Group>,
    /// By group, its rate where it is frozen.
    frozen: Vec<Option<BigRational>>,
    /// By node, the arcs that leave it.
    leaving: Vec<Vec<u32>>,
    /// By arc, the arc of the opposite direction.
    reverses: Vec<Option<u32>>,
    /// By arc of the caller, that of `graph`; none for those of no capacity.
    merged: Vec<Option<u32>>,
}

impl GroupProblem {
    /// Checks a problem. Parallel arcs are taken together.
    ///
    /// * **In.** `relays`: by node, whether it forwards for groups that it is not a member of.
    /// * **Errors.** [`GroupsError`], but for [`GroupsError::NoWay`], which solving finds.
    /// * **Cost.** O(nodes + arcs + members).
    pub fn new(graph: &Digraph, relays: Vec<bool>, groups: Vec<Group>) -> Result<Self, GroupsError> {
        let node_count = graph.node_count;
        let members: usize = groups.iter().map(|group| group.members.len()).sum();
        if graph.arcs.len().max(node_count as usize).max(members) > PARTS_MAX {
            return Err(GroupsError::TooLarge { max: PARTS_MAX });
        }
        if relays.len() != node_count as usize {
            return Err(GroupsError::RelayCount { found: relays.len(), expected: node_count });
        }
        require_groups(&groups, node_count)?;
        let (graph, merged) = merged(graph)?;
        let mut leaving = vec![Vec::new(); node_count as usize];
        let mut between = HashMap::with_capacity(graph.arcs.len());
        for (number, arc) in (0_u32..).zip(&graph.arcs) {
            leaving[arc.from as usize].push(number);
            between.insert((arc.from, arc.to), number);
        }
        let reverses = graph.arcs.iter().map(|arc| between.get(&(arc.to, arc.from)).copied()).collect();
        let frozen = vec![None; groups.len()];
        Ok(Self { graph, relays, groups, frozen, leaving, reverses, merged })
    }

    /// The same problem with a group that keeps its rate, whatever the others get.
    ///
    /// * **In.** `rate`: algbw of the group in units of capacity, more than 0; its size does not count.
    /// * **Errors.** [`GroupsError::NoSuchGroup`], [`GroupsError::FrozenRate`]. Whether the network carries it is found
    ///   when the problem is solved.
    pub fn with_frozen(mut self, group: usize, rate: BigRational) -> Result<Self, GroupsError> {
        let count = self.groups.len();
        let frozen = self.frozen.get_mut(group).ok_or(GroupsError::NoSuchGroup { group, count })?;
        if !rate.is_positive() {
            return Err(GroupsError::FrozenRate { group, rate });
        }
        *frozen = Some(rate);
        Ok(self)
    }

    /// By group, its rate where it is frozen.
    pub fn frozen(&self) -> &[Option<BigRational>] {
        &self.frozen
    }

    /// The network: at most one arc from one node to another, none without capacity.
    pub const fn graph(&self) -> &Digraph {
        &self.graph
    }

    /// The groups.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// By node, whether it forwards for others.
    pub fn relays(&self) -> &[bool] {
        &self.relays
    }

    /// The arc that one of the caller's is a part of; `None` if it has no capacity or is a loop.
    pub fn arc_of(&self, arc: usize) -> Option<u32> {
        self.merged.get(arc).copied().flatten()
    }

    /// The arcs that leave a node.
    pub(crate) fn leaving(&self, node: u32) -> &[u32] {
        &self.leaving[node as usize]
    }

    /// The arc of the opposite direction.
    pub(crate) fn reverse(&self, arc: u32) -> Option<u32> {
        self.reverses[arc as usize]
    }

    /// Whether an arc and that of the opposite direction can be taken together: all links carry as much both ways, and
    /// all groups do what is the same run backwards.
    pub(crate) fn is_reversible(&self) -> bool {
        self.groups.iter().all(|group| group.kind.is_reversible()) && self.is_even()
    }

    /// Whether all links carry as much both ways.
    pub(crate) fn is_even(&self) -> bool {
        let as_much = |(arc, reverse): (&Arc, &Option<u32>)| {
            reverse.is_some_and(|reverse| self.graph.arcs[reverse as usize].capacity == arc.capacity)
        };
        self.graph.arcs.iter().zip(&self.reverses).all(as_much)
    }
}

fn require_groups(groups: &[Group], node_count: u32) -> Result<(), GroupsError> {
    if groups.is_empty() {
        return Err(GroupsError::NoGroups);
    }
    let mut seen = vec![usize::MAX; node_count as usize];
    for (number, group) in groups.iter().enumerate() {
        let count = group.members.len();
        if count < 2 {
            return Err(GroupsError::FewMembers { group: number, count });
        }
        if group.size == 0 {
            return Err(GroupsError::NoSize { group: number });
        }
        for &node in &group.members {
            let Some(seen) = seen.get_mut(node as usize) else {
                return Err(GroupsError::NoSuchNode { group: number, node, node_count });
            };
            if std::mem::replace(seen, number) == number {
                return Err(GroupsError::MemberTwice { group: number, node });
            }
        }
        if let Some(root) = group.kind.root().filter(|&root| root as usize >= count) {
            return Err(GroupsError::NoSuchRoot { group: number, root, count });
        }
    }
    Ok(())
}

/// The same graph with parallel arcs taken together, and by arc, its place there.
fn merged(graph: &Digraph) -> Result<(Digraph, Vec<Option<u32>>), GroupsError> {
    let mut between: HashMap<(u32, u32), u32> = HashMap::with_capacity(graph.arcs.len());
    let mut arcs: Vec<Arc> = Vec::with_capacity(graph.arcs.len());
    let mut places = Vec::with_capacity(graph.arcs.len());
    for (number, &arc) in graph.arcs.iter().enumerate() {
        if arc.from.max(arc.to) >= graph.node_count {
            return Err(GroupsError::BadArc { arc: number, node_count: graph.node_count });
        }
        if arc.capacity == 0 || arc.from == arc.to {
            places.push(None);
            continue;
        }
        let place = *between.entry((arc.from, arc.to)).or_insert_with(|| {
            arcs.push(Arc { capacity: 0, ..arc });
            u32::try_from(arcs.len() - 1).expect("arcs are counted in 24 bits")
        });
        let sum = arcs[place as usize].capacity.checked_add(arc.capacity);
        arcs[place as usize].capacity = sum.ok_or(GroupsError::TooLarge { max: PARTS_MAX })?;
        places.push(Some(place));
    }
    Ok((Digraph { node_count: graph.node_count, arcs }, places))
}
