//! Folders of plans by message size: rule 7 of what is promised, and that every call gets the file that is meant for it.
//! The folders are written by the real command; what a runtime would do with them is asked of its rules, file by file as it
//! lies there.

#![expect(clippy::unwrap_used, reason = "tests; the helpers of tests are not known as such")]

mod rules;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use canopy_bundle::Runtime;
use canopy_prerequisites::program;
use canopy_tests::{Bench, Daemon, Run};
use serde_json::{Value, json};

use self::rules::{Meant, check_every_call, meant};

/// Profiles whose files the program writes.
const PROFILES: [Runtime; 7] = [
    Runtime::Msccl,
    Runtime::MscclExecutor,
    Runtime::RcclMsccl,
    Runtime::Mscclpp08,
    Runtime::Mscclpp09,
    Runtime::Mscclpp10,
    Runtime::OneCcl,
];

/// `canopy plan` for a bundle of MSCCL files.
fn bundle(bench: &Bench, topology: &str, more: &[&str]) -> Run {
    bench.canopy(&[&["plan", topology, "--format", "msccl-xml", "--json"], more].concat())
}

/// `canopy plan` for a bundle of the files of a runtime.
fn bundle_for(bench: &Bench, topology: &str, runtime: Runtime, more: &[&str]) -> Run {
    let format = match runtime {
        Runtime::Mscclpp08 | Runtime::Mscclpp09 | Runtime::Mscclpp10 => "mscclpp-json",
        Runtime::OneCcl => "oneccl-xml",
        _ => "msccl-xml",
    };
    let start = ["plan", topology, "--format", format, "--profile", runtime.name(), "--json"];
    bench.canopy(&[&start, more].concat())
}

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn every_size_of_every_range_gets_the_file_that_is_meant_for_it() {
    let bench = Bench::default();
    for runtime in PROFILES {
        let arguments = ["-c", "allgather,reduce-scatter,allreduce,broadcast", "--sizes", "1-256MiB", "-o", "out"];
        let more = [&arguments[..], &["--deadline", "5m"]].concat();
        let reply = bundle_for(&bench, "dgx-a100:boxes=2", runtime, &more).exits(0).json();
        let manifest = read_json(&bench.file("out/manifest.json"));
        assert_eq!(reply["bundle"], manifest);
        check_every_call(runtime, &bench.file("out"));
        let files = meant(&bench.file("out"));
        let limit = runtime.rules().unwrap().files_max;
        assert!(files.len() <= limit);
        assert!(runtime == Runtime::Msccl || files.len() > 6, "small and large messages have plans of their own");
        let codes: BTreeSet<&str> = manifest["items"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|item| item["warnings"].as_array().unwrap())
            .map(|warning| warning["code"].as_str().unwrap())
            .collect();
        assert_eq!(codes.contains("RANGES_TRIMMED"), runtime == Runtime::Msccl);
        assert_eq!(bench.file("out/loader.py").exists(), runtime.is_registered());
        for item in manifest["items"].as_array().unwrap() {
            if !item["error"].is_null() {
                // Files for it have no word for a collective with a root.
                assert_eq!((runtime, &item["collective"]), (Runtime::Mscclpp08, &Value::from("broadcast")));
                assert_eq!(item["error"]["reason"], "FORMAT_UNSUPPORTED_BY_RUNTIME");
                continue;
            }
            let ranges: Vec<(u64, u64)> = item["files"]
                .as_array()
                .unwrap()
                .iter()
                .map(|file| (file["size_bytes_min"].as_u64().unwrap(), file["size_bytes_end"].as_u64().unwrap()))
                .collect();
            assert_eq!(ranges.first().map(|first| first.0), Some(1));
            assert_eq!(ranges.last().map(|last| last.1), Some((256 << 20) + 1));
            assert!(ranges.windows(2).all(|pair| pair[0].1 == pair[1].0), "{ranges:?}");
        }
    }
}

/// The module beside the plans picks the file that is meant for a call, as the rules say.
#[test]
fn the_module_of_a_bundle_picks_by_the_manifest() {
    let bench = Bench::default();
    let arguments = ["-c", "allreduce,broadcast", "--sizes", "1-16MiB", "-o", "out"];
    let groups = ["--communicator", "all=0-15", "--communicator", "box=0-7", "--communicator", "pair=0,8"];
    let more = [&arguments[..], &groups].concat();
    bundle_for(&bench, "dgx-a100:boxes=2", Runtime::Mscclpp10, &more).exits(0);
    let folder = bench.file("out");
    check_every_call(Runtime::Mscclpp10, &folder);
    let all = meant(&folder);
    let on_each: BTreeSet<(u32, u32)> = all.iter().map(|meant| (meant.call.ranks, meant.call.ranks_per_node)).collect();
    assert_eq!(on_each, BTreeSet::from([(16, 8), (8, 8), (2, 1)]));
    let (mut calls, mut expected) = (Vec::new(), Vec::new());
    for Meant { path, call, first, last, unit } in &all {
        let (lowest, highest) = (first.div_ceil(*unit) * unit, last / unit * unit);
        let mut ask = |ranks: u32, ranks_per_node: u32, bytes: u64, in_place: bool, is_meant: bool| {
            calls.push(json!([call.collective.name(), ranks, ranks_per_node, bytes, in_place]));
            expected
                .push(is_meant.then(|| Path::new(path).strip_prefix(&folder).unwrap().to_str().unwrap().to_owned()));
        };
        let (ranks, own) = (call.ranks, call.ranks_per_node);
        ask(ranks, own, lowest, call.in_place, true);
        ask(ranks, own, highest, call.in_place, true);
        ask(ranks, own, lowest + 1, call.in_place, false);
        ask(ranks, own, lowest, !call.in_place, false);
        ask(ranks + 1, own, lowest, call.in_place, false);
        ask(ranks, own + 1, lowest, call.in_place, false);
    }
    let script = "import json, sys\n\
                  sys.path.insert(0, sys.argv[1])\n\
                  import loader\n\
                  found = [loader.pick(*call) for call in json.loads(sys.argv[2])]\n\
                  print(json.dumps([plan and plan['path'] for plan in found]))";
    let calls = Value::from(calls).to_string();
    let Some(python) = program("python3") else { return };
    let python = Command::new(python).args(["-B", "-c", script]).arg(&folder).arg(calls).output().unwrap();
    assert!(python.status.success(), "{}", String::from_utf8_lossy(&python.stderr));
    let found: Vec<Option<String>> = serde_json::from_slice(&python.stdout).unwrap();
    assert_eq!(found, expected);
}

#[test]
fn a_runtime_that_does_not_count_ranks_gets_plans_for_one_number_of_them() {
    let bench = Bench::default();
    let arguments = ["-c", "allgather", "--sizes", "1KiB..1MiB", "-o", "out"];
    let ask = |groups: &[&str]| {
        let more = [&arguments[..], groups].concat();
        bundle_for(&bench, "dgx-a100:boxes=2", Runtime::Mscclpp08, &more)
    };
    let run = ask(&["--communicator", "tp=0-7", "--communicator", "dp=0,8"]).exits(3);
    assert!(run.stderr.contains("would run plans for 8 ranks on 2"), "{}", run.stderr);
    assert!(meant(&bench.file("out")).is_empty());
    let manifest = ask(&["--communicator", "tp0=0-7", "--communicator", "tp1=8-15"]).exits(0).json()["bundle"].clone();
    check_every_call(Runtime::Mscclpp08, &bench.file("out"));
    // It does not pass over what it cannot divide.
    assert_eq!(manifest["items"][0]["warnings"][0]["code"], "RUNTIME_ADVICE");
}

#[test]
fn the_times_are_those_of_the_simulation() {
    let bench = Bench::default();
    let arguments = ["-c", "allgather", "--sizes", "1KiB..1MiB", "-o", "out"];
    let manifest = bundle(&bench, "ring:8", &arguments).exits(0).json()["bundle"].clone();
    let files = manifest["items"][0]["files"].as_array().unwrap().clone();
    let mut compared = 0;
    for file in files {
        let candidate = file["candidate"].as_str().unwrap();
        let how = match candidate.split_once('=') {
            Some((option, value)) => vec![format!("--{option}"), value.to_owned()],
            None => vec!["--algorithm".to_owned(), candidate.to_owned()],
        };
        let how: Vec<&str> = how.iter().map(String::as_str).collect();
        bench.canopy(&[&["plan", "ring:8", "-c", "allgather", "-o", "plan.json"], &how[..]].concat()).exits(0);
        for time in file["times"].as_array().unwrap() {
            let size = time["size_bytes"].to_string();
            let found = bench.canopy(&["simulate", "plan.json", "--size", &size, "--json"]).exits(0).json();
            assert_eq!(found["sizes"][0]["time_ps"], time["time_ps"], "{candidate} at {size}");
            compared += 1;
        }
    }
    assert!(compared > 5);
}

/// All files below a folder with their bytes, by name.
fn content(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                found.push((name, fs::read(path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn the_same_bundle_has_the_same_bytes_on_every_server() {
    let ask = |bench: &Bench, more: &[&str]| {
        let arguments = ["-c", "allreduce,broadcast", "--sizes", "64-16MiB", "--profile", "rccl-msccl", "-o", "out"];
        bundle(bench, "torus:3x3", &[&arguments[..], &["--deadline", "5m"], more].concat()).exits(0);
        content(&bench.file("out"))
    };
    let (one, other) = (Bench::default(), Bench::default());
    let daemon = Daemon::start(&one, &["--workers", "3"]);
    let first = ask(&one, &["--server", daemon.address()]);
    assert!(first.iter().filter(|(name, _)| name.starts_with("plans/")).count() >= 2);
    // Again into the same folder, which holds an earlier bundle then, from the cache; and by a server of the command's own.
    assert!(ask(&one, &["--server", daemon.address()]) == first);
    let bytes_but_env = |files: Vec<(String, Vec<u8>)>| files.into_iter().filter(|(name, _)| name != "env");
    assert!(bytes_but_env(ask(&other, &[])).eq(bytes_but_env(first)));
}

const GROUPS: [&str; 8] = [
    "--communicator",
    "tp0=0-7",
    "--communicator",
    "tp1=8-15",
    "--communicator",
    "mixed=0-3,8-11",
    "--communicator",
    "dp=0,8",
];

#[test]
fn rule_7_communicators_that_look_alike_on_other_wiring_are_told() {
    let bench = Bench::default();
    let arguments = ["-c", "allgather", "--sizes", "1KiB..16MiB", "--profile", "msccl-executor", "-o", "out"];
    let ask = |more: &[&str]| bundle(&bench, "dgx-a100:boxes=2", &[&arguments[..], more].concat());
    let manifest = ask(&GROUPS).exits(0).json()["bundle"].clone();
    let codes: Vec<&Value> = manifest["warnings"].as_array().unwrap().iter().map(|warning| &warning["code"]).collect();
    assert_eq!(codes, ["AMBIGUOUS_BUNDLE"]);
    assert!(manifest["warnings"][0]["text"].as_str().unwrap().contains("cannot tell `mixed` from `tp0`"));
    let served: Vec<&Value> = manifest["items"].as_array().unwrap().iter().map(|item| &item["served_by"]).collect();
    assert_eq!(served, [&Value::Null, &Value::from("tp0"), &Value::from("tp0"), &Value::Null]);
    check_every_call(Runtime::MscclExecutor, &bench.file("out"));

    // Strictly, whoever could get files that were made for others gets none, and the others theirs.
    let run = ask(&[&GROUPS[..], &["--strict"]].concat()).exits(3);
    assert!(run.stderr.contains("AMBIGUOUS_BUNDLE"), "{}", run.stderr);
    let manifest = read_json(&bench.file("out/manifest.json"));
    let reasons: Vec<&Value> =
        manifest["items"].as_array().unwrap().iter().map(|item| &item["error"]["reason"]).collect();
    let ambiguous = Value::from("AMBIGUOUS_BUNDLE");
    assert_eq!(reasons, [&ambiguous, &ambiguous, &ambiguous, &Value::Null]);
    assert!(meant(&bench.file("out")).iter().all(|meant| meant.call.ranks == 2));
    check_every_call(Runtime::MscclExecutor, &bench.file("out"));

    // Communicators of equal wiring are none of its business.
    let manifest = ask(&["--communicator", "tp0=0-7", "--communicator", "tp1=8-15", "--strict"]).exits(0).json();
    assert_eq!(manifest["bundle"]["warnings"], Value::Array(Vec::new()));
    // Nor of another order: the ranks of a box have a switch among themselves, those of a ring have not.
    let ring = ["--communicator", "a=0-3", "--communicator", "b=3,1,2,0", "--strict"];
    bundle(&bench, "torus:4x4", &[&arguments[..], &ring].concat()).exits(3);
}

#[test]
fn an_item_that_cannot_be_leaves_the_others_theirs() {
    let bench = Bench::default();
    let arguments = ["-c", "gather,allgather", "--sizes", "1KiB..1MiB", "-o", "out"];
    let items = bundle(&bench, "ring:6", &arguments).exits(0).json()["bundle"]["items"].clone();
    assert_eq!(items[0]["error"]["reason"], "FORMAT_UNSUPPORTED_BY_RUNTIME");
    assert!(items[0]["files"].as_array().unwrap().is_empty() && !items[1]["files"].as_array().unwrap().is_empty());
    let run = bundle(&bench, "ring:6", &[&arguments[..], &["--strict"]].concat()).exits(3);
    assert!(run.stderr.contains("gather of `all` has no plan"), "{}", run.stderr);
    check_every_call(Runtime::Msccl, &bench.file("out"));
    // Where nothing is left, that is a failure in any case.
    bundle(&bench, "ring:6", &["-c", "gather", "--sizes", "1KiB..1MiB", "-o", "none"]).exits(3);
}

/// Stock NCCL gets advice for its tuner and is told that it is no more than that.
#[test]
fn advice_for_nccl_is_a_table_of_its_own_algorithms() {
    let bench = Bench::default();
    let arguments =
        ["-c", "allreduce,allgather,gather", "--sizes", "1KiB..1GiB", "--profile", "nccl", "-o", "out", "--json"];
    let reply = bench.canopy(&[&["plan", "dgx-a100:boxes=2"], &arguments[..]].concat()).exits(0).json();
    let bundle = &reply["bundle"];
    assert_eq!(bundle["warnings"][0]["code"], "RUNTIME_WILL_IGNORE");
    assert!(bundle["items"].as_array().unwrap().iter().all(|item| item["files"].as_array().unwrap().is_empty()));
    assert_eq!(bundle["items"][2]["error"]["reason"], "FORMAT_UNSUPPORTED_BY_RUNTIME");
    let table = fs::read_to_string(bench.file("out/tuner.csv")).unwrap();
    let rows: Vec<Vec<&str>> =
        table.lines().filter(|line| !line.starts_with('#')).map(|line| line.split(',').collect()).collect();
    let number = |row: &[&str], column: usize| row[column].parse::<u64>().unwrap();
    for (word, algorithms) in [("allreduce", &["ring", "tree"][..]), ("allgather", &["ring"])] {
        let of: Vec<&Vec<&str>> = rows.iter().filter(|row| row[0] == word && row[7] == "16").collect();
        assert_eq!((number(of[0], 1), number(of[of.len() - 1], 2)), (0, u64::MAX), "{table}");
        // Greatest sizes are inclusive there.
        assert!(of.windows(2).all(|pair| number(pair[0], 2) + 1 == number(pair[1], 1)), "{table}");
        assert!(
            of.iter().all(|row| row.len() == 10 && algorithms.contains(&row[3]) && row[5..8] == ["16", "2", "16"]),
            "{table}"
        );
    }
    // Two channels for each of eight NICs, never -1, which the plugin takes as one; and a row for whatever else is called.
    assert!(rows.iter().all(|row| number(row, 5) >= 16), "{table}");
    for word in ["allreduce", "allgather", "reducescatter", "broadcast", "reduce"] {
        let last = rows.iter().rfind(|row| row[0] == word).unwrap();
        assert_eq!((number(last, 1), number(last, 2), &last[6..8]), (0, u64::MAX, &["-1", "-1"][..]), "{table}");
    }
    assert!(table.contains("NVIDIA's example tuner plugin") && table.contains("NCCL 2.27 to 2.31"), "{table}");
    assert!(rows.iter().all(|row| row[0] != "gather"));
    let env = fs::read_to_string(bench.file("out/env")).unwrap();
    assert!(env.contains("export NCCL_TUNER_CONFIG_FILE='/") && env.contains("/out/tuner.csv'"), "{env}");
    let single = bench.canopy(&["plan", "ring:4", "-c", "allgather", "--profile", "nccl", "-o", "x"]).exits(2);
    assert!(single.stderr.contains("NCCL cannot load external plans"), "{}", single.stderr);
}

#[test]
fn five_collectives_have_no_room_where_four_files_are_read() {
    let bench = Bench::default();
    let all = "allgather,reduce-scatter,allreduce,broadcast,reduce";
    let items = bundle(&bench, "ring:4", &["-c", all, "--sizes", "1KiB..64MiB", "-o", "out"]).exits(0).json();
    let items = items["bundle"]["items"].as_array().unwrap().clone();
    assert!(items[..4].iter().all(|item| item["files"].as_array().unwrap().len() == 1));
    assert_eq!(items[4]["error"]["reason"], "FILE_COUNT_LIMIT");
    check_every_call(Runtime::Msccl, &bench.file("out"));
}

/// The machine may have other things to do, so what is held to the deadline is what the server works until the command has ended: at
/// most what its four threads that plan can work by then, on the processors that there are.
#[test]
fn rule_8_the_deadline_holds_for_bundles() {
    let at_once = std::thread::available_parallelism().unwrap().get().min(4);
    for (deadline, limit) in [("50ms", Duration::from_millis(50)), ("1s", Duration::from_secs(1))] {
        // A server that has made nothing.
        let bench = Bench::default();
        let daemon = Daemon::start(&bench, &["--workers", "1"]);
        let all = "allgather,allreduce,reduce-scatter,broadcast,all-to-all";
        let arguments = ["-c", all, "--sizes", "1KiB..1GiB", "-o", "out"];
        let more = ["--profile", "rccl-msccl", "--deadline", deadline, "--server", daemon.address()];
        let before = daemon.processor_time();
        let run = bundle(&bench, "mi250:boxes=2", &[&arguments[..], &more].concat());
        let worked = daemon.processor_time() - before;
        assert!(matches!(run.status, Some(0 | 5)), "{run:?}");
        println!("{deadline}: {worked:?} of work, exit status {:?}", run.status);
        let most = (limit + Duration::from_millis(100)) * u32::try_from(at_once).unwrap();
        assert!(worked <= most, "{deadline}: {worked:?} of work");
    }
}

#[test]
fn what_no_bundle_can_be_made_of_is_refused() {
    let bench = Bench::default();
    fs::create_dir(bench.file("full")).unwrap();
    fs::write(bench.file("full/notes.txt"), "mine").unwrap();
    let cases: [(&[&str], &str); 11] = [
        (&["-c", "allgather", "--sizes", "1KiB..1MiB"], "add `-o DIR`"),
        (&["--sizes", "1KiB..1MiB", "-o", "out"], "collectives is missing"),
        (&["-c", "allgather,allgather", "--sizes", "1KiB..1MiB", "-o", "out"], "collectives[1] repeats allgather"),
        (&["-c", "allgather,allreduce", "-o", "out"], "add `--sizes FROM..TO`"),
        (&["-c", "allgather", "--sizes", "1MiB..1KiB", "-o", "out"], "ends before it begins"),
        (&["-c", "allgather", "--sizes", "1KiB..1MiB", "--size", "1MiB", "-o", "out"], "cannot be combined"),
        (&["-c", "allgather", "--sizes", "1KiB..1MiB", "-o", "full"], "something other than a bundle"),
        (
            &["-c", "allgather", "--sizes", "1KiB..1MiB", "--communicator", "a b=0-1", "-o", "out"],
            "communicators[0].name",
        ),
        (
            &["-c", "allgather", "--sizes", "1KiB..1MiB", "--communicator", "a=0-9", "-o", "out"],
            "rank 4 is not in the topology",
        ),
        (&["-c", "allgather", "--sizes", "1KiB..1MiB", "--format", "json", "-o", "out"], "cannot be combined"),
        (&["-c", "allgather", "--strict", "-o", "out"], "--sizes"),
    ];
    for (more, words) in cases {
        let run = bundle(&bench, "ring:4", more).exits(2);
        assert!(run.stderr.contains(words), "{more:?}: {}", run.stderr);
    }
    assert!(fs::read(bench.file("full/notes.txt")).is_ok() && !bench.file("out").exists());
    let json = ["plan", "ring:4", "-c", "allgather", "--sizes", "1KiB..1MiB", "-o", "out"];
    assert!(bench.canopy(&json).exits(2).stderr.contains("canopy's own format"));
}
