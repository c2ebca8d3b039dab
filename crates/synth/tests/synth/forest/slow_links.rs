//! Fabrics and machines where one rank sends more slowly than others: what enters its switch is less than what can leave it, the
//! trees of all ranks are many, and others pass on what the slow one can not send to everyone.

use canopy_schedule::CollectiveKind::{Allgather, Allreduce};
use canopy_schedule::{Collective, Shares, certified_bound};
use canopy_synth::{Never, bound};
use canopy_topology::{Link, Rate, Topology, TopologyLimits, generate};

use crate::forest::validator::plan;

fn network(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap_or_else(|error| panic!("{expression}: {error}"))
}

/// The plan reaches its certified bound with flat trees, of which there are not many times as many as ranks.
#[track_caller]
fn check(fabric: &str, rank: u32, part: &str) {
    let (reached, limit) = checked(fabric, rank, part, 8);
    assert_eq!(reached, limit, "{fabric}");
}

/// The same but for a millionth of the rate.
#[track_caller]
fn check_near(fabric: &str, rank: u32, part: &str) {
    let (reached, limit) = checked(fabric, rank, part, 32);
    let ((reached, of_reached), (limit, of_limit)) = (reached.parts(), limit.parts());
    assert!(reached * of_limit * 1_000_000_u32 >= limit * of_reached * 999_999_u32, "{fabric}");
}

/// What the plan reaches with so many trees for each rank at most, and its bound.
#[track_caller]
fn checked(fabric: &str, rank: u32, part: &str, trees_most: usize) -> (Rate, Rate) {
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
    assert!(depth <= 14 && trees <= trees_most * ranks as usize, "{fabric}: {trees} trees, {depth} deep");
    (judged.algbw, limit.upper)
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

/// Two thirds of a rate that is no multiple of three are whole bytes per second, and no two numbers have much in common.
#[test]
fn parts_that_are_rounded_make_no_more_trees() {
    check_near("fat-tree:k=8", 0, "2/3");
    check_near("fat-tree:k=8", 127, "6/7");
    check_near("leaf-spine:leaves=8,hosts=8,spines=4", 13, "1/3");
    check_near("dgx-h100:boxes=16", 3, "1/3");
    check_near("dgx-a100:boxes=8", 63, "7/9");
}

/// Where equations are too many to be solved in fractions, rates are lowered by a hair instead, and trees are few again.
#[test]
fn large_fabrics_make_few_trees() {
    let (reached, limit) = checked("fat-tree:k=16", 0, "2/3", 8);
    let ((reached, of_reached), (limit, of_limit)) = (reached.parts(), limit.parts());
    assert!(reached * of_limit * 1_000_000_u32 >= limit * of_reached * 999_999_u32);
}

/// Hosts of a fabric are no boxes, so that a sum of all is one piece; hundreds of switches take long to remove where links carry
/// parts of trees.
#[test]
fn sums_over_large_fabrics_have_few_trees() {
    for part in ["2/3", "9/10"] {
        let topology = network(&format!("fat-tree:k=16,degrade=h0>p0e0*{part}"));
        let collective = Collective::new(Allreduce, None, topology.rank_count()).unwrap();
        let limit = bound(&topology, collective, &Shares::Equal, &Never).unwrap();
        let judged = plan(&topology, Allreduce);
        let ((reached, of_reached), (limit, of_limit)) = (judged.algbw.parts(), limit.upper.parts());
        assert!(reached * of_limit * 256_u32 >= limit * of_reached * 255_u32, "{part}");
        assert!(judged.batches() <= 64, "{part}: {} trees", judged.batches());
    }
}
