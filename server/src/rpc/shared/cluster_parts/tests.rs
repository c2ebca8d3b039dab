use canopy_proto::v1::cluster_description::Fabric;
use canopy_proto::v1::{ClusterDescription, ClusterNodes, FabricLayout, HostKind, TopologyDocument};
use canopy_topology::{Topology, read_document};

use super::*;
use crate::store::MemoryStore;

const LIMITS: TopologyLimits = TopologyLimits::STANDARD;
const CONF: &str = "SwitchName=leaf1 Nodes=gpu[01-04]\nSwitchName=leaf2 Nodes=gpu[05-08]\nSwitchName=spine \
                    Switches=leaf[1-2]\n";

fn file(text: &str) -> TopologyDocument {
    TopologyDocument { format: 0, content: text.to_owned().into() }
}

fn described(conf: &str, rates: &str) -> ClusterDescription {
    ClusterDescription { fabric: Some(Fabric::File(file(conf))), hosts: Vec::new(), rates: rates.to_owned() }
}

fn put(
    clusters: &ClusterParts,
    name: &str,
    description: &ClusterDescription,
) -> Result<(PutCluster, Report), ClusterFailure> {
    clusters.put(name, description, &LIMITS, &|| false)
}

fn on(memory: &Arc<MemoryStore>, now_ms: fn() -> u64) -> ClusterParts {
    ClusterParts::new(ClusterStore::new(Arc::<MemoryStore>::clone(memory), now_ms))
}

fn part(store: &ClusterParts, cluster: &str, nodes: &[&str]) -> Result<Topology, ClusterFailure> {
    let nodes = nodes.iter().map(|node| (*node).to_owned()).collect();
    let text = store.part(&ClusterNodes { cluster: cluster.to_owned(), nodes }, &LIMITS, &|| false)?;
    Ok(read_document(&text, None, &LIMITS).unwrap().topology)
}

fn hosts(topology: &Topology) -> Vec<&str> {
    topology.ranks().filter_map(|rank| topology.node(rank.node()).attributes.host.as_deref()).collect()
}

#[test]
fn a_cluster_is_kept_by_name_and_replaced_under_it() {
    let memory = Arc::new(MemoryStore::default());
    let store = on(&memory, || 7);
    let (first, report) = put(&store, "clusters/prod", &described(CONF, "nic=50GB/s")).unwrap();
    assert!(first.created && first.changed);
    assert_eq!((first.cluster.nodes, first.cluster.ranks, first.cluster.switches), (8, 8, 3));
    assert!(report.assumed[0].contains("rates from leaf to spine"), "{:?}", report);
    let (again, _) = put(&store, "clusters/prod", &described(CONF, "nic=50GB/s")).unwrap();
    assert!(!again.created && !again.changed);
    let network = part(&store, "clusters/prod", &["gpu[05-06]", "gpu01"]).unwrap();
    assert_eq!((hosts(&network), network.cluster()), (vec!["gpu05", "gpu06", "gpu01"], Some("prod")));
    let rate = |network: &Topology| network.links()[0].capacity.bytes_per_sec();
    assert_eq!(rate(&network), 50_000_000_000);
    // Parts that are at hand are those of the new description.
    let (faster, _) = put(&store, "clusters/prod", &described(CONF, "nic=100GB/s")).unwrap();
    assert!(!faster.created && faster.changed);
    assert_eq!(rate(&part(&store, "clusters/prod", &["gpu[05-06]", "gpu01"]).unwrap()), 100_000_000_000);
    // Another server on the same store.
    let second = on(&memory, || 9);
    let (cluster, description, nodes) = second.get("clusters/prod", &LIMITS).unwrap();
    assert_eq!((cluster.created_ms, description), (7, described(CONF, "nic=100GB/s")));
    assert_eq!(nodes.len(), 8);
    assert_eq!(part(&second, "clusters/prod", &[]).unwrap().rank_count(), 8);
    let mut listed = Vec::new();
    second.store().for_each(|cluster| listed.push(cluster.name)).unwrap();
    assert_eq!(listed, ["clusters/prod"]);
    assert_eq!(second.remove("clusters/prod").unwrap(), cluster.size_bytes);
    assert!(matches!(second.get("clusters/prod", &LIMITS), Err(ClusterFailure::Unknown { .. })));
    assert!(matches!(part(&second, "clusters/prod", &[]), Err(ClusterFailure::Unknown { .. })));
}

#[test]
fn layouts_and_whole_networks_are_clusters() {
    let store = on(&Arc::default(), || 7);
    let dump = include_str!("../../../../../crates/import/tests/data/four-gpus.xml");
    let layout = FabricLayout { layout: "rail".to_owned(), nodes: "a[1-3]".to_owned() };
    let host = HostKind { file: Some(file(dump)), nodes: String::new() };
    let rails = ClusterDescription { fabric: Some(Fabric::Layout(layout)), hosts: vec![host], rates: String::new() };
    assert_eq!(put(&store, "clusters/rails", &rails).unwrap().0.cluster.ranks, 12);
    assert_eq!(part(&store, "clusters/rails", &["a3,a1"]).unwrap().rank_count(), 8);
    let source = v1::topology_source::Source::Expression("dgx-a100:boxes=4".to_owned());
    let network = Fabric::Network(v1::TopologySource { source: Some(source) });
    let whole = ClusterDescription { fabric: Some(network), ..ClusterDescription::default() };
    let (PutCluster { cluster, .. }, _) = put(&store, "clusters/dgx", &whole).unwrap();
    assert_eq!((cluster.nodes, cluster.ranks), (4, 32));
    let two = part(&store, "clusters/dgx", &["b3", "b1"]).unwrap();
    assert_eq!((two.rank_count(), two.cluster()), (16, Some("dgx")));
    let wrong = ClusterDescription { rates: "nic=1GB/s".to_owned(), ..whole };
    assert!(put(&store, "clusters/dgx", &wrong).unwrap_err().to_string().starts_with("description.rates: "));
}

#[test]
fn what_cannot_be_a_cluster_is_refused_with_its_field() {
    let store = on(&Arc::default(), || 7);
    let good = described(CONF, "nic=50GB/s");
    for name in ["prod", "clusters/", "clusters/a/b", "clusters/ä", "topologies/prod", "clusters/-a"] {
        assert!(matches!(put(&store, name, &good), Err(ClusterFailure::Name { .. })), "{name}");
    }
    let host = |text: &str, nodes: &str| HostKind { file: Some(file(text)), nodes: nodes.to_owned() };
    let with = |hosts| ClusterDescription { hosts, ..good.clone() };
    let cases = [
        (ClusterDescription::default(), "description.fabric: is missing"),
        (described("SwitchName=leaf1 Nodes=gpu[01-", ""), "description.file: "),
        (described("canopy: 1", ""), "description.file: "),
        (described(CONF, "nic=fast"), "description.rates: "),
        (described(CONF, ""), "description: the rate of port rank of node `gpu01` is unknown"),
        (with(vec![host(CONF, "")]), "description.hosts[0].file: this is topology.conf"),
        (with(vec![host("", "gpu[1-"), host("", "")]), "description.hosts[0].file: "),
        (with(vec![HostKind { file: None, nodes: "gpu[1-".to_owned() }]), "description.hosts[0].nodes: "),
        (with(vec![HostKind::default(); 65]), "description.hosts: 65 kinds"),
    ];
    for (description, start) in cases {
        let error = put(&store, "clusters/prod", &description).unwrap_err().to_string();
        assert!(error.starts_with(start), "{start}: {error}");
    }
    put(&store, "clusters/prod", &good).unwrap();
    for (nodes, problem) in [
        (vec!["gpu09"], "node `gpu09` is not in the cluster, which has gpu01 gpu02"),
        (vec!["gpu01", "gpu01"], "twice"),
        (vec!["gpu[01-"], "a bracket does not close"),
        (vec!["gpu01"], "at least two compute nodes"),
        (vec!["a[1-999999]"], "more than 65536 hosts"),
    ] {
        let error = part(&store, "clusters/prod", &nodes).unwrap_err().to_string();
        assert!(error.starts_with("nodes: ") && error.contains(problem), "{nodes:?}: {error}");
    }
}
