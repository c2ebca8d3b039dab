//! Real topology files of NCCL, read where they lie beside the repository.

use std::path::{Path, PathBuf};

use canopy_import::{FileKind, read};
use canopy_prerequisites::samples;
use canopy_topology::{TopologyLimits, read_document, to_json, to_yaml};

/// Files of a folder, sorted.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("the folder can be read");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("the folder can be listed").path()).collect();
    files.retain(|file| file.extension().is_some_and(|found| found == extension));
    files.sort();
    files
}

fn name(file: &Path) -> &str {
    file.file_name().and_then(|name| name.to_str()).expect("samples have plain names")
}

/// Every dump becomes an Eulerian network in which all GPUs reach each other, except the two that are none.
#[test]
fn every_nccl_dump_is_read_or_refused_with_its_reason() {
    let Some(folder) = samples("nccl-topo") else { return };
    let mut of_eight_gpus = 0;
    for file in files(&folder, "xml") {
        let found = read(&std::fs::read(&file).unwrap(), None, &TopologyLimits::STANDARD);
        let imported = match (name(&file), found) {
            ("aws-g5.48xl-topo.xml", Err(error)) => {
                assert!(error.to_string().contains("the file names no GPU"), "{error}");
                continue;
            }
            ("azure-ncv4-graph.xml", Err(error)) => {
                assert!(error.to_string().contains("not a description of a network"), "{error}");
                continue;
            }
            (name, found) => found.unwrap_or_else(|error| panic!("{name}: {error}")),
        };
        let topology = imported.topology;
        let (ranks, nodes, links) = (topology.rank_count(), topology.nodes().len(), topology.links().len());
        println!("{}: {ranks} ranks, {nodes} nodes, {links} links, Eulerian and strongly connected", name(&file));
        assert_eq!(topology.first_unbalanced(), None, "{}", name(&file));
        assert_eq!(topology.first_unreachable(), None, "{}", name(&file));
        of_eight_gpus += usize::from(ranks == 8);
        for text in [to_yaml(&topology), to_json(&topology)] {
            let back = read_document(text.as_bytes(), None, &TopologyLimits::STANDARD).unwrap();
            assert_eq!(back.topology, topology, "{}", name(&file));
        }
        // Any byte of a real file may be damaged: an answer comes, whatever it is.
        let mut damaged = std::fs::read(&file).unwrap();
        for position in (0..damaged.len()).step_by(97) {
            let byte = std::mem::replace(&mut damaged[position], b'<');
            let _ = read(&damaged, Some(FileKind::NcclXml), &TopologyLimits::STANDARD);
            damaged[position] = byte;
        }
    }
    assert!(of_eight_gpus >= 30, "{of_eight_gpus}");
}

/// An all-xGMI box is its GPUs and nothing else: MI300, eight GPUs, every pair with one link of 48 GB/s.
#[test]
fn an_mi300_box_is_a_complete_graph() {
    let Some(folder) = samples("nccl-topo") else { return };
    let files = files(&folder, "xml").into_iter().filter(|file| name(file).contains("940vm")).collect::<Vec<_>>();
    assert!(!files.is_empty());
    for file in files {
        let topology = read(&std::fs::read(&file).unwrap(), None, &TopologyLimits::STANDARD).unwrap().topology;
        assert_eq!((topology.nodes().len(), topology.links().len()), (8, 56));
        assert!(topology.links().iter().all(|link| link.capacity.bytes_per_sec() == 48_000_000_000));
        // The dump numbers GPUs by rank, not by device: rank 0 is the device at domain 0021.
        assert_eq!(topology.nodes()[0].attributes.label.as_deref(), Some("0021:00:00.0"));
    }
}
