//! Compiles the `.proto` tree with a compiler written in Rust, so that no `protoc` is needed on the machine.

use std::path::PathBuf;
use std::{env, fs};

use prost::Message as _;

const SOURCES: [&str; 11] = [
    "canopy/v1/admin.proto",
    "canopy/v1/faults.proto",
    "canopy/v1/find.proto",
    "canopy/v1/leases.proto",
    "canopy/v1/operation.proto",
    "canopy/v1/paths.proto",
    "canopy/v1/plan.proto",
    "canopy/v1/planner.proto",
    "canopy/v1/reply.proto",
    "canopy/v1/topologies.proto",
    "canopy/v1/topology.proto",
];

/// The traces of another project: not part of the interface, so neither in its descriptors.
const CHAKRA: &str = "chakra/trace.proto";

/// The health events of another project: just as little.
const SENTINEL: &str = "nvsentinel/health_event.proto";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for source in SOURCES.into_iter().chain([CHAKRA, SENTINEL]) {
        println!("cargo::rerun-if-changed={source}");
    }
    let descriptors = protox::compile(SOURCES, ["."])?;
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR for build scripts")?);
    fs::write(out.join("canopy_v1_descriptors.bin"), descriptors.encode_to_vec())?;
    // `Bytes` instead of `Vec<u8>`: pieces of an artifact share its memory.
    tonic_prost_build::configure().bytes(".").compile_fds(descriptors)?;
    for foreign in [CHAKRA, SENTINEL] {
        tonic_prost_build::configure().compile_fds(protox::compile([foreign], ["."])?)?;
    }
    Ok(())
}
