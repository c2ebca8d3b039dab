//! Reports of one network agree: no rival is above "no schedule is faster", a report has one verdict against the best of all that
//! is known, `plan`, `bound` and `explain` state one plan and one bound, and two ways to a tuner's table write one table.
//!
//! `CANOPY_CASES=200 cargo test --workspace --test cli -- one_truth` asks about more random networks.

use serde_json::Value;

use crate::support::{Numbers, Workspace};

/// Random networks, unless the environment says otherwise.
const CASES: u64 = 15;

/// Networks that README and documents name, with collectives.
const NAMED: [(&str, &str); 14] = [
    ("dgx-h100", "allreduce"),
    ("dgx-h100:nvls=false", "allreduce"),
    ("dgx-h100:boxes=2", "allreduce"),
    ("dgx-h100:boxes=2,nvls=true", "allreduce"),
    ("dgx-h100:boxes=4", "allgather"),
    ("dgx-b200:boxes=2", "allreduce"),
    ("gb200-nvl72:racks=2,gpus=8", "allreduce"),
    ("dgx-a100:boxes=2", "allgather"),
    ("dgx-a100:boxes=2,down=b0g3-ib", "allreduce"),
    ("mi250:boxes=2", "allgather"),
    ("mi300x:boxes=2", "allreduce"),
    ("trn2", "allgather"),
    ("torus:4x4,down=00-01", "allreduce"),
    ("mesh:4x4", "allreduce"),
];

impl Numbers {
    fn of<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[usize::try_from(self.below(list.len() as u64)).unwrap()]
    }
}

/// A network of any maker, with other rates and with faults, and a collective.
fn random(seed: u64) -> (String, &'static str) {
    let mut numbers = Numbers(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1);
    let family = numbers.of(&[
        "dgx-h100", "dgx-h100", "dgx-h200", "dgx-b200", "dgx-b300", "dgx-a100", "hgx", "mi300x", "mi250", "rail",
        "torus", "mesh",
    ]);
    let collective = numbers.of(&["allreduce", "allreduce", "allreduce", "allgather", "reduce-scatter", "broadcast"]);
    let boxes = 1 + numbers.below(3);
    let mut network = match family {
        "torus" => format!("torus:{}x{}", 3 + numbers.below(2), 3 + numbers.below(2)),
        "mesh" => format!("mesh:{}x{}", 2 + numbers.below(3), 2 + numbers.below(2)),
        "rail" => format!("rail:boxes={},gpus={}", 1 + boxes, 2 + 2 * numbers.below(3)),
        "mi250" => format!("mi250:boxes={boxes}"),
        _ => format!("{family}:boxes={boxes},gpus={}", 2 * (1 + numbers.below(4))),
    };
    let is_switched = family.contains("gx");
    if is_switched && numbers.below(4) == 0 {
        network += numbers.of(&[",nvls=true", ",nvls=false"]);
    }
    if is_switched && numbers.below(3) == 0 {
        network += numbers.of(&[",nic=25GB/s", ",nic=45GB/s", ",nic=400GB/s", ",nv=150GB/s", ",nv=900GB/s"]);
    }
    if numbers.below(4) == 0 && (is_switched || family == "rail") {
        network += numbers.of(&[",degrade=b0g0-b0nv*1/2", ",nodes-down=b0g1"]);
    }
    (network, collective)
}

fn rate(text: &Value) -> f64 {
    let (numerator, denominator) = text.as_str().unwrap().split_once('/').unwrap_or((text.as_str().unwrap(), "1"));
    numerator.parse::<f64>().unwrap() / denominator.parse::<f64>().unwrap()
}

/// Everything that the commands say of one network agrees.
fn check(workspace: &Workspace, network: &str, collective: &str) {
    let arguments = format!("explain {network} -c {collective} --sizes 1KiB..64MiB");
    let run = workspace.run(&format!("{arguments} --json"));
    if run.status == Some(3) {
        return;
    }
    assert_eq!(run.status, Some(0), "{arguments}: {run:?}");
    let report = run.object();
    let text = workspace.text(&arguments);
    let entries = report["compared"].as_array().unwrap();
    let algbw = |entry: &Value| rate(&entry["algbw"]);

    // No rival is above a bound that is for all schedules.
    let bound = rate(&report["bound"]["algbw"]);
    let with = report.get("with_in_network").map(|with| rate(&with["algbw"]));
    let most = with.unwrap_or(bound) * (1.0 + 1e-9);
    assert!(with.is_none_or(|with| with > bound), "{text}");
    assert!(entries.iter().all(|entry| algbw(entry) <= most), "{text}");
    assert_eq!(text.contains("no schedule is faster if switches only forward\n"), with.is_some(), "{text}");
    assert_eq!(text.contains("no schedule is faster\n"), with.is_none(), "{text}");

    // One verdict, against the best.
    assert_eq!(text.lines().filter(|line| line.starts_with("verdict")).count(), 1, "{text}");
    let verdict = &report["verdict"];
    let own = algbw(&entries[0]);
    let best = entries[1..].iter().map(algbw).fold(0.0, f64::max);
    if best > 0.0 {
        let times = rate(&verdict["times_as_fast"]);
        assert!((times - own / best).abs() < 1e-9 * times, "{text}");
        let best_name = verdict["best_other"].as_str().unwrap();
        let named = entries.iter().find(|entry| entry["name"] == best_name).unwrap();
        assert!(algbw(named) >= best, "{text}");
        let is_faster_somewhere = (0..report["compared"][0]["times"].as_array().unwrap().len()).any(|position| {
            let time = |entry: &Value| entry["times"][position]["time_ps"].as_f64();
            let others = entries[1..].iter().filter_map(time).fold(f64::INFINITY, f64::min);
            time(&entries[0]).is_some_and(|own| own * 1.05 <= others * (1.0 + 1e-9))
        });
        let is_worth_it = verdict["worth_it"] == true;
        assert!(!is_worth_it || times >= 1.05 - 1e-9 || is_faster_somewhere, "{text}");
        assert!(is_worth_it || times < 1.05, "{text}");
    }

    // The library is one of those compared, and its last row is its rate.
    let stock = &report["stock"];
    if let Some(call) = stock["calls"].as_array().and_then(|calls| calls.last()) {
        let library = entries.iter().find(|entry| entry["name"] == stock["library"]).unwrap();
        let reached = call["size_bytes"].as_f64().unwrap() / call["time_ps"].as_f64().unwrap() * 1e12;
        assert!((reached / algbw(library) - 1.0).abs() < 1e-9, "{text}");
        let is_of_amd = network.starts_with("mi");
        assert_eq!(stock["library"].as_str().unwrap().starts_with("RCCL"), is_of_amd, "{text}");
        let times = call["times_as_fast"].as_f64().unwrap();
        assert!(times >= 1.0 - 1e-3 || rate(&verdict["times_as_fast"]) < 1.0, "{text}");
    }

    // One plan and one bound.
    let plan = workspace.json(&format!("plan {network} -c {collective} -o plan.json --json"));
    let stated = workspace.json(&format!("bound {network} -c {collective} --json"));
    assert_eq!((&plan["algbw"], &plan["bound"]), (&report["achieved"], &report["bound"]["algbw"]), "{network}");
    assert_eq!(stated["bound"]["algbw"], report["bound"]["algbw"], "{network}");
    for other in [&plan, &stated] {
        assert_eq!(other.get("with_in_network"), report.get("with_in_network"), "{network}");
    }
    check_advice(workspace, network, collective, stock);
}

/// `advise` and `plan --profile nccl` write one table for the same communicator.
fn check_advice(workspace: &Workspace, network: &str, collective: &str, stock: &Value) {
    let Some(seen) = stock.get("seen") else { return };
    let ranks = seen["machines"].as_u64().unwrap() * seen["gpus"].as_u64().unwrap();
    let kind = if stock["library"].as_str().unwrap().starts_with("RCCL") { "rccl" } else { "nccl-csv" };
    let advised = workspace.run(&format!("advise {network} --to {kind} -c {collective} --ranks {ranks} -o -"));
    if advised.status == Some(0) {
        let plan = format!("plan {network} -c {collective} --sizes 1KiB..1GiB --profile nccl -o tuner --json");
        workspace.json(&plan);
        let table = String::from_utf8(workspace.read("tuner/tuner.csv")).unwrap();
        assert_eq!(advised.stdout, table, "{network}");
        std::fs::remove_dir_all(workspace.path("tuner")).unwrap();
    }
    if kind == "rccl" {
        workspace.refused(&format!("advise {network} --to nccl-csv"), 2, &["GPUs of AMD", "--to rccl"]);
    }
}

#[test]
fn reports_of_named_networks_agree() {
    let workspace = Workspace::new();
    for (network, collective) in NAMED {
        check(&workspace, network, collective);
    }
}

#[test]
fn reports_of_random_networks_agree() {
    let cases = std::env::var("CANOPY_CASES").ok().map_or(CASES, |text| text.parse().unwrap());
    let workspace = Workspace::new();
    for seed in 0..cases {
        let (network, collective) = random(seed);
        println!("{seed}: {network} {collective}");
        check(&workspace, &network, collective);
    }
}

/// Both bounds of one DGX H100, and the one of a machine whose switches are said to forward only.
#[test]
fn machines_from_nvlink_4_on_state_both_bounds() {
    let workspace = Workspace::new();
    for (network, plain, with) in [
        ("dgx-h100", "1800000000000/7", Some(450.0)),
        ("dgx-h100:boxes=2", "800000000000/3", Some(400.0)),
        ("dgx-b200", "3600000000000/7", Some(900.0)),
        ("dgx-h100:nvls=false", "1800000000000/7", None),
        ("dgx-a100", "1200000000000/7", None),
    ] {
        let bound = workspace.json(&format!("bound {network} -c allreduce --json"));
        let found = bound.get("with_in_network").map(|with| with["algbw_GBps"].as_f64().unwrap());
        assert_eq!((&bound["bound"]["algbw"], found), (&plain.into(), with), "{network}");
        let plan = workspace.run(&format!("plan {network} -c allreduce -o plan.json"));
        assert_eq!(plan.stderr.contains("proven optimal if switches only forward"), with.is_some(), "{}", plan.stderr);
        assert_eq!(plan.stderr.contains("with NVLS: "), with.is_some(), "{}", plan.stderr);
    }
    let gathered = workspace.json("bound dgx-h100:boxes=2 -c allgather --json");
    assert_eq!(gathered.get("with_in_network"), None);
    // One that is planned for states one rate and one bound first.
    let plan = workspace.run("plan dgx-h100:boxes=2,nvls=true -c allreduce -o plan.json").stderr;
    assert!(plan.contains("by forest: 400 GB/s, proven optimal with switches that replicate and add\n"), "{plan}");
    let text = workspace.text("explain dgx-h100:boxes=2,nvls=true -c allreduce --size 1MiB");
    assert!(text.contains("achieved   400 GB/s, the bound itself\n"), "{text}");
    assert!(text.contains("forwarded  257.143 GB/s where switches neither multicast nor add\n"), "{text}");
}

/// What README says of MI250 boxes with a dead GPU is what `explain` finds, against the best that is known; and two phases
/// reach what a plan in that form does.
#[test]
fn claims_of_the_readme_are_those_of_explain() {
    let workspace = Workspace::new();
    let report = workspace.json("explain torus:4x4,down=00-01 -c allreduce --size 1GiB --json");
    let of = |name: &str| {
        let entry = report["compared"].as_array().unwrap().iter().find(|entry| entry["name"] == name).unwrap();
        rate(&entry["algbw"])
    };
    let form = workspace.json("plan torus:4x4,down=00-01 -c allreduce --form two-phase -o plan.json --json");
    assert!((of("two phases") - rate(&form["algbw"])).abs() < 1.0);
    let told = workspace.text("bound torus:4x4,down=00-01 -c allreduce --explain");
    assert!(told.contains(&format!("two phases {}", form["algbw_GBps"])), "{told}");
    let damaged = workspace.json("explain mi250:boxes=2,nodes-down=b0g3 -c allreduce --size 1KiB --json");
    let times = rate(&damaged["verdict"]["times_as_fast"]);
    let readme = include_str!("../../../README.md").split_whitespace().collect::<Vec<_>>().join(" ");
    let claim = format!("is {times:.2} times as fast as the best other plan that `explain` knows");
    assert!(readme.contains(&claim), "README does not say `{claim}`");
}
