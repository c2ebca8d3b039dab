//! Lists of links give the networks that they list.

use canopy_topology::{NodeKind, TopologyLimits};

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
