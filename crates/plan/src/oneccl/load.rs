//! How fast a network carries a program.

use std::collections::BTreeMap;

use canopy_topology::Topology;

use super::program::Program;
use crate::msccl::traffic::{Demand, routed};
use crate::msccl::{NetworkLoad, TrafficError};
use crate::proof::Stop;

/// Exact rate of a program on a network in the bandwidth limit, with one shortest route per pair of ranks, whatever routes
/// the file has: as [`network_load`](crate::network_load) says.
///
/// Steps are not counted: ranks that wait at their ends make it slower.
///
/// # Errors
/// As there. O(instructions) more.
pub fn network_load(program: &Program, topology: &Topology, stop: Stop<'_>) -> Result<NetworkLoad, TrafficError> {
    let mut chunks: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    for rank in &program.ranks {
        for send in rank.steps.iter().flat_map(|step| &step.sends) {
            *chunks.entry((rank.rank, send.peer)).or_default() += u64::from(send.span.count);
        }
    }
    let demand = Demand { rank_count: program.rank_count, chunks, data: u64::from(program.chunk_count) };
    routed(&demand, topology, stop)
}

#[cfg(test)]
mod tests {
    use canopy_topology::{TopologyLimits, generate};

    use super::*;
    use crate::oneccl::examples::programs;

    /// Each link of the ring carries three of three chunks' worth of blocks; the pair one of two each way, twice.
    #[test]
    fn the_busiest_link_decides() {
        let [all_to_all, allreduce] = programs();
        let rate = |program: &Program, expression: &str| {
            let topology = generate(expression, &TopologyLimits::STANDARD).unwrap();
            network_load(program, &topology, &|| false).map(|load| load.algbw.to_string())
        };
        assert_eq!(rate(&all_to_all, "ring:3,dir=uni,bw=6GB/s").unwrap(), "6000000000");
        assert_eq!(rate(&allreduce, "mesh:2,bw=6GB/s").unwrap(), "6000000000");
        assert_eq!(rate(&allreduce, "ring:3").unwrap_err(), TrafficError::Ranks { found: 2, expected: 3 });
    }
}
