//! What NCCL would see of a topology.

use std::collections::BTreeMap;

use canopy_topology::{NodeIndex, NodeKind, Topology};

use crate::nccl::choice::Stock;
use crate::nccl::machine::{Generation, HOPPER_INSIDE, Machine, Processor};
use crate::nccl::nvls::nvls_switches;
use crate::nccl::rccl::Known;
use crate::nccl::version::Version;

/// Machines that are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Who makes their GPUs.
    pub maker: Maker,
    /// One of them.
    pub machine: Machine,
    /// How many there are.
    pub nodes: u32,
}

/// Who makes the GPUs of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Maker {
    /// NVIDIA: NCCL runs on them.
    Nvidia,
    /// AMD: RCCL runs on them, and has tables for some machines.
    Amd(Option<Known>),
}

/// Why there is no model of a library on machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum NoModel {
    #[error("it runs on GPUs of NVIDIA, and these machines have GPUs of AMD")]
    Maker,
    #[error("its tables are known for boxes of 8 (MI300X) and 16 (MI250), not {gpus}")]
    Gpus { gpus: u32 },
    #[error("its tables know nothing of switches that add up: remove `--collnet`")]
    CollNet,
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
    #[error("neither NCCL nor RCCL runs on its devices")]
    Foreign,
}

/// Families of networks of machines of AMD, and of others that no library here runs on.
const AMD_FAMILIES: [&str; 4] = ["mi250", "mi300x", "mi325x", "mi355x"];
const FOREIGN_FAMILIES: [&str; 1] = ["trn2"];
/// Least GPUs that are joined without a switch, and least rate of a GPU to its peers, in MB/s, of AMD's machines:
/// NVIDIA joins as many by switches since A100.
const MESHED_GPUS_MIN: u32 = 8;
const MESHED_MIN: u64 = 200_000;

/// Least rates of all links of a GPU inside its machine, in MB/s, by which generations are told apart. Less than the last is
/// taken for PCI.
const GENERATIONS: [(u64, Generation); 4] = [
    (700_000, Generation::Blackwell),
    (HOPPER_INSIDE, Generation::Hopper),
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
        Self { maker: Maker::Nvidia, machine, nodes: topology.rank_count().max(1) }
    }

    /// Machines are boxes: by node, the number of its box; or the network is one machine, as dumps name its GPUs. Of each, what its first rank has inside and what leads out of it
    /// counts; the generation of GPUs is guessed from the former. O(links log links).
    ///
    /// # Errors
    /// Boxes are not known or not alike, or there is nothing that NCCL or RCCL would use.
    pub fn of(topology: &Topology, boxes: &[Option<u32>]) -> Result<Self, Unseen> {
        let family = topology.name().map_or("", |name| name.split(':').next().unwrap_or(name));
        if FOREIGN_FAMILIES.contains(&family) {
            return Err(Unseen::Foreign);
        }
        let is_one = is_machine(topology, boxes);
        let box_of = |node: NodeIndex| if is_one { Some(0) } else { boxes.get(node.index()).copied().flatten() };
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
        let links = Links::of(topology, &box_of, home);
        let nodes = u32::try_from(sizes.len()).unwrap_or(u32::MAX);
        match (nodes, links.nics, links.inside()) {
            (2.., 0, _) => return Err(Unseen::NoNics),
            (_, _, 0) if gpus > 1 => return Err(Unseen::NothingInside),
            (2.., _, _) if links.nic == 0 => return Err(Unseen::TooSlow),
            _ => {}
        }
        let has_nvls = gpus > 1 && nvls_switches(topology).into_iter().any(|switch| box_of(switch) == Some(home));
        Ok(Self { maker: links.maker(family, gpus), machine: links.machine(gpus, has_nvls), nodes })
    }

    /// The model of a release on these machines; `None`: of the newest that runs on them.
    ///
    /// # Errors
    /// There is none.
    pub fn stock(&self, version: Option<Version>) -> Result<Stock, NoModel> {
        let Self { maker, machine, nodes } = *self;
        let gpus = machine.gpus;
        let of_size = match gpus {
            16 => Some(Known::Mi250),
            8 => Some(Known::Mi300x),
            _ => None,
        };
        let known = match (maker, version) {
            (Maker::Nvidia, Some(Version::Rccl2_21)) => of_size,
            (Maker::Nvidia, version) => return Ok(Stock::nccl(version.unwrap_or_default(), machine, nodes)),
            (Maker::Amd(known), None | Some(Version::Rccl2_21)) => known,
            (Maker::Amd(_), Some(_)) => return Err(NoModel::Maker),
        };
        match known {
            Some(_) if machine.has_collnet => Err(NoModel::CollNet),
            Some(known) => Ok(Stock::rccl(known, machine, nodes)),
            None => Err(NoModel::Gpus { gpus }),
        }
    }
}

/// Most GPUs of a machine whose box is not stated.
const GPUS_MOST: u32 = 16;

/// Whether a network is one machine without a word of boxes or hosts: its ranks are `gpu0`, `gpu1` and so on, as dumps and tables
/// of one machine have them.
fn is_machine(topology: &Topology, boxes: &[Option<u32>]) -> bool {
    let is_gpu = |id: &str| {
        let number = id.get(..3).filter(|word| word.eq_ignore_ascii_case("gpu")).and(id.get(3..));
        number.is_some_and(|number| number.parse::<u32>().is_ok())
    };
    let mut ranks = topology.nodes().iter().filter(|node| node.kind == NodeKind::Compute);
    topology.rank_count() <= GPUS_MOST
        && boxes.iter().all(Option::is_none)
        && ranks.all(|node| is_gpu(&node.id) && node.attributes.host.is_none())
}

/// Links of a machine, rates in MB/s.
struct Links {
    /// How many lead out of it, and the slowest of them.
    nics: u32,
    nic: u64,
    /// What its first rank has to switches in it, and to other ranks, of which there are so many.
    switched: u64,
    meshed: u64,
    peers: u32,
}

impl Links {
    fn of(topology: &Topology, box_of: &dyn Fn(NodeIndex) -> Option<u32>, home: u32) -> Self {
        let mut found = Self { nics: 0, nic: u64::MAX, switched: 0, meshed: 0, peers: 0 };
        for link in topology.links().iter().filter(|link| box_of(link.from) == Some(home)) {
            let rate = link.capacity.bytes_per_sec() / 1_000_000;
            if box_of(link.to) != Some(home) {
                found.nics = found.nics.saturating_add(1);
                found.nic = found.nic.min(rate);
            } else if link.from.number() == 0 && link.to.number() >= topology.rank_count() {
                found.switched = found.switched.saturating_add(rate);
            } else if link.from.number() == 0 {
                found.meshed = found.meshed.saturating_add(rate);
                found.peers += 1;
            }
        }
        found
    }

    /// What the first rank has inside.
    const fn inside(&self) -> u64 {
        self.switched.saturating_add(self.meshed)
    }

    /// By the family of the network, else by how many GPUs are joined without a switch.
    fn maker(&self, family: &str, gpus: u32) -> Maker {
        let is_meshed = gpus >= MESHED_GPUS_MIN && self.meshed >= MESHED_MIN && self.meshed > self.switched;
        if !is_meshed && !AMD_FAMILIES.contains(&family) {
            return Maker::Nvidia;
        }
        let is_complete = self.peers + 1 == gpus;
        Maker::Amd(match gpus {
            8 if is_complete => Some(Known::Mi300x),
            8 | 16 => Some(Known::Mi250),
            _ => None,
        })
    }

    fn machine(&self, gpus: u32, has_nvls: bool) -> Machine {
        let inside = self.inside();
        let by_rate = GENERATIONS.iter().find(|(least, _)| inside >= *least).map(|(_, generation)| *generation);
        // What multicasts and adds up is as new as that, however few links are left to it.
        let found = if has_nvls { by_rate.max(Some(Generation::Hopper)) } else { by_rate };
        let generation = found.unwrap_or(Generation::Ampere);
        let is_new = generation >= Generation::Hopper;
        Machine {
            generation,
            gpus,
            inside: if found.is_some() { generation.counted(inside) } else { inside },
            has_nvlink: found.is_some(),
            has_nvls,
            has_collnet: false,
            nics: self.nics,
            nic: if self.nics == 0 { 0 } else { self.nic },
            pci: if is_new { 48_000 } else { 24_000 },
            network_ns: 0,
            processor: if generation == Generation::Ampere { Processor::Amd } else { Processor::Intel },
            nics_are_shared: !is_new || self.nics.saturating_mul(2) <= gpus,
        }
    }
}
