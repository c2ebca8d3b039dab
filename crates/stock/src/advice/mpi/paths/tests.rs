//! Paths and rounds on small networks.

use canopy_topology::{TopologyLimits, generate, read_document};

use super::*;

fn network(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap()
}

/// A round that passes a shared link takes as long as all its messages there.
#[test]
fn messages_share_links() {
    let topology = network("ring:6");
    let paths = Paths::new(&topology, 6, 1_000);
    let rate = topology.links()[0].capacity.bytes_per_sec();
    let link_ns = topology.links()[0].latency.nanos();
    let message = |from, to| Message { from, to, parts: 1 };
    let lines = paths.lines(&[message(0, 1)]);
    assert_eq!(lines, [Line { latency_ns: 1_000 + link_ns, parts: 1, rate }]);
    // Both pass 0 -> 1; the second has another link behind it.
    let lines = paths.lines(&[message(0, 1), message(0, 2)]);
    assert_eq!(lines, [Line { latency_ns: 2_000 + 2 * link_ns, parts: 2, rate }]);
    let bytes = 6_000_000;
    let expected = u128::from(2_000 + 2 * link_ns) * 1_000 + 2 * u128::from(bytes) * 10_u128.pow(12) / u128::from(rate);
    assert_eq!(lines[0].time_ps(bytes, 1), expected);
    assert_eq!(lines[0].time_ps(2 * bytes, 2), expected);
}

/// Inside a box the path goes over NVSwitch, across boxes over the fabric.
#[test]
fn paths_have_fewest_links() {
    let topology = network("dgx-a100:boxes=2");
    let paths = Paths::new(&topology, 16, 0);
    for to in 1..16 {
        let nodes: Vec<&str> =
            paths.path(0, to).into_iter().map(|link| topology.node(topology.link(link).from).id.as_str()).collect();
        assert_eq!(nodes.len(), 2, "{nodes:?}");
        assert_eq!(nodes[0].contains("nv"), to < 8, "{nodes:?}");
    }
    assert!(paths.path(3, 3).is_empty());
}

/// Of equally short paths the one whose least rate is greatest is taken.
#[test]
fn a_wider_path_is_preferred() {
    let text = "canopy: 1\nnodes:\n  - {id: a, rank: 0}\n  - {id: b, rank: 1}\n  - {id: s, kind: switch}\n  - {id: t, kind: switch}\n\
                links:\n  - {from: a, to: s, bandwidth: 10GB/s, both: true}\n  - {from: s, to: b, bandwidth: 10GB/s, both: true}\n  \
                - {from: a, to: t, bandwidth: 30GB/s, both: true}\n  - {from: t, to: b, bandwidth: 20GB/s, both: true}\n";
    let read = read_document(text.as_bytes(), None, &TopologyLimits::STANDARD).unwrap();
    let topology = read.topology;
    let paths = Paths::new(&topology, 9, 0);
    assert_eq!(paths.ranks(), 2);
    let lines = paths.lines(&[Message { from: 0, to: 1, parts: 1 }]);
    assert_eq!(lines.iter().map(|line| line.rate).collect::<Vec<_>>(), [20_000_000_000]);
}
