//! Messages and routes fit a network: every rank reaches its peers, hops are links, and no ring of full channels can
//! form.

use std::collections::{BTreeMap, BTreeSet};

use canopy_topology::{NodeIndex, Topology};

use super::report::{Findings, Place, Proof, Report, Stopped};
use crate::oneccl::program::Program;

/// Judges a program that [`prove`](super::prove) accepts on a network, as the check `routes`.
///
/// Every hop of a route must be a link, and the dependencies between the channels that routes pass, of which each link
/// has one per layer, must be without cycle: else messages that hold a channel and wait for the next may wait for each
/// other for ever (Dally and Seitz 1987).
///
/// * **Errors.** `stop` returned true.
/// * **Cost.** O((hops + links) log links).
pub fn prove_routes(
    program: &Program,
    topology: &Topology,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Proof, Stopped> {
    let mut report = Report::new(stop);
    report.run("routes", |findings| check(program, topology, findings));
    report.finish()
}

/// Both ends of a link, and the layer.
type Channel = (u32, u32, u32);

fn check(program: &Program, topology: &Topology, findings: &mut Findings<'_>) {
    let (found, expected) = (program.rank_count, topology.rank_count());
    if found != expected {
        let text = format!("is for {found} ranks, the network has {expected}; give the network of the file");
        return findings.problem(Place::FILE, text);
    }
    let links: BTreeSet<(usize, usize)> =
        topology.links().iter().map(|link| (link.from.index(), link.to.index())).collect();
    let name = |node: usize| match u32::try_from(node).ok().filter(|_| node < topology.nodes().len()) {
        Some(index) => format!("`{}`", topology.node(NodeIndex::new(index)).id),
        None => format!("node {node}"),
    };
    // Which channel is held while which is waited for.
    let mut waits: BTreeMap<Channel, BTreeSet<Channel>> = BTreeMap::new();
    for route in &program.routes {
        if findings.must_stop(route.hops.len() as u64) {
            return;
        }
        for hop in route.hops.windows(2) {
            let (from, to) = (hop[0] as usize, hop[1] as usize);
            if !links.contains(&(from, to)) {
                let text =
                    format!("route {} passes {} and then {}, between which no link is", route.id, name(from), name(to));
                findings.problem(Place::FILE, text);
            }
        }
        for hops in route.hops.windows(3) {
            let (first, second) = ((hops[0], hops[1], route.layer), (hops[1], hops[2], route.layer));
            waits.entry(first).or_default().insert(second);
            waits.entry(second).or_default();
        }
    }
    let mut holders: BTreeMap<Channel, usize> = waits.keys().map(|channel| (*channel, 0)).collect();
    for next in waits.values().flatten() {
        *holders.entry(*next).or_default() += 1;
    }
    let mut free: Vec<_> = holders.iter().filter(|(_, held)| **held == 0).map(|(channel, _)| *channel).collect();
    let mut done = 0;
    while let Some(channel) = free.pop() {
        done += 1;
        for next in waits.get(&channel).into_iter().flatten() {
            let held = holders.entry(*next).or_default();
            *held -= 1;
            if *held == 0 {
                free.push(*next);
            }
        }
    }
    if done < holders.len() {
        let text =
            format!("the routes make {} channels wait for each other in a ring; use more layers", holders.len() - done);
        findings.problem(Place::FILE, text);
    }
}
