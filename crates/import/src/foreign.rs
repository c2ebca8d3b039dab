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
const PLAN: &str = "give a network; `canopy verify`, `explain` and `convert` read plan files";

/// Files by a text that only they have: an element, a key, a heading. Texts are compared without regard to case.
const KINDS: [(&str, ForeignFile); 22] = [
    ("\nnodename=", ForeignFile { what: "a Slurm configuration file", instead: NETWORK }),
    ("\nclustername=", ForeignFile { what: "a Slurm configuration file", instead: NETWORK }),
    ("nccl info", ForeignFile { what: "a log of NCCL", instead: DUMP }),
    ("\nswitchguids=", ForeignFile { what: "an InfiniBand routing file", instead: NETWORK }),
    ("\napiversion:", ForeignFile { what: "a Kubernetes manifest", instead: NETWORK }),
    ("\nkind: cluster", ForeignFile { what: "a Kubernetes manifest", instead: NETWORK }),
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
