//! Partitions that a network names by itself: its boxes, or its ranks.

use std::collections::HashMap;

use canopy_topology::{NodeIndex, Topology};

/// What the sets of a partition are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedParts {
    /// The nodes of each box that a node names, in the order of the first ones.
    Boxes,
    /// The ranks, each by itself.
    Ranks,
}

impl NamedParts {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Boxes, Self::Ranks];

    /// The word for them: `boxes` or `ranks`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Boxes => "boxes",
            Self::Ranks => "ranks",
        }
    }

    /// What these sets are, if all are of one kind. O(nodes).
    pub fn of(topology: &Topology, sets: &[Vec<NodeIndex>]) -> Option<Self> {
        let are_single = sets.iter().all(|set| set.len() == 1);
        Self::ALL
            .into_iter()
            .filter(|&parts| are_single || parts != Self::Ranks)
            .find(|parts| parts.sets(topology) == sets)
    }

    /// The sets. O(nodes).
    pub fn sets(self, topology: &Topology) -> Vec<Vec<NodeIndex>> {
        match self {
            Self::Ranks => topology.ranks().map(|rank| vec![rank.node()]).collect(),
            Self::Boxes => {
                let mut numbers: HashMap<&str, usize> = HashMap::new();
                let mut sets: Vec<Vec<NodeIndex>> = Vec::new();
                for (index, node) in (0..).map(NodeIndex::new).zip(topology.nodes()) {
                    let Some(name) = node.attributes.box_name.as_deref() else { continue };
                    let number = *numbers.entry(name).or_insert(sets.len());
                    if number == sets.len() {
                        sets.push(Vec::new());
                    }
                    sets[number].push(index);
                }
                sets
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use canopy_topology::{TopologyLimits, generate};

    use super::*;

    #[test]
    fn sets_are_known_by_what_they_are() {
        let topology = generate("dgx-a100:boxes=3,gpus=2", &TopologyLimits::STANDARD).unwrap();
        for parts in NamedParts::ALL {
            let mut sets = parts.sets(&topology);
            assert_eq!(NamedParts::of(&topology, &sets), Some(parts));
            assert!(topology.ranks().all(|rank| sets.iter().filter(|set| set.contains(&rank.node())).count() == 1));
            sets.pop();
            assert_eq!(NamedParts::of(&topology, &sets), None);
        }
        assert_eq!(NamedParts::Boxes.sets(&topology)[0].len(), 3);
        assert_eq!(NamedParts::of(&topology, &[]), None);
    }
}
