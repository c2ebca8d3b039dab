//! ASTRA-sim's analytical networks: products of rings, fully connected groups and switches.
//!
//! Such a network numbers its ranks in mixed radix, the innermost dimension fastest, and has the same rate and latency on
//! all links of a dimension. Which dimensions a network has is read off rank 0's neighbours, from the inside out; then
//! every link is compared with what these dimensions have, so nothing is written that is not this network.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use canopy_topology::{Capacity, Latency, Link, NodeIndex, NodeKind, Topology};

/// A network as a product of dimensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// Innermost first: ranks that differ by 1 are neighbours in the first.
    pub dimensions: Vec<Dimension>,
}

/// One dimension: the network falls into groups of `rank_count` ranks, each joined in this way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dimension {
    /// How the ranks of a group are joined.
    pub block: Block,
    /// Ranks of a group, ≥ 2.
    pub rank_count: u32,
    /// Of each directed link.
    pub capacity: Capacity,
    /// Of each link; messages through a switch take two.
    pub latency: Latency,
}

/// How the ranks of a group are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// Each to the next and to the one before, ≥ 3 of them.
    Ring,
    /// Each to every other.
    FullyConnected,
    /// Each to one switch that joins no others.
    Switch,
}

impl Block {
    /// Its name in network files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ring => "Ring",
            Self::FullyConnected => "FullyConnected",
            Self::Switch => "Switch",
        }
    }
}

/// Why a network cannot be exported to ASTRA-sim.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum NetworkError {
    #[error(
        "the network is not a product of rings, fully connected groups and switches: rank 0 ({id}) is not joined in any \
         of these ways with the first multiples of {stride}; number ranks innermost dimension first"
    )]
    NoDimension { id: String, stride: u32 },
    #[error("link {from} -> {to} belongs to no dimension of {dimensions}; number ranks innermost dimension first")]
    Foreign { from: String, to: String, dimensions: String },
    #[error(
        "link {from} -> {to} differs in bandwidth or latency from the others in dimension {dimension} of {dimensions}"
    )]
    Uneven { from: String, to: String, dimension: usize, dimensions: String },
    #[error("{dimensions} has {expected} links in dimension {dimension}, but the network has {found}")]
    Missing { dimensions: String, dimension: usize, expected: u64, found: u64 },
}

/// A dimension without rates: block, ranks of a group, and how far apart its neighbours are numbered.
#[derive(Clone, Copy, Debug)]
struct Axis {
    block: Block,
    rank_count: u32,
    stride: u32,
}

/// What rank 0 sees.
struct View {
    rank_count: u32,
    /// Ranks it has a direct link to.
    direct: BTreeSet<u32>,
    /// Ranks that each switch beside it joins.
    switched: BTreeSet<Vec<u32>>,
}

/// Which product of dimensions a network is.
///
/// * **Out.** Dimensions from the inside out; of three ranks a ring, of two a fully connected group.
/// * **Errors.** What keeps it from being one, with the link or rank where that shows.
/// * **Cost.** O(links · dimensions), but for the few factors of the number of ranks that are tried.
pub fn network(topology: &Topology) -> Result<Network, NetworkError> {
    let members = members(topology);
    let view = View::new(topology, &members);
    let mut deepest = 1;
    let Some(axes) = view.axes_from(1, 0, &mut deepest) else {
        return Err(NetworkError::NoDimension { id: topology.nodes()[0].id.clone(), stride: deepest });
    };
    measured(topology, &members, &axes)
}

/// The ranks that each node which is no rank has links to or from, sorted.
fn members(topology: &Topology) -> BTreeMap<NodeIndex, Vec<u32>> {
    let mut members: BTreeMap<NodeIndex, Vec<u32>> = BTreeMap::new();
    for link in topology.links() {
        for (node, other) in [(link.from, link.to), (link.to, link.from)] {
            let is_switch = matches!(topology.node(node).kind, NodeKind::Switch { .. });
            if let (true, Some(rank)) = (is_switch, topology.rank_of(other)) {
                members.entry(node).or_default().push(rank.number());
            }
        }
    }
    for ranks in members.values_mut() {
        ranks.sort_unstable();
        ranks.dedup();
    }
    members
}

impl View {
    fn new(topology: &Topology, members: &BTreeMap<NodeIndex, Vec<u32>>) -> Self {
        let neighbours = || topology.links_from(NodeIndex::new(0)).map(|link| topology.link(link).to);
        Self {
            rank_count: topology.rank_count(),
            direct: neighbours().filter_map(|node| topology.rank_of(node)).map(|rank| rank.number()).collect(),
            switched: neighbours().filter_map(|node| members.get(&node).cloned()).collect(),
        }
    }

    /// Axes from this stride outwards that rank 0's neighbours allow, with so many switches inside; notes how far it came.
    fn axes_from(&self, stride: u32, switches: usize, deepest: &mut u32) -> Option<Vec<Axis>> {
        if stride == self.rank_count {
            // A switch that no axis takes is one too many.
            return (switches == self.switched.len()).then(Vec::new);
        }
        *deepest = stride.max(*deepest);
        let left = self.rank_count / stride;
        let sizes = (2..=left).filter(|size| left.is_multiple_of(*size));
        for rank_count in sizes {
            for block in [Block::Switch, Block::Ring, Block::FullyConnected] {
                let axis = Axis { block, rank_count, stride };
                if !self.allows(axis) {
                    continue;
                }
                if let Some(mut axes) =
                    self.axes_from(stride * rank_count, switches + usize::from(block == Block::Switch), deepest)
                {
                    axes.insert(0, axis);
                    return Some(axes);
                }
            }
        }
        None
    }

    /// Whether rank 0 has the neighbours of this axis and no others among the ranks that the axis numbers.
    fn allows(&self, axis: Axis) -> bool {
        let Axis { block, rank_count, stride } = axis;
        let group = || (1..rank_count).map(|place| place * stride);
        let mut seen = self.direct.range(stride..stride * rank_count).copied();
        match block {
            Block::Switch => {
                let group: Vec<u32> = std::iter::once(0).chain(group()).collect();
                seen.next().is_none() && self.switched.contains(&group)
            }
            Block::Ring => rank_count > 2 && seen.eq([stride, (rank_count - 1) * stride]),
            Block::FullyConnected => seen.eq(group()),
        }
    }
}

impl Axis {
    /// The place of a rank on the axis.
    const fn place(self, rank: u32) -> u32 {
        rank / self.stride % self.rank_count
    }

    /// Whether two ranks differ in nothing but their places on the axis.
    const fn joins(self, a: u32, b: u32) -> bool {
        a - self.place(a) * self.stride == b - self.place(b) * self.stride && a != b
    }

    /// Whether the axis has a link from one of its ranks to another.
    const fn links(self, a: u32, b: u32) -> bool {
        let apart = (self.place(a) + self.rank_count - self.place(b)) % self.rank_count;
        match self.block {
            Block::Ring => self.joins(a, b) && (apart == 1 || apart == self.rank_count - 1),
            Block::FullyConnected => self.joins(a, b),
            Block::Switch => false,
        }
    }

    /// Links of the axis on so many ranks.
    fn link_count(self, rank_count: u32) -> u64 {
        let of_rank = match self.block {
            Block::Ring | Block::Switch => 2,
            Block::FullyConnected => self.rank_count - 1,
        };
        u64::from(rank_count) * u64::from(of_rank)
    }
}

/// Compares every link with the axes, and finds their rates.
fn measured(
    topology: &Topology,
    members: &BTreeMap<NodeIndex, Vec<u32>>,
    axes: &[Axis],
) -> Result<Network, NetworkError> {
    let words = || {
        let words: Vec<String> =
            axes.iter().map(|axis| format!("{}({})", axis.block.name(), axis.rank_count)).collect();
        words.join(" x ")
    };
    let id = |node: NodeIndex| topology.node(node).id.clone();
    let mut found: Vec<Option<(&Link, u64)>> = vec![None; axes.len()];
    for link in topology.links() {
        let foreign = || NetworkError::Foreign { from: id(link.from), to: id(link.to), dimensions: words() };
        let dimension = axis_of(topology, members, axes, link).ok_or_else(foreign)?;
        let (first, count) = found[dimension].get_or_insert((link, 0));
        *count += 1;
        if (first.capacity, first.latency) != (link.capacity, link.latency) {
            let (from, to) = (id(link.from), id(link.to));
            return Err(NetworkError::Uneven { from, to, dimension: dimension + 1, dimensions: words() });
        }
    }
    let mut dimensions = Vec::with_capacity(axes.len());
    for (at, (axis, found)) in (1..).zip(axes.iter().zip(found)) {
        let expected = axis.link_count(topology.rank_count());
        let (link, _) = found.filter(|&(_, count)| count == expected).ok_or_else(|| {
            let found = found.map_or(0, |(_, count)| count);
            NetworkError::Missing { dimensions: words(), dimension: at, expected, found }
        })?;
        let (capacity, latency) = (link.capacity, link.latency);
        dimensions.push(Dimension { block: axis.block, rank_count: axis.rank_count, capacity, latency });
    }
    Ok(Network { dimensions })
}

/// The axis that a link is of.
fn axis_of(topology: &Topology, members: &BTreeMap<NodeIndex, Vec<u32>>, axes: &[Axis], link: &Link) -> Option<usize> {
    let ranks = [link.from, link.to].map(|node| topology.rank_of(node).map(|rank| rank.number()));
    match ranks {
        [Some(from), Some(to)] => axes.iter().position(|axis| axis.links(from, to)),
        [None, None] => None,
        [_, None] => switch_axis(axes, members.get(&link.to)?),
        [None, _] => switch_axis(axes, members.get(&link.from)?),
    }
}

/// The axis of which a switch with these ranks joins one whole group.
fn switch_axis(axes: &[Axis], ranks: &[u32]) -> Option<usize> {
    let first = *ranks.first()?;
    let is_group = |axis: &Axis| {
        let others = ranks.iter().all(|&rank| rank == first || axis.joins(first, rank));
        axis.block == Block::Switch && ranks.len() == axis.rank_count as usize && others
    };
    axes.iter().position(is_group)
}

/// The network file: YAML as ASTRA-sim's analytical back ends read it.
///
/// Bandwidths are in units of 2³⁰ bytes per second, exact: the back ends call that GB/s.
impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |of: &dyn Fn(&Dimension) -> String| -> String {
            self.dimensions.iter().map(of).collect::<Vec<_>>().join(", ")
        };
        writeln!(f, "# Innermost dimension first; of bandwidth, 1 is 2^30 bytes per second.")?;
        writeln!(f, "topology: [ {} ]", list(&|dimension| dimension.block.name().to_owned()))?;
        writeln!(f, "npus_count: [ {} ]", list(&|dimension| dimension.rank_count.to_string()))?;
        writeln!(f, "bandwidth: [ {} ]", list(&|dimension| in_gib(dimension.capacity)))?;
        writeln!(f, "latency: [ {} ]", list(&|dimension| format!("{}.0", dimension.latency.nanos())))
    }
}

/// A rate in units of 2³⁰ bytes per second, as a decimal fraction of all its digits, at most 30 behind the point.
fn in_gib(capacity: Capacity) -> String {
    let rate = u128::from(capacity.bytes_per_sec());
    let (whole, mut part) = (rate >> 30, rate & ((1 << 30) - 1));
    let mut text = format!("{whole}.");
    loop {
        part *= 10;
        text += &(part >> 30).to_string();
        part &= (1 << 30) - 1;
        if part == 0 {
            return text;
        }
    }
}
