//! Real listings of what joins machines, read where they lie beside the repository.

use canopy_import::{Content, Fabric, FileKind, PortName, read, read_content};
use canopy_prerequisites::samples;
use canopy_topology::TopologyLimits;

const LIMITS: TopologyLimits = TopologyLimits::STANDARD;

fn fabric(bytes: &[u8]) -> (FileKind, Fabric) {
    match read_content(bytes, &LIMITS, &|| false).expect("the sample is read") {
        (kind, Content::Fabric(fabric)) => (kind, fabric),
        other => panic!("{other:?}"),
    }
}

/// An NDR fat tree of DGX hosts. Counted from the text, by regular expressions: 1,114 cables, each from both ends; 532
/// between 269 pairs of 40 switches, 263 of them with two; 582 to adapters, of which 40 aggregate, 69 have no name, and
/// 473 are of 122 machines, 109 of those with four.
#[test]
fn an_infiniband_subnet_has_the_cables_of_its_file() {
    let Some(file) = samples("fabric/ibnetdiscover-example.out") else { return };
    let bytes = std::fs::read(file).unwrap();
    let (kind, fabric) = fabric(&bytes);
    assert_eq!(kind, FileKind::IbNetDiscover);
    let ports: Vec<usize> = fabric.hosts.iter().map(|host| host.attachments.len()).collect();
    assert_eq!((fabric.switches.len(), fabric.hosts.len(), ports.iter().sum::<usize>()), (40, 122, 473));
    assert_eq!(ports.iter().filter(|&&count| count == 4).count(), 109);
    assert_eq!((fabric.links.len(), fabric.links.iter().filter_map(|link| link.count).sum()), (269, 532_u64));
    assert_eq!(fabric.links.iter().filter(|link| link.count == Some(2)).count(), 263);
    let rates = fabric.links.iter().map(|link| link.rate);
    let rates = rates.chain(fabric.hosts.iter().flat_map(|host| host.attachments.iter().map(|at| at.rate)));
    assert!(rates.into_iter().all(|rate| rate.is_some_and(|rate| rate.bytes_per_sec() == 50_000_000_000)));
    let host = fabric.hosts.iter().find(|host| host.name == "a08-p1-dgx-04-c01").unwrap();
    assert!(host.attachments.iter().any(|attachment| {
        fabric.switches[attachment.switch].id == "A09-P1-IBLEAF-04-04"
            && attachment.port == PortName::Device("mlx5_5".to_owned(), Some(0xe09d_7303_007a_4bd8))
    }));
    assert!(fabric.report.left_out.iter().any(|line| line.starts_with("40 SHARP")), "{:?}", fabric.report);
    assert!(fabric.report.left_out.iter().any(|line| line.starts_with("69 adapters")), "{:?}", fabric.report);
    let topology = read(&bytes, None, &LIMITS).unwrap().topology;
    assert_eq!((topology.rank_count(), topology.nodes().len(), topology.first_unbalanced()), (122, 162, None));
}

/// Counted by hand from the drawings on top of the models.
#[test]
fn models_of_topograph_have_the_nodes_of_their_drawings() {
    let Some(folder) = samples("k8s") else { return };
    for (name, hosts, switches, links) in [
        // A core, spines, and two leaves below each, with the nodes of a rack each.
        ("dual-xclr-regular", 12 * 8, 1 + 6 + 12, 18),
        ("large", 12 * 8, 1 + 6 + 12, 18),
        ("medium", 8, 7, 6),
        ("nvl72", 4 * 18, 1 + 2 + 4, 6),
    ] {
        let bytes = std::fs::read(folder.join(format!("topograph-{name}.yaml"))).unwrap();
        let (kind, fabric) = fabric(&bytes);
        assert_eq!(kind, FileKind::Topograph, "{name}");
        let found = (fabric.hosts.len(), fabric.switches.len(), fabric.links.len());
        assert_eq!(found, (hosts, switches, links), "{name}");
        assert!(fabric.report.left_out[0].contains("nvl"), "{name}: {:?}", fabric.report);
    }
    for name in ["sample-queues.yaml", "sample-gpu-queues.yaml"] {
        let bytes = std::fs::read(folder.join(name)).unwrap();
        let error = read(&bytes, None, &LIMITS).unwrap_err().to_string();
        assert!(error.contains("but no nodes; add the output of"), "{name}: {error}");
    }
}
