//! What NCCL would see of a topology.

use std::collections::BTreeMap;

use canopy_topology::{NodeIndex, Topology};

use crate::machine::{Generation, Machine, Processor};

/// Machines that are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// One of them.
    pub machine: Machine,
    /// How many there are.
    pub nodes: u32,
}

/// Why a topology says too little.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Unseen {
    #[error("not every rank states its box")]
    NoBoxes,
    #[error("boxes have unequal numbers of ranks")]
    Uneven,
    #[error("no link leads out of a box")]
    NoNics,
    #[error("ranks of a box have no links inside it")]
    NothingInside,
    #[error("a link is slower than 1 MB/s")]
    TooSlow,
}

/// Least rates of all links of a GPU inside its machine, in MB/s, by which generations are told apart. Less than the last is
/// taken for PCI.
const GENERATIONS: [(u64, Generation); 4] = [
    (700_000, Generation::Blackwell),
    (350_000, Generation::Hopper),
    (200_000, Generation::Ampere),
    (100_000, Generation::Volta),
];

impl Seen {
    /// Each rank as a machine of its own, with a NIC for each of its links: what there is to see where boxes are not known.
    /// O(links).
    pub fn of_ranks(topology: &Topology) -> Self {
        let rates = topology.links().iter().filter(|link| link.from.number() == 0);
        let rates: Vec<u64> = rates.map(|link| link.capacity.bytes_per_sec() / 1_000_000).collect();
        let machine = Machine {
            gpus: 1,
            inside: 0,
            has_nvlink: false,
            nics: u32::try_from(rates.len()).unwrap_or(u32::MAX),
            nic: rates.into_iter().min().unwrap_or(0),
            nics_are_shared: true,
            ..Machine::DGX_A100
        };
        Self { machine, nodes: topology.rank_count().max(1) }
    }

    /// Machines are boxes: by node, the number of its box. Of each, what its first rank has inside and what leads out of it
    /// counts; the generation of GPUs is guessed from the former. O(links).
    ///
    /// # Errors
    /// Boxes are not known or not alike, or there is nothing that NCCL would use.
    pub fn of(topology: &Topology, boxes: &[Option<u32>]) -> Result<Self, Unseen> {
        let box_of = |node: NodeIndex| boxes.get(node.index()).copied().flatten();
        let mut sizes: BTreeMap<u32, u32> = BTreeMap::new();
        for rank in (0..topology.rank_count()).map(NodeIndex::new) {
            *sizes.entry(box_of(rank).ok_or(Unseen::NoBoxes)?).or_default() += 1;
        }
        let (Some(&first), Some(&gpus)) = (sizes.keys().next(), sizes.values().next()) else {
            return Err(Unseen::NoBoxes);
        };
        if sizes.values().any(|&size| size != gpus) {
            return Err(Unseen::Uneven);
        }
        let home = box_of(NodeIndex::new(0)).unwrap_or(first);
        let ranks = topology.rank_count();
        let (mut nics, mut nic, mut inside, mut is_switched) = (0_u32, u64::MAX, 0_u64, true);
        for link in topology.links().iter().filter(|link| box_of(link.from) == Some(home)) {
            let rate = link.capacity.bytes_per_sec() / 1_000_000;
            if box_of(link.to) != Some(home) {
                nics = nics.saturating_add(1);
                nic = nic.min(rate);
            } else if link.from.number() == 0 {
                inside = inside.saturating_add(rate);
                is_switched &= link.to.number() >= ranks;
            }
        }
        let nodes = u32::try_from(sizes.len()).unwrap_or(u32::MAX);
        match (nodes, nics, inside) {
            (2.., 0, _) => return Err(Unseen::NoNics),
            (_, _, 0) if gpus > 1 => return Err(Unseen::NothingInside),
            (2.., _, _) if nic == 0 => return Err(Unseen::TooSlow),
            _ => {}
        }
        let found = GENERATIONS.iter().find(|(least, _)| inside >= *least).map(|(_, generation)| *generation);
        let generation = found.unwrap_or(Generation::Ampere);
        let is_new = generation >= Generation::Hopper;
        let machine = Machine {
            generation,
            gpus,
            inside: if found.is_some() { generation.counted(inside) } else { inside },
            has_nvlink: found.is_some(),
            has_nvls: found.is_some() && is_new && is_switched && gpus > 1,
            has_collnet: false,
            nics,
            nic: if nics == 0 { 0 } else { nic },
            pci: if is_new { 48_000 } else { 24_000 },
            network_ns: 0,
            processor: if generation == Generation::Ampere { Processor::Amd } else { Processor::Intel },
            nics_are_shared: !is_new || nics.saturating_mul(2) <= gpus,
        };
        Ok(Self { machine, nodes })
    }
}
