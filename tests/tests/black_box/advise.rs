//! Rules of `canopy tools advise` in the hands of a real Open MPI: the algorithms that run are those advised.

#![expect(clippy::unwrap_used, reason = "tests; the helpers of tests are not known as such")]

use std::process::{Command, Output};

use canopy_prerequisites::program;
use canopy_tests::{Bench, workspace};
use serde_json::Value;

use crate::launchers::OPEN_MPI;

/// Ranks of the communicator.
const RANKS: u64 = 4;
/// Largest message that is sent.
const BYTES_MAX: u64 = 4 << 20;

/// What Open MPI's function is called, by collective and name of the algorithm.
fn function(collective: &str, algorithm: &str) -> String {
    let word = match collective {
        "all-to-all" => "alltoall",
        "broadcast" => "bcast",
        "reduce-scatter" => "reduce_scatter",
        other => other,
    };
    let name = match (collective, algorithm.split(',').next().unwrap()) {
        ("allreduce", "rabenseifner") => "redscat_allgather",
        ("reduce", "rabenseifner") => "redscat_gather",
        (_, "recursive_halving") => "basic_recursivehalving",
        (_, "recursive_doubling") => "recursivedoubling",
        (_, "neighbor") => "neighborexchange",
        (_, "modified_bruck") => "bruck",
        (_, "linear") => "basic_linear",
        (_, name) => name,
    };
    format!("{word}_intra_{name}")
}

/// Sizes on both sides of each bound, and what is advised for each: `collective bytes function`.
fn advised(advice: &[Value]) -> Vec<String> {
    let mut lines = Vec::new();
    for row in advice {
        let collective = row["collective"].as_str().unwrap();
        let (first, last) = (row["first_bytes"].as_u64().unwrap(), row["last_bytes"].as_u64().unwrap_or(u64::MAX));
        // Where ranks have blocks of their own, messages are whole blocks of each.
        let unit = if matches!(collective, "allreduce" | "broadcast" | "reduce") { 1 } else { RANKS };
        let ends = [first.max(RANKS).next_multiple_of(unit), last.min(BYTES_MAX) / unit * unit];
        for bytes in ends.into_iter().filter(|bytes| *bytes >= RANKS && (first..=last).contains(bytes)) {
            lines.push(format!("{collective} {bytes} {}", function(collective, row["takes"].as_str().unwrap())));
        }
    }
    lines
}

fn run(bench: &Bench, ranks: u64, calls: &[String]) -> Vec<String> {
    let text: String = calls.iter().map(|line| format!("{}\n", line.rsplit_once(' ').unwrap().0)).collect();
    std::fs::write(bench.file("calls"), text).unwrap();
    let _alone = OPEN_MPI.lock();
    let output = Command::new("timeout")
        .args([
            "120",
            "mpirun",
            "--bind-to",
            "none",
            "--oversubscribe",
            "-n",
            &ranks.to_string(),
            "--mca",
            "coll_tuned_use_dynamic_rules",
            "1",
        ])
        .args(["--mca", "coll_tuned_dynamic_rules_filename"])
        .args([bench.file("rules"), bench.file("driver"), bench.file("calls")])
        .env("TMPDIR", bench.file("."))
        .envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")])
        .output()
        .unwrap();
    succeeded(&output);
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[track_caller]
fn succeeded(output: &Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Every bound, just below and just above; communicators of other sizes keep what they had.
#[test]
fn open_mpi_runs_what_is_advised() {
    if program("cc").is_none() || program("mpirun").is_none() || program("ompi_info").is_none() {
        return;
    }
    let bench = Bench::default();
    let source = workspace().join("tests/tests/black_box/advise/driver.c");
    let built = Command::new("cc")
        .args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-rdynamic", "-o"])
        .args([bench.file("driver"), source])
        .args(["-l:libmpi.so.40", "-ldl"])
        .output()
        .unwrap();
    succeeded(&built);
    let network = ["advise", "dgx-a100:boxes=2,gpus=2", "--to", "openmpi", "--ranks", "4"];
    for more in [&["--alpha", "1us"][..], &["--alpha", "0"]] {
        let found = bench.canopy(&[&network[..], more, &["-o", "rules", "--json"]].concat()).exits(0).json();
        let calls = advised(found["advice"].as_array().unwrap());
        assert!(calls.len() >= 16, "{found}");
        assert_eq!(run(&bench, RANKS, &calls), calls, "{found}");
    }
    // A file that advises nothing for three ranks changes nothing for them.
    let calls: Vec<String> = ["allreduce 4096 ", "broadcast 4096 "].map(str::to_owned).into();
    let others = run(&bench, 3, &calls);
    std::fs::write(bench.file("rules"), "0\n").unwrap();
    assert_eq!(run(&bench, 3, &calls), others);
}
