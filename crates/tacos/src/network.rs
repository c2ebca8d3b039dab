//! Networks of links with times.

/// Longest latency and occupancy: sums of 2²³ of them fit.
const TICKS_MAX: u64 = 1 << 40;

/// A directed link that carries one chunk after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimedLink {
    /// The node that sends.
    pub from: u32,
    /// The node that receives.
    pub to: u32,
    /// Ticks from the start of a send until the chunk is there: α + β·n for chunks of n bytes.
    pub latency: u64,
    /// Ticks from the start of a send until the next may start: β·n.
    pub occupancy: u64,
}

/// Nodes and the links between them, several between the same two allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimedNetwork {
    node_count: u32,
    links: Vec<TimedLink>,
    outgoing: Incidence,
    incoming: Incidence,
}

/// Errors of building a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum NetworkError {
    #[error("link {link} leads from {from} to {to}, but nodes are numbered below {node_count}")]
    UnknownNode { link: usize, from: u32, to: u32, node_count: u32 },
    #[error("link {link} leads from node {node} to itself")]
    ToItself { link: usize, node: u32 },
    #[error("link {link} takes {ticks} ticks; use 1 to {TICKS_MAX}")]
    Ticks { link: usize, ticks: u64 },
    #[error("{found} links are too many to number")]
    TooManyLinks { found: usize },
}

impl TimedNetwork {
    /// A network of nodes `0..node_count`.
    ///
    /// # Errors
    /// [`NetworkError`]: ends that are no nodes or the same, times of 0 or of more than 2⁴⁰. O(nodes + links).
    pub fn new(node_count: u32, links: Vec<TimedLink>) -> Result<Self, NetworkError> {
        if u32::try_from(links.len()).is_err() {
            return Err(NetworkError::TooManyLinks { found: links.len() });
        }
        for (link, &TimedLink { from, to, latency, occupancy }) in links.iter().enumerate() {
            if from.max(to) >= node_count {
                return Err(NetworkError::UnknownNode { link, from, to, node_count });
            }
            if from == to {
                return Err(NetworkError::ToItself { link, node: from });
            }
            if let Some(ticks) = [latency, occupancy].into_iter().find(|ticks| !(1..=TICKS_MAX).contains(ticks)) {
                return Err(NetworkError::Ticks { link, ticks });
            }
        }
        let outgoing = Incidence::new(node_count, links.iter().map(|link| link.from));
        let incoming = Incidence::new(node_count, links.iter().map(|link| link.to));
        Ok(Self { node_count, links, outgoing, incoming })
    }

    /// The network with every link turned around; links keep their numbers.
    #[must_use]
    pub fn transposed(&self) -> Self {
        let turned = |&link: &TimedLink| TimedLink { from: link.to, to: link.from, ..link };
        Self {
            node_count: self.node_count,
            links: self.links.iter().map(turned).collect(),
            outgoing: self.incoming.clone(),
            incoming: self.outgoing.clone(),
        }
    }

    /// Number of nodes.
    pub const fn node_count(&self) -> u32 {
        self.node_count
    }

    /// All links, by number.
    pub fn links(&self) -> &[TimedLink] {
        &self.links
    }

    /// A link by its number.
    ///
    /// # Panics
    /// If no link has this number.
    pub fn link(&self, link: u32) -> TimedLink {
        self.links[link as usize]
    }

    /// Numbers of the links that leave a node, in order.
    pub fn outgoing(&self, node: u32) -> &[u32] {
        self.outgoing.of(node)
    }

    /// Numbers of the links that enter a node, in order.
    pub fn incoming(&self, node: u32) -> &[u32] {
        self.incoming.of(node)
    }
}

/// Numbers of links by one of their ends.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Incidence {
    starts: Vec<usize>,
    links: Vec<u32>,
}

impl Incidence {
    fn new(node_count: u32, ends: impl Iterator<Item = u32> + Clone) -> Self {
        let mut starts = vec![0; node_count as usize + 1];
        ends.clone().for_each(|end| starts[end as usize + 1] += 1);
        for node in 0..node_count as usize {
            starts[node + 1] += starts[node];
        }
        let mut next = starts.clone();
        let mut links = vec![0; starts[node_count as usize]];
        for (link, end) in (0..).zip(ends) {
            links[next[end as usize]] = link;
            next[end as usize] += 1;
        }
        Self { starts, links }
    }

    fn of(&self, node: u32) -> &[u32] {
        &self.links[self.starts[node as usize]..self.starts[node as usize + 1]]
    }
}
