//! The platform file and the messages for SimGrid.

use std::collections::BTreeMap;

use canopy_schedule::CollectiveKind;
use canopy_simulate::export::simgrid;
use canopy_topology::{Capacity, Latency, TopologyDraft, TopologyLimits};
use quick_xml::events::{BytesStart, Event};
use serde_json::Value;

use crate::plans::{NETWORKS, bytes_by_link, network, plan};

/// What a platform file says.
#[derive(Debug, Default)]
struct Platform {
    hosts: Vec<String>,
    routers: Vec<String>,
    /// Bandwidth and latency by name.
    links: BTreeMap<String, (String, String)>,
    /// Links by source and destination.
    routes: BTreeMap<(String, String), Vec<String>>,
}

impl Platform {
    fn read(text: &str) -> Self {
        let mut platform = Self::default();
        let mut open = None;
        let mut reader = quick_xml::Reader::from_str(text);
        loop {
            let event = reader.read_event().unwrap();
            let (Event::Start(element) | Event::Empty(element)) = &event else {
                if event == Event::Eof {
                    return platform;
                }
                continue;
            };
            let of = |name: &str| attribute(element, name);
            match element.name().as_ref() {
                "host" => platform.hosts.push(of("id")),
                "router" => platform.routers.push(of("id")),
                "link" => {
                    assert_eq!(of("sharing_policy"), "SHARED");
                    let before = platform.links.insert(of("id"), (of("bandwidth"), of("latency")));
                    assert_eq!(before, None, "link {} stands there twice", of("id"));
                }
                "route" => {
                    assert_eq!(of("symmetrical"), "NO");
                    open = Some((of("src"), of("dst")));
                    let before = platform.routes.insert((of("src"), of("dst")), Vec::new());
                    assert_eq!(before, None, "{open:?} has two routes");
                }
                "link_ctn" => platform.routes.get_mut(open.as_ref().unwrap()).unwrap().push(of("id")),
                other => assert!(["platform", "zone"].contains(&other), "{element:?}"),
            }
        }
    }
}

fn attribute(element: &BytesStart<'_>, name: &str) -> String {
    let found = element.try_get_attribute(name).unwrap().unwrap_or_else(|| panic!("{element:?} has no {name}"));
    found.normalized_value(quick_xml::XmlVersion::Implicit1_0).unwrap().into_owned()
}

#[test]
fn messages_go_over_the_links_of_the_plan() {
    for expression in NETWORKS {
        let topology = network(expression);
        for kind in [CollectiveKind::Allgather, CollectiveKind::Allreduce, CollectiveKind::AllToAll] {
            let (graph, messages) = plan(&topology, kind, 1 << 20);
            let replay = simgrid(&topology, &graph.routes, &messages);
            let platform = Platform::read(&replay.platform);
            assert_eq!(platform.links.len(), topology.links().len());
            assert_eq!(platform.routers.len(), topology.nodes().len() - topology.rank_count() as usize);
            let list: Value = serde_json::from_str(&replay.messages).unwrap();
            let list = list["messages"].as_array().unwrap();
            assert_eq!(list.len(), messages.len());
            let mut bytes: BTreeMap<&str, u64> = platform.links.keys().map(|name| (name.as_str(), 0)).collect();
            for (entry, message) in list.iter().zip(&messages) {
                let text = |member: &str| entry[member].as_str().unwrap().to_owned();
                let (from, to) = (text("from"), text("to"));
                assert!(platform.hosts.contains(&from) && platform.hosts.contains(&to));
                assert_eq!(from, topology.nodes()[message.from.index()].id);
                // Further hosts of a rank are told from its first by what follows the colon.
                assert_eq!(to.split(':').next().unwrap(), topology.nodes()[message.to.index()].id);
                assert_eq!(entry["after"], serde_json::json!(message.after));
                assert_eq!(entry["behind"].as_u64(), message.behind.map(u64::from));
                for link in &platform.routes[&(from, to)] {
                    *bytes.get_mut(link.as_str()).unwrap() += entry["bytes"].as_u64().unwrap();
                }
            }
            let expected = bytes_by_link(&topology, &graph, &messages);
            for (link, expected) in topology.links().iter().zip(expected) {
                let [from, to] = [link.from, link.to].map(|node| topology.node(node).id.clone());
                let name = format!("{from}:{to}");
                assert_eq!(bytes[name.as_str()], expected, "{expression} {kind}: {name}");
                let rate = format!("{}Bps", link.capacity.bytes_per_sec());
                assert_eq!(platform.links[&name], (rate, format!("{}ns", link.latency.nanos())));
            }
            assert_eq!(replay, simgrid(&topology, &graph.routes, &messages), "the same again");
        }
    }
}

/// Two switches between two ranks, and two links of different latencies to one of them: three routes, three hosts.
#[test]
fn several_routes_between_two_ranks_lead_to_several_hosts() {
    let mut draft = TopologyDraft::default();
    ["a&b", "\"c<"].into_iter().for_each(|id| draft.add_compute(id));
    ["s", "t"].into_iter().for_each(|id| draft.add_switch(id));
    let gigabyte = Capacity::from_bytes_per_sec(1_000_000_000).unwrap();
    for (switch, nanos) in [("s", 100), ("s", 900), ("t", 500)] {
        for rank in ["a&b", "\"c<"] {
            draft.add_both(rank, switch, gigabyte, Latency::from_nanos(nanos));
        }
    }
    let topology = draft.build(&TopologyLimits::STANDARD).unwrap();
    let (graph, messages) = plan(&topology, CollectiveKind::Allgather, 300_000);
    let platform = Platform::read(&simgrid(&topology, &graph.routes, &messages).platform);
    assert_eq!(platform.hosts, ["a&b", "a&b:1", "a&b:2", "\"c<", "\"c<:1", "\"c<:2"]);
    assert_eq!(platform.routers, ["s", "t"]);
    let over = |to: &str| platform.routes[&("a&b".to_owned(), to.to_owned())].concat();
    let routes = ["\"c<", "\"c<:1", "\"c<:2"].map(over);
    let mut found: Vec<&str> = routes.iter().map(String::as_str).collect();
    found.sort_unstable();
    found.dedup();
    assert_eq!(found.len(), 3, "{routes:?}");
    assert_eq!(platform.links["a&b:s:1"], ("1000000000Bps".to_owned(), "900ns".to_owned()));
}
