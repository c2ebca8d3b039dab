//! Rates of what tools do not state, in each direction, as NCCL and RCCL take them.

use canopy_topology::Capacity;

/// Tenths of GB/s, the unit of the tables.
const fn tenths(number: u64) -> Capacity {
    Capacity::from_bytes_per_sec(number * 100_000_000).expect("no rate of the tables is 0")
}

/// Between two CPUs of an unknown make: the lowest of the tables.
pub(super) const CPUS: Capacity = tenths(60);
/// 16 lanes of PCIe.
pub(super) const PCIE_3: Capacity = tenths(120);
pub(super) const PCIE_4: Capacity = tenths(240);
pub(super) const PCIE_5: Capacity = tenths(480);

/// What a GPU has of links to others, by its generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Generation {
    /// Names for people.
    pub(super) gpus: &'static str,
    /// One link.
    pub(super) link: Capacity,
    /// Its slot, and the generation of that.
    pub(super) pcie: Capacity,
    pub(super) pcie_generation: u8,
}

const fn generation(gpus: &'static str, link: u64, pcie_generation: u8) -> Generation {
    let pcie = match pcie_generation {
        3 => PCIE_3,
        4 => PCIE_4,
        _ => PCIE_5,
    };
    Generation { gpus, link: tenths(link), pcie, pcie_generation }
}

/// GPUs with `links` NVLinks, of which `bundle` lead to one place.
///
/// H100 and H200 have 18, A100 12, V100 6, P100 4. Two Ampere cards on a bridge have 4 to each other, and a P100 with 4
/// links to GPUs has one to each. A number between is that of a GPU some of whose links are down or lead elsewhere.
/// `is_grace` says that two GPUs share a Grace CPU: these are of the Blackwell generation, with 18 links, too.
pub(super) fn nvidia(links: u64, bundle: u64, is_grace: bool) -> Generation {
    match (links, bundle) {
        (13..=18, _) if is_grace => generation("GB200 or GB300", 401, 5),
        (19.., _) => generation("Blackwell or later", 401, 5),
        (13..=18, _) => generation("H100 or H200 (B200 has 40.1GB/s a link)", 206, 5),
        (9..=12, _) => generation("A100", 200, 4),
        (7 | 8, _) => generation("A800 (H800 has 20.6GB/s a link)", 200, 4),
        (5 | 6, _) => generation("V100", 200, 3),
        (4, 4) => generation("A40, A6000 or RTX 3090", 120, 4),
        (4, 1) => generation("P100", 180, 3),
        _ => generation("V100", 200, 3),
    }
}

/// AMD GPUs, by whether each of more than four is linked to each other.
pub(super) fn amd(is_mesh: bool) -> Generation {
    if is_mesh {
        return generation("MI300", 480, 5);
    }
    generation("MI250 or MI210 (MI300 has 48GB/s a link, MI100 24GB/s)", 360, 4)
}

/// A GPU without links.
pub(super) const PLAIN: Generation = generation("GPUs without links", 200, 4);
