//! `canopy advise`.

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
    assert!(text.starts_with("nccl-csv by NCCL 2.18 on dgx-a100:boxes=4\n"), "{text}");
    let text = workspace.text(&format!("advise {network} --to rccl -o table"));
    assert!(text.contains("wrote      table\nuse        set NCCL_TUNER_CONFIG_FILE"), "{text}");
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
        ("advise torus:4x4 --to nccl-csv".to_owned(), ["states its box", "topology compose"]),
        (format!("advise {boxes} --to ncclx --json -o -"), ["--json needs a file", "-o FILE"]),
    ] {
        workspace.refused(&command, 2, &words);
    }
}
