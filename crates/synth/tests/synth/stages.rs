//! Exchanges in stages as an algorithm: judged tree by tree, as fast as the bound where boxes are, with few peers.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it stands, helpers included")]

use std::collections::BTreeSet;
use std::num::NonZeroU64;

use canopy_schedule::{Collective, CollectiveKind, TransferGraph, check, compile};
use canopy_synth::{
    Algorithm, Never, Silent, SynthesisError, SynthesisRequest, TreeLimits, bound, is_by_rule, synthesize,
};
use canopy_topology::{Topology, TopologyLimits, generate};

fn network(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap_or_else(|error| panic!("{expression}: {error}"))
}

fn planned(topology: &Topology, kind: CollectiveKind) -> Result<TransferGraph, SynthesisError> {
    let collective = Collective::new(kind, None, topology.rank_count()).unwrap();
    let schedule = synthesize(topology, &SynthesisRequest::new(collective, Algorithm::Stages), &Never, &Silent)?;
    Ok(compile(topology, &schedule).unwrap())
}

/// Most ranks that one sends to, in any phase.
fn peers(graph: &TransferGraph) -> usize {
    let pairs: BTreeSet<(u32, u32)> =
        graph.transfers.iter().map(|transfer| (transfer.from.number(), transfer.to.number())).collect();
    let mut counts = vec![0; graph.rank_count as usize];
    pairs.iter().for_each(|&(from, _)| counts[from as usize] += 1);
    counts.into_iter().max().unwrap()
}

#[test]
fn sound_machines_reach_the_bound_that_is_proven_otherwise() {
    for (expression, outside) in [
        ("dgx-h100:boxes=8", 7),
        ("rail:boxes=16,gpus=8,nv=450GB/s,nic=50GB/s", 15),
        ("pod:boxes=16,su=4,rails=8,oversub=2", 6),
        ("dgx-h100:boxes=128", 127),
    ] {
        let topology = network(expression);
        for kind in [CollectiveKind::Allgather, CollectiveKind::ReduceScatter, CollectiveKind::Allreduce] {
            let graph = planned(&topology, kind).unwrap();
            let verdict = check(&topology, &graph).unwrap();
            let known = bound(&topology, graph.collective, &graph.shares, &Never).unwrap();
            assert_eq!(verdict.algbw, known.upper, "{expression} {kind:?}");
            // Two phases leave room for half as many: 128 boxes have digits of 8 and 16.
            let outside = if kind == CollectiveKind::Allreduce && outside == 127 { 22 } else { outside };
            assert_eq!(peers(&graph), outside + 7, "{expression} {kind:?}");
        }
    }
}

/// Boxes that are slow for what their NICs bring; the bound is proven otherwise. What the plan reaches without its first
/// part would be 0.63 at most.
#[test]
fn slow_boxes_with_fast_nics_come_close_to_the_bound() {
    for (expression, least) in [
        ("rail:boxes=4,gpus=8,nv=60GB/s,nic=50GB/s", 0.99),
        ("rail:boxes=16,gpus=8,nv=60GB/s,nic=50GB/s", 0.997),
        ("dgx-h100:boxes=16,nic=400GB/s", 0.99),
    ] {
        let topology = network(expression);
        for kind in [CollectiveKind::Allgather, CollectiveKind::ReduceScatter, CollectiveKind::Allreduce] {
            let graph = planned(&topology, kind).unwrap();
            let reached = check(&topology, &graph).unwrap().algbw;
            let known = bound(&topology, graph.collective, &graph.shares, &Never).unwrap().upper;
            let ratio = reached.ratio_to(&known).unwrap().to_f64();
            assert!((least..=1.0).contains(&ratio), "{expression} {kind:?}: {ratio}");
        }
    }
}

/// The ranks of these boxes do not all have links to each other.
#[test]
fn boxes_that_are_meshes_spread_along_trees() {
    for (expression, least) in [
        ("mi250:boxes=8", 0.99),
        ("mi250:boxes=16,faults=nics:1+seed:1", 0.99),
        // Trees of a box whose NICs differ have multiplicities of thousands, for hundreds of chunks.
        ("mi250:boxes=16,faults=nics:3+seed:1", 0.9),
        ("mi250:boxes=16,faults=nics:3@1/2+seed:1", 0.9),
    ] {
        let topology = network(expression);
        let graph = planned(&topology, CollectiveKind::Allgather).unwrap();
        let reached = check(&topology, &graph).unwrap().algbw;
        let known = bound(&topology, graph.collective, &graph.shares, &Never).unwrap().upper;
        let ratio = reached.ratio_to(&known).unwrap().to_f64();
        assert!((least..=1.0).contains(&ratio), "{expression}: {ratio}");
    }
}

/// Most boxes exchange with one another in a single stage; what faults cost is what the bound says, but for whole
/// chunks.
#[test]
fn faults_cost_little_more_than_the_bound_says() {
    for faults in ["nics:1+seed:1", "nics:2+gpus:1+seed:2", "boxes:1+seed:3"] {
        let topology = network(&format!("dgx-h100:boxes=64,faults={faults}"));
        let graph = planned(&topology, CollectiveKind::Allgather).unwrap();
        let reached = check(&topology, &graph).unwrap().algbw;
        let known = bound(&topology, graph.collective, &graph.shares, &Never).unwrap().upper;
        let ratio = reached.ratio_to(&known).unwrap().to_f64();
        assert!((0.97..=1.0).contains(&ratio), "{faults}: {ratio}");
    }
}

#[test]
fn what_has_no_boxes_is_refused_with_a_remedy() {
    let refused = planned(&network("torus:4x4"), CollectiveKind::Allgather).unwrap_err();
    assert!(refused.to_string().contains("finds none in this network; use forest"), "{refused}");
    let refused = planned(&network("dgx-h100:boxes=2"), CollectiveKind::AllToAll).unwrap_err();
    assert!(refused.to_string().contains("stages does not plan all-to-all"), "{refused}");
}

/// What `auto` does up to 1,024 ranks it does beyond where a rule might be slower, or where trees are asked for.
#[test]
fn of_many_ranks_auto_takes_a_rule_than_which_no_plan_is_faster() {
    let one_tree = TreeLimits { trees_per_root: NonZeroU64::new(1), ..TreeLimits::NONE };
    for (expression, limits, expected) in [
        ("dgx-h100:boxes=128", TreeLimits::NONE, "forest"),
        ("dgx-h100:boxes=129", TreeLimits::NONE, "stages"),
        ("mi250:boxes=65", TreeLimits::NONE, "stages"),
        ("leaf-spine:leaves=65,hosts=16,spines=16,oversub=2", TreeLimits::NONE, "stages"),
        ("torus:33x32", TreeLimits::NONE, "orbits"),
        ("dgx-h100:boxes=129", one_tree, "forest"),
        ("dgx-h100:boxes=129,faults=gpus:1+seed:1", TreeLimits::NONE, "forest"),
        ("torus:33x32,faults=links:1+seed:1", TreeLimits::NONE, "forest"),
        ("rail:boxes=129,gpus=8,nv=60GB/s,nic=50GB/s", TreeLimits::NONE, "forest"),
    ] {
        let topology = network(expression);
        let collective = Collective::new(CollectiveKind::Allgather, None, topology.rank_count()).unwrap();
        let request = SynthesisRequest { limits, ..SynthesisRequest::new(collective, Algorithm::Auto) };
        let schedule = synthesize(&topology, &request, &Never, &Silent).unwrap();
        assert_eq!(schedule.algorithm, expected, "{expression}");
        assert_eq!(is_by_rule(&topology, &request, &Never).unwrap(), expected != "forest", "{expression}");
        if expected == "stages" || expected == "orbits" {
            let known = bound(&topology, collective, &schedule.shares, &Never).unwrap();
            let reached = check(&topology, &compile(&topology, &schedule).unwrap()).unwrap().algbw;
            assert_eq!(reached, known.upper, "{expression}");
        }
    }
}
