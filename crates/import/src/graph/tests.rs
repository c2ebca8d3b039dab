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
        ("b,a,1\n", "b,b,1\n", "leads from `b` to itself"),
    ] {
        let error = read(CSV.replacen(from, to, 1).as_bytes(), None, &LIMITS).unwrap_err().to_string();
        assert!(error.contains(words), "{to}: {error}");
    }
}
