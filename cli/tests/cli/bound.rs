//! `canopy bound`.

use crate::support::{DISCONNECTED, UNBALANCED, Workspace, check_members};

/// Values by hand: a link carries 25 GB/s unless the family says otherwise.
#[test]
fn bounds_of_small_networks() {
    let workspace = Workspace::new();
    for (topology, collective, algbw) in [
        // Seven of eight ranks send their shares through two links: 8 · 50 / 7.
        ("ring:8", "allgather", "400000000000/7"),
        ("ring:8", "reduce-scatter", "400000000000/7"),
        ("ring:8", "broadcast --root 3", "50000000000"),
        ("ring:8", "reduce", "50000000000"),
        ("ring:8", "scatter", "400000000000/7"),
        ("ring:8", "gather --root 7", "400000000000/7"),
        // All eight singletons: 8 · 50 / (2 · 7).
        ("ring:8", "allreduce", "200000000000/7"),
        // A GPU takes in 300 + 25 GB/s what fifteen others send: 16 · 325 / 15.
        ("dgx-a100:boxes=2", "allgather", "1040000000000/3"),
    ] {
        let object = workspace.json(&format!("bound {topology} --collective {collective} --json"));
        assert_eq!(object["bound"]["algbw"], algbw, "{collective} on {topology}");
        assert_eq!(object["bound"]["tight"], true, "{collective} on {topology}");
        assert_eq!(object["certificate"]["checked"], true);
    }
}

#[test]
fn the_object_has_the_shape_of_the_contract() {
    let workspace = Workspace::new();
    let members = ["canopy", "command", "topology", "collective", "bound", "certificate"];
    let object = workspace.json("bound dgx-a100:boxes=2 --collective allgather --json");
    check_members(&object, &members);
    check_members(&object["topology"], &["hash", "hash_kind", "ranks", "nodes", "links"]);
    check_members(&object["bound"], &["algbw", "algbw_GBps", "tight"]);
    check_members(
        &object["certificate"],
        &["kind", "direction", "nodes_in_cut", "ranks_in_cut", "capacity", "checked"],
    );
    assert_eq!(object["command"], "bound");
    assert_eq!(object["bound"]["algbw_GBps"], 346.667);
    assert_eq!(object["certificate"]["kind"], "cut");
    assert_eq!(
        (&object["certificate"]["direction"], &object["certificate"]["ranks_in_cut"]),
        (&"in".into(), &serde_json::json!([0]))
    );
    assert!(object["certificate"]["capacity"].is_string());
    let reduce = workspace.json("bound dgx-a100:boxes=2 --collective reduce-scatter --json");
    assert_eq!(reduce["certificate"]["direction"], "out");
    // The side of a cut that has fewer ranks is named first, then what leads there.
    let text = workspace.text("bound dgx-a100:boxes=2 --collective allgather");
    assert!(text.contains("\ncut        b0g0: 325 GB/s enter it\n"), "{text}");
    let text = workspace.text("bound ring:4 --collective allreduce");
    assert!(text.contains("\npartition  4 sets: 200 GB/s leave them together, for 6 times the data\n"), "{text}");

    let object = workspace.json("bound ring:4 --collective allreduce --json");
    check_members(&object["certificate"], &["kind", "sets", "ranks", "capacity", "checked"]);
    assert_eq!(object["certificate"]["kind"], "partition");
    assert_eq!(object["certificate"]["sets"].as_array().unwrap().len(), 4);
    assert_eq!(object["certificate"]["capacity"], "200000000000");

    let object = workspace.json("bound ring:4 --collective all-to-all --json");
    check_members(&object["bound"], &["algbw", "algbw_GBps", "tight"]);
    assert_eq!((&object["bound"]["algbw"], &object["bound"]["tight"]), (&"50000000000".into(), &true.into()));
    check_members(&object["certificate"], &["kind", "lengths", "volume", "distance", "checked"]);
    assert_eq!(object["certificate"]["kind"], "lp-dual");
    check_members(&object["certificate"]["lengths"][0], &["from", "to", "length"]);
    check_members(&object["plain_bounds"], &["distances", "distances_GBps", "degree", "full_tree", "full_tree_GBps"]);
    // Each rank is one, one and two links from the others: 4 · 8 · 25 GB/s / 16, and 4 · 2 · 25 / 4.
    assert_eq!(object["plain_bounds"]["distances"], "50000000000");
    assert_eq!(
        (&object["plain_bounds"]["full_tree"], &object["plain_bounds"]["degree"]),
        (&"50000000000".into(), &2.into())
    );
    let boxes = workspace.json("bound dgx-a100:boxes=2 --collective all-to-all --json");
    check_members(&boxes["plain_bounds"], &["distances", "distances_GBps"]);

    let object = workspace.json("bound ring:4 --collective broadcast --json");
    assert_eq!(object["root"], 0, "a missing root is rank 0");
}

/// The funnel's switch is not balanced: trees at the rate of the cut are not promised.
#[test]
fn an_explanation_names_what_is_odd_and_what_repairs_bring() {
    let workspace = Workspace::new();
    let explained = |topology: &str| {
        let object = workspace.json(&format!("bound {topology} --collective allreduce --explain --json"));
        check_members(&object["explanation"], &["parts", "two_phases", "repairs"]);
        // What is broken is of no family.
        assert_eq!(object["family"], serde_json::json!({"determined": true, "name": null, "expression": null}));
        object["explanation"].clone()
    };
    let slow = explained("dgx-a100:boxes=4,degrade=b2g3-ib*1/2");
    let [usual, odd] = slow["parts"].as_array().unwrap().as_slice() else { panic!("{slow}") };
    check_members(odd, &["name", "sets", "ranks", "capacity", "odd"]);
    assert_eq!(
        (&usual["name"], &usual["sets"], &usual["odd"]),
        (&"box b0".into(), &3.into(), &Vec::<&str>::new().into())
    );
    assert_eq!((&odd["name"], &odd["sets"], &odd["capacity"]), (&"box b2".into(), &1.into(), &"187500000000".into()));
    assert_eq!(odd["odd"], serde_json::json!(["b2g3 - ib has 12.5 GB/s where others have 25"]));
    let [repair] = slow["repairs"].as_array().unwrap().as_slice() else { panic!("{slow}") };
    check_members(repair, &["change", "algbw", "algbw_GBps"]);
    assert_eq!(repair["change"], "b2g3 - ib with 25 GB/s instead of 12.5");
    assert_eq!(
        repair["algbw"],
        workspace.json("bound dgx-a100:boxes=4 --collective allreduce --json")["bound"]["algbw"]
    );

    let missing = explained("dgx-a100:boxes=4,nodes-down=b2g3");
    let odd = &missing["parts"][1]["odd"];
    assert_eq!(*odd, serde_json::json!(["7 ranks where others have 8", "1 link of 25 GB/s missing"]));
    assert_eq!(missing["repairs"][0]["change"], "b2g3 back");
    let text = workspace.run("bound torus:4x4,down=00-01 --collective allreduce --explain").stdout;
    for line in [
        "limited    rank 02 and 13 others like it, left by 100 GB/s\n",
        "limited    rank 00 and 1 other like it, left by 75 GB/s: 1 link of 25 GB/s missing\n",
        "two phases 44.4444 GB/s as a reduce-scatter followed by an allgather, 86 % (80/93) of the bound\n",
        "repair     53.3333 GB/s with 00 - 01 back\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
    // Of a group, the nodes outside are not broken.
    let group = explained("dgx-a100:boxes=4,nodes-down=b2g3 --ranks 0-11");
    assert!(!group["repairs"].to_string().contains("back"), "{group}");
    workspace.refused("bound ring:4 --collective allgather --explain", 2, &["`--explain` works for allreduce only"]);
}

#[test]
fn a_bound_that_is_not_known_to_be_reachable_says_so() {
    let workspace = Workspace::new();
    // A plain switch can not add up, and a proof counts what that costs.
    workspace.write("funnel.yaml", UNBALANCED);
    let object = workspace.json("bound funnel.yaml --collective reduce-scatter --json");
    assert_eq!((&object["bound"]["tight"], &object["certificate"]["kind"]), (&true.into(), &"sum".into()));
    check_members(&object["certificate"], &["kind", "terms", "potentials", "capacity", "data", "checked"]);
    let text = workspace.run("bound funnel.yaml --collective reduce-scatter").stdout;
    assert!(text.contains("proof      3 cuts together, as what enters a switch leaves it: s"), "{text}");
    // One that can add up might do better than trees that treat it as a plain one.
    workspace.write("funnel.yaml", UNBALANCED.replace("kind: switch", "kind: switch, aggregate: true"));
    let object = workspace.json("bound funnel.yaml --collective reduce-scatter --json");
    assert_eq!(object["bound"]["tight"], false);
    check_members(&object["bound"], &["algbw", "algbw_GBps", "tight", "lower", "upper"]);
    assert_eq!(object["bound"]["upper"], object["bound"]["algbw"]);
    let text = workspace.run("bound funnel.yaml --collective reduce-scatter").stdout;
    assert!(text.contains("tight      not known"), "{text}");
}

#[test]
fn people_get_the_same_in_words() {
    let workspace = Workspace::new();
    let run = workspace.run("bound ring:4 --collective allgather");
    assert_eq!(run.stderr, "");
    for words in ["allgather on ring:4: 4 ranks", "66.6667 GB/s\n", "tight      yes", "50 GB/s"] {
        assert!(run.stdout.contains(words), "`{words}` is missing from\n{}", run.stdout);
    }
}

#[test]
fn refusals_have_their_status() {
    let workspace = Workspace::new();
    workspace.refused("bound ring:4", 2, &["no collective is given", "allgather, reduce-scatter"]);
    workspace.refused("bound ring:4 --collective gossip", 2, &["gossip"]);
    workspace.refused("bound ring:4 --collective all-to-all-v", 2, &["a size for each block", "--blocks FILE"]);
    workspace.refused("bound ring:4 --collective allgather --root 1", 2, &["has no root"]);
    workspace.refused("bound ring:4 --collective broadcast --root 4", 2, &["0 to 3"]);
    workspace.refused("bound ring:4 --collective allgather --deadline 5", 2, &["`5s`"]);
    workspace.write("split.yaml", DISCONNECTED);
    workspace.refused("bound split.yaml --collective allgather", 3, &["no path leads", "rank 2 (c)"]);
    workspace.refused("bound complete:200 --collective allgather --deadline 1ns", 5, &["deadline"]);
}

/// By hand: of six units, five enter each of the ranks that have one, over 50 GB/s.
#[test]
fn shares_are_weighed() {
    let workspace = Workspace::new();
    let object = workspace.json("bound ring:4 --collective allgather --shares 6,2x3 --json");
    assert_eq!(object["bound"]["algbw"], "60000000000");
    assert_eq!(object["shares"], serde_json::json!([3, 1, 1, 1]));
    assert!(workspace.json("bound ring:4 --collective allgather --shares 5x4 --json").get("shares").is_none());
    std::fs::write(workspace.path("weights"), "3 1\n1 1\n").unwrap();
    let file = format!("@{}", workspace.path("weights").display());
    let read = workspace.json(&format!("bound ring:4 --collective allgather --shares {file} --json"));
    assert_eq!((&read["bound"], &read["certificate"]), (&object["bound"], &object["certificate"]));
    let words = workspace.run("bound ring:4 --collective allgather --shares 3,0,1,1").stdout;
    assert!(words.contains("of different sizes: 5 units in all, at most 3 of one rank, 1 rank without any"), "{words}");
    for wrong in ["--shares 1,2", "--shares 0x4", "--shares 1,x", "--shares @nowhere"] {
        let run = workspace.run(&format!("bound ring:4 --collective allgather {wrong}"));
        assert_eq!(run.status, Some(2), "{wrong}: {}", run.stderr);
    }
    assert_eq!(workspace.run("bound ring:4 --collective broadcast --shares 1x4").status, Some(2));
    assert_eq!(workspace.run("bound ring:4 --collective gather --shares 1,0x3").status, Some(2));
}

/// Two ranks of a ring reach each other by way of the others, or not at all.
#[test]
fn groups_use_others_or_not() {
    let workspace = Workspace::new();
    let bound = "bound ring:4 --collective allgather --ranks 0,2";
    let object = workspace.json(&format!("{bound} --transit forward --json"));
    assert_eq!((&object["bound"]["algbw"], &object["topology"]["ranks"]), (&"100000000000".into(), &2.into()));
    let run = workspace.run(&format!("{bound} --transit forward"));
    let told = "RANKS_RENUMBERED: the ranks of the group are renumbered: 0 (in the topology 0), 1 (in the topology 2)";
    assert!(run.stderr.contains(told), "{}", run.stderr);
    assert_eq!(workspace.run(bound).status, Some(3), "disconnected without the others");
    assert_eq!(workspace.run("bound ring:4 --collective allgather --ranks 0,4").status, Some(2));
    assert_eq!(workspace.run("bound ring:4 --collective allgather --transit forward").status, Some(2));
    // With devices that forward and could add up, a partition has to hold them.
    let object = workspace.json("bound ring:6 --collective allreduce --ranks 0,2,4 --transit forward --json");
    let sets = object["certificate"]["sets"].as_array().map(Vec::len);
    assert!(sets.is_none_or(|sets| sets >= 2), "{object}");
}
