//! `canopy network`.

use crate::support::{DISCONNECTED, Run, UNBALANCED, Workspace, check_members, sha256};

#[test]
fn what_is_generated_reads_back_as_the_same_network() {
    let workspace = Workspace::new();
    let composed = "product(debruijn:d=2,n=2;line(ring:3)):lat=1us";
    for expression in ["ring:8", "dgx-a100:boxes=2", "torus:4x4", "hypercube:3", "genkautz:n=32,d=4", composed] {
        let shown = workspace.json(&format!("topology show {expression} --json"));
        for format in ["yaml", "json"] {
            let file = format!("t.{format}");
            let written = workspace.json(&format!("topology generate {expression} -o {file} --json"));
            check_members(&written, &["canopy", "command", "topology", "files"]);
            assert_eq!(written["files"][0]["format"], format, "the name of the file says how");
            assert_eq!(written["files"][0]["sha256"], sha256(&workspace.path(&file)));
            assert_eq!(written["topology"], shown["topology"]);
            let read = workspace.json(&format!("topology show {file} --json"));
            assert_eq!(read["topology"], shown["topology"], "{expression} as {format}");
        }
    }
}

#[test]
fn conversion_there_and_back_keeps_every_byte() {
    let workspace = Workspace::new();
    assert_eq!(workspace.run("topology generate dgx-h100:boxes=2 -o a.yaml").stdout, "");
    workspace.run("topology convert a.yaml --to json -o b.json");
    workspace.run("topology convert b.json --to yaml -o c.yaml");
    assert!(workspace.read("a.yaml") == workspace.read("c.yaml"));
    let printed = workspace.run("topology convert b.json --to yaml");
    assert_eq!(printed.stdout.into_bytes(), workspace.read("a.yaml"));
}

#[test]
fn show_tells_balance_and_connectivity() {
    let workspace = Workspace::new();
    let members = [
        "canopy",
        "command",
        "topology",
        "name",
        "family",
        "kinds",
        "eulerian",
        "unbalanced",
        "connected",
        "unreachable",
        "symmetry",
        "direct",
        "capacities",
        "capacities_omitted",
    ];
    let ring = workspace.json("topology show ring:4 --json");
    check_members(&ring, &members);
    check_members(&ring["topology"], &["hash", "hash_kind", "ranks", "nodes", "links"]);
    assert_eq!((&ring["eulerian"], &ring["connected"]), (&true.into(), &true.into()));
    assert_eq!(ring["topology"]["links"], 8);

    workspace.write("unbalanced.yaml", UNBALANCED);
    let funnel = workspace.json("topology show unbalanced.yaml --json");
    assert_eq!(funnel["unbalanced"]["node"], "a");
    assert_eq!(funnel["unbalanced"]["in"], "1000000000");
    assert_eq!(funnel["unbalanced"]["out"], "2000000000");
    assert_eq!(funnel["kinds"]["switch"], 1);

    workspace.write("disconnected.yaml", DISCONNECTED);
    let split = workspace.json("topology show disconnected.yaml --json");
    assert_eq!(split["connected"], false);
    assert_eq!(split["unreachable"]["from"]["rank"], 0);
    assert_eq!(split["unreachable"]["to"]["node"], "c");
    let text = workspace.run("topology show disconnected.yaml").stdout;
    assert!(text.contains("rank 0 (a) does not reach rank 2 (c)"), "{text}");
}

#[test]
fn show_tells_what_looks_alike() {
    let workspace = Workspace::new();
    let members = [
        "determined",
        "cells",
        "rank_orbits",
        "link_orbits",
        "rank_transitive",
        "automorphisms",
        "automorphism_digits",
    ];
    let symmetry = |expression: &str| {
        let shown = workspace.json(&format!("topology show {expression} --json"));
        check_members(&shown["symmetry"], &members);
        assert_eq!(shown["symmetry"]["determined"], true);
        let values = ["cells", "rank_orbits", "link_orbits", "rank_transitive", "automorphisms"];
        serde_json::Value::from(values.map(|name| shown["symmetry"][name].clone()).to_vec())
    };
    assert_eq!(symmetry("torus:4x5"), serde_json::json!([1, 1, 2, true, "80"]));
    assert_eq!(symmetry("mesh:1x4"), serde_json::json!([2, 2, 3, false, "2"]));
    // Every GPU is linked with its box and with the fabric, both ways.
    assert_eq!(symmetry("dgx-a100:boxes=2"), serde_json::json!([3, 1, 4, true, "3251404800"]));
    let text = workspace.run("topology show torus:4x5").stdout;
    assert!(
        text.contains("symmetry   every rank sees the same network, 2 orbits of links, 1 cell of nodes; 80 auto"),
        "{text}"
    );
    let text = workspace.run("topology show dgx-a100:boxes=16").stdout;
    assert!(
        text.contains("every rank sees the same network, 4 orbits of links, 3 cells of nodes; about 10^"),
        "{text}"
    );
    let text = workspace.run("topology show random-regular:n=16,d=3,seed=1").stdout;
    assert!(text.contains("symmetry"), "{text}");
}

#[test]
fn show_tells_ports_and_steps() {
    let workspace = Workspace::new();
    let members = [
        "degree",
        "port_rate",
        "self_loops",
        "simple",
        "bidirectional",
        "diameter",
        "diameter_min",
        "diameter_min_both_ways",
        "moore_optimal",
        "reverse_symmetric",
    ];
    let values = |expression: &str| {
        let shown = workspace.json(&format!("topology show {expression} --json"));
        let direct = &shown["direct"];
        if !direct.is_null() {
            check_members(direct, &members);
        }
        let names =
            ["degree", "self_loops", "simple", "bidirectional", "diameter", "diameter_min", "reverse_symmetric"];
        serde_json::Value::from(names.map(|name| direct[name].clone()).to_vec())
    };
    for (expression, expected) in [
        ("genkautz:n=32,d=4", serde_json::json!([4, 4, false, false, 3, 3, true])),
        ("genkautz:n=11,d=4", serde_json::json!([4, 4, false, false, 2, 2, false])),
        ("kautz:d=2,n=4", serde_json::json!([2, 0, true, false, 4, 4, true])),
        ("biring:n=8,d=4", serde_json::json!([4, 0, false, true, 4, 2, true])),
        ("distreg:n=80", serde_json::json!([4, 0, true, true, 4, 3, true])),
        ("diamond", serde_json::json!([2, 0, true, false, 3, 3, false])),
        ("dbjmod:d=2,n=3", serde_json::json!([2, 0, true, false, 3, 3, true])),
        ("dbjmod:d=2,n=4", serde_json::json!([2, 0, true, false, 4, 4, false])),
        ("line:2(bipartite:4x4)", serde_json::json!([4, 0, true, false, 4, 4, true])),
        ("mesh:2x3", serde_json::json!([null, 0, true, true, 3, null, true])),
        ("dgx-a100:boxes=2", serde_json::json!([null, null, null, null, null, null, null])),
    ] {
        assert_eq!(values(expression), expected, "{expression}");
    }
    let shown = workspace.json("topology show distreg:n=80 --json");
    assert_eq!(
        (&shown["direct"]["diameter_min_both_ways"], &shown["direct"]["moore_optimal"]),
        (&4.into(), &false.into())
    );
    let text = workspace.run("topology show genkautz:n=11,d=4").stdout;
    for line in [
        "ports      4 of 25 GB/s at every rank, 4 of all lead back to their own rank\n",
        "steps      at most 2 between any two ranks; the minimum for this many ports is 2\n",
        "ways       links lead one way; another network when all are turned around\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
    let text = workspace.run("topology show distreg:n=80").stdout;
    assert!(text.contains("the minimum for this many ports is 3, 4 where links lead both ways\n"), "{text}");
}

/// A ring of four under other names, and ranks in another order.
const RENAMED: &str = "\
canopy: 1
nodes: [{id: w, rank: 2}, {id: x, rank: 0}, {id: y, rank: 3}, {id: z, rank: 1}]
links:
- {from: w, to: x, bandwidth: 25GB/s, both: true}
- {from: x, to: y, bandwidth: 25GB/s, both: true}
- {from: y, to: z, bandwidth: 25GB/s, both: true}
- {from: z, to: w, bandwidth: 25GB/s, both: true}
";

#[test]
fn show_names_the_family_whatever_nodes_are_called() {
    let workspace = Workspace::new();
    workspace.write("renamed.yaml", RENAMED);
    workspace.write("slow.yaml", RENAMED.replacen("25GB/s", "24GB/s", 1));
    workspace.write("late.yaml", RENAMED.replace("both: true", "both: true, latency: 1us"));
    for (topology, name, expression) in [
        ("renamed.yaml", Some("ring"), Some("ring:4,bw=25GB/s")),
        ("late.yaml", Some("ring"), Some("ring:4,bw=25GB/s,lat=1us")),
        ("slow.yaml", None, None),
        ("rail:boxes=3", Some("rail"), Some("rail:boxes=3,gpus=8,nv=450GB/s,nic=50GB/s")),
        ("fat-tree:k=4,down=c0-p0a0", None, None),
        ("line:1(bipartite:4x4)", None, Some("line:1(bipartite:4x4):bw=25GB/s")),
        ("power:2(diamond):lat=1us", None, Some("power:2(diamond):bw=25GB/s,lat=1us")),
    ] {
        let shown = workspace.json(&format!("topology show {topology} --json"));
        check_members(&shown["family"], &["determined", "name", "expression"]);
        let expected = serde_json::json!({"determined": true, "name": name, "expression": expression});
        assert_eq!(shown["family"], expected, "{topology}");
        let line = format!("family     {}\n", expression.unwrap_or("none of those that expressions name"));
        let text = workspace.run(&format!("topology show {topology}")).stdout;
        assert!(text.contains(&line), "{text}");
        // Which node is which is told by comparing.
        if let Some(expression) = expression {
            assert_eq!(workspace.json(&format!("topology same {topology} {expression} --json"))["same"], true);
        }
    }
    workspace.write("uneven.yaml", RENAMED.replacen("both: true", "both: true, latency: 1us", 1));
    let shown = workspace.json("topology show uneven.yaml --json");
    let expected = serde_json::json!(
        {"determined": true, "name": null, "expression": null, "without_latencies": "ring:4,bw=25GB/s"}
    );
    assert_eq!(shown["family"], expected);
    let text = workspace.run("topology show uneven.yaml").stdout;
    assert!(text.contains("family     ring:4,bw=25GB/s, but for its latencies\n"), "{text}");
    let text = workspace.run("topology show complete:520").stdout;
    assert!(text.contains("family     not looked for among more than 262144 links\n"), "{text}");
}

#[test]
fn hashes_of_shapes_do_not_depend_on_names() {
    let workspace = Workspace::new();
    workspace.write("renamed.yaml", RENAMED);
    let hash = |topology: &str| workspace.json(&format!("topology hash {topology} --json"));
    let (named, renamed) = (hash("ring:4,bw=25GB/s"), hash("renamed.yaml"));
    check_members(&named, &["canopy", "command", "topology", "content", "canonical"]);
    assert_eq!(
        (&named["topology"]["hash_kind"], &named["topology"]["hash"]),
        (&serde_json::json!("canonical"), &named["canonical"])
    );
    assert_eq!(named["canonical"], renamed["canonical"]);
    assert_ne!(named["content"], renamed["content"]);
    assert_ne!(named["canonical"], hash("ring:4,bw=26GB/s")["canonical"]);
    let text = workspace.run("topology hash renamed.yaml").stdout;
    let lines = ["content", "canonical"].map(|name| format!("{name:<11}{}", renamed[name].as_str().unwrap()));
    assert_eq!(text, lines.join("\n") + "\n");
}

#[test]
fn the_same_network_is_told_rank_by_rank() {
    let workspace = Workspace::new();
    workspace.write("renamed.yaml", RENAMED);
    let same = workspace.json("topology same ring:4,bw=25GB/s renamed.yaml --json");
    check_members(&same, &["canopy", "command", "a", "b", "same", "ranks", "nodes"]);
    assert_eq!((&same["same"], &same["a"]["ranks"]), (&true.into(), &4.into()));
    let ranks: Vec<u64> = same["ranks"].as_array().unwrap().iter().map(|rank| rank.as_u64().unwrap()).collect();
    // Around the other ring: 0, 2, 1, 3.
    let around = |rank: u64| [0, 2, 1, 3].iter().position(|&other| other == rank).unwrap();
    for (position, &rank) in ranks.iter().enumerate() {
        let next = ranks[(position + 1) % 4];
        assert_eq!((around(rank) + around(next)) % 2, 1, "{ranks:?}");
        let id = ["x", "z", "w", "y"][usize::try_from(rank).unwrap()];
        assert_eq!(same["nodes"][position], serde_json::json!([position.to_string(), id]));
    }
    let text = workspace.run("topology same torus:4x4,bw=1GB/s hypercube:4,bw=1GB/s").stdout;
    assert_eq!(text.lines().filter(|line| line.contains(" -> rank ")).count(), 16, "{text}");
    let switched = workspace.run("topology same dgx-a100:boxes=2 dgx-a100:boxes=2").stdout;
    assert_eq!(switched.lines().count(), 1 + 16 + 3);
}

#[test]
fn the_first_difference_is_told() {
    let workspace = Workspace::new();
    for (a, b, words) in [
        ("ring:4", "ring:5", "A has 4 ranks, B has 5"),
        ("dgx-a100:boxes=2", "dgx-a100:boxes=2,degrade=b0g3-ib*1/2", "A has 0 links of 12.5 GB/s"),
        ("mesh:1x8", "mesh:2x4,bw=1GB/s", "links of"),
        (
            "rail:boxes=2,gpus=4,nodes-down=b0g0+b0g1",
            "rail:boxes=2,gpus=4,nodes-down=b0g0+b1g1",
            "of nodes with such links",
        ),
    ] {
        workspace.refused(&format!("topology same {a} {b}"), 2, &["not the same network", words]);
        let run = Run::of(workspace.command(&format!("topology same {a} {b} --json")).output().unwrap());
        let told = run.object();
        assert_eq!(run.status, Some(2), "{}", run.stderr);
        assert_eq!(told["same"], false);
        assert!(told["difference"].as_str().unwrap().contains(words), "{told}");
        assert_eq!(told.get("ranks"), None);
    }
    workspace.refused("topology same ring:4", 2, &[]);
}

#[test]
fn an_existing_file_wins_over_an_expression() {
    let workspace = Workspace::new();
    workspace.write("ring:4", UNBALANCED);
    assert_eq!(workspace.json("topology show ring:4 --json")["name"], "funnel");
}

#[test]
fn errors_say_what_was_read_and_where() {
    let workspace = Workspace::new();
    workspace.refused("topology show missing.yaml", 2, &["`missing.yaml` is neither an existing file nor", "ring:8"]);
    workspace.refused("topology show some/where", 2, &["neither an existing file nor a generator expression"]);
    workspace.refused("topology show nonsense", 2, &["`nonsense`"]);
    workspace.refused("topology show ring:1", 2, &["ring:1"]);
    workspace.refused("topology generate ring:99999999", 2, &["limit"]);
    workspace.refused("topology convert missing.yaml --to json", 2, &["missing.yaml: no such file"]);
    workspace.refused("topology generate ring:4 --json", 2, &["--json needs a file", "-o FILE"]);
    workspace.write("typo.yaml", UNBALANCED.replace("bandwidth: 2GB/s", "bandwith: 2GB/s"));
    workspace.refused("topology show typo.yaml", 2, &["typo.yaml", "bandwith"]);
    workspace.write("rate.yaml", UNBALANCED.replacen("bandwidth: 2GB/s", "bandwidth: 2GB", 1));
    workspace.refused("topology show rate.yaml", 2, &["links[0].bandwidth"]);
    for (name, content) in
        [("empty", &b""[..]), ("binary", &[0, 159, 146, 150]), ("xml", b"<system/>"), ("json", b"{}")]
    {
        workspace.write(name, content);
        workspace.refused(&format!("topology show {name}"), 2, &[name]);
        workspace.refused(&format!("topology convert {name} --to json -o out.json"), 2, &[name]);
    }
    workspace.refused("topology show .", 2, &[]);
    assert!(!workspace.path("out.json").exists());
}

#[test]
fn files_over_the_limit_are_refused_before_they_are_read() {
    let workspace = Workspace::new();
    let huge = std::fs::File::create(workspace.path("huge.yaml")).unwrap();
    huge.set_len((64 << 20) + 1).unwrap();
    workspace.refused("topology show huge.yaml", 2, &["huge.yaml", "67108864 bytes", "CANOPY_MAX_REQUEST_BYTES"]);
}

#[test]
fn limits_are_those_of_a_server_by_the_same_variables() {
    let workspace = Workspace::new();
    for (variable, value, words) in [
        ("CANOPY_MAX_NODES", "4", "4"),
        ("CANOPY_MAX_LINKS", "7", "7"),
        ("CANOPY_MAX_NODES", "many", "CANOPY_MAX_NODES"),
    ] {
        let output = workspace.command("topology show ring:8").env(variable, value).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{variable}={value}: {text}");
        assert!(text.contains(words), "{variable}={value}: {text}");
    }
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let workspace = Workspace::new();
    let mut command = workspace.command("topology generate complete:64");
    let mut child = command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert_eq!(output.status.code(), Some(0));
}

/// Bytes per second by hand: N ranks times what leaves the tightest set, over the ranks in it.
#[test]
fn the_machines_in_the_examples_have_the_bounds_of_their_wiring() {
    const GB: u64 = 1_000_000_000;
    let workspace = Workspace::new();
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples");
    for (file, ranks, leaves, inside) in [
        // Each GPU is the tightest: all it sends, for the share of one in N.
        ("dgx-h100", 8, 18 * 25 * GB, 7),
        ("dgx-h100-rails", 16, (450 + 50) * GB, 15),
        // All NICs of a box, for the shares of eight.
        ("dgx-b200-pair", 16, 8 * 50 * GB, 8),
        // The card at half its rate beside NVLink without one switch.
        ("dgx-a100-degraded", 16, 262_500_000_000, 15),
        ("gb200-trays", 8, (900 + 50) * GB, 7),
        ("mi300x", 8, 7 * 64 * GB, 7),
        // A package: two single links to each side, for the shares of the six others.
        ("mi250-four", 8, 4 * 50 * GB, 6),
        ("trn2", 16, 4 * 128 * GB, 15),
        // Two double and two single links.
        ("dgx-1", 8, 6 * 25 * GB, 7),
        ("pcie-box", 4, 24 * GB, 3),
        ("ethernet-leaf-spine", 8, 12_500_000_000, 7),
        ("two-boxes", 8, 4 * 25 * GB, 4),
    ] {
        let bound = workspace.json(&format!("bound {examples}/{file}.yaml --collective allgather --json"));
        let algbw: u64 = ranks * leaves;
        let divisor = (1..=inside).rev().find(|d| algbw.is_multiple_of(*d) && inside % d == 0).unwrap();
        let (numerator, denominator) = (algbw / divisor, inside / divisor);
        let expected = if denominator == 1 { numerator.to_string() } else { format!("{numerator}/{denominator}") };
        assert_eq!((&bound["bound"]["algbw"], &bound["bound"]["tight"]), (&expected.into(), &true.into()), "{file}");
    }
}

#[test]
fn the_schema_of_topology_files_is_printed_and_written() {
    let workspace = Workspace::new();
    let schema = include_str!("../../../crates/topology/schema/topology.schema.json");
    assert_eq!(workspace.run("topology schema").stdout, schema);
    assert_eq!(workspace.run("topology schema -o schema.json").status, Some(0));
    assert_eq!(std::fs::read_to_string(workspace.path("schema.json")).unwrap(), schema);
}

#[test]
fn a_site_states_rates_of_families() {
    let workspace = Workspace::new();
    workspace.write("rates.yaml", "dgx-h100: {nic: 45GB/s}\n");
    workspace.write("wrong.yaml", "dgx-h100: {nik: 45GB/s}\n");
    let with = |file: &str, arguments: &str| {
        Run::of(workspace.command(arguments).env("CANOPY_FAMILY_RATES", workspace.path(file)).output().unwrap())
    };
    let bound = with("rates.yaml", "bound dgx-h100:boxes=2 -c allgather");
    assert!(bound.stdout.contains("\nbound      528 GB/s\n"), "{bound:?}");
    let plan = with("rates.yaml", "plan dgx-h100:boxes=2 -c allgather -o plan.json --json").object();
    // What a GPU sends, 450 + 45 GB/s, for the share of one in sixteen.
    assert_eq!((&plan["bound"], &plan["optimality"]), (&"528000000000".into(), &"1/1".into()));
    assert!(with("rates.yaml", "topology generate dgx-h100:boxes=2,nic=50GB/s").stdout.contains("bandwidth: 50GB/s"));
    let wrong = with("wrong.yaml", "bound dgx-h100:boxes=2 -c allgather");
    assert_eq!(wrong.status, Some(2));
    assert!(wrong.stderr.contains("wrong.yaml: dgx-h100: "), "{wrong:?}");
    // Other networks are as they were, whatever the file says.
    assert_eq!(
        with("rates.yaml", "bound ring:4 -c allgather").stdout,
        workspace.run("bound ring:4 -c allgather").stdout
    );
}
