//! Every family builds what the expression language promises, and every mistake is told with its place.

mod catalogue;
mod composed;
mod hosts;
mod machines;

use super::*;
use crate::fault::FaultError;
use crate::model::NodeKind;

const LIMITS: TopologyLimits = TopologyLimits::STANDARD;

#[track_caller]
fn topology(expression: &str) -> Topology {
    generate(expression, &LIMITS).unwrap_or_else(|error| panic!("{expression}: {error}"))
}

fn ids(topology: &Topology) -> Vec<&str> {
    topology.nodes().iter().map(|node| node.id.as_str()).collect()
}

/// Tenths of GB/s from one node to another, 0 if there is no link.
fn rate(topology: &Topology, from: &str, to: &str) -> u64 {
    let (from, to) = (topology.find_node(from).unwrap(), topology.find_node(to).unwrap());
    let links = topology.links_from(from).map(|link| topology.link(link)).filter(|link| link.to == to);
    links.map(|link| link.capacity.bytes_per_sec() / 100_000_000).sum()
}

/// Ranks, switches and directed links; every family is Eulerian and strongly connected.
#[track_caller]
fn check_size(expression: &str, ranks: u32, switches: usize, links: usize) {
    let topology = topology(expression);
    let found =
        (topology.rank_count(), topology.nodes().len() - topology.rank_count() as usize, topology.links().len());
    assert_eq!(found, (ranks, switches, links), "{expression}");
    assert_eq!(topology.first_unbalanced(), None, "{expression}");
    assert_eq!(topology.first_unreachable(), None, "{expression}");
    assert_eq!(topology.name(), Some(expression));
}

#[test]
fn sizes_of_all_families() {
    for (expression, ranks, switches, links) in [
        ("ring:8", 8, 0, 16),
        ("ring:2", 2, 0, 2),
        ("ring:8,dir=uni", 8, 0, 8),
        ("ring:2,dir=uni", 2, 0, 2),
        ("ring:3,dir=bi", 3, 0, 6),
        ("mesh:4x4", 16, 0, 48),
        ("mesh:5", 5, 0, 8),
        ("mesh:2x1x3", 6, 0, 14),
        ("torus:4x4x4", 64, 0, 384),
        ("torus:3", 3, 0, 6),
        ("torus:2x2", 4, 0, 8),
        ("torus:1x2x5", 10, 0, 30),
        ("torus:2x2x2x2x2x2", 64, 0, 384),
        ("hypercube:6", 64, 0, 384),
        ("hypercube:1", 2, 0, 2),
        ("complete:8", 8, 0, 56),
        ("bipartite:4x4", 8, 0, 32),
        ("bipartite:1x3", 4, 0, 6),
        ("dragonfly-router:p=4,a=8,h=4", 1056, 264, 5016),
        ("dragonfly-router:p=1,a=1,h=1", 2, 2, 6),
        ("dragonfly-router:p=2,a=2,h=1", 12, 6, 36),
        ("dgx-a100:boxes=2", 16, 3, 64),
        ("dgx-a100:boxes=1", 8, 1, 16),
        ("dgx-a100", 8, 1, 16),
        ("dgx-h100:boxes=4,gpus=2", 8, 5, 32),
        ("mi250:boxes=2", 32, 1, 176),
        ("mi250:boxes=1", 16, 0, 56),
        ("mi250:boxes=2,gpus=8", 16, 1, 76),
        ("rail:boxes=4,gpus=8,nv=450GB/s,nic=50GB/s,spine=0", 32, 12, 128),
        ("rail:boxes=4,gpus=8,spine=100GB/s", 32, 13, 144),
        ("rail:boxes=1,gpus=8,spine=100GB/s", 8, 1, 16),
        ("fat-tree:k=4", 16, 20, 96),
        ("fat-tree:k=2,oversub=5", 2, 5, 12),
        ("leaf-spine:leaves=4,hosts=8,spines=4,oversub=2", 32, 8, 96),
    ] {
        check_size(expression, ranks, switches, links);
    }
}

#[test]
fn grids_are_regular_and_named_by_coordinates() {
    let torus = topology("torus:3x4x5,bw=7GB/s");
    assert!(torus.degrees().iter().all(|degree| *degree == (42_000_000_000, 42_000_000_000)));
    assert_eq!(ids(&torus)[..6], ["000", "001", "002", "003", "004", "010"]);
    for (from, to) in [("000", "100"), ("000", "200"), ("000", "010"), ("000", "030"), ("000", "001"), ("000", "004")] {
        assert_eq!((rate(&torus, from, to), rate(&torus, to, from)), (70, 70), "{from}-{to}");
    }
    assert_eq!(rate(&torus, "000", "020"), 0);
    assert_eq!(ids(&topology("torus:11x2"))[..3], ["0.0", "0.1", "1.0"]);
    assert_eq!(ids(&topology("mesh:10x2"))[18..], ["90", "91"]);
    assert_eq!(ids(&topology("torus:12"))[11], "11");
    let mesh = topology("mesh:3x3");
    assert_eq!((rate(&mesh, "00", "02"), rate(&mesh, "00", "01")), (0, 250));
    assert_eq!(rate(&topology("ring:5,dir=uni"), "1", "0"), 0);
    assert!(topology("hypercube:5").degrees().iter().all(|degree| degree.1 == 125_000_000_000));
    assert_eq!(rate(&topology("hypercube:3"), "5", "4"), 250);
    assert_eq!(rate(&topology("bipartite:2x3"), "0", "1"), 0);
    assert_eq!(rate(&topology("bipartite:2x3"), "1", "4"), 250);
}

#[test]
fn boxes_have_their_rates_and_attributes() {
    let a100 = topology("dgx-a100:boxes=2");
    assert_eq!((rate(&a100, "b0g3", "b0nv"), rate(&a100, "ib", "b1g7"), rate(&a100, "b0g3", "b1nv")), (3000, 250, 0));
    let h100 = topology("dgx-h100:boxes=2");
    assert_eq!((rate(&h100, "b1g0", "b1nv"), rate(&h100, "b1g0", "ib")), (4500, 500));
    let box_of = |id: &str| a100.node(a100.find_node(id).unwrap()).attributes.box_name.clone();
    assert_eq!((box_of("b1g2"), box_of("b1nv"), box_of("ib")), (Some("b1".to_owned()), Some("b1".to_owned()), None));
    assert_eq!(a100.find_node("b1g2").map(|node| node.number()), Some(10));

    let mi250 = topology("mi250:boxes=2");
    assert_eq!(mi250.nodes().len(), 33);
    for (from, to, tenths) in [
        ("b0g0", "b0g1", 2000),
        ("b1g15", "b1g11", 1000),
        ("b0g10", "b0g14", 500),
        ("ib", "b1g9", 160),
        ("b0g0", "b0g3", 0),
    ] {
        assert_eq!(rate(&mi250, from, to), tenths, "{from} {to}");
    }
    // Seven 50 GB/s links and one of 16 GB/s at every GPU.
    assert!(mi250.degrees()[..32].iter().all(|degree| *degree == (366_000_000_000, 366_000_000_000)));

    let rail = topology("rail:boxes=3,gpus=2,nv=100GB/s,nic=10GB/s,spine=30GB/s");
    assert_eq!(
        (rate(&rail, "b2g1", "rail1"), rate(&rail, "b2g1", "rail0"), rate(&rail, "rail1", "spine")),
        (100, 0, 300)
    );
    let rail_of = |id: &str| rail.node(rail.find_node(id).unwrap()).attributes.rail.clone();
    assert_eq!(
        (rail_of("b2g1"), rail_of("rail1"), rail_of("b2nv")),
        (Some("rail1".to_owned()), Some("rail1".to_owned()), None)
    );
}

#[test]
fn fabrics_have_their_wiring() {
    let tree = topology("fat-tree:k=4,oversub=2,host-bw=50GB/s");
    for (from, to, tenths) in [
        ("h0", "p0e0", 500),
        ("h3", "p0e1", 500),
        ("h5", "p1e0", 500),
        ("p1e0", "p1a1", 250),
        ("p3a0", "c1", 250),
        ("p3a1", "c2", 250),
        ("p3a1", "c1", 0),
    ] {
        assert_eq!((rate(&tree, from, to), rate(&tree, to, from)), (tenths, tenths), "{from} {to}");
    }
    let fabric = topology("leaf-spine:leaves=4,hosts=8,spines=4,oversub=2");
    assert_eq!((rate(&fabric, "h15", "leaf1"), rate(&fabric, "leaf1", "spine3")), (250, 250));
    let error = generate("leaf-spine:leaves=4,hosts=8,spines=3,oversub=7", &LIMITS).unwrap_err();
    assert!(matches!(error, ExpressionError::NotExact { divisor: 21, .. }), "{error}");
    assert!(generate("fat-tree:k=4,oversub=3", &LIMITS).is_err());
    assert!(generate("fat-tree:k=4,oversub=3,host-bw=3B/s", &LIMITS).is_ok());
}

#[test]
fn random_networks_are_eulerian_connected_and_the_same_every_time() {
    for seed in 0..40 {
        for (n, switches) in [(2, 0), (2, 1), (5, 0), (9, 4), (64, 8)] {
            let expression = format!("random-euler:n={n},switches={switches},seed={seed}");
            let network = topology(&expression);
            assert_eq!((network.rank_count(), network.nodes().len()), (n, n as usize + switches), "{expression}");
            assert_eq!((network.first_unbalanced(), network.first_unreachable()), (None, None), "{expression}");
            assert_eq!(network, topology(&expression));
        }
    }
    let network = topology("random-euler:n=64");
    assert_eq!(network, topology("random-euler:n=64,switches=8,seed=1").with_name(network.name().map(str::to_owned)));
    assert_ne!(network.links(), topology("random-euler:n=64,seed=2").links());
    let one_way = network
        .links()
        .iter()
        .filter(|link| !network.links_from(link.to).any(|back| network.link(back).to == link.from));
    let one_way = one_way.count();
    assert!(
        one_way > 50 && network.links().len() - one_way > 50,
        "{one_way} of {} links lead one way",
        network.links().len()
    );
    assert!(network.nodes()[64..].iter().all(|node| node.kind == NodeKind::PLAIN_SWITCH && node.id.starts_with('s')));
}

#[test]
fn common_keys_apply_to_every_family() {
    let slow = topology("ring:4,lat=500ns");
    assert!(slow.links().iter().all(|link| link.latency.nanos() == 500));

    let torus = topology("torus:3x3x3,down=100-110+012>112,nodes-down=212+020");
    assert_eq!((torus.rank_count(), torus.find_node("212")), (25, None));
    assert_eq!((rate(&torus, "100", "110"), rate(&torus, "110", "100")), (0, 0));
    assert_eq!((rate(&torus, "012", "112"), rate(&torus, "112", "012")), (0, 250));
    assert_eq!(torus.rank_of(torus.find_node("222").unwrap()).map(|rank| rank.number()), Some(24));

    let degraded = topology("dgx-a100:boxes=2,degrade=b0g3-ib*1/2+b0g4>ib*3/5");
    assert_eq!((rate(&degraded, "b0g3", "ib"), rate(&degraded, "ib", "b0g3")), (125, 125));
    assert_eq!((rate(&degraded, "b0g4", "ib"), rate(&degraded, "ib", "b0g4")), (150, 250));
    // A switch can be down too.
    assert_eq!(topology("dgx-a100:boxes=2,nodes-down=b0nv").nodes().len(), 18);
}

#[test]
fn faults_that_do_not_apply_are_named() {
    for (expression, key, words) in [
        ("ring:4,down=0-9", "down", "no node `9`"),
        ("ring:4,down=0-1+0-2", "down", "down=0-2: the topology has no link 0 -> 2"),
        ("ring:4,dir=uni,down=0-1", "down", "or the other direction"),
        ("ring:4,nodes-down=0+7", "nodes-down", "no node `7`"),
        ("ring:4,degrade=0-1*3/2", "degrade", "above 0 and up to 1"),
        ("ring:4,degrade=0-1*0/2", "degrade", "take the link down"),
        ("ring:4,degrade=0-1*1/0", "degrade", "above 0 and up to 1"),
    ] {
        let error = generate(expression, &LIMITS).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
        assert_eq!(error.field().as_deref(), Some(key), "{error}");
    }
    for expression in [
        "ring:4,down=0",
        "ring:4,down=0-1-2",
        "ring:4,down=+",
        "ring:4,down=0-1+",
        "ring:4,degrade=0-1",
        "ring:4,degrade=0-1*x/2",
        "ring:4,degrade=0-1*1/",
        "ring:4,nodes-down=+0",
        "ring:4,degrade=0-1*-1/2",
        "ring:4,down=-1",
    ] {
        let error = generate(expression, &LIMITS).unwrap_err();
        assert!(matches!(error, ExpressionError::Value { .. }), "{expression}: {error}");
    }
    let error = generate("ring:4,nodes-down=0+1+2", &LIMITS).unwrap_err();
    assert!(matches!(error, ExpressionError::Faults(FaultError::TooFewRanks { left: 1 })), "{error}");
    assert_eq!(error.to_string(), "the faults leave 1 compute nodes; leave at least two");
}

#[test]
fn oversized_networks_are_refused_before_they_are_built() {
    for expression in [
        "torus:99999999x99999999",
        "torus:99999999999999999999999999x99999999999999999999999999",
        "mesh:100000000000000",
        "ring:10001",
        "ring:99999999999999999999,dir=uni",
        "hypercube:14",
        "hypercube:127",
        "hypercube:128",
        "hypercube:99999999999999999999999",
        "complete:1001",
        "complete:99999999999999999999",
        "bipartite:1000x1000",
        "bipartite:99999999999999999999x99999999999999999999",
        "dgx-a100:boxes=99999999999,gpus=999999999999",
        "dgx-h100:boxes=99999999999999999999",
        "mi250:boxes=18446744073709551615",
        "rail:boxes=18446744073709551615,gpus=18446744073709551615,spine=1GB/s",
        "fat-tree:k=100",
        "fat-tree:k=18446744073709551614",
        "leaf-spine:leaves=18446744073709551615,hosts=18446744073709551615,spines=18446744073709551615",
        "random-euler:n=18446744073709551615,switches=18446744073709551615",
        "random-regular:n=18446744073709551615,d=18446744073709551615",
        "random-regular:n=4,d=18446744073709551615",
        "dragonfly-router:p=18446744073709551615,a=18446744073709551615,h=18446744073709551615",
        "torus:10x10x10x10x10x10x10x10x10x10x10x10x10x10x10x10x10x10x10x10x10x10x10x10x10x10x10x10x10x10x10x10x10x10x10x10x10x10x10x10x10",
    ] {
        let error = generate(expression, &LIMITS.searched()).unwrap_err();
        assert!(error.is_over_limit(), "{expression}: {error}");
    }
    let error = generate("torus:99999999x99999999", &LIMITS).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the topology has 9999999800000001 nodes, over the limit of 200000; send a smaller one or raise the limit"
    );
    assert!(generate(&format!("ring:8,down={}", "0-1+".repeat(20_000)), &LIMITS).unwrap_err().is_over_limit());
    assert!(generate(&"line(".repeat(10_000), &LIMITS).unwrap_err().is_over_limit());
}

#[test]
fn undersized_networks_are_refused() {
    for expression in [
        "ring:1",
        "ring:1,dir=uni",
        "mesh:1x1",
        "torus:1",
        "complete:1",
        "dgx-a100:boxes=1,gpus=1",
        "rail:boxes=1,gpus=1",
        "leaf-spine:leaves=1,hosts=1,spines=1",
        "random-euler:n=1",
        "random-regular:n=1,d=2",
    ] {
        let error = generate(expression, &LIMITS).unwrap_err();
        assert_eq!(
            error.to_string(),
            "a topology needs at least two compute nodes, and this one has 1",
            "{expression}"
        );
    }
    for expression in [
        "ring:0",
        "mesh:4x0",
        "torus:x4",
        "torus:4x",
        "torus:-4x4",
        "hypercube:0",
        "complete:1.5",
        "bipartite:4",
        "bipartite:4x4x4",
        "bipartite:0x4",
        "dgx-a100:boxes=0",
        "dgx-a100:gpus=-8",
        "mi250:gpus=7",
        "rail:boxes=two",
        "fat-tree:k=0",
        "fat-tree:k=3",
        "fat-tree:k=4,oversub=0",
        "leaf-spine:leaves=0,hosts=1,spines=1",
        "random-euler:n=0",
        "random-regular:n=4,d=0",
        "random-regular:n=4,d=1,seed=-1",
        "dragonfly-router:p=0,a=1,h=1",
        "dragonfly-router:p=1,a=0,h=1",
        "dragonfly-router:p=1,a=1,h=0",
        "random-euler:n=4,seed=-1",
        "random-euler:n=4,seed=99999999999999999999",
        "ring:8,dir=left",
        "ring:٣",
    ] {
        let error = generate(expression, &LIMITS).unwrap_err();
        assert!(matches!(error, ExpressionError::Value { .. }), "{expression}: {error}");
    }
}

#[test]
fn mistakes_are_told_with_their_position() {
    for (expression, message) in [
        ("", "position 1: found the end, expected the name of a family or operator"),
        ("  ", "position 1: found the end, expected the name of a family or operator"),
        (":8", "position 1: found `:`, expected the name of a family or operator"),
        ("ring:", "position 6: found the end, expected a value or `key=value`"),
        ("ring:8,", "position 8: found the end, expected a value or `key=value`"),
        ("ring:8,,bw=1GB/s", "position 8: found `,`, expected a value or `key=value`"),
        ("ring:8,bw=", "position 8: found `b`, expected `key=value` with a key and a value"),
        ("ring:8,=1", "position 8: found `=`, expected `key=value` with a key and a value"),
        ("ring:8;ring:8", "position 7: found `;`, expected `,` or the end"),
        ("ring:8)", "position 7: found `)`, expected `,` or the end"),
        ("ring,8", "position 5: found `,`, expected `,` or the end"),
        ("ring 8", "position 5: found ` `, expected an expression without white space"),
        ("ring:8,bw=25 GB/s", "position 13: found ` `, expected an expression without white space"),
        ("ring:8,16", "position 8: `16` has no key, which only the first argument may omit; write `key=value`"),
        ("ring:bw=1GB/s,8", "position 15: `8` has no key, which only the first argument may omit; write `key=value`"),
        (
            "rail:4",
            "position 6: `rail` takes no value without a key, found `4`; write it as in `rail:boxes=4,gpus=8,nv=450GB/s,nic=50GB/s`",
        ),
        ("ring", "`ring` needs a number of ranks, as in `ring:8`"),
        ("torus:bw=1GB/s", "`torus` needs extents, as in `torus:4x4x4`"),
        ("fat-tree", "`fat-tree` needs `k`, as in `fat-tree:k=4,oversub=1`"),
        ("ring:8,bandwidth=1", "position 8: `ring` has no key `bandwidth`; did you mean `bw`?"),
        ("dgx-h100:nodes=2", "position 10: `dgx-h100` has no key `nodes`; did you mean `boxes`?"),
        ("gb200-nvl72:nodes=2", "position 13: `gb200-nvl72` has no key `nodes`; did you mean `racks`?"),
        (
            "dgx-a100:boxes=2,bw=1GB/s",
            "position 18: `dgx-a100` has no key `bw`; use boxes, gpus, nv, nics, nic, nvls, sharp, lat, down, nodes-down, degrade, faults, host, nicforward",
        ),
        ("ring:8,bw=1GB/s,bw=1GB/s", "position 17: `bw` is given twice; give it once"),
        (
            "ring:8,bw=fast",
            "position 8: bw: `fast` is not a bandwidth; write a number without sign or exponent, then a unit, such as `25GB/s`",
        ),
        ("ring:8,lat=5GB/s", "position 8: lat: `5GB/s`: `GB/s` is not a unit of latency; use ns, us, ms or s"),
        ("ring:8,bw=25", "position 8: bw: `25` has no unit; write `25GB/s` or `25Gb/s`"),
        ("ring:8,lat=3", "position 8: lat: `3` has no unit; write `3ns` or `3us`"),
        ("ring:8,bw=0", "position 8: bw: `0` is zero; leave out links that carry nothing"),
        ("ring:8,nicforward=true", "position 8: `nicforward` needs `host`; give both"),
        ("ring:8,host=5GB/s,nicforward=yes", "position 19: `nicforward` cannot be `yes`; expected `true` or `false`"),
        ("ring:8,host=0", "position 8: host: `0` is zero; leave out links that carry nothing"),
        ("ring:a", "position 6: `size` cannot be `a`; expected whole numbers from 1"),
        ("mi250:gpus=7", "position 7: `gpus` cannot be `7`; expected 8 or 16"),
    ] {
        assert_eq!(generate(expression, &LIMITS).unwrap_err().to_string(), message, "{expression}");
    }
}

#[test]
fn unknown_families_get_a_suggestion() {
    for (expression, message) in [
        ("rings:8", "position 1: unknown family `rings`; did you mean `ring`?"),
        ("h100:boxes=2", "position 1: unknown family `h100`; did you mean `dgx-h100`?"),
        ("zzz", "position 1: unknown family `zzz`; `canopy network families` lists all"),
    ] {
        assert_eq!(generate(expression, &LIMITS).unwrap_err().to_string(), message);
    }
}

#[test]
fn families_are_found_in_any_case_and_with_or_without_hyphens() {
    let expected = topology("dgx-a100:boxes=2");
    for expression in ["DGX-A100:boxes=2", "dgxa100:boxes=2", "Dgx_A100:boxes=2"] {
        assert_eq!(topology(expression).links(), expected.links(), "{expression}");
    }
}

#[test]
fn every_example_of_a_family_works() {
    for family in families::FAMILIES {
        let topology = topology(family.takes.example);
        assert!(
            topology.nodes().iter().all(|node| !node.id.contains(['-', '>', '+', ',', ';', '(', ')'])),
            "{}",
            family.takes.name
        );
    }
}

#[test]
fn a_random_regular_network_gives_every_rank_its_degree() {
    for (n, d, seed) in [(2, 1, 1), (2, 5, 3), (9, 4, 1), (64, 4, 1), (64, 4, 2)] {
        let topology = topology(&format!("random-regular:n={n},d={d},seed={seed},bw=1GB/s"));
        assert_eq!((topology.rank_count(), topology.nodes().len()), (n, n as usize));
        for rank in topology.ranks() {
            let sent: u64 =
                topology.links_from(rank.node()).map(|link| topology.link(link).capacity.bytes_per_sec()).sum();
            assert_eq!(sent, d * 1_000_000_000);
        }
        assert_eq!((topology.first_unbalanced(), topology.first_unreachable()), (None, None));
    }
    let links = |seed: u64| topology(&format!("random-regular:n=64,d=4,seed={seed}")).links().to_vec();
    assert_ne!(links(1), links(2));
}

#[test]
fn every_two_groups_of_a_dragonfly_share_one_link_and_ports_are_spread() {
    let (a, h) = (3, 2);
    let topology = topology("dragonfly-router:p=1,a=3,h=2,global=7GB/s");
    let groups = a * h + 1;
    let global = |from: usize, to: usize| {
        (0..a)
            .flat_map(|one| (0..a).map(move |other| (one, other)))
            .map(|(one, other)| rate(&topology, &format!("g{from}r{one}"), &format!("g{to}r{other}")))
            .sum::<u64>()
    };
    for from in 0..groups {
        for to in (0..groups).filter(|&to| to != from) {
            assert_eq!(global(from, to), 70, "{from} -> {to}");
        }
        for router in 0..a {
            let node = topology.find_node(&format!("g{from}r{router}")).unwrap();
            let outside =
                topology.links_from(node).filter(|&link| topology.link(link).capacity.bytes_per_sec() == 7_000_000_000);
            assert_eq!(outside.count(), h);
        }
    }
}

#[test]
fn every_key_of_every_family_has_a_meaning() {
    for family in families() {
        for key in family.keys.iter().chain(COMMON_KEYS) {
            assert!(key_meaning(key).is_some(), "{}: {key}", family.name);
        }
    }
    assert_eq!(key_meaning("colour"), None);
}
