//! `canopy simulate --sweep`: which algorithm is fastest where, through the real program.

use serde_json::Value;

use crate::support::{Workspace, check_members, sha256};

const MEMBERS: [&str; 12] = [
    "canopy",
    "command",
    "topology",
    "collective",
    "model",
    "bound",
    "sizes",
    "algorithms",
    "refused",
    "ranges",
    "crossovers",
    "stock",
];

fn list<'a>(object: &'a Value, member: &str) -> &'a [Value] {
    object[member].as_array().map_or(&[], Vec::as_slice)
}

fn names<'a>(object: &'a Value, member: &str, name: &str) -> Vec<&'a str> {
    list(object, member).iter().filter_map(|one| one[name].as_str()).collect()
}

/// The time of an algorithm at a size, by the command for one plan.
fn time(workspace: &Workspace, made: &str, algorithm: &str, size: u64) -> u64 {
    let run = workspace.json(&format!("simulate {made} --algorithm {algorithm} --size {size} --json"));
    run["sizes"][0]["time_ps"].as_u64().unwrap()
}

/// All that the object promises: ranges without gaps, winners that are fastest at every size of the table, crossovers between
/// two sizes at most a hundredth apart, with one ahead on either side.
#[track_caller]
fn check_consistent(report: &Value) {
    let (sizes, algorithms) = (list(report, "sizes"), list(report, "algorithms"));
    let (ranges, crossovers) = (list(report, "ranges"), list(report, "crossovers"));
    assert_eq!(ranges.len(), crossovers.len() + 1, "{report}");
    assert_eq!((&ranges[0]["from_bytes"], &ranges[ranges.len() - 1]["to_bytes"]), (&sizes[0], &sizes[sizes.len() - 1]));
    for (range, crossover) in ranges.iter().skip(1).zip(crossovers) {
        assert_eq!(
            (&range["from_bytes"], &range["algorithm"]),
            (&crossover["high"]["size_bytes"], &crossover["after"])
        );
    }
    for pair in ranges.windows(2) {
        assert_eq!(pair[0]["to_bytes"].as_u64().unwrap() + 1, pair[1]["from_bytes"].as_u64().unwrap());
    }
    for (position, size) in sizes.iter().enumerate() {
        let size = size.as_u64().unwrap();
        let is_in = |range: &&Value| range["to_bytes"].as_u64().unwrap() >= size;
        let winner = &ranges.iter().find(is_in).unwrap()["algorithm"];
        let time = |one: &Value| one["times_ps"][position].as_u64().unwrap();
        let least = algorithms.iter().map(time).min().unwrap();
        // The first of equals.
        assert_eq!(&algorithms.iter().find(|one| time(one) == least).unwrap()["name"], winner, "{size}");
    }
    for crossover in crossovers {
        let (low, high) = (&crossover["low"], &crossover["high"]);
        let bytes = |side: &Value| side["size_bytes"].as_u64().unwrap();
        assert!(bytes(low) < bytes(high) && bytes(high) - bytes(low) <= (bytes(low) / 100).max(1), "{crossover}");
        let times = |side: &Value| (side["before_ps"].as_u64().unwrap(), side["after_ps"].as_u64().unwrap());
        assert!(times(low).0 <= times(low).1, "{crossover}");
        assert!(times(high).1 <= times(high).0, "{crossover}");
    }
}

/// Messages of the network's own algorithms, combined or not, are fastest where latencies count, trees of the best rate where bytes do, and
/// times are those of each plan simulated alone.
#[test]
fn kautz_networks_combine_small_messages() {
    let workspace = Workspace::new();
    let made = "kautz:d=3,n=2 --collective allreduce";
    let report = workspace.json(&format!("simulate {made} --sweep --sizes 1KiB..1GiB --json"));
    check_members(&report, &MEMBERS);
    check_consistent(&report);
    let winners = names(&report, "ranges", "algorithm");
    assert_eq!(winners.first(), Some(&"kautz-m"), "{report}");
    // What comes nearer to the bound is ahead in the end.
    let of_bound = |name: &str| {
        let found = list(&report, "algorithms").iter().find(|one| one["name"] == name);
        &found.unwrap()["of_bound"]
    };
    assert_eq!(of_bound("forest"), &Value::from(1.0));
    assert!(of_bound(winners.last().unwrap()).as_f64() > of_bound("kautz").as_f64(), "{winners:?}");
    // No grid, and told so in one line.
    assert_eq!(names(&report, "refused", "name"), ["dfc2", "dfc2-do"]);
    assert!(names(&report, "refused", "reason")[0].contains("needs a grid"), "{report}");
    for crossover in list(&report, "crossovers") {
        let (before, low) = (crossover["before"].as_str().unwrap(), &crossover["low"]);
        assert_eq!(low["before_ps"], time(&workspace, made, before, low["size_bytes"].as_u64().unwrap()));
    }
    // Every algorithm by itself, with other options.
    let how = "--alpha 2us --piece whole --sharing fifo --sync steps";
    let chosen = workspace.json(&format!("simulate {made} --sweep --algorithms ring,kautz --size 64KiB {how} --json"));
    assert_eq!(names(&chosen, "algorithms", "name"), ["ring", "kautz"]);
    for one in list(&chosen, "algorithms") {
        let name = one["name"].as_str().unwrap();
        assert_eq!(one["times_ps"][0], time(&workspace, &format!("{made} {how}"), name, 64 << 10), "{name}");
    }
    assert_eq!((&chosen["model"]["alpha_ns"], &chosen["model"]["sync"]), (&2000.into(), &"steps".into()));
}

/// Rows and columns at once for few bytes, many trees for more.
#[test]
fn grids_are_compared_and_drawn() {
    let workspace = Workspace::new();
    let command = "simulate dfc2:4x4 --collective broadcast --root 5 --sweep --sizes 1KiB..4MiB";
    let report = workspace.json(&format!("{command} --plot sweep.svg --json"));
    check_members(&report, &[&MEMBERS[..], &["root", "files"]].concat());
    check_consistent(&report);
    assert_eq!((&report["root"], names(&report, "ranges", "algorithm")[0]), (&5.into(), "dfc2"), "{report}");
    assert!(!list(&report, "crossovers").is_empty(), "{report}");
    assert_eq!(names(&report, "refused", "name"), ["kautz", "kautz-m"]);
    let file = &report["files"][0];
    assert_eq!((&file["format"], &file["path"]), (&"svg".into(), &"sweep.svg".into()));
    assert_eq!(file["sha256"], sha256(&workspace.path("sweep.svg")));
    let drawn = String::from_utf8(workspace.read("sweep.svg")).unwrap();
    let mut reader = quick_xml::Reader::from_str(&drawn);
    while reader.read_event().unwrap() != quick_xml::events::Event::Eof {}
    for name in names(&report, "algorithms", "name") {
        assert!(drawn.contains(&format!(">{name}<")), "{name} is missing from\n{drawn}");
    }
    for range in list(&report, "ranges").iter().skip(1) {
        assert!(drawn.contains(&format!(">{} from ", range["algorithm"].as_str().unwrap())), "{drawn}");
    }
    let text = workspace.run(command).stdout;
    let ranges = list(&report, "ranges");
    let first = ranges[0]["algorithm"].as_str().unwrap();
    for words in ["broadcast on 16 ranks, ", "FASTEST", "NEAREST", "no plan  kautz, kautz-m: ", &format!("{first} µs")]
    {
        assert!(text.contains(words), "`{words}` is missing from\n{text}");
    }
    // The same again, to the byte.
    assert_eq!(workspace.run(&format!("{command} --json")).stdout, workspace.run(&format!("{command} --json")).stdout);
}

/// What is refused for work has no time, and nobody is called the fastest where it might be.
#[test]
fn too_much_work_is_told_and_the_others_go_on() {
    let workspace = Workspace::new();
    let command = "simulate ring:8 --collective allgather --sweep --algorithms ring,direct --sizes 1KiB..64MiB";
    let report = workspace.json(&format!("{command} --piece 64KiB --work-max 3000 --json"));
    let untimed = list(&report, "algorithms").iter().filter(|one| one["untimed"].is_string());
    assert!(untimed.clone().count() > 0, "{report}");
    for one in untimed {
        assert!(list(one, "times_ps")[0].is_u64() && list(one, "times_ps").last().unwrap().is_null(), "{one}");
    }
    let text = workspace.run(&format!("{command} --piece 64KiB --work-max 3000")).stdout;
    assert!(text.contains("no time  ") && text.contains("units of work"), "{text}");
    workspace.refused(&format!("{command} --work-max 10"), 2, &["cannot simulate 1 KiB", "--work-max"]);
}

#[test]
fn names_and_networks_are_refused_with_a_way_out() {
    let workspace = Workspace::new();
    let sweep = "simulate ring:5 --collective allgather --sweep";
    workspace.refused(&format!("{sweep} --algorithms ring,direct,ring"), 2, &["names ring twice", "name each once"]);
    let unknown = workspace.run(&format!("{sweep} --algorithms ring,rong"));
    assert_eq!(unknown.status, Some(2));
    assert!(unknown.stderr.contains("unknown algorithm `rong`"), "{}", unknown.stderr);
    // Nobody has a plan: the first says why.
    workspace.refused(&format!("{sweep} --algorithms flow,binomial,sssp"), 2, &["flow does not plan allgather"]);
    workspace.refused("simulate nonsense --collective allgather --sweep", 2, &["nonsense"]);
    for wrong in ["simulate ring:5 --sweep", "simulate ring:5 --collective allgather --algorithms ring"] {
        assert_eq!(workspace.run(wrong).status, Some(2), "{wrong}");
    }
    for other in ["--algorithm ring", "--topology ring:6", "--links", "--critical-path"] {
        assert_eq!(workspace.run(&format!("{sweep} {other}")).status, Some(2), "{other}");
    }
    // One size is a sweep, too.
    let one = workspace.json(&format!("{sweep} --size 1MiB --json"));
    assert_eq!((list(&one, "ranges").len(), list(&one, "crossovers").len()), (1, 0));
}

/// What stock NCCL takes stands beside the plan that is fastest with its latencies, where boxes are known.
#[test]
fn stock_nccl_is_beside_the_best_plan() {
    let workspace = Workspace::new();
    let sweep = "simulate dgx-h100:boxes=4 --collective allreduce --sweep --algorithms forest,ring,recursive-doubling";
    let report = workspace.json(&format!("{sweep} --sizes 64KiB..64MiB --nccl 2.27 --json"));
    assert_eq!(report["stock"]["library"], "NCCL 2.27");
    let calls = list(&report["stock"], "calls");
    assert_eq!(calls.len(), 7, "each size, and one of which latencies are no part");
    let last = calls.last().unwrap();
    assert_eq!(last["plan"], "forest");
    assert!(last["times_as_fast"].as_f64().unwrap() > 1.0, "{last}");
    let text = workspace.text(&format!("{sweep} --size 64KiB"));
    assert!(text.contains("stock      the best of these plans is"), "{text}");
    assert_eq!(workspace.run("simulate dgx-h100:boxes=4 --collective allreduce --nccl 2.27").status, Some(2));
}
