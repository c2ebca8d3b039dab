//! The kinds of files that are read.

use canopy_topology::DocumentFormat;

/// What wrote a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// canopy itself.
    Own(DocumentFormat),
    /// NCCL or RCCL: the topology of one machine.
    NcclXml,
    /// NVIDIA: the table of `nvidia-smi topo -m`.
    NvidiaSmi,
    /// AMD: the tables of `rocm-smi --showtopo`.
    RocmSmi,
    /// AMD: the tables of `amd-smi topology`.
    AmdSmi,
    /// hwloc: XML of `lstopo`.
    Hwloc,
    /// Slurm: `topology.conf`.
    SlurmConf,
    /// Slurm: `topology.yaml`.
    SlurmYaml,
    /// `ibnetdiscover`: an InfiniBand subnet.
    IbNetDiscover,
    /// `iblinkinfo`: an InfiniBand subnet.
    IbLinkInfo,
    /// lldpd: the switches that ports of machines see.
    Lldp,
    /// Topograph: a model of switches and blocks of nodes.
    Topograph,
    /// ASTRA-sim: a network of its analytical back end.
    AstraNetwork,
    /// GraphML: a graph with attributes.
    GraphMl,
    /// SimGrid: a platform.
    SimGrid,
    /// A list of links, row by row.
    Csv,
    /// Kubernetes: nodes with labels, and levels of Kueue.
    KubernetesLabels,
}

/// What each kind but canopy's own is called, and what writes it.
const NAMES: &[(FileKind, &str, &str)] = &[
    (FileKind::NcclXml, "NCCL XML", "NCCL_TOPO_DUMP_FILE"),
    (FileKind::NvidiaSmi, "nvidia-smi table", "nvidia-smi topo -m"),
    (FileKind::RocmSmi, "rocm-smi tables", "rocm-smi --showtopo"),
    (FileKind::AmdSmi, "amd-smi tables", "amd-smi topology"),
    (FileKind::Hwloc, "hwloc XML", "lstopo --of xml"),
    (FileKind::SlurmConf, "topology.conf", "the syntax of Slurm"),
    (FileKind::SlurmYaml, "topology.yaml", "the syntax of Slurm"),
    (FileKind::IbNetDiscover, "ibnetdiscover", "ibnetdiscover"),
    (FileKind::IbLinkInfo, "iblinkinfo", "iblinkinfo"),
    (FileKind::Lldp, "LLDP neighbours", "lldpcli show neighbors -f json"),
    (FileKind::Topograph, "Topograph model", "the syntax of Topograph"),
    (FileKind::KubernetesLabels, "Kubernetes nodes", "kubectl get nodes -o yaml"),
    (FileKind::AstraNetwork, "ASTRA-sim network", "the syntax of ASTRA-sim"),
    (FileKind::GraphMl, "GraphML", "the syntax of GraphML"),
    (FileKind::SimGrid, "SimGrid platform", "the syntax of SimGrid 3.13 or later"),
    (FileKind::Csv, "CSV", "a header src,dst,bandwidth_GBps,latency_ns"),
];

impl FileKind {
    /// Name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Own(format) => format.name(),
            _ => self.named().map_or("file", |&(_, name, _)| name),
        }
    }

    /// What writes such files.
    pub fn made_with(self) -> &'static str {
        self.named().map_or("canopy", |&(_, _, made_with)| made_with)
    }

    /// What to send, behind a semicolon, for a problem that does not say what to do about it.
    pub(crate) fn remedy(self, problem: &str) -> String {
        let made_with = self.made_with();
        match self {
            _ if problem.contains("; ") => String::new(),
            Self::Own(_) => "; write it as `canopy network generate ring:4 -o FILE` does".to_owned(),
            Self::Csv => format!("; send one whole table with {made_with}"),
            _ if made_with.starts_with("the syntax of") => format!("; send one whole file in {made_with}"),
            _ => format!("; send what `{made_with}` writes, whole and alone"),
        }
    }

    /// All kinds of other programs.
    pub fn foreign() -> impl Iterator<Item = Self> {
        NAMES.iter().map(|&(kind, ..)| kind)
    }

    fn named(self) -> Option<&'static (Self, &'static str, &'static str)> {
        NAMES.iter().find(|(kind, ..)| *kind == self)
    }
}
