//! `canopy tools advise`.

use crate::support::{Workspace, check_members};

/// The tables of NCCL's kind: one machine and all, every size of every collective.
#[test]
fn tables_are_for_one_machine_and_for_all() {
    let workspace = Workspace::new();
    for (kind, library) in [
        ("nccl-csv", "NCCL 2.30"),
        ("nccl-config", "NCCL 2.31"),
        ("nccl-config-header", "NCCL 2.31"),
        ("rccl", "RCCL 2.21"),
        ("ncclx", "NCCL 2.30"),
    ] {
        let found = workspace.json(&format!("advise dgx-h100:boxes=4 --to {kind} -o table --json"));
        check_members(&found, &["canopy", "command", "topology", "kind", "library", "advice", "files"]);
        assert_eq!((&found["kind"], &found["library"]), (&kind.into(), &library.into()));
        let advice = found["advice"].as_array().unwrap();
        let mut ranks: Vec<u64> = advice.iter().map(|row| row["ranks"].as_u64().unwrap()).collect();
        ranks.dedup();
        assert_eq!(ranks, [8, 32]);
        for pair in advice.windows(2).filter(|pair| pair[0]["collective"] == pair[1]["collective"]) {
            let [before, next] = [&pair[0]["last_bytes"], &pair[1]["first_bytes"]].map(|size| size.as_u64().unwrap());
            assert_eq!(before + 1, next, "{found}");
        }
        let printed = workspace.text(&format!("advise dgx-h100:boxes=4 --to {kind} -o -"));
        assert_eq!(printed.as_bytes(), workspace.read("table"), "{kind}");
    }
}

#[test]
fn a_table_has_the_collectives_and_communicators_asked_for() {
    let workspace = Workspace::new();
    let network = "dgx-a100:boxes=4";
    let text = workspace.text(&format!("advise {network} --to ncclx -c broadcast,allgather --ranks 16,16 -o -"));
    let rows: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(rows.iter().all(|row| row.ends_with(",2,8")), "{text}");
    assert!(rows.iter().any(|row| row.starts_with("allgather,[0,")), "{text}");
    assert!(!text.contains("allreduce") && text.contains("broadcast,"), "{text}");
    let text = workspace.text(&format!("advise {network} --to nccl-csv -c allreduce --nccl 2.18"));
    assert!(text.starts_with("nccl-csv for NCCL 2.18 on dgx-a100:boxes=4\n"), "{text}");
    let text = workspace.text(&format!("advise {network} --to rccl -o table"));
    assert!(text.contains("wrote      table\nuse        set NCCL_TUNER_CONFIG_FILE"), "{text}");
}

/// A tree of MPICH with one algorithm for each collective.
fn tree(workspace: &Workspace) {
    let names = ["allgather", "allreduce", "alltoall", "bcast", "reduce", "reduce_scatter", "reduce_scatter_block"];
    let branch = |name: &str| {
        format!(
            "\"collective={name}\":{{\"comm_type=intra\":{{\"algorithm=old\":{{}}}},\"comm_type=inter\":{{\"algorithm=inter\":{{}}}}}}"
        )
    };
    workspace.write("tree.json", format!("{{{}}}", names.map(branch).join(",")));
}

/// MPI's algorithms are compared on the network: latency decides over small messages, and α moves the bounds.
#[test]
fn mpi_is_advised_by_the_latencies_and_rates_of_the_network() {
    let workspace = Workspace::new();
    let network = "dgx-a100:boxes=2";
    tree(&workspace);
    for (kind, library) in [("openmpi", "Open MPI"), ("mpich", "MPICH")] {
        let base = if kind == "mpich" { "--base tree.json" } else { "" };
        let command =
            |more: &str| workspace.json(&format!("advise {network} --to {kind} {base} -o table --json {more}"));
        let found = command("");
        assert_eq!(found["library"], library);
        let bounds = |found: &serde_json::Value| -> Vec<u64> {
            let rows = found["advice"].as_array().unwrap().iter();
            let own = rows.filter(|row| row["collective"] == "allreduce" && row["ranks"] == 16);
            own.map(|row| row["first_bytes"].as_u64().unwrap()).collect()
        };
        let [usual, slow] = ["", "--alpha 10us"].map(|more| bounds(&command(more)));
        assert!(usual.len() == 2 && usual[1] < slow[1], "{usual:?} {slow:?}");
        let ranks: std::collections::BTreeSet<u64> =
            found["advice"].as_array().unwrap().iter().map(|row| row["ranks"].as_u64().unwrap()).collect();
        assert_eq!(ranks.into_iter().collect::<Vec<_>>(), [8, 16]);
    }
    let table = String::from_utf8(workspace.read("table")).unwrap();
    assert!(table.contains("MPIR_Allreduce_intra_recursive_doubling") && table.contains("comm_size<=16"), "{table}");
    let rules = workspace.text("advise torus:4x4 --to openmpi -c allgather -o -");
    assert!(rules.starts_with("1 # collectives\n0 # allgather\n3 # communicator sizes\n0 # ranks\n"), "{rules}");
}

#[test]
fn what_cannot_be_advised_is_refused_with_what_can() {
    let workspace = Workspace::new();
    let boxes = "dgx-a100:boxes=2";
    for (command, words) in [
        (format!("advise {boxes} --to aws-ofi"), ["compiled in", "--to nccl-csv"]),
        (format!("advise {boxes} --to intel-mpi"), ["no table", "I_MPI_ADJUST_ALLREDUCE"]),
        (format!("advise {boxes} --to nccl-csv -c all-to-all"), ["does not tune all-to-all", "broadcast and reduce"]),
        (format!("advise {boxes} --to nccl-csv --ranks 12"), ["--ranks 12", "multiples of 8 up to 16"]),
        (format!("advise {boxes} --to nccl-csv --ranks 24"), ["--ranks 24", "multiples of 8 up to 16"]),
        (format!("advise {boxes} --to nccl-config --nccl 2.30"), ["from 2.31 on", "remove `--nccl`"]),
        (format!("advise {boxes} --to rccl --nccl 2.30"), ["the table is for RCCL", "remove `--nccl`"]),
        (format!("advise {boxes} --to ncclx --nccl rccl-2.21"), ["a release of RCCL", "--to rccl"]),
        ("advise dgx-a100:gpus=4 --to rccl".to_owned(), ["boxes of 8", "MI300X"]),
        ("advise torus:4x4 --to nccl-csv".to_owned(), ["states its box", "network compose"]),
        (format!("advise {boxes} --to openmpi --ranks 17"), ["--ranks 17", "use 2 to 16"]),
        ("advise fat-tree:k=18 --to openmpi".to_owned(), ["too many to compare", "--ranks"]),
        (format!("advise {boxes} --to mpich -c gather"), ["single algorithm for gather", "reduce-scatter"]),
        (format!("advise {boxes} --to mpich"), ["--base", "strings libmpich.so.12"]),
        (format!("advise {boxes} --to mpich --base none.json"), ["none.json", "cannot be read"]),
        (format!("advise {boxes} --to openmpi --nccl 2.30"), ["--nccl has no effect", "for MPI"]),
        (format!("advise {boxes} --to ncclx --alpha 1us"), ["--alpha has no effect", "latencies of their own"]),
        (format!("advise {boxes} --to ncclx --base x"), ["--base has no effect", "only mpich"]),
        (format!("advise {boxes} --to ncclx --json -o -"), ["--json needs a file", "-o FILE"]),
    ] {
        workspace.refused(&command, 2, &words);
    }
}
