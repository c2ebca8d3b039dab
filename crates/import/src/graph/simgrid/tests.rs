//! Platforms give the networks that their routes and clusters describe.

use canopy_topology::{Topology, TopologyLimits};

use crate::read::{Imported, read};

const LIMITS: TopologyLimits = TopologyLimits::STANDARD;

const PLATFORM: &str = include_str!("../../../tests/data/platform.xml");

fn imported(text: &str) -> Imported {
    read(text.as_bytes(), None, &LIMITS).unwrap_or_else(|error| panic!("{error}"))
}

fn refusal(text: &str) -> String {
    read(text.as_bytes(), None, &LIMITS).unwrap_err().to_string()
}

/// Bytes per second and nanoseconds from a node to another, if a link leads there.
fn link(topology: &Topology, from: &str, to: &str) -> Option<(u64, u64)> {
    let id = |node| topology.node(node).id.as_str();
    let found = topology.links().iter().find(|link| (id(link.from), id(link.to)) == (from, to))?;
    Some((found.capacity.bytes_per_sec(), found.latency.nanos()))
}

/// A platform of one zone.
fn zone(inside: &str) -> String {
    format!("<platform version=\"4.1\">\n<zone id=\"z\" routing=\"Full\">\n{inside}\n</zone></platform>")
}

/// Hosts a, b and c, and duplex links of 1, 2 and 3 GB/s; the rest as given.
fn star(rest: &str) -> String {
    let hosts = ["a", "b", "c"].map(|name| format!("<host id=\"{name}\" speed=\"1f\"/>")).concat();
    let link = |(name, rate)| format!("<link id=\"{name}\" bandwidth=\"{rate}GBps\" sharing_policy=\"SPLITDUPLEX\"/>");
    let links = [("x", 1), ("y", 2), ("z", 3)].map(link).concat();
    zone(&format!("{hosts}\n{links}\n{rest}"))
}

/// A route over links, each with its direction behind a blank: `x UP`.
fn route(ends: &str, links: &[&str]) -> String {
    let (from, to) = ends.split_once('-').unwrap();
    let step = |link: &&str| match link.split_once(' ') {
        Some((id, direction)) => format!("<link_ctn id=\"{id}\" direction=\"{direction}\"/>"),
        None => format!("<link_ctn id=\"{link}\"/>"),
    };
    let links: String = links.iter().map(step).collect();
    format!("<route src=\"{from}\" dst=\"{to}\">{links}</route>\n")
}

/// By hand: 12 hosts. Links: 2 + 1 + 1 + 2 + 2 of routes, 2·4 + 3 of the cluster, 2·6 + 2·3 of the torus.
#[test]
fn a_platform_has_its_hosts_and_links() {
    let Imported { topology, report, .. } = imported(PLATFORM);
    let ids: Vec<&str> = topology.nodes().iter().map(|node| node.id.as_str()).collect();
    let ranks = ["h0", "h1", "n-0.x", "n-1.x", "n-2.x", "n-7.x", "t0", "t1", "t2", "t3", "t4", "t5"];
    assert_eq!(ids, [&ranks[..], &["c_in", "c_out", "n-c_router.x", "r"]].concat());
    assert_eq!((topology.rank_count(), topology.links().len(), topology.first_unreachable()), (12, 37, None));
    let has = |from: &str, to: &str| link(&topology, from, to);
    // A duplex link has 25 GB/s each way.
    assert_eq!((has("h0", "r"), has("r", "h0")), (Some((25_000_000_000, 1_000)), Some((25_000_000_000, 1_000))));
    // 10 Gbit/s are 1.25 GB/s, and 5.5·10⁻⁷ s are 550 ns. A link used one way has all of its rate.
    assert_eq!((has("r", "h1"), has("h1", "r")), (Some((1_250_000_000, 550)), Some((1_000_000_001, 1))));
    // The routes of the cluster begin at its router. Both ways of `side` share 3 GB/s.
    assert_eq!(
        (has("n-c_router.x", "r"), has("r", "n-c_router.x")),
        (Some((10_000_000_000, 2_000)), Some((10_000_000_000, 2_000)))
    );
    assert_eq!((has("t0", "h0"), has("h0", "t0")), (Some((1_500_000_000, 0)), Some((1_500_000_000, 0))));
    // The backbone is shared by messages between hosts and those that pass the router.
    assert_eq!(
        (has("n-7.x", "c_in"), has("c_out", "n-7.x")),
        (Some((100_000_000, 10_000)), Some((100_000_000, 10_000)))
    );
    assert_eq!((has("c_in", "c_out"), has("c_out", "c_in")), (Some((250_000_000, 1_000)), None));
    assert_eq!(
        (has("c_out", "n-c_router.x"), has("n-c_router.x", "c_in")),
        (Some((250_000_000, 0)), Some((250_000_000, 0)))
    );
    // Rings of three, and pairs once: 8 Gbit/s are 1 GB/s.
    assert_eq!(
        (has("t2", "t0"), has("t0", "t2"), has("t2", "t3")),
        (Some((1_000_000_000, 1_000)), Some((1_000_000_000, 1_000)), None)
    );
    assert_eq!((has("t1", "t4"), has("t4", "t1")), (Some((1_000_000_000, 1_000)), Some((1_000_000_000, 1_000))));
    assert_eq!(report.understood, ["12 hosts, 4 switches and 37 directed links"]);
    assert!(
        report.assumed[0].starts_with("where both directions of a link share its bandwidth (SHARED), each has half")
    );
    assert_eq!(report.assumed[1], "latencies that are rounded down to whole nanoseconds: 1");
    assert_eq!(report.left_out, ["without meaning for the network: <config>"]);
}

#[test]
fn clusters_without_a_limit_have_one_switch() {
    let cluster = |more: &str| {
        imported(&zone(&format!(
            "<cluster id=\"c\" prefix=\"n\" suffix=\"\" radical=\"0-3\" speed=\"1f\" bw=\"1GBps\" lat=\"5us\" {more}/>"
        )))
        .topology
    };
    let plain = cluster("");
    assert_eq!((plain.rank_count(), plain.nodes().len(), plain.links().len()), (4, 5, 8));
    assert_eq!(link(&plain, "n3", "nc_router"), Some((1_000_000_000, 5_000)));
    // Four hosts send 4 GB/s at most; the latency of the backbone is 5 + 2 µs on the way down.
    let wide = cluster("bb_bw=\"4GBps\" bb_lat=\"2us\" router_id=\"top\"");
    assert_eq!((wide.nodes().len(), wide.links().len()), (5, 8));
    assert_eq!(
        (link(&wide, "n0", "top"), link(&wide, "top", "n0")),
        (Some((1_000_000_000, 5_000)), Some((1_000_000_000, 7_000)))
    );
    let pipe = cluster("bb_bw=\"1GBps\" bb_lat=\"2us\" bb_sharing_policy=\"FATPIPE\" router_id=\"top\"");
    assert_eq!(pipe, wide);
    let narrow = cluster("bb_bw=\"3999999999Bps\" bb_lat=\"2us\"");
    assert_eq!((narrow.nodes().len(), narrow.links().len()), (6, 9));
    assert_eq!(link(&narrow, "nc_router", "c_out"), Some((3_999_999_999, 2_000)));
    assert_eq!(link(&narrow, "c_out", "n0"), Some((1_000_000_000, 5_000)));
    // Both ways of a shared link have 1 GB/s together.
    assert_eq!(link(&cluster("sharing_policy=\"SHARED\""), "n0", "nc_router"), Some((500_000_000, 5_000)));
}

/// Two switches below two at the top, and pairs of links between them: 2·4 + 2·4 directed links, of which those
/// above have 2 · 1 GB/s.
#[test]
fn fat_trees_have_the_switches_of_each_level() {
    let text = zone(
        "<cluster id=\"f\" prefix=\"n\" suffix=\"\" radical=\"0-3\" speed=\"1f\" bw=\"1GBps\" lat=\"1us\" \
         topology=\"FAT_TREE\" topo_parameters=\"2;2,2;1,2;1,2\"/>",
    );
    let topology = imported(&text).topology;
    assert_eq!((topology.nodes().len(), topology.links().len()), (4 + 2 + 2, 8 + 8));
    assert_eq!((topology.first_unbalanced(), topology.first_unreachable()), (None, None));
    for (host, leaf) in [("n0", "f_1_0"), ("n1", "f_1_0"), ("n2", "f_1_1"), ("n3", "f_1_1")] {
        assert_eq!(link(&topology, host, leaf), Some((1_000_000_000, 1_000)), "{host}");
    }
    for (leaf, top) in [("f_1_0", "f_2_0"), ("f_1_0", "f_2_1"), ("f_1_1", "f_2_0"), ("f_1_1", "f_2_1")] {
        assert_eq!(link(&topology, top, leaf), Some((2_000_000_000, 1_000)), "{leaf}");
    }
    // Hosts with two ports are joined to both switches of their group: 4 + 4 switches at the first and second level.
    let text = text.replace("2;2,2;1,2;1,2", "2;2,2;2,2;1,1");
    let topology = imported(&text).topology;
    assert_eq!((topology.nodes().len(), topology.links().len()), (4 + 4 + 4, 16 + 16));
    assert!(["f_1_0", "f_1_1"].into_iter().all(|leaf| link(&topology, "n1", leaf).is_some()));
    assert!(["f_1_2", "f_1_3"].into_iter().all(|leaf| link(&topology, "n2", leaf).is_some()));
    // The first switches of both groups are below the first and third of the top.
    assert!(["f_2_0", "f_2_2"].into_iter().all(|top| link(&topology, "f_1_0", top).is_some()));
    assert!(["f_2_0", "f_2_2"].into_iter().all(|top| link(&topology, "f_1_2", top).is_some()));
}

/// Routes of two links from host to host: where the links meet is a switch.
#[test]
fn links_meet_where_routes_say() {
    let routes = [("a-b", ["x UP", "y DOWN"]), ("a-c", ["x UP", "z DOWN"]), ("b-c", ["y UP", "z DOWN"])];
    let routes = routes.map(|(ends, links)| route(ends, &links)).concat();
    let Imported { topology, report, .. } = imported(&star(&routes));
    assert_eq!((topology.nodes().len(), topology.links().len()), (4, 6));
    for (host, rate) in [("a", 1_000_000_000), ("b", 2_000_000_000), ("c", 3_000_000_000)] {
        assert_eq!(
            (link(&topology, host, "joint0"), link(&topology, "joint0", host)),
            (Some((rate, 0)), Some((rate, 0)))
        );
    }
    assert_eq!(report.assumed, ["places without a name where links of routes meet, each a switch `joint…`: 1"]);
    // The same with shared links, which have half each way.
    let shared =
        star(&routes).replace("SPLITDUPLEX", "SHARED").replace(" direction=\"UP\"", "").replace("DOWN", "NONE");
    let shared = imported(&shared).topology;
    assert_eq!((shared.nodes().len(), shared.links().len()), (4, 6));
    assert_eq!(link(&shared, "c", "joint0"), Some((1_500_000_000, 0)));
}

/// Three hosts in a row of shared links, and routes that lead over them in either direction and through a host.
#[test]
fn shared_links_are_found_from_either_end() {
    let routes = [route("a-b", &["x", "y"]), route("c-b", &["z"]), route("a-c", &["x", "y", "z"])];
    let text = star(&routes.concat()).replace("SPLITDUPLEX", "SHARED");
    let topology = imported(&text).topology;
    assert_eq!((topology.nodes().len(), topology.links().len()), (4, 6));
    let has = |from: &str, to: &str| link(&topology, from, to).map(|(rate, _)| rate);
    assert_eq!(
        (has("a", "joint0"), has("joint0", "b"), has("b", "c")),
        (Some(500_000_000), Some(1_000_000_000), Some(1_500_000_000))
    );
    // A bus: one link between any two of three hosts.
    let bus = [route("a-b", &["x"]), route("a-c", &["x"]), route("b-c", &["x"])];
    let error = refusal(&star(&bus.concat()).replace("SPLITDUPLEX", "SHARED"));
    assert!(error.contains("link `x` has more than two ends; write routes of one link between neighbours"), "{error}");
}

#[test]
fn what_no_route_uses_is_left_out() {
    let route = "<link id=\"own\" bandwidth=\"1Bps\" sharing_policy=\"FATPIPE\"/><router id=\"r\"/>\
                 <route src=\"a\" dst=\"a\"><link_ctn id=\"own\"/></route>\
                 <route src=\"a\" dst=\"b\"><link_ctn id=\"x\" direction=\"UP\"/></route>";
    let Imported { topology, report, .. } = imported(&star(route));
    assert_eq!((topology.nodes().len(), topology.links().len()), (3, 2));
    let expected = [
        "without meaning for the network: routers without links, routes to where they begin",
        "links that are in no route: 2",
    ];
    assert_eq!(report.left_out, expected);
}

#[test]
fn refusals_of_routes_name_the_line_and_the_remedy() {
    let one = |ends: &str, link: &str| format!("<route {ends}><link_ctn {link}/></route>");
    let up = "id=\"x\" direction=\"UP\"";
    let ab = one("src=\"a\" dst=\"b\"", up);
    for (rest, words) in [
        (
            one("src=\"a\" dst=\"b\"", "id=\"x\""),
            "SimGrid platform line 5: link `x` is SPLITDUPLEX; write direction=\"UP\" or \"DOWN\"",
        ),
        (one("src=\"a\" dst=\"b\"", "id=\"w\""), "line 5: there is no link `w`; add <link id="),
        (one("src=\"a\" dst=\"d\"", up), "line 5: `d` is no host or router of the file"),
        (one("src=\"a\"", up), "line 5: <route> has no attribute `dst`"),
        (one("src=\"a\" dst=\"b\" symmetrical=\"maybe\"", up), "symmetrical=\"maybe\"; expected YES or NO"),
        (format!("{ab}\n{ab}"), "line 6: a route before joins the same two"),
        (
            format!("{ab}\n{}", one("src=\"a\" dst=\"c\"", up)),
            "line 6: by this route and those before, link `x` has more than two ends; write routes of one link",
        ),
        ("<route src=\"a\" dst=\"b\"/>".to_owned(), "line 5: the route has no links; list them"),
        ("<route src=\"a\" dst=\"b\"><prop/></route>".to_owned(), "line 5: <prop> is no part of a route"),
        ("<router id=\"a\"/>".to_owned(), "line 5: a host or router before is called `a`, too"),
        ("<router id=\":\"/>\n<router id=\"-\"/>".to_owned(), "line 6: a host or router before is called `-`, too"),
        ("<link id=\"x\" bandwidth=\"1GBps\"/>".to_owned(), "line 5: id of <link>: two links have the id `x`"),
        (
            "<link id=\"w\" bandwidth=\"fast\"/>".to_owned(),
            "line 5: bandwidth of <link>: `fast` is no bandwidth; write a number",
        ),
        ("<link id=\"w\"/>".to_owned(), "line 5: <link> has no attribute `bandwidth`"),
        ("<link id=\"w\" bandwidth=\"1bps\"/>".to_owned(), "`1bps` is no whole number of bytes per second; round it"),
        ("<link id=\"w\" bandwidth=\"1Bps\" latency=\"soon\"/>".to_owned(), "latency of <link>: `soon` is no latency"),
        (
            "<link id=\"w\" bandwidth=\"1Bps\" sharing_policy=\"FATPIPE\"/>\n".to_owned() + &route("a-b", &["w"]),
            "line 5: sharing_policy of <link>: sharing policy `FATPIPE`: FATPIPE limits each message",
        ),
        (
            "<link id=\"w\" bandwidth=\"1Bps\"/>\n".to_owned() + &route("a-b", &["w"]),
            "line 5: bandwidth of <link>: 1 byte per second has no half",
        ),
        ("<peer id=\"p\"/>".to_owned(), "line 5: <peer> is not read; write a <host> with"),
        ("<bypassRoute/>".to_owned(), "line 5: <bypassRoute> is not read; canopy chooses routes itself"),
        ("<zone id=\"n\" routing=\"Vivaldi\"/>".to_owned(), "routing=\"Vivaldi\"; expected Full, Floyd"),
    ] {
        let error = refusal(&star(&rest));
        assert!(error.contains(words), "{rest}: {error}");
    }
    let error = refusal(&star(&route("a-b", &["x UP", "x DOWN"])));
    assert!(error.contains("line 5: by this route and those before, link `x` has more than two ends"), "{error}");
    let error = refusal(&star(&route("a-b", &["y UP", "x UP", "x UP", "z UP"])));
    assert!(error.contains("line 4: by the routes over it, both ends of link `x` are in one place"), "{error}");
    for (from, to, words) in [
        ("version=\"4.1\"", "version=\"3\"", "version=\"3\"; expected 4 or 4.1; run simgrid_update_xml"),
        ("version=\"4.1\"", "", "line 3: <platform> has no attribute `version`"),
    ] {
        let error = refusal(&PLATFORM.replacen(from, to, 1));
        assert!(error.contains(words), "{to}: {error}");
    }
}

#[test]
fn refusals_of_clusters_name_the_line_and_the_remedy() {
    let text = "<cluster id=\"c\" prefix=\"n\" suffix=\"\" radical=\"0-3\" speed=\"1f\" bw=\"1GBps\" lat=\"5us\"/>";
    for (from, to, words) in [
        ("0-3", "3-0", "radical=\"3-0\"; expected numbers and ranges"),
        ("0-3", "0-3,2", "line 3: a host or router before is called `n2`, too"),
        ("0-3", "0-4294967295", "limit"),
        ("0-3", "0-3-5", "radical=\"0-3-5\""),
        ("1GBps", "0Bps", "line 3: bw of <cluster>: `0Bps` is zero"),
        ("5us", "5xs", "lat of <cluster>: `5xs` is no latency"),
        ("lat=\"5us\"", "", "<cluster> has no attribute `lat`"),
        ("lat=", "limiter_link=\"1GBps\" lat=", "line 3: limiter_link of <cluster>: a limit on what a host sends and"),
        ("lat=", "sharing_policy=\"FATPIPE\" lat=", "sharing_policy of <cluster>: sharing policy `FATPIPE`"),
        ("lat=", "bb_lat=\"1us\" lat=", "bb_lat of <cluster>: a backbone needs a bandwidth; add bb_bw"),
        (
            "lat=",
            "bb_bw=\"1MBps\" bb_sharing_policy=\"FATPIPE\" lat=",
            "bb_sharing_policy of <cluster>: sharing policy `FATPIPE`",
        ),
        ("lat=", "topology=\"RING\" lat=", "topology=\"RING\"; expected FLAT, TORUS or FAT_TREE"),
        ("lat=", "topology=\"DRAGONFLY\" lat=", "topology of <cluster>: DRAGONFLY is not read; list its links"),
        ("lat=", "topology=\"TORUS\" lat=", "<cluster> has no attribute `topo_parameters`"),
        ("lat=", "topology=\"TORUS\" topo_parameters=\"3,2\" lat=", "it needs 6 hosts, and radical has 4"),
        ("lat=", "topology=\"TORUS\" topo_parameters=\"4,x\" lat=", "`4,x` is no list of 1 to 32 numbers from 1"),
        ("lat=", "topology=\"TORUS\" topo_parameters=\"4,0\" lat=", "`4,0` is no list"),
        ("lat=", "topology=\"FAT_TREE\" topo_parameters=\"1;4;1\" lat=", "a fat tree has four parts"),
        ("lat=", "topology=\"FAT_TREE\" topo_parameters=\"2;4;1;1\" lat=", "one number for each level"),
        ("lat=", "topology=\"FAT_TREE\" topo_parameters=\"1;5;1;1\" lat=", "it needs 5 hosts, and radical has 4"),
        ("lat=", "topology=\"FAT_TREE\" topo_parameters=\"1;4;99999999;1\" lat=", "limit"),
    ] {
        let error = refusal(&zone(&text.replacen(from, to, 1)));
        assert!(error.contains(words), "{to}: {error}");
    }
}

#[test]
fn platforms_over_the_limits_are_refused() {
    for limits in [TopologyLimits { nodes_max: 15, ..LIMITS }, TopologyLimits { links_max: 36, ..LIMITS }] {
        let error = read(PLATFORM.as_bytes(), None, &limits).unwrap_err();
        assert!(error.is_over_limit(), "{error}");
    }
}
