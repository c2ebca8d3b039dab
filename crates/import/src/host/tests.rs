//! What tests of all tools use.

use canopy_topology::{Topology, TopologyLimits};

use crate::content::Content;
use crate::machine::Machine;
use crate::read::{read, read_content};

const LIMITS: TopologyLimits = TopologyLimits::STANDARD;

/// The machine of a text, nothing left out.
#[track_caller]
pub(super) fn machine(text: &str) -> Machine {
    match read_content(text.as_bytes(), &LIMITS, &|| false) {
        Ok((_, Content::Machine(machine))) => machine,
        other => panic!("{other:?}\n{text}"),
    }
}

/// Links as ends and tenths of GB/s; of two equal opposite links the one that sorts first.
fn of(topology: &Topology) -> Vec<(String, u64)> {
    let id = |node| topology.node(node).id.as_str();
    let tenths = |link: &canopy_topology::Link| link.capacity.bytes_per_sec() / 100_000_000;
    let all: Vec<_> = topology.links().iter().map(|link| (id(link.from), id(link.to), tenths(link))).collect();
    let first = all.iter().filter(|&&(from, to, rate)| from < to || !all.contains(&(to, from, rate)));
    let mut links: Vec<_> = first.map(|(from, to, rate)| (format!("{from} {to}"), *rate)).collect();
    links.sort_unstable();
    links
}

/// All links of the machine.
#[track_caller]
pub(super) fn whole(text: &str) -> Vec<(String, u64)> {
    of(&machine(text).draft.build(&LIMITS).unwrap())
}

/// Links of the network of its GPUs.
#[track_caller]
pub(super) fn links(text: &str) -> Vec<(String, u64)> {
    of(&read(text.as_bytes(), None, &LIMITS).unwrap().topology)
}

/// How a text is refused.
#[track_caller]
pub(super) fn refusal(text: &str) -> String {
    match read_content(text.as_bytes(), &LIMITS, &|| false) {
        Ok(found) => panic!("{found:?}\n{text}"),
        Err(error) => error.to_string(),
    }
}
