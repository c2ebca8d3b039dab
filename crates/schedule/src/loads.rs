//! How busy a schedule keeps each link, exactly: for explanations and drawings of what was judged.

use canopy_topology::{Link, LinkIndex, Rate, Ratio, Topology};
use num_bigint::BigUint;

use crate::check::{CheckError, LoadError, StructureError, link_loads};
use crate::transfer::TransferGraph;

/// Chunks over each link, and the part of the time of the busiest link during which each is busy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkLoads {
    chunks: Vec<u128>,
    /// By link: 0 if it is unused, 1 if it is always busy.
    busy: Vec<Ratio>,
    traffic: Ratio,
}

impl LinkLoads {
    /// Adds up the loads of a graph that [`check`](crate::check) accepted on the links of its topology.
    ///
    /// A link of capacity `c` that carries `L` chunks is busy for `L/c`; the schedule takes as long as the busiest one in the
    /// bandwidth limit.
    ///
    /// * **Errors.** Shares that do not match, sums that are too large, or a graph that moves no data.
    /// * **Cost.** O(carriers of all transfers + links of all routes).
    pub fn of(topology: &Topology, graph: &TransferGraph) -> Result<Self, CheckError> {
        let layout = graph.layout().map_err(StructureError::from)?;
        let chunks = link_loads(topology, graph)?;
        let time = |(&load, link): (&u128, &Link)| Rate::new(load, link.capacity.bytes_per_sec());
        let times: Vec<Rate> =
            chunks.iter().zip(topology.links()).map(time).collect::<Option<_>>().expect("capacities are not zero");
        let longest = times.iter().max().filter(|longest| !longest.is_zero()).ok_or(LoadError::NothingMoves)?;
        let busy = times.iter().map(|time| time.ratio_to(longest)).collect::<Option<_>>().expect("something moves");
        let all: BigUint = chunks.iter().map(|&load| BigUint::from(load)).sum();
        let traffic = layout.size().ratio(all);
        Ok(Self { chunks, busy, traffic })
    }

    /// Chunks over a link, all phases and all routes together.
    pub fn chunks(&self, link: LinkIndex) -> u128 {
        self.chunks[link.index()]
    }

    /// The part of the time during which a link is busy, from 0 to 1.
    pub fn busy(&self, link: LinkIndex) -> &Ratio {
        &self.busy[link.index()]
    }

    /// Bottleneck links, by index: they are always busy and set the rate of the schedule.
    pub fn binding(&self) -> impl Iterator<Item = LinkIndex> + '_ {
        (0..).zip(&self.busy).filter(|(_, busy)| busy.is_one()).map(|(index, _)| LinkIndex::new(index))
    }

    /// Bytes over all links for each byte of *size*.
    pub fn traffic(&self) -> &Ratio {
        &self.traffic
    }
}
