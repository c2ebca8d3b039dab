//! Models and labels give the trees that they describe.

use canopy_topology::TopologyLimits;

use crate::content::Content;
use crate::error::ImportError;
use crate::fabric::{Fabric, PortName};
use crate::read::{read as read_network, read_content};

const LIMITS: TopologyLimits = TopologyLimits::STANDARD;
const MODEL: &str = include_str!("../../tests/data/topograph.yaml");
const NODES: &str = include_str!("../../tests/data/kubernetes-nodes.yaml");

fn read(text: &str) -> Result<Fabric, ImportError> {
    match read_content(text.as_bytes(), &LIMITS, &|| false)? {
        (_, Content::Fabric(fabric)) => Ok(fabric),
        other => panic!("{other:?}"),
    }
}

/// `node switch` of each node, and `lower upper` of each link.
fn shape(text: &str) -> (Vec<String>, Vec<String>) {
    let Fabric { switches, links, hosts, .. } = read(text).unwrap();
    let id = |switch: usize| switches[switch].id.as_str();
    assert!(hosts.iter().all(|host| host.attachments[0].port == PortName::Others));
    let hosts = hosts.iter().map(|host| format!("{} {}", host.name, id(host.attachments[0].switch)));
    let links = links.iter().map(|link| format!("{} {}", id(link.ends.0), id(link.ends.1)));
    (hosts.collect(), links.collect())
}

/// Nodes with these labels, as `kubectl get nodes -o json` writes them.
fn nodes(nodes: &[(&str, &[(&str, &str)])]) -> String {
    let items = nodes.iter().map(|(name, labels)| {
        let labels = labels.iter().map(|(key, value)| format!("\"{key}\": \"{value}\"")).collect::<Vec<_>>().join(", ");
        format!("{{\"kind\": \"Node\", \"metadata\": {{\"name\": \"{name}\", \"labels\": {{{labels}}}}}}}")
    });
    let items = items.collect::<Vec<_>>().join(",\n");
    format!("{{\n\"apiVersion\": \"v1\",\n\"kind\": \"List\",\n\"items\": [\n{items}\n]}}\n")
}

#[test]
fn a_model_has_its_switches_and_blocks() {
    let (hosts, links) = shape(MODEL);
    assert_eq!(hosts, ["node01 leaf1", "node02 leaf1", "node03 leaf2", "node04 leaf2", "node05 leaf2"]);
    assert_eq!(links, ["leaf1 spine", "leaf2 spine"]);
    let report = read(MODEL).unwrap().report;
    assert_eq!(report.understood, ["5 nodes and 3 switches"]);
    assert!(report.left_out[0].ends_with("nvl1 nvl2"), "{report:?}");
    let older =
        "switches:\n  S1:\n    switches: \n    - S3\n    - S2\n  S2:\n    nodes: [I21, I22]\n  S3:\n    nodes: [I34]\n";
    let (hosts, links) = shape(&format!("{older}nodes:\n  I21: {{type: H100}}\n"));
    assert_eq!((hosts.len(), links), (3, vec!["S3 S1".to_owned(), "S2 S1".to_owned()]));
}

/// Both blocks have a rack of the same name; the block is in its id then.
#[test]
fn labels_are_a_path_by_the_levels_of_kueue() {
    let (hosts, links) = shape(NODES);
    assert_eq!(hosts, ["gpu-a block1.rack1", "gpu-b rack2", "gpu-c block2.rack1"]);
    assert_eq!(links, ["block1.rack1 block1", "rack2 block1", "block2.rack1 block2", "block1 top", "block2 top"]);
    let report = read(NODES).unwrap().report;
    let levels = "levels: cloud.provider.com/topology-block > cloud.provider.com/topology-rack";
    assert_eq!(report.understood, ["3 nodes and 6 switches", levels]);
    assert_eq!(report.assumed, ["the 2 outermost domains are joined by one switch, `top`"]);
    assert_eq!(report.left_out, ["documents that describe no nodes: ConfigMap x1"]);
    let (_, links) = shape(&NODES.replace("rack2", "gpu-a"));
    assert_eq!(links[1], "block1.gpu-a block1", "a node has the name");
    let own = "example.com/row";
    let text = NODES.replace("cloud.provider.com/topology-block", own);
    assert_eq!(read(&text).unwrap().report.understood[1], format!("levels: {own} > cloud.provider.com/topology-rack"));
}

/// Levels are those of the first family that nodes have, within regions and zones.
#[test]
fn known_labels_are_levels() {
    let levels = |labels: &[(&str, &str)]| read(&nodes(&[("a", labels)])).unwrap().report;
    for (labels, expected) in [
        (
            &[("fabric.topograph.run/tier-0", "leaf"), ("fabric.topograph.run/tier-10", "core")][..],
            "fabric.topograph.run/tier-10 > fabric.topograph.run/tier-0",
        ),
        (
            &[
                ("topology.kubernetes.io/zone", "z"),
                ("topology.kubernetes.io/region", "r"),
                ("nvidia.com/gpu.clique", "c.0"),
            ],
            "nvidia.com/gpu.clique",
        ),
        (
            &[("cloud.google.com/gce-topology-subblock", "s"), ("cloud.google.com/gce-topology-host", "h")],
            "cloud.google.com/gce-topology-subblock",
        ),
        (
            &[("topology.k8s.aws/network-node-layer-2", "m"), ("topology.k8s.aws/network-node-layer-1", "t")],
            "topology.k8s.aws/network-node-layer-1 > topology.k8s.aws/network-node-layer-2",
        ),
    ] {
        assert_eq!(levels(labels).understood[1], format!("levels: {expected}"));
    }
    let both = levels(&[("accelerator.topograph.run/domain", "nvl1"), ("fabric.topograph.run/tier-0", "leaf")]);
    assert_eq!(both.left_out, ["labels that may say more of the network: accelerator.topograph.run/domain"]);
}

/// Ladders of clouds are read as they are climbed, and what is left is named.
#[test]
fn clouds_have_ladders_of_their_own() {
    for ladder in [
        &[
            "oci.oraclecloud.com/rdma.hpc_island_id",
            "oci.oraclecloud.com/rdma.network_block_id",
            "oci.oraclecloud.com/rdma.local_block_id",
        ][..],
        &["backend.coreweave.cloud/fabric", "backend.coreweave.cloud/superpod", "backend.coreweave.cloud/leafgroup"],
        &["ib.coreweave.cloud/fabric", "ib.coreweave.cloud/superpod", "ib.coreweave.cloud/leafgroup"],
        &["crusoe.ai/ib.partition.id", "crusoe.ai/pod.id"],
        &["topology.nebius.com/gpu-cluster-id", "topology.nebius.com/tier-2", "topology.nebius.com/tier-1"],
    ] {
        let labels = |leaf: &'static str| -> Vec<(&str, &str)> {
            let above = ladder[..ladder.len() - 1].iter().map(|label| (*label, "up"));
            above.chain([(ladder[ladder.len() - 1], leaf), ("topology.kubernetes.io/zone", "z")]).collect()
        };
        let (a, b) = (labels("a"), labels("b"));
        let text = nodes(&[("n0", &a), ("n1", &a), ("n2", &b), ("n3", &b)]);
        let fabric = read(&text).unwrap();
        assert_eq!(fabric.report.understood[1], format!("levels: {}", ladder.join(" > ")));
        let at: Vec<usize> = fabric.hosts.iter().map(|host| host.attachments[0].switch).collect();
        assert!(at[0] == at[1] && at[2] == at[3] && at[0] != at[2], "{at:?}");
        assert!(fabric.report.left_out.is_empty(), "{:?}", fabric.report);
        let zones = text.replacen("\"z\"", "\"other\"", 2);
        let levels = format!("levels: topology.kubernetes.io/zone > {}", ladder.join(" > "));
        assert_eq!(read(&zones).unwrap().report.understood[1], levels);
    }
    let unknown = nodes(&[(
        "a",
        &[("topology.kubernetes.io/zone", "z"), ("example.com/leaf-switch", "s"), ("kubernetes.io/os", "x")],
    )]);
    let report = read(&unknown).unwrap().report;
    assert_eq!(report.left_out, ["labels that may say more of the network: example.com/leaf-switch"]);
    assert!(report.assumed[0].contains("no label that is known"), "{report:?}");
}

#[test]
fn nodes_without_the_labels_are_left_out() {
    let rack = "cloud.provider.com/topology-rack";
    let fabric = read(&nodes(&[("a", &[(rack, "r")]), ("system-0", &[]), ("system-1", &[])])).unwrap();
    assert_eq!(fabric.nodes(), ["a"]);
    assert_eq!(fabric.report.left_out, [format!("2 nodes without the label `{rack}`: system-0 system-1")]);
}

/// Members are named, or picked among the nodes of the file by labels.
#[test]
fn hypernodes_name_what_is_below_them() {
    let hypernode = |name: &str, kind: &str, selector: &str| {
        format!(
            "apiVersion: topology.volcano.sh/v1alpha1\nkind: HyperNode\nmetadata: {{name: {name}}}\nspec:\n  tier: 1\n  members:\n  \
             - {{type: {kind}, selector: {selector}}}\n---\n"
        )
    };
    let named =
        |kind: &str, name: &str, member: &str| hypernode(name, kind, &format!("{{exactMatch: {{name: {member}}}}}"));
    let file = named("HyperNode", "top", "s0") + &named("Node", "s0", "n0");
    assert_eq!(shape(&file), (vec!["n0 s0".to_owned()], vec!["s0 top".to_owned()]));
    let picked = hypernode("s0", "Node", "{labelMatch: {matchLabels: {row: a}}}");
    let labelled = nodes(&[("n0", &[("row", "a")]), ("n1", &[("row", "b")]), ("n2", &[("row", "a")])]);
    assert_eq!(shape(&(picked.clone() + &labelled)).0, ["n0 s0", "n2 s0"]);
    for (text, words) in [
        (picked, "picks members in a way that is not read; name each"),
        (hypernode("s0", "Node", "{regexMatch: {pattern: n.*}}"), "picks members in a way that is not read; name each"),
        (named("HyperNode", "top", "s0"), "has the member `s0`, which is none of the file; add it"),
        (named("HyperNode", "a", "b") + &named("HyperNode", "b", "a") + &named("Node", "c", "n9"), "is above itself"),
        (hypernode("s0", "Node", "3"), "HyperNode `s0`: "),
    ] {
        let error = read(&text).expect_err(words).to_string();
        assert!(error.contains(words), "{words}: {error}");
    }
}

#[test]
fn refusals_name_the_node_and_the_remedy() {
    let (levels, _) = NODES.split_once("---").unwrap();
    let missing = levels.replace("cloud.provider.com/topology-block", "rack");
    let missing = format!("{missing}---\n{}", nodes(&[("a", &[("kubernetes.io/os", "linux")]), ("b", &[])]));
    let loops = "switches:\n  a:\n    switches: [b]\n  b:\n    switches: [a]\nblocks:\n- {switch: c, nodes: [n]}\n";
    for (text, words) in [
        (levels.to_owned(), "has levels of a topology, but no nodes; add the output of `kubectl get nodes -o yaml`"),
        (format!("{NODES}---\n{levels}"), "several topologies, default default; leave one"),
        (missing, "node `a` has no label `rack`, nor has any other"),
        (nodes(&[("a", &[("kubernetes.io/hostname", "a")])]), "put a Topology of Kueue into the file"),
        (nodes(&[]), "the file has no nodes"),
        (NODES.replace("name: gpu-b", "name: gpu-a"), "node `gpu-a` is below `block1.rack1` and below `rack2`"),
        (NODES.replace("name: gpu-b", "nam: gpu-b"), "a node has no `metadata.name`"),
        (loops.to_owned(), "switch `a` is above itself"),
        (MODEL.replace("node05", "node03"), "names node03 twice"),
        (MODEL.replace("node05", "node01"), "node `node01` is below `leaf1` and below `leaf2`"),
        (
            MODEL.replace("blocks:", "  leaf3:\n    switches: [leaf1]\nblocks:"),
            "`leaf1` is below `spine` and below `leaf3`",
        ),
        (MODEL.replace("[01-02]", "[1-99999]"), "more than 65536 hosts"),
        (MODEL.replace("- switch: leaf1", "- swich: leaf1"), "missing field `switch`"),
    ] {
        let error = read(&text).expect_err(words).to_string();
        assert!(error.contains(words), "{words}: {error}");
    }
    for text in [MODEL, NODES] {
        let error = read_network(text.as_bytes(), None, &LIMITS).unwrap_err().to_string();
        assert!(error.contains("does not say how fast"), "{error}");
        let small = TopologyLimits { nodes_max: 5, ..LIMITS };
        assert!(read_content(text.as_bytes(), &small, &|| false).unwrap_err().is_over_limit());
    }
    let pod = read("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n").unwrap_err().to_string();
    assert!(pod.contains("this is a Kubernetes manifest"), "{pod}");
}
