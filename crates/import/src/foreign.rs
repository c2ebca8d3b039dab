//! Recognises files of other programs that are not a description of a network.

/// A file of another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignFile {
    /// Its kind, with the article.
    pub what: &'static str,
    /// What to give instead, or the command that reads it.
    pub instead: &'static str,
}

const NETWORK: &str = "describe the network in canopy's YAML, as `canopy topology generate leaf-spine:leaves=2,hosts=4 -o x.yaml` writes it";
const DUMP: &str = "set NCCL_TOPO_DUMP_FILE=topo.xml for one run and use that file";
const SIMULATED: &str = "give the network of the analytical back end, with `topology`, `npus_count` and `bandwidth`";
const NODES: &str =
    "give what `kubectl get nodes -o yaml` writes, or `kubectl get hypernodes -o yaml` where Volcano has them";
const TABLE: &str = "give what `nvidia-smi topo -m` prints, or a dump of NCCL (NCCL_TOPO_DUMP_FILE)";
const TREE: &str = "give what `lstopo --of xml` writes, or a dump of NCCL (NCCL_TOPO_DUMP_FILE)";
const SUBNET: &str = "give what `ibnetdiscover` prints";
const SLURM: &str = "give topology.conf, or what `scontrol show topology` prints";
const PLAN: &str = "give a network; `canopy verify`, `explain` and `convert` read plan files";

/// Files by a text that only they have: an element, a key, a heading. Texts are compared without regard to case.
const KINDS: [(&str, ForeignFile); 37] = [
    ("\nnodename=", ForeignFile { what: "a Slurm configuration file", instead: SLURM }),
    ("\nclustername=", ForeignFile { what: "a Slurm configuration file", instead: SLURM }),
    ("nccl info", ForeignFile { what: "a log of NCCL", instead: DUMP }),
    ("\nswitchguids=", ForeignFile { what: "an InfiniBand routing file", instead: NETWORK }),
    ("\napiversion:", ForeignFile { what: "a Kubernetes manifest", instead: NODES }),
    ("\nkind: cluster", ForeignFile { what: "a Kubernetes manifest", instead: NODES }),
    ("status   roles", ForeignFile { what: "the table of `kubectl get nodes`", instead: NODES }),
    ("\npartition avail", ForeignFile { what: "the table of `sinfo`", instead: SLURM }),
    ("| nvidia-smi ", ForeignFile { what: "the overview of nvidia-smi", instead: TABLE }),
    ("gpu 0: nvidia ", ForeignFile { what: "a list of nvidia-smi", instead: TABLE }),
    (
        "rocm system management interface",
        ForeignFile {
            what: "output of rocm-smi without tables of links",
            instead: "give what `rocm-smi --showtopo` prints",
        },
    ),
    (
        "\"link_type\"",
        ForeignFile { what: "JSON of amd-smi", instead: "give the tables of `amd-smi topology` without `--json`" },
    ),
    (
        "lldp neighbors:",
        ForeignFile { what: "text of lldpcli", instead: "give what `lldpcli show neighbors -f json` writes" },
    ),
    ("\nca '", ForeignFile { what: "output of ibstat", instead: SUBNET }),
    ("\nhca_id:", ForeignFile { what: "output of ibv_devinfo", instead: SUBNET }),
    ("\nmachine (", ForeignFile { what: "text of lstopo", instead: TREE }),
    ("3d controller", ForeignFile { what: "a list of lspci", instead: TREE }),
    ("vga compatible controller", ForeignFile { what: "a list of lspci", instead: TREE }),
    ("node distances:", ForeignFile { what: "output of numactl", instead: TREE }),
    ("thread(s) per core", ForeignFile { what: "output of lscpu", instead: TREE }),
    (
        "command not found",
        ForeignFile { what: "a message of a shell", instead: "run the program where it is installed" },
    ),
    ("<graphs", ForeignFile { what: "a graph file of NCCL (NCCL_GRAPH_DUMP_FILE)", instead: DUMP }),
    ("<algo ", ForeignFile { what: "an MSCCL plan", instead: PLAN }),
    ("<routeplan", ForeignFile { what: "a route file", instead: PLAN }),
    ("<onecclplan", ForeignFile { what: "a oneCCL plan", instead: PLAN }),
    ("<html", ForeignFile { what: "an HTML page", instead: "download the file itself" }),
    ("<svg", ForeignFile { what: "an SVG picture", instead: NETWORK }),
    ("graph {", ForeignFile { what: "a Graphviz graph", instead: NETWORK }),
    ("\"cells\":", ForeignFile { what: "a Jupyter notebook", instead: NETWORK }),
    ("\"nnodes\":", ForeignFile { what: "a sketch of TACCL, which says how to search", instead: NETWORK }),
    (
        "\"gpus_per_node\":",
        ForeignFile {
            what: "a profile of TACCL, whose costs belong to a size that it does not state",
            instead: NETWORK,
        },
    ),
    (
        "\"topologyparams\":",
        ForeignFile { what: "an input of TE-CCL, whose links stand in its program", instead: NETWORK },
    ),
    ("\"1-epoch_duration\":", ForeignFile { what: "a schedule of TE-CCL", instead: NETWORK }),
    ("\"scheduling-policy\":", ForeignFile { what: "a system description of ASTRA-sim", instead: SIMULATED }),
    ("\"logical-dims\":", ForeignFile { what: "logical dimensions of ASTRA-sim", instead: SIMULATED }),
    ("\"collective\":", ForeignFile { what: "a plan file", instead: PLAN }),
    ("\n#!/", ForeignFile { what: "a script", instead: NETWORK }),
];

/// What a file is that begins like this, in lower case and after a line break, if it is known. O(bytes × kinds).
pub(crate) fn recognise(start: &str) -> Option<ForeignFile> {
    KINDS.iter().find(|(text, _)| start.contains(text)).map(|&(_, file)| file)
}

/// What the bytes are, if they are no text at all.
pub(crate) fn binary(bytes: &[u8]) -> Option<&'static str> {
    const MAGIC: [(&[u8], &str); 6] = [
        (b"\x89PNG", "a PNG picture"),
        (b"\x7fELF", "a program"),
        (b"\x1f\x8b", "a gzip archive; unpack it first"),
        (b"PK\x03\x04", "a zip archive; unpack it first"),
        (b"(\xb5/\xfd", "a zstd archive; unpack it first"),
        (b"%PDF", "a PDF document"),
    ];
    MAGIC.iter().find(|(magic, _)| bytes.starts_with(magic)).map(|&(_, what)| what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_told_from_networks() {
        for (text, what) in [
            ("<algo name=\"a\">", "an MSCCL plan"),
            ("<?xml version=\"1.0\"?>\n<routeplan version=\"1\">", "a route file"),
            ("<onecclplan version=\"1\">", "a oneCCL plan"),
            ("{\"name\": \"a\", \"collective\": \"allgather\"}", "a plan file"),
        ] {
            assert_eq!(recognise(text).map(|file| file.what), Some(what), "{text}");
        }
    }
}
