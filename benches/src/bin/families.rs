//! How long it takes to recognise a network as a member of a family.
//!
//! `cargo run --release -p canopy-benches --bin families`
//!
//! *Time* is processor time, the mean of twenty runs: *as generated*, where the numbers of nodes agree with those of the member;
//! *shuffled*, under other names and numbers, where counterparts have to be searched for; *boxes*, where these are wanted of
//! the shuffled network. The last rows are of no family, or not looked at.

use std::error::Error;

use canopy_benches::{print_table, timed_on_processors};
use canopy_canonical::families::{Recognition, recognise, with_boxes};
use canopy_canonical::{Budget, WORK_STANDARD};
use canopy_topology::{DraftLink, DraftNode, NodeIndex, Topology, TopologyDraft, TopologyLimits, generate};

const NETWORKS: [&str; 14] = [
    "dgx-a100:boxes=128",
    "dgx-a100:boxes=512",
    "mi250:boxes=64",
    "rail:boxes=128",
    "torus:32x32",
    "torus:8x8x16",
    "hypercube:10",
    "ring:1024",
    "fat-tree:k=16",
    "leaf-spine:leaves=32,hosts=32,spines=16",
    "dragonfly-router:p=4,a=8,h=4",
    "complete:512",
    "torus:32x32,down=0.0-0.1",
    "random-regular:n=1024,d=4,seed=1",
];
const RUNS: u32 = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let mut rows = Vec::new();
    for network in NETWORKS {
        let topology = generate(network, &TopologyLimits::STANDARD)?;
        let other = shuffled(&topology)?;
        let budget = Budget { work_max: WORK_STANDARD, stop: &|| false };
        let found = match recognise(&other, budget)? {
            Recognition::Member(found) => format!("`{}`", found.expression),
            Recognition::Other => "none".to_owned(),
            Recognition::Undetermined { expression } => format!("perhaps `{expression}`"),
            Recognition::TooLarge => "too large".to_owned(),
        };
        rows.push([
            format!("`{network}`"),
            topology.nodes().len().to_string(),
            topology.links().len().to_string(),
            millis(|| drop(recognise(&topology, budget))),
            millis(|| drop(recognise(&other, budget))),
            millis(|| drop(with_boxes(&other, budget))),
            found,
        ]);
    }
    print_table(["network", "nodes", "links", "as generated (ms)", "shuffled (ms)", "boxes (ms)", "recognised"], &rows);
    Ok(())
}

fn millis(work: impl Fn()) -> String {
    let time = timed_on_processors(|| (0..RUNS).for_each(|_| work())).1 / RUNS;
    format!("{:.1}", time.as_secs_f64() * 1e3)
}

/// The same network with nodes and ranks in another order, under other names and without boxes.
fn shuffled(topology: &Topology) -> Result<Topology, Box<dyn Error>> {
    let count = topology.nodes().len();
    // A step that has no factor in common with the count goes through all of them.
    let step = (count * 5 / 8..).find(|&step| greatest_common_divisor(step, count) == 1).unwrap_or(1);
    let place = |node: usize| (node + 1) * step % count;
    let name = |node: NodeIndex| format!("n{}", place(node.index()));
    let mut ranks: Vec<u32> = topology.ranks().map(|rank| rank.number()).collect();
    ranks.sort_by_key(|&rank| place(rank as usize));
    let mut draft = TopologyDraft::default();
    for (index, node) in (0_u32..).zip(topology.nodes()) {
        let rank = ranks.get(index as usize).copied();
        let (id, attributes) = (name(NodeIndex::new(index)), canopy_topology::Attributes::default());
        draft.nodes.push(DraftNode { id, kind: node.kind, rank, attributes });
    }
    draft.links.extend(topology.links().iter().map(|link| DraftLink {
        from: name(link.from),
        to: name(link.to),
        capacity: link.capacity,
        latency: link.latency,
        count: 1,
    }));
    Ok(draft.build(&TopologyLimits::STANDARD)?)
}

const fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}
