//! `canopy explain`: rates and times by hand, words for each kind of certificate, verdicts, refusals.

use serde_json::Value;

use crate::support::{Workspace, check_members};

const MEMBERS: [&str; 21] = [
    "canopy",
    "command",
    "topology",
    "collective",
    "algorithm",
    "bound",
    "certificate",
    "why",
    "achieved",
    "achieved_GBps",
    "optimality",
    "gap",
    "links",
    "traffic",
    "depth",
    "model",
    "baseline",
    "compared",
    "not_compared",
    "stock",
    "verdict",
];

fn entry<'a>(report: &'a Value, name: &str) -> &'a Value {
    let entries = report["compared"].as_array().unwrap();
    entries.iter().find(|entry| entry["name"] == name).unwrap_or_else(|| panic!("{name} is not in {report}"))
}

#[test]
fn rates_times_and_verdict_by_hand() {
    let workspace = Workspace::new();
    let report = workspace.json("explain dgx-a100:boxes=2 --collective allgather --json");
    check_members(&report, &MEMBERS);
    assert_eq!((&report["optimality"], &report["gap"]), (&"1/1".into(), &"0/1".into()));
    assert_eq!(report["links"]["unused"], 0);
    // A GPU's two ways in carry what fifteen others have: 16/15 · 325 GB/s. Eight rings enter a box over
    // eight NICs, which carry 15/16 of the data; direct sends the shares of eight GPUs over each NIC.
    for (name, algbw, depth) in [
        ("this plan", "1040000000000/3", 2),
        ("nccl rings", "640000000000/3", 15),
        ("direct", "50000000000", 1),
        // In steps: shares of 1, 2 and 4 ranks in the box at 300 GB/s, then of 8 over the NIC at 25.
        ("recursive-doubling", "4800000000000/103", 4),
    ] {
        let found = entry(&report, name);
        assert_eq!((&found["algbw"], &found["depth"]), (&algbw.into(), &depth.into()), "{name}");
    }
    // Each byte crosses two links on its way to each of fifteen others.
    assert_eq!(report["traffic"], "30/1");
    let verdict = &report["verdict"];
    assert_eq!((&verdict["worth_it"], &verdict["best_other"]), (&true.into(), &"nccl rings".into()));
    assert_eq!(verdict["times_as_fast"], "13/8");
    assert_eq!(report["baseline"], serde_json::json!({"name": "nccl rings", "rings": 8}));
    let fastest: Vec<&Value> = verdict["fastest"].as_array().unwrap().iter().map(|turn| &turn["name"]).collect();
    assert_eq!(fastest, ["direct", "this plan"]);
    // The crossover is between two sizes at which the simulator agrees.
    let from = verdict["fastest"][1]["from_bytes"].as_u64().unwrap();
    for (size, is_faster) in [(from, true), (from - from / 32, false)] {
        let report = workspace.json(&format!("explain dgx-a100:boxes=2 -c allgather --size {size} --json"));
        let time = |name| entry(&report, name)["times"][0]["time_ps"].as_u64().unwrap();
        assert_eq!(time("this plan") < time("direct"), is_faster, "{size}: {report}");
    }
    assert_eq!(report["not_compared"][0]["name"], "binomial");
    assert_eq!(report["not_compared"][0]["reason"], "does not plan allgather");
}

#[test]
fn a_plan_from_a_file_is_explained_as_it_is_simulated() {
    let workspace = Workspace::new();
    workspace.write(
        "pair.yaml",
        "canopy: 1\nnodes: [{id: a}, {id: b}]\nlinks: [{from: a, to: b, bandwidth: 25GB/s, latency: 500ns, both: true}]\n",
    );
    workspace.json("plan pair.yaml --collective allgather -o plan.json --json");
    // Half of the data from each rank: α of 1 µs, 500 ns of latency, 40 ps for each byte.
    let report = workspace.json("explain plan.json --size 2000 --piece whole --json");
    assert_eq!(entry(&report, "this plan")["times"][0]["time_ps"], 1_500_000 + 1_000 * 40);
    assert_eq!(entry(&report, "this plan")["times"].as_array().unwrap().len(), 1);
    // On two ranks all plans are one.
    assert_eq!(report["verdict"]["worth_it"], false);
    assert_eq!(report["verdict"]["times_as_fast"], "1/1");
    let text = workspace.run("explain plan.json");
    assert_eq!(text.status, Some(0), "{text:?}");
    for words in [
        "because    the shares of b, 1/2 of the data, must leave over b -> a (25 GB/s)",
        "no gain: as fast as one ring for large messages",
        "baseline   one ring, not one for each NIC as NCCL has them across boxes: rank 0 has no box",
    ] {
        assert!(text.stdout.contains(words), "`{words}` is missing from\n{}", text.stdout);
    }
    assert_eq!(workspace.run("explain plan.json --json"), workspace.run("explain plan.json --json"));
    // The server's own plan of it says the same.
    let plan = workspace.json("plan pair.yaml --collective allgather -o plan.json --json");
    let kept = workspace.json(&format!("explain {} --json", plan["plan"].as_str().unwrap()));
    assert_eq!(kept, workspace.json("explain plan.json --json"));
    let other = workspace.json("plan ring:4 --collective allgather --format msccl-xml -o plan.xml --json");
    workspace.refused(&format!("explain {}", other["plan"].as_str().unwrap()), 2, &["no file of format", "JSON"]);
    workspace.refused("explain plan.xml", 2, &["is a file of a runtime", "canopy's JSON"]);
    workspace.refused("explain plans/00000000000000000000000000000000", 2, &["plans/00000000000000000000000000000000"]);
}

/// Of a schedule in steps it says how many they are, and whether they wait for each other.
#[test]
fn steps_and_their_pace_are_named() {
    let workspace = Workspace::new();
    for (network, pace, words) in [
        ("mesh:3x3", "barriers", ", each begun when the one before has ended"),
        ("dims:ring2+fc4+switch4,bw=200GB/s+100GB/s+50GB/s", "in-turn", ", in turn: each route carries"),
    ] {
        workspace.json(&format!("plan {network} --collective allgather --algorithm tacos -o plan.json --json"));
        let report = workspace.json("explain plan.json --json");
        assert_eq!(report["steps"]["pace"], pace, "{report}");
        let line = format!("steps      {}{words}", report["steps"]["count"]);
        let text = workspace.run("explain plan.json");
        assert!(text.stdout.contains(&line), "`{line}` is missing from\n{}", text.stdout);
    }
}

/// Cuts that a box or a root makes, partitions, lengths.
#[test]
fn every_kind_of_certificate_has_words() {
    let workspace = Workspace::new();
    for (arguments, words) in [
        ("dgx-a100:boxes=2 -c broadcast", "the whole message must reach the 8 ranks of box b1 over 8 links of 25 GB/s"),
        (
            "ring:4 -c reduce --root 1",
            "what 0 adds to the message must leave over 0 -> 1 (25 GB/s) and 0 -> 3 (25 GB/s)",
        ),
        ("ring:4 -c scatter", "3/4 of the data, must get there over 0 -> 1 (25 GB/s) and 0 -> 3 (25 GB/s)"),
        ("ring:4 -c gather", "3/4 of the data, must leave over 1 -> 0 (25 GB/s) and 3 -> 0 (25 GB/s)"),
        ("ring:4 -c reduce-scatter", "what 0 adds to the results of all others, 3/4 of the data, must leave over"),
        ("ring:4 -c allreduce", "because    the links out of each rank have 50 GB/s, those of 4 ranks 200 GB/s\n"),
        ("ring:4 -c allreduce", "           3 sums must come in and 3 results go out over them: 6 times the data\n"),
        (
            "mi250:boxes=2 -c allreduce",
            "the sets are b0g0 and b0g1, b0g2 and b0g3, b0g4 and b0g5, b0g6 and b0g7 and 12 more",
        ),
        (
            "dgx-a100:boxes=2 -c all-to-all",
            "by lengths given to 32 links, blocks between all pairs of ranks travel 1408",
        ),
    ] {
        let run = workspace.run(&format!("explain {arguments} --sizes 1KiB..4KiB"));
        assert_eq!(run.status, Some(0), "{arguments}\n{run:?}");
        assert!(run.stdout.contains(words), "{arguments}: `{words}` is missing from\n{}", run.stdout);
    }
}

/// NCCL has a ring for each NIC: of four DGX H100 boxes the optimum of an allreduce is 1.25 times theirs, 258.1 of 206.5 GB/s,
/// and not five times that of one ring.
#[test]
fn plans_across_boxes_are_compared_with_a_ring_for_each_nic() {
    let workspace = Workspace::new();
    for (collective, rate, of_bound) in
        [("allgather", "12800000000000/31", "4/5"), ("allreduce", "6400000000000/31", "4/5")]
    {
        let report =
            workspace.json(&format!("explain dgx-h100:boxes=4 -c {collective} --size 1GiB --piece whole --json"));
        let rings = entry(&report, "nccl rings");
        assert_eq!((&rings["algbw"], &rings["of_bound"]), (&rate.into(), &of_bound.into()), "{collective}");
        assert_eq!(report["verdict"]["times_as_fast"], "5/4");
        assert_eq!(report["verdict"]["worth_it"], true);
    }
    let text = workspace.run("explain dgx-h100:boxes=4 -c allgather --size 1GiB --piece whole").stdout;
    for words in [
        "baseline   nccl rings: 8 at the rates of their links, one for each NIC of a box",
        "1.250 times as fast as nccl rings for large messages",
    ] {
        assert!(text.contains(words), "`{words}` is missing from\n{text}");
    }
}

/// What is less than 5 % faster is no gain, whatever it is compared with.
#[test]
fn a_few_per_cent_are_no_gain() {
    let workspace = Workspace::new();
    // One GPU in each box: the ring is the optimum. Two: N/(N−1) of the NICs' rate against N/(N−2), the cut of a box.
    let report = workspace.json("explain rail:boxes=32,gpus=1,nv=450GB/s,nic=50GB/s -c allgather --size 1GiB --json");
    assert_eq!((&report["verdict"]["worth_it"], &report["verdict"]["times_as_fast"]), (&false.into(), &"1/1".into()));
    let arguments = "explain dgx-h100:boxes=24,gpus=2 -c allgather --size 1GiB --piece whole";
    let report = workspace.json(&format!("{arguments} --json"));
    assert_eq!((&report["verdict"]["worth_it"], &report["verdict"]["times_as_fast"]), (&false.into(), &"47/46".into()));
    let text = workspace.run(arguments).stdout;
    assert!(text.contains("verdict    no gain: 2.2 % over nccl rings for large messages"), "{text}");
}

#[test]
fn a_plan_that_is_slower_is_called_so() {
    let workspace = Workspace::new();
    workspace.json("plan dgx-a100:boxes=2 --collective allgather --algorithm direct -o direct.json --json");
    let report = workspace.json("explain direct.json --size 256MiB --json");
    assert_eq!(report["verdict"]["worth_it"], false);
    assert_eq!((&report["optimality"], &report["gap"]), (&"15/104".into(), &"89/104".into()));
    assert_eq!(report["verdict"]["times_as_fast"], "15/64");
    let text = workspace.run("explain direct.json --size 256MiB --alpha 1us");
    for words in [
        "15/104 of the bound, 85.58 % below it",
        "left out   direct is this plan itself",
        "not worth it",
        "fastest    nccl rings from",
    ] {
        assert!(text.stdout.contains(words), "`{words}` is missing from\n{}", text.stdout);
    }
    // Where messages are small it is the fastest, which is worth something.
    assert_eq!(workspace.json("explain direct.json --size 1KiB --json")["verdict"]["worth_it"], true);
    // Too much work for a time is said, not guessed.
    let short = workspace.json("explain direct.json --size 256MiB --work-max 1000 --alpha 1us --json");
    assert_eq!(entry(&short, "this plan")["times"][0]["time_ps"], Value::Null);
    assert_eq!(short["verdict"]["fastest"], Value::Array(Vec::new()));
    let text = workspace.run("explain direct.json --size 256MiB --work-max 1000 --alpha 1us").stdout;
    assert!(text.contains("not timed  this plan, nccl rings") && text.contains("--work-max allows, 1000"), "{text}");
}

/// Shares of 1, 2, 3 and 4 parts: by doubling, 3 and 2 hand their 7 to 1 and 0 after 3's 4 to 2; by Bruck, 3 hands over its 4, and
/// then 2 its own and 3's.
#[test]
fn plans_of_different_shares_are_compared_with_textbook_ones() {
    let workspace = Workspace::new();
    workspace.json("plan complete:4,bw=10GB/s -c allgather --shares 1,2,3,4 -o plan.json --json");
    let report = workspace.json("explain plan.json --size 10KiB --json");
    for name in ["recursive-doubling", "bruck"] {
        assert_eq!(entry(&report, name)["algbw"], "100000000000/11", "{name}");
        assert!(entry(&report, name)["times"][0]["time_ps"].is_u64());
    }
    // Rank 3's share leaves for each other by itself.
    assert_eq!(entry(&report, "direct")["algbw"], "25000000000");
    workspace.json("plan complete:4,bw=10GB/s -c gather --shares 1,2,3,4 -o plan.json --json");
    let report = workspace.json("explain plan.json --size 10KiB --json");
    assert_eq!(entry(&report, "binomial")["algbw"], "100000000000/11");
}

#[test]
fn what_cannot_be_explained_is_refused_with_a_way_out() {
    let workspace = Workspace::new();
    workspace.refused("explain none.json", 2, &["none.json"]);
    workspace.refused("explain ring:4", 2, &["no collective is given", "--collective C"]);
    workspace.json("plan ring:4 --collective allgather -o plan.json --json");
    workspace.refused("explain plan.json -c allgather", 2, &["says itself what it does", "leave out"]);
    workspace.refused("explain mesh:2x2,down=00-01+00-10 -c allgather", 3, &["add links that connect them"]);
    workspace.refused("explain plan.json --size 1TiB --alpha 5000h", 2, &["cannot simulate", "lower --size"]);
    let text = String::from_utf8(workspace.read("plan.json")).unwrap();
    workspace.write("wrong.json", text.replacen("\"allgather\"", "\"reduce-scatter\"", 1));
    workspace.refused("explain wrong.json", 2, &["wrong.json is not right", "canopy verify wrong.json"]);
}

/// What stock NCCL would take, with its losses: switches of one box add up faster than any plan without them.
#[test]
fn stock_nccl_is_beside_the_plan() {
    let workspace = Workspace::new();
    let report = workspace.json("explain dgx-h100:boxes=4 -c allreduce --json");
    let stock = &report["stock"];
    assert_eq!(stock["library"], "NCCL 2.30");
    assert_eq!(
        (&stock["seen"]["generation"], &stock["seen"]["machines"], &stock["seen"]["rings"]),
        (&"Hopper".into(), &4.into(), &8.into())
    );
    let calls = stock["calls"].as_array().unwrap();
    let taken = |call: &Value| format!("{} {}", call["algorithm"], call["protocol"]).replace('"', "");
    assert_eq!((taken(&calls[0]), taken(&calls[calls.len() - 1])), ("tree ll".to_owned(), "ring simple".to_owned()));
    let times = |call: &Value| call["times_as_fast"].as_f64().unwrap();
    assert!(times(&calls[0]) < 1.0 && times(&calls[calls.len() - 1]) > 1.25, "{stock}");
    let text = workspace.run("explain dgx-h100 -c allreduce").stdout;
    assert!(text.contains("16 GiB  nvls simple") && text.contains("slower at 16 GiB than NCCL 2.30"), "{text}");
    let text = workspace.run("explain ring:8 -c allgather --nccl 2.18").stdout;
    assert!(text.contains("stock      no times of NCCL 2.18: not every rank states its box"), "{text}");
    assert!(workspace.text("explain ring:8 -c allgather").contains("stock      no times of NCCL or RCCL: not every"));
    let refused = workspace.run("explain dgx-h100 -c allreduce --nccl 2.5");
    assert!(refused.status == Some(2) && refused.stderr.contains("use 2.18, 2.21,"), "{}", refused.stderr);
    let text = workspace.run("explain mi300x:boxes=2 -c allreduce").stdout;
    assert!(text.contains("RCCL 2.21 reaches 176.5 GB/s with 16 GiB"), "{text}");
}

/// A network is explained as the plan that `canopy plan` writes for it.
#[test]
fn a_network_and_its_plan_are_explained_alike() {
    let workspace = Workspace::new();
    for network in ["mi250:boxes=1", "random-regular:n=12,d=3,seed=3", "mesh:3x4", "rail:boxes=3,gpus=4"] {
        for collective in ["allgather", "allreduce"] {
            workspace.text(&format!("plan {network} --collective {collective} -o plan.json"));
            let plan = workspace.json("explain plan.json --json");
            assert_eq!(
                plan,
                workspace.json(&format!("explain {network} --collective {collective} --json")),
                "{network}"
            );
        }
    }
}
