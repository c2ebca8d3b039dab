//! All-to-all in steps: rates and steps as the checker finds them. Source of the values: Basu 2024, §3.1.3 and the digest's
//! table of published and recomputed times; `algbw` is N blocks over the sum of the times of steps.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it stands, helpers included")]

use std::num::NonZeroU64;

use canopy_schedule::{Collective, CollectiveKind, Schedule, Verdict, check, compile};
use canopy_synth::{Algorithm, Never, Silent, SynthesisError, SynthesisRequest, TreeLimits, synthesize};
use canopy_topology::{Rank, Rate, Topology, TopologyLimits, Transit, generate};

fn network(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap_or_else(|error| panic!("{expression}: {error}"))
}

fn planned(topology: &Topology, kind: CollectiveKind, limits: TreeLimits) -> Result<Schedule, SynthesisError> {
    let collective = Collective::new(kind, None, topology.rank_count()).unwrap();
    let request = SynthesisRequest { limits, ..SynthesisRequest::new(collective, Algorithm::Tsmcf) };
    synthesize(topology, &request, &Never, &Silent)
}

/// The plan of an all-to-all, and what the checker says of it.
#[track_caller]
fn judged(topology: &Topology) -> (Schedule, Verdict) {
    let schedule = planned(topology, CollectiveKind::AllToAll, TreeLimits::NONE).unwrap();
    assert_eq!(schedule.algorithm, "tsmcf");
    let verdict = check(topology, &compile(topology, &schedule).unwrap()).unwrap();
    (schedule, verdict)
}

/// Number of steps, chunks of a block, and the rate for links of 1 GB/s, all exact.
#[track_caller]
fn check_plan(expression: &str, steps: u32, chunks: u64, rate: &str) {
    let (schedule, verdict) = judged(&network(expression));
    let found = (verdict.steps.unwrap().count, schedule.shape.chunks_per_share(), verdict.algbw);
    assert_eq!(found, (steps, chunks, rate.parse::<Rate>().unwrap()), "{expression}");
}

#[test]
fn regular_networks_reach_the_flow_without_steps() {
    check_plan("hypercube:3,bw=1GB/s", 3, 1, "2000000000");
    check_plan("twisted-cube:bw=1GB/s", 2, 1, "2000000000");
    check_plan("bipartite:4x4,bw=1GB/s", 2, 2, "3200000000");
    check_plan("torus:3x3,bw=1GB/s", 2, 1, "3000000000");
    check_plan("torus:4x4,bw=1GB/s", 4, 1, "2000000000");
    check_plan("genkautz:n=10,d=4,bw=1GB/s", 3, 2, "20000000000/7");
}

#[test]
fn a_torus_of_27_ranks_reaches_the_flow_without_steps() {
    check_plan("torus:3x3x3,bw=1GB/s", 3, 1, "3000000000");
}

/// A link at half its rate: what is stated is what the steps take.
#[test]
fn unequal_links_are_planned() {
    let (_, verdict) = judged(&network("torus:3x3,bw=2GB/s,degrade=00-01*1/2"));
    let (least, most) = ("4500000000".parse::<Rate>().unwrap(), "6000000000".parse::<Rate>().unwrap());
    assert!(verdict.algbw > least && verdict.algbw < most, "{}", verdict.algbw);
}

/// Through a switch everything goes at once, in as many blocks as each port has for the others of its box or of another.
#[test]
fn switches_are_passed_within_a_step() {
    check_plan("dgx-a100:boxes=1", 1, 1, "2400000000000/7");
    check_plan("dgx-a100:boxes=2", 1, 1, "50000000000");
    check_plan("dgx-a100:boxes=3,gpus=4", 1, 1, "37500000000");
    check_plan("leaf-spine:leaves=3,hosts=2,spines=2,oversub=1", 1, 1, "30000000000");
}

/// Basu 2024 §3.2.2: hosts of three links' rate forward F = 1/4 instead of 1/3 on a 3 × 3 torus, 3/10 instead of 2/5 on K4,4;
/// where cards do it, a host has its own blocks alone to inject, and nothing has to wait for a step.
#[test]
fn hosts_bound_what_a_step_carries() {
    check_plan("torus:3x3,bw=1GB/s,host=3GB/s", 2, 1, "2250000000");
    check_plan("bipartite:4x4,bw=1GB/s,host=3GB/s", 2, 1, "2400000000");
    check_plan("torus:3x3,bw=1GB/s,host=3GB/s,nicforward=true", 1, 1, "3000000000");
    check_plan("torus:3x3,bw=1GB/s,host=2GB/s,nicforward=true", 1, 1, "2250000000");
}

/// A device that takes no part keeps nothing: what it forwards passes it within the step.
#[test]
fn devices_that_only_forward_are_passed() {
    let line = network("mesh:1x3,bw=1GB/s");
    let ends = line.group(&[Rank::new(0), Rank::new(2)], Transit::Forward).unwrap();
    let (_, verdict) = judged(&ends);
    assert_eq!((verdict.steps.unwrap().count, verdict.algbw), (1, "2000000000".parse::<Rate>().unwrap()));
}

#[test]
fn numbers_of_chunks_are_heeded() {
    let topology = network("bipartite:4x4");
    let of = |limits| planned(&topology, CollectiveKind::AllToAll, limits).unwrap().shape.chunks_per_share();
    assert_eq!(of(TreeLimits { chunks: NonZeroU64::new(3), ..TreeLimits::NONE }), 3);
    assert_eq!(of(TreeLimits { max_chunks: NonZeroU64::new(1), ..TreeLimits::NONE }), 1);
}

#[test]
fn equal_requests_have_equal_schedules() {
    let topology = network("genkautz:n=12,d=3");
    let schedule = || planned(&topology, CollectiveKind::AllToAll, TreeLimits::NONE).unwrap();
    assert_eq!(schedule(), schedule());
}

#[test]
fn what_it_does_not_plan_is_refused() {
    let refused =
        |expression: &str, kind| planned(&network(expression), kind, TreeLimits::NONE).unwrap_err().to_string();
    assert!(refused("ring:4", CollectiveKind::Allgather).contains("it plans all-to-all"));
    assert!(refused("torus:12x12", CollectiveKind::AllToAll).contains("144 ranks"));
    assert!(refused("dgx-a100:boxes=16", CollectiveKind::AllToAll).contains("128 ranks with 512 links"));
}
