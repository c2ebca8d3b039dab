//! Whatever bytes come, an answer does, and soon.

use canopy_import::{FileKind, ImportError, read, read_content};
use canopy_topology::TopologyLimits;
use proptest::prelude::*;

const LIMITS: TopologyLimits = TopologyLimits { nodes_max: 300, links_max: 5_000, bytes_max: 1 << 20 };

/// A small file of every kind, as its program writes it.
const SMALL: &[(FileKind, &str)] = &[
    (FileKind::AstraNetwork, include_str!("../data/astra.yml")),
    (FileKind::GraphMl, include_str!("../data/graph.graphml")),
    (FileKind::SimGrid, include_str!("../data/platform.xml")),
    (FileKind::Csv, include_str!("../data/links.csv")),
    (FileKind::NcclXml, include_str!("../data/h100-host.xml")),
    (FileKind::NvidiaSmi, include_str!("../data/nvidia-smi-topo.txt")),
    (FileKind::RocmSmi, include_str!("../data/rocm-smi-topo.txt")),
    (FileKind::Hwloc, include_str!("../data/lstopo.xml")),
    (FileKind::SlurmConf, include_str!("../data/topology.conf")),
    (FileKind::SlurmYaml, include_str!("../data/topology.yaml")),
    (FileKind::IbNetDiscover, include_str!("../data/ibnetdiscover.out")),
    (FileKind::IbLinkInfo, include_str!("../data/iblinkinfo.out")),
    (FileKind::Lldp, include_str!("../data/lldp.json")),
    (FileKind::Topograph, include_str!("../data/topograph.yaml")),
    (FileKind::KubernetesLabels, include_str!("../data/kubernetes-nodes.yaml")),
];

/// What means something in one kind of file or another.
const MARKS: &[u8] = b"[]{}<>=\"' \n\\9-,";

#[test]
fn there_is_a_file_of_every_kind_and_it_is_recognised() {
    for kind in FileKind::foreign() {
        let (_, text) = SMALL.iter().find(|(of, _)| *of == kind).unwrap_or_else(|| panic!("none of {}", kind.name()));
        let (found, _) = read_content(text.as_bytes(), &TopologyLimits::STANDARD, &|| false).unwrap();
        assert_eq!(found, kind);
    }
}

/// What is no network is called by its name; other XML is read as that of NCCL, and other text as canopy's own.
#[test]
fn files_are_told_apart() {
    let refusal = |bytes: &[u8]| read(bytes, None, &LIMITS).unwrap_err();
    assert!(matches!(refusal(b"<graphs/>"), ImportError::NotNetwork(_)));
    assert!(matches!(refusal(b"\x89PNG\xff"), ImportError::Binary { .. }));
    assert!(matches!(refusal(b"<other/>"), ImportError::Nccl(_)));
    assert!(matches!(refusal(b"<"), ImportError::Xml(_)));
    assert!(matches!(refusal(b"{"), ImportError::Document(_)));
    assert!(matches!(refusal(b"ring"), ImportError::Document(_)));
    assert!(matches!(refusal(b"a\xff"), ImportError::Document(_)));
    let own = b"canopy: 1\nnodes: [{id: \"<algo\"}, {id: \"<system\"}]\nlinks: []\n";
    assert_eq!(read(own, None, &LIMITS).unwrap().topology.rank_count(), 2);
}

#[test]
fn files_may_end_anywhere() {
    for (kind, text) in SMALL {
        for end in (0..text.len()).filter(|&end| text.is_char_boundary(end)) {
            let _ = read(&text.as_bytes()[..end], Some(*kind), &LIMITS);
        }
    }
}

proptest! {
    #[test]
    fn garbage_is_refused_without_panic(bytes: Vec<u8>, text in "[\\[\\]{}<>:,&*!|\"' \\n\\-a-z0-9=#\\\\]{0,200}") {
        for kind in FileKind::foreign().map(Some).chain([None]) {
            let _ = read(&bytes, kind, &LIMITS);
            let _ = read(text.as_bytes(), kind, &LIMITS);
        }
    }

    #[test]
    fn damaged_files_get_an_answer(
        number in any::<prop::sample::Index>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0_u8..5), 1..6),
    ) {
        let (kind, text) = SMALL[number.index(SMALL.len())];
        let mut bytes = text.as_bytes().to_vec();
        for (place, byte, what) in damage {
            if bytes.is_empty() {
                break;
            }
            let place = place.index(bytes.len());
            match what {
                0 => bytes[place] = byte,
                1 => drop(bytes.remove(place)),
                2 => bytes.insert(place, MARKS[usize::from(byte) % MARKS.len()]),
                3 => bytes.truncate(place),
                _ => {
                    let end = (place + usize::from(byte)).min(bytes.len());
                    let copy = bytes[place..end].to_vec();
                    bytes.splice(place..place, copy);
                }
            }
        }
        if let Ok(imported) = read(&bytes, Some(kind), &LIMITS) {
            prop_assert!(imported.topology.nodes().len() <= 300 && imported.topology.links().len() <= 5_000);
        }
        let _ = read_content(&bytes, &LIMITS, &|| false);
    }
}
