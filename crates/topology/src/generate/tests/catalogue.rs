//! Families of ranks alone, and those with rates of their own: ids, links, ports and refusals.

use super::*;
use crate::document::{read_document, to_json, to_yaml};
use crate::error::TopologyError;
use crate::index::NodeIndex;

#[test]
fn sizes_of_direct_networks() {
    for (expression, ranks, links) in [
        ("hamming:3x3", 9, 36),
        ("hamming:2x5", 10, 50),
        ("twisted-torus:8x4", 32, 128),
        ("twisted-torus:4x4x8", 128, 768),
        ("twisted-cube", 8, 24),
        ("kautz:d=2,n=4", 24, 48),
        ("kautz:d=16,n=2", 272, 4352),
        ("genkautz:n=32,d=4", 32, 124),
        ("genkautz:n=9,d=2", 9, 18),
        ("debruijn:d=2,n=4", 16, 30),
        ("circulant:n=16,offsets=3+4", 16, 64),
        ("circulant:n=16", 16, 64),
        ("circulant:n=16,d=8", 16, 64),
        ("dcirculant:d=4", 6, 24),
        ("biring:n=8,d=4", 8, 16),
        ("biring:n=8", 8, 16),
        ("uniring:n=8,d=2", 8, 8),
        ("uniring:n=2", 2, 2),
        ("distreg:n=32,d=4", 32, 128),
        ("distreg:n=728", 728, 2912),
        ("diamond", 8, 16),
        ("dbjmod:d=2,n=4", 16, 32),
        ("dfc2:4x4", 16, 96),
        ("dfc2:3x3x3", 27, 162),
        ("shifted-ring:n=16", 16, 64),
        ("shifted-ring:n=6", 6, 12),
        ("slim-fly:q=5", 50, 350),
        ("slim-fly:q=7", 98, 1078),
        ("double-tree:n=16", 16, 52),
        ("double-tree:n=9", 9, 28),
        ("xpander:n=30,d=5,seed=1", 30, 150),
        ("jellyfish:n=32,d=4,seed=1", 32, 128),
        ("dragonfly:4x5", 20, 80),
        ("dragonfly:6x4", 24, 132),
        ("dragonfly:3x1", 3, 6),
        ("dragonfly:3x4,h=1", 12, 24 + 12),
        ("dragonfly:3x4,h=2", 12, 24 + 24),
        ("dragonfly:3x4,h=3", 12, 24 + 36),
        ("dragonfly:2x5,h=2", 10, 10 + 20),
        ("dims:ring2+fc4", 8, 32),
        ("dims:ring1+fc3+switch2,unwind=1", 6, 18),
    ] {
        check_size(expression, ranks, 0, links);
    }
    check_size("dims:ring2+fc4+switch64,bw=200GB/s+100GB/s+50GB/s", 512, 8, 512 + 3 * 512 + 2 * 512);
    check_size("dims:switch3+switch1+ring4", 12, 4, 24 + 24);
    // Two by three boards of two by two: 4 links on each, and 4 rows and 6 columns with two links to each board.
    check_size("hamming-mesh:2x3", 24, 10, 2 * (24 + 24 + 24));
    check_size("hamming-mesh:2x3,board=1x1", 6, 5, 2 * (6 + 6));
    check_size("hamming-mesh:1x4,board=1x3", 12, 1, 2 * (8 + 8));
}

/// Any two routers of a Slim Fly are two links apart at most, and all have as many links.
#[test]
fn slim_flies_have_diameter_two() {
    for (q, degree) in [(5, 7), (7, 11), (11, 17), (13, 19), (17, 25)] {
        let topology = topology(&format!("slim-fly:q={q}"));
        let ranks: Vec<NodeIndex> = topology.ranks().map(|rank| rank.node()).collect();
        let heads = |node: NodeIndex| topology.links_from(node).map(|link| topology.link(link).to).collect::<Vec<_>>();
        for &rank in &ranks {
            assert_eq!(heads(rank).len(), degree, "{q}");
        }
        let mut near: Vec<NodeIndex> = heads(ranks[0]);
        near.extend(near.clone().into_iter().flat_map(heads));
        near.push(ranks[0]);
        near.sort_unstable();
        near.dedup();
        assert_eq!(near.len(), ranks.len(), "{q}");
    }
}

/// Every rank has `d` links to different others, and seeds give different graphs.
#[test]
fn random_graphs_are_regular_and_simple() {
    for (family, n, d) in
        [("jellyfish", 32, 4), ("jellyfish", 9, 8), ("jellyfish", 50, 3), ("xpander", 30, 5), ("xpander", 4, 3)]
    {
        let drawn = |seed: u64| topology(&format!("{family}:n={n},d={d},seed={seed}"));
        for seed in 1..6 {
            let topology = drawn(seed);
            for rank in topology.ranks() {
                let links: Vec<_> = topology.links_from(rank.node()).map(|link| topology.link(link)).collect();
                assert_eq!(links.len(), d, "{family} {n} {d} {seed}");
                assert!(links.iter().all(|link| link.capacity == links[0].capacity));
                assert!(links.iter().all(|link| topology.has_link(link.to, link.from)));
            }
            let is_complete = n == d + 1;
            assert!(is_complete || drawn(seed).links() != drawn(seed + 1).links());
            assert!(topology.links() == drawn(seed).links());
        }
    }
}

#[test]
fn nodes_are_called_by_coordinates_words_or_numbers() {
    assert_eq!(ids(&topology("hamming:2x2")), ["00", "01", "10", "11"]);
    assert_eq!(ids(&topology("twisted-torus:22x11"))[12], "1.1");
    assert_eq!(ids(&topology("kautz:d=2,n=2")), ["01", "02", "10", "12", "20", "21"]);
    assert_eq!(ids(&topology("kautz:d=10,n=2"))[..2], ["0.1", "0.2"]);
    assert_eq!(ids(&topology("debruijn:d=2,n=2")), ["0", "1", "2", "3"]);
    assert_eq!(ids(&topology("dims:ring2+fc4+switch2,unwind=1"))[..3], ["000", "001", "010"]);
    let switched = topology("dims:ring2+switch3");
    assert_eq!(ids(&switched)[6..], ["0s", "1s"]);
    assert_eq!(ids(&topology("dims:ring2+switch64"))[128..], ["0.s", "1.s"]);
    // Each word leads to those that drop its first letter.
    let kautz = topology("kautz:d=2,n=3");
    assert_eq!((rate(&kautz, "010", "101"), rate(&kautz, "010", "102"), rate(&kautz, "010", "121")), (250, 250, 0));
}

#[test]
fn parallel_links_add_up_and_loops_are_ports() {
    let ring = topology("biring:n=5,d=6,bw=1GB/s");
    assert_eq!((rate(&ring, "0", "1"), rate(&ring, "1", "0"), ring.node_bandwidth()), (30, 30, 6_000_000_000));
    let pair = topology("uniring:n=2,d=3,bw=1GB/s");
    assert_eq!((rate(&pair, "0", "1"), pair.links().len()), (30, 2));
    for (expression, degree) in [
        ("debruijn:d=2,n=3", 2),
        ("debruijn:d=4,n=2", 4),
        ("genkautz:n=9,d=2", 2),
        ("genkautz:n=32,d=4", 4),
        ("kautz:d=3,n=2", 3),
        ("circulant:n=16,d=8", 8),
    ] {
        let network = topology(&format!("{expression},bw=1GB/s"));
        assert_eq!(network.node_bandwidth(), degree * 1_000_000_000, "{expression}");
        for (node, (_, leaving)) in network.nodes().iter().zip(network.degrees()) {
            let loops = node.attributes.loops.map_or(0, |loops| u128::from(loops.bytes_per_sec()));
            assert_eq!(leaving + loops, degree * 1_000_000_000, "{expression} {}", node.id);
        }
    }
    let loops = |network: &Topology| network.nodes().iter().filter(|node| node.attributes.loops.is_some()).count();
    let network = topology("debruijn:d=2,n=3");
    assert_eq!(loops(&network), 2);
    // Files keep them, and so does what is left of a broken network.
    for text in [to_yaml(&network), to_json(&network)] {
        let read = read_document(text.as_bytes(), None, &LIMITS).unwrap().topology;
        assert_eq!(read, network);
        assert_eq!(crate::hash::identity_hash(&read), crate::hash::identity_hash(&network));
    }
    assert_eq!(loops(&topology("debruijn:d=2,n=3,nodes-down=7")), 1);
    let bare = TopologyLimits { nodes_max: 8, ..LIMITS };
    let document = to_yaml(&network).replace("loops: 25GB/s", "loops: 0");
    assert!(read_document(document.as_bytes(), None, &bare).unwrap_err().to_string().contains("nodes[0].loops"));
    let without = to_yaml(&network).replace(", loops: 25GB/s", "");
    let without = read_document(without.as_bytes(), None, &bare).unwrap().topology;
    assert_eq!(crate::hash::content_hash(&without), crate::hash::content_hash(&network));
    assert_ne!(crate::hash::identity_hash(&without), crate::hash::identity_hash(&network));
}

#[test]
fn groups_of_a_dragonfly_share_one_link() {
    let network = topology("dragonfly:4x5,local=7GB/s,global=3GB/s");
    for from in 0..20 {
        for to in (0..20).filter(|&to| to != from) {
            let (from_group, to_group, port) = (from / 4, to / 4, from % 4);
            let across = (from_group + 1 + port) % 5 == to_group && (to_group + 1 + to % 4) % 5 == from_group;
            let wanted = if from_group == to_group { 70 } else { 30 * u64::from(across) };
            assert_eq!(rate(&network, &from.to_string(), &to.to_string()), wanted, "{from} {to}");
        }
    }
    let rates = topology("dragonfly:4x3");
    assert_eq!((rate(&rates, "0", "3"), rate(&rates, "0", "5"), rate(&rates, "2", "9")), (4000, 2000, 0));
}

/// `h` links of each rank, every two groups have as many, and no rank has two to one group.
#[test]
fn global_links_of_a_dragonfly_are_spread() {
    for (ranks, groups, ports) in
        [(3, 4, 1), (3, 4, 2), (3, 4, 3), (2, 5, 2), (4, 5, 3), (6, 4, 2), (8, 9, 1), (4, 3, 1)]
    {
        let network = topology(&format!("dragonfly:{ranks}x{groups},h={ports},local=7GB/s,global=3GB/s"));
        let global = |from: usize, to: usize| rate(&network, &from.to_string(), &to.to_string());
        let in_group = |group: usize| group * ranks..(group + 1) * ranks;
        for from in 0..ranks * groups {
            let others = (0..groups).filter(|group| *group != from / ranks);
            let links: Vec<u64> = others.map(|group| in_group(group).map(|to| global(from, to)).sum()).collect();
            assert!(links.iter().all(|&link| link <= 30), "{ranks}x{groups},h={ports}");
            assert_eq!(links.iter().sum::<u64>(), 30 * ports as u64);
        }
        for (one, other) in (0..groups).flat_map(|one| (0..one).map(move |other| (one, other))) {
            let links: u64 = in_group(one).flat_map(|from| in_group(other).map(move |to| global(from, to))).sum();
            assert_eq!(links, 30 * (ranks * ports / (groups - 1)) as u64);
        }
    }
}

#[test]
fn one_global_link_of_each_rank_is_the_default_dragonfly() {
    let links = |expression: &str| topology(expression).links().to_vec();
    assert_eq!(links("dragonfly:4x5,h=1"), links("dragonfly:4x5"));
    // All linked with those of their number.
    let network = topology("dragonfly:3x4,h=3");
    for (from, to) in (0..12).flat_map(|from| (0..12).map(move |to| (from, to))) {
        let is_linked = from != to && (from / 3 == to / 3 || from % 3 == to % 3);
        assert_eq!(rate(&network, &from.to_string(), &to.to_string()) > 0, is_linked, "{from} {to}");
    }
}

#[test]
fn boards_of_a_hamming_mesh_end_at_switches() {
    let network = topology("hamming-mesh:2x3,board=2x2");
    for (from, to, tenths) in [
        ("b0g0", "b0g1", 500),
        ("b0g0", "b0g2", 500),
        ("b0g0", "b0g3", 0),
        ("b0g1", "b1g0", 0),
        ("b0g0", "row0", 500),
        ("b2g1", "row0", 500),
        ("b2g3", "row1", 500),
        ("b3g0", "row2", 500),
        ("b4g3", "col3", 500),
        ("b4g3", "col2", 0),
    ] {
        assert_eq!((rate(&network, from, to), rate(&network, to, from)), (tenths, tenths), "{from} {to}");
    }
    // The middle of a row of three has no link to its switch; a board of one column has two from each rank.
    let wide = topology("hamming-mesh:1x2,board=1x3,bw=1GB/s");
    assert_eq!((rate(&wide, "b1g1", "row0"), rate(&wide, "b1g2", "row0"), rate(&wide, "b1g1", "b1g2")), (0, 10, 10));
    assert_eq!(rate(&topology("hamming-mesh:2x2,board=1x1"), "b3g0", "col1"), 1000);
    // All ranks have four ports.
    let degrees = network.degrees();
    assert!(network.ranks().all(|rank| degrees[rank.index()] == (200_000_000_000, 200_000_000_000)));
}

#[test]
fn dimensions_have_their_blocks_and_rates() {
    let network = topology("dims:ring4+fc3+switch2,bw=3GB/s+2GB/s+1GB/s");
    for (from, to, tenths) in [
        ("000", "100", 30),
        ("000", "300", 30),
        ("000", "200", 0),
        ("000", "010", 20),
        ("000", "020", 20),
        ("000", "001", 0),
        ("000", "00s", 10),
        ("321", "32s", 10),
    ] {
        assert_eq!((rate(&network, from, to), rate(&network, to, from)), (tenths, tenths), "{from} {to}");
    }
    // Two next ranks share the rate, one way around.
    let unwound = topology("dims:switch4+switch5,unwind=1+2,bw=1GB/s");
    for (from, to, tenths) in [
        ("00", "10", 10),
        ("10", "00", 0),
        ("30", "00", 10),
        ("00", "01", 5),
        ("00", "02", 5),
        ("00", "03", 0),
        ("04", "01", 5),
    ] {
        assert_eq!(rate(&unwound, from, to), tenths, "{from} {to}");
    }
    assert_eq!(rate(&topology("dims:switch2,unwind=1"), "0", "1"), 250);
    let error = generate("dims:switch4,unwind=3,bw=100B/s", &LIMITS).unwrap_err();
    assert!(matches!(error, ExpressionError::NotExact { divisor: 3, .. }), "{error}");
}

#[track_caller]
fn check_refusals(cases: &[(&str, &str)]) {
    for (expression, message) in cases {
        assert_eq!(generate(expression, &LIMITS).unwrap_err().to_string(), *message, "{expression}");
    }
}

#[test]
fn circulants_and_rings_that_are_no_network_are_refused_with_their_place() {
    check_refusals(&[
        (
            "circulant:n=6",
            "position 11: `n` cannot be `6`; expected more than 6 if no offsets are given (use complete:n for fewer)",
        ),
        (
            "circulant:n=8,offsets=4",
            "position 15: `offsets` cannot be `4`; expected offsets from 1 to below n/2 (an offset of n/2 gives one link, not two)",
        ),
        (
            "circulant:n=8,offsets=2",
            "position 15: `offsets` cannot be `2`; expected offsets that have no common divisor with n (the network would be split)",
        ),
        (
            "circulant:n=9,offsets=1+2,d=6",
            "position 27: `d` cannot be `6`; expected a multiple of twice the number of offsets",
        ),
        (
            "circulant:n=9,d=6",
            "position 15: `d` cannot be `6`; expected a multiple of 4 without offsets, which two pairs of links share",
        ),
        (
            "biring:n=2,d=2",
            "position 8: `n` cannot be `2`; expected whole numbers from 3 (for two nodes with d links use uniring:n=2)",
        ),
    ]);
}

#[test]
fn catalogue_members_that_are_no_network_are_refused_with_their_place() {
    check_refusals(&[
        ("genkautz:n=4,d=4", "position 10: `n` cannot be `4`; expected more nodes than d"),
        ("slim-fly:q=9", "position 10: `q` cannot be `9`; expected primes from 5 below 65536"),
        ("jellyfish:n=9,d=3", "position 11: `n` cannot be `9`; expected even numbers if `d` is odd"),
        ("jellyfish:n=9,d=2", "position 15: `d` cannot be `2`; expected whole numbers from 3 below `n`"),
        ("xpander:n=31,d=5", "position 9: `n` cannot be `31`; expected multiples of `d` + 1, with `d` from 2"),
        ("double-tree:n=1", "position 13: `n` cannot be `1`; expected whole numbers from 2"),
        (
            "distreg:n=33",
            "position 9: `n` cannot be `33`; expected one of 6 9 10 14 15 16 21 26 32 35 45 70 80 189 728",
        ),
        (
            "distreg:n=32,d=3",
            "position 14: `d` cannot be `3`; expected 4, the degree of all known distance-regular networks",
        ),
        (
            "twisted-torus:8x8",
            "position 15: `size` cannot be `8x8`; expected extents 2a x a or a x a x 2a with a from 2, such as 8x4 or 4x4x8",
        ),
        ("dbjmod:d=3,n=3", "position 12: `n` cannot be `d=3,n=3`; expected d=2,n=3 or d=2,n=4 or d=4,n=2"),
        (
            "dragonfly:3x5",
            "position 11: `size` cannot be `3x5`; expected AxG with at least G-1 ranks in a group, one for each other group; or state `h`",
        ),
        (
            "dragonfly:4x5,h=5",
            "position 15: `h` cannot be `5`; expected whole numbers up to G-1 for which G-1 divides A·h",
        ),
        (
            "dragonfly:3x5,h=1",
            "position 15: `h` cannot be `1`; expected whole numbers up to G-1 for which G-1 divides A·h",
        ),
        ("hamming-mesh:2x2,board=2", "position 18: `board` cannot be `2`; expected two sizes such as `2x2`"),
        ("hamming-mesh:2x2,board=0x2", "position 18: `board` cannot be `0x2`; expected whole numbers from 1"),
        ("kautz:d=2", "`kautz` needs `n`, as in `kautz:d=2,n=4`"),
        (
            "dragonfly:4x5,bw=1GB/s",
            "position 15: `dragonfly` has no key `bw`; use h, local, global, lat, down, nodes-down, degrade, faults, host, nicforward",
        ),
        (
            "twisted-cube:8",
            "position 14: `twisted-cube` takes no value without a key, found `8`; write it as in `twisted-cube`",
        ),
    ]);
    let long = format!("torus:{}8", "1x".repeat(127));
    assert!(generate(&long, &LIMITS).unwrap_err().to_string().contains("at most 127 extents"));
}

#[test]
fn dimensions_that_make_no_network_are_refused_with_their_place() {
    check_refusals(&[
        (
            "dims:ring4+bus2",
            "position 6: `size` cannot be `ring4+bus2`; expected ring, fc or switch, each with a number of ranks from 1, joined by `+`, such as `ring2+fc4+switch64`",
        ),
        (
            "dims:ring4,unwind=1",
            "position 12: `unwind` cannot be `1`; expected for each switch dimension, a number of next ranks below its number of ranks, joined by `+`",
        ),
        (
            "dims:switch4,unwind=4",
            "position 14: `unwind` cannot be `4`; expected for each switch dimension, a number of next ranks below its number of ranks, joined by `+`",
        ),
        (
            "dims:ring4+ring4,bw=1GB/s+2GB/s+3GB/s",
            "position 18: `bw` cannot be `1GB/s+2GB/s+3GB/s`; expected one rate, or one for each dimension joined by `+`",
        ),
    ]);
    let long = format!("dims:{}ring8", "fc1+".repeat(127));
    assert!(generate(&long, &LIMITS).unwrap_err().to_string().contains("at most 127 dimensions"));
}

#[test]
fn oversized_members_are_refused_before_they_are_built() {
    let most = u64::MAX;
    for expression in [
        "hamming:2000x10".to_owned(),
        format!("kautz:d=2,n={most}"),
        format!("kautz:d={most},n={most}"),
        format!("genkautz:n={most},d=2"),
        "debruijn:d=2,n=14".to_owned(),
        format!("circulant:n={most}"),
        format!("circulant:n=9,offsets=1,d={}", most - 1),
        format!("dcirculant:d={most}"),
        format!("biring:n=10,d={}", most - 1),
        format!("uniring:n={most},d={most}"),
        "dfc2:101x100".to_owned(),
        "dragonfly:101x100".to_owned(),
        format!("dragonfly:{most}x{most}"),
        format!("dragonfly:{most}x{most},h={}", most - 1),
        "hamming-mesh:30x30,board=4x4".to_owned(),
        format!("hamming-mesh:{most}x{most},board={most}x{most}"),
        format!("dims:switch{most}+fc{most}+ring{most}"),
        "dims:fc1001".to_owned(),
        "twisted-torus:200x100".to_owned(),
    ] {
        let error = generate(&expression, &LIMITS.searched()).unwrap_err();
        assert!(error.is_over_limit(), "{expression}: {error}");
    }
    for expression in
        ["hamming:1x1", "mesh:1", "dims:ring1+fc1", "dragonfly:1x1", "dims:switch1", "hamming-mesh:1x1,board=1x1"]
    {
        let error = generate(expression, &LIMITS).unwrap_err();
        assert_eq!(error, ExpressionError::Topology(TopologyError::TooFewRanks { found: 1 }), "{expression}");
    }
}
