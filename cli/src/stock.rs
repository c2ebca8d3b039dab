//! Stock NCCL and RCCL on the machines that a network names.

use std::fmt;

use canopy_canonical::boxes;
use canopy_nccl::{Known, Seen, Stock, Version};
use canopy_topology::Topology;

/// A library as it is run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Library {
    pub(crate) version: Version,
    /// Whether it has switches of the network add up.
    pub(crate) has_collnet: bool,
}

/// `NCCL 2.30`, `NCCL 2.30 with CollNet`.
impl fmt::Display for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.version, if self.has_collnet { " with CollNet" } else { "" })
    }
}

/// The model of a library, and the machines that it sees. Errors say in words why there is no model.
pub(crate) fn stock_of(library: Library, topology: &Topology) -> Result<(Stock, Seen), String> {
    let Library { version, has_collnet } = library;
    if has_collnet && version == Version::Rccl2_21 {
        return Err("its tables know nothing of switches that add up: remove `--collnet`".to_owned());
    }
    let mut seen = Seen::of(topology, &boxes(topology)).map_err(|unseen| unseen.to_string())?;
    seen.machine.has_collnet = has_collnet;
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
