//! The code and the descriptors beside the `.proto` files are what these compile to.
//!
//! They are kept with the sources, because the compiler of `.proto` files takes longer to build than it saves: whoever
//! changes one of them runs this test with `CANOPY_APPROVE=1`, which writes them anew. The compiler is written in Rust, so that no
//! `protoc` is needed.

use std::path::Path;
use std::{env, fs};

use prost::Message as _;

const SOURCES: [&str; 13] = [
    "canopy/v1/analysis.proto",
    "canopy/v1/faults.proto",
    "canopy/v1/groups.proto",
    "canopy/v1/leases.proto",
    "canopy/v1/moving.proto",
    "canopy/v1/networks.proto",
    "canopy/v1/operations.proto",
    "canopy/v1/plan.proto",
    "canopy/v1/planner.proto",
    "canopy/v1/plans.proto",
    "canopy/v1/response.proto",
    "canopy/v1/server.proto",
    "canopy/v1/topology.proto",
];

/// Traces and health events of other projects: not part of the interface, so not in its descriptors either.
const FOREIGN: [&str; 2] = ["chakra/trace.proto", "nvsentinel/health_event.proto"];

#[test]
fn what_is_generated_is_what_the_sources_say() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let made = tempfile::tempdir().unwrap();
    let descriptors = protox::compile(SOURCES, [package]).unwrap();
    fs::write(made.path().join("canopy_v1_descriptors.bin"), descriptors.encode_to_vec()).unwrap();
    // `Bytes` instead of `Vec<u8>`: pieces of an artifact share its memory.
    // A crate that only reads messages compiles neither side of the calls.
    let code = tonic_prost_build::configure()
        .client_mod_attribute(".", "#[cfg(feature = \"client\")]")
        .server_mod_attribute(".", "#[cfg(feature = \"server\")]")
        .out_dir(made.path());
    code.clone().bytes(".").compile_fds(descriptors).unwrap();
    for source in FOREIGN {
        code.clone().compile_fds(protox::compile([source], [package]).unwrap()).unwrap();
    }
    let kept = package.join("src/generated");
    let names = |folder: &Path| {
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    };
    if env::var_os("CANOPY_APPROVE").is_some() {
        fs::remove_dir_all(&kept).unwrap();
        fs::create_dir(&kept).unwrap();
        for name in names(made.path()) {
            fs::copy(made.path().join(&name), kept.join(&name)).unwrap();
        }
        return;
    }
    assert_eq!(names(made.path()), names(&kept));
    for name in names(made.path()) {
        let [made, kept] = [made.path().join(&name), kept.join(&name)].map(|path| fs::read(path).unwrap());
        assert!(made == kept, "{} is not what the sources say; rerun with CANOPY_APPROVE=1", name.display());
    }
}

/// A source that nobody lists would be compiled by nobody.
#[test]
fn every_source_is_listed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("canopy/v1");
    let found = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut found: Vec<String> = found.map(|name| format!("canopy/v1/{name}")).collect();
    found.sort();
    assert_eq!(found, SOURCES);
}
