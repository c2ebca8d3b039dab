//! How busy a schedule keeps each link, exactly: for explanations and drawings of what was judged.

use canopy_topology::{Link, LinkIndex, Rate, Ratio, Topology};
use num_bigint::BigUint;

use crate::check::{CheckError, LoadError, StructureError, judge_orbits_until, judge_stages_until, link_loads};
use crate::collective::Collective;
use crate::orbits::Orbits;
use crate::shares::{ChunkLayout, ChunkSize, Shares};
use crate::stages::Stages;
use crate::transfer::TransferGraph;

/// Chunks over each link in an exchange in stages, which is judged.
///
/// * **Errors.** Those of [`check_stages_until`](crate::check_stages_until). **Cost.** Its cost.
pub fn chunks_of_stages(topology: &Topology, collective: Collective, stages: &Stages) -> Result<Vec<u128>, CheckError> {
    Ok(judge_stages_until(topology, collective, &Shares::Equal, stages, &|| false)?.1)
}

/// The same in an orbit forest.
///
/// * **Errors.** Those of [`check_orbits_until`](crate::check_orbits_until). **Cost.** Its cost.
pub fn chunks_of_orbits(topology: &Topology, collective: Collective, orbits: &Orbits) -> Result<Vec<u128>, CheckError> {
    Ok(judge_orbits_until(topology, collective, &Shares::Equal, orbits, &|| false)?.1)
}

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
        Self::from_chunks(topology, link_loads(topology, graph)?, layout.size())
    }

    /// The same of an exchange in stages, which is judged.
    ///
    /// * **Errors.** Those of [`check_stages_until`](crate::check_stages_until). **Cost.** Its cost.
    pub fn of_stages(topology: &Topology, collective: Collective, stages: &Stages) -> Result<Self, CheckError> {
        let chunks = chunks_of_stages(topology, collective, stages)?;
        let layout = ChunkLayout::new(collective, topology.rank_count(), stages.chunks_per_share, &Shares::Equal);
        Self::from_chunks(topology, chunks, layout.map_err(StructureError::from)?.size())
    }

    /// The same of an orbit forest, which is judged.
    ///
    /// * **Errors.** Those of [`check_orbits_until`](crate::check_orbits_until). **Cost.** Its cost.
    pub fn of_orbits(topology: &Topology, collective: Collective, orbits: &Orbits) -> Result<Self, CheckError> {
        let chunks = chunks_of_orbits(topology, collective, orbits)?;
        let layout = ChunkLayout::new(collective, topology.rank_count(), orbits.chunks_per_share, &Shares::Equal);
        Self::from_chunks(topology, chunks, layout.map_err(StructureError::from)?.size())
    }

    fn from_chunks(topology: &Topology, chunks: Vec<u128>, size: ChunkSize) -> Result<Self, CheckError> {
        let time = |(&load, link): (&u128, &Link)| Rate::new(load, link.capacity.bytes_per_sec());
        let times: Vec<Rate> =
            chunks.iter().zip(topology.links()).map(time).collect::<Option<_>>().expect("capacities are not zero");
        let longest = times.iter().max().filter(|longest| !longest.is_zero()).ok_or(LoadError::NothingMoves)?;
        let busy = times.iter().map(|time| time.ratio_to(longest)).collect::<Option<_>>().expect("something moves");
        let all: BigUint = chunks.iter().map(|&load| BigUint::from(load)).sum();
        let traffic = size.ratio(all);
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
