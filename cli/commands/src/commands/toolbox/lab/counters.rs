//! What rate limits counted: bytes and drops of each device.

use canopy_lab::{Command, Program, namespace};
use serde::Deserialize;

use super::programs::{Trouble, run_command};
use super::protocol::Counter;

/// A queueing discipline, as `tc -j` lists it.
#[derive(Debug, Deserialize)]
struct Qdisc {
    kind: String,
    dev: String,
    bytes: u64,
    drops: u64,
}

/// Counters of all limits of the first nodes.
pub(super) fn read(node_count: usize) -> Result<Vec<Counter>, Trouble> {
    let mut all = Vec::new();
    for node in 0..node_count {
        let args = ["-n", &namespace(node), "-s", "-j", "qdisc", "show"].map(str::to_owned).to_vec();
        let printed = run_command(&Command { program: Program::Tc, args, input: String::new() })?;
        let found: Vec<Qdisc> = serde_json::from_slice(&printed)
            .map_err(|error| Trouble::new(format!("tc prints counters in a form that is not known: {error}")))?;
        let limits = found.into_iter().filter(|qdisc| qdisc.kind == "tbf");
        all.extend(limits.map(|Qdisc { dev, bytes, drops, .. }| Counter { node, device: dev, bytes, drops }));
    }
    Ok(all)
}
