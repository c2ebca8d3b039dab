//! Files of other programs.

use canopy_import::{Cluster, Content, Fabric, FileKind, Layout, MachineOf, Rates, numbered, read, read_content};
use canopy_topology::{DocumentFormat, TopologyDraft};

use crate::topologies::check;
use crate::{LIMITS, refused, seen};

/// Machines that are joined to see whether what a file describes can be a part of a cluster.
const MACHINES: usize = 3;

macro_rules! kinds {
    ($($name:ident $kind:ident;)*) => {
        $(
            /// A file that is read as one of this kind, whatever it begins with.
            pub(crate) fn $name(input: &[u8]) {
                of_kind(input, Some(FileKind::$kind));
            }
        )*
    };
}

kinds! {
    amd_smi AmdSmi;
    astra AstraNetwork;
    csv Csv;
    graphml GraphMl;
    hwloc Hwloc;
    iblinkinfo IbLinkInfo;
    ibnetdiscover IbNetDiscover;
    kubernetes KubernetesLabels;
    lldp Lldp;
    nccl_xml NcclXml;
    nvidia_smi NvidiaSmi;
    rocm_smi RocmSmi;
    simgrid SimGrid;
    slurm_conf SlurmConf;
    slurm_yaml SlurmYaml;
    topograph Topograph;
}

/// A file that is recognised by its content.
pub(crate) fn recognised(input: &[u8]) {
    of_kind(input, None);
    match read_content(input, &LIMITS, &|| false) {
        Ok((kind, content)) => part(kind, content),
        Err(error) => refused(&error),
    }
}

fn of_kind(input: &[u8], kind: Option<FileKind>) {
    match read(input, kind, &LIMITS) {
        Ok(imported) => {
            check(&imported.topology);
            assert!(kind.is_none_or(|kind| kind == imported.kind), "read as another kind than was asked for");
        }
        Err(error) => refused(&error),
    }
}

/// A machine among others of its kind, or a fabric with machines of one port each.
fn part(kind: FileKind, content: Content) {
    let rates: Rates = "nic=50GB/s,leaf-spine=100GB/s".parse().expect("rates as in the documentation");
    let cluster = match content {
        Content::Network(draft, _) => return whole(kind, draft),
        Content::Machine(machine) => {
            let names = numbered(MACHINES).expect("a few machines");
            let layout = Layout::LeafSpine { hosts: 2, spines: 2 };
            let fabric = layout.fabric(machine.ports.len(), names).expect("a few machines");
            Cluster { machines: vec![MachineOf { machine: Some(machine), hosts: None }], fabric, rates }
        }
        Content::Fabric(fabric) => of_single_ports(fabric, rates),
    };
    let names = cluster.nodes();
    seen(cluster.check());
    let few: Vec<String> = names.into_iter().take(MACHINES).collect();
    if let Ok((topology, _)) = canopy_import::compose(&cluster, &few, &LIMITS, &|| false) {
        check(&topology);
    }
}

fn of_single_ports(fabric: Fabric, rates: Rates) -> Cluster {
    Cluster { machines: vec![MachineOf { machine: None, hosts: None }], fabric, rates }
}

/// canopy's own documents become drafts from which the same network is built.
fn whole(kind: FileKind, draft: TopologyDraft) {
    match draft.build(&LIMITS) {
        Ok(topology) => check(&topology),
        Err(error) => {
            let is_own = matches!(kind, FileKind::Own(DocumentFormat::Yaml | DocumentFormat::Json));
            assert!(!is_own, "a document was read, and its draft cannot be built: {error}");
        }
    }
}
