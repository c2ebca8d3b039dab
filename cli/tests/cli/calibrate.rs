//! `canopy tools calibrate`, and `--calibration` of the other commands.

mod draws;

use serde_json::Value;

use crate::support::{Workspace, check_members};

/// What runs hide.
const HIDDEN: &str = "calibration: 1\nmessage: 3us\ninside: {rate: 0.87}\nacross: {rate: 0.93, latency: 9us}\n";

/// Noise of 3 %, the same for the same seed.
struct Noise(u64);

impl Noise {
    /// Evenly from 0 to 1.
    fn even(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn next(&mut self) -> f64 {
        1.0 + 0.03 * ((0..12).map(|_| self.even()).sum::<f64>() - 6.0)
    }
}

/// Times of a plan for the described network on the hidden one, as a table. `how` is a collective, maybe with an algorithm.
fn measured(workspace: &Workspace, network: &str, how: &str, file: &str, noise: &mut Noise) {
    let collective = how.split(' ').next().unwrap();
    workspace.text(&format!("plan {network} --collective {how} -o plan.json"));
    let found = workspace
        .json(&format!("simulate plan.json --topology {network} --calibration hidden.yaml --sizes 1KiB..1GiB --json"));
    assert_eq!(found["model"]["alpha_ns"], 3000, "that of the calibration");
    let algorithm = found["algorithm"].as_str().unwrap();
    let row = |size: &Value| {
        let micros = size["time_ps"].as_f64().unwrap() / 1e6 * noise.next();
        format!("{collective},{algorithm},{},{micros:.3}\n", size["size_bytes"])
    };
    let rows: String = found["sizes"].as_array().unwrap().iter().map(row).collect();
    workspace.write(file, format!("collective,algorithm,bytes,microseconds\n{rows}"));
}

/// Two boxes and one of them, two collectives, 3 % of noise: all four parameters within 5 %.
#[test]
fn hidden_latencies_and_rates_are_found() {
    let workspace = Workspace::new();
    workspace.write("hidden.yaml", HIDDEN);
    let mut noise = Noise(11);
    let two = "dgx-a100:boxes=2";
    for (network, collective, file) in [
        (two, "allgather", "two-gather.csv"),
        (two, "allreduce --algorithm ring", "two-reduce.csv"),
        ("dgx-a100", "allgather", "one-gather.csv"),
        ("dgx-a100", "allreduce", "one-reduce.csv"),
    ] {
        measured(&workspace, network, collective, file, &mut noise);
    }
    let found = workspace.json(&format!(
        "calibrate {two} two-gather.csv two-reduce.csv one-gather.csv@dgx-a100 one-reduce.csv@dgx-a100 -o found.yaml --json"
    ));
    let members = [
        "canopy",
        "command",
        "topology",
        "times",
        "messages",
        "parameters",
        "open",
        "runs",
        "misfits",
        "off",
        "slow_links",
        "files",
    ];
    check_members(&found, &members);
    let truth = [("message", 3_000.0), ("across-latency", 9_000.0), ("inside-rate", 0.87), ("across-rate", 0.93)];
    for (one, (name, truth)) in found["parameters"].as_array().unwrap().iter().zip(truth) {
        let measured = one["measured"].as_f64().unwrap();
        assert!(one["name"] == name && (measured / truth - 1.0).abs() < 0.05, "{one}");
    }
    assert!(found["off"]["measured"].as_f64().unwrap() < 0.04, "{found}");
    // What was found is for every command: the key of a plan depends on it, and so does its rate.
    let key = |more: &str| workspace.json(&format!("plan {two} --collective allgather -o p.json --json {more}"));
    let (described, measured) = (key(""), key("--calibration found.yaml"));
    assert_ne!(described["plan"], measured["plan"]);
    let part = measured["algbw_GBps"].as_f64().unwrap() / described["algbw_GBps"].as_f64().unwrap();
    assert!((0.85..0.95).contains(&part), "{part}");
    let text = workspace.text(&format!(
        "calibrate {two} two-gather.csv two-reduce.csv one-gather.csv@dgx-a100 one-reduce.csv@dgx-a100"
    ));
    assert!(text.contains("PARAMETER") && text.contains("off        "), "{text}");
}

/// One collective across boxes says nothing of what is inside, nor what a message takes beside what leaving a box adds; small
/// messages alone say nothing of rates. The rest is found, and what is open is neither written nor hidden.
#[test]
fn what_runs_leave_open_is_named_and_the_rest_is_found() {
    let workspace = Workspace::new();
    let two = "dgx-a100:boxes=2";
    let text = nccl_tests("all_reduce", 16, 66.0, 191.3, &mut || 1.0);
    workspace.write("two.txt", &text);
    let run = workspace.run(&format!("calibrate {two} two.txt -o found.yaml --json"));
    assert_eq!(run.status, Some(0), "{run:?}");
    assert!(run.stderr.contains("warning: inside-rate is left as described"), "{}", run.stderr);
    let found = run.object();
    let names = |list: &str| -> Vec<String> {
        found[list].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("parameters"), ["across-rate"], "{found}");
    assert_eq!(names("open"), ["message", "across-latency", "inside-rate"], "{found}");
    let written = String::from_utf8(workspace.read("found.yaml")).unwrap();
    assert!(!written.contains("\ninside:") && written.contains("# as described: inside-rate"), "{written}");
    let is_small = |line: &&str| line.starts_with('#') || line.split(' ').next().is_some_and(|size| size.len() < 5);
    let small: Vec<&str> = text.lines().filter(is_small).collect();
    workspace.write("small.txt", small.join("\n"));
    let run = format!("calibrate {two} small.txt --keep message,across-latency -o none.yaml");
    workspace.refused(&run, 2, &["the runs do not determine", "inside-rate", "--keep"]);
    assert!(!workspace.path("none.yaml").exists());
}

/// Output of nccl-tests with times by a latency and a bus bandwidth in GB/s, in about the digits that it prints.
fn nccl_tests(collective: &str, ranks: u32, once_us: f64, busbw: f64, noise: &mut impl FnMut() -> f64) -> String {
    let n = f64::from(ranks);
    let factor = if collective == "all_reduce" { 2.0 * (n - 1.0) / n } else { (n - 1.0) / n };
    let mut text = format!("# Collective test starting: {collective}_perf\n# Using devices\n");
    (0..ranks).for_each(|rank| text += &format!("#  Rank {rank} Group 0 Pid 1 on n device 0 [0x10] NVIDIA\n"));
    text += "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n";
    for bytes in (10..=33).map(|power| 1_u64 << power) {
        let micros = (once_us + bytes as f64 / (busbw / factor * 1e3)) * noise();
        text += &format!("{bytes} {} float sum -1 {micros:.2} 1.0 1.0 0 {micros:.2} 1.0 1.0 0\n", bytes / 4);
    }
    text
}

fn rate(found: &Value, name: &str) -> Option<f64> {
    let list = found["parameters"].as_array().unwrap();
    list.iter().find(|one| one["name"] == name).and_then(|one| one["measured"].as_f64())
}

/// Two DGX A100 and one, as published: 191.3 GB/s of the bus across (8 NICs of 25 GB/s), 238.2 inside (300 of a GPU's NVLinks).
#[test]
fn runs_of_nccl_take_all_nics() {
    let workspace = Workspace::new();
    let mut none = || 1.0;
    workspace.write("two.txt", nccl_tests("all_reduce", 16, 66.0, 191.3, &mut none));
    workspace.write("one.txt", nccl_tests("all_reduce", 8, 21.0, 238.2, &mut none));
    let two = "dgx-a100:boxes=2";
    let found = workspace.json(&format!("calibrate {two} two.txt one.txt@dgx-a100 -o found.yaml --json"));
    let [across, inside] = ["across-rate", "inside-rate"].map(|name| rate(&found, name).unwrap());
    assert!((across - 0.9565).abs() < 0.02 && (inside - 0.794).abs() < 0.02, "{found}");
    let bound = |more: &str| {
        workspace.json(&format!("bound {two} -c allreduce --json {more}"))["bound"]["algbw_GBps"].as_f64().unwrap()
    };
    let [described, measured] = [bound(""), bound("--calibration found.yaml")];
    assert!(measured < described && (130.0..150.0).contains(&measured), "{described} {measured}");
    // Runs of one machine say nothing of what is between machines.
    workspace.json("calibrate dgx-a100 one.txt -o one.yaml --json");
    let text = String::from_utf8(workspace.read("one.yaml")).unwrap();
    assert!(text.contains("inside:") && !text.contains("across"), "{text}");
    // All-to-all is sent directly: half of it leaves the box, over 8 NICs of 50 GB/s.
    workspace.write("all.txt", nccl_tests("alltoall", 16, 33.0, 45.0, &mut none));
    workspace.write("gather.txt", nccl_tests("all_gather", 8, 8.4, 350.0, &mut none));
    let found = workspace.json("calibrate dgx-h100:boxes=2 all.txt gather.txt@dgx-h100 -o all.yaml --json");
    assert!((rate(&found, "across-rate").unwrap() - 0.48).abs() < 0.01, "{found}");
    assert!((rate(&found, "inside-rate").unwrap() - 350.0 / 450.0).abs() < 0.02, "{found}");
}

/// What a run of rings with simple messages takes, by hand: hops, and passes over the links of a GPU and of a box.
struct Hidden {
    message_us: f64,
    across_us: f64,
    inside: f64,
    across: f64,
}

impl Hidden {
    /// `gpus` of each of `boxes` boxes with `nv` GB/s inside and a NIC of `nic` GB/s for each.
    fn table(
        &self,
        collective: &str,
        boxes: u32,
        [gpus, nv, nic]: [f64; 3],
        noise: &mut impl FnMut() -> f64,
    ) -> String {
        let (n, boxes) = (f64::from(boxes) * gpus, f64::from(boxes));
        let turns = if collective == "all_reduce" { 2.0 } else { 1.0 };
        let passes = turns * (n - 1.0) / n;
        let (leaving, staying) = if boxes > 1.0 { (passes, passes * (1.0 - 1.0 / gpus)) } else { (0.0, passes) };
        let seconds = (staying / (nv * self.inside)).max(leaving / (gpus * nic * self.across)) / 1e3;
        let once = turns * ((n - 1.0) * self.message_us + (boxes - 1.0) * self.across_us);
        let mut text = format!("# Collective test starting: {collective}_perf\n");
        text += "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n";
        for bytes in (10..=33).map(|power| 1_u64 << power) {
            let micros = (once + bytes as f64 * seconds) * noise();
            text += &format!("{bytes} 1 float sum -1 {micros:.3} 1.0 1.0 0 {micros:.3} 1.0 1.0 0\n");
        }
        text
    }
}

/// Rates and latencies drawn at random, 3 % of noise, 2 to 4 boxes and one: within 5 % in at least 95 of 100, and within two stated
/// errors in at least 90. `CANOPY_CASES=100` draws more.
#[test]
fn rates_drawn_at_random_are_found_in_runs_of_nccl() {
    let cases: u32 = std::env::var("CANOPY_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(6).min(1_000);
    let workspace = Workspace::new();
    let mut noise = Noise(29);
    let (mut stated, mut near, mut held) = (0_u32, 0_u32, 0_u32);
    for case in 0..cases {
        let mut draw = |least: f64, most: f64| least + (most - least) * (noise.even());
        let hidden = Hidden {
            message_us: draw(0.5, 4.0),
            across_us: draw(2.0, 15.0),
            inside: draw(0.55, 1.0),
            across: draw(0.55, 1.0),
        };
        let (family, rates) = [("dgx-a100", [8.0, 300.0, 25.0]), ("dgx-h100", [8.0, 450.0, 50.0])][case as usize % 2];
        let boxes = 2 + case % 3;
        let more = ["all_reduce", "reduce_scatter"][case as usize / 2 % 2];
        for (file, collective, boxes) in
            [("a.txt", "all_gather", boxes), ("b.txt", more, boxes), ("c.txt", "all_gather", 1), ("d.txt", more, 1)]
        {
            workspace.write(file, hidden.table(collective, boxes, rates, &mut || noise.next()));
        }
        let found = workspace
            .json(&format!("calibrate {family}:boxes={boxes} a.txt b.txt c.txt@{family} d.txt@{family} --json"));
        let truths = [
            ("message", hidden.message_us * 1e3, (hidden.message_us + hidden.across_us) * 1e3),
            ("across-latency", hidden.across_us * 1e3, (hidden.message_us + hidden.across_us) * 1e3),
            ("inside-rate", hidden.inside, hidden.inside),
            ("across-rate", hidden.across, hidden.across),
        ];
        for (name, truth, scale) in truths {
            let Some(one) = found["parameters"].as_array().unwrap().iter().find(|one| one["name"] == name) else {
                continue;
            };
            let off = (one["measured"].as_f64().unwrap() - truth).abs();
            stated += 1;
            near += u32::from(off <= 0.05 * scale);
            held += u32::from(off <= 2.0 * one["error"].as_f64().unwrap());
        }
    }
    eprintln!("{stated} of {} values are stated, {near} of them near, {held} within two errors", 4 * cases);
    assert!(stated * 10 >= 28 * cases, "{stated} of {}", 4 * cases);
    assert!(near * 100 >= stated * 95 && held * 100 >= stated * 90, "{near} and {held} of {stated}");
}

/// Rates above those of the description are refused with the runs that say so, and nothing is written.
#[test]
fn no_link_is_faster_than_described() {
    let workspace = Workspace::new();
    let rows: String =
        (20..=33).map(|power| 1_u64 << power).map(|b| format!("{b},{:.1}\n", 66.0 + b as f64 / 192e3)).collect();
    workspace.write("two.csv", format!("bytes,microseconds\n{rows}"));
    let run = "calibrate dgx-h100:boxes=2 two.csv=allreduce/ring --keep message,across-latency,inside-rate --deadline 10m -o none.yaml";
    workspace.refused(run, 2, &["times as fast as described", "two.csv", "FILE=COLLECTIVE/nccl", "state their rate"]);
    assert!(!workspace.path("none.yaml").exists());
    let found = workspace.json(&run.replace("/ring", "/nccl-ring").replace("none.yaml", "found.yaml --json"));
    assert!((rate(&found, "across-rate").unwrap() - 0.9).abs() < 0.01, "{found}");
}

/// A cable of a torus at two thirds of its rate, found from messages between neighbours; plans then go around it.
#[test]
fn a_failing_cable_is_found() {
    let workspace = Workspace::new();
    workspace.text("topology generate torus:8x8 -o torus.yaml");
    let mut noise = Noise(3);
    let mut rows = "from,to,bytes,microseconds\n".to_owned();
    for (row, column) in (0..8).flat_map(|row| (0..8).map(move |column| (row, column))) {
        let rank = |row: usize, column: usize| format!("{}{}", row % 8, column % 8);
        let from = rank(row, column);
        for to in [rank(row + 1, column), rank(row + 7, column), rank(row, column + 1), rank(row, column + 7)] {
            let factor = if (from.as_str(), to.as_str()) == ("12", "13") { 1.5 } else { 1.0 };
            for bytes in [1_u32 << 20, 1 << 24] {
                let micros = (5.0 + f64::from(bytes) / 25e3 * factor) * noise.next();
                rows += &format!("{from},{to},{bytes},{micros:.3}\n");
            }
        }
    }
    workspace.write("pairs.csv", rows);
    let found = workspace.json("calibrate torus.yaml pairs.csv -o found.yaml --json");
    let links = found["slow_links"].as_array().unwrap();
    assert_eq!(links.len(), 1, "{found}");
    assert!((links[0]["times_as_long"].as_f64().unwrap() - 1.5).abs() < 0.1, "{found}");
    let text = workspace.text("bound torus.yaml --collective allgather --calibration found.yaml");
    assert!(text.contains("bound"), "{text}");
}

#[test]
fn what_cannot_be_used_is_refused() {
    let workspace = Workspace::new();
    workspace.write("runs.csv", "bytes,microseconds\n1024,3\n");
    workspace.write("osu.txt", "# OSU MPI Allreduce Latency Test v7.4\n# Size Avg Latency(us)\n8 2.5\n");
    workspace.write("bad.yaml", "calibration: 1\nmesage: 3us\n");
    for (command, said) in [
        ("calibrate ring:4 runs.csv", "of which collective"),
        ("calibrate ring:4 runs.csv=allgather", "too few for 2 parameters"),
        ("calibrate ring:4 osu.txt", "by which algorithm"),
        ("calibrate ring:4 runs.csv=allgather/rung", "unknown algorithm"),
        ("calibrate ring:4 none.csv", "no such file"),
        ("calibrate ring:4 bad.yaml", "unknown kind of runs"),
        ("calibrate ring:4 runs.csv --keep speed", "unknown parameter `speed`"),
        ("bound ring:4 --collective allgather --calibration bad.yaml", "mesage"),
        ("bound topologies/x --collective allgather --calibration good.yaml", "kept by a server"),
    ] {
        workspace.write("good.yaml", "calibration: 1\n");
        workspace.refused(command, 2, &[said]);
    }
}

/// Zhao 2026 §A.1.2 fits allreduces of rings of several sizes, of `2(N − 1)` and `2⌊N/2⌋` steps, and finds 13.33 µs a step
/// and 21.60 µs a call. One of them alone does not tell the two apart.
#[test]
fn what_a_call_takes_once_is_found_from_runs_of_different_steps() {
    let workspace = Workspace::new();
    let runs = [("ring", 3), ("ring", 8), ("bfb", 8), ("ring", 16), ("bfb", 16)];
    let file = |(algorithm, ranks): (&str, u32)| {
        let run = workspace.text(&format!(
            "simulate ring:{ranks} -c allreduce --algorithm {algorithm} --alpha 13.33us --launch 21.6us \
             --sizes 1KiB..1MiB --json"
        ));
        workspace.write(&format!("{algorithm}{ranks}.json"), run);
        format!("{algorithm}{ranks}.json@ring:{ranks}")
    };
    let files = runs.map(file).join(" ");
    let all = workspace.json(&format!("calibrate ring:8 {files} --keep across-rate --launch --json"));
    let near = |value: &Value, truth: f64| (value.as_f64().unwrap() / truth - 1.0).abs() < 0.005;
    assert!(near(&all["launch_ns"], 21_600.0), "{all}");
    assert!(near(&all["parameters"][0]["measured"], 13_330.0), "{all}");
    let one = workspace.json("calibrate ring:8 ring8.json --keep across-rate --launch --json");
    assert!(one["launch_ns"].is_null(), "{one}");
    let open: Vec<&str> = one["open"].as_array().unwrap().iter().filter_map(|open| open["name"].as_str()).collect();
    assert_eq!(open, ["launch"], "{one}");
}
