//! Recognises files of other programs that are not a description of a network.

/// A file of another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignFile {
    /// Its kind, with the article.
    pub what: &'static str,
    /// What to give instead, or the command that reads it.
    pub instead: &'static str,
}

const NETWORK: &str = "describe the network in canopy's YAML, as `canopy network generate leaf-spine:leaves=2,hosts=4 -o x.yaml` writes it";
const DUMP: &str = "set NCCL_TOPO_DUMP_FILE=topo.xml for one run and use that file";
/// Of a log, the dump, and what the log is good for.
const LOG: &str = "set NCCL_TOPO_DUMP_FILE=topo.xml for one run and use that file; `canopy tools doctor FILE` says what the log shows";
const SIMULATED: &str = "give the network of the analytical back end, with `topology`, `npus_count` and `bandwidth`";
const NODES: &str =
    "give what `kubectl get nodes -o yaml` writes, or `kubectl get hypernodes -o yaml` where Volcano has them";
const TABLE: &str = "give what `nvidia-smi topo -m` prints, or a dump of NCCL (NCCL_TOPO_DUMP_FILE)";
const TREE: &str = "give what `lstopo --of xml` writes, or a dump of NCCL (NCCL_TOPO_DUMP_FILE)";
const SUBNET: &str = "give what `ibnetdiscover` prints";
const SLURM: &str = "give topology.conf, or what `scontrol show topology` prints";
const PLAN: &str = "give a network; `canopy verify`, `explain` and `convert` read plan files";

/// Files by a text that only they have (an element, a key, a heading), with what they are and what to give instead. Texts are compared without regard to case.
const KINDS: [(&str, &str, &str); 37] = [
    ("\nnodename=", "a Slurm configuration file", SLURM),
    ("\nclustername=", "a Slurm configuration file", SLURM),
    ("nccl info", "a log of NCCL", LOG),
    ("\nswitchguids=", "an InfiniBand routing file", NETWORK),
    ("\napiversion:", "a Kubernetes manifest", NODES),
    ("\nkind: cluster", "a Kubernetes manifest", NODES),
    ("status   roles", "the table of `kubectl get nodes`", NODES),
    ("\npartition avail", "the table of `sinfo`", SLURM),
    ("| nvidia-smi ", "the overview of nvidia-smi", TABLE),
    ("gpu 0: nvidia ", "a list of nvidia-smi", TABLE),
    (
        "rocm system management interface",
        "output of rocm-smi without tables of links",
        "give what `rocm-smi --showtopo` prints",
    ),
    ("\"link_type\"", "JSON of amd-smi", "give the tables of `amd-smi topology` without `--json`"),
    ("lldp neighbors:", "text of lldpcli", "give what `lldpcli show neighbors -f json` writes"),
    ("\nca '", "output of ibstat", SUBNET),
    ("\nhca_id:", "output of ibv_devinfo", SUBNET),
    ("\nmachine (", "text of lstopo", TREE),
    ("3d controller", "a list of lspci", TREE),
    ("vga compatible controller", "a list of lspci", TREE),
    ("node distances:", "output of numactl", TREE),
    ("thread(s) per core", "output of lscpu", TREE),
    ("command not found", "a message of a shell", "run the program where it is installed"),
    ("<graphs", "a graph file of NCCL (NCCL_GRAPH_DUMP_FILE)", DUMP),
    ("<algo ", "an MSCCL plan", PLAN),
    ("<routeplan", "a route file", PLAN),
    ("<onecclplan", "a oneCCL plan", PLAN),
    ("<html", "an HTML page", "download the file itself"),
    ("<svg", "an SVG picture", NETWORK),
    ("graph {", "a Graphviz graph", NETWORK),
    ("\"cells\":", "a Jupyter notebook", NETWORK),
    ("\"nnodes\":", "a sketch of TACCL, which says how to search", NETWORK),
    ("\"gpus_per_node\":", "a profile of TACCL, whose costs belong to a size that it does not state", NETWORK),
    ("\"topologyparams\":", "an input of TE-CCL, whose links stand in its program", NETWORK),
    ("\"1-epoch_duration\":", "a schedule of TE-CCL", NETWORK),
    ("\"scheduling-policy\":", "a system description of ASTRA-sim", SIMULATED),
    ("\"logical-dims\":", "logical dimensions of ASTRA-sim", SIMULATED),
    ("\"collective\":", "a plan file", PLAN),
    ("\n#!/", "a script", NETWORK),
];

/// What a file is that begins like this, in lower case and after a line break, if it is known. O(bytes × kinds).
pub(crate) fn recognise(start: &str) -> Option<ForeignFile> {
    KINDS.iter().find(|(text, ..)| start.contains(text)).map(|&(_, what, instead)| ForeignFile { what, instead })
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
