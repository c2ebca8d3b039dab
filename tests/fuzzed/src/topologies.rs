//! Documents of networks, and expressions that name them.

use canopy_topology::{DocumentFormat, Topology, construction, generate, read_document, to_json, to_yaml};

use crate::{LIMITS, refused, seen, text};

/// A document in YAML.
pub(crate) fn yaml(input: &[u8]) {
    document(input, DocumentFormat::Yaml);
}

/// A document in JSON.
pub(crate) fn json(input: &[u8]) {
    document(input, DocumentFormat::Json);
}

fn document(input: &[u8], format: DocumentFormat) {
    match read_document(input, Some(format), &LIMITS) {
        Ok(read) => check(&read.topology),
        Err(error) => refused(&error),
    }
}

/// An expression that names a network.
pub(crate) fn expression(input: &[u8]) {
    let Some(expression) = text(input) else { return };
    seen(construction(expression, &LIMITS));
    match generate(expression, &LIMITS) {
        Ok(topology) => check(&topology),
        Err(error) => refused(&error),
    }
}

/// A network is within its limits, and is the same when it was written and read, in both formats.
pub(crate) fn check(topology: &Topology) {
    assert!(topology.nodes().len() <= LIMITS.nodes_max, "{} nodes", topology.nodes().len());
    assert!(topology.links().len() <= LIMITS.links_max, "{} links", topology.links().len());
    // Names and defaults may take more bytes in a file of canopy's than in one from elsewhere.
    let limits = canopy_topology::TopologyLimits { bytes_max: usize::MAX, ..LIMITS };
    for (format, written) in [(DocumentFormat::Json, to_json(topology)), (DocumentFormat::Yaml, to_yaml(topology))] {
        let read = read_document(written.as_bytes(), Some(format), &limits);
        let read = read.unwrap_or_else(|error| panic!("{} is not read back: {error}\n{written}", format.name()));
        assert_eq!(read.topology, *topology, "{written}");
    }
}
