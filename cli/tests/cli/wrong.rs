//! What people type by mistake: each answer says what is wrong, where, and what to type instead, in at most two lines.

use std::fmt::Write as _;
use std::path::Path;

use crate::support::Workspace;

/// A plan, and files that people take for the description of a network or for a plan.
fn files(workspace: &Workspace) {
    workspace.text("plan ring:4 -c allgather -o plan.json");
    workspace.text("plan ring:4 -c allgather --format msccl-xml -o plan.xml");
    let plan = workspace.read("plan.json");
    workspace.write("cut.json", &plan[..plan.len() / 2]);
    workspace.write("topology.conf", "SwitchName=leaf1 Nodes=gpu[001-016]\nSwitchName=spine Switches=leaf[1-2]\n");
    workspace.write("nccl.log", "gpu001:4711:4711 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>\n");
    workspace.write("matrix.txt", "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV12\t0-63\nGPU1\tNVX\t X \t0-63\n");
    workspace.write("pod.yaml", "apiVersion: v1\nkind: Pod\nmetadata:\n  name: trainer\n");
    workspace.write("picture.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    workspace.write("empty.yaml", "");
    let head = "canopy: 1\nnodes:\n- {id: a}\n- {id: b}\n- {id: c}\n- {id: d}\nlinks:\n";
    workspace.write("unknown-node.yaml", format!("{head}- {{from: a, to: e, bandwidth: 25GB/s}}\n"));
    let pairs = "- {from: a, to: b, bandwidth: 25GB/s}\n- {from: b, to: a, bandwidth: 25GB/s}\n\
                 - {from: c, to: d, bandwidth: 25GB/s}\n- {from: d, to: c, bandwidth: 25GB/s}\n";
    workspace.write("split.yaml", format!("{head}{pairs}"));
}

/// Compares with the golden file; `CANOPY_APPROVE=1` writes it instead.
#[test]
fn wrong_invocations_are_answered_with_what_to_type() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/wrong");
    let invocations = std::fs::read_to_string(folder.join("invocations.txt")).unwrap();
    let workspace = Workspace::new();
    files(&workspace);
    let mut answers = String::new();
    let mut long = Vec::new();
    for line in invocations.lines() {
        if line.starts_with('#') {
            writeln!(answers, "{line}\n").unwrap();
            continue;
        }
        let run = workspace.run(line);
        let said = format!("{}{}", run.stdout, run.stderr);
        let said = said.trim_end();
        if said.lines().count() > 2 || !matches!(run.status, Some(1..=9)) {
            long.push(format!("$ canopy {line}\n{said}"));
        }
        writeln!(answers, "$ canopy {line}\n{said}\n[{}]\n", run.status.unwrap()).unwrap();
    }
    let golden = folder.join("answers.txt");
    if std::env::var_os("CANOPY_APPROVE").is_some() {
        std::fs::write(&golden, &answers).unwrap();
    }
    assert!(long.is_empty(), "{} answers are longer than two lines, or no failures\n{}", long.len(), long.join("\n\n"));
    let approved = std::fs::read_to_string(&golden).unwrap_or_default();
    assert!(approved == answers, "answers changed; if intended, rerun with CANOPY_APPROVE=1\n{answers}");
}

/// Words that people try first are understood.
#[test]
fn first_words_work() {
    let workspace = Workspace::new();
    for name in ["all_reduce", "all-reduce", "AllReduce", "ALLREDUCE", "ncclAllReduce"] {
        let json = workspace.json(&format!("plan ring:4 -c {name} -o x.json --json"));
        assert_eq!(json["collective"], "allreduce", "{name}");
    }
    for name in ["alltoall", "all_gather_into_tensor", "reduce_scatter", "Broadcast"] {
        workspace.json(&format!("plan ring:4 -c {name} -o x.json --json"));
    }
    for network in ["DGX-A100", "dgxa100:boxes=2", "ring:4,bw=400Gb/s", "ring:4,bw=400Gbit/s", "ring:4,bw=50GBps"] {
        workspace.json(&format!("bound {network} -c allgather --json"));
    }
    for size in ["64M", "64MB", "1g", "64mib"] {
        workspace.json(&format!("plan ring:4 -c allgather --size {size} -o x.json --json"));
    }
}
