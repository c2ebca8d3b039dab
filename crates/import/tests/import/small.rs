//! Small files, made by hand.

use canopy_import::FileKind;

/// A small file of every kind, as its program writes it.
pub(crate) const SMALL: &[(FileKind, &str)] = &[
    (FileKind::AstraNetwork, include_str!("../data/astra.yml")),
    (FileKind::GraphMl, include_str!("../data/graph.graphml")),
    (FileKind::SimGrid, include_str!("../data/platform.xml")),
    (FileKind::Csv, include_str!("../data/links.csv")),
    (FileKind::NcclXml, include_str!("../data/h100-host.xml")),
    (FileKind::NvidiaSmi, include_str!("../data/nvidia-smi-topo.txt")),
    (FileKind::RocmSmi, include_str!("../data/rocm-smi-topo.txt")),
    (FileKind::AmdSmi, include_str!("../data/amd-smi-topology.txt")),
    (FileKind::Hwloc, include_str!("../data/lstopo.xml")),
    (FileKind::SlurmConf, include_str!("../data/topology.conf")),
    (FileKind::SlurmYaml, include_str!("../data/topology.yaml")),
    (FileKind::IbNetDiscover, include_str!("../data/ibnetdiscover.out")),
    (FileKind::IbLinkInfo, include_str!("../data/iblinkinfo.out")),
    (FileKind::Lldp, include_str!("../data/lldp.json")),
    (FileKind::Topograph, include_str!("../data/topograph.yaml")),
    (FileKind::KubernetesLabels, include_str!("../data/kubernetes-nodes.yaml")),
];
