//! Hostile and impossible input through the real command line: the right exit status, a helpful word, no hang.

use std::fs;

use canopy_tests::Bench;

/// Runs `canopy` and asserts its status and that the error speaks of every `word`.
#[track_caller]
fn refused(bench: &Bench, arguments: &[&str], status: i32, words: &[&str]) {
    let run = bench.canopy(arguments).exits(status);
    for word in words {
        assert!(run.stderr.contains(word), "no `{word}` in: {}", run.stderr);
    }
    assert!(!run.stderr.contains("panicked"), "{}", run.stderr);
}

#[track_caller]
fn refused_file(text: &str, status: i32, words: &[&str]) {
    let bench = Bench::default();
    let path = bench.file("topology.yaml");
    fs::write(&path, text).expect("a writable folder");
    let path = path.to_str().expect("temporary paths are text");
    refused(&bench, &["bound", path, "--collective", "allgather"], status, words);
    refused(&bench, &["plan", path, "--collective", "allgather", "-o", "plan.json"], status, words);
    assert!(!bench.file("plan.json").exists());
}

const TWO: &str = "canopy: 1\nnodes:\n- {id: a}\n- {id: b}\nlinks:\n";

#[test]
fn wrong_fields_are_named() {
    refused_file(&format!("{TWO}- {{from: a, to: b, bandwidth: NaN}}\n"), 2, &["links[0].bandwidth"]);
    refused_file(&format!("{TWO}- {{from: a, to: b, bandwidth: -1GB/s}}\n"), 2, &["links[0].bandwidth"]);
    refused_file(&format!("{TWO}- {{from: a, to: b, bandwidth: 99999999999999TB/s}}\n"), 2, &["links[0].bandwidth"]);
    refused_file(&format!("{TWO}- {{from: a, to: c, bandwidth: 1GB/s}}\n"), 2, &["links[0].to", "c"]);
    refused_file(&format!("{TWO}- {{from: a, to: a, bandwidth: 1GB/s}}\n"), 2, &["links[0]"]);
    refused_file(&format!("{TWO}- {{from: a, to: b, bandwith: 1GB/s}}\n"), 2, &["bandwith"]);
    refused_file("canopy: 2\nnodes: []\nlinks: []\n", 2, &["2"]);
    refused_file("canopy: 1\nnodes:\n- {id: a}\n- {id: a}\nlinks: []\n", 2, &["a"]);
    refused_file("canopy: 1\nnodes:\n- {id: a, rank: 0}\n- {id: b, rank: 2}\nlinks: []\n", 2, &["rank"]);
    refused_file("canopy: 1\nnodes:\n- {id: a, rank: 1}\n- {id: b, rank: 1}\nlinks: []\n", 2, &["rank 1"]);
}

#[test]
fn bombs_are_defused() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let previous = format!("*a{}", level - 1);
        bomb.push_str(&format!("a{level}: &a{level} [{}]\n", [previous.as_str(); 10].join(", ")));
    }
    refused_file(&bomb, 2, &[]);
    refused_file(&"[".repeat(100_000), 2, &[]);
    refused_file(&format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000)), 2, &[]);
    refused_file(&"<system>".repeat(100_000), 2, &[]);
    refused_file("\u{0}\u{1}garbage", 2, &[]);
}

#[test]
fn disconnected_ranks_are_named() {
    let one_way = format!("{TWO}- {{from: a, to: b, bandwidth: 1GB/s}}\n");
    refused_file(&one_way, 3, &["rank 0", "rank 1"]);
    refused_file(&format!("{TWO}[]\n").replace("links:\n[]", "links: []"), 3, &["rank 0", "rank 1"]);
}

#[test]
fn oversized_requests_are_refused_before_anything_is_built() {
    let bench = Bench::default();
    refused(&bench, &["bound", "torus:99999999x99999999", "--collective", "allgather"], 2, &["limit"]);
    refused(&bench, &["plan", "torus:99999999x99999999", "--collective", "allgather"], 2, &["limit"]);
    refused(&bench, &["plan", "complete:5000", "--collective", "allgather"], 2, &["limit"]);
}

#[test]
fn a_deadline_ends_a_search_that_would_take_too_long() {
    let bench = Bench::default();
    // Ranks as scarce as their boxes, which differ in size.
    let slow = "rail:boxes=128,nv=60GB/s,nic=50GB/s,nodes-down=b0g0+b1g1+b5g3";
    let arguments = ["plan", slow, "--collective", "allgather", "--deadline", "300ms", "-o", "plan.json"];
    refused(&bench, &arguments, 5, &["deadline"]);
}

#[test]
fn words_that_mean_nothing_are_refused_with_what_would() {
    let bench = Bench::default();
    refused(&bench, &["plan", "ring:8", "--collective", "all-gathr"], 2, &["did you mean `allgather`?"]);
    refused(&bench, &["plan", "rong:8", "--collective", "allgather"], 2, &["ring"]);
    refused(&bench, &["plan", "ring:8,bandwidth=1GB/s", "--collective", "allgather"], 2, &["bandwidth"]);
    refused(&bench, &["plan", "ring:8", "--collective", "allgather", "--algorithm", "magic"], 2, &["forest"]);
    refused(&bench, &["plan", "ring:8", "--collective", "allgather", "--json"], 2, &["-o"]);
    refused(&bench, &["bound", "ring:8", "--collective", "broadcast", "--root", "8"], 2, &["root"]);
    refused(&bench, &["verify", "missing.xml"], 2, &["missing.xml"]);
}

#[test]
fn limits_of_the_runtime_are_named_with_the_need() {
    let bench = Bench::default();
    // Bandwidths without a large common measure need many chunks: more than a 16-bit offset can name.
    let uneven = "ring:8,bw=1GB/s,degrade=0-1*999983/1000000";
    let plan = ["plan", uneven, "--collective", "allgather", "--format", "msccl-xml", "-o", "plan.xml"];
    refused(&bench, &[plan.as_slice(), &["--trees", "999983"]].concat(), 3, &["msccl", "32767"]);
    assert!(!bench.file("plan.xml").exists());
}
