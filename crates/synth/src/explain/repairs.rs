//! What the strength of a network becomes when something is repaired or made faster.

use std::collections::{BTreeMap, BTreeSet};

use canopy_optimize::{Arc, Digraph, OptimumError, Stop, strength};
use canopy_schedule::Bound;
use canopy_topology::{NodeKind, Rate, Topology};

use super::part_classes;
use crate::bound::BoundError;

/// Most repairs that are tried.
const REPAIRS_MAX: usize = 16;

/// What an allreduce could reach after one change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// The change.
    pub what: Repaired,
    /// The greatest algbw there would be.
    pub rate: Rate,
}

/// A change to a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repaired {
    /// The links between two nodes, in both directions.
    Link {
        /// Id of one end.
        first: String,
        /// Id of the other end.
        second: String,
        /// Bytes per second from the first end to the second before.
        before: u128,
        /// The same afterwards.
        after: u128,
    },
    /// A node that is not there, with its links to those that are.
    Node {
        /// Its id.
        id: String,
    },
}

/// Bytes per second between two nodes, from the lower one to the higher one and back.
type Pairs = BTreeMap<(u32, u32), [u128; 2]>;

/// Tries the repairs of a network one by one, those at the limiting partition first, and says what each would bring: best
/// first, those that bring nothing left out.
///
/// * **In.** `whole`: the same network as it was before anything broke. Without it, or if nothing is broken, the weakest
///   links that leave each class of limiting sets are doubled instead.
/// * **Out.** Nothing where links differ in their two directions, or the bound is not that of a partition: what binds there
///   is not known. At most 16 changes are tried.
/// * **Errors.** Stopped, or too large. **Cost.** That of a [`strength`] for each change.
pub fn repairs(
    topology: &Topology,
    whole: Option<&Topology>,
    bound: &Bound,
    stop: &dyn Stop,
) -> Result<Vec<Repair>, BoundError> {
    let classes = part_classes(topology, &bound.certificate);
    let is_two_way = |network: &Topology| pairs(network).values().all(|[up, down]| up == down);
    let is_plain = !topology.has_capable_switch() && topology.forwarders().next().is_none();
    if classes.is_empty() || !bound.is_tight() || !is_plain || !is_two_way(topology) {
        return Ok(Vec::new());
    }
    let slower = classes.iter().flat_map(|class| class.slower.iter().map(|&(link, _)| topology.link(link)));
    let odd: BTreeSet<[&str; 2]> =
        slower.map(|link| [link.from, link.to].map(|node| topology.node(node).id.as_str())).collect();
    let is_odd = |first: &str, second: &str| odd.contains(&[first, second]) || odd.contains(&[second, first]);
    let whole = whole.filter(|&whole| is_two_way(whole));
    let mut changes = whole.map_or_else(Vec::new, |whole| changes(topology, whole));
    changes.sort_by_key(|change| match &change.what {
        Repaired::Node { .. } => false,
        Repaired::Link { first, second, .. } => !is_odd(first, second),
    });
    if changes.is_empty() {
        changes = classes.iter().filter_map(|class| doubled(topology, bound, class.sets[0])).collect();
        let mut known = BTreeSet::new();
        changes.retain(|change| known.insert(change.added.clone()));
    }
    let mut repairs = Vec::new();
    for change in changes.into_iter().take(REPAIRS_MAX) {
        let rate = change.rate(topology, stop)?;
        if rate > bound.upper {
            repairs.push(Repair { what: change.what, rate });
        }
    }
    repairs.sort_by(|first, second| second.rate.cmp(&first.rate));
    Ok(repairs)
}

/// A change, and the links that it adds: from, to, bytes per second, the next free number being a new rank or switch.
struct Change {
    what: Repaired,
    added: Vec<(u32, u32, u128)>,
    /// Whether the new node is a rank; none where there is no new node.
    new_rank: Option<bool>,
}

impl Change {
    /// The strength after the change.
    fn rate(&self, topology: &Topology, stop: &dyn Stop) -> Result<Rate, BoundError> {
        let node_count = u32::try_from(topology.nodes().len()).expect("nodes are counted in u32");
        let mut terminals: Vec<bool> = (0..node_count).map(|node| node < topology.rank_count()).collect();
        terminals.extend(self.new_rank);
        let mut arcs: Vec<Arc> = Vec::with_capacity(topology.links().len() + self.added.len());
        for link in topology.links() {
            let (from, to) = (link.from.number(), link.to.number());
            arcs.push(Arc { from, to, capacity: link.capacity.bytes_per_sec() });
        }
        for &(from, to, mut left) in &self.added {
            while left > 0 {
                let capacity = u64::try_from(left).unwrap_or(u64::MAX);
                left -= u128::from(capacity);
                arcs.push(Arc { from, to, capacity });
            }
        }
        let graph = Digraph { node_count: node_count + u32::from(self.new_rank.is_some()), arcs };
        let found = strength(&graph, &terminals, stop).map_err(|error| match error {
            OptimumError::Stopped(stopped) => stopped.into(),
            OptimumError::TooLarge { .. } => BoundError::TooLarge,
            other => BoundError::Broken { what: other.to_string() },
        })?;
        Ok(Rate::new(found.rate.numerator, found.rate.denominator).expect("a fraction is one"))
    }
}

fn pairs(topology: &Topology) -> Pairs {
    let mut pairs = Pairs::new();
    for link in topology.links() {
        let (from, to) = (link.from.number(), link.to.number());
        pairs.entry((from.min(to), from.max(to))).or_default()[usize::from(from > to)] +=
            u128::from(link.capacity.bytes_per_sec());
    }
    pairs
}

/// What the whole network has and this one has not, for each node and each pair of nodes.
fn changes(topology: &Topology, whole: &Topology) -> Vec<Change> {
    let here: BTreeMap<&str, u32> = topology.nodes().iter().map(|node| node.id.as_str()).zip(0..).collect();
    let known = pairs(topology);
    let id = |node: u32| whole.nodes()[node as usize].id.as_str();
    let new = u32::try_from(topology.nodes().len()).expect("nodes are counted in u32");
    let mut links = Vec::new();
    let mut nodes: BTreeMap<u32, Change> = BTreeMap::new();
    for (&(low, high), &[up, down]) in &pairs(whole) {
        match (here.get(id(low)), here.get(id(high))) {
            (Some(&first), Some(&second)) => {
                let found = known.get(&(first.min(second), first.max(second))).copied().unwrap_or_default();
                let [there, back] = if first < second { found } else { [found[1], found[0]] };
                let added = vec![(first, second, up.saturating_sub(there)), (second, first, down.saturating_sub(back))];
                if added.iter().any(|&(.., capacity)| capacity > 0) {
                    let (first, second) = (id(low).to_owned(), id(high).to_owned());
                    let what = Repaired::Link { first, second, before: there, after: up.max(there) };
                    links.push(Change { what, added, new_rank: None });
                }
            }
            (Some(&there), None) => {
                gone(whole, high, &mut nodes).added.extend([(there, new, up), (new, there, down)]);
            }
            (None, Some(&there)) => {
                gone(whole, low, &mut nodes).added.extend([(new, there, up), (there, new, down)]);
            }
            (None, None) => {}
        }
    }
    // Nodes are few, and mean more than one link each.
    nodes.into_values().chain(links).collect()
}

fn gone<'a>(whole: &Topology, node: u32, nodes: &'a mut BTreeMap<u32, Change>) -> &'a mut Change {
    nodes.entry(node).or_insert_with(|| {
        let node = &whole.nodes()[node as usize];
        let what = Repaired::Node { id: node.id.clone() };
        Change { what, added: Vec::new(), new_rank: Some(node.kind == NodeKind::Compute) }
    })
}

/// The slowest link that leaves a set of the partition, doubled.
fn doubled(topology: &Topology, bound: &Bound, set: usize) -> Option<Change> {
    let canopy_schedule::Certificate::Partition { sets } = &bound.certificate else { return None };
    let mut inside = vec![false; topology.nodes().len()];
    sets.get(set)?.iter().for_each(|node| inside[node.index()] = true);
    let leaves = |&(&(low, high), _): &(&(u32, u32), &[u128; 2])| inside[low as usize] != inside[high as usize];
    let pairs = pairs(topology);
    let ((low, high), [up, down]) = pairs.iter().filter(leaves).min_by_key(|(_, [up, down])| up + down)?;
    let id = |node: u32| topology.nodes()[node as usize].id.clone();
    let what = Repaired::Link { first: id(*low), second: id(*high), before: *up, after: 2 * up };
    Some(Change { what, added: vec![(*low, *high, *up), (*high, *low, *down)], new_rank: None })
}
