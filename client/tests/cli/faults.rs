//! `canopy faults`.

use crate::support::{Desk, check_members};

/// Values by hand: without its link to the box switch a GPU takes in 25 GB/s what fifteen others send, 16 · 25 / 15; without its
/// card 300 GB/s. Without InfiniBand the boxes are apart; without a box eight GPUs have 300 GB/s each, 8 · 325 / 7.
#[test]
fn single_faults_are_ranked_by_what_they_leave() {
    let desk = Desk::new();
    let object = desk.json("faults what-if dgx-a100:boxes=2 --collective allgather --json");
    check_members(&object, &["canopy", "command", "topology", "collective", "remaining", "sound", "faults"]);
    assert_eq!((&object["sound"]["algbw"], &object["remaining"]), (&"1040000000000/3".into(), &"0/1".into()));
    let rows = object["faults"].as_array().unwrap();
    let summary: Vec<(&str, usize, &str, &str)> = rows
        .iter()
        .map(|row| {
            let faults = row["faults"].as_array().unwrap();
            let text = |name: &str| row[name].as_str().unwrap_or("-");
            (faults[0].as_str().unwrap(), faults.len(), text("outcome"), text("algbw"))
        })
        .collect();
    assert_eq!(
        summary,
        [
            ("switch:ib", 1, "disconnected", "-"),
            ("link:b0g0=b0nv", 16, "bounded", "80000000000/3"),
            ("switch:b0nv", 2, "bounded", "80000000000/3"),
            ("link:b0g0=ib", 16, "bounded", "320000000000"),
            ("nic:b0g0", 16, "bounded", "320000000000"),
            ("gpu:b0g0", 16, "bounded", "328125000000"),
            ("host:b0", 2, "bounded", "2600000000000/7"),
        ]
    );
    check_members(&rows[0], &["kind", "outcome", "components", "faults"]);
    check_members(&rows[3], &["kind", "outcome", "algbw", "algbw_GBps", "ratio", "faults"]);
    assert_eq!((&rows[0]["components"], &rows[3]["ratio"]), (&2.into(), &"12/13".into()));
    let text = desk.run("faults what-if dgx-a100:boxes=2 --collective allgather --limit 2");
    assert!(
        text.stdout.contains("switch:ib           1          -       -  falls into 2 components"),
        "{}",
        text.stdout
    );
    assert!(text.stdout.ends_with("5 more groups of faults harm less; see --limit\n"), "{}", text.stdout);
}

#[test]
fn roots_and_fractions_count() {
    let desk = Desk::new();
    let object = desk.json("faults what-if ring:4 --collective broadcast --root 1 --kinds gpu --json");
    let outcomes: Vec<(&str, &str)> = object["faults"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["faults"][0].as_str().unwrap(), row["outcome"].as_str().unwrap()))
        .collect();
    assert_eq!(outcomes, [("gpu:1", "root_lost"), ("gpu:0", "bounded"), ("gpu:3", "bounded")]);
    let object = desk.json("faults what-if dgx-a100:boxes=2 --collective allgather --kinds nic --remaining 1/2 --json");
    let only = &object["faults"][0];
    assert_eq!((&only["faults"][0], &only["algbw"]), (&"nic:b0g0*1/2".into(), &"1000000000000/3".into()));
}

#[test]
fn what_cannot_be_ranked_is_refused() {
    let desk = Desk::new();
    for (arguments, status, words) in [
        ("faults what-if ring:4", 2, "no collective is given"),
        ("faults what-if ring:4 --collective allgather --kinds fan", 2, "use link, nic, gpu, host, switch"),
        ("faults what-if ring:4 --collective allgather --remaining 3/2", 2, "`3/2` is no remaining fraction"),
        ("faults what-if ring:4,down=0-1+2-3 --collective allgather", 3, "cannot be reached"),
        ("faults what-if torus:10x10x10 --collective allreduce --deadline 1ms", 5, "the deadline came"),
    ] {
        let run = desk.run(arguments);
        assert!(run.status == Some(status) && run.stderr.contains(words), "{arguments}: {run:?}");
    }
}
