//! Reads the manifests and sources and fails on what the architecture forbids.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use canopy_tests::workspace;

/// The allowed edges: `(crate, what it may use besides external crates)`.
const LAYERS: [(&str, &[&str]); 19] = [
    ("crates/direct", &["canopy-optimize"]),
    ("crates/topology", &["canopy-direct"]),
    ("crates/optimize", &[]),
    ("crates/canonical", &["canopy-topology"]),
    ("crates/faults", &["canopy-canonical", "canopy-topology"]),
    ("crates/families", &["canopy-canonical", "canopy-topology"]),
    ("crates/finder", &["canopy-direct", "canopy-optimize"]),
    ("crates/schedule", &["canopy-topology"]),
    (
        "crates/synth",
        &[
            "canopy-canonical",
            "canopy-direct",
            "canopy-multiport",
            "canopy-optimize",
            "canopy-schedule",
            "canopy-tacos",
            "canopy-topology",
        ],
    ),
    ("crates/cost", &[]),
    ("crates/multiport", &["canopy-direct", "canopy-optimize"]),
    ("crates/tacos", &["canopy-optimize"]),
    ("crates/plan", &["canopy-schedule", "canopy-topology"]),
    ("crates/bundle", &["canopy-plan", "canopy-schedule"]),
    ("crates/simulate", &["canopy-schedule", "canopy-topology"]),
    ("crates/draw", &["canopy-schedule", "canopy-topology"]),
    ("crates/export", &["canopy-schedule", "canopy-simulate", "canopy-topology"]),
    ("proto", &[]),
    ("migrations", &[]),
];

/// External crates that bring I/O, clocks or a runtime: not for library crates.
const IMPURE: [&str; 8] = ["tokio", "tonic", "sled", "tracing", "tempfile", "indicatif", "prost", "clap"];

/// Names of the packages in the `[dependencies]` section of a manifest.
fn dependencies(manifest: &Path) -> BTreeSet<String> {
    let text = fs::read_to_string(manifest).expect("a readable manifest");
    text.lines()
        .skip_while(|line| line.trim() != "[dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split(['.', ' ', '=']).next())
        .filter(|name| !name.is_empty() && !name.starts_with('#'))
        .map(str::to_owned)
        .collect()
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable entry").path();
        if path.is_dir() && !path.ends_with("target") {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn dependencies_point_one_way() {
    for (folder, allowed) in LAYERS {
        for name in dependencies(&workspace().join(folder).join("Cargo.toml")) {
            let own = name.starts_with("canopy-");
            assert!(!own || allowed.contains(&name.as_str()), "{folder} must not depend on {name}");
            let library = folder.starts_with("crates/");
            assert!(!library || !IMPURE.contains(&name.as_str()), "{folder} is pure and must not depend on {name}");
        }
    }
}

#[test]
fn library_crates_touch_no_clock_file_or_environment() {
    let forbidden = ["std::fs", "std::net", "std::env::", "std::time", "std::process", "println!", "eprintln!"];
    let mut files = Vec::new();
    for (folder, _) in LAYERS.iter().filter(|(folder, _)| folder.starts_with("crates/")) {
        rust_files(&workspace().join(folder).join("src"), &mut files);
    }
    assert!(files.len() > 20);
    for path in files.iter().filter(|path| !path.to_string_lossy().contains("tests")) {
        let text = fs::read_to_string(path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for word in forbidden {
            assert!(!code.contains(word), "{} uses {word}", path.display());
        }
    }
}

#[test]
fn files_stay_readable() {
    let mut files = Vec::new();
    for folder in ["crates", "server", "client", "proto", "migrations", "tests", "benches"] {
        rust_files(&workspace().join(folder), &mut files);
    }
    for path in files {
        let text = fs::read_to_string(&path).unwrap();
        let lines = text.lines().count();
        assert!(lines <= 500, "{} has {lines} lines; split it by concept", path.display());
        let explains_itself = path.ends_with("tests.rs") || text.starts_with("//!");
        assert!(explains_itself, "{} does not open with what it is for", path.display());
    }
}
