//! Nodes of an execution trace, whose dependencies may lead anywhere, as operations in an order in which they can run.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::timeline::program::{OPERATIONS_MAX, Operation, Work};

/// A node of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceNode {
    /// Unique in the trace.
    pub id: u64,
    /// For people.
    pub name: String,
    /// What it does.
    pub work: Work,
    /// Ids of nodes that must have ended before it starts; repeated ones count once.
    pub after: Vec<u64>,
}

/// Why a trace cannot run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum TraceError {
    #[error("more than {limit} nodes; cut the trace to one iteration")]
    TooMany { limit: usize },
    #[error("two nodes have the id {id}")]
    Duplicate { id: u64 },
    #[error("node {id} depends on node {before}, which the trace does not have")]
    Missing { id: u64, before: u64 },
    #[error("node {id} depends on itself, directly or through others")]
    Cycle { id: u64 },
}

/// Operations of a trace, each behind all that it waits for; of several that could come next, the one that the trace
/// has first.
///
/// * **Errors.** Too many nodes, ids that are not unique or not there, and cycles.
/// * **Cost.** O((nodes + dependencies) log nodes).
pub fn operations(nodes: Vec<TraceNode>) -> Result<Vec<Operation>, TraceError> {
    if nodes.len() > OPERATIONS_MAX {
        return Err(TraceError::TooMany { limit: OPERATIONS_MAX });
    }
    let mut places: BTreeMap<u64, usize> = BTreeMap::new();
    for (place, node) in nodes.iter().enumerate() {
        if places.insert(node.id, place).is_some() {
            return Err(TraceError::Duplicate { id: node.id });
        }
    }
    let mut before: Vec<Vec<usize>> = Vec::with_capacity(nodes.len());
    let mut followers: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for (place, node) in nodes.iter().enumerate() {
        let place_of = |&before: &u64| places.get(&before).copied().ok_or(TraceError::Missing { id: node.id, before });
        let mut own = node.after.iter().map(place_of).collect::<Result<Vec<usize>, _>>()?;
        own.sort_unstable();
        own.dedup();
        own.iter().for_each(|&other| followers[other].push(place));
        before.push(own);
    }
    let mut waits: Vec<usize> = before.iter().map(Vec::len).collect();
    let free = waits.iter().enumerate().filter(|(_, waits)| **waits == 0).map(|(place, _)| Reverse(place));
    let mut free: BinaryHeap<Reverse<usize>> = free.collect();
    let mut order = Vec::with_capacity(nodes.len());
    // By place in the trace: the number of the operation.
    let mut numbers: Vec<Option<u32>> = vec![None; nodes.len()];
    let mut next = 0;
    while let Some(Reverse(place)) = free.pop() {
        numbers[place] = Some(next);
        next += 1;
        order.push(place);
        for &follower in &followers[place] {
            waits[follower] -= 1;
            if waits[follower] == 0 {
                free.push(Reverse(follower));
            }
        }
    }
    if let Some((node, _)) = nodes.iter().zip(&numbers).find(|(_, number)| number.is_none()) {
        return Err(TraceError::Cycle { id: node.id });
    }
    let mut nodes: Vec<Option<TraceNode>> = nodes.into_iter().map(Some).collect();
    let operation = |place: usize| {
        let TraceNode { name, work, .. } = nodes.get_mut(place).and_then(Option::take)?;
        let after = before[place].iter().filter_map(|&other| numbers[other]).collect();
        Some(Operation { name, work, after })
    };
    Ok(order.into_iter().filter_map(operation).collect())
}

#[cfg(test)]
mod tests;
