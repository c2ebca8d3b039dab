//! Which labels of nodes say where they are in the network.

use std::collections::{BTreeMap, BTreeSet};

use canopy_topology::shorten;

/// Most labels of the network that are named, but not used.
const UNUSED_MAX: usize = 64;

/// Labels of a node.
pub(super) type Labels = BTreeMap<String, String>;

/// Labels that name the machine itself.
const MACHINES: [&str; 3] =
    ["kubernetes.io/hostname", "cloud.google.com/gce-topology-host", "oci.oraclecloud.com/rdma.host_id"];

/// Places, outermost first; networks are within them.
const PLACES: [&str; 2] = ["topology.kubernetes.io/region", "topology.kubernetes.io/zone"];

/// Tiers of switches with their numbers behind: the lowest is nearest to the nodes. From which number on they are switches of
/// the network and not NVLink, and what is above them all.
const TIERS: [(&str, u32, &str); 2] =
    [("fabric.topograph.run/tier-", 0, ""), ("topology.nebius.com/tier-", 1, "topology.nebius.com/gpu-cluster-id")];

/// Levels of networks, outermost first; of those that nodes have, the first counts.
const NETWORKS: [&[&str]; 12] = [
    &["network.topology.nvidia.com/core", "network.topology.nvidia.com/spine", "network.topology.nvidia.com/leaf"],
    &[
        "network.topology.nvidia.com/datacenter",
        "network.topology.nvidia.com/spine",
        "network.topology.nvidia.com/block",
    ],
    &[
        "network.topology.kubernetes.io/datacenter",
        "network.topology.kubernetes.io/spine",
        "network.topology.kubernetes.io/block",
    ],
    &["cloud.google.com/gce-topology-block", "cloud.google.com/gce-topology-subblock"],
    &[
        "topology.k8s.aws/network-node-layer-1",
        "topology.k8s.aws/network-node-layer-2",
        "topology.k8s.aws/network-node-layer-3",
        "topology.k8s.aws/network-node-layer-4",
    ],
    &[
        "oci.oraclecloud.com/rdma.hpc_island_id",
        "oci.oraclecloud.com/rdma.network_block_id",
        "oci.oraclecloud.com/rdma.local_block_id",
    ],
    &["backend.coreweave.cloud/fabric", "backend.coreweave.cloud/superpod", "backend.coreweave.cloud/leafgroup"],
    &["ib.coreweave.cloud/fabric", "ib.coreweave.cloud/superpod", "ib.coreweave.cloud/leafgroup"],
    &["crusoe.ai/ib.partition.id", "crusoe.ai/pod.id"],
    &["cloud.provider.com/topology-block", "cloud.provider.com/topology-rack"],
    &["topology.kubernetes.io/block", "topology.kubernetes.io/rack"],
    &["node.coreweave.cloud/rack"],
];

/// Groups of nodes that NVLink joins; a level only where nothing says how the network does.
const DOMAINS: [&[&str]; 7] = [
    &["accelerator.topograph.run/domain", "accelerator.topograph.run/sub-domain"],
    &["network.topology.nvidia.com/accelerator"],
    &["nvidia.com/gpu.clique"],
    &["ds.coreweave.com/nvlink.domain"],
    &["topology.nebius.com/tier-0"],
    &["topology.k8s.aws/ultraserver-id"],
    &["crusoe.ai/nvlink.domain.id"],
];

/// Words of labels that may say where in a network a node is. A label of no known ladder with one of them is named.
const WORDS: [&str; 22] = [
    "aggregation",
    "block",
    "cabinet",
    "clique",
    "cluster-id",
    "domain",
    "fabric",
    "island",
    "layer",
    "leaf",
    "partition",
    "pod.id",
    "pod-id",
    "rack",
    "rail",
    "spine",
    "subblock",
    "superpod",
    "switch",
    "tier",
    "topology",
    "tor-id",
];

/// Whether a label of no known ladder may say where in a network a node is.
fn may_place(label: &str) -> bool {
    let is_known = |known: &&str| *known == label;
    let plain = label.to_ascii_lowercase();
    let is_place =
        ["zone", "region", "zone-id", "hostname", "node"].iter().any(|end| plain.ends_with(&format!("/{end}")));
    let is_other = is_place || plain.contains("csi") || MACHINES.iter().chain(&PLACES).any(is_known);
    !is_other && WORDS.iter().any(|word| plain.contains(word))
}

/// Levels, outermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Levels {
    pub(super) labels: Vec<String>,
    /// Labels that may say more of the network, but are not used.
    pub(super) unused: Vec<String>,
}

impl Levels {
    /// Those that are given, without the one of the machine itself.
    pub(super) fn given(labels: Vec<String>) -> Self {
        let labels = labels.into_iter().filter(|label| !MACHINES.contains(&label.as_str())).collect();
        Self { labels, unused: Vec::new() }
    }

    /// Those that some node has a label of. O(labels).
    pub(super) fn known<'a>(nodes: impl Iterator<Item = &'a Labels> + Clone) -> Self {
        let is_there = |label: &str| nodes.clone().any(|labels| labels.contains_key(label));
        let family = |family: &[&str]| -> Vec<String> {
            family.iter().filter(|label| is_there(label)).map(|label| (*label).to_owned()).collect()
        };
        let tiers = |&(prefix, first, above): &(&str, u32, &str)| -> Vec<String> {
            let number = |label: &String| label.strip_prefix(prefix)?.parse::<u32>().ok().filter(|&tier| tier >= first);
            let numbers: BTreeSet<u32> = nodes.clone().flat_map(BTreeMap::keys).filter_map(number).collect();
            let tiers = numbers.iter().rev().map(|tier| format!("{prefix}{tier}"));
            family(&[above]).into_iter().chain(tiers).collect()
        };
        let networks = TIERS.iter().map(tiers).chain(NETWORKS.iter().map(|labels| family(labels)));
        let all = networks.chain(DOMAINS.iter().map(|labels| family(labels)));
        let mut found = all.filter(|labels| !labels.is_empty());
        let network = found.next().unwrap_or_default();
        // A place that all are in says nothing beside levels of the network.
        let has_several = |label: &String| {
            let values: BTreeSet<&String> = nodes.clone().filter_map(|labels| labels.get(label)).collect();
            values.len() > 1
        };
        let places = family(&PLACES).into_iter().filter(|place| network.is_empty() || has_several(place));
        let labels = places.chain(network.iter().cloned()).collect();
        let mut levels = Self { labels, unused: found.flatten().collect() };
        let used: BTreeSet<&String> = levels.labels.iter().chain(&levels.unused).collect();
        let others = nodes.flat_map(BTreeMap::keys).filter(|label| may_place(label) && !used.contains(label));
        let others: BTreeSet<&String> = others.collect();
        levels.unused.extend(others.into_iter().take(UNUSED_MAX).cloned());
        levels.unused.retain(|label| !levels.labels.contains(label));
        levels
    }

    /// Whether no level says how the network joins nodes: all are in one place.
    pub(super) fn is_blind(&self) -> bool {
        self.labels.iter().all(|label| PLACES.contains(&label.as_str()))
    }

    /// Values of a node by level, or the label that it does not have.
    pub(super) fn path<'a>(&'a self, labels: &'a Labels) -> Result<Vec<&'a str>, &'a str> {
        let value = |label: &'a String| labels.get(label).map(String::as_str).filter(|value| !value.is_empty());
        self.labels.iter().map(|label| value(label).ok_or(label.as_str())).collect()
    }

    /// The levels as people write them.
    pub(super) fn words(&self) -> String {
        self.labels.iter().map(|label| shorten(label)).collect::<Vec<_>>().join(" > ")
    }
}
