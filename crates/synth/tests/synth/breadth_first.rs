//! Breadth-first broadcasts of known networks: steps and bandwidth terms as the checker finds them on the schedule, which
//! are the stated fractions. Sources: Zhao 2026, chapter 3 (table 3.5) and appendix A (tables A.1 and A.2); where those state
//! decimals, the fractions that they round.

#![expect(clippy::unwrap_used, reason = "a test may fail wherever it stands, helpers included")]

use std::num::NonZeroU64;

use canopy_schedule::{Collective, CollectiveKind, StepCost, check, compile};
use canopy_synth::{Algorithm, Never, Silent, Symmetry, SynthesisRequest, TreeLimits, breadth_first, synthesize};
use canopy_topology::{Rate, Topology, TopologyLimits, generate};

fn network(expression: &str) -> Topology {
    generate(expression, &TopologyLimits::STANDARD).unwrap_or_else(|error| panic!("{expression}: {error}"))
}

/// Chunks per share and what the checker says of the steps.
#[track_caller]
fn cost(topology: &Topology, kind: CollectiveKind, limits: TreeLimits, symmetry: Symmetry) -> (u64, StepCost) {
    let collective = Collective::new(kind, None, topology.rank_count()).unwrap();
    let request = SynthesisRequest { limits, ..SynthesisRequest::new(collective, Algorithm::Bfb) };
    let schedule = match symmetry {
        Symmetry::Used => synthesize(topology, &request, &Never, &Silent),
        Symmetry::Unused => breadth_first(topology, &request, symmetry, &Never, &Silent),
    };
    let schedule = schedule.unwrap();
    assert_eq!(schedule.algorithm, "bfb");
    let graph = compile(topology, &schedule).unwrap();
    (schedule.shape.chunks_per_share(), check(topology, &graph).unwrap().steps.unwrap())
}

#[track_caller]
fn check_allgather(expression: &str, steps: u32, bandwidth: &str) {
    let (chunks, found) = cost(&network(expression), CollectiveKind::Allgather, TreeLimits::NONE, Symmetry::Used);
    assert_eq!((found.count, found.bandwidth.to_string().as_str()), (steps, bandwidth), "{expression}");
    assert!(expression.contains("hypercube") || chunks <= 12, "{expression}: {chunks} chunks");
}

#[test]
fn allgathers_cost_what_is_known() {
    for (expression, steps, bandwidth) in [
        ("bipartite:2x2", 2, "3/4"),
        ("bipartite:3x3", 2, "5/6"),
        ("bipartite:4x4", 2, "7/8"),
        ("complete:5", 1, "4/5"),
        ("biring:n=6,d=2", 3, "5/6"),
        ("uniring:n=4,d=2", 3, "3/4"),
        ("circulant:n=12,offsets=2+3", 2, "11/12"),
        ("circulant:n=256", 11, "255/256"),
        ("dcirculant:d=4", 2, "5/6"),
        ("hamming:3x3", 2, "8/9"),
        ("torus:4x6", 5, "23/24"),
        ("torus:3x3x2", 3, "17/18"),
        ("hypercube:3", 3, "7/8"),
        ("hypercube:8", 8, "255/256"),
        ("twisted-cube", 2, "7/8"),
        ("twisted-torus:6x3", 3, "17/18"),
        ("twisted-torus:8x4", 4, "31/32"),
        ("twisted-torus:3x3x6", 4, "53/54"),
        ("twisted-torus:4x4x8", 6, "127/128"),
        ("degree:2(complete:3)", 2, "5/6"),
        ("kautz:d=4,n=2", 2, "1/1"),
        ("genkautz:n=20,d=4", 2, "1/1"),
        ("kautz:d=2,n=3", 3, "7/6"),
        ("genkautz:n=12,d=2", 3, "7/6"),
        ("line(bipartite:2x2)", 3, "1/1"),
        ("line(bipartite:4x4)", 3, "1/1"),
        ("line:2(bipartite:4x4)", 4, "33/32"),
        ("debruijn:d=2,n=3", 3, "7/4"),
        ("diamond", 3, "1/1"),
        ("product(biring:n=8,d=2;uniring:n=4,d=1;uniring:n=4,d=1)", 10, "127/128"),
    ] {
        check_allgather(expression, steps, bandwidth);
    }
}

/// Table A.2, as far as its graphs have up to 256 nodes.
#[test]
fn distance_regular_graphs_lose_no_bandwidth() {
    for (nodes, steps) in [(6, 2), (9, 2), (10, 3), (15, 3), (16, 4), (26, 3), (32, 4), (45, 4), (80, 4)] {
        check_allgather(&format!("distreg:n={nodes},d=4"), steps, &format!("{}/{nodes}", nodes - 1));
    }
}

/// Generalised Kautz graphs are not their own mirror images: the reduce-scatter is another schedule, and may cost more.
#[test]
fn reduce_scatters_are_built_for_themselves() {
    for (expression, allgather, reduce_scatter) in
        [("genkautz:n=11,d=4", "14/11", "16/11"), ("genkautz:n=20,d=4", "1/1", "1/1"), ("diamond", "1/1", "1/1")]
    {
        let topology = network(expression);
        let of = |kind| cost(&topology, kind, TreeLimits::NONE, Symmetry::Used).1;
        let (spread, summed) = (of(CollectiveKind::Allgather), of(CollectiveKind::ReduceScatter));
        assert_eq!(spread.bandwidth.to_string(), allgather, "{expression}");
        assert_eq!(summed.bandwidth.to_string(), reduce_scatter, "{expression}");
        assert_eq!(of(CollectiveKind::Allreduce).count, spread.count + summed.count);
    }
}

/// Ranks behind hosts of 100 Gb/s with links of 25 Gb/s, as in the testbed of section 3.8.5 (host limit of PCIe):
/// allgather and allreduce at the rate that hosts allow, `N/(N − 1)` of theirs and half of that, in the fewest steps.
#[test]
fn hosts_of_the_testbed_are_used_in_full() {
    for (sides, ranks, steps) in [("3x3x2", 18, 3), ("3x3x3", 27, 3), ("3x3x3x2", 54, 4)] {
        let topology = network(&format!("torus:{sides},host=12.5GB/s,bw=3.125GB/s"));
        for (kind, phases) in
            [(CollectiveKind::Allgather, 1), (CollectiveKind::ReduceScatter, 1), (CollectiveKind::Allreduce, 2)]
        {
            let (_, found) = cost(&topology, kind, TreeLimits::NONE, Symmetry::Used);
            let expected = Rate::new(12_500_000_000_u64 * ranks, (ranks - 1) * phases).unwrap();
            assert_eq!(
                (found.count, found.algbw),
                (steps * u32::try_from(phases).unwrap(), expected),
                "{sides}, {kind}"
            );
        }
    }
}

/// A rank that uses k of its ports at a time is one whose host has the rate of k links (the single- and multi-port models of
/// Pham 2026, section 2.3): each step takes as long as what a rank receives needs on k ports.
#[test]
fn ports_that_are_used_at_a_time_are_the_rate_of_the_host() {
    for ports in 1..=4_u64 {
        for (expression, ranks) in [("torus:4x4", 16_u64), ("hamming:3x3", 9), ("circulant:n=12,offsets=2+3", 12)] {
            let topology = network(&format!("{expression},host={}GB/s", 25 * ports));
            let (_, found) = cost(&topology, CollectiveKind::Allgather, TreeLimits::NONE, Symmetry::Used);
            let expected = Rate::new(25_000_000_000 * ports * ranks, ranks - 1).unwrap();
            assert_eq!(found.algbw, expected, "{expression}, {ports} ports");
        }
    }
}

/// What fractions leave of a rate is rounded to whole bytes per second and has no common unit with the others: no number of chunks
/// that can be counted is exact, and a small one comes within a hundredth of what ten thousand take, which is as near as matters.
#[test]
fn rates_without_a_common_unit_are_come_close_to() {
    for expression in ["torus:4x4,degrade=00-01*1/3", "ring:6,degrade=0>1*2/7+3-4*5/11"] {
        let topology = network(expression);
        for kind in [CollectiveKind::Allgather, CollectiveKind::ReduceScatter, CollectiveKind::Allreduce] {
            let (chunks, found) = cost(&topology, kind, TreeLimits::NONE, Symmetry::Used);
            let fine = TreeLimits { chunks: NonZeroU64::new(10_000), ..TreeLimits::NONE };
            let (_, near) = cost(&topology, kind, fine, Symmetry::Used);
            assert!((2..=64).contains(&chunks), "{expression}: {chunks} chunks");
            let more = found.bandwidth.to_f64() / near.bandwidth.to_f64();
            assert!(
                (0.999..1.011).contains(&more),
                "{expression}, {kind:?}: {chunks} chunks take {more} times as long"
            );
        }
    }
}

/// Circulants of two offsets lose no bandwidth (proved), nor do generalised Kautz graphs lose more than half; four links
/// into each rank never need more than twelve chunks; serving every rank by itself costs the same.
#[test]
fn every_size_has_a_cheap_graph_of_degree_four() {
    for nodes in (7..=40_u64).chain([64, 100, 128]) {
        let circulant = network(&format!("circulant:n={nodes}"));
        let kautz = network(&format!("genkautz:n={nodes},d=4"));
        for (topology, most) in [(circulant, (nodes - 1, nodes)), (kautz, (2 * (nodes - 1), nodes))] {
            let (chunks, used) = cost(&topology, CollectiveKind::Allgather, TreeLimits::NONE, Symmetry::Used);
            let (_, unused) = cost(&topology, CollectiveKind::Allgather, TreeLimits::NONE, Symmetry::Unused);
            assert!(chunks <= 12, "{nodes}: {chunks} chunks");
            assert_eq!(used, unused, "{nodes}");
            let most = canopy_topology::Ratio::new(most.0, most.1).unwrap();
            assert!(used.bandwidth <= most, "{nodes}: {}", used.bandwidth);
        }
    }
}
