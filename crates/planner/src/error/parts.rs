//! The components of a disconnected network, as text that fits a message.

use std::fmt;

use canopy_topology::{Rank, Topology};

/// Most components to list.
const COMPONENTS_MAX: usize = 8;
/// Most characters of ids to list per component: details travel in headers of limited length.
const IDS_CHARACTERS_MAX: usize = 160;

/// The components of a network: sets of ranks that reach each other.
#[derive(Debug)]
pub struct Parts {
    /// Number of components.
    pub count: usize,
    /// The first ones as text: `a, b` or `a, b and 6 more`.
    pub listed: Vec<String>,
}

impl Parts {
    /// The components of a disconnected network. O(nodes + links).
    pub(crate) fn of(topology: &Topology) -> Self {
        let components = topology.components();
        let listed = components.iter().take(COMPONENTS_MAX).map(|ranks| ids(topology, ranks)).collect();
        Self { count: components.len(), listed }
    }
}

/// The ids of as many ranks as fit, at least one.
fn ids(topology: &Topology, ranks: &[Rank]) -> String {
    let mut text = String::new();
    for (position, rank) in ranks.iter().enumerate() {
        let id = &topology.node(rank.node()).id;
        if position > 0 && text.len() + id.len() > IDS_CHARACTERS_MAX {
            return format!("{text} and {} more", ranks.len() - position);
        }
        let separator = if position > 0 { ", " } else { "" };
        text += &format!("{separator}{}", id.chars().take(IDS_CHARACTERS_MAX).collect::<String>());
    }
    text
}

impl fmt::Display for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.count == 2 {
            return write!(f, "the network is split in two: {{{}}}", self.listed.join("} and {"));
        }
        write!(f, "the network is split into {} components: {{{}}}", self.count, self.listed.join("}, {"))?;
        match self.count.saturating_sub(self.listed.len()) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use canopy_topology::{Capacity, Latency, TopologyDraft, TopologyLimits};

    use super::*;

    /// Rings of these sizes, with ids of this length.
    fn rings(sizes: &[usize], id_length: usize) -> Topology {
        let mut draft = TopologyDraft::default();
        let rate = Capacity::from_bytes_per_sec(1).unwrap();
        for (ring, &size) in sizes.iter().enumerate() {
            let id = |rank: usize| format!("{:0>id_length$}", format!("r{ring}.{rank}"));
            (0..size).for_each(|rank| draft.add_compute(id(rank)));
            (0..size)
                .filter(|_| size > 1)
                .for_each(|rank| draft.add_link(id(rank), id((rank + 1) % size), rate, Latency::default()));
        }
        draft.build(&TopologyLimits::STANDARD).unwrap()
    }

    #[test]
    fn parts_are_listed_within_bounds() {
        assert_eq!(Parts::of(&rings(&[2, 1], 0)).to_string(), "the network is split in two: {r0.0, r0.1} and {r1.0}");
        let shattered = Parts::of(&rings(&[1; 30], 0)).to_string();
        assert!(shattered.ends_with("{r7.0} and 22 more"), "{shattered}");
        let large = Parts::of(&rings(&[50, 1], 0)).to_string();
        assert!(large.contains(" and ") && large.contains(" more} and {r1.0}"), "{large}");
        let long = Parts::of(&rings(&[3; 30], 255)).to_string();
        assert!(long.len() < 2_000, "{long}");
    }
}
