//! Programs of MPI that know nothing of plans end with the same bytes with and without them, in Open MPI and MPICH.

#![expect(clippy::unwrap_used, reason = "tests; the helpers of tests are not known as such")]

mod flavour;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use canopy_prerequisites::python_with;
use canopy_tests::{Bench, Run, workspace};
use serde_json::Value;

use flavour::{Flavour, RANKS};

const COLLECTIVES: [&str; 8] =
    ["allgather", "allreduce", "reduce-scatter", "broadcast", "reduce", "all-to-all", "gather", "scatter"];

/// The bundle of a job: all collectives for 8 ranks and for 4, from one byte on.
fn bundle() -> PathBuf {
    static MADE: OnceLock<Bench> = OnceLock::new();
    let bench = MADE.get_or_init(|| {
        let bench = Bench::default();
        let arguments = ["plan", "ring:8", "-c", &COLLECTIVES.join(","), "--sizes", "1B..64MiB"];
        let groups = ["--communicator", "all=0-7", "--communicator", "half=0-3"];
        let _made =
            bench.canopy(&[&arguments[..], &groups, &["--format", "oneccl-xml", "-o", "job"]].concat()).exits(0);
        bench
    });
    bench.file("job")
}

fn source(name: &str) -> String {
    format!("tests/tests/mpi/programs/{name}")
}

/// Lines of the report, without the head.
fn report_has(run: &Run, part: &str) {
    assert!(run.stderr.lines().any(|line| line.contains(part)), "no `{part}` in:\n{}", run.stderr);
}

fn report_has_not(run: &Run, part: &str) {
    assert!(!run.stderr.contains(part), "`{part}` in:\n{}", run.stderr);
}

/// Runs a program without and with plans, and asserts that both print the same; returns the second run.
fn alike(flavour: Flavour, command: &[&str], variables: &BTreeMap<&str, String>) -> Run {
    let plain = flavour.run(command, &BTreeMap::new()).exits(0);
    assert!(plain.stdout.lines().count() > 20, "the program prints what it ends with: {plain:?}");
    let planned = flavour.run(command, variables).exits(0);
    let mut pairs = plain.stdout.lines().zip(planned.stdout.lines());
    let differs = pairs.find(|(plain, planned)| plain != planned);
    assert_eq!(differs, None, "{}", planned.stderr);
    assert_eq!(plain.stdout.lines().count(), planned.stdout.lines().count());
    planned
}

/// Every collective runs by a plan at least once.
fn all_collectives_ran(run: &Run) {
    for function in
        ["Allgather", "Allreduce", "Reduce_scatter_block", "Bcast", "Reduce", "Alltoall", "Gather", "Scatter"]
    {
        let by_plan = format!("MPI_{function}: ");
        let ran = run.stderr.lines().any(|line| line.contains(&by_plan) && line.contains(" by canopy-"));
        assert!(ran, "MPI_{function} ran by no plan:\n{}", run.stderr);
    }
}

#[test]
fn open_mpi_gives_the_same_bytes_for_every_type_and_operator() {
    let flavour = Flavour::OpenMpi;
    if !flavour.is_there() {
        return;
    }
    let bench = Bench::default();
    let program = flavour.compile(&bench.file("."), &source("every.c"));
    let program = program.to_str().unwrap();
    let run = alike(flavour, &[program], &flavour.variables(&bundle()));
    all_collectives_ran(&run);
    report_has(&run, "MPI_Bcast: 108 without a plan: no plan for this root");
    report_has(&run, "MPI_Allgather: 36 without a plan: no plan for this size");
    report_has_not(&run, "without a plan: the operator");
    let long = alike(flavour, &[program, "few", "large"], &flavour.variables(&bundle()));
    all_collectives_ran(&long);
}

#[test]
fn mpich_gives_the_same_bytes() {
    let flavour = Flavour::Mpich;
    if !flavour.is_there() {
        return;
    }
    let bench = Bench::default();
    let program = flavour.compile(&bench.file("."), &source("every.c"));
    all_collectives_ran(&alike(flavour, &[program.to_str().unwrap(), "few"], &flavour.variables(&bundle())));
}

/// Plain files, in place and with copies of the plan, serve every size, also none.
#[test]
fn plans_in_place_and_of_several_instances_give_the_same_bytes() {
    let flavour = Flavour::OpenMpi;
    if !flavour.is_there() {
        return;
    }
    let bench = Bench::default();
    fs::create_dir(bench.file("plans")).unwrap();
    for collective in COLLECTIVES {
        let path = format!("plans/{collective}.xml");
        let arguments = ["plan", "mesh:2x4", "-c", collective, "--in-place", "--format", "oneccl-xml", "-o", &path];
        let _made = bench.canopy(&arguments).exits(0);
        let text = fs::read_to_string(bench.file(&path)).unwrap();
        assert!(text.contains("inplace=\"1\"") && text.contains("instances=\"1\""), "{text}");
        fs::write(bench.file(&path), text.replacen("instances=\"1\"", "instances=\"3\"", 1)).unwrap();
    }
    let program = flavour.compile(&bench.file("."), &source("every.c"));
    let run = alike(flavour, &[program.to_str().unwrap(), "few"], &flavour.variables(&bench.file("plans")));
    all_collectives_ran(&run);
    report_has_not(&run, "no plan for this size");
}

fn corners(flavour: Flavour) -> Option<Run> {
    if !flavour.is_there() {
        return None;
    }
    let bench = Bench::default();
    let program = flavour.compile(&bench.file("."), &source("corners.c"));
    let run = alike(flavour, &[program.to_str().unwrap()], &flavour.variables(&bundle()));
    // Derived types on some ranks only, which others cannot see.
    for planned in
        ["MPI_Scatter: 1 by", "MPI_Gather: 1 by", "MPI_Alltoall: 1 by", "MPI_Allgather: 2 by", "MPI_Bcast: 2 by"]
    {
        report_has(&run, planned);
    }
    for passed in [
        "MPI_Allreduce: 2 without a plan: the operator is user-defined, MINLOC or MAXLOC",
        "MPI_Allreduce: 1 without a plan: the communicator has one rank",
        "MPI_Allreduce: 1 without a plan: the communicator joins two groups",
        "MPI_Iallreduce: 1 without a plan: the call is nonblocking",
        "MPI_Ibcast: 1 without a plan: the call is nonblocking",
        "MPI_Allreduce: 6 by canopy-allreduce-4-",
    ] {
        report_has(&run, passed);
    }
    Some(run)
}

#[test]
fn types_operators_and_communicators_of_the_caller_work_in_open_mpi() {
    if let Some(run) = corners(Flavour::OpenMpi) {
        report_has(&run, "MPI_Allreduce: 1 without a plan: arguments that MPI refuses");
    }
}

#[test]
fn types_operators_and_communicators_of_the_caller_work_in_mpich() {
    let _run = corners(Flavour::Mpich);
}

#[test]
fn threads_call_collectives_on_communicators_of_their_own() {
    for flavour in [Flavour::OpenMpi, Flavour::Mpich] {
        if flavour.is_there() {
            let bench = Bench::default();
            let program = flavour.compile(&bench.file("."), &source("threads.c"));
            let run = flavour.run(&[program.to_str().unwrap()], &flavour.variables(&bundle())).exits(0);
            assert_eq!(run.stdout, "threads at once, wrong 0\n");
            report_has(&run, "MPI_Allreduce: 100 by canopy-allreduce-8-");
        }
    }
}

#[test]
fn a_program_of_mpi4py_gives_the_same_bytes_and_a_report_in_json() {
    // Debian builds mpi4py with Open MPI.
    let flavour = Flavour::OpenMpi;
    let Some(python) = python_with("mpi4py").filter(|_| flavour.is_there()) else { return };
    let bench = Bench::default();
    let program = workspace().join(source("everyday.py"));
    let mut variables = flavour.variables(&bundle());
    let report = bench.file("report.json");
    variables.insert("CANOPY_MPI_REPORT", report.display().to_string());
    let _run = alike(flavour, &[python.to_str().unwrap(), program.to_str().unwrap()], &variables);
    let report: Value = serde_json::from_str(&fs::read_to_string(report).unwrap()).unwrap();
    assert!(report["plan_calls"].as_u64().unwrap() > 90, "{report}");
    assert!(report["fallback_calls"].as_u64().unwrap() > 0, "{report}");
    let functions = report["functions"].as_array().unwrap();
    let allreduce = functions.iter().find(|own| own["function"] == "MPI_Allreduce").unwrap();
    assert_eq!(allreduce["fallbacks"][0]["reason"], "other-size", "{report}");
    let calls: u64 = allreduce["plans"].as_array().unwrap().iter().map(|own| own["calls"].as_u64().unwrap()).sum();
    assert_eq!(calls, 49, "{report}");
}

/// One rank with another folder: all run without plans, or none runs where that is asked for.
#[test]
fn ranks_with_different_plans_run_without_them() {
    for flavour in [Flavour::OpenMpi, Flavour::Mpich] {
        if !flavour.is_there() {
            continue;
        }
        let bench = Bench::default();
        let _plan = bench.plan("ring:8", "allreduce", "oneccl-xml", "other.xml");
        let program = flavour.compile(&bench.file("."), &source("threads.c"));
        let command = [program.to_str().unwrap()];
        let mut other = flavour.variables(&bench.file("."));
        let groups = [(RANKS - 1, &command[..], flavour.variables(&bundle())), (1, &command[..], other.clone())];
        let run = flavour.run_groups(&groups).exits(0);
        assert_eq!(run.stdout, "threads at once, wrong 0\n");
        report_has(&run, "canopy-mpi: running without: ranks 7 of 8 have other plans than rank 0; help: ");
        report_has(&run, "MPI_Allreduce: 100 without a plan: ranks have different plans");
        other.insert("CANOPY_STRICT", "1".to_owned());
        let groups = [(RANKS - 1, &command[..], flavour.variables(&bundle())), (1, &command[..], other)];
        let run = flavour.run_groups(&groups);
        assert_ne!(run.status, Some(0), "{run:?}");
        assert_ne!(run.stdout, "threads at once, wrong 0\n");
    }
}

#[test]
fn plans_that_are_not_proved_never_run() {
    let flavour = Flavour::OpenMpi;
    if !flavour.is_there() {
        return;
    }
    let bench = Bench::default();
    fs::create_dir(bench.file("plans")).unwrap();
    let _plan = bench.plan("ring:8", "allreduce", "oneccl-xml", "plans/a.xml");
    let text = fs::read_to_string(bench.file("plans/a.xml")).unwrap();
    fs::write(bench.file("plans/a.xml"), text.replacen("<reduce ", "<copy ", 1)).unwrap();
    let program = flavour.compile(&bench.file("."), &source("threads.c"));
    let mut variables = flavour.variables(&bench.file("plans"));
    let run = flavour.run(&[program.to_str().unwrap()], &variables).exits(0);
    report_has(&run, "canopy-mpi: running without: a.xml: ");
    report_has(&run, "MPI_Allreduce: 100 without a plan: no plan for this collective and number of ranks");
    variables.insert("CANOPY_STRICT", "1".to_owned());
    let run = flavour.run(&[program.to_str().unwrap()], &variables);
    assert_ne!(run.status, Some(0), "{run:?}");
    report_has(&run, "canopy-mpi: error: a.xml: ");
    variables.insert("CANOPY_STRICT", "0".to_owned());
    variables.insert("CANOPY_PLAN_DIR", bench.file("nowhere").display().to_string());
    let run = flavour.run(&[program.to_str().unwrap()], &variables).exits(0);
    report_has(&run, "nowhere: cannot be read: ");
    variables.insert("CANOPY_PLAN_DIR", String::new());
    let run = flavour.run(&[program.to_str().unwrap()], &variables).exits(0);
    report_has(&run, "MPI_Allreduce: 100 without a plan: CANOPY_PLAN_DIR is not set");
}

#[test]
fn the_library_of_the_other_mpi_says_so_and_programs_without_mpi_run() {
    let [open_mpi, mpich] = [Flavour::OpenMpi, Flavour::Mpich];
    for library in [open_mpi.library(), mpich.library()] {
        let output = Command::new("true").env("LD_PRELOAD", &library).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    }
    for (flavour, other, part) in [
        (open_mpi, mpich, "libcanopy_mpi_mpich.so is for MPICH, but this program uses `Open MPI v"),
        (mpich, open_mpi, "libcanopy_mpi_openmpi.so is for Open MPI, but this program uses `MPICH Version"),
    ] {
        if flavour.is_there() {
            let bench = Bench::default();
            let program = flavour.compile(&bench.file("."), &source("threads.c"));
            let run = flavour.run(&[program.to_str().unwrap()], &other.variables(&bundle()));
            assert_ne!(run.status, Some(0), "{run:?}");
            report_has(&run, part);
        }
    }
}

/// The program that measures, at small sizes: one line for each collective and size.
#[test]
fn the_sweep_measures_what_it_says() {
    let flavour = Flavour::OpenMpi;
    if !flavour.is_there() {
        return;
    }
    let bench = Bench::default();
    let program = flavour.compile(&bench.file("."), "executors/mpi/bench/sweep.c");
    let command = [program.to_str().unwrap(), "1024", "4096", "3"];
    let run = flavour.run(&command, &flavour.variables(&bundle())).exits(0);
    let rows: Vec<Vec<&str>> = run.stdout.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows.len(), 8 * 3, "{}", run.stdout);
    for row in &rows {
        assert!(row.len() == 3 && row[2].parse::<f64>().unwrap() > 0.0, "{row:?}");
    }
    all_collectives_ran(&run);
}
