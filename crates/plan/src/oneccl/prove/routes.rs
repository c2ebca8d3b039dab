//! Messages and routes fit a network: every rank reaches its peers, hops are links, and no ring of full channels can
//! form.

use std::collections::BTreeMap;

use canopy_topology::{NodeIndex, Topology};

use super::place::{Findings, Place, Proof, Report};
use crate::oneccl::program::Program;
use crate::proof::{Stop, Stopped};
use crate::waits::Waits;

/// Judges a program that [`prove`](super::prove) accepts on a network, as the check `routes`.
///
/// Every hop of a route must be a link, and the dependencies between the channels that routes pass, of which each link
/// has one per layer, must be without cycle: else messages that hold a channel and wait for the next may wait for each
/// other for ever (Dally and Seitz 1987).
///
/// * **Errors.** `stop` returned true.
/// * **Cost.** O((hops + links) log links).
pub fn prove_routes(program: &Program, topology: &Topology, stop: Stop<'_>) -> Result<Proof, Stopped> {
    let mut report = Report::new(stop);
    report.run("routes", |findings| check(program, topology, findings));
    report.finish()
}

fn check(program: &Program, topology: &Topology, findings: &mut Findings<'_>) {
    let (found, expected) = (program.rank_count, topology.rank_count());
    if found != expected {
        let text = format!("is for {found} ranks, but the network has {expected}; use the network of the file");
        return findings.problem(Place::FILE, text);
    }
    // Parallel links stand for each other.
    let links: BTreeMap<(usize, usize), u32> =
        (0..).zip(topology.links()).map(|(index, link)| ((link.from.index(), link.to.index()), index)).collect();
    let name = |node: usize| match u32::try_from(node).ok().filter(|_| node < topology.nodes().len()) {
        Some(index) => format!("`{}`", topology.node(NodeIndex::new(index)).id),
        None => format!("node {node}"),
    };
    let mut waits = Waits::default();
    for route in &program.routes {
        if findings.must_stop(route.hops.len() as u64) {
            return;
        }
        for hop in route.hops.windows(2) {
            let (from, to) = (hop[0] as usize, hop[1] as usize);
            if !links.contains_key(&(from, to)) {
                let text = format!("route {} goes from {} to {}, which no link joins", route.id, name(from), name(to));
                findings.problem(Place::FILE, text);
            }
        }
        let link = |hop: &[u32]| links.get(&(hop[0] as usize, hop[1] as usize));
        for hops in route.hops.windows(3) {
            // What is no link was objected to.
            if let (Some(&held), Some(&awaited)) = (link(&hops[..2]), link(&hops[1..])) {
                waits.add(route.layer, held, awaited);
            }
        }
    }
    if let Some((layer, ring)) = waits.cycle() {
        let text = format!(
            "the routes make {} channels of layer {layer} wait for each other in a cycle; use more layers",
            ring.len()
        );
        findings.problem(Place::FILE, text);
    }
}
