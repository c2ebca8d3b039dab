//! `canopy draw`: the README's pictures to the byte, well-formed for any name, and refusals.

use std::collections::BTreeSet;
use std::path::Path;

use quick_xml::Reader;
use quick_xml::events::Event;

use crate::support::{Workspace, sha256};

/// Names of elements in a drawing, which must be well-formed and refer to nothing outside.
#[track_caller]
fn elements(drawn: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut reader = Reader::from_str(drawn);
    loop {
        match reader.read_event().expect("well-formed XML") {
            Event::Eof => break,
            Event::Start(element) | Event::Empty(element) => {
                for attribute in element.attributes() {
                    let key = attribute.expect("a well-formed attribute").key.0.to_owned();
                    assert!(!key.starts_with("on") && !key.ends_with("href"), "{key} in {drawn}");
                }
                names.insert(element.name().as_ref().to_owned());
            }
            _ => {}
        }
    }
    names
}

fn drawn(workspace: &Workspace, name: &str) -> String {
    String::from_utf8(workspace.read(name)).unwrap()
}

/// Compares with the pictures in `docs/images`; `CANOPY_APPROVE=1` writes them instead.
#[test]
fn the_pictures_of_readme_and_guides_are_made_by_the_program() {
    let workspace = Workspace::new();
    for (command, name, words) in [
        ("draw mi250:boxes=2 -c allgather -o", "mi250.svg", "332 GB/s enter each of 16 marked sets of 2 ranks"),
        ("draw dgx-a100:boxes=2 -c allgather -o", "dgx-a100.svg", "325 GB/s enter each of the 16 marked ranks"),
        ("draw torus:4x4,down=00-01 -c allgather -o", "torus-dead-link.svg", "missing (1 wire)"),
        ("draw fat-tree:k=4 -c allgather -o", "fat-tree.svg", "25 GB/s enter each of the 16 marked ranks"),
        ("draw hypercube:4 -c allgather -o", "hypercube.svg", "busy all the time (64 links)"),
        ("draw circulant:n=20,offsets=1+4 -c allgather -o", "circulant.svg", "20 ranks, 80 links"),
        ("draw mi250:boxes=1 -c allgather --what trees --root 3 -o", "trees.svg", "trees of rank 3"),
        ("draw dgx-a100:boxes=2 -c allreduce --what timeline --size 64MiB -o", "timeline.svg", "critical path"),
        ("simulate dgx-a100:boxes=2 -c allgather --sizes 1KiB..1GiB --plot", "sweep.svg", "bound 325 GB/s"),
    ] {
        let report = workspace.json(&format!("{command} {name} --json"));
        assert_eq!(report["files"][0]["sha256"], sha256(&workspace.path(name)));
        approve(&workspace, name, words);
    }
}

#[track_caller]
fn approve(workspace: &Workspace, name: &str, words: &str) {
    let found = drawn(workspace, name);
    assert!(found.contains(words), "`{words}` is missing from\n{found}");
    assert!(found.len() <= 200_000, "{name} has {} bytes", found.len());
    assert!(elements(&found).contains("style") && found.contains("prefers-color-scheme: dark"));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/images").join(name);
    if std::env::var_os("CANOPY_APPROVE").is_some() {
        std::fs::write(&path, &found).unwrap();
        return;
    }
    let approved = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(approved == found, "{name} changed; if intended, rerun with CANOPY_APPROVE=1\n{found}");
}

const RAIL: &str = "rail:boxes=4,gpus=8,nv=300GB/s,nic=25GB/s";

/// The plans of the job of the guide, made with these options.
fn plan_groups(workspace: &Workspace, options: &str) {
    let groups = "[{name: tp, over: tp, collective: allgather, size: 6GB}, \
                  {name: dp, over: dp, collective: allreduce, size: 1GB}]";
    workspace.write("job.yaml", format!("topology: {RAIL}\nlayout: tp=8 dp=4\ngroups: {groups}\n"));
    workspace.text(&format!("plan-job job.yaml {options} -o plans"));
}

#[test]
fn who_uses_which_link_is_drawn() {
    let workspace = Workspace::new();
    plan_groups(&workspace, "");
    let report = workspace.json("draw plans -o shares.svg --json");
    assert_eq!(report["what"], "shares");
    approve(&workspace, "shares.svg", "12 groups at once, 60.000 ms");
    let found = drawn(&workspace, "shares.svg");
    for words in [">tp<", ">dp<", ">100.0 %<", "NIC out: rank → switch", "outlined: busy all the time", "32 ranks"] {
        assert!(found.contains(words), "`{words}` is missing from\n{found}");
    }
    let of_manifest = workspace.run("draw plans/manifest.json");
    assert!(of_manifest.status == Some(0) && of_manifest.stdout == found, "{of_manifest:?}");
    // A dead NIC has other GPUs of its box help out.
    plan_groups(&workspace, &format!("--topology {RAIL},down=b3g2-rail2"));
    let broken = workspace.text("draw plans");
    assert!(
        elements(&broken).contains("polygon") && broken != found && !broken.contains("b3g2 -&gt; rail2,"),
        "{broken}"
    );
}

#[test]
fn a_folder_that_cannot_be_drawn_is_refused() {
    let workspace = Workspace::new();
    plan_groups(&workspace, "");
    for option in ["--what trees", "-c allgather", "--root 1", "--base ring:4"] {
        workspace.refused(&format!("draw plans {option}"), 2, &["is for a single plan", "name one of the plans"]);
    }
    let manifest: serde_json::Value = serde_json::from_slice(&workspace.read("plans/manifest.json")).unwrap();
    type Change = fn(&mut serde_json::Value);
    let changes: [(Change, &str); 6] = [
        (|manifest| manifest["kind"] = "bundle".into(), "is a folder of something else"),
        (|manifest| manifest["groups"] = serde_json::json!([]), "no group has a plan"),
        (|manifest| manifest["groups"][0]["size_bytes"] = 0.into(), "nonzero"),
        (|manifest| manifest["groups"][0]["size_bytes"] = u64::MAX.into(), "together they take"),
        (|manifest| manifest["groups"][0]["ranks"][0] = u32::MAX.into(), "the ranks of its plan are others"),
        (|manifest| manifest["groups"][0]["files"][0]["path"] = "../../etc/passwd".into(), "not in the folder"),
    ];
    for (change, problem) in changes {
        let mut changed = manifest.clone();
        change(&mut changed);
        workspace.write("plans/manifest.json", changed.to_string());
        workspace.refused("draw plans", 2, &[problem]);
    }
    // Names are texts and nothing else.
    let mut changed = manifest.clone();
    changed["groups"][0]["name"] = "</text><script>.0".into();
    workspace.write("plans/manifest.json", changed.to_string());
    let found = workspace.text("draw plans");
    assert!(!elements(&found).contains("script") && found.contains("&lt;/text&gt;&lt;script&gt;"), "{found}");
    workspace.write("plans/manifest.json", manifest.to_string());
    workspace.write("plans/topology.json", "{");
    workspace.refused("draw plans", 2, &["topology.json"]);
    std::fs::create_dir(workspace.path("empty")).unwrap();
    workspace.refused(
        "draw empty",
        2,
        &["is a folder without manifest.json", "`canopy tools plan-job JOB.yaml -o DIR`"],
    );
}

/// A file says what its network was before; a plan of a server is drawn as one that is made here.
#[test]
fn a_plan_and_its_network_before_are_drawn() {
    let workspace = Workspace::new();
    let plan = workspace.json("plan dgx-a100:boxes=2 --collective allgather -o plan.json --json");
    let kept = workspace.run(&format!("draw {}", plan["plan"].as_str().unwrap()));
    assert_eq!(workspace.run("draw plan.json -o of-plan.svg").status, Some(0));
    assert_eq!(workspace.run("draw dgx-a100:boxes=2 -c allgather -o of-expression.svg").status, Some(0));
    assert!(drawn(&workspace, "of-plan.svg") == drawn(&workspace, "of-expression.svg"));
    assert!(drawn(&workspace, "of-plan.svg") == kept.stdout, "{kept:?}");
    let plain = workspace.run("draw dgx-a100:boxes=2,nodes-down=b0g3");
    assert_eq!(plain.status, Some(0));
    assert!(plain.stdout.contains("missing (2 wires, 1 node)") && plain.stdout.contains("b0g3, missing"));
    assert!(!plain.stdout.contains("busy"), "nothing is planned");
    let based = workspace.run("draw ring:4,down=0-1 --base complete:4");
    assert!(based.stdout.contains("missing (3 wires)"), "{based:?}");
    assert!(workspace.run("draw ring:4 --base torus:3x3").stdout.contains("ring:4"), "another network says nothing");
}

/// Every rank is in every tree: as many plates as ranks in each panel, and a link to each but the root.
#[test]
fn trees_of_a_root_and_of_all_roots_are_drawn() {
    let workspace = Workspace::new();
    workspace.json("plan dgx-a100:boxes=2 --collective allgather -o plan.json --json");
    let report = workspace.json("draw plan.json --what trees --root 3 -o trees.svg --json");
    assert_eq!(report["what"], "trees");
    let found = drawn(&workspace, "trees.svg");
    elements(&found);
    for words in [
        "phase 1 of 1, trees of rank 3: data goes from left to right",
        "b0g3: 12 of 13 chunks, 2 hops deep",
        "b0g3: 1 of 13 chunks",
    ] {
        assert!(found.contains(words), "`{words}` is missing from\n{found}");
    }
    assert_eq!((found.matches(">b1g7<").count(), found.matches("<path ").count()), (2, 2 * 15));
    let all = workspace.run("draw ring:4 -c allreduce --what trees --phase 2");
    assert_eq!(all.status, Some(0), "{all:?}");
    assert!(all.stdout.contains("phase 2 of 2, the first tree of each root"), "{}", all.stdout);
    let up = workspace.run("draw ring:4 -c allreduce --what trees");
    assert!(up.stdout.contains("data goes from right to left"), "{}", up.stdout);
    // The root of a collective that has one is the plan's.
    let rooted = workspace.run("draw ring:4 -c broadcast --root 2 --what trees");
    assert!(rooted.stdout.contains("trees of rank 2"), "{}", rooted.stdout);
    assert!(workspace.run("draw ring:4 -c all-to-all --what trees --root 1").status == Some(0), "paths are trees, too");
}

#[test]
fn a_run_is_drawn_with_the_links_that_took_longest_first() {
    let workspace = Workspace::new();
    workspace.write(
        "pair.yaml",
        "canopy: 1\nnodes: [{id: a}, {id: b}]\nlinks: [{from: a, to: b, bandwidth: 25GB/s, latency: 500ns, both: true}]\n",
    );
    // α of 1 µs, 40 ps for each byte, 500 ns of latency.
    let run = workspace.run("draw pair.yaml -c broadcast --what timeline --size 50000");
    assert_eq!(run.status, Some(0), "{run:?}");
    elements(&run.stdout);
    assert!(run.stdout.contains("50 kB, 3.500 µs"), "{}", run.stdout);
    assert!(run.stdout.contains("a -&gt; b") && !run.stdout.contains("b -&gt; a"), "one way only");
    // From 1 of 3.5 µs to 3 of 3.5 µs on 820 units; the message itself all the time.
    let width = |part: f64| format!("width=\"{:.1}\"", 820.0 * part / 3.5);
    assert!(run.stdout.contains(&width(2.0)) && run.stdout.contains(&width(3.5)), "{}", run.stdout);
    assert_eq!(workspace.run("draw mi250:boxes=2 -c allgather --what timeline").status, Some(0));
}

#[test]
fn names_are_texts_and_nothing_else() {
    let workspace = Workspace::new();
    let hostile = "<script>alert(1)</script>";
    workspace.write(
        "hostile.yaml",
        format!(
            "canopy: 1\nname: \"{hostile}\"\nnodes:\n  - {{id: \"{hostile}\", box: \"{hostile}\"}}\n  - {{id: 'b\"&onload', box: b}}\n  \
             - {{id: \"]]><x\", kind: switch}}\nlinks:\n  - {{from: \"{hostile}\", to: \"]]><x\", bandwidth: 1GB/s, both: true}}\n  \
             - {{from: 'b\"&onload', to: \"]]><x\", bandwidth: 1GB/s, both: true}}\n"
        )
        .replace("]]><x", "]]<x"),
    );
    // `>` ends no id of a node: what can not be in one is refused by the reader of networks.
    let refused = workspace.run("draw hostile.yaml -o hostile.svg");
    assert_eq!(refused.status, Some(2), "{refused:?}");
    let text = String::from_utf8(workspace.read("hostile.yaml")).unwrap().replace(hostile, "<script/x");
    workspace.write("hostile.yaml", text);
    assert_eq!(workspace.run("draw hostile.yaml -c allreduce -o hostile.svg").status, Some(0));
    let found = drawn(&workspace, "hostile.svg");
    let names: Vec<String> = elements(&found).into_iter().collect();
    assert!(names.iter().all(|name| name != "script" && name != "x"), "{names:?}");
    assert!(found.contains("&lt;script/x"), "{found}");
}

#[test]
fn what_cannot_be_drawn_is_refused_with_a_way_out() {
    let workspace = Workspace::new();
    workspace.refused("draw torus:32x32", 2, &["1024 nodes", "limits of 400", "draw a part"]);
    workspace.refused("draw none.json", 2, &["none.json"]);
    workspace.refused("draw plans/0123", 2, &["plans/0123"]);
    workspace.refused("draw ring:4 --json", 2, &["-o FILE"]);
    workspace.refused("draw ring:4 -o no/folder/x.svg", 2, &["cannot write no/folder/x.svg"]);
    workspace.refused("draw mesh:2x2,down=00-01+00-10 -c allgather", 3, &["add links that connect them"]);
    workspace.refused("draw ring:4 --what trees", 2, &["needs a plan", "--collective C"]);
    workspace.refused("draw ring:4 -c allgather --what trees --root 9", 2, &["phase 1 has no tree with root 9"]);
    workspace.refused("draw ring:4 -c allgather --what trees --phase 2", 2, &["phase 2 does not exist"]);
    workspace.refused("draw ring:4 -c allgather --what trees --phase 0", 2, &["phase 0 does not exist"]);
    workspace.refused("draw torus:12x12 -c allgather --what trees", 2, &["144 ranks", "the limit of 128"]);
    workspace.refused("draw ring:4 -c allgather --what timeline --size 9000000TiB", 2, &["lower --size"]);
    workspace.json("plan ring:4 --collective allgather -o plan.json --json");
    workspace.refused("draw plan.json -c allgather", 2, &["says itself what it does"]);
    let text = String::from_utf8(workspace.read("plan.json")).unwrap();
    workspace.write("wrong.json", text.replacen("\"allgather\"", "\"reduce-scatter\"", 1));
    workspace.refused("draw wrong.json", 2, &["wrong.json"]);
}
