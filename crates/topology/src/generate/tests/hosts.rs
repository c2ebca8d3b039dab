//! Ranks behind hosts: what stands where, and what is refused.

use super::*;

/// A ring of three: each link leads from a card to the next, and each host has its rate up and down.
#[test]
fn links_end_at_cards_and_hosts_stand_behind_them() {
    let ring = topology("ring:3,bw=2GB/s,lat=1us,host=3GB/s");
    assert_eq!(ids(&ring), ["0", "1", "2", "0.in", "0.out", "1.in", "1.out", "2.in", "2.out"]);
    assert_eq!((ring.rank_count(), ring.links().len()), (3, 6 + 6));
    for (from, to, tenths) in [
        ("0.out", "1.in", 20),
        ("1.out", "0.in", 20),
        ("0.in", "0", 30),
        ("0", "0.out", 30),
        ("0", "0.in", 0),
        ("0", "1.in", 0),
        ("0.in", "0.out", 0),
    ] {
        assert_eq!(rate(&ring, from, to), tenths, "{from} {to}");
    }
    let of_rank = |link: &crate::Link| ring.rank_of(link.from).or(ring.rank_of(link.to)).is_some();
    assert!(ring.links().iter().all(|link| (link.latency.nanos() == 0) == of_rank(link)));
}

/// The card passes on all that can enter it; switches of the network have none.
#[test]
fn cards_that_forward_have_a_way_past_the_host() {
    let boxes = topology("dgx-a100:boxes=2,host=100GB/s,nicforward=true");
    assert_eq!((boxes.rank_count(), boxes.nodes().len(), boxes.links().len()), (16, 3 * 16 + 3, 64 + 3 * 16));
    assert_eq!((rate(&boxes, "b0g3.in", "b0g3.out"), rate(&boxes, "b0g3", "b0g3.out")), (3250, 1000));
    assert_eq!((rate(&boxes, "b0g3.out", "b0nv"), rate(&boxes, "b0nv", "b0g3.in")), (3000, 3000));
    let box_of = |id: &str| boxes.node(boxes.find_node(id).unwrap()).attributes.box_name.clone();
    assert_eq!((box_of("b1g2.out"), box_of("ib")), (Some("b1".to_owned()), None));
    let plain = |last: &str| topology(&format!("ring:8,host=1GB/s{last}")).with_name(None);
    assert_eq!(plain(",nicforward=false"), plain(""));
}

/// What is broken is broken before hosts come in: faults name ranks and links as everywhere, and a card passes on what is left.
#[test]
fn faults_are_those_of_the_network_without_hosts() {
    let torus = topology("torus:3x3,bw=2GB/s,host=3GB/s,nicforward=true,down=00-01,nodes-down=22,degrade=10>11*1/2");
    assert_eq!((torus.rank_count(), torus.find_node("22.in")), (8, None));
    assert_eq!((rate(&torus, "00.out", "01.in"), rate(&torus, "10.out", "11.in")), (0, 10));
    assert_eq!((rate(&torus, "00.in", "00.out"), rate(&torus, "11.in", "11.out")), (60, 70));
    let error = generate("ring:4,host=1GB/s,down=0.out-1.in", &LIMITS).unwrap_err();
    assert_eq!(error.field().as_deref(), Some("down"));
}

/// Ports that lead back to a rank are not what a host sends with, and a network with hosts is not one of ranks alone.
#[test]
fn hosts_have_no_ports_of_the_network() {
    let graph = topology("debruijn:d=2,n=3,host=1GB/s");
    assert!(graph.nodes().iter().all(|node| node.attributes.loops.is_none()));
    assert_eq!((graph.node_bandwidth(), graph.ports(&LIMITS)), (1_000_000_000, None));
    assert_eq!(construction("debruijn:d=2,n=3,host=1GB/s", &LIMITS), Ok(None));
    assert_eq!(construction("line(complete:3):host=1GB/s", &LIMITS), Ok(None));
    assert!(topology("line(complete:3):host=1GB/s").find_node("0~1.in").is_some());
    let within = generate("line(complete:3,host=1GB/s)", &LIMITS).unwrap_err();
    assert_eq!(within.field().as_deref(), Some("host"));
}

#[test]
fn hosts_count_as_nodes_and_links() {
    let limits = TopologyLimits { nodes_max: 24, links_max: 40, ..LIMITS };
    assert!(generate("ring:8,host=1GB/s,nicforward=true", &limits).is_ok());
    assert!(generate("ring:9", &limits).is_ok());
    assert!(generate("ring:9,host=1GB/s", &limits).unwrap_err().is_over_limit());
    let links = TopologyLimits { links_max: 39, ..limits };
    assert!(generate("ring:8,host=1GB/s,nicforward=true", &links).unwrap_err().is_over_limit());
    let huge = format!("ring:3,bw={}B/s,host=1GB/s", u64::MAX);
    assert!(generate(&huge, &LIMITS).is_ok());
    let error = generate(&format!("{huge},nicforward=true"), &LIMITS).unwrap_err();
    assert!(error.to_string().contains("0.in -> 0.out"), "{error}");
}
