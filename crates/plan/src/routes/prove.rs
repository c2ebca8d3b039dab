//! Proves that a route plan is right, or says what is wrong with it.
//!
//! Everything is decided on the text alone, for every order of events and every message size. It judges any program,
//! wherever it came from, and shares no code with lowering or with the search for layers.
//!
//! | check | what it shows |
//! |---|---|
//! | `structure` | nodes, ports, ranks and buffers are what the collective and the format demand; queue pairs are numbered without gaps, no two of a rank are alike, and each leads over ports that exist to its destination, past no node twice |
//! | `meaning` | every chunk that a rank has for another is posted exactly once, and goes to its place |
//! | `deadlock` | within each layer, no ring of channels can wait for each other |
//! | `load` | the rate that is stated is the one of the busiest link |
//!
//! A chunk makes one journey and waits for nothing, so no order of events gives another result.

mod blocks;
mod network;
mod ports;
mod rate;
mod structure;

use canopy_topology::Topology;

use super::program::Program;
use crate::oneccl::{Findings, Place, Proof, Report};
use crate::proof::{Stop, Stopped};
use crate::waits::Waits;
use network::Network;

/// Most channels of a ring that a message names.
const RING_SHOWN: usize = 8;

/// Judges a program; see [`prove_until`], which it calls without ever stopping.
pub fn prove(program: &Program) -> Proof {
    prove_until(program, &|| false).expect("nothing asks it to stop")
}

/// Judges a program.
///
/// Later checks rely on `structure` and are left out where it fails: [`Proof::checks`] names those that ran. At most 64
/// problems are reported per check. Never panics.
///
/// * **Errors.** `stop` returned true; it is asked about every millisecond.
/// * **Cost.** O(p log p + r²) for p ports of all queue pairs and r ranks; 12 bytes for each different pair of links in a row.
pub fn prove_until(program: &Program, stop: Stop<'_>) -> Result<Proof, Stopped> {
    let mut report = Report::new(stop);
    let mut network = None;
    report.run("structure", |findings| network = structure::check(program, findings));
    if let Some(network) = &network {
        report.run("meaning", |findings| blocks::check(program, network, findings));
        report.run("deadlock", |findings| check_waits(network, findings));
        report.run("load", |findings| rate::check(program, network, findings));
    }
    report.finish()
}

/// Judges, as the check `ports`, whether a program that [`prove`] accepts is for this network: nodes and ports are its
/// nodes and links. What nodes are called does not matter.
///
/// * **Errors.** `stop` returned true.
/// * **Cost.** O(nodes + links).
pub fn prove_on(program: &Program, topology: &Topology, stop: Stop<'_>) -> Result<Proof, Stopped> {
    let mut report = Report::new(stop);
    report.run("ports", |findings| ports::check(program, topology, findings));
    report.finish()
}

/// Within each layer, no channel waits for itself by way of others.
fn check_waits(network: &Network<'_>, findings: &mut Findings<'_>) {
    let mut waits = Waits::default();
    for rank in &network.ranks {
        for pair in &rank.queue_pairs {
            let mut held = None;
            for channel in network.channels(rank, pair) {
                if let Some(held) = held {
                    waits.add(pair.layer, held, channel);
                }
                held = Some(channel);
            }
        }
        if findings.must_stop(rank.ports.len() as u64) {
            return;
        }
    }
    if let Some((layer, ring)) = waits.cycle() {
        let names: Vec<String> = ring.iter().take(RING_SHOWN).map(|&channel| network.name(channel)).collect();
        let more = if ring.len() > RING_SHOWN { ", …" } else { "" };
        let text = format!(
            "in layer {layer}, {} channels wait for each other in a cycle: {}{more}; put one of their routes into \
             another layer",
            ring.len(),
            names.join(", ")
        );
        findings.problem(Place::FILE, text);
    }
}

#[cfg(test)]
mod tests;
