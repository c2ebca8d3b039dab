//! Plans by a rule for more ranks than trees can be written for: explained, simulated and drawn by class.

use quick_xml::Reader;
use quick_xml::events::Event;
use serde_json::Value;

use crate::support::{Workspace, check_members};

/// 5,824 ranks: a tree for each could not be written down.
const BOXES: &str = "dgx-h100:boxes=728";
const FAULTY: &str = "dgx-h100:boxes=728,faults=nics:2+gpus:1+seed:1";
const TORUS: &str = "torus:18x18x18";

fn number(value: &Value) -> u128 {
    value.as_str().unwrap().parse().unwrap()
}

#[test]
fn boxes_links_and_stages_are_explained_by_class() {
    let workspace = Workspace::new();
    workspace.text(&format!("plan {FAULTY} -c allgather -o plan.json"));
    let report = workspace.json("explain plan.json --json");
    let members = [
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
        "by_class",
    ];
    check_members(&report, &members);
    let by_class = &report["by_class"];
    assert_eq!(by_class["rule"], "stages");
    let boxes = by_class["boxes"].as_array().unwrap();
    let counted: u64 = boxes.iter().map(|class| class["boxes"].as_u64().unwrap()).sum();
    assert_eq!(counted, 728);
    let ranks: u64 =
        boxes.iter().map(|class| class["boxes"].as_u64().unwrap() * class["ranks"].as_u64().unwrap()).sum();
    assert_eq!(ranks, 5_823);
    assert_eq!(boxes[0]["odd"].as_array().unwrap().len(), 0);
    let odd: Vec<&str> =
        boxes[1..].iter().flat_map(|class| class["odd"].as_array().unwrap()).map(|odd| odd.as_str().unwrap()).collect();
    assert!(odd.contains(&"1 rank missing") && odd.iter().any(|words| words.starts_with("NIC of place ")), "{odd:?}");
    // Digits make up the number of boxes, and each message of a stage has what the stages before brought.
    let stages = by_class["stages"].as_array().unwrap();
    let mut unit = 1;
    for stage in stages {
        assert_eq!(stage["shares"], unit);
        assert_eq!(stage["peers"].as_u64().unwrap() + 1, stage["digit"].as_u64().unwrap());
        unit *= stage["digit"].as_u64().unwrap();
    }
    assert_eq!(unit, 728);
    // The busiest class of links comes first, and one link is always busy.
    let links = by_class["links"].as_array().unwrap();
    assert_eq!(links[0]["busy"], "1/1");
    for class in links {
        assert!(number(&class["chunks_min"]) <= number(&class["chunks_max"]), "{class}");
    }
    let text = workspace.text("explain plan.json");
    for words in
        ["boxes by class", "stages of one rank", "links by class, the busiest first", "1 rank missing", "because "]
    {
        assert!(text.contains(words), "`{words}` is missing from\n{text}");
    }
}

#[test]
fn healthy_boxes_are_one_class_with_the_load_that_the_bound_demands() {
    let workspace = Workspace::new();
    let report = workspace.json(&format!("explain {BOXES} -c reduce-scatter --json"));
    let by_class = &report["by_class"];
    assert_eq!(by_class["boxes"].as_array().unwrap().len(), 1);
    let class = &by_class["boxes"][0];
    // Each box takes in 727 others' shares, an eighth over each NIC.
    let k = u128::from(by_class["chunks_per_share"].as_u64().unwrap());
    assert_eq!((number(&class["in_chunks_max"]), number(&class["nic_chunks_max"])), (727 * 8 * k, 727 * k));
    assert_eq!((&report["optimality"], &class["nic_busy"]), (&Value::from("1/1"), &Value::from("1/1")));
}

#[test]
fn tori_are_explained_by_dimension() {
    let workspace = Workspace::new();
    workspace.text(&format!("plan {TORUS} -c allgather -o plan.json"));
    let report = workspace.json("explain plan.json --json");
    let by_class = &report["by_class"];
    assert_eq!((&by_class["rule"], &by_class["orders"]), (&Value::from("orbits"), &serde_json::json!([18, 18, 18])));
    let links = by_class["links"].as_array().unwrap();
    assert_eq!(links.len(), 6);
    for class in links {
        assert_eq!((&class["kind"], &class["links"]), (&Value::from("dimension"), &Value::from(5_832)));
    }
    for template in by_class["templates"].as_array().unwrap() {
        let hops: u64 = template["hops"].as_array().unwrap().iter().map(|of| of["hops"].as_u64().unwrap()).sum();
        assert_eq!(hops, 5_831);
        assert_eq!(template["depth"], 27);
    }
    let text = workspace.text("explain plan.json");
    assert!(text.contains("dimensions 18 x 18 x 18") && text.contains("dimension 3 down"), "{text}");
}

#[test]
fn times_are_simulated_by_class_and_never_below_what_links_demand() {
    let workspace = Workspace::new();
    for network in [FAULTY, TORUS] {
        workspace.text(&format!("plan {network} -c allgather -o plan.json"));
        let report = workspace.json("simulate plan.json --sizes 1MiB..16GiB --links --critical-path --json");
        let mut before = 0;
        for size in report["sizes"].as_array().unwrap() {
            let (time, limit) = (size["time_ps"].as_u64().unwrap(), size["limit_ps"].as_u64().unwrap());
            assert!(time >= limit && time > before, "{size}");
            before = time;
        }
        assert!(report["by_class"]["classes"].as_u64().unwrap() >= 1);
        assert!(!report["links"].as_array().unwrap().is_empty());
        assert!(!report["critical_path"].as_array().unwrap().is_empty());
    }
    let text = workspace.text("simulate plan.json --size 1GiB --plot times.svg");
    assert!(text.contains("by class   messages are those of one box or rank of each class"), "{text}");
    assert!(String::from_utf8(workspace.read("times.svg")).unwrap().contains("bound"));
}

#[test]
fn drawings_show_a_box_of_each_class_or_one_rank() {
    let workspace = Workspace::new();
    for (network, words) in [
        (FAULTY, ["Boxes by class", "What one rank sends, by stage", "1 rank missing", "busy all the time"]),
        (TORUS, ["Links of one rank, by dimension", "Templates", "Dimension 3, of 18", "busy all the time"]),
    ] {
        workspace.text(&format!("plan {network} -c allgather -o plan.json"));
        workspace.text("draw plan.json -o plan.svg");
        let drawn = String::from_utf8(workspace.read("plan.svg")).unwrap();
        for words in words {
            assert!(drawn.contains(words), "`{words}` is missing from\n{drawn}");
        }
        let mut reader = Reader::from_str(&drawn);
        while !matches!(reader.read_event().expect("well-formed XML"), Event::Eof) {}
    }
}

#[test]
fn what_takes_every_transfer_is_refused_with_a_remedy() {
    let workspace = Workspace::new();
    workspace.text(&format!("plan {BOXES} -c allgather -o plan.json"));
    for (arguments, help) in [
        ("explain plan.json --report report.html", "draw the plan by class with `canopy draw`"),
        ("draw plan.json --what trees", "the plan is drawn by classes"),
        ("draw plan.json --what timeline", "`canopy simulate --critical-path`"),
        ("simulate plan.json --topology dgx-a100:boxes=728", "make a plan for the other network"),
        ("export plan.json --format simgrid --size 1MiB -o out", "make one rank's part with `canopy job render`"),
    ] {
        workspace.refused(arguments, 3, &["too many", help]);
    }
}
