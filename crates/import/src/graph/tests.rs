//! Lists of links give the networks that they list.

use canopy_topology::{Link, NodeKind, Topology, TopologyLimits};

use crate::read::{Imported, read};

const LIMITS: TopologyLimits = TopologyLimits::STANDARD;

/// Two ranks and a switch: 12.5 GB/s each way to it, and one link past it.
const CSV: &str = "# by hand\nsrc,dst,bandwidth_GBps,latency_ns\na, switch:s,12.5,700\nswitch:s,a,12.5,700 # back\nb,s,12.5,\n\
    s,b,12.5,700\na,b,1,0\nb,a,1\n";

#[test]
fn rows_are_directed_links() {
    let Imported { topology, report, .. } = read(CSV.as_bytes(), None, &LIMITS).unwrap();
    let ids: Vec<&str> = topology.nodes().iter().map(|node| node.id.as_str()).collect();
    assert_eq!((ids, topology.rank_count()), (vec!["a", "b", "s"], 2));
    assert_eq!(topology.nodes()[2].kind, NodeKind::PLAIN_SWITCH);
    let links = topology.links().iter().map(|link| {
        (link.from.number(), link.to.number(), link.capacity.bytes_per_sec() / 100_000_000, link.latency.nanos())
    });
    let expected = [(0, 1, 10, 0), (0, 2, 125, 700), (1, 0, 10, 0), (1, 2, 125, 0), (2, 0, 125, 700), (2, 1, 125, 700)];
    assert_eq!(links.collect::<Vec<_>>(), expected);
    assert_eq!(report.understood, ["3 nodes and 6 directed links"]);
}

#[test]
fn refusals_name_the_line_and_the_remedy() {
    for (from, to, words) in [
        ("12.5,700\nswitch", "fast,700\nswitch", "line 3: bandwidth_GBps is `fast`; write a number of GB/s"),
        ("12.5,700\nswitch", "-1,700\nswitch", "line 3: bandwidth_GBps is `-1`"),
        ("12.5,700\nswitch", "0,700\nswitch", "line 3: bandwidth_GBps is `0`"),
        ("12.5,700\nswitch", "12.5,x\nswitch", "line 3: latency_ns is `x`"),
        ("b,a,1\n", "b,a\n", "line 8: the row has no bandwidth_GBps"),
        ("b,a,1\n", "b,b,1\n", "line 8: the link leads from `b` to itself"),
        ("b,a,1\n", "switch:b,a,1\n", "line 8: `b` is a rank in a row before; write `switch:b`"),
        ("b,a,1\n", "b c,a,1\n", "line 8: `b c` is no name of a node"),
        ("b,a,1\n", "switch:,a,1\n", "line 8: `switch:` is no name of a node"),
    ] {
        let error = read(CSV.replacen(from, to, 1).as_bytes(), None, &LIMITS).unwrap_err().to_string();
        assert!(error.contains(words), "{to}: {error}");
    }
}

/// Three ranks in a ring, twice, and a switch for each pair. By hand: 50 x 2^30 and 25 x 2^30 bytes per second.
#[test]
fn grids_of_astra_count_the_first_dimension_fastest() {
    let text = include_str!("../../tests/data/astra.yml");
    let Imported { topology, report, .. } = read(text.as_bytes(), None, &LIMITS).unwrap();
    assert_eq!((topology.rank_count(), topology.nodes().len(), topology.links().len()), (6, 9, 12 + 12));
    let id = |node| topology.node(node).id.as_str();
    let has = |from: &str, to: &str, bytes: u64, nanos: u64| {
        topology.links().iter().any(|link| {
            (id(link.from), id(link.to), link.capacity.bytes_per_sec(), link.latency.nanos())
                == (from, to, bytes, nanos)
        })
    };
    assert!(
        has("0", "1", 53_687_091_200, 500) && has("5", "3", 53_687_091_200, 500) && !has("2", "3", 53_687_091_200, 500)
    );
    assert!(has("1", "switch1.1", 26_843_545_600, 936) && has("switch1.1", "4", 26_843_545_600, 936));
    assert_eq!(report.assumed, ["latency[1] of 936.25 ns is rounded down to 936 ns"]);
    for (from, to, words) in [
        ("Ring", "Torus", "topology[0] is `Torus`; use Ring"),
        ("[ 3, 2 ]", "[ 3 ]", "one entry for each"),
        ("[ 3, 2 ]", "[ 3, 0 ]", "npus_count[1] is 0"),
        ("[ 3, 2 ]", "[ 100000, 100000 ]", "limit"),
        ("50.0", "-1", "bandwidth[0] is `-1`"),
        ("500.0", "soon", "latency[0] is `soon`"),
        ("936.25", "9.3625e2", "latency[1] is `9.3625e2`; write a number of nanoseconds such as 936.25"),
        ("936.25", "1.5us", "latency[1] is `1.5us`"),
    ] {
        let error = read(text.replacen(from, to, 1).as_bytes(), None, &LIMITS).unwrap_err().to_string();
        assert!(error.contains(words), "{to}: {error}");
    }
}

/// 400 Gbit/s are 50 GB/s each way to the spine; two directed edges of 12.5 GB/s make one more pair. A comes behind the switch,
/// so that it is rank 0.
#[test]
fn graphs_have_links_each_way_unless_they_are_directed() {
    let text = include_str!("../../tests/data/graph.graphml");
    let Imported { topology, report, .. } = read(text.as_bytes(), None, &LIMITS).unwrap();
    let ids: Vec<&str> = topology.nodes().iter().map(|node| node.id.as_str()).collect();
    assert_eq!((ids, topology.rank_count()), (vec!["a", "b", "s"], 2));
    let links = |topology: &Topology| -> Vec<(u32, u32, u64, u64)> {
        let link = |link: &Link| {
            (link.from.number(), link.to.number(), link.capacity.bytes_per_sec() / 100_000_000, link.latency.nanos())
        };
        topology.links().iter().map(link).collect()
    };
    let expected =
        [(0, 1, 125, 0), (0, 2, 500, 700), (1, 0, 125, 0), (1, 2, 500, 700), (2, 0, 500, 700), (2, 1, 500, 700)];
    assert_eq!(links(&topology), expected);
    assert_eq!(report.understood, ["3 nodes and 6 directed links"]);
    assert_eq!((report.assumed.len(), report.left_out), (0, vec!["attributes of edges: colour".to_owned()]));
    // The edges to the spine lead up alone when the graph is directed, and those that say so still lead one way.
    let one_way = text.replace("\"undirected\"", "\"directed\"");
    let directed = read(one_way.as_bytes(), None, &LIMITS).unwrap().topology;
    assert_eq!(links(&directed), [(0, 1, 125, 0), (0, 2, 500, 700), (1, 0, 125, 0), (1, 2, 500, 700)]);
    // A second edge from a to b of the same latency adds up with the first: 12.5 + 12.5 GB/s.
    let parallel = text.replace("source=\"b\" target=\"a\"", "source=\"a\" target=\"b\"");
    let parallel = read(parallel.as_bytes(), None, &LIMITS).unwrap().topology;
    assert_eq!(links(&parallel)[0], (0, 1, 250, 0));
}

/// Two ranks and an edge, with the keys and data given.
fn graph(keys: &str, edge: &str) -> String {
    let nodes = "<node id=\"a\"/>\n<node id=\"b\"/>";
    format!("<graphml>\n{keys}\n<graph edgedefault=\"undirected\">\n{nodes}\n{edge}\n</graph></graphml>")
}

#[test]
fn attributes_of_graphs_have_several_names() {
    let edge = "<edge source=\"a\" target=\"b\"><data key=\"x\">1.5</data><data key=\"y\">2us</data></edge>";
    let first = |keys: &str| {
        let topology = read(graph(keys, edge).as_bytes(), None, &LIMITS).unwrap().topology;
        (topology.links()[0].capacity.bytes_per_sec(), topology.links()[0].latency.nanos())
    };
    let y = "<key id=\"y\" for=\"edge\" attr.name=\"Latency\"/>";
    let x = |name: &str| format!("<key id=\"x\" for=\"edge\" attr.name=\"{name}\"/>{y}");
    assert_eq!(first(&x("bandwidth_GBps")), (1_500_000_000, 2_000));
    assert_eq!(first(&x("Capacity_GBps")), (1_500_000_000, 2_000));
    // A key without a name is called by its id, and its default counts where an edge says nothing: 8 Gbit/s are 1 GB/s.
    let default = format!("<key id=\"capacity\" for=\"all\"><default>8Gbps</default></key>{}", x("weight"));
    assert_eq!(first(&default), (1_000_000_000, 2_000));
    let Imported { report, .. } = read(graph(&default, edge).as_bytes(), None, &LIMITS).unwrap();
    assert_eq!(report.left_out, ["attributes of nodes: capacity", "attributes of edges: weight"]);
}

#[test]
fn words_of_graphs_tell_switches_from_ranks() {
    let text = include_str!("../../tests/data/graph.graphml");
    let ranks = |from: &str, to: &str| {
        let Imported { topology, report, .. } = read(text.replace(from, to).as_bytes(), None, &LIMITS).unwrap();
        (topology.rank_count(), report.assumed)
    };
    assert_eq!(ranks("\"kind\"", "\"role\""), (2, vec![]));
    assert_eq!(ranks(">spine<", ">Router<"), (2, vec![]));
    assert_eq!(ranks(">spine<", ">GPU<"), (3, vec![]));
    let other = "nodes of these kinds are ranks: `tor`; write `switch` for a switch";
    assert_eq!(ranks(">spine<", ">tor<"), (3, vec![other.to_owned()]));
    let prefixed = text.replace("<data key=\"k\">spine</data>", "").replace("\"s\"", "\"switch:top 1\"");
    let Imported { topology, report, .. } = read(prefixed.as_bytes(), None, &LIMITS).unwrap();
    assert_eq!((topology.rank_count(), topology.nodes()[2].id.as_str()), (2, "top-1"));
    assert_eq!(report.assumed, ["ids have `-` for white space and each of `: > = ,`"]);
}

#[test]
fn refusals_of_graphs_name_the_line_and_the_remedy() {
    let text = include_str!("../../tests/data/graph.graphml");
    for (from, to, words) in [
        ("<default>400Gb/s</default>", "", "GraphML line 8: edge `a` to `s` has no bandwidth; add <data> of a key"),
        ("400Gb/s", "400", "line 8: bandwidth of edge `a` to `s`: `400` has no unit; write `400GB/s` or `400Gb/s`"),
        ("12.5GB/s", "fast", "line 13: bandwidth of edge `a` to `b`: `fast` is not a bandwidth"),
        ("12.5GB/s", "", "line 13: bandwidth of edge `a` to `b`: `` is not"),
        ("12.5GB/s", "25 <!-- --> <!-- -->0GB/s", "line 13: bandwidth of edge `a` to `b`: `25"),
        ("12.5GB/s", "<y/>12.5GB/s", "line 13: `bandwidth` holds <y>; write its value as text"),
        ("&#71;", "&giga;", "line 14, column 79: the entity `&giga;` is not known; write what it stands for"),
        (">700<", ">1.5us<", "line 8: latency_ns of edge `a` to `s`: `1.5usns`"),
        ("\"colour\"", "\"capacity\"", "line 8: capacity of edge `a` to `s`: `red` is not"),
        (
            ">red<",
            ">red</data><data key=\"b\">1GB/s</data><data key=\"b\">2GB/s<",
            "line 8: `bandwidth` is given twice",
        ),
        (
            "<edge source=\"a\" target=\"s\">",
            "<edge source=\"a\" target=\"t\">",
            "line 8: target is `t`, which is no node",
        ),
        ("source=\"a\" target=\"s\"", "source=\"a\"", "line 8: <edge> has no attribute `target`"),
        ("source=\"a\" target=\"s\"", "source=\"s\" target=\"s\"", "line 8: the edge leads from `s` to itself"),
        ("directed=\"true\"", "directed=\"maybe\"", "directed=\"maybe\"; expected `true` or `false`"),
        ("\"undirected\"", "\"both\"", "edgedefault=\"both\"; expected `directed` or `undirected`"),
        ("edgedefault=\"undirected\"", "", "line 7: <graph> has no attribute `edgedefault`"),
        ("<node id=\"b\"/>", "<node id=\"a\"/>", "line 11: a node before has the id `a`, too"),
        ("<node id=\"b\"/>", "<node id=\"switch:\"/>", "line 11: <node> has id=\"switch:\"; expected 1 to 255 bytes"),
        ("<node id=\"b\"/>", "<node id=\"b\"><port name=\"p\"/></node>", "line 11: <port> is not read; join edges to"),
        ("<node id=\"b\"/>", "<node id=\"b\"><graph/></node>", "line 11: <graph> is not read; write all nodes"),
        (
            "<node id=\"b\"/>",
            "<node id=\"b\"/><hyperedge/>",
            "line 11: <hyperedge> is not read; write a node of the kind",
        ),
        ("</graph>", "</graph><graph/>", "line 15: a second <graph> begins"),
        ("key=\"c\"", "key=\"d\"", "line 8: the key `d` is not declared; add <key id="),
        ("id=\"c\"", "id=\"b\"", "line 6: two keys have the id `b`"),
    ] {
        let error = read(text.replacen(from, to, 1).as_bytes(), None, &LIMITS).unwrap_err().to_string();
        assert!(error.contains(words), "{to}: {error}");
    }
    let other = "<a:graphml xmlns:a=\"x\"><graphml/></a:graphml>";
    let error = read(other.as_bytes(), None, &LIMITS).unwrap_err().to_string();
    assert!(error.contains("the root element is `a:graphml`, not `graphml`"), "{error}");
    let error = read(b"<graphml></graphml>", None, &LIMITS).unwrap_err().to_string();
    assert!(error.contains("the file has no <graph>"), "{error}");
}

#[test]
fn graphs_over_the_limits_are_refused() {
    let text = include_str!("../../tests/data/graph.graphml");
    for limits in [TopologyLimits { nodes_max: 2, ..LIMITS }, TopologyLimits { links_max: 5, ..LIMITS }] {
        let error = read(text.as_bytes(), None, &limits).unwrap_err();
        assert!(error.is_over_limit(), "{error}");
    }
}
