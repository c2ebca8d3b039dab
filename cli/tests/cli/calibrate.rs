//! `canopy calibrate`, and `--calibration` of the other commands.

use serde_json::Value;

use crate::support::{Workspace, check_members};

/// What runs hide.
const HIDDEN: &str = "calibration: 1\nmessage: 3us\ninside: {rate: 0.87}\nacross: {rate: 0.93, latency: 9us}\n";

/// Noise of 3 %, the same for the same seed.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        let even = |state: &mut u64| {
            *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (*state >> 11) as f64 / (1_u64 << 53) as f64
        };
        1.0 + 0.03 * ((0..12).map(|_| even(&mut self.0)).sum::<f64>() - 6.0)
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
    let members = ["canopy", "command", "topology", "times", "messages", "parameters", "off", "slow_links", "files"];
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

/// One collective across boxes says nothing of what is inside, nor what a message takes beside what leaving a box adds; large
/// messages alone say nothing of latencies.
#[test]
fn what_runs_leave_open_is_refused_by_name() {
    let workspace = Workspace::new();
    workspace.write("hidden.yaml", HIDDEN);
    let two = "dgx-a100:boxes=2";
    measured(&workspace, two, "allgather", "gather.csv", &mut Noise(5));
    workspace.refused(
        &format!("calibrate {two} gather.csv"),
        2,
        &["the runs do not determine", "across-latency", "--keep"],
    );
    let table = String::from_utf8(workspace.read("gather.csv")).unwrap();
    let large =
        |line: &&str| line.starts_with("collective") || line.split(',').nth(2).is_none_or(|size| size.len() > 7);
    let rows: Vec<&str> = table.lines().filter(large).collect();
    workspace.write("large.csv", rows.join("\n"));
    workspace.refused(
        &format!("calibrate {two} large.csv --keep inside-rate"),
        2,
        &["the runs do not determine", "message"],
    );
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
