//! How each kind of file is recognised and read.

use crate::content::Content;
use crate::error::ImportError;
use crate::kind::FileKind;
use crate::source::Source;
use crate::{graph, host, infiniband, kubernetes, lldp, nccl, slurm};

/// A reader of one kind of file.
pub(crate) struct Reader {
    pub(crate) kind: FileKind,
    /// Whether a file that begins like this, in lower case and after a line break, is one.
    pub(crate) begins: fn(&str) -> bool,
    pub(crate) read: fn(Source<'_>) -> Result<Content, ImportError>,
}

const fn reader(
    kind: FileKind,
    begins: fn(&str) -> bool,
    read: fn(Source<'_>) -> Result<Content, ImportError>,
) -> Reader {
    Reader { kind, begins, read }
}

/// Readers of all kinds but canopy's own; of those that recognise a file, the first counts.
pub(crate) const READERS: &[Reader] = &[
    reader(FileKind::NcclXml, nccl::begins, nccl::read),
    reader(FileKind::NvidiaSmi, host::begins_smi, host::read_smi),
    reader(FileKind::RocmSmi, host::begins_rocm, host::read_rocm),
    reader(FileKind::AmdSmi, host::begins_amd, host::read_amd),
    reader(FileKind::Hwloc, host::begins_hwloc, host::read_hwloc),
    reader(FileKind::SlurmConf, slurm::begins_conf, slurm::read_conf),
    reader(FileKind::SlurmYaml, slurm::begins_yaml, slurm::read_yaml),
    reader(FileKind::IbNetDiscover, infiniband::begins_discover, infiniband::read_discover),
    reader(FileKind::IbLinkInfo, infiniband::begins_linkinfo, infiniband::read_linkinfo),
    reader(FileKind::Lldp, lldp::begins, lldp::read),
    reader(FileKind::Topograph, kubernetes::begins_topograph, kubernetes::read_topograph),
    reader(FileKind::KubernetesLabels, kubernetes::begins_labels, kubernetes::read_labels),
    reader(FileKind::AstraNetwork, graph::begins_astra, graph::read_astra),
    reader(FileKind::GraphMl, graph::begins_graphml, graph::read_graphml),
    reader(FileKind::SimGrid, graph::begins_simgrid, graph::read_simgrid),
    reader(FileKind::Csv, graph::begins_csv, graph::read_csv),
];

impl Reader {
    /// The reader of a kind; `None` for canopy's own.
    pub(crate) fn of(kind: FileKind) -> Option<&'static Self> {
        READERS.iter().find(|reader| reader.kind == kind)
    }
}
