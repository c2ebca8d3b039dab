//! Fingerprints of canonical forms.

use canopy_topology::TopologyHash;

use crate::graph::{Arc, Graph};

const CONTEXT: &str = "canopy canonical form 2026, version 1";

/// Fingerprint of a graph as it is numbered: colours by node, then arcs in their order.
///
/// Isomorphic graphs in canonical form have equal fingerprints. Where more than a cache depends on it, compare the
/// forms, too. Numbers are eight bytes, little endian, and lists have their lengths before them, so different graphs
/// are hashed from different bytes. O(nodes + arcs).
pub fn form_hash(graph: &Graph) -> TopologyHash {
    let mut bytes = Vec::with_capacity(16 + 8 * graph.node_count() + 32 * graph.arcs().len());
    let mut write = |number: u64| bytes.extend_from_slice(&number.to_le_bytes());
    write(graph.node_count() as u64);
    graph.colours().iter().copied().for_each(&mut write);
    write(graph.arcs().len() as u64);
    for &Arc { from, to, weight } in graph.arcs() {
        [u64::from(from), u64::from(to), weight[0], weight[1]].into_iter().for_each(&mut write);
    }
    TopologyHash::from_bytes(blake3::derive_key(CONTEXT, &bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_counts() {
        let arc = |from, to, weight| Arc { from, to, weight };
        let hash = |colours: &[u64], arcs: &[Arc]| form_hash(&Graph::new(colours.to_vec(), arcs.to_vec()).unwrap());
        let all = [
            hash(&[0, 0], &[]),
            hash(&[0, 1], &[]),
            hash(&[0, 0, 0], &[]),
            hash(&[0, 0], &[arc(0, 1, [1, 0])]),
            hash(&[0, 0], &[arc(1, 0, [1, 0])]),
            hash(&[0, 0], &[arc(0, 1, [0, 1])]),
            hash(&[0, 0], &[arc(0, 1, [1, 0]), arc(0, 1, [1, 0])]),
        ];
        let distinct: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
        assert_eq!(all[0].to_string().len(), 64);
    }
}
