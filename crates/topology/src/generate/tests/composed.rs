//! Compositions: ids, links, rates, and what cannot be composed.

use proptest::prelude::*;

use super::*;
use crate::document::{read_document, to_yaml};
use crate::hash::content_hash;

#[test]
fn sizes_of_compositions() {
    for (expression, ranks, links) in [
        ("line(ring:4)", 8, 16),
        ("line:2(bipartite:4x4):bw=10GB/s", 128, 512),
        ("line:3(bipartite:4x4)", 512, 2048),
        ("line(bipartite:2x3)", 12, 30),
        ("line(mesh:3)", 4, 6),
        ("product(ring:4;complete:3)", 12, 48),
        ("degree:2(ring:4)", 8, 32),
        ("degree:3(complete:2)", 6, 18),
        ("power:3(bipartite:2x2)", 64, 384),
        ("power:2(diamond)", 64, 256),
        ("bidirect(kautz:d=2,n=3)", 12, 42),
        ("bidirect(uniring:n=5)", 5, 10),
        ("line:2(power:2(diamond))", 1024, 4096),
        ("line:9(bipartite:2x2)", 2048, 4096),
        ("product(biring:n=8;power:2(uniring:n=4))", 128, 512),
        ("line(product(power:3(uniring:n=4);uniring:n=2))", 512, 2048),
        ("degree:2(line:1(product(ring:3;ring:3))):lat=1us,bw=2B/s", 72, 576),
        ("product(random-regular:n=5,d=2,seed=1;ring:3)", 15, 54),
        ("product(dragonfly:2x3;ring:1)", 6, 12),
        ("product(dims:ring2+fc3,bw=2GB/s+1GB/s;ring:3)", 18, 90),
        ("power:1(ring:4)", 4, 8),
        ("line(uniring:n=3)", 3, 3),
    ] {
        let network = topology(expression);
        assert_eq!((network.rank_count(), network.links().len()), (ranks, links), "{expression}");
        assert_eq!((network.first_unreachable(), network.name()), (None, Some(expression)), "{expression}");
    }
}

#[test]
fn nodes_are_called_by_what_they_are_made_of() {
    assert_eq!(ids(&topology("line(uniring:n=3)")), ["0~1", "1~2", "2~0"]);
    assert_eq!(ids(&topology("line:2(complete:2)")), ["0~1~0", "1~0~1"]);
    assert_eq!(ids(&topology("line(uniring:n=2,d=2)")), ["0~1", "0~1#2", "1~0", "1~0#2"]);
    assert_eq!(ids(&topology("line:2(uniring:n=2,d=2)"))[..4], ["0~1~0", "0~1~0#2", "0~1#2~0", "0~1#2~0#2"]);
    assert_eq!(ids(&topology("degree:2(complete:2)")), ["0.0", "0.1", "1.0", "1.1"]);
    assert_eq!(ids(&topology("product(mesh:1x2;complete:3)"))[..4], ["00.0", "00.1", "00.2", "01.0"]);
    assert_eq!(ids(&topology("power:3(complete:2)"))[5], "1.0.1");
    assert_eq!(ids(&topology("product(line(complete:2);uniring:n=2)"))[..2], ["0~1.0", "0~1.1"]);
    assert_eq!(ids(&topology("bidirect(kautz:d=2,n=2)"))[..2], ["01", "02"]);
    // Names that look like those of parallel links are told apart all the same.
    let doubled = topology("line(bidirect(line(uniring:n=2,d=2)))");
    assert_eq!(doubled.rank_count(), 16);
}

#[test]
fn links_of_compositions_are_those_of_their_operators() {
    let line = topology("line(uniring:n=3,bw=3GB/s)");
    assert_eq!((rate(&line, "0~1", "1~2"), rate(&line, "1~2", "0~1")), (30, 0));
    let copies = topology("degree:2(uniring:n=3,d=2,bw=1GB/s)");
    assert_eq!((rate(&copies, "0.1", "1.0"), rate(&copies, "0.0", "0.1"), rate(&copies, "1.0", "0.1")), (20, 0, 0));
    // Each factor has its own rate and latency; what is said of the whole holds for all.
    let mixed = topology("product(ring:3,bw=3GB/s,lat=1us;complete:3,bw=1GB/s)");
    assert_eq!((rate(&mixed, "0.0", "1.0"), rate(&mixed, "0.0", "0.1"), rate(&mixed, "0.0", "1.1")), (30, 10, 0));
    assert_eq!(mixed.links().iter().filter(|link| link.latency.nanos() == 1000).count(), 18);
    let alike = topology("product(ring:3,bw=3GB/s,lat=1us;complete:3,bw=1GB/s):bw=2GB/s,lat=3ns");
    assert!(
        alike.links().iter().all(|link| (link.capacity.bytes_per_sec(), link.latency.nanos()) == (2_000_000_000, 3))
    );
    let uneven = topology("bidirect(product(uniring:n=3,bw=3GB/s;uniring:n=4,d=2,bw=1GB/s))");
    assert_eq!((rate(&uneven, "0.0", "1.0"), rate(&uneven, "1.0", "0.0"), rate(&uneven, "0.1", "0.0")), (30, 30, 20));
    // Weighted factors keep their wires through copies too.
    let weighted = topology("degree:2(dragonfly:2x3,local=2GB/s,global=1GB/s)");
    assert_eq!((rate(&weighted, "0.1", "1.0"), rate(&weighted, "0.0", "3.1")), (20, 10));
    // Faults are said of the whole.
    let faulty = topology("product(ring:3;ring:3):down=0.0-0.1,nodes-down=2.2");
    assert_eq!((faulty.rank_count(), rate(&faulty, "0.0", "0.1")), (8, 0));
}

#[test]
fn loops_stay_ports_of_what_is_made_of_them() {
    let line = topology("line(debruijn:d=2,n=2):bw=1GB/s");
    assert_eq!((line.rank_count(), line.node_bandwidth()), (8, 2_000_000_000));
    assert_eq!(line.nodes().iter().filter(|node| node.attributes.loops.is_some()).count(), 2);
    let both = topology("bidirect(debruijn:d=2,n=2):bw=1GB/s");
    assert_eq!(both.nodes()[0].attributes.loops.map(|loops| loops.bytes_per_sec()), Some(2_000_000_000));
    assert!(both.node_bandwidth() == 4_000_000_000);
    let product = topology("product(debruijn:d=2,n=2;complete:2):bw=1GB/s");
    assert_eq!((product.node_bandwidth(), product.rank_count()), (3_000_000_000, 8));
}

#[test]
fn what_cannot_be_composed_is_refused_with_its_place() {
    for (expression, message) in [
        ("line", "position 5: found the end, expected `(` and an expression"),
        ("line:(ring:4)", "position 6: found `(`, expected a number and `(`"),
        ("line:x(ring:4)", "position 6: found `x`, expected a number and `(`"),
        ("line:2", "position 7: found the end, expected `(` and an expression"),
        ("line:2()", "position 8: found `)`, expected the name of a family or operator"),
        ("line:2(ring:4", "position 14: found the end, expected `;` or `)`"),
        ("product(ring:4;)", "position 16: found `)`, expected the name of a family or operator"),
        ("line:2(ring:4)5", "position 15: found `5`, expected `,` or the end"),
        ("line:2(ring:4):", "position 16: found the end, expected a value or `key=value`"),
        (
            "ring(4)",
            "position 5: found `(`, expected `:` and arguments, because only line, degree, power, product and bidirect take parentheses",
        ),
        ("line:0(ring:4)", "position 6: `number` cannot be `0`; expected whole numbers from 1"),
        ("power(ring:4)", "`power` needs the number in `power:2(…)`, as in `power:2(complete:4)`"),
        ("degree(ring:4)", "`degree` needs the number in `degree:2(…)`, as in `degree:2(ring:4)`"),
        ("product:2(ring:4)", "position 1: `product` takes no number; write it without"),
        ("bidirect:2(ring:4)", "position 1: `bidirect` takes no number; write it without"),
        (
            "line(ring:4;ring:5)",
            "position 1: `line` takes one expression; only product takes several, with `;` between them",
        ),
        ("power:2(anything)", "position 9: unknown family `anything`; `canopy network families` lists all"),
        ("line(dgx-a100:boxes=2)", "position 6: `dgx-a100` has switches, and operators take networks of ranks only"),
        ("product(ring:4;dims:switch4)", "position 16: `dims` has switches, and operators take networks of ranks only"),
        (
            "degree:2(debruijn:d=2,n=3)",
            "position 1: `degree` is not defined for networks with links from a node to itself, such as some genkautz and debruijn",
        ),
        (
            "line(dragonfly:2x3)",
            "position 1: `line` needs links of one rate and one latency; give it `bw` and `lat` of its own",
        ),
        (
            "line(product(ring:3;ring:3,lat=1us)):bw=1GB/s",
            "position 1: `line` needs links of one rate and one latency; give it `bw` and `lat` of its own",
        ),
        ("line(torus:1)", "position 1: `line` needs a network with links"),
        (
            "product(ring:4,down=0-1;ring:3)",
            "position 16: `down` belongs to the whole network; write it after the last parenthesis",
        ),
        (
            "line(product(ring:4;ring:3):faults=gpus:1)",
            "position 29: `faults` belongs to the whole network; write it after the last parenthesis",
        ),
        (
            "power:2(ring:4):n=3",
            "position 17: `power` has no key `n`; use bw, lat, down, nodes-down, degrade, faults, host, nicforward",
        ),
        (
            "power:2(ring:4):3",
            "position 17: `power` takes no value without a key, found `3`; write it as in `power:2(complete:4)`",
        ),
        ("product(genkautz:n=4,d=4;ring:3)", "position 18: `n` cannot be `4`; expected more nodes than d"),
    ] {
        assert_eq!(generate(expression, &LIMITS).unwrap_err().to_string(), message, "{expression}");
    }
    assert!(generate("line(product(ring:3;ring:3,lat=1us)):lat=1us", &LIMITS).is_ok());
    assert_eq!(
        generate("power:3(torus:1)", &LIMITS).unwrap_err().to_string(),
        "a topology needs at least two compute nodes, and this one has 1"
    );
}

#[test]
fn compositions_over_the_limit_are_refused_before_they_are_built() {
    let most = u64::MAX;
    for expression in [
        "power:60(complete:3)".to_owned(),
        "line:30(complete:3)".to_owned(),
        format!("line:{most}(complete:3)"),
        format!("line:99999{most}(bipartite:2x3)"),
        format!("power:{most}(complete:2)"),
        format!("degree:{most}(complete:2)"),
        format!("power:{most}(power:{most}(power:{most}(complete:2)))"),
        format!("line:{most}(line:{most}(degree:{most}(complete:3)))"),
        "product(complete:1000;complete:1000)".to_owned(),
        "product(complete:101;complete:101)".to_owned(),
        "degree:100(complete:100)".to_owned(),
        "bidirect(complete:1000)".to_owned(),
        "power:4(power:4(complete:2))".to_owned(),
        format!("product({})", vec!["ring:3"; 4000].join(";")),
        // Ids grow where networks do not.
        format!("line:{most}(uniring:n=4)"),
        "line:16(line:16(uniring:n=2))".to_owned(),
        format!("power:{most}(torus:1)"),
        "product(power:100(torus:1);power:100(torus:1);uniring:n=2)".to_owned(),
        format!("{}uniring:n=2{}", "degree:1(".repeat(33), ")".repeat(33)),
    ] {
        let error = generate(&expression, &LIMITS.searched()).unwrap_err();
        assert!(error.is_over_limit(), "{expression}: {error}");
    }
    let error = generate("power:60(complete:3)", &LIMITS).unwrap_err().to_string();
    assert_eq!(
        error,
        format!(
            "the topology has {} nodes, over the limit of 200000; send a smaller one or raise the limit",
            3_u128.pow(60)
        )
    );
    // Where families are not regular, the bound by formula is none: what is built is.
    let tight = TopologyLimits { nodes_max: 13, ..LIMITS };
    assert!(generate("line(bipartite:2x3)", &tight).is_ok());
    assert!(generate("line(bipartite:1x7)", &tight).unwrap_err().is_over_limit());
    let tight = TopologyLimits { links_max: 61, ..LIMITS };
    assert!(generate("line(bipartite:1x7)", &tight).is_ok() == (7 + 49 <= 61));
    assert!(generate("line(bipartite:1x8)", &tight).unwrap_err().is_over_limit());
}

/// Small expressions of any nesting.
fn expressions() -> impl Strategy<Value = String> {
    let families = proptest::sample::select(vec![
        "ring:3",
        "ring:2",
        "mesh:2x2",
        "complete:3",
        "bipartite:1x2",
        "uniring:n=3,d=2",
        "genkautz:n=5,d=2",
        "kautz:d=2,n=2",
        "debruijn:d=2,n=2",
        "diamond",
        "torus:1",
        "random-regular:n=4,d=2,seed=3",
        "dragonfly:2x3,local=1GB/s,global=1GB/s",
    ]);
    families.prop_map(str::to_owned).prop_recursive(3, 8, 2, |inner| {
        prop_oneof![
            (1..3, inner.clone()).prop_map(|(n, inner)| format!("line:{n}({inner}):bw=1GB/s")),
            (1..3, inner.clone()).prop_map(|(n, inner)| format!("degree:{n}({inner})")),
            (1..3, inner.clone()).prop_map(|(n, inner)| format!("power:{n}({inner})")),
            (inner.clone(), inner.clone()).prop_map(|(one, other)| format!("product({one};{other}):bw=2GB/s")),
            inner.prop_map(|inner| format!("bidirect({inner})")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 96 } else { 2000 }))]

    /// Whatever is nested, it is a network or refused; its size by formula is no more than what is built, its file reads
    /// back as the same network, and it is the same every time.
    #[test]
    fn nested_compositions_are_networks_or_refused(expression in expressions()) {
        let limits = TopologyLimits { nodes_max: 600, links_max: 6000, ..LIMITS };
        let parsed = grammar::parse(&expression).unwrap();
        let least = compose::least_size(&parsed, &limits);
        match generate(&expression, &limits) {
            Ok(network) => {
                let least = least.unwrap();
                prop_assert!(least.order <= u128::from(network.rank_count()), "{}", &expression);
                let read = read_document(to_yaml(&network).as_bytes(), None, &LIMITS).unwrap().topology;
                prop_assert_eq!(content_hash(&read), content_hash(&network));
                prop_assert_eq!(&read, &network);
                prop_assert_eq!(generate(&expression, &limits).unwrap(), network);
            }
            Err(error) => {
                let small = matches!(error, ExpressionError::Topology(crate::TopologyError::TooFewRanks { .. }));
                let refused = matches!(error, ExpressionError::Composition { .. });
                prop_assert!(small || refused || error.is_over_limit(), "{}: {}", &expression, error);
                // What the formula refuses is too large indeed.
                if let Err(error) = least {
                    prop_assert!(error.is_over_limit());
                    let wide = TopologyLimits { nodes_max: 200_000, links_max: 3_000_000, ..LIMITS };
                    if let Ok(network) = generate(&expression, &wide) {
                        prop_assert!(network.rank_count() > 600 || network.degrees().iter().map(|degree| degree.1).sum::<u128>() > 6000);
                    }
                }
            }
        }
    }
}
