//! `canopy tools doctor`: each rule that makes a runtime ignore a plan is named, with what to do.

use std::path::Path;

use crate::support::Serving;
use crate::support::{Run, Workspace, check_members};

/// A workspace with the logs, and with variables that name nothing.
fn workspace() -> Workspace {
    let workspace = Workspace::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/doctor");
    for name in ["stock", "executor", "msccl", "mscclpp", "rccl"] {
        let name = format!("{name}.log");
        workspace.write(&name, std::fs::read(folder.join(&name)).unwrap());
    }
    workspace.write("job.env", "");
    workspace
}

/// Runs the command, which must end with this status, and finds these words in its report.
#[track_caller]
fn report(workspace: &Workspace, arguments: &str, status: i32, words: &[&str]) -> Run {
    let run = workspace.run(&format!("doctor {arguments}"));
    assert_eq!(run.status, Some(status), "{arguments}\n{run:?}");
    for word in words {
        assert!(run.stdout.contains(word), "{arguments}: `{word}` is missing from\n{}", run.stdout);
    }
    // Each problem is one line, and what to do another.
    let lines: Vec<&str> = run.stdout.lines().collect();
    for (position, line) in lines.iter().enumerate().filter(|(_, line)| line.starts_with("problem ")) {
        assert!(lines.get(position + 1).is_some_and(|next| next.starts_with("help: ")), "{line}\n{}", run.stdout);
    }
    run
}

#[test]
fn libraries_that_load_no_plans_are_named() {
    let workspace = workspace();
    let stock = "problem  runtime: the job loaded stock NCCL 2.20.5, which cannot load external plans";
    workspace.write("job.env", "MSCCL_XML_FILES=/nowhere/plan.xml\n");
    let run = report(&workspace, "--log stock.log --env job.env", 2, &[stock, "NCCL_ALGO is Ring", "cannot be read"]);
    assert!(run.stderr.starts_with("error: ") && run.stderr.lines().count() == 1, "{}", run.stderr);
    workspace.write("job.env", "RCCL_MSCCL_ENABLE=1\nMSCCL_ALGO_DIR=/nowhere\n");
    report(&workspace, "--log rccl.log --env job.env", 2, &["the job loaded RCCL 2.28.3, which cannot load"]);
    workspace.write("job.env", "MSCCLPP_EXECUTION_PLAN_DIR=/nowhere\n");
    let old = "MSCCL++ 0.7.0 reads another schema and aborts on these plans";
    report(&workspace, "--log mscclpp.log --env job.env", 2, &[old, "update MSCCL++"]);
}

#[test]
fn a_report_for_programs_has_the_same_checks() {
    let workspace = workspace();
    let run = report(&workspace, "--log stock.log --env job.env --profile msccl --json", 2, &[]);
    let object = run.object();
    check_members(&object, &["canopy", "command", "ok", "runtime", "checks"]);
    assert_eq!((&object["ok"], &object["runtime"]), (&false.into(), &"msccl".into()));
    let first = &object["checks"][0];
    check_members(first, &["check", "outcome", "message", "help"]);
    assert_eq!((&first["check"], &first["outcome"]), (&"runtime".into(), &"problem".into()));
}

#[test]
fn what_is_missing_is_unknown_and_no_failure() {
    let workspace = workspace();
    report(&workspace, "--env job.env", 0, &["unknown  runtime: no log says", "unknown  files: "]);
}

#[test]
fn the_tuner_of_stock_nccl_needs_a_plugin_and_a_table() {
    let workspace = workspace();
    workspace.write("job.env", "NCCL_TUNER_CONFIG_FILE=/nowhere/tuner.csv\n");
    let words = [
        "ok       runtime: stock NCCL 2.20.5",
        "NCCL_TUNER_PLUGIN is not set",
        "NCCL_TUNER_CONFIG_FILE is /nowhere/tuner.csv, which cannot be read",
        "NCCL_ALGO is Ring, which overrules the table",
        "NCCL 2.20.5 is older than 2.24",
    ];
    report(&workspace, "--log stock.log --env job.env", 2, &words);
}

/// Nobody asks about plans, so the log is looked at for what it says of the job.
#[test]
fn an_ordinary_log_says_what_slows_the_job() {
    let workspace = workspace();
    let lines = [
        "NCCL version 2.27.3+cuda12.9",
        "gpu01:71:90 [0] NCCL INFO NCCL_P2P_DISABLE set by environment to 1.",
        "gpu01:71:90 [0] NCCL INFO Using network Socket",
        "gpu01:71:90 [0] NCCL INFO comm 0x5 rank 0 nRanks 16 nNodes 2 localRanks 8 localRank 0 MNNVL 0",
        "gpu01:71:90 [0] misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-abc to 33030532 bytes: No space left on device",
    ];
    let words = [
        "ok       runtime: stock NCCL 2.27.3, which loads no plans",
        "ok       job: 16 ranks on 2 machines, 8 on each",
        "problem  network: sockets join the machines",
        "note     environment: NCCL_P2P_DISABLE is 1: GPUs of a machine do not use NVLink or PCIe",
        "problem  log: the runtime warns: Error: failed to extend",
        "--shm-size",
        "--boxes 2 --fabric rail",
    ];
    let tagged = |tag: &str| lines.map(|line| format!("{tag}{line}\n")).concat();
    for (name, text) in [
        ("plain", tagged("")),
        ("mpirun", tagged("[1,3]<stdout>:")),
        ("srun", tagged("12: ")),
        ("kubectl", tagged("[pod/train-worker-0/main] ")),
        ("colours", tagged("\u{1b}[32m")),
        ("carriage", tagged("").replace('\n', "\r\n")),
    ] {
        workspace.write("job.log", text);
        let run = report(&workspace, "job.log --env job.env", 2, &words);
        assert!(run.stderr.contains("error: 2 problems"), "{name}: {run:?}");
    }
    let stock =
        report(&workspace, "stock.log --env job.env", 0, &["stock NCCL 2.20.5, which loads no plans", "gain: "]);
    assert!(stock.stdout.contains("NCCL_ALGO is Ring: no other algorithm is taken"), "{stock:?}");
    report(&workspace, "executor.log --env job.env --json", 0, &["which runs plans (msccl-executor)"]);
}

#[test]
fn garbage_is_refused_without_a_crash() {
    let workspace = workspace();
    workspace.write("empty.log", "");
    workspace.write("other.log", "Nov 24 01:00:00 gpu001 kernel: hello\n");
    workspace.write("binary.log", [0xff, 0, 0xfe, b'\n'].repeat(1000));
    for name in ["empty", "other", "binary"] {
        workspace.refused(&format!("doctor --log {name}.log"), 2, &["has no line of NCCL", "help: "]);
    }
    workspace.refused("doctor --log missing.log", 2, &["cannot read missing.log"]);
    workspace.refused("doctor --env missing.env", 2, &["missing.env"]);
    workspace.refused("doctor --plans missing", 2, &["cannot read missing"]);
    workspace.refused("doctor --profile teccl", 2, &["teccl"]);
    workspace.refused("doctor -c allgather", 2, &["--size"]);
    workspace.write("plans.xml", b"<algo \xff\xff>");
    report(&workspace, "--env job.env --plans plans.xml --profile msccl-executor", 2, &["plans.xml is not a plan"]);
    workspace.write("job.env", b"\xff=\xff\nNCCL_ALGO\n=\nexport \nMSCCL_ALGO_DIR=\xff\n");
    report(&workspace, "--env job.env", 2, &["cannot be read"]);
}

/// Plans for four ranks, for the executor.
fn planned() -> Workspace {
    let workspace = workspace();
    std::fs::create_dir(workspace.path("plans")).unwrap();
    workspace.run("plan ring:4 -c allgather --format msccl-xml --profile msccl-executor -o plans/a.xml");
    let folder = workspace.path("plans");
    workspace.write("job.env", format!("NCCL_MSCCL_ENABLE=1\nMSCCL_ALGO_DIR={}\n", folder.display()));
    workspace
}

#[test]
fn a_job_that_runs_its_plans_has_no_problem() {
    let workspace = planned();
    let words = [
        "ok       runtime: the MSCCL executor on NCCL 2.23.4 (msccl-executor)",
        "ok       environment: the variables lead to the plans",
        "ok       files: 1 plan for msccl-executor",
        "ok       ranks: 1 plan for communicators of 4 ranks",
        "ok       calls: plans serve 1 of 1 calls",
    ];
    let run = report(&workspace, "--log executor.log --env job.env", 0, &words);
    assert!(!run.stdout.contains("problem") && run.stderr.is_empty(), "{run:?}");
}

#[test]
fn each_rule_of_the_selection_is_named() {
    let workspace = planned();
    let call = "--log executor.log --env job.env -c allgather --size";
    report(&workspace, &format!("{call} 64TiB"), 2, &["allgather of 64 TiB on 4 ranks", "a.xml ends at"]);
    report(&workspace, &format!("{call} 4MiB --in-place"), 2, &["a.xml is for calls out of place only", "--in-place"]);
    let other = "--log executor.log --env job.env -c allreduce --size 4MiB";
    report(&workspace, other, 2, &["a.xml is for another collective", "-c allreduce"]);
    std::fs::create_dir(workspace.path("wide")).unwrap();
    workspace.run("plan ring:4 -c allgather --format msccl-xml --profile msccl-executor --instances 4 -o wide/a.xml");
    let wide = workspace.path("wide");
    workspace.write("few.env", format!("MSCCL_ALGO_DIR={}\nNCCL_MAX_NCHANNELS=1\n", wide.display()));
    report(&workspace, "--log executor.log --env few.env", 2, &["NCCL_MAX_NCHANNELS is 1"]);
    let folder = workspace.path("plans");
    workspace.write("off.env", format!("MSCCL_ALGO_DIR={}\nNCCL_MSCCL_ENABLE=0\n", folder.display()));
    report(&workspace, "--log executor.log --env off.env", 2, &["NCCL_MSCCL_ENABLE is 0, which turns plans off"]);
    report(
        &workspace,
        "--log executor.log --env /dev/null --plans plans --profile msccl-executor",
        2,
        &["MSCCL_ALGO_DIR is not set"],
    );

    workspace.write("plans/README", "not a plan");
    report(&workspace, "--log executor.log --env job.env", 2, &["README is not a plan", "fails at start"]);
}

#[test]
fn ranks_and_the_protocol_are_compared_with_the_log() {
    let workspace = workspace();
    workspace.run("plan ring:4 -c allgather --format msccl-xml --profile msccl -o a.xml");
    workspace.write("job.env", format!("MSCCL_XML_FILES={}\n", workspace.path("a.xml").display()));
    let words = [
        "ok       runtime: microsoft/msccl on NCCL 2.12.12 (msccl)",
        "communicators of the job have 8 ranks, and the plans are for 4",
        "NCCL_PROTO is LL128",
        "the runtime warns: MSCCL: ngpus set",
    ];
    report(&workspace, "--log msccl.log --env job.env", 2, &words);
}

#[test]
fn a_plan_for_another_network_is_noticed() {
    let workspace = workspace();
    workspace.run("plan ring:4 -c allgather -o plan.json");
    let json = "--env job.env --plans plan.json --profile msccl --topology";
    let words = ["plan.json is a plan in canopy's JSON", "canopy convert", "ok       network: "];
    report(&workspace, &format!("{json} ring:4"), 2, &words);
    report(&workspace, &format!("{json} complete:4"), 2, &["correct, but slow"]);
}

#[test]
fn a_plan_that_a_fault_replaced_is_noticed() {
    let workspace = workspace();
    let _server = Serving::with(&workspace, "--fault-debounce 100ms --plan-ahead=false");
    let fetch = "fetch dgx-a100:boxes=2 --collective allgather --job 17 --out job --lease 1h --deadline 30s --strict";
    let fetched = workspace.run(fetch);
    assert_eq!(fetched.status, Some(0), "{fetched:?}");
    let doctor = "--env job/env --plans job --server unix:data/canopy.sock";
    report(&workspace, doctor, 0, &["ok       server: the plans are current"]);
    workspace.json("faults report dgx-a100:boxes=2 gpu:b0g3 --json");
    let mut found = Run { status: None, stdout: String::new(), stderr: String::new() };
    for _ in 0..600 {
        found = workspace.run(&format!("doctor {doctor}"));
        if found.status == Some(2) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert!(found.stdout.contains("problem  server: a fault replaced plans/"), "{found:?}");
}
