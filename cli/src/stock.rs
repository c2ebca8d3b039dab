//! Stock NCCL and RCCL on the machines that a network names.

use canopy_canonical::boxes;
use canopy_nccl::{Known, Seen, Stock, Version};
use canopy_topology::Topology;

/// The model of a release, and the machines that it sees. Errors say in words why there is no model.
pub(crate) fn stock_of(version: Version, topology: &Topology) -> Result<(Stock, Seen), String> {
    let seen = Seen::of(topology, &boxes(topology)).map_err(|unseen| unseen.to_string())?;
    let Seen { machine, nodes } = seen;
    let stock = match (version, machine.gpus) {
        (Version::Rccl2_21, 16) => Stock::rccl(Known::Mi250, machine, nodes),
        (Version::Rccl2_21, 8) => Stock::rccl(Known::Mi300x, machine, nodes),
        (Version::Rccl2_21, gpus) => {
            return Err(format!("its tables are known for boxes of 8 (MI300X) and 16 (MI250), not {gpus}"));
        }
        _ => Stock::nccl(version, machine, nodes),
    };
    Ok((stock, seen))
}
