//! The runs of one plan in a lab, with the counters of every link.

use std::collections::BTreeMap;

use canopy_lab::{Network, interface};
use canopy_topology::Topology;

use super::case::Case;
use super::protocol::{Ran, Reply, Request};
use super::session::{Session, refused};
use crate::exit::Failure;

/// What was measured of one plan.
#[derive(Clone, Debug)]
pub(super) struct Measured {
    /// All runs that count.
    pub(super) runs: Vec<Ran>,
    /// By two neighbours in one direction.
    pub(super) links: Vec<LinkBytes>,
}

/// Bytes of one direction between neighbours, in one run on average.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LinkBytes {
    pub(super) from: String,
    pub(super) to: String,
    /// What the plan puts on it.
    pub(super) planned: u64,
    /// What the plan puts on the opposite direction, which is answered here.
    pub(super) answered: u64,
    /// What the limit counted, heads of frames and answers included.
    pub(super) counted: u64,
    pub(super) drops: u64,
}

/// Runs a plan once to warm up, and then as often as asked.
pub(super) async fn measure(
    session: &mut Session,
    network: &Network,
    case: &Case,
    runs: u32,
) -> Result<Measured, Failure> {
    session.commands(network.route_commands(&case.compiled.routes)).await?;
    match session.ask(&Request::Ranks(case.compiled.programs.clone())).await? {
        Reply::Done => {}
        reply => return Err(refused(reply)),
    }
    // Windows of fresh connections are small.
    run(session, case).await?;
    let before = counters(session, network).await?;
    let mut all = Vec::new();
    for _ in 0..runs {
        all.push(run(session, case).await?);
    }
    let after = counters(session, network).await?;
    let links = links(&case.material.topology, &case.compiled.link_bytes, (&before, &after), runs);
    match session.ask(&Request::Ranks(Vec::new())).await? {
        Reply::Done => Ok(Measured { runs: all, links }),
        reply => Err(refused(reply)),
    }
}

async fn run(session: &mut Session, case: &Case) -> Result<Ran, Failure> {
    match session.ask(&Request::Run).await? {
        Reply::Ran(ran) if ran.wrong_words == 0 => Ok(ran),
        Reply::Ran(ran) => {
            Err(Failure::input(format!("{}: {} words of the results are wrong", case.name, ran.wrong_words)))
        }
        reply => Err(refused(reply)),
    }
}

/// Bytes and drops by node and device.
type Counters = BTreeMap<(usize, String), (u64, u64)>;

async fn counters(session: &mut Session, network: &Network) -> Result<Counters, Failure> {
    match session.ask(&Request::Counters { node_count: network.node_count() }).await? {
        Reply::Counters(all) => {
            Ok(all.into_iter().map(|one| ((one.node, one.device), (one.bytes, one.drops))).collect())
        }
        reply => Err(refused(reply)),
    }
}

/// What passed between neighbours beside what a plan puts there.
fn links(
    topology: &Topology,
    link_bytes: &[u64],
    (before, after): (&Counters, &Counters),
    runs: u32,
) -> Vec<LinkBytes> {
    let mut planned: BTreeMap<(usize, usize), u64> = BTreeMap::new();
    for (link, bytes) in topology.links().iter().zip(link_bytes) {
        let (from, to) = (link.from.index(), link.to.index());
        *planned.entry((from, to)).or_default() += bytes;
        planned.entry((to, from)).or_default();
    }
    let id = |node: usize| topology.nodes().get(node).map(|node| node.id.clone()).unwrap_or_default();
    let count =
        |counters: &Counters, from: usize, to: usize| counters.get(&(from, interface(to))).copied().unwrap_or_default();
    let row = |(&(from, to), &bytes): (&(usize, usize), &u64)| {
        let ((bytes_before, drops_before), (bytes_after, drops_after)) =
            (count(before, from, to), count(after, from, to));
        LinkBytes {
            from: id(from),
            to: id(to),
            planned: bytes,
            answered: planned.get(&(to, from)).copied().unwrap_or(0),
            counted: bytes_after.saturating_sub(bytes_before) / u64::from(runs.max(1)),
            drops: drops_after.saturating_sub(drops_before),
        }
    };
    planned.iter().map(row).collect()
}
