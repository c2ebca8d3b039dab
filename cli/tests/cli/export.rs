//! `canopy tools export`: the real program writes, and what it wrote is read back as other simulators would.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;

use canopy_prerequisites::samples;
use canopy_proto::chakra::attribute::Value;
use canopy_proto::chakra::{GlobalMetadata, Node, NodeType};
use prost::Message as _;
use quick_xml::events::Event;

use crate::support::{Workspace, check_members, sha256};

fn desk_with_plan(topology: &str, collective: &str) -> Workspace {
    let workspace = Workspace::new();
    workspace.json(&format!("plan {topology} --collective {collective} --format json -o plan.json --json"));
    workspace
}

/// The metadata and nodes of a Chakra file.
fn trace(bytes: &[u8]) -> (GlobalMetadata, Vec<Node>) {
    let mut left = bytes;
    let head = GlobalMetadata::decode_length_delimited(&mut left).unwrap();
    let mut nodes = Vec::new();
    while !left.is_empty() {
        nodes.push(Node::decode_length_delimited(&mut left).unwrap());
    }
    (head, nodes)
}

/// A number among a node's attributes.
fn number(node: &Node, name: &str) -> i64 {
    let found =
        node.attr.iter().find(|attribute| attribute.name == name).and_then(|attribute| attribute.value.as_ref());
    match found {
        Some(Value::Int32Val(value)) => i64::from(*value),
        Some(Value::Int64Val(value)) => *value,
        other => panic!("{name} of {} is {other:?}", node.name),
    }
}

/// Bytes sent from rank to rank; every send is received, and everything runs once what it waits for is done.
fn sent_bytes(traces: &[Vec<Node>]) -> BTreeMap<(usize, usize), i64> {
    let mut bytes: BTreeMap<(usize, usize), i64> = BTreeMap::new();
    let mut under_way: BTreeMap<(usize, usize, i64), i64> = BTreeMap::new();
    let mut done: BTreeSet<(usize, u64)> = BTreeSet::new();
    let all = traces.iter().enumerate().flat_map(|(rank, trace)| trace.iter().map(move |node| (rank, node)));
    let mut left: VecDeque<(usize, &Node)> = all.collect();
    let mut idle = 0;
    while let Some((rank, node)) = left.pop_front() {
        let ready = node.data_deps.iter().chain(&node.ctrl_deps).all(|&before| done.contains(&(rank, before)));
        let of = |whom: &str| usize::try_from(number(node, whom)).unwrap();
        let runs = ready
            && match node.r#type() {
                NodeType::CommSendNode => {
                    let (to, tag, size) = (of("comm_dst"), number(node, "comm_tag"), number(node, "comm_size"));
                    assert!(size > 0);
                    *bytes.entry((rank, to)).or_default() += size;
                    assert_eq!(under_way.insert((rank, to, tag), size), None, "a tag twice");
                    true
                }
                NodeType::CommRecvNode => {
                    let found = under_way.remove(&(of("comm_src"), rank, number(node, "comm_tag")));
                    assert!(found.is_none_or(|size| size == number(node, "comm_size")));
                    found.is_some()
                }
                NodeType::CompNode => true,
                other => panic!("{other:?} in a trace"),
            };
        if runs {
            assert!(done.insert((rank, node.id)), "an id twice");
            idle = 0;
        } else {
            left.push_back((rank, node));
            idle += 1;
            assert!(idle <= left.len(), "{} nodes wait in a circle", left.len());
        }
    }
    assert!(under_way.is_empty(), "sends that nobody receives");
    bytes
}

#[test]
fn chakra_traces_carry_what_the_simulation_puts_on_links() {
    // On a ring every message takes one link, so bytes by pair of ranks are bytes by link.
    for (collective, computes) in [("allgather", false), ("allreduce", true)] {
        let workspace = desk_with_plan("ring:8", collective);
        let report = workspace.json("export plan.json --format chakra --size 1000000 --piece 20kB -o out/et --json");
        check_members(&report, &["canopy", "command", "topology", "collective", "format", "sent", "files"]);
        check_members(&report["sent"], &["size_bytes", "piece_bytes", "messages"]);
        let names: Vec<PathBuf> = (0..8).map(|rank| format!("out/et/trace.{rank}.et").into()).collect();
        let files = report["files"].as_array().unwrap();
        let listed: Vec<PathBuf> = files.iter().map(|file| file["path"].as_str().unwrap().into()).collect();
        assert_eq!(listed, names);
        let read: Vec<_> = names.iter().map(|name| trace(&workspace.read(name.to_str().unwrap()))).collect();
        for (head, _) in &read {
            let Some(Value::StringVal(schema)) = &head.attr[0].value else { panic!("{head:?}") };
            assert_eq!((head.attr[0].name.as_str(), schema.as_str()), ("schema", "1.0.2-chakra.0.0.4"));
        }
        let traces: Vec<Vec<Node>> = read.into_iter().map(|(_, nodes)| nodes).collect();
        let is_compute = |node: &Node| node.r#type() == NodeType::CompNode;
        assert_eq!(traces.iter().flatten().any(is_compute), computes);
        let simulated = workspace.json("simulate plan.json --size 1000000 --piece 20kB --links --json");
        assert_eq!(simulated["sizes"][0]["messages"], report["sent"]["messages"]);
        let rank = |end: &serde_json::Value| end.as_str().unwrap().parse::<usize>().unwrap();
        let links = simulated["links"].as_array().unwrap();
        let expected: BTreeMap<(usize, usize), i64> = links
            .iter()
            .map(|link| ((rank(&link["from"]), rank(&link["to"])), link["bytes"].as_i64().unwrap()))
            .collect();
        assert_eq!(sent_bytes(&traces), expected, "{collective}");
        // The same again, to the byte.
        workspace.json("export plan.json --format chakra --size 1000000 --piece 20kB -o again --json");
        for (name, file) in names.iter().zip(files) {
            assert_eq!(file["sha256"], sha256(&workspace.path(name.to_str().unwrap())));
            assert_eq!(
                workspace.read(&format!("again/{}", name.file_name().unwrap().display())),
                workspace.read(name.to_str().unwrap())
            );
        }
    }
}

/// What reads our traces reads those of others: the published ring of eight ranks sends 14 messages of 128 KiB a rank.
#[test]
fn published_traces_are_read_alike() {
    let Some(folder) = samples("chakra/custom_ring_allreduce_8npus_1MB") else { return };
    let read = |rank: usize| trace(&std::fs::read(folder.join(format!("custom_allreduce.{rank}.et"))).unwrap()).1;
    let traces: Vec<Vec<Node>> = (0..8).map(read).collect();
    assert!(traces.iter().all(|trace| trace.len() == 35));
    for node in traces.iter().flatten().filter(|node| node.r#type() == NodeType::CommSendNode) {
        assert_eq!(number(node, "comm_size"), 131_072);
    }
    let sends = |trace: &Vec<Node>| trace.iter().filter(|node| node.r#type() == NodeType::CommSendNode).count();
    assert_eq!(traces.iter().map(sends).sum::<usize>(), 8 * 14);
}

#[test]
fn simgrid_gets_a_platform_and_messages() {
    let workspace = desk_with_plan("dgx-a100:boxes=2,gpus=4", "allgather");
    let report = workspace.json("export plan.json --format simgrid --size 1MiB --piece whole -o sim --json");
    assert_eq!(
        (&report["sent"]["piece_bytes"], &report["files"][1]["path"]),
        (&().into(), &"sim/messages.json".into())
    );
    let platform = String::from_utf8(workspace.read("sim/platform.xml")).unwrap();
    let (mut reader, mut found) = (quick_xml::Reader::from_str(&platform), BTreeMap::<String, usize>::new());
    loop {
        match reader.read_event().unwrap() {
            Event::Eof => break,
            Event::Start(element) | Event::Empty(element) => {
                *found.entry(element.name().as_ref().to_owned()).or_default() += 1;
            }
            _ => {}
        }
    }
    assert_eq!((found["host"], found["router"], found["link"]), (8, 3, 32), "{found:?}");
    let list: serde_json::Value = serde_json::from_slice(&workspace.read("sim/messages.json")).unwrap();
    assert_eq!(list["format"], "simgrid-messages");
    let list = list["messages"].as_array().unwrap();
    assert_eq!(list.len() as u64, report["sent"]["messages"]);
    assert!(list.iter().any(|message| message["after"].as_array().unwrap().is_empty()));
    let text = workspace.run("export plan.json --format simgrid --size 1MiB -o sim");
    assert!(text.stdout.starts_with("allgather on 8 ranks for simgrid, "), "{text:?}");
    assert!(text.stdout.trim_end().ends_with("2 files in sim"), "{text:?}");
}

#[test]
fn astra_networks_are_written_or_refused() {
    let workspace = desk_with_plan("torus:3x5,bw=50GB/s,lat=500ns", "allgather");
    let report = workspace.json("export plan.json --format astra-network -o net --json");
    check_members(&report, &["canopy", "command", "topology", "collective", "format", "files"]);
    let text = String::from_utf8(workspace.read("net/network.yml")).unwrap();
    let lines = ["topology: [ Ring, Ring ]", "npus_count: [ 5, 3 ]", "latency: [ 500.0, 500.0 ]"];
    assert!(lines.iter().all(|line| text.lines().any(|found| found == *line)), "{text}");
    let workspace = desk_with_plan("dgx-a100:boxes=2", "allgather");
    workspace.refused(
        "export plan.json --format astra-network -o net",
        2,
        &["not a product of rings", "--format simgrid"],
    );
    assert!(!workspace.path("net").exists(), "nothing is written");
}

#[test]
fn what_cannot_be_exported_is_refused_with_a_way_out() {
    let workspace = desk_with_plan("ring:3", "allgather");
    workspace.refused("export none.json --format chakra --size 1MiB -o out", 2, &["none.json: no such file"]);
    workspace.refused("export plan.json --format chakra --size 1 -o out", 2, &["has 0 bytes", "--size or --piece"]);
    workspace.refused(
        "export plan.json --format simgrid --size 1GiB --piece 1 -o out",
        2,
        &["messages", "raise --piece"],
    );
    workspace.refused("export plan.json --format simgrid --size 9000000TiB -o out", 2, &["lower --size"]);
    workspace.write("taken", "a file");
    workspace.refused("export plan.json --format simgrid --size 1MiB -o taken", 2, &["cannot write taken"]);
    for wrong in ["--format chakra -o out", "--format simgrid --size 1MiB", "--format dot --size 1MiB -o out"] {
        let run = workspace.run(&format!("export plan.json {wrong}"));
        assert_eq!((run.status, workspace.path("out").exists()), (Some(2), false), "{wrong}");
    }
}
