//! Wide links as several parallel ones, each as wide as the narrowest of all.
//!
//! Together they carry as much, and all links of the network are alike then: what is decided step by step for these loses next to
//! nothing, where links of different speeds cost some time. A chunk takes longer on a part than on the whole, which counts where
//! latencies do and where a link has few chunks to carry.

use canopy_topology::{Link, Topology};

use super::LINKS_MAX;

/// Most parallel links in place of one.
const WIDTH_MAX: u64 = 4;
/// Most parallel links for each link of the network, on the average.
const GROWTH_MAX: u64 = 3;

/// By link, how many links of the narrowest one's capacity it amounts to.
///
/// * **None.** All links have the same capacity already, one is no multiple of the narrowest or too large a one, there is a switch, or the parts would be too
///   many. **Cost.** O(links).
pub(super) fn widths(topology: &Topology) -> Option<Vec<u64>> {
    let links = topology.links();
    let narrowest = links.iter().map(|link| link.capacity.bytes_per_sec()).min()?;
    let width = |link: &Link| {
        let joins_ranks = [link.from, link.to].iter().all(|&end| topology.rank_of(end).is_some());
        let capacity = link.capacity.bytes_per_sec();
        let width = Some(capacity / narrowest).filter(|&width| width <= WIDTH_MAX)?;
        (joins_ranks && capacity.is_multiple_of(narrowest)).then_some(width)
    };
    let widths = links.iter().map(width).collect::<Option<Vec<u64>>>()?;
    let (total, count) = (widths.iter().sum::<u64>(), links.len() as u64);
    (count < total && total <= (LINKS_MAX as u64).min(GROWTH_MAX * count)).then_some(widths)
}
