//! Real networks of simulators, read where they lie beside the repository.

use canopy_import::{ImportError, read};
use canopy_prerequisites::samples;
use canopy_topology::TopologyLimits;

/// Ranks, nodes and directed links by hand: 16·15; 8 ranks at a switch; 8·2; 64·(1 + 7 + 2) with 16 switches.
#[test]
fn networks_of_astra_have_their_ranks_and_links() {
    for (name, counts) in [
        ("FullyConnected.yml", (16, 16, 240)),
        ("HGX-H100-validated.yml", (8, 9, 16)),
        ("Ring_8npus.yml", (8, 8, 16)),
        ("Ring_FullyConnected_Switch.yml", (64, 80, 640)),
    ] {
        let Some(file) = samples(&format!("astra-network/{name}")) else { return };
        let topology = read(&std::fs::read(file).unwrap(), None, &TopologyLimits::STANDARD).unwrap().topology;
        let found = (topology.rank_count(), topology.nodes().len(), topology.links().len());
        assert_eq!((found, topology.first_unbalanced(), topology.first_unreachable()), (counts, None, None), "{name}");
    }
}

/// Files beside them that hold no network say what they are.
#[test]
fn other_files_of_planners_and_simulators_are_called_by_their_names() {
    for (name, what) in [
        ("taccl/sk1-dgx2-n2.json", "a sketch of TACCL"),
        ("taccl/topo-ndv2-1MB.json", "a profile of TACCL"),
        ("teccl/amd_sample.json", "an input of TE-CCL"),
        ("teccl/mesh_4.json", "a schedule of TE-CCL"),
        ("astra-network/custom_collective.json", "a system description of ASTRA-sim"),
        ("astra-network/sample_8nodes_1D.json", "logical dimensions of ASTRA-sim"),
    ] {
        let Some(file) = samples(name) else { return };
        match read(&std::fs::read(file).unwrap(), None, &TopologyLimits::STANDARD) {
            Err(ImportError::NotNetwork(found)) => assert!(found.what.starts_with(what), "{name}: {}", found.what),
            other => panic!("{name}: {other:?}"),
        }
    }
}
