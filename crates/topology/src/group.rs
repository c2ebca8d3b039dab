//! Groups: the network as seen by some of its ranks.
//!
//! The caller chooses whether data may pass the other compute nodes. The result is an ordinary topology: bounds, plans
//! and checks do not depend on where it comes from.

use crate::draft::{DraftLink, DraftNode, TopologyDraft};
use crate::error::TopologyError;
use crate::index::{NodeIndex, Rank};
use crate::limits::TopologyLimits;
use crate::model::{NodeKind, Topology};

/// The role of compute nodes outside the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transit {
    /// None: they and their links are left out, as if they belonged to another job.
    Unused,
    /// They forward, without a rank or data of their own: [`NodeKind::Forwarder`].
    Forward,
}

/// Errors of choosing a group.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum GroupError {
    #[error("rank {rank} is not in the topology; use ranks 0 to {}", rank_count - 1)]
    NoSuchRank { position: usize, rank: u32, rank_count: u32 },
    #[error("rank {rank} is in the group twice; name each rank once")]
    Twice { position: usize, rank: u32 },
    #[error("the group has {found} ranks; name at least two")]
    TooFewRanks { found: usize },
    #[error(transparent)]
    Topology(#[from] TopologyError),
}

impl GroupError {
    /// The position of the rank at fault, if there is one.
    pub const fn position(&self) -> Option<usize> {
        match self {
            Self::NoSuchRank { position, .. } | Self::Twice { position, .. } => Some(*position),
            Self::TooFewRanks { .. } | Self::Topology(_) => None,
        }
    }
}

impl Topology {
    /// The network among some ranks, renumbered in the order of the list from 0.
    ///
    /// Ids and attributes stay. Nodes that only forwarded before go on doing so.
    ///
    /// # Errors
    /// A rank that does not exist or is listed twice; fewer than two ranks. A network that is split is *not* refused
    /// here; see [`Topology::first_unreachable`].
    ///
    /// O(nodes log nodes + links log links).
    pub fn group(&self, members: &[Rank], transit: Transit) -> Result<Self, GroupError> {
        let new_ranks = self.new_ranks(members)?;
        let kind_of = |index: NodeIndex| match (self.rank_of(index), transit) {
            (None, _) => Some(self.node(index).kind),
            (Some(rank), _) if new_ranks[rank.index()].is_some() => Some(NodeKind::Compute),
            (Some(_), Transit::Forward) => Some(NodeKind::Forwarder),
            (Some(_), Transit::Unused) => None,
        };
        let mut draft = TopologyDraft::like(self);
        for (node, index) in self.nodes().iter().zip(0_u32..) {
            if let Some(kind) = kind_of(NodeIndex::new(index)) {
                let rank = new_ranks.get(index as usize).copied().flatten();
                draft.nodes.push(DraftNode { id: node.id.clone(), kind, rank, attributes: node.attributes.clone() });
            }
        }
        for link in self.links().iter().filter(|link| kind_of(link.from).is_some() && kind_of(link.to).is_some()) {
            let (from, to) = (self.node(link.from).id.clone(), self.node(link.to).id.clone());
            draft.links.push(DraftLink { from, to, capacity: link.capacity, latency: link.latency, count: 1 });
        }
        // The result is no larger than the topology it comes from, whose limits are not known here.
        Ok(draft.build(&TopologyLimits::UNLIMITED)?)
    }

    /// By rank: what it is called in the group, if it is a member.
    fn new_ranks(&self, members: &[Rank]) -> Result<Vec<Option<u32>>, GroupError> {
        let rank_count = self.rank_count();
        let mut new_ranks = vec![None; rank_count as usize];
        for ((position, &member), new_rank) in members.iter().enumerate().zip(0_u32..) {
            let rank = member.number();
            let slot = new_ranks.get_mut(member.index());
            let slot = slot.ok_or(GroupError::NoSuchRank { position, rank, rank_count })?;
            if slot.replace(new_rank).is_some() {
                return Err(GroupError::Twice { position, rank });
            }
        }
        match members.len() {
            found @ (0 | 1) => Err(GroupError::TooFewRanks { found }),
            _ => Ok(new_ranks),
        }
    }
}

/// Runs of ranks that are listed.
const RUNS_MAX: usize = 16;

/// How a group renumbers its ranks, in words; `None` if they keep their numbers. O(members).
pub fn renumbering(members: &[Rank]) -> Option<String> {
    // Runs of neighbours that stay neighbours: new numbers of the first and last, and the old number of the first.
    let mut runs: Vec<(u32, u32, u32)> = Vec::new();
    for (new, old) in (0_u32..).zip(members.iter().map(|member| member.number())) {
        match runs.last_mut().filter(|(first, _, start)| old.checked_sub(*start) == Some(new - *first)) {
            Some((_, last, _)) => *last = new,
            None => runs.push((new, new, old)),
        }
    }
    if matches!(runs[..], [] | [(_, _, 0)]) {
        return None;
    }
    let range = |first: u32, last: u32| if first == last { format!("{first}") } else { format!("{first}-{last}") };
    let run = |&(first, last, start): &(u32, u32, u32)| {
        // Two old numbers that both fit 32 bits.
        format!("{} (in the topology {})", range(first, last), range(start, start.saturating_add(last - first)))
    };
    let mut text = runs.iter().take(RUNS_MAX).map(run).collect::<Vec<_>>().join(", ");
    if runs.len() > RUNS_MAX {
        text += &format!(" and {} more runs", runs.len() - RUNS_MAX);
    }
    Some(format!("the ranks of the group are renumbered: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::DocumentFormat;
    use crate::document::{read_document, to_json, to_yaml};
    use crate::generate::generate;
    use crate::hash::{content_hash, identity_hash};

    fn network(expression: &str) -> Topology {
        generate(expression, &TopologyLimits::STANDARD).unwrap()
    }

    fn group(expression: &str, members: &[u32], transit: Transit) -> Result<Topology, GroupError> {
        let members: Vec<Rank> = members.iter().copied().map(Rank::new).collect();
        network(expression).group(&members, transit)
    }

    fn ids(topology: &Topology) -> Vec<&str> {
        topology.nodes().iter().map(|node| node.id.as_str()).collect()
    }

    /// On a ring of five, ranks 3, 0 and 2: two and three meet directly, the others only by way of 1 and 4.
    #[test]
    fn outsiders_forward_or_are_not_there() {
        let forwarding = group("ring:5", &[3, 0, 2], Transit::Forward).unwrap();
        assert_eq!(ids(&forwarding), ["3", "0", "2", "1", "4"]);
        assert_eq!((forwarding.rank_count(), forwarding.links().len()), (3, 10));
        assert_eq!(forwarding.forwarders().collect::<Vec<_>>(), [NodeIndex::new(3), NodeIndex::new(4)]);
        assert_eq!((forwarding.rank_of(NodeIndex::new(3)), forwarding.first_unreachable()), (None, None));

        let alone = group("ring:5", &[3, 0, 2], Transit::Unused).unwrap();
        assert_eq!((ids(&alone), alone.links().len()), (vec!["3", "0", "2"], 2));
        assert_eq!(alone.first_unreachable(), Some((Rank::new(0), Rank::new(1))));
        assert_eq!(alone.forwarders().count(), 0);
    }

    #[test]
    fn switches_and_attributes_stay() {
        let whole = network("dgx-a100:boxes=2");
        for transit in [Transit::Unused, Transit::Forward] {
            let half = group("dgx-a100:boxes=2", &[4, 5, 12, 13], transit).unwrap();
            assert_eq!(half.first_unreachable(), None);
            assert_eq!(half.name(), whole.name());
            for (node, index) in half.nodes().iter().zip(0_u32..) {
                let before = whole.node(whole.find_node(&node.id).unwrap());
                assert_eq!(node.attributes, before.attributes);
                assert_eq!(node.kind == NodeKind::Compute, index < 4);
            }
            let switches = half.nodes().iter().filter(|node| node.kind == NodeKind::PLAIN_SWITCH).count();
            assert_eq!(switches, 3);
        }
    }

    /// All ranks in their order are the whole again; a group of a group is a group.
    #[test]
    fn groups_nest() {
        let whole = network("rail:boxes=2,gpus=4");
        let everyone: Vec<Rank> = whole.ranks().collect();
        for transit in [Transit::Unused, Transit::Forward] {
            assert_eq!(whole.group(&everyone, transit), Ok(whole.clone()));
            let ranks = |numbers: &[u32]| numbers.iter().copied().map(Rank::new).collect::<Vec<_>>();
            let step = whole.group(&ranks(&[7, 1, 2, 5]), transit).unwrap().group(&ranks(&[3, 1, 0]), transit);
            assert_eq!(step, whole.group(&ranks(&[5, 1, 7]), transit));
        }
    }

    #[test]
    fn files_and_hashes_know_forwarders() {
        let forwarding = group("ring:5", &[3, 0, 2], Transit::Forward).unwrap();
        let read = |text: &str, format| read_document(text.as_bytes(), Some(format), &TopologyLimits::STANDARD);
        let yaml = to_yaml(&forwarding);
        assert!(yaml.contains("{id: \"1\", forwards: true}"), "{yaml}");
        assert_eq!(read(&yaml, DocumentFormat::Yaml).unwrap().topology, forwarding);
        assert_eq!(read(&to_json(&forwarding), DocumentFormat::Json).unwrap().topology, forwarding);
        let switched = yaml.replace("forwards: true", "kind: switch");
        let switched = read(&switched, DocumentFormat::Yaml).unwrap().topology;
        assert_ne!(content_hash(&switched), content_hash(&forwarding));
        assert_ne!(identity_hash(&switched), identity_hash(&forwarding));
        let capable = yaml.replace("forwards: true", "kind: switch, forwards: true");
        let refused = read(&capable, DocumentFormat::Yaml).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "nodes[3].forwards: node `1` is a switch, which always forwards; leave out this field"
        );
        let ranked = read(&yaml.replace("forwards: true", "forwards: true, rank: 3"), DocumentFormat::Yaml);
        assert_eq!(
            ranked.unwrap_err().to_string(),
            "node `1` only forwards and has a rank; leave out its rank or `forwards`"
        );
    }

    #[test]
    fn new_numbers_are_told_in_runs() {
        let told = |members: &[u32]| renumbering(&members.iter().copied().map(Rank::new).collect::<Vec<_>>());
        assert_eq!((told(&[0, 1, 2]), told(&[0]), told(&[])), (None, None, None));
        let anew = |runs: &str| Some(format!("the ranks of the group are renumbered: {runs}"));
        assert_eq!(told(&[4, 5, 6]), anew("0-2 (in the topology 4-6)"));
        assert_eq!(told(&[0, 1, 16]), anew("0-1 (in the topology 0-1), 2 (in the topology 16)"));
        assert_eq!(told(&[3, 2, u32::MAX]).map(|text| text.matches("in the topology").count()), Some(3));
        let scattered: Vec<u32> = (0..40).map(|rank| 2 * rank).collect();
        assert!(told(&scattered).is_some_and(|text| text.ends_with("15 (in the topology 30) and 24 more runs")));
    }

    #[test]
    fn bad_members_are_refused() {
        let refused = |members: &[u32]| group("ring:4", members, Transit::Unused).unwrap_err();
        assert_eq!(refused(&[0, 4]), GroupError::NoSuchRank { position: 1, rank: 4, rank_count: 4 });
        assert_eq!(refused(&[1, 2, 1]), GroupError::Twice { position: 2, rank: 1 });
        assert_eq!(refused(&[2]), GroupError::TooFewRanks { found: 1 });
        assert_eq!(refused(&[]), GroupError::TooFewRanks { found: 0 });
    }
}
