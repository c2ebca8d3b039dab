//! Fabrics and machines where one rank sends more slowly than others: what enters its switch is less than what can leave it, the
//! trees of all ranks are many, and others pass on what the slow one can not send to everyone.

use canopy_schedule::CollectiveKind::Allgather;
use canopy_schedule::{Collective, Shares, certified_bound};
use canopy_synth::{Never, bound};
use canopy_topology::{Link, Topology, TopologyLimits, generate};

use crate::forest::validator::plan;

fn network(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap_or_else(|error| panic!("{expression}: {error}"))
}

/// The plan reaches its certified bound with flat trees, of which there are not many times as many as ranks.
#[track_caller]
fn check(fabric: &str, rank: u32, part: &str) {
    let whole = network(fabric);
    let ranks = whole.rank_count();
    // Of a machine the one out of the box.
    let leaves = |link: &&Link| link.from.number() == rank && link.to.number() >= ranks;
    let slow = whole.links().iter().filter(leaves).min_by_key(|link| link.capacity).unwrap();
    let [from, to] = [slow.from, slow.to].map(|node| &whole.node(node).id);
    let topology = network(&format!("{fabric},degrade={from}>{to}*{part}"));
    let collective = Collective::new(Allgather, None, ranks).unwrap();
    let limit = bound(&topology, collective, &Shares::Equal, &Never).unwrap();
    let certified = certified_bound(&topology, collective, &Shares::Equal, &limit.certificate);
    assert_eq!(certified.as_ref(), Ok(&limit.upper), "{fabric}");
    let judged = plan(&topology, Allgather);
    let (trees, depth) = (judged.batches(), judged.depth_max());
    eprintln!("{fabric}, {from}>{to}*{part}: {trees} trees of {} per rank, {depth} deep", judged.chunks_per_share());
    assert_eq!(judged.algbw, limit.upper, "{fabric}");
    assert!(depth <= 12 && trees <= 8 * ranks as usize, "{fabric}: {trees} trees, {depth} deep");
}

#[test]
fn slow_hosts_of_fabrics_are_helped_by_all() {
    check("fat-tree:k=8", 0, "1/2");
    check("fat-tree:k=8", 77, "1/5");
    check("leaf-spine:leaves=8,hosts=8,spines=4", 13, "3/4");
    check("leaf-spine:leaves=8,hosts=8,spines=8", 63, "1/2");
}

#[test]
fn slow_cards_of_machines_are_helped_by_all() {
    check("dgx-a100:boxes=16", 3, "1/2");
    check("dgx-h100:boxes=8", 63, "2/5");
}
