//! Files of hosts, one a line.

use std::path::Path;

use canopy_topology::{HOST_FILE_BYTES_MAX, read_host_lines};

use crate::exit::Failure;
use crate::input;

/// Reads the file of `--nodes-file`.
pub(crate) fn read_file(path: &Path) -> Result<Vec<String>, Failure> {
    let bytes = input::bytes(path, HOST_FILE_BYTES_MAX)?;
    let refuse = |what: String| Failure::input(format!("{}: {what}", path.display()));
    let text = std::str::from_utf8(&bytes).map_err(|error| refuse(error.to_string()))?;
    read_host_lines(text).map_err(|error| refuse(error.to_string()))
}
