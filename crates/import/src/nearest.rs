//! What a text may have been meant to be that is of no known kind.

use canopy_topology::{DocumentFormat, shorten};

use crate::error::ImportError;
use crate::kind::FileKind;

/// Words that stand in files of a kind, in lower case; those of several kinds count for the first.
const WORDS: [(FileKind, &[&str]); 16] = [
    (FileKind::NvidiaSmi, &["nvidia", "gpu0", "gpu1", "cpu affinity", "numa affinity", "nvlink", "pix", "sys", "phb"]),
    (FileKind::AmdSmi, &["amd-smi", "access table", "weight table", "hops table", "link type table", "bdf"]),
    (FileKind::RocmSmi, &["rocm", "xgmi", "gpu[0]", "numa node", "weight between", "hops between"]),
    (FileKind::Hwloc, &["hwloc", "machine (", "package l#", "numanode", "hostbridge", "pci 0"]),
    (FileKind::NcclXml, &["nccl", "rccl", "<cpu", "<pci", "busid", "<gpu", "<nic"]),
    (FileKind::SlurmConf, &["switchname", "blockname", "switches=", "nodes=", "slurm", "linkspeed"]),
    (FileKind::SlurmYaml, &["topology:", "block_sizes", "children:", "- switch"]),
    (FileKind::IbNetDiscover, &["vendid", "sysimgguid", "switchguid", "lid ", "mellanox", "infiniband"]),
    (FileKind::IbLinkInfo, &["==(", "==>", "linkup", "polling"]),
    (FileKind::Lldp, &["lldp", "chassis", "portid", "sysname", "neighbor"]),
    (FileKind::KubernetesLabels, &["kubernetes", "kubectl", "labels", "k8s", "apiversion", "kind:"]),
    (FileKind::Topograph, &["switches:", "blocks:", "topograph"]),
    (FileKind::AstraNetwork, &["npus", "astra"]),
    (FileKind::GraphMl, &["graphml", "<edge", "<node"]),
    (FileKind::SimGrid, &["simgrid", "platform", "<link", "<zone"]),
    (FileKind::Csv, &["src,", "dst", "bandwidth", ","]),
];

/// Bytes that are looked at.
const LOOKED_AT: usize = 64 << 10;

/// Fields of canopy's own files: a text with one is meant to be such.
const OWN: [&str; 5] = ["canopy:", "\"canopy\"", "\nnodes:", "\nlinks:", "\"links\""];

/// The error of a text that was read as canopy's own for want of a better: which kinds are read, and the nearest.
pub(crate) fn called(text: &str, error: ImportError) -> ImportError {
    let end = (0..=LOOKED_AT.min(text.len())).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    let start = format!("\n{}", text[..end].to_lowercase());
    if !error.is_of_own() || error.is_final() || OWN.iter().any(|field| start.contains(field)) {
        return error;
    }
    let Some(first) = text.lines().map(str::trim).find(|line| !line.is_empty()) else {
        return ImportError::Unknown { what: "the file is empty".to_owned(), instead: all() };
    };
    let hits = |words: &[&str]| words.iter().filter(|word| start.contains(*word)).count();
    let best = WORDS.iter().rev().max_by_key(|(_, words)| hits(words)).filter(|(_, words)| hits(words) > 0);
    let found = format!("this is of no kind of file that is read; it begins with `{}`", shorten(first));
    let (what, instead) = match best {
        None => (found.replace("; ", ": "), all()),
        Some(&(kind, _)) => {
            let what = format!("{}, and is nearest to {}", found.replace("; ", ": "), kind.name());
            (what, format!("{}, or one of the other kinds: {}", asked(kind), names(Some(kind))))
        }
    };
    ImportError::Unknown { what, instead }
}

fn asked(kind: FileKind) -> String {
    let made_with = kind.made_with();
    match kind.remedy("").trim_start_matches("; ") {
        "" => format!("send {made_with}"),
        remedy => remedy.to_owned(),
    }
}

fn names(but: Option<FileKind>) -> String {
    let own = FileKind::Own(DocumentFormat::Yaml);
    let others = FileKind::foreign().filter(|&kind| Some(kind) != but).map(|kind| kind.name().to_owned());
    others.chain([format!("canopy's {}", own.name())]).collect::<Vec<_>>().join(", ")
}

fn all() -> String {
    format!("send one of these kinds: {}", names(None))
}
