//! Which labels of nodes say where they are in the network.

use std::collections::BTreeMap;

use canopy_topology::shorten;

/// Labels of a node.
pub(super) type Labels = BTreeMap<String, String>;

/// Labels that name the machine itself.
const MACHINES: [&str; 2] = ["kubernetes.io/hostname", "cloud.google.com/gce-topology-host"];

/// Places, outermost first; networks are within them.
const PLACES: [&str; 2] = ["topology.kubernetes.io/region", "topology.kubernetes.io/zone"];

/// Tiers of switches by Topograph: 0 is nearest to the nodes.
const TIER: &str = "fabric.topograph.run/tier-";

/// Levels of networks, outermost first; of those that nodes have, the first counts.
const NETWORKS: [&[&str]; 4] = [
    &["network.topology.nvidia.com/core", "network.topology.nvidia.com/spine", "network.topology.nvidia.com/leaf"],
    &["cloud.google.com/gce-topology-block", "cloud.google.com/gce-topology-subblock"],
    &[
        "topology.k8s.aws/network-node-layer-1",
        "topology.k8s.aws/network-node-layer-2",
        "topology.k8s.aws/network-node-layer-3",
    ],
    &["cloud.provider.com/topology-block", "cloud.provider.com/topology-rack"],
];

/// Groups of nodes that NVLink joins; a level only where nothing says how the network does.
const DOMAINS: [&[&str]; 3] = [
    &["accelerator.topograph.run/domain", "accelerator.topograph.run/sub-domain"],
    &["network.topology.nvidia.com/accelerator"],
    &["nvidia.com/gpu.clique"],
];

/// Levels, outermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Levels {
    pub(super) labels: Vec<String>,
    /// Labels of the network that are known, but not used.
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
        let mut tiers: Vec<u32> = Vec::new();
        for label in nodes.clone().flat_map(BTreeMap::keys) {
            tiers.extend(label.strip_prefix(TIER).and_then(|tier| tier.parse::<u32>().ok()));
        }
        tiers.sort_unstable();
        tiers.dedup();
        let tiers = tiers.iter().rev().map(|tier| format!("{TIER}{tier}")).collect();
        let networks = std::iter::once(tiers).chain(NETWORKS.iter().map(|labels| family(labels)));
        let all = networks.chain(DOMAINS.iter().map(|labels| family(labels)));
        let mut found = all.filter(|labels| !labels.is_empty());
        let mut levels = Self { labels: family(&PLACES), unused: Vec::new() };
        levels.labels.extend(found.next().unwrap_or_default());
        levels.unused = found.flatten().collect();
        levels
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
