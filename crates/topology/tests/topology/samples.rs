//! Small networks with known answers, read where they lie beside the repository.

use std::path::{Path, PathBuf};

use canopy_prerequisites::known_networks;
use canopy_topology::{TopologyLimits, read_document};

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

/// Small networks whose optima were computed elsewhere: Eulerian unless their name says directed.
#[test]
fn small_known_networks_are_read() {
    let Some(folder) = known_networks() else { return };
    for file in files(&folder, "yaml") {
        let topology = read_document(&std::fs::read(&file).unwrap(), None, &TopologyLimits::STANDARD).unwrap().topology;
        assert_eq!(topology.first_unbalanced().is_none(), !name(&file).starts_with("directed"), "{}", name(&file));
        assert_eq!(topology.first_unreachable(), None, "{}", name(&file));
        assert_eq!(topology.name(), file.file_stem().and_then(|stem| stem.to_str()));
    }
}
